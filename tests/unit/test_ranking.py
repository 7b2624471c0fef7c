"""The rules of ranking, each on passages made for it; the meaning of a text is what the test says it is."""

import hashlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from openassay.models.evidence import Document, Passage
from openassay.protocols import FileStamp
from openassay.search.index_builder import add_vectors
from openassay.search.ranking import LONG, PER_DOCUMENT, RankedPassage, rank, rank_without_hops
from openassay.storage.index_sqlite import SqliteIndex


class Meaning:
    """All texts lie equally near to a query, but those that hold a given word lie on it."""

    name = "meaning"

    def __init__(self, near: str = "") -> None:
        self.near = near
        self.embedded = 0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.embedded += len(texts)
        return np.array([[1.0, 0.0] if self._is_near(text) else [0.6, 0.8] for text in texts], np.float32)

    def _is_near(self, text: str) -> bool:
        """A passage has a full stop behind its title; a query has none, and lies on itself."""
        return ". " not in text or bool(self.near and self.near in text)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    with SqliteIndex(tmp_path / "index.sqlite3") as opened:
        yield opened


def put(index: SqliteIndex, title: str, *texts: str) -> None:
    whole = "\n".join(texts)
    name = hashlib.sha256(whole.encode()).hexdigest()
    document = Document(hash=name, text=whole, url=f"x:{title}", title=title, fetched=datetime.now(UTC))
    cut, start = [], 0
    for text in texts:
        cut.append(Passage(document=name, start=start, end=start + len(text), text=text))
        start += len(text) + 1
    index.replace(title, FileStamp(1, 1), document, cut)


def titles(found: Sequence[RankedPassage]) -> list[str]:
    return [ranked.match.title for ranked in found]


def filler(index: SqliteIndex, count: int = 20) -> None:
    """Passages about nothing asked, so that words of the others are rare."""
    for number in range(count):
        put(index, f"Filler {number}", f"Weather over the hills, day {number}, with some rain and wind from the west.")


def test_passages_together_cover_the_query(index: SqliteIndex) -> None:
    filler(index)
    for year in range(5):
        put(index, f"Granite quarries {year}", f"The granite quarries and the granite trade in the year {year}.")
    put(
        index,
        "Harbours",
        "Long account of the coast, its towns, its people and among them one tax on lighthouses here.",
    )
    found = titles(rank_without_hops("granite quarries or lighthouses", [index], Meaning(), 3))
    assert "Harbours" in found[:2]


def test_a_word_asked_more_often_counts_more(index: SqliteIndex) -> None:
    filler(index)
    put(index, "One", "A note about copper alone, and nothing beside it.")
    put(index, "Two", "A note about quartz alone, and nothing beside it.")
    assert titles(rank_without_hops("copper quartz quartz", [index], Meaning(), 2)) == ["Two", "One"]
    assert titles(rank_without_hops("copper copper quartz", [index], Meaning(), 2)) == ["One", "Two"]


def test_meaning_decides_between_equal_words(index: SqliteIndex) -> None:
    filler(index)
    put(index, "One", "A note about copper alone, and nothing beside it.")
    put(index, "Two", "A note about copper alone, and anything beside it.")
    assert titles(rank_without_hops("copper", [index], Meaning("nothing"), 2)) == ["One", "Two"]
    assert titles(rank_without_hops("copper", [index], Meaning("anything"), 2)) == ["Two", "One"]


def test_the_hop_finds_what_the_first_hit_names(index: SqliteIndex) -> None:
    filler(index)
    put(index, "Granite Bay", "Granite Bay is a film that was directed by Mara Oldfield.")
    put(index, "Mara Oldfield", "She was born in Tromso and grew up in Bergen.")
    question = "where was the director of the film granite bay raised"
    assert "Mara Oldfield" not in titles(rank_without_hops(question, [index], Meaning(), 5))
    assert titles(rank(question, [index], Meaning(), 5))[:2] == ["Granite Bay", "Mara Oldfield"]


@pytest.mark.parametrize(("title", "linked"), [("Report", False), ("Neighbours", True)])
def test_one_common_word_is_no_name(index: SqliteIndex, title: str, linked: bool) -> None:
    filler(index)
    put(index, "Kate Stone", "Kate Stone is a figure in Neighbours, says a report, and the report says no more of her.")
    put(index, title, "An account of neighbours, written to report in two lines what goes on.")
    put(index, "Walls", "A wall of brick or stone is another matter, and costs more than one thinks.")
    found = titles(rank("kate stone", [index], Meaning(), 3))
    assert (found.index(title) < 2) is linked, found


def test_a_document_named_is_linked_through_one_passage(index: SqliteIndex) -> None:
    filler(index)
    put(index, "Granite Bay", "Granite Bay is a film that was directed by Mara Oldfield.")
    put(index, "Mara Oldfield", *(f"Mara Oldfield, chapter {number}, on other things." for number in range(6)))
    put(index, "Bay", "A bay has sand, and now and then a film is made there.")
    found = titles(rank("the film granite bay", [index], Meaning(), 3))
    assert found.count("Mara Oldfield") == 1, found


def test_one_document_cannot_fill_the_results(index: SqliteIndex) -> None:
    put(index, "Long", *(f"Copper, page {number}." for number in range(30)))
    assert len(rank("copper", [index], Meaning(), 20)) == PER_DOCUMENT


def test_scores_fall_and_two_runs_agree(index: SqliteIndex) -> None:
    filler(index)
    put(index, "Granite Bay", "Granite Bay is a film that was directed by Mara Oldfield.")
    put(index, "Mara Oldfield", "She was born in Tromso and grew up in Bergen.")
    found = rank("rain in granite bay", [index], Meaning(), 10)
    scores = [ranked.score for ranked in found]
    assert scores == sorted(scores, reverse=True)
    assert found == rank("rain in granite bay", [index], Meaning(), 10)


def test_few_passages_are_encoded(index: SqliteIndex) -> None:
    filler(index, 80)
    meaning = Meaning()
    assert rank("rain and wind", [index], meaning, 10)
    assert meaning.embedded <= 31
    rank(" ".join(["rain and wind", *(f"purpose{number}" for number in range(LONG))]), [index], meaning, 10)
    assert meaning.embedded <= 31 + 31 + 61


def with_vectors(index: SqliteIndex, meaning: Meaning) -> SqliteIndex:
    add_vectors(index, meaning)
    meaning.embedded = 0
    return index


def test_with_vectors_a_passage_is_found_that_has_none_of_the_words(index: SqliteIndex) -> None:
    filler(index)
    put(index, "Kiln", "The oven stood in the yard until dusk.")
    meaning = Meaning("oven")
    assert "Kiln" not in titles(rank("furnace", [index], meaning, 5))

    assert titles(rank("furnace", [with_vectors(index, meaning)], meaning, 5))[0] == "Kiln"
    assert meaning.embedded == 1, "the query alone: the passages have their vectors"


def test_passages_without_vectors_stand_beside_those_with(index: SqliteIndex, tmp_path: Path) -> None:
    put(index, "One", "A note about copper alone, and nothing beside it.")
    meaning = Meaning("nothing")
    with SqliteIndex(tmp_path / "other.sqlite3") as other:
        put(other, "Two", "A note about copper alone, and nothing beside it, there.")
        filler(other)
        found = rank("copper", [with_vectors(index, meaning), other], meaning, 2)
    assert sorted(titles(found)) == ["One", "Two"]
    assert meaning.embedded == 1, "the query alone: what has no vector is found by its words"


def test_vectors_of_another_model_say_nothing(index: SqliteIndex) -> None:
    put(index, "Kiln", "The oven stood in the yard until dusk.")
    before = Meaning("oven")
    before.name = "before"
    assert rank("furnace", [with_vectors(index, before)], Meaning("oven"), 5) == []


def test_a_long_request_is_asked_again_in_the_words_of_what_it_found(index: SqliteIndex) -> None:
    filler(index, 30)
    for year in range(6):
        put(
            index, f"Kelp {year}", f"Kelp farms off the coast in season {year}: holdfasts and sporophytes grow on rope."
        )
    put(index, "Sporophytes", "On sporophytes and holdfasts, with drawings by the author of the atlas.")
    background = " ".join(f"purpose{number}" for number in range(LONG))
    question = "kelp farms off the coast"
    assert "Sporophytes" not in titles(rank_without_hops(f"{question} {background}", [index], Meaning(), 20))
    assert "Sporophytes" in titles(rank(f"{question} {background}", [index], Meaning(), 20))


@pytest.mark.parametrize("query", ["", "the of", "zzz", "(((", "'s"])
def test_nothing_asked_finds_nothing(index: SqliteIndex, query: str) -> None:
    filler(index, 3)
    assert rank(query, [index], Meaning(), 5) == []
    assert rank_without_hops(query, [], Meaning(), 5) == []
