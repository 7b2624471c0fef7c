"""The sentence encoder and the cross-encoder (ONNX, on the CPU), and vectors cached by content."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from openassay.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession
    from tokenizers import Encoding, Tokenizer

    from openassay.protocols import Embedder


# An ONNX model of the package on the CPU: its files, its session, and the texts a tokenizer takes.

TOKENIZER_FILE = "tokenizer.json"
_loading = Lock()


class OnnxModel(NamedTuple):
    tokenizer: Tokenizer
    session: InferenceSession


def run_model(
    model: OnnxModel, encodings: Iterable[Encoding], output: str, adapters: slice | None = None
) -> Iterator[NDArray[np.float32]]:
    """What the model says of each text, in their order. `adapters`: the columns of what it has learned besides, of a
    model that is several.

    One text at a time: nothing is padded, and what is computed stays in the processor's cache. Of 24 pairs of 38 to 175
    tokens the verifier takes 0.09 s each so and 0.16 s in a batch, and the encoder 14 ms against 41 ms."""
    import numpy as np

    more = {}
    for switches in model.session.get_inputs()[2:]:
        more[switches.name] = np.zeros(switches.shape, np.float32)
        if adapters:
            more[switches.name][adapters] = 1
    for text in encodings:
        given = {"input_ids": np.array([text.ids]), "attention_mask": np.array([text.attention_mask])}
        [rows] = model.session.run([output], given | more)
        yield rows[0]


def empty_rows(width: int) -> NDArray[np.float32]:
    """What is said of no text, for which no model need be loaded."""
    import numpy as np

    return np.empty((0, width), np.float32)


class ModelFiles(NamedTuple):
    """Of a model in the package; `matrices` are the files in which its large ones stand apart."""

    graph: str
    tokenizer: str = TOKENIZER_FILE
    matrices: tuple[str, ...] = ()


def load_model(
    data: Path, files: ModelFiles, threads: int, longest: int, cut: str = "longest_first", overlap: int = 0
) -> OnnxModel:
    """Once a process, however many ask: a model takes about 50 MB and 0.3 s of CPU, and nobody changes it. A text of
    more than `longest` tokens is cut off, of two the one that `cut` says; what follows overlaps by so many tokens."""
    with _loading:
        return _build_model(data, files, threads, longest, cut, overlap)


@lru_cache(maxsize=4)
def _build_model(data: Path, files: ModelFiles, threads: int, longest: int, cut: str, overlap: int) -> OnnxModel:
    from tokenizers import Tokenizer

    pieces = Tokenizer.from_file(str(find_model_file(data, files.tokenizer)))
    # The encoder's file is upstream's to the byte, and asks for 128 tokens, always padded.
    pieces.no_padding()
    pieces.enable_truncation(longest, stride=overlap, strategy=cut)
    matrices = tuple(find_model_file(data, name) for name in files.matrices)
    return OnnxModel(pieces, open_session(find_model_file(data, files.graph), threads, matrices))


def open_session(path: Path, threads: int, matrices: Sequence[Path] = ()) -> InferenceSession:
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3  # errors only
    # Idle threads sleep instead of spinning: no slower here (95 against 97 passages a second, within the
    # noise), and the cores are free for whoever else runs.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    values = {
        name: onnxruntime.OrtValue.ortvalue_from_numpy(one) for file in matrices for name, one in load_matrices(file)
    }
    if values:
        options.add_external_initializers(list(values), list(values.values()))
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def load_matrices(path: Path) -> Iterable[tuple[str, NDArray[np.int8]]]:
    """Those of a file by name. A table that stands alone in its file is shared by the models that have it."""
    return unpack_matrices(path) if path.suffix == ".npz" else [(path.stem, _load_table(path))]


@lru_cache(maxsize=1)
def _load_table(path: Path) -> NDArray[np.int8]:
    import numpy as np

    table: NDArray[np.int8] = np.load(path)
    return table


class PackedMatrix(NamedTuple):
    """A matrix of int8 in four bits: for each 32 values of a row a zero point and a step. Two values, or two zeros,
    stand in a byte."""

    halves: NDArray[np.uint8]
    zero: NDArray[np.uint8]
    step: NDArray[np.float16]


_UNPACKED = 65_536  # values at a time, which stay in the processor's cache: twice as fast as all of a matrix at once


def unpack_matrix(packed: PackedMatrix) -> NDArray[np.int8]:
    import numpy as np

    rows, blocks = packed.step.shape
    halves = packed.halves.reshape(rows, blocks, -1)
    zero = np.stack([packed.zero & 15, packed.zero >> 4], axis=-1).reshape(rows, blocks, 1).astype(np.float32)
    step = packed.step.astype(np.float32)[:, :, None]
    matrix = np.empty((rows, blocks, 2 * halves.shape[2]), np.int8)
    count = max(1, _UNPACKED // matrix[0].size)
    centred = np.empty((count, *halves.shape[1:]), np.float32)
    for start in range(0, rows, count):
        own = slice(start, start + count)
        room = centred[: len(halves[own])]
        for at, values in enumerate((halves[own] & 15, halves[own] >> 4)):
            np.subtract(values, zero[own], out=room)
            np.multiply(room, step[own], out=room)
            matrix[own, :, at::2] = np.rint(room, out=room)
    return matrix.reshape(rows, -1)


def unpack_matrices(path: Path) -> Iterator[tuple[str, NDArray[np.int8]]]:
    """The matrices of a file by name; one whose name ends in ":T" is wanted with rows and columns exchanged."""
    import numpy as np

    with np.load(path) as stored:
        for name in dict.fromkeys(key.partition("|")[0] for key in stored.files):
            matrix = unpack_matrix(PackedMatrix(*(stored[f"{name}|{part}"] for part in PackedMatrix._fields)))
            yield name, np.ascontiguousarray(matrix.T if name.endswith(":T") else matrix)


def find_model_file(data: Path, name: str) -> Path:
    path = data / name
    if not path.is_file():
        raise ConfigurationError(
            f"The embedding model is incomplete: {name} is missing.",
            help="Install OpenAssay again; the file is part of the package.",
            path=str(path),
        )
    return path


def count_cpus() -> int:
    """The CPUs this process may use; only Linux tells them from those of the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def replace_surrogates(text: str) -> str:
    """Badly decoded pages hold lone surrogates, which the tokenizer refuses."""
    return text.encode("utf-8", "replace").decode("utf-8")


# all-MiniLM-L6-v2 as an int8 ONNX graph. Where the file comes from: data/ORIGIN.md.

DATA = Path(__file__).parent / "data"
WORDS_FILE = "words.npy"
MINILM = ModelFiles("minilm.int8.onnx", matrices=(WORDS_FILE,))
# Written down, since hashing 23 MB would be paid at every start; a test compares them with the files.
MINILM_SHA256 = "5755a727d9233f9a8fa202fbc0abcd0aac554ae12ad0e143dc7f2455020a5db5"

MINILM_DIMENSIONS = 384
MINILM_TOKENS = 256  # tokens; upstream's own limit, and all that the exported position table holds
MOST_THREADS = 4  # a run shares its machine with the reader of pages; more is the caller's choice


class MiniLM:
    """Unit vectors of 384 dimensions. A text's vector does not depend on the texts it is embedded with."""

    name = f"minilm-l6-int8-{MINILM_SHA256[:8]}"

    def __init__(self, *, data: Path = DATA, threads: int | None = None) -> None:
        self._data = data
        self._threads = threads or min(count_cpus(), MOST_THREADS)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row for each text, in their order; what lies beyond 256 tokens of a text is not seen."""
        import numpy as np

        if not texts:
            return empty_rows(MINILM_DIMENSIONS)
        model = load_model(self._data, MINILM, self._threads, MINILM_TOKENS)
        # One by one: `encode_batch` starts a thread pool that warns and may hang after a fork, and
        # tokenising takes 0.3 ms of the 11 ms that a passage of 60 words takes.
        encodings = [model.tokenizer.encode(replace_surrogates(text)) for text in texts]
        return np.stack(list(run_model(model, encodings, "sentence")))


LIMIT = 500_000  # rows; about 430 MB
LOOKUP = 500  # keys in one query; SQLite's oldest limit on variables is 999
BUSY_SECONDS = 5.0
REST_SECONDS = 60.0  # without the cache after it failed: a locked one would cost every call BUSY_SECONDS twice

CREATE = "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB)"
STORE = "INSERT INTO vectors (key, vector) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET vector = excluded.vector"
# Rows leave from the old end only, so rowids have no gaps and the newest one tells how many there are;
# counting half a million rows at every store would not be free.
PRUNE = "DELETE FROM vectors WHERE rowid <= (SELECT max(rowid) FROM vectors) - ?"

CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class EmbeddingCache:
    """An embedder that remembers. Whatever happens to the cache, `embed` answers and `on_notice` is told.

    Vectors are kept as float16, and fresh ones are rounded alike, so that a first run and a second one see
    the same numbers. The rounding moves a cosine by 1e-4 at most.
    """

    def __init__(
        self,
        embedder: Embedder,
        path: Path,
        *,
        limit: int = LIMIT,
        on_notice: Callable[[str], None] = lambda notice: None,
    ) -> None:
        self.name = embedder.name
        self._embedder = embedder
        self._path = path
        self._limit = limit
        self._on_notice = on_notice
        self._lock = Lock()
        self._computing = Lock()
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._resting_until = 0.0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        keys = [sha256(f"{self.name}\0{text}".encode("utf-8", "surrogatepass")).digest() for text in texts]
        wanted = dict(zip(keys, texts, strict=True))
        empty = self._embedder.embed([])
        found = self._find(list(wanted), size=2 * empty.shape[1])
        if len(found) < len(wanted):
            # One at a time: parallel queries want the same passages, and the second then finds them stored.
            with self._computing:
                found |= self._find([key for key in wanted if key not in found], size=2 * empty.shape[1])
                missing = [key for key in wanted if key not in found]
                computed = self._embedder.embed([wanted[key] for key in missing]).astype(np.float16)
                fresh = {key: row.tobytes() for key, row in zip(missing, computed, strict=True)}

                def write(connection: sqlite3.Connection) -> None:
                    with connection:
                        connection.executemany(STORE, fresh.items())
                        connection.execute(PRUNE, (self._limit,))

                if fresh:
                    self._run_on_cache(write)
            found |= fresh
        joined = b"".join(found[key] for key in keys)
        return np.frombuffer(joined, np.float16).reshape(len(keys), -1).astype(np.float32) if keys else empty

    def close(self) -> None:
        with self._lock:
            self._disconnect()

    def _find(self, keys: Sequence[bytes], size: int) -> dict[bytes, bytes]:
        """A row of another size was damaged or cut short: it counts as missing and is written again."""
        found: dict[bytes, bytes] = {}

        def look_up(connection: sqlite3.Connection) -> None:
            for start in range(0, len(keys), LOOKUP):
                chunk = keys[start : start + LOOKUP]
                marks = ", ".join("?" * len(chunk))
                query = f"SELECT key, vector FROM vectors WHERE key IN ({marks})"  # noqa: S608 - only marks
                rows: Iterable[tuple[bytes, bytes]] = connection.execute(query, chunk)
                found.update((key, vector) for key, vector in rows if len(vector) == size)

        if keys:
            self._run_on_cache(look_up)
        return found

    def _run_on_cache(self, action: Callable[[sqlite3.Connection], None]) -> None:
        """Runs an action on the cache, once more on a new file if this one turns out to be corrupt."""
        with self._lock:
            if monotonic() < self._resting_until:
                return
            try:
                try:
                    action(self._connect())
                except sqlite3.DatabaseError as error:
                    # The low byte is the kind of error. Errors of the Python module carry no code.
                    if getattr(error, "sqlite_errorcode", 0) & 0xFF not in CORRUPT:
                        raise
                    self._replace_corrupt_file()
                    action(self._connect())
            except (sqlite3.Error, OSError) as error:
                self._disconnect()
                self._resting_until = monotonic() + REST_SECONDS
                self._on_notice(f"The vector cache could not be used ({error}); going on without it.")

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self._path, timeout=BUSY_SECONDS, check_same_thread=False)
            self._connection = connection
            self._inode = self._path.stat().st_ino
            connection.execute("PRAGMA journal_mode = WAL")
            # A power cut may lose the last vectors, which are only computed again.
            connection.execute("PRAGMA synchronous = NORMAL")
            with connection:
                connection.execute(CREATE)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            with closing(self._connection):
                self._connection = None

    def _replace_corrupt_file(self) -> None:
        """Moves the corrupt file aside, unless another process has already put a new one in its place."""
        inode = self._inode
        self._disconnect()
        if not self._path.exists() or self._path.stat().st_ino != inode:
            return
        aside = self._path.with_name(f"{self._path.name}.corrupt")
        os.replace(self._path, aside)
        for suffix in ("-wal", "-shm"):
            self._path.with_name(f"{self._path.name}{suffix}").unlink(missing_ok=True)
        self._on_notice(f"The vector cache was corrupt: moved to {aside.name}, and a new one started.")


# A cross-encoder that reads two texts together. Where its files come from: data/ORIGIN.md.

VERIFIER = ModelFiles("verifier.onnx", "verifier-tokenizer.json", ("verifier.npz",))
# Written down as for the encoder; a test compares them with the files.
VERIFIER_SHA256 = "2f77ddbf24e4f3840ebdd0f0b5df5c5181e1c276bfc438323b921192c9f678a1"

VERIFIER_TOKENS = 384  # tokens of both texts together
VERIFIER_OVERLAP = 64  # tokens of a long second text that two windows share, for who reads all of it
STATEMENT_WORDS = 90  # words of the statement that are read, so that evidence always has room
VERIFIER_OUTPUTS = 4


def load_verifier(data: Path, threads: int) -> OnnxModel:
    return load_model(data, VERIFIER, threads, VERIFIER_TOKENS, "only_second", VERIFIER_OVERLAP)


READER_ADAPTERS, SYNTHESIS_ADAPTERS = slice(0, 32), slice(32, 48)


class CrossEncoder:
    """Scores of a statement against its evidence. A pair's scores do not depend on the pairs beside it."""

    name = f"verifier-{VERIFIER_SHA256[:8]}"

    def __init__(self, *, data: Path = DATA, threads: int | None = None) -> None:
        self._data = data
        self._threads = threads or min(count_cpus(), MOST_THREADS)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """A row for each (statement, evidence), in order: logits of supported, refuted, neither and one voice."""
        return self._read(pairs)

    def synthesis_scores(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """The same of sentences that draw claims together."""
        return self._read(pairs, SYNTHESIS_ADAPTERS)

    def _read(self, pairs: Sequence[tuple[str, str]], adapters: slice | None = None) -> NDArray[np.float32]:
        import numpy as np

        if not pairs:
            return empty_rows(VERIFIER_OUTPUTS)
        model = load_verifier(self._data, self._threads)
        encodings = [
            model.tokenizer.encode(
                " ".join(replace_surrogates(statement).split()[:STATEMENT_WORDS]), replace_surrogates(evidence)
            )
            for statement, evidence in pairs
        ]
        return np.stack(list(run_model(model, encodings, "scores", adapters)))
