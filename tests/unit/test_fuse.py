"""Fusing result lists: no duplicates, a stable order whatever the order of arrival."""

from hypothesis import given
from hypothesis import strategies as st

from assay.model.source import Hit
from assay.search.fuse import fuse, key
from assay.stages.fuse import named


def hits(provider: str, urls: list[int]) -> list[Hit]:
    return [
        Hit(provider=provider, query="q", rank=rank, url=f"https://example.org/{url}", title=str(url), score=1 / rank)
        for rank, url in enumerate(dict.fromkeys(urls), 1)
    ]


LISTS = st.lists(st.lists(st.integers(0, 12), max_size=12), max_size=5)


@given(LISTS, st.randoms(use_true_random=False))
def test_order_of_arrival_does_not_matter_and_nothing_is_twice(lists: list[list[int]], shuffler: object) -> None:
    found = [hits(f"p{number}", urls) for number, urls in enumerate(lists)]
    expected = fuse(found)
    shuffled = list(found)
    shuffler.shuffle(shuffled)  # type: ignore[attr-defined]
    assert fuse(shuffled) == expected
    assert len({key(hit) for hit in expected}) == len(expected)
    assert {hit.url for hit in expected} == {hit.url for part in found for hit in part}


def test_what_several_lists_name_comes_first() -> None:
    assert fuse([hits("a", [1, 2, 3]), hits("b", [3, 4]), hits("c", [3])])[0].title == "3"


def test_fragments_and_trailing_slashes_are_one_address() -> None:
    one, two = (
        Hit(provider="a", query="q", rank=1, url=url, title="t") for url in ("https://x.org/a/", "https://X.org/a#b")
    )
    assert len(fuse([[one], [two]])) == 1


def test_two_passages_of_one_document_are_two_hits() -> None:
    one, two = (
        Hit(provider="a", query="q", rank=1, url="f:a", title="t", document="h", start=s, end=9) for s in (0, 5)
    )
    assert len(fuse([[one], [two]])) == 2


def titled(title: str) -> Hit:
    return Hit(provider="a", query="q", rank=1, url=f"f:{title}", title=title, document=title, start=0, end=9)


def test_a_question_that_names_a_document_reads_that_one() -> None:
    found = [titled("2022 Q3 AAPL"), titled("2023 Q1 AAPL"), titled("2023 Q3 AAPL")]
    assert [hit.title for hit in named(found, "What was bought back in the Q3 2023 10-Q?")] == ["2023 Q3 AAPL"]
    assert [hit.title for hit in named(found, "How did sales change over 2023?")][-1] == "2022 Q3 AAPL"
    assert named(found, "How did sales change?") == found
    both = named(found, "Compare Q3 2022 with Q3 2023")
    assert [hit.title for hit in both] == ["2022 Q3 AAPL", "2023 Q3 AAPL"]
