"""Which documents count as one witness, in whatever order they come."""

from itertools import permutations

import pytest

from openassay.models.evidence import Document, QuoteSpan
from openassay.testing import make_document
from openassay.verification.sources import assess_credibility, group_by_origin, group_documents

LAKE = "Lake Marrow covered 412 square kilometres in 2019 and its level fell by two metres within a decade."
PORT = "The harbour of Ostrey was dredged last spring so that larger ferries can land there at low water."


def page(text: str, url: str) -> Document:
    return make_document(text, url=url)


def together(*documents: Document) -> set[frozenset[str]]:
    found = group_documents(documents)
    return {frozenset(name for name in found if found[name] == group) for group in found.values()}


@pytest.mark.requirement("S-10")
def test_pages_of_their_own_are_witnesses_of_their_own() -> None:
    one, two = page(LAKE, "https://a.example/"), page(PORT, "https://b.example/")

    assert group_documents([one, two]) == {one.hash: "G1", two.hash: "G2"}


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
        found = group_documents(order)
        assert found[digest.hash] == found[first.hash], order
        assert found[digest.hash] == found[second.hash], order


def said(document: Document, quote: str) -> QuoteSpan:
    start = document.text.index(quote)
    return QuoteSpan(document=document.hash, start=start, end=start + len(quote), quote=quote)


def heard(*spans: tuple[Document, str]) -> int:
    """How many independent voices stand behind a statement."""
    documents = {document.hash: document for document, _ in spans}
    known = {name: assess_credibility(document) for name, document in documents.items()}
    return len(
        group_by_origin(
            [said(document, quote) for document, quote in spans], group_documents(documents.values()), known
        )
    )


SIZE = "Lake Marrow covered 412 square kilometres in 2019, as the regional survey of the ministry found in spring."
AGAIN = "In 2019 the surface of Lake Marrow was 412 square kilometres."


@pytest.mark.requirement("X-05")
def test_pages_of_one_publisher_are_one_witness_under_any_host_name() -> None:
    paper, blog = page(LAKE, "https://news.daily.co.uk/lake"), page(PORT, "https://blogs.daily.co.uk/port")

    assert len(together(paper, blog)) == 1


@pytest.mark.requirement("X-05")
def test_hosts_of_different_people_under_one_platform_are_witnesses_of_their_own() -> None:
    assert len(together(page(LAKE, "https://ann.github.io/"), page(PORT, "https://bob.github.io/"))) == 2


@pytest.mark.requirement("X-05")
def test_two_who_say_it_in_their_own_words_are_two_voices() -> None:
    one, two = page(f"{SIZE} {PORT}", "https://a.example/"), page(f"{AGAIN} The ferry runs.", "https://b.example/")

    assert heard((one, SIZE), (two, AGAIN)) == 2


@pytest.mark.requirement("X-05")
def test_a_long_sentence_in_the_same_words_is_one_voice() -> None:
    """As documents they differ; this one statement was copied."""
    own = " ".join(f"The town of Ostrey has a market on day {n} of the month." for n in range(9))
    one, two = page(f"{SIZE} {PORT}", "https://a.example/"), page(f"{own} {SIZE}", "https://b.example/")

    assert len(together(one, two)) == 2
    assert heard((one, SIZE), (two, SIZE)) == 1


@pytest.mark.requirement("X-05")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("According to the World Lake Council, it covers 412 square kilometres.",
         "Its surface is 412 square kilometres, the World Lake Council said on Friday."),
        ("OSTREY (Reuters) - The lake covers 412 square kilometres.",
         "The surface measures 412 square kilometres, according to Reuters."),
        ("Novacell Inc. today announced a lake of 412 square kilometres.",
         "A lake of 412 square kilometres was dug, Novacell Inc. has announced."),
    ],
)  # fmt: skip
def test_two_who_name_one_informant_are_one_voice(first: str, second: str) -> None:
    assert heard((page(first, "https://a.example/"), first), (page(second, "https://b.example/"), second)) == 1


@pytest.mark.requirement("X-05")
def test_reports_on_one_publication_are_one_voice_and_so_is_the_publication() -> None:
    study = page(f"{AGAIN} {PORT}", "https://doi.org/10.1000/1").model_copy(update={"title": "The shrinking lakes"})
    report = page(f"{SIZE} The town is small.", "https://a.example/").model_copy(update={"origin": "doi:10.1000/1"})
    other = page("It is 412 square kilometres large.", "https://b.example/").model_copy(
        update={"origin": "doi:10.1000/1"}
    )
    naming = page("The lake now has 412 square kilometres.", "https://c.example/").model_copy(
        update={"origin": "The shrinking lakes, 2019"}
    )

    assert heard((report, SIZE), (other, other.text)) == 1
    assert heard((study, AGAIN), (naming, naming.text)) == 1
    assert heard((report, SIZE), (naming, naming.text)) == 2


@pytest.mark.requirement("X-05")
@pytest.mark.parametrize(
    ("document", "primary", "why"),
    [
        (make_document(LAKE, url="https://stats.gov/lake"), True, "the body that decides or counts"),
        (make_document(LAKE, kind="academic"), True, "the study itself"),
        (make_document("FORM 10-Q of Acme", kind="document"), True, "its own filing"),
        (make_document(LAKE, url="https://a.example/"), False, "not known to speak at first hand"),
        (make_document("OSTREY (AP) — The lake fell.", kind="news"), False, "a news agency's report"),
        (
            make_document(LAKE, kind="academic").model_copy(update={"origin": "Nature 561"}),
            False,
            "the publication it names",
        ),
    ],
)
def test_who_speaks_at_first_hand_is_told_with_the_reason(document: Document, primary: bool, why: str) -> None:
    told = assess_credibility(document)

    assert told.primary is primary
    assert why in told.reasons[-1]


@pytest.mark.requirement("F-05")
def test_academic_stands_above_news_and_news_above_a_blog() -> None:
    ranks = [
        assess_credibility(document).rank
        for document in (make_document(LAKE, kind="academic"), make_document(LAKE, kind="news"), make_document(LAKE),
                         make_document(LAKE, url="https://somebody.medium.com/lake"))
    ]  # fmt: skip

    assert ranks == sorted(set(ranks), reverse=True)


def file(text: str, name: str, **known: str) -> Document:
    return make_document(text, url=f"file:///notes/{name}.md").model_copy(update=known)


@pytest.mark.requirement("S-10", "X-05")
def test_one_newsroom_is_one_witness_in_files_too() -> None:
    first = file(LAKE, "a", publisher="The Ostrey Mail", author="Ada Example")
    second = file(PORT, "b", publisher="the Ostrey Mail.", author="Bo Sample")
    third = file(PORT.replace("spring", "week"), "c", publisher="The Hesk Herald", author="Cy Other")

    assert together(first, second) == {frozenset({first.hash, second.hash})}
    assert len(together(first, third)) == 2


@pytest.mark.requirement("S-10")
def test_an_author_is_one_witness_wherever_it_is_printed() -> None:
    first = file(LAKE, "a", publisher="The Ostrey Mail", author="Ada Example")
    second = file(PORT, "b", publisher="The Hesk Herald", author="Bo Sample and Ada Example")
    staff = [file(text, text[:4], publisher=text[:4], author="Staff reporter") for text in (LAKE, PORT)]

    assert len(together(first, second)) == 1
    assert len(together(*staff)) == 2


@pytest.mark.requirement("S-10")
def test_studies_of_other_people_are_two_witnesses_in_one_journal() -> None:
    studies = [
        file(f"Abstract\n{text}", text[:4], publisher="Journal of Lakes", author=name)
        for text, name in ((LAKE, "Ada Example"), (PORT, "Bo Sample"))
    ]

    assert len(together(*studies)) == 2
    assert len(together(*(one.model_copy(update={"author": None}) for one in studies))) == 1


@pytest.mark.requirement("S-10")
def test_what_was_found_to_depend_is_one_voice() -> None:
    first, second = page(SIZE, "https://a.example/"), page(AGAIN, "https://b.example/")
    documents = [first, second]
    spans, groups = [said(one, one.text) for one in documents], group_documents(documents)
    known = {one.hash: assess_credibility(one) for one in documents}

    assert len(group_by_origin(spans, groups, known)) == 2
    assert len(group_by_origin(spans, groups, known, {frozenset({first.hash, second.hash})})) == 1


@pytest.mark.requirement("X-05")
def test_a_short_sentence_with_a_figure_word_for_word_is_one_voice() -> None:
    short = "Lake Marrow covers 412 square kilometres."
    farm = page(f"Here is your answer. {short} Share it with your friends.", "https://farm.example/lake")
    other = page(f"Our experts have collected all facts. {short} Click for more.", "https://other.example/lake")
    own = page(f"We rowed around it for a week. {AGAIN}", "https://own.example/lake")

    assert heard((farm, short), (other, short)) == 1
    assert heard((farm, short), (own, AGAIN)) == 2


@pytest.mark.requirement("X-05")
def test_who_names_its_source_at_the_end_of_a_page_is_one_voice_with_it() -> None:
    """A name may be cut short where its small words begin."""
    office = page(LAKE, "https://lakes.example/").model_copy(update={"publisher": "Marrow Survey in the Valley"})
    listed = page(f"{AGAIN} Other lakes are smaller. Source: Marrow Survey in the Valley.", "https://list.example/")
    unlisted = page(f"{AGAIN} Other lakes are smaller. Source: Ostrey Rowing Club.", "https://list.example/")

    assert heard((office, LAKE), (listed, AGAIN)) == 1
    assert heard((office, LAKE), (unlisted, AGAIN)) == 2
