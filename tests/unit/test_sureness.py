"""How sure a report may call itself."""

import pytest

from openassay.models.evidence import Claim, Verdict
from openassay.models.report import Section, Sentence
from openassay.nodes.report import SURE, measure_sureness


def claim(name: str, confidence: float) -> Claim:
    return Claim(id=name, text=name, questions=(), verdict=Verdict.SUPPORTED, confidence=confidence)


def section(*claims: str) -> Section:
    return Section(title="Found", sentences=tuple(Sentence(text=name, kind="fact", claims=(name,)) for name in claims))


@pytest.mark.requirement("W-09")
def test_a_report_is_as_sure_as_the_claims_it_states() -> None:
    claims = {one.id: one for one in (claim("C1", 0.95), claim("C2", 0.65), claim("C3", 0.1))}

    assert measure_sureness([section("C1", "C2"), section("C1")], claims) == pytest.approx(0.8)
    assert measure_sureness([section("C1")], claims) >= SURE
    assert measure_sureness([section("C2")], claims) < SURE
    assert measure_sureness([], claims) == 1
