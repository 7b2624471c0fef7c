"""Questions a person might ask instead, or next."""

import re

MOST = 3
_OF_A_COMPANY = (
    "What is happening with {it}?",
    "How did {it}'s revenue change over the last year?",
    "Who are {it}'s main competitors?",
)
_OF_A_NAME = ("What is {it} known for?", "What is the latest on {it}?", "What do sources disagree on about {it}?")
_OF_A_THING = ("What is known about {it}?", "What has changed in {it} in recent years?", "What is disputed about {it}?")
# A company can be named, given by its ticker, or described.
_COMPANIES = ("Microsoft", "NVDA", "the company that makes the iPhone")


def suggestions(topic: str, *, company: bool, named: bool, asked: str = "") -> tuple[str, ...]:
    """Made for a topic; never what was asked anyway."""
    if not topic:
        return ()
    forms = _OF_A_COMPANY if company else _OF_A_NAME if named else _OF_A_THING
    made = (form.format(it=topic) for form in forms)
    return tuple(text for text in made if text.casefold() != asked.casefold())[:MOST]


def examples(asked: str, gap: re.Pattern[str]) -> tuple[str, ...]:
    """The question as it would be with a company in it, in the three ways one can be given."""
    found = gap.search(asked)
    if not found:
        return ()
    end = "?" if asked.rstrip().endswith("?") else ""
    before, after = asked[: found.start()], asked[found.end() :].rstrip("?!. ")
    return tuple(f"{before}{_in_case(name, found.group())}{after}{end}" for name in _COMPANIES)


def _in_case(name: str, word: str) -> str:
    return f"{name}'s" if word.lower() in ("its", "their", "theirs", "his", "her", "hers") else name
