"""The prompt that tells documents which are one voice from those that are two."""

from collections.abc import Sequence

from openassay.errors import ReasoningError
from openassay.reasoning.base import VoicePair
from openassay.reasoning.llm import forms
from openassay.reasoning.llm.step import Job, ReasoningStep, wrap_tag

VOICES_STEP = ReasoningStep(
    "voices", stage="verify", role="judge", output="word on which sources are independent", purpose="finish"
)
MAX_PAIRS = 40  # of documents, a call
VOICES = ("two", "one")


class VoicesForm(forms.OutputForm):
    """The origin comes before the count: who has named it counts right."""

    pair: forms.Number
    origin: forms.Phrase = ""
    voices: forms.Text = forms.choice_field(VOICES)


class VoicesListForm(forms.OutputForm):
    pairs: list[VoicesForm]


VoicesJob = Job[VoicesListForm, VoicePair, dict[VoicePair, bool]]


def build_voices_job(pairs: Sequence[VoicePair], task: str) -> VoicesJob:
    def build(shown: Sequence[VoicePair]) -> dict[str, str]:
        texts = list(dict.fromkeys(text for pair in shown for text in (pair.first, pair.second)))
        documents = [wrap_tag("source", f"Document {number}\n{text}") for number, text in enumerate(texts, 1)]
        lines = [
            f"Pair {number}: documents {texts.index(pair.first) + 1} and {texts.index(pair.second) + 1}, "
            f"which both say: {pair.statement}"
            for number, pair in enumerate(shown, 1)
        ]
        return {"documents": "\n".join(documents), "pairs": wrap_tag("source", "\n".join(lines))}

    return Job(
        VOICES_STEP,
        VoicesListForm,
        forms.build_schema(VoicesListForm, "Voices", {"pairs": len(pairs)}),
        build,
        convert=convert_voices,
        sources=tuple(pairs),
        task=task,
    )


def convert_voices(answer: VoicesListForm, shown: Sequence[VoicePair]) -> dict[VoicePair, bool]:
    """Return of each pair that was answered whether it is one voice; of two answers on a pair the first counts."""
    said = {
        shown[item.pair - 1]: forms.match_option(item.voices, VOICES, "two") == "one"
        for item in reversed(answer.pairs)
        if 1 <= item.pair <= len(shown)
    }
    if not said:
        raise ReasoningError(f"no answer names a pair; pairs are numbered 1 to {len(shown)}")
    return said
