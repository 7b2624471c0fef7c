"""What a chat front end sends, taken for what it is: a question, what was said before it, and how it goes on."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from assay.text.clean import is_readable

LONGEST_CONTEXT = 3000  # characters of what was said before, as far as a planner reads
LONGEST_SAID = 400  # characters of one message of it
ATTACHED = (
    "What the front end attached to the question was left out: Assay reads sources of its own, and documents that are"
    " given to it through /api/documents."
)
_INSTRUCTED = ("system", "developer")
_SPOKEN = ("user", "assistant")
# Open WebUI puts what it has found itself before the question, or the question into a block of its own.
_WRAPPED = re.compile(r"\s*### Task:\s*Respond to the user query using the provided context", re.IGNORECASE)
# What front ends show as thinking, and some send back.
_THOUGHTS = (('<details type="reasoning"', "</details>"), ("<think>", "</think>"), ("<thinking>", "</thinking>"))


class Said(NamedTuple):
    role: str
    text: str


class Talk(NamedTuple):
    """`before` is the last question that was answered, and its answer; `context` what a planner may know of the rest.
    `notes` are told to the person."""

    question: str
    before: tuple[str, str] | None
    context: str
    history: str
    notes: tuple[str, ...] = ()


def read(messages: Sequence[Said]) -> Talk | None:
    """The last message of the person is the question; None where there is none."""
    at = max((number for number, said in enumerate(messages) if said.role == "user"), default=None)
    if at is None:
        return None
    question, was_wrapped = _asked(messages[at].text)
    earlier = [_plain(said) for said in messages[:at] if said.role in _SPOKEN]
    earlier = [said for said in earlier if said.text]
    instructions = (_line(said.text) for said in reversed(messages[:at]) if said.role in _INSTRUCTED)
    return Talk(
        question=question,
        before=_exchange(earlier),
        context=_kept("instructions", instructions),
        history=_kept("conversation", (f"{said.role}: {_line(said.text)}" for said in reversed(earlier))),
        notes=(ATTACHED,) if was_wrapped else (),
    )


def _asked(text: str) -> tuple[str, bool]:
    """The person's own words, and whether there was something around them."""
    if not _WRAPPED.match(text):
        return text.strip(), False
    _, is_marked, marked = text.partition("<user_query>")
    return (marked.partition("</user_query>")[0] if is_marked else text.rpartition("</context>")[2]).strip(), True


def _plain(said: Said) -> Said:
    text = said.text
    if said.role == "user":
        return Said(said.role, _asked(text)[0])
    for opening, closing in _THOUGHTS:
        text = without(text, opening, closing)
    return Said(said.role, text.strip())


def without(text: str, opening: str, closing: str) -> str:
    """The text without such blocks; in one pass, since whoever sends it may mean no good."""
    kept, at = list[str](), 0
    while (begin := text.find(opening, at)) >= 0 and (end := text.find(closing, begin)) >= 0:
        kept.append(text[at:begin])
        at = end + len(closing)
    return "".join([*kept, text[at:]])


def _exchange(earlier: Sequence[Said]) -> tuple[str, str] | None:
    """What was said last, if it was an answer."""
    match earlier:
        case [*_, Said(role="user", text=question), Said(role="assistant", text=answer)]:
            return question, answer
        case _:
            return None


def _kept(name: str, lines: Iterable[str]) -> str:
    """The newest of it, which comes first, on one line that says what it is: searches go by the question alone."""
    kept: list[str] = []
    for line in lines:
        if sum(map(len, kept)) + len(line) > LONGEST_CONTEXT:
            break
        kept.insert(0, line)
    return f"The conversation so far: ({name}) {' | '.join(kept)}" if kept else ""


def _line(text: str) -> str:
    line = "".join(letter for letter in " ".join(text[: 4 * LONGEST_SAID].split()) if is_readable(letter))
    return line if len(line) <= LONGEST_SAID else f"{line[: LONGEST_SAID - 1]}…"
