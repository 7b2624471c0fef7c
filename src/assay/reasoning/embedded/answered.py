"""A question with the answers to clarifying questions worked in."""

import re

from assay.ports import Companies
from assay.reasoning.embedded.phrases import possessive
from assay.reasoning.embedded.reference import PRONOUN
from assay.reasoning.embedded.small_talk import is_gibberish, is_indifferent, is_small_talk
from assay.reasoning.embedded.subjects import find_subjects, options
from assay.text.words import STOP_WORDS, content_words, fold, stems, words

VAGUE = re.compile(
    r"\b(?:(?:the|that|this|some|any|one of the) (?:\w+ )?|an? )(?:company|firm|business|corporation|thing|topic|"
    r"subject|stuff|one|product|person|event|matter)\b(?! (?:that|which|who|behind|of|in|making)\b)",
    re.I,
)
_FILLER = re.compile(r"\b(?:hm+|um+|uh|er+|well|oh|ok|okay|yes|no)\b", re.I)
_OPENING = re.compile(r"^(?:actually|sorry|oh|well|no|hm+|um+|i mean|i meant|ok(?:ay)?|yes|please)[,.!]*\s+", re.I)
_QUESTION = re.compile(
    r"^(?:what|who|when|where|why|how|which|is|are|was|were|do|does|did|can|could|should|would|will|has|have|tell me|"
    r"give me|show me|explain|describe|compare|research|investigate|i (?:want|would like|need) to know)\b",
    re.I,
)
MOST_WORDS = 4  # of a message that is no more than a topic
_THE_ONE = re.compile(r"^the one(?= (?:that|which|who|behind|making)\b)", re.I)
_ORDINALS = {
    "1": 0, "first": 0, "one": 0, "former": 0, "2": 1, "second": 1, "two": 1, "latter": 1, "3": 2, "third": 2, "4": 3,
    "fourth": 3,
}  # fmt: skip
_THE = re.compile(r"^(?:the|that|this|an?)\s+", re.I)
_ABOUT = re.compile(
    r"^(?:(?:i'?m? (?:mean|meant|am asking|asking|want)|it'?s|that'?s|about|the company is|i want)\s+)+"
    r"(?:about\s+|for\s+)?",
    re.I,
)


def is_vague(text: str) -> bool:
    """Whether nothing is said but "that thing"."""
    return bool(VAGUE.search(text)) and not content_words(_FILLER.sub(" ", VAGUE.sub(" ", text)))


def with_answers(asked: str, answers: tuple[str, ...], companies: Companies) -> str:
    """Who says twice what fits none of the companies on offer means something else by the name."""
    refused = 0
    for answer in answers:
        bare = "" if is_indifferent(answer) else _bare(answer)
        name, shorts = options(asked, companies)
        if not name or not bare:
            asked = _with_answer(asked, bare, companies)
        elif chosen := _chosen(name, shorts, bare, companies):
            asked = _naming(asked, name, chosen)
        elif _QUESTION.match(bare):
            asked = bare
        elif not (is_small_talk(bare) or is_gibberish(bare)):
            refused += 1
            asked = _naming(asked, name, f"{name} ({bare.rstrip('?!. ')})") if refused > 1 else asked
    return asked


def _bare(answer: str) -> str:
    text, before = " ".join(answer.split()), ""
    while text != before:
        before, text = text, _OPENING.sub("", text)
    return text


def _with_answer(asked: str, answer: str, companies: Companies) -> str:
    """'Tell me about the company' + 'Apple' is 'Tell me about Apple'; another question takes the place of the first."""
    if not answer or is_small_talk(answer) or is_gibberish(answer) or set(words(answer)) <= set(words(asked)):
        return asked
    if not content_words(asked) or is_gibberish(asked):
        return answer
    if _QUESTION.match(answer) and content_words(answer):
        gap = PRONOUN.search(answer) if len(asked.split()) <= MOST_WORDS else None
        return _filled(answer, gap, asked.rstrip("?!. ")) if gap else answer
    meant = _THE_ONE.sub("the company", _ABOUT.sub("", answer))
    company = companies.resolve(meant)
    subjects = find_subjects(meant, companies) or ((company.short,) if company else ())
    if subjects and (gap := VAGUE.search(asked) or PRONOUN.search(asked)):
        return _filled(asked, gap, subjects[0])
    if len(meant.split()) > 6:
        return meant
    if VAGUE.search(meant) and not subjects:
        return asked
    return f"{asked.rstrip('?!. ')} ({meant.rstrip('?!. ')})"


def _filled(asked: str, gap: re.Match[str], subject: str) -> str:
    owned = gap.group().lower() in ("its", "their", "theirs", "his", "her", "hers")
    return f"{asked[: gap.start()]}{possessive(subject) if owned else subject}{asked[gap.end() :]}"


def _chosen(name: str, shorts: tuple[str, ...], answer: str, companies: Companies) -> str:
    """One of several by its name, its place in the list, or a word of its name; or what else goes by that name."""
    place = next((_ORDINALS[word] for word in fold(answer).strip(" .!").split() if word in _ORDINALS), None)
    if place is not None and len(answer.split()) <= 3 and place < len(shorts):
        return shorts[place]
    meant = _ABOUT.sub("", answer).rstrip("?!. ")
    if company := companies.resolve(meant) or companies.resolve(f"{name} {_THE.sub('', meant)}"):
        return company.short
    if fits := _fitting(name, shorts, meant, companies):
        return fits
    says_more = set(words(meant)) - STOP_WORDS > set(words(name)) and len(meant.split()) <= MOST_WORDS
    return meant if says_more else ""


def _fitting(name: str, shorts: tuple[str, ...], answer: str, companies: Companies) -> str:
    """The only option that has a word of the answer in what it is called or registered as."""
    wanted = set(stems(answer)) - set(stems(name))
    called = {company.short: f"{company.short} {company.name}" for company in companies.candidates(name)}
    fitting = [short for short in shorts if wanted & set(stems(called.get(short, short)))]
    return fitting[0] if len(fitting) == 1 else ""


def _naming(asked: str, name: str, chosen: str) -> str:
    return re.sub(rf"\b{re.escape(name)}\b", lambda _: chosen, asked, count=1)
