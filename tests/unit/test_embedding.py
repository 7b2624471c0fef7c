"""The embedded MiniLM and its cache of vectors."""

import hashlib
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from openassay.errors import ConfigurationError
from openassay.text import embeddings
from openassay.text.embeddings import EmbeddingCache, MiniLM

MIXED = [
    "Short.",
    "The committee approved the budget after a long debate about spending on roads. " * 12,
    "",
    "Photosynthesis turns light into chemical energy.",
    "A sentence of middling length that says very little about anything in particular.",
] * 15


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return MiniLM()


class CountingEmbedder:
    """Vectors made from the text's hash; remembers what it was asked."""

    def __init__(self, name: str = "counting") -> None:
        self.name = name
        self.asked: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if texts:
            self.asked.append(list(texts))
        return np.array([self.vector(text) for text in texts], np.float32).reshape(len(texts), 32)

    @staticmethod
    def vector(text: str) -> list[float]:
        return [byte / 256 for byte in hashlib.sha256(text.encode()).digest()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "vectors.sqlite"


@pytest.fixture
def notices() -> list[str]:
    return []


# The model -------------------------------------------------------------------------------------------


def test_a_paraphrase_is_much_closer_than_an_unrelated_sentence(model: MiniLM) -> None:
    asked, paraphrase, unrelated = model.embed(
        [
            "How many people live in the capital of France?",
            "What is the population of Paris?",
            "The recipe needs two eggs and a pinch of salt.",
        ]
    )
    # fp32 gives .814 and .068.
    assert asked @ paraphrase > 0.75
    assert asked @ unrelated < 0.15


@pytest.mark.slow
def test_rows_keep_the_order_of_the_texts(model: MiniLM) -> None:
    rows = model.embed(MIXED)
    alone = np.concatenate([model.embed([text]) for text in MIXED[:5]])
    cosines = (rows * np.tile(alone, (15, 1))).sum(axis=1)
    # The vector must not depend on the batch, or the cache would depend on the order of questions.
    assert cosines.min() > 0.9999


@pytest.mark.slow
def test_vectors_have_unit_length_and_are_the_same_each_time(model: MiniLM) -> None:
    rows = model.embed(MIXED)
    assert rows.dtype == np.float32
    assert rows.shape == (75, 384)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(rows, MiniLM().embed(MIXED))


def test_what_lies_beyond_256_tokens_is_not_seen(model: MiniLM) -> None:
    first, second = model.embed(["word " * 300, "word " * 300 + "entirely different ending"])
    np.testing.assert_array_equal(first, second)


def test_no_texts_give_no_rows_and_load_nothing(tmp_path: Path) -> None:
    assert MiniLM(data=tmp_path).embed([]).shape == (0, 384)


def test_a_lone_surrogate_is_embedded(model: MiniLM) -> None:
    assert np.isfinite(model.embed(["caf\udce9"])).all()


@pytest.mark.slow
def test_threads_share_one_model() -> None:
    model = MiniLM(threads=1)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: model.embed(MIXED[:5]), range(8)))
    for rows in results:
        np.testing.assert_array_equal(rows, results[0])


def test_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"tokenizer\.json is missing") as caught:
        MiniLM(data=tmp_path).embed(["text"])
    assert "Install" in caught.value.help


@pytest.mark.parametrize("name", [embeddings.MINILM.graph, embeddings.WORDS_FILE, embeddings.TOKENIZER_FILE])
def test_the_shipped_files_are_those_of_origin(name: str) -> None:
    origin = (embeddings.DATA / "ORIGIN.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| `{re.escape(name)}` \| (\d+) \| `([0-9a-f]{{64}})` \|$", origin, re.MULTILINE)
    assert row is not None
    content = (embeddings.DATA / name).read_bytes()
    assert (int(row[1]), row[2]) == (len(content), hashlib.sha256(content).hexdigest())


def test_the_name_follows_from_the_shipped_model(model: MiniLM) -> None:
    content = (embeddings.DATA / embeddings.MINILM.graph).read_bytes()
    assert hashlib.sha256(content).hexdigest() == embeddings.MINILM_SHA256
    assert model.name == f"minilm-l6-int8-{embeddings.MINILM_SHA256[:8]}"


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, openassay.text.embeddings as e; e.MiniLM();"
        "print(sorted({'numpy', 'onnxruntime', 'tokenizers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# The cache -------------------------------------------------------------------------------------------


def test_a_hit_skips_the_model_and_gives_the_same_numbers(path: Path) -> None:
    fake = CountingEmbedder()
    first = EmbeddingCache(fake, path).embed(["a", "b", "a"])
    second = EmbeddingCache(fake, path).embed(["b", "c", "a", "a"])
    assert fake.asked == [["a", "b"], ["c"]]
    np.testing.assert_array_equal(first[[0, 1, 2]], second[[2, 0, 3]])
    np.testing.assert_allclose(first[0], CountingEmbedder.vector("a"), atol=1e-3)


def test_models_do_not_share_vectors(path: Path) -> None:
    one, other = CountingEmbedder("one"), CountingEmbedder("other")
    for fake in (one, other):
        EmbeddingCache(fake, path).embed(["a"])
    assert one.asked == other.asked == [["a"]]


def test_no_texts_touch_neither_model_nor_disk(path: Path) -> None:
    fake = CountingEmbedder()
    assert EmbeddingCache(fake, path).embed([]).shape == (0, 32)
    assert fake.asked == []
    assert not path.exists()


def test_more_keys_than_one_query_takes(path: Path) -> None:
    fake = CountingEmbedder()
    cached = EmbeddingCache(fake, path)
    texts = [f"text {i}" for i in range(2 * embeddings.LOOKUP + 7)]
    np.testing.assert_array_equal(cached.embed(texts), cached.embed(texts))
    assert len(fake.asked) == 1


def test_the_oldest_rows_go_first(path: Path) -> None:
    fake = CountingEmbedder()
    cached = EmbeddingCache(fake, path, limit=10)
    for i in range(25):
        cached.embed([f"text {i}"])
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM vectors").fetchone() == (10,)
    connection.close()
    fake.asked.clear()
    cached.embed([f"text {i}" for i in range(14, 25)])
    assert fake.asked == [["text 14"]]


def overwrite(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"this was never a database " * 400)


def damage(path: Path) -> None:
    cached = EmbeddingCache(CountingEmbedder(), path)
    cached.embed([f"text {i}" for i in range(400)])
    cached.close()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * len(content[4096:])
    path.write_bytes(content)


@pytest.mark.parametrize("spoil", [overwrite, damage])
def test_a_corrupt_file_is_moved_aside(path: Path, notices: list[str], spoil: Callable[[Path], None]) -> None:
    spoil(path)
    fake = CountingEmbedder()
    cached = EmbeddingCache(fake, path, on_notice=notices.append)
    np.testing.assert_array_equal(cached.embed(["a"]), cached.embed(["a"]))
    assert fake.asked == [["a"]]
    assert path.with_name("vectors.sqlite.corrupt").exists()
    assert len(notices) == 1
    assert "corrupt" in notices[0]


def test_a_file_another_process_has_replaced_is_not_moved(path: Path, notices: list[str]) -> None:
    cached = EmbeddingCache(CountingEmbedder(), path, on_notice=notices.append)
    cached.embed(["a"])
    newer = path.with_name("newer")
    newer.touch()
    newer.replace(path)
    cached._replace_corrupt_file()
    assert path.exists()
    assert notices == []


def test_a_row_of_the_wrong_size_is_computed_again(path: Path) -> None:
    fake = CountingEmbedder()
    cached = EmbeddingCache(fake, path)
    cached.embed(["a"])
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE vectors SET vector = x'00'")
    connection.close()
    for _ in range(2):
        assert cached.embed(["a"]).shape == (1, 32)
    assert len(fake.asked) == 2


def test_a_locked_file_does_not_stop_the_run(path: Path, notices: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "BUSY_SECONDS", 0.05)
    cached = EmbeddingCache(CountingEmbedder(), path, on_notice=notices.append)
    cached.embed(["a"])
    holder = sqlite3.connect(path)
    holder.execute("BEGIN EXCLUSIVE")
    for text in "bcd":
        assert cached.embed([text]).shape == (1, 32)
    holder.close()
    # After the first failure the cache rests, so that not every call waits for the lock.
    assert len(notices) == 1
    assert "locked" in notices[0]


def test_an_unwritable_place_does_not_stop_the_run(tmp_path: Path, notices: list[str]) -> None:
    (tmp_path / "file").touch()
    cached = EmbeddingCache(CountingEmbedder(), tmp_path / "file" / "vectors.sqlite", on_notice=notices.append)
    assert cached.embed(["a"]).shape == (1, 32)
    assert len(notices) == 1


def test_threads_share_one_cache(path: Path, notices: list[str]) -> None:
    fake = CountingEmbedder()
    cached = EmbeddingCache(fake, path, on_notice=notices.append)
    texts = [f"text {i}" for i in range(60)]
    expected = cached.embed(texts)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda i: cached.embed([*texts, f"own {i}"]), range(40)))
    for rows in results:
        np.testing.assert_array_equal(rows[:60], expected)
    assert notices == []


def test_parallel_queries_compute_what_they_share_only_once(path: Path) -> None:
    class SlowEmbedder(CountingEmbedder):
        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            time.sleep(0.05 if texts else 0)
            return super().embed(texts)

    fake = SlowEmbedder()
    cached = EmbeddingCache(fake, path)
    shared = [f"passage {i}" for i in range(20)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: cached.embed(shared), range(6)))
    assert sorted(text for texts in fake.asked for text in texts) == sorted(shared)


WRITER = """
import sys
from pathlib import Path
from openassay.text.embeddings import EmbeddingCache
from tests.unit.test_embedding import CountingEmbedder

cached = EmbeddingCache(CountingEmbedder(), Path(sys.argv[1]), on_notice=lambda n: sys.exit(n))
for i in range(100):
    cached.embed([f"shared {i}", f"{sys.argv[2]} {i}"])
"""


@pytest.mark.slow
def test_processes_share_one_file(path: Path) -> None:
    root = Path(__file__).parents[2]
    commands = [[sys.executable, "-c", WRITER, str(path), str(i)] for i in range(3)]
    running = [subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE) for command in commands]
    assert [process.communicate()[1] for process in running] == [b""] * 3
    fake = CountingEmbedder()
    everything = [f"{who} {i}" for who in ("shared", 0, 1, 2) for i in range(100)]
    EmbeddingCache(fake, path).embed(everything)
    assert fake.asked == []
