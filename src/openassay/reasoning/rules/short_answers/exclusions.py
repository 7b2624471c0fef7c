"""Sentences that cannot answer a pointed question: orders, those of other years and those on another thing."""

import re

from openassay.reasoning.rules.short_answers.candidates import CandidateSpan
from openassay.reasoning.rules.short_answers.question import AnswerSpec
from openassay.text.injection import asks_for_advice, find_instructions, is_order
from openassay.text.questions import find_year_range
from openassay.text.relations import find_years
from openassay.text.sentences import TextSpan, split_sentences
from openassay.text.words import stems

# Nouns that follow a proper name and say what kind of thing has it: the Heron Dam is not the Kestrel Dam.
_KINDS = frozenset(
    "dam bridge lake river mountain tunnel tower museum school university college hospital airport station castle "
    "palace township municipality county district island park stadium canal reservoir plant mine port bank foods "
    "motors".split()
)
_NO_NAME = frozenset("the this that these those a an its his her their our new old first second each every".split())
_OF_A_KIND = re.compile(rf"\b([A-Z][\w’-]+) ({'|'.join(sorted(kind.title() for kind in _KINDS))})\b")
_NAME = r"[A-Z][\w’&-]*(?: (?:of |& )?[A-Z][\w’&-]*)"
# Whom a sentence is about: its first words, or what has the thing ("the revenue of Boreal Auto was").
_OPENS = re.compile(rf"^\W*(?:The )?({_NAME}{{1,3}})(?:['’]s?\b| [a-z]+(?:ed|s|d|t|de)\b)")
_HAS = re.compile(
    rf"^\W*(?:The )?[A-Za-z][a-z]+(?: [a-z]+)? of (?:the )?({_NAME}{{1,3}}) (?:is|was|are|were|fell|rose)\b"
)
_OFFICE = frozenset(stems("ceo executive"))
_NEW = re.compile(r"\b(?:replacement|replace|new|temporary)\b")
_CLAUSE = re.compile(r",(?=\s)|;|\s(?:and|but|while|against|versus|compared (?:with|to)|from(?= [$€£]?\d))\s", re.I)
_FILE = re.compile(r"\.\w{1,5}$")
_LABEL = re.compile(r"(?:published|updated|posted|issued|printed|date|title|author|source)\b", re.I)
LABEL = 6  # words of a line that says when or by whom a text was published


def filter_candidates(
    wanted: AnswerSpec, text: str, found: list[CandidateSpan], title: str = ""
) -> list[CandidateSpan]:
    """Those that stand in no barred sentence. `title` is the document's."""
    if not found:
        return []
    orders = set(find_instructions(text))
    period = find_year_range(wanted.asked)
    advice = asks_for_advice(wanted.question)
    pieces = [piece for piece in split_sentences(text) if any(_overlaps(piece, one) for one in found)]
    barred = [
        piece
        for piece in pieces
        if piece in orders
        or (is_order(piece.text) and not advice)
        or (len(piece.text.split()) <= LABEL and _LABEL.match(piece.text))
        or _is_other_thing(wanted, piece.text, title)
        or (period and (told := find_years(piece.text) or find_years(title)) and not period.overlaps(told))
    ]
    kept = [one for one in found if not any(_overlaps(piece, one) for piece in barred)]
    if period is None or wanted.kind == "date":
        return kept
    # Without those whose clause itself names other years only: "up from 2.27 billion in 2022".
    timely = []
    for one in kept:
        clauses = []
        for piece in (piece for piece in pieces if _overlaps(piece, one)):
            low, high = one.start - piece.start, one.end - piece.start
            cuts = [cut.span() for cut in _CLAUSE.finditer(piece.text)]
            start = max((end for _, end in cuts if end <= low), default=0)
            stop = min((begin for begin, _ in cuts if begin >= high), default=len(piece.text))
            clauses.append(find_years(piece.text[start:stop]))
        if not any(years and not period.overlaps(years) for years in clauses):
            timely.append(one)
    return timely


def _overlaps(piece: TextSpan, one: CandidateSpan) -> bool:
    return piece.start < one.end and one.start < piece.end


def _is_other_thing(wanted: AnswerSpec, sentence: str, title: str) -> bool:
    """Whether a sentence is on another thing than the one asked about, by the names it has."""
    own = set(stems(wanted.subject))
    if not own:
        return False
    if _is_other_of_kind(wanted, sentence):
        return True
    if own & set(stems(sentence)):
        return False
    if wanted.kind == "number" or wanted.cue_stems & _OFFICE:
        entitled = not _FILE.search(title) and re.search(rf"{_NAME}{{1,3}}", title) and not own & set(stems(title))
        return any(pattern.search(sentence) for pattern in (_OPENS, _HAS)) or bool(entitled)
    return wanted.kind == "name" and _HAS.search(sentence) is not None


def _is_other_of_kind(wanted: AnswerSpec, sentence: str) -> bool:
    """A sentence that has the subject's noun with another name ahead, or is on a new one, and nowhere its own name."""
    *name, kind = wanted.subject.split() or [""]
    if kind.lower() not in _KINDS or not name or set(stems(" ".join(name))) & set(stems(sentence)):
        return False
    new = re.search(rf"\b(?:replacement|new|temporary) {re.escape(kind)}\b", sentence, re.I)
    return (new is not None and not _NEW.search(wanted.question)) or kind.lower() in find_names_by_kind(sentence)


def is_all_on_others(wanted: AnswerSpec, text: str) -> bool:
    """Whether every sentence of a text is on another thing of the subject's kind."""
    pieces = split_sentences(text)
    return bool(pieces) and all(_is_other_of_kind(wanted, piece.text) for piece in pieces)


def find_names_by_kind(text: str) -> dict[str, set[str]]:
    """The names a text has of things of each kind: of dams Kestrel and Heron."""
    found: dict[str, set[str]] = {}
    for name, kind in _OF_A_KIND.findall(text):
        if name.lower() not in _NO_NAME:
            found.setdefault(kind.lower(), set()).add(name.lower())
    return found


def names_differ(left: dict[str, set[str]], right: dict[str, set[str]]) -> bool:
    """Whether two texts name things of one kind and none alike."""
    shared = left.keys() & right.keys()
    return bool(shared) and not any(left[kind] & right[kind] for kind in shared)
