"""Which documents count as one witness, in whatever order they come."""

from itertools import permutations

import pytest

from assay.model.source import Document
from assay.testing import snapshot
from assay.trust.independence import groups

LAKE = "Lake Marrow covered 412 square kilometres in 2019 and its level fell by two metres within a decade."
PORT = "The harbour of Ostrey was dredged last spring so that larger ferries can land there at low water."


def page(text: str, url: str) -> Document:
    return snapshot(text, url=url)


def together(*documents: Document) -> set[frozenset[str]]:
    found = groups(documents)
    return {frozenset(name for name in found if found[name] == group) for group in found.values()}


@pytest.mark.requirement("S-10")
def test_pages_of_their_own_are_witnesses_of_their_own() -> None:
    one, two = page(LAKE, "https://a.example/"), page(PORT, "https://b.example/")

    assert groups([one, two]) == {one.hash: "G1", two.hash: "G2"}


@pytest.mark.requirement("S-10")
def test_a_copy_and_a_page_of_the_same_host_are_no_second_witness() -> None:
    original = page(LAKE, "https://a.example/")
    copy = page(f"(Wire) {LAKE}", "https://b.example/")
    sibling = page(PORT, "https://a.example/port")

    assert together(original, copy) == {frozenset({original.hash, copy.hash})}
    assert together(original, sibling) == {frozenset({original.hash, sibling.hash})}


@pytest.mark.requirement("S-10")
def test_the_order_of_arrival_does_not_make_witnesses() -> None:
    """A digest that copies two pages is not independent of either, whichever was seen first."""
    first, second = page(LAKE, "https://a.example/"), page(PORT, "https://b.example/")
    digest = page(f"{LAKE} {PORT}", "https://c.example/")

    for order in permutations((first, second, digest)):
        found = groups(order)
        assert found[digest.hash] == found[first.hash], order
        assert found[digest.hash] == found[second.hash], order
