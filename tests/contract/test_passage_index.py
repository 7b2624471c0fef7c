"""What every PassageIndex does; and that those on SQLite and PostgreSQL stay whole, safe and quick."""

import hashlib
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.errors import EvidenceError, NotFoundError, StorageError
from assay.model.source import Document, Passage
from assay.ports import FileStamp
from assay.storage import candidates
from assay.storage.lexemes import Stems
from assay.storage.library import LibraryIndex
from assay.storage.postgres import PostgresDatabase
from assay.storage.postgres_library import Names, PostgresLibrary
from assay.testing import MemoryIndex

Index = LibraryIndex | PostgresLibrary | MemoryIndex

ROOT = Path("/folders/pottery")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
STAMP = FileStamp(10, 1_700_000_000_000_000_000)


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[LibraryIndex]:
    with LibraryIndex(tmp_path / "library.db") as index:
        yield index


@pytest.fixture
def postgres(postgres_database: PostgresDatabase) -> PostgresLibrary:
    return PostgresLibrary(postgres_database, ROOT, Names(Path("/uploads")), Stems())


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def index(request: pytest.FixtureRequest) -> Index:
    if request.param == "memory":
        return MemoryIndex()
    found: Index = request.getfixturevalue(request.param)
    return found


def document(text: str, name: str = "a.txt", title: str = "") -> Document:
    hash = hashlib.sha256(text.encode()).hexdigest()
    return Document(hash=hash, text=text, url=f"file:///{name}", title=title, fetched=NOW)


def lines(of: Document) -> list[Passage]:
    """A passage a line."""
    found, start = [], 0
    for line in of.text.splitlines(keepends=True):
        found.append(Passage(document=of.hash, start=start, end=start + len(line), text=line.rstrip("\n")))
        start += len(line)
    return found


def add(index: Index, name: str, text: str, title: str = "", stamp: FileStamp = STAMP) -> Document:
    made = document(text, name, title)
    index.replace(name, stamp, made, lines(made))
    return made


def texts(index: Index, *words: str, limit: int = 10) -> list[str]:
    return [match.passage.text for match in index.match(words, limit=limit)]


# Every index ------------------------------------------------------------------------------------------


def test_a_match_says_where_it_stands(index: Index) -> None:
    made = add(index, "kiln.txt", "Clay is soft.\nA kiln is hot.\n", title="On kilns")
    (match,) = index.match(["hot"], limit=5)
    assert match.passage == Passage(document=made.hash, start=14, end=29, text="A kiln is hot.")
    assert (match.title, match.url) == ("On kilns", "file:///kiln.txt")
    assert match.score > 0
    assert index.document(made.hash) == made


def test_any_of_the_words_will_do_and_the_best_comes_first(index: Index) -> None:
    add(index, "a", "clay and glaze\nclay alone\nglaze alone\nnothing\nclay and glaze and kiln\n")
    found = index.match(["clay", "kiln"], limit=10)
    assert found[0].passage.text == "clay and glaze and kiln"
    assert len(found) == 3
    assert [match.score for match in found] == sorted((match.score for match in found), reverse=True)
    assert all(match.score > 0 for match in found)


def test_a_rare_word_counts_for_more(index: Index) -> None:
    add(index, "a", "clay one\nclay two\nclay three\nfrit four\n")
    assert texts(index, "clay", "frit")[0] == "frit four"


def test_a_title_counts_for_more(index: Index) -> None:
    add(index, "a", "one frit here\n", title="Clay")
    add(index, "b", "one clay here\n", title="Frit")
    add(index, "c", "nothing of it here\n", title="Kilns")
    assert [match.title for match in index.match(["frit"], limit=5)] == ["Frit", "Clay"]


def test_no_more_than_asked_for(index: Index) -> None:
    add(index, "a", "".join(f"clay {number}\n" for number in range(20)))
    assert len(texts(index, "clay", limit=7)) == 7
    assert texts(index, "clay", limit=0) == []
    assert texts(index, "clay", limit=-1) == []


@pytest.mark.parametrize("words", [[], [""], [" ", "\t"], ["?!"], ['"'], ["\x00"], ["\ud800"], ["\N{FIRE}"], ["*"]])
def test_nothing_asked_nothing_found(index: Index, words: list[str]) -> None:
    add(index, "a", "clay \N{FIRE} * ?!\n")
    assert index.match(words, limit=5) == []


@pytest.mark.parametrize(
    "words",
    [
        ["CLAY"],
        ["clay?"],
        ['"clay"'],
        ["'clay'"],
        ["title:clay"],
        ["clay*"],
        ["clay OR"],
        ["NOT clay"],
        ["clay AND"],
        ["NEAR(clay"],
        ["^clay"],
        ["{clay}"],
        ["-clay"],
        ["clay\x00"],
        ["\x00clay"],
        ["clay\ud800"],
        ["\u202eclay"],
        ["what's the clay-like?"],
        ["c; DROP TABLE passages; clay"],
        ["clay", "clay", "clay"],
    ],
)
def test_syntax_is_only_text(index: Index, words: list[str]) -> None:
    add(index, "a", "clay\nfrit\n")
    assert texts(index, *words) == ["clay"]


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("Café au lait", "cafe"),
        ("cafe au lait", "CAFÉ"),
        ("cafe\u0301 au lait", "caf\u00e9"),
        ("Straße", "straße"),
        ("Печь горячая", "печь"),
        ("الفرن ساخن", "الفرن"),
        ("हिन्दी भाषा", "हिन्दी"),
        ("covid-19 wave", "COVID-19"),
        ("1,250 degrees", "1,250"),
    ],
)
def test_case_accents_and_scripts(index: Index, text: str, asked: str) -> None:
    add(index, "a", f"{text}\nfrit\n")
    assert texts(index, asked) == [text]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(st.text(alphabet=st.characters(), max_size=20), max_size=8))
def test_no_question_raises(index: Index, words: list[str]) -> None:
    add(index, "a", "clay and frit\n")
    index.match(words, limit=3)


def test_a_pasted_page_is_a_question_too(index: Index) -> None:
    add(index, "a", "clay\n")
    assert texts(index, "clay", *(f"word{number}" for number in range(5_000))) == ["clay"]


def test_files_are_known_by_their_stamps(index: Index) -> None:
    add(index, "b", "clay\n", stamp=FileStamp(1, 2))
    index.replace("a", FileStamp(3, 4), None, [])
    index.replace("bad\udcff\ud800name", FileStamp(5, 2**62), None, [])
    assert index.stamps() == {
        "a": FileStamp(3, 4),
        "b": FileStamp(1, 2),
        "bad\udcff\ud800name": FileStamp(5, 2**62),
    }


def test_a_changed_file_loses_what_it_held(index: Index) -> None:
    old = add(index, "a", "clay\n")
    add(index, "a", "frit\n", stamp=FileStamp(9, 9))
    assert index.stamps() == {"a": FileStamp(9, 9)}
    assert (texts(index, "clay"), texts(index, "frit")) == ([], ["frit"])
    with pytest.raises(NotFoundError):
        index.document(old.hash)


def test_a_file_may_lose_its_text(index: Index) -> None:
    add(index, "a", "clay\n")
    index.replace("a", STAMP, None, [])
    assert texts(index, "clay") == []
    assert list(index.stamps()) == ["a"]


def test_the_same_text_may_be_cut_anew(index: Index) -> None:
    made = add(index, "a", "clay one\nclay two\n")
    whole = Passage(document=made.hash, start=0, end=len(made.text), text=made.text)
    index.replace("a", STAMP, made, [whole])
    assert [match.passage for match in index.match(["clay"], limit=5)] == [whole]


def test_a_document_without_passages(index: Index) -> None:
    made = add(index, "a", "")
    assert index.document(made.hash) == made
    add(index, "b", "", title="again")
    index.remove(["a"])
    assert index.document(made.hash).title == "again"


def test_removed_files_are_forgotten(index: Index) -> None:
    made = add(index, "a", "clay\n")
    add(index, "b", "clay too\n")
    index.remove(["a", "never there"])
    index.remove([])
    assert texts(index, "clay") == ["clay too"]
    assert list(index.stamps()) == ["b"]
    with pytest.raises(NotFoundError):
        index.document(made.hash)


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_twins_share_a_document_and_the_first_path_names_it(index: Index, order: str) -> None:
    for name in order:
        add(index, name, "clay\n", title=f"title{name}")
    (match,) = index.match(["clay"], limit=5)
    assert (match.title, match.url) == ("titlea", "file:///a")
    assert texts(index, "titlea") == ["clay"]
    index.remove(["a"])
    (match,) = index.match(["clay"], limit=5)
    assert (match.title, match.url) == ("titleb", "file:///b")
    assert (texts(index, "titlea"), texts(index, "titleb")) == ([], ["clay"])
    assert index.document(match.passage.document).url == "file:///b"
    index.remove(["b"])
    assert texts(index, "clay") == []


def test_an_unknown_document_is_not_found(index: Index) -> None:
    with pytest.raises(NotFoundError):
        index.document("0" * 64)


def test_only_what_belongs_together_is_indexed(index: Index) -> None:
    made = document("clay\n")
    refused: list[tuple[Document | None, Sequence[Passage]]] = [
        (made.model_copy(update={"text": "frit\n"}), []),
        (made, lines(document("frit\n"))),
        (None, lines(made)),
        (made.model_copy(update={"title": "\udcff"}), lines(made)),
    ]
    for held, passages in refused:
        with pytest.raises(EvidenceError):
            index.replace("a", STAMP, held, passages)
    assert index.stamps() == {}


def test_a_batch_is_kept_whole(index: Index) -> None:
    with index.batch():
        for number in range(5):
            add(index, f"{number}", f"clay {number}\n")
        index.remove(["0"])
        assert len(texts(index, "clay")) == 4
    assert len(texts(index, "clay")) == 4


def test_a_batch_that_fails_leaves_nothing(index: Index) -> None:
    add(index, "a", "clay\n")

    def batch() -> None:
        with index.batch():
            add(index, "b", "clay too\n")
            index.remove(["a"])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        batch()
    assert texts(index, "clay") == ["clay"]
    assert list(index.stamps()) == ["a"]


def test_a_refused_file_does_not_spoil_the_batch(index: Index) -> None:
    with index.batch():
        add(index, "a", "clay\n")
        with pytest.raises(EvidenceError):
            index.replace("b", STAMP, None, lines(document("frit\n")))
    assert list(index.stamps()) == ["a"]


CHANGES = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["", "clay\n", "clay\nfrit\n", None]), st.sampled_from("xy"))
    | st.sampled_from("abc"),
    max_size=12,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=CHANGES)
def test_both_agree_after_any_changes(sqlite: LibraryIndex, changes: "list[tuple[str, str | None, str] | str]") -> None:
    memory = MemoryIndex()
    sqlite.remove(list(sqlite.stamps()))
    for change in changes:
        for index in (memory, sqlite):
            _make(index, change)
    for word in ("clay", "frit", "x", "y"):
        found = [_places(index, word) for index in (memory, sqlite)]
        assert found[0] == found[1]
    assert memory.stamps() == sqlite.stamps()
    _check_whole(sqlite)


def _make(index: Index, change: tuple[str, str | None, str] | str) -> None:
    if isinstance(change, str):
        index.remove([change])
        return
    path, text, title = change
    if text is None:
        index.replace(path, STAMP, None, [])
    else:
        add(index, path, text, title)


def _places(index: Index, word: str) -> set[tuple[Passage, str, str]]:
    return {(match.passage, match.title, match.url) for match in index.match([word], limit=50)}


def _check_whole(index: LibraryIndex) -> None:
    with index._database.transaction() as connection:
        connection.execute("INSERT INTO passages_fts (passages_fts, rank) VALUES ('integrity-check', 1)")
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        orphans = "SELECT count(*) FROM documents WHERE hash NOT IN (SELECT document FROM files WHERE document > '')"
        assert connection.execute(orphans).fetchone()[0] == 0


# SQLite -----------------------------------------------------------------------------------------------


def test_it_is_still_there_when_opened_again(tmp_path: Path) -> None:
    with LibraryIndex(tmp_path / "library.db") as index:
        add(index, "a", "clay\n")
    with LibraryIndex(tmp_path / "library.db") as index:
        assert texts(index, "clay") == ["clay"]
        assert index.stamps() == {"a": STAMP}


def test_words_are_found_by_their_stems(sqlite: LibraryIndex) -> None:
    add(sqlite, "a", "The kilns were firing.\nagreed\n")
    assert texts(sqlite, "kiln") == texts(sqlite, "fires") == ["The kilns were firing."]
    assert texts(sqlite, "agreed") == ["agreed"]


def test_common_words_are_left_out_only_where_rarer_ones_fill_the_time(
    sqlite: LibraryIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(sqlite, "a", "the clay the\nthe frit\nthe glaze\nthe kiln\n")
    assert len(texts(sqlite, "the", "clay")) == 4
    monkeypatch.setattr(candidates, "ROWS", 3)
    assert texts(sqlite, "the", "clay") == ["the clay the"]
    assert len(texts(sqlite, "the", "clay", "frit", "kiln")) == 3
    assert len(texts(sqlite, "the")) == 4


def test_if_all_words_are_common_the_rarest_decides(sqlite: LibraryIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    add(sqlite, "a", "the clay of\nthe frit\nclay of\nof\nthe of\n")
    monkeypatch.setattr(candidates, "ROWS", 1)
    assert sorted(texts(sqlite, "the", "clay", "of")) == ["clay of", "the clay of"]


def test_readers_see_the_old_state_while_a_batch_is_open(sqlite: LibraryIndex) -> None:
    add(sqlite, "a", "clay\n")
    seen: list[list[str]] = []
    with sqlite.batch():
        add(sqlite, "b", "clay too\n")
        reader = threading.Thread(target=lambda: seen.append(texts(sqlite, "clay")))
        reader.start()
        reader.join()
    assert seen == [["clay"]]
    assert len(texts(sqlite, "clay")) == 2


def test_a_damaged_file_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(StorageError, match=r"library\.db") as caught:
        LibraryIndex(path)
    assert "elete it; it will be rebuilt" in caught.value.help


def test_damage_inside_the_file_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    with LibraryIndex(path) as index:
        add(index, "a", "".join(f"clay {number}\n" for number in range(3_000)))
    content = path.read_bytes()
    path.write_bytes(content[:8192] + b"\xff" * (len(content) - 8192))
    with pytest.raises(StorageError) as caught, LibraryIndex(path) as index:
        texts(index, "clay", limit=100)
    assert "elete it; it will be rebuilt" in caught.value.help


def test_an_altered_document_is_noticed(sqlite: LibraryIndex, tmp_path: Path) -> None:
    made = add(sqlite, "a", "clay\n")
    connection = sqlite3.connect(tmp_path / "library.db")
    with connection:
        connection.execute("UPDATE documents SET text = 'frit'")
    connection.close()
    with pytest.raises(EvidenceError):
        sqlite.document(made.hash)
