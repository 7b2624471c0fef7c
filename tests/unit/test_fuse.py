"""Fusing result lists: no duplicates, a stable order whatever the order of arrival."""

from datetime import date
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openassay.models.evidence import Document, DocumentKind, Hit
from openassay.nodes.harvest import ReadingLimits, choose_passages, rank_by_title_figures, score_topicality
from openassay.search.ranking import K, fuse, hit_key
from openassay.state import PassageRef
from openassay.testing import make_document
from openassay.text.urls import canonicalize_url

TODAY = date(2026, 6, 1)


def hit(url: str, rank: int = 1, provider: str = "a", **more: object) -> Hit:
    return Hit.model_validate({"provider": provider, "query": "q", "rank": rank, "url": url, "title": "t", **more})


def hits(provider: str, urls: list[int]) -> list[Hit]:
    return [
        hit(f"https://example.org/{url}", rank, provider, title=str(url), score=1 / rank)
        for rank, url in enumerate(dict.fromkeys(urls), 1)
    ]


URLS = st.sampled_from(
    [
        *(f"https://example.org/{name}" for name in "abcd"),
        *(f"http://www.example.org/{name}/?utm_source=x" for name in "abcd"),
        "https://arxiv.org/abs/2401.01234v1", "https://doi.org/10.48550/arXiv.2401.01234",
        "https://doi.org/10.1000/x", "https://j.example/doi/full/10.1000/X", "file:///a.pdf", "demo:apple/news", "junk",
    ]
)  # fmt: skip
KINDS: list[DocumentKind] = ["web", "academic", "news"]
HITS = st.builds(
    Hit,
    provider=st.sampled_from("ab"), query=st.sampled_from("pq"), rank=st.integers(1, 5), url=URLS,
    title=st.sampled_from(["", "t", "u"]), snippet=st.sampled_from(["", "s", "longer"]), kind=st.sampled_from(KINDS),
    published=st.none() | st.dates(date(2000, 1, 1), date(2030, 1, 1)), score=st.sampled_from([0.0, 0.5, 1.0]),
    author=st.none() | st.just("A"), document=st.none() | st.sampled_from(["h1", "h2"]),
    start=st.sampled_from([0, 5]), end=st.just(9), fulltext=st.none() | st.just("https://example.org/full"),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.requirement("W-05", "W-07", "L-03")
@given(st.lists(st.lists(HITS, max_size=6), max_size=5), st.integers(), st.booleans())
def test_order_of_arrival_does_not_matter_and_nothing_is_twice(lists: list[list[Hit]], seed: int, moving: bool) -> None:
    expected = fuse(lists, TODAY, moving=moving)
    shuffler = Random(seed)
    shuffled = [shuffler.sample(part, len(part)) for part in shuffler.sample(lists, len(lists))]

    assert fuse(shuffled, TODAY, moving=moving) == expected
    assert len({hit_key(found) for found in expected}) == len(expected)
    assert {hit_key(found) for found in expected} == {hit_key(given) for part in lists for given in part}


@pytest.mark.requirement("W-05")
@given(st.lists(st.lists(URLS, max_size=8), max_size=4))
def test_addresses_reduce_to_a_set_of_pages(lists: list[list[str]]) -> None:
    found = fuse([[hit(url, rank) for rank, url in enumerate(part, 1)] for part in lists])
    assert sorted(canonicalize_url(one.url) for one in found) == sorted(
        {canonicalize_url(url) for part in lists for url in part}
    )


def test_what_several_lists_name_comes_first() -> None:
    assert fuse([hits("a", [1, 2, 3]), hits("b", [3, 4]), hits("c", [3])])[0].title == "3"


def test_a_list_that_has_a_page_twice_names_it_once() -> None:
    twice = [hit("https://x.org/a", 2), hit("http://www.x.org/a/", 3), hit("https://x.org/b", 1)]
    assert [found.url for found in fuse([twice])] == ["https://x.org/b", "https://x.org/a"]


@pytest.mark.requirement("W-07", "L-03")
@pytest.mark.parametrize(
    "urls",
    [
        ("https://x.org/a/", "https://X.org/a#b"),
        ("https://x.org/a?utm_source=n", "http://www.x.org/a"),
        ("https://arxiv.org/abs/2401.01234v2", "https://arxiv.org/pdf/2401.01234"),
        ("https://doi.org/10.1000/x", "https://j.example/doi/full/10.1000/X"),
        ("https://www.google.com/url?q=https://x.org/a", "https://x.org/a"),
    ],
)
def test_addresses_of_one_page_are_one_hit(urls: tuple[str, str]) -> None:
    one, other = urls
    assert len(fuse([[hit(one)], [hit(other)]])) == 1
    assert len(fuse([[hit(one, document="h", start=0, end=9)], [hit(other)]])) == 1


def test_two_passages_of_a_document_of_ones_own_are_two_hits() -> None:
    assert len(fuse([[hit("file:///a", document="h", start=at, end=9) for at in (0, 5)]])) == 2


OWN = st.builds(
    hit, st.sampled_from(["file:///a.pdf", "file:///b.pdf", "demo:x/y"]), st.integers(1, 8), st.sampled_from("ab"),
    document=st.sampled_from(["h1", "h2", "h3"]), start=st.integers(0, 3), end=st.just(9),
    score=st.floats(0, 20), published=st.none() | st.just(date(2001, 1, 1)),
)  # fmt: skip


@pytest.mark.slow
@given(st.lists(st.lists(OWN, max_size=6, unique_by=lambda one: (one.document, one.start)), max_size=4), st.booleans())
def test_documents_of_ones_own_are_ranked_by_the_lists_alone(lists: list[list[Hit]], moving: bool) -> None:
    scores: dict[tuple[str | None, int | None], float] = {}
    most: dict[tuple[str | None, int | None], float] = {}
    for one in [one for part in lists for one in part]:
        name = one.document, one.start
        scores[name] = scores.get(name, 0.0) + 1 / (K + one.rank)
        most[name] = max(one.score, most.get(name, 0.0))
    expected = sorted(scores, key=lambda name: (-round(scores[name], 12), -most[name], name))
    assert [(one.document, one.start) for one in fuse(lists, TODAY, moving=moving)] == expected


@pytest.mark.requirement("W-07")
def test_merging_fills_gaps_and_keeps_the_best() -> None:
    best = hit("http://www.x.org/a", 1, "one", title="Best", snippet="short", score=0.1)
    dated = hit("https://x.org/a", 2, "two", title="Other", published=date(2025, 1, 2), author="Ada", score=0.9)
    paper = hit(
        "https://x.org/a/", 3, "three", kind="academic", snippet="a longer one", fulltext="https://x.org/a.pdf",
        document="h", start=0, end=40,
    )  # fmt: skip
    (found,) = fuse([[best], [dated], [paper]])

    assert (found.provider, found.title, found.rank) == ("one", "Best", 1)
    assert (found.published, found.author, found.fulltext) == (date(2025, 1, 2), "Ada", "https://x.org/a.pdf")
    assert (found.document, found.start, found.end) == ("h", 0, 40)
    assert (found.snippet, found.kind) == ("a longer one", "academic")
    assert (found.url, found.host) == ("https://x.org/a", "x.org")


def test_a_place_in_a_document_is_never_put_together_from_two() -> None:
    one = hit("https://x.org/a", 1, document="h1", start=3, end=9)
    other = hit("https://x.org/a", 2, document="h2", start=0, end=5)
    (found,) = fuse([[one], [other]])
    assert (found.document, found.start, found.end) == ("h1", 3, 9)


@pytest.mark.requirement("W-07")
def test_each_hit_keeps_provider_kind_and_date_and_has_a_host() -> None:
    given = hit("https://News.Example.org/a", provider="p", kind="news", published=date(2024, 5, 6))
    (found,) = fuse([[given]])
    assert (found.provider, found.kind, found.published) == ("p", "news", date(2024, 5, 6))
    assert found.host == "news.example.org"


def test_a_redirect_is_replaced_by_where_it_leads() -> None:
    (found,) = fuse([[hit("https://duckduckgo.com/l/?uddg=https%3A%2F%2Fx.org%2Fa%3Futm_source%3Db")]])
    assert (found.url, found.host) == ("https://x.org/a?utm_source=b", "x.org")


@pytest.mark.requirement("W-07")
def test_newer_and_better_known_pages_come_first_among_equals() -> None:
    old, new = hit("https://a.example/1", published=date(2012, 1, 1)), hit("https://b.example/1", published=TODAY)
    undated = hit("https://c.example/1")
    assert [found.url for found in fuse([[old], [undated], [new]], TODAY)] == [new.url, undated.url, old.url]
    assert [found.url for found in fuse([[new], [undated], [old]])] == [old.url, new.url, undated.url]

    known, plain, forum = hit("https://www.nature.com/1"), hit("https://a.example/1"), hit("https://reddit.com/1")
    assert [found.url for found in fuse([[forum], [plain], [known]])] == [known.url, plain.url, forum.url]


@pytest.mark.requirement("W-07")
def test_where_the_field_moves_the_last_years_are_preferred() -> None:
    old = hit("https://a.example/1", 1, published=date(2012, 1, 1))
    undated, new = hit("https://c.example/1", 9), hit("https://b.example/1", 16, published=TODAY)
    assert [found.url for found in fuse([[old, undated, new]], TODAY)] == [old.url, undated.url, new.url]
    moving = fuse([[old, undated, new]], TODAY, moving=True)
    assert [found.url for found in moving] == [new.url, undated.url, old.url]
    assert fuse([[old, undated, new]], moving=True) == fuse([[old, undated, new]])  # nothing is old without a today


@pytest.mark.requirement("W-07")
@pytest.mark.parametrize("moving", [False, True])
def test_what_two_lists_agree_on_outweighs_age_and_standing(moving: bool) -> None:
    agreed = hit("https://reddit.com/1", 8, published=date(2001, 1, 1))
    famous = hit("https://www.nature.com/1", 1, published=TODAY, kind="academic")
    assert fuse([[agreed, famous], [agreed]], TODAY, moving=moving)[0].url == agreed.url


def test_relevance_outweighs_standing_by_ten_places() -> None:
    far, near = hit("https://www.nature.com/1", 16), hit("https://a.example/1", 1)
    assert fuse([[far, near]])[0].url == near.url


def titled(title: str) -> Hit:
    return Hit(provider="a", query="q", rank=1, url=f"f:{title}", title=title, document=title, start=0, end=9)


def test_a_question_that_names_a_document_reads_that_one() -> None:
    found = [titled("2022 Q3 AAPL"), titled("2023 Q1 AAPL"), titled("2023 Q3 AAPL")]
    assert [hit.title for hit in rank_by_title_figures(found, "What was bought back in the Q3 2023 10-Q?")] == [
        "2023 Q3 AAPL"
    ]
    assert [hit.title for hit in rank_by_title_figures(found, "How did sales change over 2023?")][-1] == "2022 Q3 AAPL"
    assert rank_by_title_figures(found, "How did sales change?") == found
    both = rank_by_title_figures(found, "Compare Q3 2022 with Q3 2023")
    assert [hit.title for hit in both] == ["2022 Q3 AAPL", "2023 Q3 AAPL"]


# What is about the subject comes first, and nothing is left out for want of a phrase


def page(text: str, title: str = "Page") -> Document:
    return make_document(text, title=title)


def test_topicality_is_a_share_of_words_and_no_match_keeps_all() -> None:
    law = page("The court upheld the abortion law of the state.", "Ruling")
    clinic = page("Access to abortion in the United States fell.", "Clinics")
    measles = page("Measles cases rose in spring.", "Health")
    scores = score_topicality([law, clinic, measles], ["abortion access in the United States"])
    assert scores[clinic.hash] == 1.0 > scores[law.hash] > scores[measles.hash] == 0.0
    assert set(score_topicality([law, measles], ["Zorblax"]).values()) == {1.0}
    # What every document names tells none apart.
    apple, nvidia = page("Apple spent more on R&D.", "Apple"), page("NVIDIA spent more on R&D.", "NVIDIA")
    assert score_topicality([apple, nvidia], ["NVIDIA", "R&D"]) == {apple.hash: 0.0, nvidia.hash: 1.0}


def test_every_document_is_heard_before_one_is_heard_again() -> None:
    places: list[PassageRef] = [
        {"document": name, "start": start, "end": start + 9} for name in "aab" for start in (0, 10)
    ]
    chosen = choose_passages([*places, {"document": "c", "start": 0, "end": 9}], ReadingLimits(2, 3, in_turn=True))
    assert [(place["document"], place["start"]) for place in chosen][:2] == [("a", 0), ("b", 0)]
    assert len(chosen) == 3


def test_years_of_a_period_name_no_document() -> None:
    found = [titled(title) for title in ("Review 1996-2007", "Lending")]
    assert {one.title for one in rank_by_title_figures(found, "How did lending change between 1996 and 2007?")} == {
        "Review 1996-2007", "Lending",
    }  # fmt: skip
