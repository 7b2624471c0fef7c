"""Which claims bear a sentence out."""

import pytest

from openassay.models.evidence import Claim, QuoteSpan, Verdict
from openassay.verification.verdict import ClaimMatcher

pytestmark = pytest.mark.requirement("X-01")

AREA = "Lake Marrow covered 412 square kilometres in 2019."
DROUGHT = "A long drought dried up the river Tamsel, which feeds Lake Marrow."
FERRY = "The ferry from Ostrey carries 60 passengers."


def claim(name: str, text: str, verdict: Verdict = Verdict.SUPPORTED) -> Claim:
    return Claim(id=name, text=text, questions=("Q1",), verdict=verdict,
                 spans=(QuoteSpan(document=name, start=0, end=len(text), quote=text),))  # fmt: skip


CLAIMS = (claim("C1", AREA), claim("C2", DROUGHT), claim("C3", FERRY), claim("C4", "It is deep.", Verdict.PARTLY))
TITLES = {"C1": "Survey of Lake Marrow", "C2": "Rivers", "C3": "Part 7"}


@pytest.mark.parametrize(
    ("text", "named", "bound"),
    [
        (AREA, ["C1"], ["C1"]),
        ("In 2019 Lake Marrow covered 412 square kilometres.", ["C1"], ["C1"]),
        (f"{AREA.rstrip('.')}, and the ferry from Ostrey carries 60 passengers.", ["C1", "C3"], ["C1", "C3"]),
        # another claim says it
        (DROUGHT, ["C3"], ["C2"]),
        (FERRY, ["C9"], ["C3"]),
        # one of those named has nothing to do with it
        (AREA, ["C1", "C3"], ["C1"]),
        # whence it is
        ("According to the report, the ferry from Ostrey carries 60 passengers.", ["C3"], ["C3"]),
        ("According to Survey of Lake Marrow, Lake Marrow covered 412 square kilometres in 2019.", ["C1"], ["C1"]),
        ("According to Rivers, Lake Marrow covered 412 square kilometres in 2019.", ["C1"], []),
        ("According to Part 7, the ferry from Ostrey carries 60 passengers.", ["C3"], []),
        # nobody says it
        ("Lake Marrow covered 421 square kilometres in 2019.", ["C1"], []),
        ("Lake Marrow is bottomless.", ["C9"], []),
        ("Lake Marrow is bottomless.", ["C1"], []),
        ("Experts agree that Lake Marrow changed the region for ever.", ["C1"], []),
        ("It is deep.", ["C4"], []),
    ],
)
def test_found(text: str, named: list[str], bound: list[str]) -> None:
    assert [claim.id for claim in ClaimMatcher(CLAIMS, TITLES).find_claims(text, named)] == bound
