"""Whether quotes support statements, and which statements contradict each other: the second of two calls."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import model_validator

from assay.errors import ReasoningError
from assay.model.claim import Judgement, Verdict
from assay.reasoning.language.answer import Answer, Number, Phrase, Score, Text, nearest, one_of, schema
from assay.reasoning.language.prompt import tagged
from assay.reasoning.language.step import Job, Step
from assay.reasoning.protocol import Conflict

STEP = Step("judge", stage="verify", role="judge", thing="verdicts",
            variables=("pairs", "wanted"), purpose="finish")  # fmt: skip
IN_FULL = """Each statement is followed by numbered quotes: [1], [2], ... For every number give:
- pair: the number
- verdict: supported (the quote says all of it), partly (it says a part, or less exactly), contradicted (it gives \
another figure, date or name for the same thing, or says the opposite), not_found (it speaks of something else)
- sure: 0 to 10, how sure you are of this verdict

conflicts: numbers of two statements that cannot both be true, with what they differ about. An empty list if there are \
none."""
# A model of 1.5B parameters that was asked as above called each of 20 pairs contradicted, at 0 of 10. Asked like this
# it was right on 6 of 8; the checks see to the rest.
IN_LITTLE_ROOM = """For each number answer yes if the quote says what the statement says, partly if it says only a \
part of it, no if it says something else or gives another figure, date or name."""
SHORT = {"yes": "supported", "partly": "partly", "no": "not_found"}
VERDICTS = ("not_found", "supported", "partly", "contradicted")
MOST, MOST_IN_LITTLE_ROOM = 60, 8  # pairs a call
UNSURE = 2  # of 10; a verdict less sure than this is none, and the floor judges
LONGEST_QUOTE = 1200  # characters of all quotes of a pair
WEIGHT = {"supported": 1.0, "partly": 0.6}  # of the confidence, as support; other verdicts lend none


class Pair(NamedTuple):
    number: int  # among all that are to be judged
    statement: str
    quotes: tuple[str, ...]


class Ruling(Answer):
    # A field for what differs, before the verdict, made a small model contradict everything it was shown.
    pair: Number
    verdict: Text = one_of(VERDICTS)
    sure: Score = 7.0


class Opposed(Answer):
    first: Number
    second: Number
    about: Phrase = ""


class Rulings(Answer):
    verdicts: list[Ruling]
    conflicts: list[Opposed] = []

    @model_validator(mode="before")
    @classmethod
    def _in_short(cls, data: Any) -> Any:
        """answer1: yes, answer2: no, ... as a small model is asked."""
        if not isinstance(data, dict) or "verdicts" in data:
            return data
        answers = {name.removeprefix("answer"): str(said).lower() for name, said in data.items()}
        given = [
            {"pair": int(number), "verdict": SHORT[said]}
            for number, said in answers.items()
            if number.isdecimal() and said in SHORT
        ]
        return {"verdicts": given} if given else data


class Part(NamedTuple):
    """What one call has judged, by the numbers of the pairs."""

    judgements: Mapping[int, Judgement] = {}
    conflicts: tuple[Conflict, ...] = ()
    failed: bool = False


def job(
    pairs: Sequence[Pair], task: str, others: Sequence[str] = (), *, small: bool = False
) -> Job[Rulings, Pair, Part]:
    """`others` are statements judged elsewhere, told so that contradictions are found across calls."""
    if small:
        return _short_job(pairs, task)
    statements = len({pair.statement for pair in pairs}) + len(others)
    most = {"verdicts": len(pairs), "conflicts": 0 if statements < 2 else min(10, statements)}
    return Job(
        STEP, Rulings, schema(Rulings, "Verdicts", most),
        lambda shown: {"pairs": _text(shown, others), "wanted": IN_FULL},
        lambda answer, shown: convert(answer, shown, others), sources=tuple(pairs), shorten=_halved, task=task,
    )  # fmt: skip


def _short_job(pairs: Sequence[Pair], task: str) -> Job[Rulings, Pair, Part]:
    """A field for each pair: a small model keeps to names better than to the order of a list."""
    names = [f"answer{number}" for number in range(1, len(pairs) + 1)]
    form = {
        "title": "Verdicts",
        "type": "object",
        "properties": {name: {"type": "string", "enum": list(SHORT)} for name in names},
        "required": names,
        "additionalProperties": False,
    }
    return Job(STEP, Rulings, form, lambda shown: {"pairs": _each(shown), "wanted": IN_LITTLE_ROOM}, _each_ruled,
               sources=tuple(pairs), shorten=_halved, task=task)  # fmt: skip


def _each(pairs: Sequence[Pair]) -> str:
    blocks = [
        tagged("source", f"[{number}] Statement: {pair.statement}\nQuote: {_quotes(pair)}")
        for number, pair in enumerate(pairs, 1)
    ]
    return "\n".join([*blocks, "Does each quote say what its statement says?"])


def _each_ruled(answer: Rulings, shown: Sequence[Pair]) -> Part:
    judged = {shown[item.pair - 1].number: _judgement(item) for item in answer.verdicts if 1 <= item.pair <= len(shown)}
    if not judged:
        raise ReasoningError(f"no answer names a pair; pairs are numbered 1 to {len(shown)}")
    return Part(judged)


def _quotes(pair: Pair) -> str:
    return " … ".join(" ".join(quote.split()) for quote in pair.quotes)[:LONGEST_QUOTE]


def _grouped(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    """Pairs by statement: each statement is told once."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.statement, []).append(pair)
    return groups


def _text(pairs: Sequence[Pair], others: Sequence[str]) -> str:
    blocks, number = [], 0
    for at, (statement, group) in enumerate(_grouped(pairs).items(), 1):
        lines = [f"Statement {at}: {statement}"]
        for pair in group:
            number += 1
            lines.append(f"[{number}] {_quotes(pair)}")
        blocks.append(tagged("source", "\n".join(lines)))
    if others:
        first = len(blocks) + 1
        lines = [f"Statement {at}: {statement}" for at, statement in enumerate(others, first)]
        blocks.append("Only for conflicts:\n" + tagged("source", "\n".join(lines)))
    return "\n".join(blocks)


def _halved(pair: Pair) -> Pair:
    return pair._replace(quotes=tuple(quote[: max(1, len(quote) // 2)] for quote in pair.quotes))


def convert(answer: Rulings, shown: Sequence[Pair], others: Sequence[str] = ()) -> Part:
    groups = _grouped(shown)
    in_order = [pair for group in groups.values() for pair in group]
    judged = {
        in_order[item.pair - 1].number: _judgement(item)
        for item in reversed(answer.verdicts)  # of two verdicts on a pair the first counts
        if 1 <= item.pair <= len(in_order) and item.sure >= UNSURE
    }
    if not judged:
        raise ReasoningError(f"no verdict is sure and names a pair; pairs are numbered 1 to {len(in_order)}")
    return Part(judged, tuple(_conflicts(answer, [*groups, *others])))


def _judgement(item: Ruling) -> Judgement:
    verdict = nearest(item.verdict, VERDICTS, "not_found")
    score = round(WEIGHT.get(verdict, 0.0) * item.sure / 10, 4)
    return Judgement(verdict=Verdict(verdict), score=score, reason=f"judged {verdict} by the model")


def verbatim(statement: str, quotes: Iterable[str]) -> bool:
    """Whether a statement is a quote's own words, so that nobody has to be asked."""
    said = " ".join(statement.split()).rstrip(" .")
    return any(said in " ".join(quote.split()) for quote in quotes)


def doubted(given: Judgement, counted: Judgement) -> Judgement:
    """A small model's word together with the floor's: it is not believed where no words of the statement stand in the
    quote, and half as sure as it says."""
    if given.verdict is not Verdict.SUPPORTED:
        return given
    verdict = Verdict.PARTLY if counted.verdict is Verdict.NOT_FOUND else Verdict.SUPPORTED
    score = round((given.score + counted.score) / 2, 4)
    return Judgement(verdict=verdict, score=score, reason=f"{given.reason}; {counted.reason}")


def _conflicts(answer: Rulings, statements: Sequence[str]) -> Iterable[Conflict]:
    for item in answer.conflicts:
        if 1 <= item.first <= len(statements) and 1 <= item.second <= len(statements) and item.first != item.second:
            yield Conflict(first=statements[item.first - 1], second=statements[item.second - 1], about=item.about)
