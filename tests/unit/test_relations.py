"""How statements relate, who else says so, and what counts as one source."""

import hashlib
from datetime import UTC, date, datetime

import pytest

from openassay.models.evidence import Document, DocumentKind, Finding, Passage, QuoteSpan
from openassay.models.plan import Depth, Plan, SearchQuery, SubQuestion
from openassay.reasoning.base import Evidence
from openassay.reasoning.rules.analyse import extract_claims
from openassay.text.relations import relate
from openassay.verification.corroboration import CorroborationIndex
from openassay.verification.sources import CREDIBLE, assess_credibility, group_documents

SHOES = "The SH0ES team measured a Hubble constant of 73.04 ± 1.04 km/s/Mpc in 2022."
ROADS = "Lund spent 12 million euros on roads in 2023."
OPENING = "An opening sentence stands here. "
PLANCK = "The Planck Collaboration inferred a Hubble constant of 67.4 ± 0.5 km/s/Mpc in 2018."


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (SHOES, "In 2022 the SH0ES team reported a Hubble constant of 73.04 ± 1.04 km/s/Mpc.", "same"),
        (SHOES, PLANCK, "disagree"),
        (SHOES, "The SH0ES team measured a Hubble constant of 74.03 ± 1.42 km/s/Mpc in 2019.", "newer"),
        ("The SH0ES team measured a Hubble constant of 74.03 ± 1.42 km/s/Mpc in 2019.", SHOES, "older"),
        # within the stated uncertainties, by different teams: neither the same nor opposed
        (PLANCK, "The ACT team reported a Hubble constant of 67.9 ± 1.5 km/s/Mpc in 2020.", None),
        # bare figures for different years are a change over time
        ("Acme's revenue was $5 million in 2021.", "Acme's revenue was $7 million in 2022.", None),
        ("Acme's revenue was $5 million in 2021.", "Acme's revenue was $7 million in 2021.", "disagree"),
        # alike words, different things measured
        ("The products gross margin was 35.4% in 2023.", "The services gross margin was 70.5% in 2023.", None),
        ("The tower is 300 m tall.", "The tower weighs 300 t.", None),
        ("Three months later the court ruled.", "Three months of rain fell.", None),
        # rows state many figures and are the same only if all are
        ("Mac — Q1 2023: 7,735; Q1 2022: 10,852", "iPad — Q1 2023: 9,396; Q1 2022: 7,248", None),
        # opposites in one wording
        ("Dogs are not allowed in the park.", "Dogs are allowed in the park.", "disagree"),
        ("No dogs are allowed in the park.", "Dogs are not allowed in the park.", None),
        ("It is false that dogs are allowed in the park.", "Dogs are allowed in the park.", "disagree"),
        ("Officials deny that dogs are allowed in the park.", "Dogs are allowed in the park.", "disagree"),
        ("Sales in Lund rose 12% in 2023.", "Sales in Lund fell 12% in 2023.", "disagree"),
        ("Sales in Lund rose 12% in 2022.", "Sales in Lund fell 12% in 2023.", None),
        ("Mac net sales rose in the quarter.", "iPad net sales fell in the quarter.", None),
        ("The first quarter of 2023 was dry in Lund.", "The second quarter of 2023 was dry in Lund.", None),
        # what a figure went to
        (ROADS, ROADS.replace("roads", "schools"), None),
        (ROADS, "Lund spent 19 million euros on schools in 2023.", None),
        (ROADS, "Lund spent 19 million euros on roads in 2023.", "disagree"),
        (ROADS, "In 2023 Lund spent 12 million euros on its roads.", "same"),
        ("Lund spent 12 million euros in 2023 on roads.", ROADS.replace("roads", "schools"), None),
        (f"{PLANCK[:-1]} from the oldest light in the universe.", f"{PLANCK[:-1]} from the microwave sky.", "same"),
        # without a figure only the wording tells
        ("Tom fixed the Android 12 crash.", "Tom reported that the mobile app crashes on Android 12.", None),
        # counts
        ("The fire injured 12 people.", "The fire injured 19 people.", "disagree"),
        ("The fire injured 12 people.", "The fire injured 12 people on Monday.", "same"),
        ("The fire injured 12 people.", "The storm injured 12 people.", None),
        ("The fire injured 12 people.", "The fire injured 19 horses.", None),
        ("The fire injured 12 people in 2021.", "The fire injured 19 people in 2022.", None),
        ("The retirement age is 65.", "The retirement age is 66.", "disagree"),
        ("The chain runs 12 stores in Lund.", "The chain runs 19 stores in Oslo.", None),
        ("The update fixes Android 12 crashes.", "The update fixes Android 13 crashes.", None),
        ("The old bridge opened in 1877.", "The old bridge opened in 1899.", None),
        ("The rule stands on page 6.", "The rule stands on page 7.", None),
    ],
)
def test_relate(left: str, right: str, expected: str | None) -> None:
    assert relate(left, right) == expected


def passage(document: str, text: str) -> Passage:
    return Passage(document=document, start=10, end=10 + len(text), text=text)


def test_witnesses_are_other_documents_with_the_same_figure_for_the_same_matter() -> None:
    found = CorroborationIndex(
        [
            passage("a", SHOES),
            passage(
                "b", "An opening sentence stands here. In 2022 SH0ES found a Hubble constant of 73.04 ± 1.04 km/s/Mpc."
            ),
            passage("c", "The ship sailed at a speed of 73.04 ± 1.04 km/s/Mpc, said the joke."),
            passage("d", PLANCK),
        ]
    ).find_corroboration(QuoteSpan(document="a", start=10, end=10 + len(SHOES), quote=SHOES))
    assert [span.document for span in found] == ["b"]
    assert found[0].start == 10 + len(OPENING)


def test_a_sentence_that_denies_a_figure_is_no_witness_for_it() -> None:
    said = "Sales in Lund fell 12% in 2023."
    found = CorroborationIndex(
        [passage("b", "It is not true that sales in Lund fell 12% in 2023."),
         passage("c", "Sales in Lund rose 12% in 2023."),
         passage("d", "In 2023 sales in Lund fell 12%.")]
    ).find_corroboration(QuoteSpan(document="a", start=0, end=len(said), quote=said))  # fmt: skip
    assert [span.document for span in found] == ["d"]


def test_opposite_statements_are_two_claims() -> None:
    quotes = ("The council will not close the old swimming hall.", "The council will close the old swimming hall.")
    evidence = [
        Evidence(
            finding=Finding(
                id=f"E{n}",
                question="Q1",
                span=QuoteSpan(document=f"{n}", start=0, end=len(quote), quote=quote),
                relevance=0.9,
            ),
            title="T",
        )
        for n, quote in enumerate(quotes)
    ]
    plan = Plan(
        goal="g", depth=Depth.QUICK, questions=(SubQuestion(id="Q1", text="q", section="A"),), sections=("A",),
        queries=(SearchQuery(id="K1", text="q", question="Q1"),), methodology="m", confidence=0.9,
    )  # fmt: skip
    assert [claim.findings for claim in extract_claims(plan, evidence)] == [("E0",), ("E1",)]


def document(text: str, *, host: str = "", kind: DocumentKind = "document", **more: object) -> Document:
    return Document.model_validate(
        {"hash": hashlib.sha256(text.encode()).hexdigest(), "text": text, "url": "x:y", "title": "T", "host": host,
         "fetched": datetime(2026, 1, 1, tzinfo=UTC), "kind": kind, **more}
    )  # fmt: skip


ARTICLE = " ".join(f"Sentence number {n} of the article speaks of matter {n * 7}." for n in range(40))


def test_a_syndicated_copy_counts_once() -> None:
    original, copy = document(ARTICLE), document(f"By another byline. {ARTICLE} Republished with permission.")
    other = document("Something else entirely is told here, in other words and about other things than that.")
    found = group_documents([original, copy, other])
    assert found[original.hash] == found[copy.hash] == "G1"
    assert found[other.hash] == "G2"


def test_two_pages_of_one_publisher_count_once() -> None:
    one, two = document("First page of text.", host="example.org"), document("Quite another page.", host="example.org")
    assert len(set(group_documents([one, two]).values())) == 1
    one, two = document("First page of text."), document("Quite another page.")
    assert len(set(group_documents([one, two]).values())) == 2


def test_credibility_has_reasons_and_tells_primary_from_secondary() -> None:
    bare = assess_credibility(document("Some text."))
    cited = assess_credibility(
        document("Some text.", author="A", published=date(2024, 1, 1), origin="Nature 551, 85 (2017)")
    )
    filing = assess_credibility(
        document("UNITED STATES SECURITIES AND EXCHANGE COMMISSION FORM 10-Q", published=date(2023, 8, 4))
    )
    demo = assess_credibility(document("Some text.", kind="demo"))
    assert demo.score < bare.score < CREDIBLE <= cited.score
    assert filing.score >= CREDIBLE
    assert (filing.primary, cited.primary) == (True, False)
    assert any("Nature" in reason for reason in cited.reasons)
    assert "is undated" in bare.reasons


@pytest.mark.requirement("X-08", "F-05")
@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        # of these a thing has one only
        ("The Grey Ferry was directed by Ulla Brandt.", "The Grey Ferry was directed by Jorgen Lamm.", "disagree"),
        ("Ada Quill was born in Lund.", "Ada Quill was born in Ostrey.", "disagree"),
        ("Ada Quill died on 7 June 1980.", "Ada Quill died in 1979.", "disagree"),
        ("The parish was founded in 1856.", "The parish was established in 1900.", "disagree"),
        ("The capital of Marrow is Ostrey.", "The capital of Marrow is Lund.", "disagree"),
        # the same told less exactly, of another thing, in another respect, or of which there may be several
        ("Ada Quill died on 7 June 1980.", "Ada Quill died in 1980.", None),
        ("The Grey Ferry was directed by Ulla Brandt.", "The Red Ferry was directed by Jorgen Lamm.", None),
        ("Ada Quill was born in Lund.", "Ada Quill was born in 1901.", None),
        ("The parish was founded in 1856.", "The parish was completed in 1900.", None),
        ("The Grey Ferry was praised by Ulla Brandt.", "The Grey Ferry was praised by Jorgen Lamm.", None),
        ("The Grey Ferry was directed by Ulla Brandt.", "The Grey Ferry was directed by Brandt.", None),
        # one word in the place of another is another fact; spelling and what is left out are not
        ("Manic is an American drama film made by a small crew in the autumn of that year.",
         "Manic is an American comedy film made by a small crew in the autumn of that year.", None),
        ("The church was finished by a small crew of builders in the autumn of that year.",
         "The chuch was finished by a small crew of builders in the autumn of that year.", "same"),
    ],
)  # fmt: skip
def test_of_some_things_there_is_only_one(left: str, right: str, expected: str | None) -> None:
    assert relate(left, right) == expected
    assert relate(right, left) == expected


def test_a_dose_and_an_effect_at_that_dose_are_two_facts() -> None:
    effect, dose = "Metfenil 50 mg reduced migraine days by a third.", "The usual dose of metfenil is 50 mg once a day."
    assert relate(effect, dose) is None
