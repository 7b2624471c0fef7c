"""What a reviewer asked for, as this writer can do it, and a note on each item (F-06)."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from assay.model.claim import Claim, Mark, Verdict
from assay.model.report import Issue
from assay.reasoning.protocol import WriteRequest
from assay.text.overlap import jaccard
from assay.text.words import fold, stems

NAMED = 3  # stems a complaint shares with the statement it means
SPOKEN_OF = 0.3


@dataclass
class Orders:
    """What is done differently, and what is said about it."""

    shorter: bool = False
    fewer_alike: bool = False
    shorter_sentences: bool = False
    newest_first: bool = False
    surest_first: bool = False
    shorter_summary: bool = False
    on_topic: bool = False  # what shares no word with the question is left out
    whole: bool = False  # rows and fragments are left out
    unjoined: bool = False
    missing: list[str] = field(default_factory=list)  # what nothing is said of
    struck: set[str] = field(default_factory=set)  # claims that are left out
    banned: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)


def orders(request: WriteRequest) -> Orders:
    """Critical and major items first; a fix without an issue is an item too."""
    made = Orders()
    severe = ("critical", "major")
    issues = sorted(request.issues, key=lambda issue: issue.severity not in severe)
    known = {issue.fix for issue in issues}
    issues += [_bare(fix) for fix in request.fixes if fix not in known]
    for issue in issues:
        done = _known(issue, request, made) or (_doubted(issue, request, made) if issue.severity in severe else "")
        made.notes.append(f"{_named(issue)} → {done or 'nothing to do in the text'}")
    return made


def _bare(fix: str) -> Issue:
    return Issue(category="style", severity="minor", location="", description=fix, fix=fix)


def _named(issue: Issue) -> str:
    place = f"{issue.severity}, {issue.location}: " if issue.location else ""
    return f"{place}{issue.description}"


def _known(issue: Issue, request: WriteRequest, made: Orders) -> str:
    """The first thing that the words of an item ask for; empty where none is known."""
    said = f"{issue.fix} {issue.description}".lower()
    if found := re.search(r"banned word: (.+)", issue.description):
        made.banned.add(found[1].strip())
        return "put in other words"
    for pattern, do in _KNOWN:
        if re.search(pattern, said):
            return do(issue, request, made)
    return ""


def _drop(issue: Issue, request: WriteRequest, made: Orders) -> str:
    """The statement an item quotes, or the one it speaks of."""
    quoted = fold(issue.description.partition(": ")[2])[:70]
    supported = [claim for claim in request.claims if claim.verdict is Verdict.SUPPORTED]
    meant = [c for c in supported if quoted and fold(c.text).startswith(quoted)] or _spoken_of(issue, supported)
    made.struck |= {claim.id for claim in meant}
    return "the statement was left out" if meant else ""


def _spoken_of(issue: Issue, claims: Sequence[Claim]) -> list[Claim]:
    said = set(stems(issue.description))
    named = [c for c in claims if len(said & set(stems(c.text))) >= NAMED]
    best = max(named, key=lambda claim: jaccard(claim.text, issue.description), default=None)
    return [best] if best is not None and jaccard(best.text, issue.description) >= SPOKEN_OF else []


def _doubted(issue: Issue, request: WriteRequest, made: Orders) -> str:
    """A doubt about the truth, or a critical one, in words this writer does not know: what it speaks of goes, else the
    least sure of the place it names. Any other item in such words is noted and changes nothing."""
    of_truth = issue.category in ("accuracy", "citation")
    if not of_truth and issue.severity != "critical":
        return ""
    if of_truth and (done := _drop(issue, request, made)):
        return done
    told = _told_in(issue.location, request)
    doubtful = [claim for claim in told if claim.mark is Mark.SINGLE] or sorted(told, key=lambda c: c.relevance)[:1]
    if not doubtful or len(doubtful) == len(told):
        return ""
    made.struck |= {claim.id for claim in doubtful}
    return f"the {len(doubtful)} least sure of its statements {'was' if len(doubtful) == 1 else 'were'} left out"


def _told_in(place: str, request: WriteRequest) -> list[Claim]:
    sections = request.previous.sections if request.previous else ()
    bodies = [section for section in sections if section.role == "body"]
    named = [section for section in bodies if fold(section.title) in fold(place)] or bodies
    ids = dict.fromkeys(id for section in named for sentence in section.sentences for id in sentence.claims)
    by_id = {claim.id: claim for claim in request.claims}
    return [by_id[id] for id in ids if id in by_id]


def _own_up(issue: Issue, request: WriteRequest, made: Orders) -> str:
    made.missing += [part.strip() for part in issue.description.partition("nothing of ")[2].split(" or ")]
    return "it is named under “What could not be found”"


def _set(name: str, note: str) -> Callable[[Issue, WriteRequest, Orders], str]:
    def do(issue: Issue, request: WriteRequest, made: Orders) -> str:
        setattr(made, name, True)
        return note

    return do


def _say(note: str) -> Callable[[Issue, WriteRequest, Orders], str]:
    return lambda issue, request, made: note


_KNOWN: tuple[tuple[str, Callable[[Issue, WriteRequest, Orders], str]], ...] = (
    (r"drop the sentence|(?:not |un)supported|no span|leave it out|as the passage has it|refers to nothing", _drop),
    (r"says nothing of", _own_up),
    (r"nothing to do with the question|beside the point|off topic|irrelevant", _set("on_topic", "they were left out")),
    (r"snippets|whole sentences|fragments", _set("whole", "only whole sentences were kept")),
    (r"concludes", _set("unjoined", "sentences stand as their sources have them")),
    (r"summary of \d+ words|shorten the (?:summary|abstract)", _set("shorter_summary", "the summary was shortened")),
    (r"shorten the sentences|shorten it|readab|long sentences|shorter sentences|words on average",
     _set("shorter_sentences", "long sentences made room for shorter ones")),
    (r"\bshorten\b|too long|words where", _set("shorter", "the report was shortened by a quarter")),
    (r"keep one|said twice|repeat|duplicat|redundan", _set("fewer_alike", "of statements much alike one was kept")),
    (r"\brecent|outdated|newer|too old|older|stale", _set("newest_first", "the newest statements were taken first")),
    (r"sources? (?:is|are) cited|corroborat|second source|single source|independent source",
     _set("surest_first", "the statements with most sources were taken first")),
    (r"unanswered|what could not be found|owned up|is open", _say("it is named under “What could not be found”")),
    (r"both sides", _say("both sides stand under “What the sources disagree on”")),
)  # fmt: skip
