"""Whether a report is about what was asked: it names the subject, and says the question's own words."""

import re
from collections.abc import Iterator, Sequence

from assay.reasoning.embedded.reviewing.case import Case, Fact, Fault, fault, stems_of
from assay.text.language import language
from assay.text.words import stem, stems, words

FEW_WORDS, HALF = 0.25, 0.5  # of the question's words; of the statements
ENOUGH = 3  # words of a question that can be missed

# Words a question is asked with: an answer need not repeat them.
_ASKING = frozenset(
    stems(
        "much many large big long far old often high happen happened happening change changed role impact effect "
        "affect difference compare comparison overview analysis analyse explain describe summary summarise report "
        "latest recent current currently today history future main key important best good explain reason cause why "
        "know known find state work use mean define figure give given uncertain dispute disputed expect expected drive "
        "drove develop development speak said evidence common limit step need"
    )
)
_LEGAL_FORM = frozenset("inc corp corporation ltd plc llc co company group holdings ag se sa gmbh".split())


def relevance(case: Case) -> Iterator[Fault]:
    if not case.statements or _in_another_language(case):
        return
    texts = _texts(case.statements)
    missing = [subject for subject in case.request.subjects if not named(subject, texts)]
    if missing and len(missing) == len(case.request.subjects):
        yield fault("completeness", "critical", "whole report", f"says nothing of {' or '.join(missing)}",
                    "add sources on the subject")  # fmt: skip
    elif missing:
        yield fault("completeness", "major", "whole report", f"says nothing of {' or '.join(missing)}",
                    "say that nothing was found on it, or add sources")  # fmt: skip
    else:
        yield from _beside_the_point(case, stems_of(texts))


def touched(case: Case, questions: Sequence[str]) -> bool:
    """Whether the report has words that these questions ask with, besides those of the subject."""
    about = stems_of([case.request.plan.topic, *case.request.subjects])
    own = stems_of(questions) - about - _ASKING
    return not own or _in_another_language(case) or not own.isdisjoint(_said(case.statements))


def _in_another_language(case: Case) -> bool:
    """Words cannot be compared across languages."""
    asked = language(case.question)
    told = language(" ".join(fact.text for fact in case.statements[:10]))
    return asked not in (None, "en") or told not in (None, "en")


def _texts(facts: Sequence[Fact]) -> list[str]:
    """The statements, their passages, and the titles these stand under."""
    told = [text for fact in facts for text in (fact.text, *fact.quotes)]
    return [*told, *(source.title for fact in facts for source in fact.sources)]


def _said(facts: Sequence[Fact]) -> set[str]:
    return stems_of(_texts(facts))


def named(subject: str, texts: Sequence[str]) -> bool:
    """By all its words, by the last of a name (Merkel for Angela Merkel), or by its initials (WHO)."""
    said, parts = stems_of(texts), [word for word in words(subject) if word not in _LEGAL_FORM]
    telling = [stem(part) for part in parts if stems(part)] or [stem(part) for part in parts]
    if not telling or said.issuperset(telling):
        return True
    if len(telling) == 1 or not all(part[:1].isupper() for part in subject.split() if stems(part)):
        return False
    initials = "".join(part[0] for part in parts if stems(part)).upper()
    return telling[-1] in said or (len(initials) > 2 and re.search(rf"\b{initials}\b", "\n".join(texts)) is not None)


def _beside_the_point(case: Case, said: set[str]) -> Iterator[Fault]:
    wanted = list(dict.fromkeys(part for part in stems(case.question) if part not in _ASKING))
    told = [part for part in wanted if part in said]
    if len(wanted) >= ENOUGH and len(told) / len(wanted) < FEW_WORDS:
        yield fault("completeness", "critical", "whole report", "hardly a word of the question occurs in the report",
                    "add sources that speak of it")  # fmt: skip
        return
    topical = [fact for fact in case.statements if _on_topic(fact, wanted)]
    share = len(topical) / len(case.statements)
    if wanted and share < HALF:
        yield fault("completeness", "critical" if share < FEW_WORDS else "major", "whole report",
                    f"{len(case.statements) - len(topical)} of {len(case.statements)} statements have nothing to do "
                    "with the question", "leave them out")  # fmt: skip


def _on_topic(fact: Fact, wanted: Sequence[str]) -> bool:
    return not set(wanted).isdisjoint(_said([fact]))
