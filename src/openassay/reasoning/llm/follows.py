"""The prompt that asks whether sentences follow from claims."""

from collections.abc import Sequence

from openassay.models.evidence import Judgement
from openassay.reasoning.base import SynthesisPair
from openassay.reasoning.llm import forms
from openassay.reasoning.llm.step import Job, ReasoningStep, wrap_tag
from openassay.reasoning.llm.verify import VerdictsForm, convert_pair_verdicts

FOLLOWS_STEP = ReasoningStep("follows", stage="verify", role="judge", output="verdicts", purpose="finish")
MAX_PAIRS = 30  # of a sentence and its claims, a call

FollowsJob = Job[VerdictsForm, SynthesisPair, dict[SynthesisPair, Judgement]]


def build_follows_job(pairs: Sequence[SynthesisPair], task: str) -> FollowsJob:
    def build(shown: Sequence[SynthesisPair]) -> dict[str, str]:
        blocks = []
        # Passages and sections that several sentences share are told once.
        passages = dict.fromkeys(one for pair in shown for one in pair.passages)
        sections = {
            text: f"B{at}" for at, text in enumerate(dict.fromkeys(one.beside for one in shown if one.beside), 1)
        }
        for head, text in passages:
            blocks.append(wrap_tag("source", f"Passage of {head}: {text}"))
        for told, name in sections.items():
            blocks.append(wrap_tag("source", f"Part {name} of the report: {' '.join(told)}"))
        for number, pair in enumerate(shown, 1):
            lines = [f"Sentence {number}: {pair.text}", *(f"- {line}" for line in (*pair.claims, *pair.figures))]
            lines += [f"- Beside it: part {sections[pair.beside]}"] if pair.beside else []
            blocks.append(wrap_tag("source", "\n".join(lines)))
        return {"pairs": "\n".join(blocks)}

    return Job(
        FOLLOWS_STEP,
        VerdictsForm,
        forms.build_schema(VerdictsForm, "Verdicts", {"verdicts": len(pairs), "conflicts": 0}),
        build,
        convert=convert_pair_verdicts,
        sources=tuple(pairs),
        task=task,
    )
