"""Phrases of a text that later words may stand for: names, titles in quotation marks, places, times, nouns."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from openassay.models.plan import FEWEST_WORDS, MOST_WORDS, Style, Understanding
from openassay.protocols import CompanyResolver
from openassay.text.language import detect_language
from openassay.text.nationalities import NATIONALITIES
from openassay.text.negation import find_hedges, find_negations
from openassay.text.quantities import find_quantities
from openassay.text.sentences import is_table_row
from openassay.text.words import IRREGULAR, STOP_WORDS, find_names, fold, stems

# A compound sentence as the statements it is made of: clauses with a subject and a verb of their own.

# Said once for all clauses, so it is said with each.
_AHEAD = re.compile(
    r"^(?:According to [^,;]{2,60}, |(?:In|During|By|Since|As of|At|On|For|Through) (?:[^,;]{2,40}), )+|"
    r"^[A-Z][\w'’.& -]{1,50} (?:said|says|reported|announced|stated|found|estimated)(?: on [A-Z][a-z]+)? that "
)
# What may bind clauses together: one is the condition, the reason, the time or the content of the other.
_BINDING = re.compile(
    r"\b(?:that|which|who|whom|whose|where|whether|if|when|while|as|because|since|although|though|unless|until|so|than|"
    r"after|before|once|due|despite|compared|versus|respectively|both|either|neither|each|combined|together|said|says|"
    r"say|told|added|announced|reported|believes?|claims?|thinks?|argues?|estimates?|according|not only|instead|"
    r"would|could|should|must)\b|[\"“”()]",
    re.I,
)
_JOINT = re.compile(r"; (?:and |but )?|,? and |, but |, ")
_VERB = re.compile(
    r"(?:is|are|was|were|has|have|had|rose|fell|grew|increased|decreased|declined|dropped|gained|lost|climbed|jumped|"
    r"slipped|surged|doubled|halved|shrank|reached|totaled|totalled|remained|stood|covered|covers|became|began|ended|"
    r"won|opened|closed|contains|holds|employs|produced|produces|sold|cost|costs|amounted|accounted|came|went)"
)
_LEANING = frozenset(
    "it its he his she her they their them this that these those we our i you there such one ones others both some "
    "many most more all none".split()
)
_JOINING = frozenset(
    "of in on at by for with from into over under about and or the a an its their his her per via among".split()
)
_NAME = re.compile(r"(?<=\w )(?:[A-Z]|[a-z]+[A-Z])|^\S*[a-z’']\S*[A-Z]|^[A-Z]\S*['’]s\b|^[A-Z]{2}")
LONGEST_SUBJECT = 7  # words
FEWEST = 3  # words of a statement


def split_clauses(sentence: str) -> list[str]:
    """The statements of a sentence, each a sentence of the same words; the sentence itself where that is unsure."""
    ahead = _AHEAD.match(sentence)
    said = ahead.group() if ahead else ""
    body = sentence[len(said) :].rstrip(".")
    if is_table_row(sentence) or _BINDING.search(body) or find_hedges(sentence):
        return [sentence]
    # Cut at the joints after which a clause begins; a joint inside a list or a phrase is none.
    cuts, begin = [], 0
    for joint in _JOINT.finditer(body):
        if _is_clause(body[begin : joint.start()]) and _is_clause(body[joint.end() :]):
            cuts.append(body[begin : joint.start()])
            begin = joint.end()
    parts = [*cuts, body[begin:]] if begin else [body]
    # Every clause tells its time or none does ("rose 5% and fell 3% in 2019" may be one year for both), and none leaves
    # it to the first to name its subject ("Apple's sales rose and profit fell"). A denial may reach over what follows.
    timed = {any(quantity.when for quantity in find_quantities(part)) for part in parts}
    named = [bool(_NAME.search(part)) or (at > 0 and part[:1].isupper()) for at, part in enumerate(parts)]
    if len(parts) < 2 or len(timed) > 1 or (named[0] and not all(named)) or any(map(find_negations, parts)):
        return [sentence]
    told = []
    for part in parts:
        first = part.split(" ", 1)[0]
        if said and first in ("The", "A", "An"):
            part = part[:1].lower() + part[1:]
        elif not said and first.islower():
            part = part[:1].upper() + part[1:]
        told.append(f"{said}{part.strip(' ,')}.")
    return told


def _is_clause(text: str) -> bool:
    """A subject that names what it speaks of, then a verb; both before the next joint."""
    found = text.split()
    head = found[: LONGEST_SUBJECT + 1]
    at = next((index for index, word in enumerate(head) if _VERB.fullmatch(word)), 0)
    if not at or len(found) < FEWEST or any(word.endswith((",", ";", ":")) for word in head[:at]):
        return False
    subject = [fold(word) for word in head[:at]]
    return not _LEANING & set(subject) and "and" not in subject and subject[-1] not in _JOINING


# What a question is after, apart from which document it wants it from.

# "in its Q3 2023 10-Q", "as disclosed in these quarterly reports": they choose the document, and sentences that repeat
# them are title pages and signatures.
_DOCUMENT = re.compile(
    r",?\s*\b(?:(?:as )?(?:reported|disclosed|discussed|stated|described) )?(?:in|for|from|of|across|over)\s+"
    r"(?:(?:its|the|their|these|this|those|all)\s+)?"
    r"(?:(?:latest|most recent|last|reported|quarterly|annual|provided)\s+)*"
    r"(?:(?:Q[1-4]|H[12]|FY)\s*(?:\d{4})?\s*)?(?:10-[QK]s?|reports?|filings?|documents?|quarters|periods)\b,?",
    re.I,
)
_PERIOD = re.compile(r",?\s*\b(?:in|for|during)\s+(?:Q[1-4]|H[12]|FY)\s*\d{4}\b,?", re.I)
# Words of reporting: every filing reports and discloses.
GENERIC = frozenset(stems("report disclose discuss state mention describe analyze identify significant major key any"))
NAME_WEIGHT = 0.4  # weight of a subject's name: it has already chosen the documents


def strip_document_references(question: str) -> str:
    """The question without its references to documents; as it is where nothing else would be left."""
    text = " ".join(_PERIOD.sub(" ", _DOCUMENT.sub(" ", question)).split())
    return text if len(stems(text)) >= 2 else question


def weigh_stems(question: str) -> dict[str, float]:
    """How much each stem of a question counts against the others, before rarity."""
    named = {stem for name in find_names(question) for stem in stems(fold(name))}
    weights = {}
    for stem in stems(question):
        weights[stem] = 0.2 if stem in GENERIC else NAME_WEIGHT if stem in named else 1.0
    return weights


# How long a report should be, in a person's words.

_ONE_PAGE, _SHORT, _FULL, _ALL = "A one-page", "A short", "A full", "All there is"
_LENGTH_OPTIONS: dict[str, int | None] = {_ONE_PAGE: 350, _SHORT: 800, _FULL: 2000, _ALL: None}
_NOUNS = {"comparison": "comparison", "procedure": "guide", "cause": "explanation"}  # else an answer, or a report
PER_PAGE, PER_MINUTE = 400, 200  # words; of a page, and of a minute's reading

_NUMBER = r"(\d{1,2}[,.’ ]\d{3}|\d{1,5}|one|two|three|four|five|six|eight|ten|half a|a)"
_SPELLED = {"one": 1.0, "two": 2.0, "three": 3.0, "four": 4.0, "five": 5.0, "six": 6.0, "eight": 8.0, "ten": 10.0,
            "half a": 0.5, "a": 1.0}  # fmt: skip
_MEASURES = (("words?", 1), ("pages?", PER_PAGE), ("minutes?", PER_MINUTE))
_VAGUE_LENGTHS: tuple[tuple[str, int], ...] = (
    (r"a few (?:lines|sentences)|one paragraph|a paragraph", 120), (r"\b(?:brief|briefly|short|quick|concise)\b", 350),
)  # fmt: skip
_EVERYTHING = re.compile(r"\b(?:all there is|everything|in depth|exhaustive|thorough\w*|comprehensive)\b", re.I)

LENGTH_PATTERN = re.compile(
    rf"\b{_NUMBER}[ -](?:words?|pages?)\b|\bbriefly\b|\bin (?:detail|depth|short)\b|\bshort answer\b", re.I
)


def list_lengths(query_class: str, about: str) -> tuple[str, ...]:
    """What can be chosen, in words that suit the kind of question."""
    noun = _NOUNS.get(query_class, "report")
    short = _NOUNS.get(query_class, "answer")
    return f"{_ONE_PAGE} {short}", f"{_SHORT} {noun}", f"{_FULL} {noun}", f"{_ALL} on {about}"


def parse_length(answer: str) -> int | None:
    """The words that are meant; None: all there is, or nothing that could be measured."""
    for option, words in _LENGTH_OPTIONS.items():
        if answer.strip().lower().startswith(option.lower()):
            return words
    for measure, words_of in _MEASURES:
        if named := re.search(rf"\b{_NUMBER}[ -]{measure}\b", answer, re.I):
            spelled = _SPELLED.get(named[1].lower())
            count = float(re.sub(r"\D", "", named[1])) if spelled is None else spelled
            return max(FEWEST_WORDS, min(MOST_WORDS, round(count * words_of)))
    return next((words for pattern, words in _VAGUE_LENGTHS if re.search(pattern, answer, re.I)), None)


def asks_for_everything(answer: str) -> bool:
    return bool(_EVERYTHING.search(answer))


# What a question is about, in words that fit into another question, and the field it belongs to.

Field = Literal["company", "law", "medicine", "software", "science", "economy", "place", "general"]

LONGEST_TOPIC = 90  # characters of a matter

# Words that tell a field. Tried in turn: the price of a drug is a matter of medicine, a law on software one of law.
_FIELDS: dict[Field, str] = {
    "law": "law legal illegal court regulation directive statute liability gdpr ccpa act treaty copyright patent "
    "lawsuit constitution legislation compliance unlawful",
    "medicine": "treatment drug vaccine vaccination disease symptom therapy patient clinical cancer diabetes dose "
    "medicine medical medication health pregnancy pregnant surgery infection virus obesity blood depression antibiotic "
    "ibuprofen aspirin statin semaglutide arthritis",
    "software": "software programming python javascript typescript rust java golang postgres postgresql sql database "
    "api framework library open-source kubernetes docker linux git github algorithm compiler llm",
    "science": "physics chemistry chemical biology quantum galaxy telescope protein gene genome genetic theory "
    "measurement constant hypothesis experiment species planet particle neutrino crispr evolution climate fusion star "
    "dinosaur volcano earthquake cosmology astronomy mathematics",
    "economy": "price market sales revenue stock inflation export import trade economy economic gdp tariff industry "
    "demand supply unemployment wage energy",
    "place": "lake river city town village island mountain mount country capital population province region coast "
    "valley travel visit see",
}

_CLAUSE = re.compile(
    r"^(?:how|why|what|who|when|where|which|there|i|you)\b|"
    r"\b(?:is|are|was|were|did|do|does|has|have|had|will|would|can|could|should|be|been)\b",
    re.I,
)
# "Is ibuprofen safe during pregnancy" is about ibuprofen during pregnancy.
_JUDGEMENT = re.compile(
    r"\s+(?:(?:un)?safe|(?:in)?effective|dangerous|harmful|good|bad|better|worse|(?:im)?possible|(?:il)?legal|true|false|"
    r"real|faked?|worth it|healthy|necessary)\b",
    re.I,
)
_PREDICATE = re.compile(r"\s+(?:is|are|was|were|did|do|does|has|have|had|will|would|can|could|should)\b.*$", re.I)
_FURTHER = re.compile(r"[,;?]|\s+and\s+(?=(?:how|why|what|when|who|where|which)\b)", re.I)
_COMPARED = re.compile(
    r"^(?:please\s+)?(?:compare|comparing|(?:the )?(?:comparison|differences?) (?:of|between))\s+", re.I
)
_BETWEEN = re.compile(r"\s+(?:versus|vs\.?|with|to|against)\s+", re.I)
_HOW_TO = re.compile(
    r"^(?:please\s+)?(?:tell me )?how (?:to|do i|do you|can i|can you|should i|does one|do we)\s+", re.I
)


def classify_field(understanding: Understanding, *, company: bool = False) -> Field:
    if company:
        return "company"
    said = set(stems(understanding.question))
    return next((field for field, telling in _FIELDS.items() if said & set(stems(telling))), "general")


def describe_topic(understanding: Understanding) -> str:
    """A noun phrase: the topic, the subjects where that is none, else the question itself in quotation marks."""
    topic, subjects = understanding.topic_focus, understanding.subjects
    if understanding.query_class == "comparison":
        topic = _BETWEEN.sub(" and ", _COMPARED.sub("", topic), count=1)
        return " and ".join(_add_article(name, understanding) for name in subjects) if len(subjects) > 1 else topic
    if understanding.query_class == "yes_no":
        topic = _JUDGEMENT.sub("", topic) or topic
    if topic and not is_clause(understanding) and len(topic) <= LONGEST_TOPIC:
        return _add_article(topic, understanding)
    subject = _PREDICATE.sub("", topic)  # "Python web framework should I use"
    if " " in subject and subject != topic and not _CLAUSE.search(subject) and len(subject) <= LONGEST_TOPIC:
        return subject
    named = "" if _is_foreign(understanding) else " and ".join(_add_article(name, understanding) for name in subjects)
    return named or f"“{_truncate(topic or understanding.question.strip(' .?!'))}”"


def find_matter(question: str) -> str:
    """What a question asks about, where it says "about": of what was decided about troops, the troops."""
    first = _FURTHER.split(question.strip(" .?!"), maxsplit=1)[0]
    return first.partition(" about ")[2].strip() or question


def address_topic(understanding: Understanding) -> str:
    """The same as one says it to a person, who knows what they asked."""
    if doing := find_action(understanding):
        return f"how to {doing}"
    about = describe_topic(understanding)
    return "this" if about.startswith("“") else about


def is_clause(understanding: Understanding) -> bool:
    """Whether the topic ("people were injured in the fire", "Rome fall") is none that fits into a question."""
    why = understanding.query_class == "cause" and fold(understanding.question).startswith("why")
    return why or _is_foreign(understanding) or bool(_CLAUSE.search(understanding.topic_focus))


def _is_foreign(understanding: Understanding) -> bool:
    """In another language nothing tells a topic from a clause."""
    return detect_language(understanding.question) not in (None, "en")


def first_clause(understanding: Understanding) -> str:
    """The first part of the question, as it goes on after a colon."""
    asked = _FURTHER.split(understanding.question.strip(" .?!"), maxsplit=1)[0].strip()
    return f"{asked[:1].lower()}{asked[1:]}"


def _add_article(name: str, understanding: Understanding) -> str:
    return f"the {name}" if re.search(rf"\bthe {re.escape(name)}\b", understanding.question, re.I) else name


def _truncate(text: str) -> str:
    return text if len(text) <= LONGEST_TOPIC else f"{text[: LONGEST_TOPIC - 1].rsplit(' ', 1)[0]}…"


def find_action(understanding: Understanding) -> str | None:
    """What somebody wants to do, as it follows "to": set up replication."""
    asked = understanding.question.strip(" .?!")
    return _truncate(rest) if (rest := _HOW_TO.sub("", asked)) != asked else None


_QUOTED = re.compile(r"[\"“]([^\"“”]{2,80}?)[,.]?[\"”]")
_YEAR = r"(?:1[5-9]|20)\d{2}"
_TIME = re.compile(rf"\b{_YEAR}s?(?:\s*(?:-|–|to)\s*(?:{_YEAR}|\d{{2}}|present))?")
_PLACE = re.compile(r"\b(?:in|at|to|near|from)\s+(?:the\s+)?$")
_BESIDE = re.compile(r"\b(?:in|at|to|near|from|by|with|via|for|of|on|against|under|than|as)\s+(?:the\s+)?$", re.I)
_MONTHS = frozenset(
    "january february march april may june july august september october november december monday tuesday wednesday "
    "thursday friday saturday sunday".split()
)
# Verbs of asking and doing that open what is left of a question once its small words are gone.
_VERBS = frozenset(
    "happen happens happened mean means meant know want need think say says find see use using work works go going "
    "take takes get getting start started keep put let look looking try explain describe compare list name summarize "
    "show provide define elaborate clarify talking speaking considered called play plays live lives cost costs help "
    "helps cause causes affect affects increase decrease win release released become change changed".split()
)
# Verbs that say no more than that something is, or comes to be: "How did the Hubble tension arise?"
HAPPENING = frozenset(
    "arise arises arose appear appears begin begins come comes compare develop develops differ emerge emerges end ends "
    "evolve evolves exist exists fare form forms function functions go happen happens last matter mean occur occurs "
    "operate operates originate originates perform performs start starts unfold work works".split()
)
# Verbs that may as well be nouns: "climate change".
_NOUNS_TOO = frozenset("change work works help cost costs play plays use release start look increase decrease".split())
_DO = re.compile(r"\b(?:do|does|did|will|would|can|could|should|to)\b", re.I)
# What something is found to be: "Is ibuprofen safe?"
_JUDGEMENT_WORDS = frozenset(
    "safe unsafe legal illegal good bad better worse dangerous harmful effective true real healthy".split()
)
_BE = frozenset("is are was were be".split())
_AUXILIARIES = _BE | frozenset("do does did has have had can could will would should may might must".split())
_TOPIC_CUES = frozenset("about of explain describe define research investigate".split())
_LATELY = frozenset("today tomorrow yesterday now lately instead too first".split())
_NO_NOUNS = frozenset((*STOP_WORDS, *_VERBS, *IRREGULAR, *HAPPENING, *_LATELY))
_CLAUSES = frozenset("how why when where if that whether because while as and".split())
# Initials that name an office or a figure, not somebody or something.
_INITIALS = frozenset("CEO CFO COO CTO CIO IPO EPS ETF ROI GDP R&D AGM FAQ PE P/E ESG HQ".split())
_CHUNK = re.compile(r"[^\W_]+(?:[-'’.&+/][^\W_]+)*|[^\w\s]", re.UNICODE)


class NameMention(NamedTuple):
    """A name and how it stands in its text."""

    text: str
    start: int
    quoted: bool = False
    place: bool = False  # after "in", "at", "to"
    beside: bool = False  # after a preposition: seldom what the sentence is about


def find_proper_names(text: str) -> list[str]:
    """Names in a text, without months, offices and words that may be capitalised only for standing first."""
    straight = text.replace("’", "'")
    alone = straight.strip(" ?!.,")
    return [
        name
        for name in find_names(straight)
        if name not in _INITIALS and fold(name.split()[0]) not in _MONTHS and any(map(str.isalpha, name))
        if not straight.startswith(name) or " " in name or name.isupper() or alone == name
    ]


def extend_with_noun(name: str, text: str) -> str:
    """ "The Hubble tension" is more than Hubble; in "did the Fed raise rates" it is the Fed that is spoken of."""
    said = re.search(rf"(?<!\w)(the )?{re.escape(name)} ([a-z][a-z-]{{2,}})(?:\s+([a-z]+)|(?!\w))", text)
    if " " in name or not said or said[2] in _NO_NOUNS or said[2].endswith(("ed", "ing", "ly")):
        return name
    first, last = ["", "", *map(fold, text[: said.start()].split())][-2:]
    after = said[3] or ""
    if after in HAPPENING or after in _AUXILIARIES or after.endswith("ed"):
        return f"{name} {said[2]}"
    asked_after = last in _BE and first in ("what", "who", "which")
    if last in _CLAUSES or (last in _AUXILIARIES and not asked_after):
        return name
    return f"{name} {said[2]}" if said[1] or (not after and (asked_after or last in _TOPIC_CUES)) else name


def find_mentions(text: str) -> list[NameMention]:
    """Names and quoted titles in order, with how they stand."""
    found = [
        NameMention(match[1], match.start(1), quoted=True) for match in _QUOTED.finditer(text) if match[1][:1].isupper()
    ]
    straight = text.replace("’", "'")
    for name in find_proper_names(text):
        start = straight.find(name)
        if not any(other.start <= start < other.start + len(other.text) for other in found):
            before = straight[:start]
            found.append(
                NameMention(name, start, place=bool(_PLACE.search(before)), beside=bool(_BESIDE.search(before)))
            )
    return sorted(found, key=lambda one: one.start)


def join_names(names: Sequence[str], joint: str = "and") -> str:
    """ "Apple, Tesla and Microsoft"."""
    return f" {joint} ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def to_possessive(name: str) -> str:
    return f"{name}'" if name.endswith("s") else f"{name}'s"


def find_times(text: str) -> list[str]:
    return [match.group() for match in _TIME.finditer(text)]


def is_person(name: str) -> bool:
    """Whether a name looks like a person's: two to four capitalised words and nothing else."""
    parts = name.split()
    return 2 <= len(parts) <= 4 and all(re.fullmatch(r"[A-Z][\w'’.-]*", part) for part in parts) and parts[0] != "The"


def find_noun_phrases(question: str) -> list[str]:
    """Runs of words that carry meaning, without the verbs at their ends: what a question may be about, in order."""
    runs: list[list[str]] = [[]]
    for token in _CHUNK.findall(question):
        plain = fold(token).removesuffix("'s")
        if plain == "of" and runs[-1] and runs[-1][-1][-1].isalnum():
            runs[-1].append(token)
        elif not token[0].isalnum() or plain in STOP_WORDS or "'" in plain:
            runs.append([])
        else:
            runs[-1].append(token)
    verbs = _VERBS if _DO.search(question) else _VERBS - _NOUNS_TOO
    last = verbs | _JUDGEMENT_WORDS | {"of", *IRREGULAR}
    found = []
    for run in runs:
        while run and (fold(run[0]) in _VERBS or fold(run[0]) == "of"):
            run = run[1:]
        while len(run) > 1 and (fold(run[-1]) in last or run[-1].endswith(("ed", "ly"))):
            run = run[:-1]
        if run and not (len(run) == 1 and (fold(run[0]) in IRREGULAR or len(run[0]) == 1)):
            found.append(" ".join(run))
    return found


# What a text speaks of by name.

ALIKE = 0.7  # a company's name and a misspelling of it
MOST_OPTIONS = 4

_DESCRIBED = re.compile(r"(?:the|that|this)\s", re.I)
_SIDES = re.compile(
    r"\bcompar\w+ (.{2,40}?) (?:and|with|to|against|vs\.?|versus) (.{2,40}?)[?.! ]*$|"
    r"^(.{2,40}?) (?:vs\.?|versus) (.{2,40}?)[?.! ]*$",
    re.I,
)
_AS_COMPANY = re.compile(
    r"\b(?:stocks?|shares?|revenues?|earnings|profits?|dividends?|market cap\w*|ceo|company|ticker|quarterly|sales)\b|"
    r"^(?:tell me (?:more )?about|what(?:'s| is) (?:happening|new|going on) (?:with|at)|"
    r"how (?:is|are) \w+ doing|(?:latest|recent) news|any news|news)\b",
    re.I,
)


def find_subjects(text: str, companies: CompanyResolver) -> tuple[str, ...]:
    """Companies by what people call them, and other names as written, in order of appearance."""
    found: dict[str, int] = {}
    mentions = companies.mentions(text)
    for mention in mentions:
        found.setdefault(mention.company.short, mention.start)
    said = [fold(part) for mention in mentions for part in (mention.text, mention.company.short)]
    straight = text.replace("’", "'")
    for name in find_proper_names(text):
        # "Russian tanks" are no documents on Russia.
        if fold(name) not in NATIONALITIES and not any(part in fold(name) or fold(name) in part for part in said):
            found.setdefault(extend_with_noun(name, straight), max(0, straight.find(name)))
    if found:
        return tuple(sorted(found, key=lambda name: found[name]))
    # Both sides of a comparison, where both are companies: "compare ford and gm" needs no capitals.
    match = _SIDES.search(text)
    sides = [side for side in match.groups() if side] if match else []
    both = [companies.resolve(side) or companies.resolve(side.upper()) for side in sides]
    return tuple(company.short for company in both if company) if len(both) == 2 and all(both) else ()


def is_company(name: str, companies: CompanyResolver) -> bool:
    """Whether a subject is one; "AI" is not, although somebody trades under it."""
    company = companies.resolve(name)
    return company is not None and fold(company.short) == fold(name)


def spell_out_companies(text: str, companies: CompanyResolver) -> str:
    """The text with what misspells or describes a company replaced by its name."""
    for mention in reversed(companies.mentions(text)):
        said, short = fold(mention.text), fold(mention.company.short)
        known = said in (short, *(ticker.lower() for ticker in mention.company.tickers))
        known = known or mention.text.isupper() or said in fold(mention.company.name) or short in said
        misspelt = not known and SequenceMatcher(None, said, short).ratio() >= ALIKE
        if misspelt or _DESCRIBED.match(mention.text):
            text = f"{text[: mention.start]}{mention.company.short}{text[mention.end :]}"
    return text


def find_company_options(text: str, companies: CompanyResolver) -> tuple[str, tuple[str, ...]]:
    """A name that several companies go by, where a company is meant, with those companies; else nothing."""
    if companies.mentions(text) or not _AS_COMPANY.search(text):
        return "", ()
    kind = r"(?!(?:company|firm|stock|business|corporation)\b)\w+ "
    for name in find_proper_names(text):
        # "The Delta", "the planet Mercury" and "Mercury (the planet)" say what is meant.
        said = re.escape(name)
        meant = re.search(rf"\bthe (?:{kind})?{said}\b|\b{said} \(|\b{said},? the (?:{kind.strip()})", text, re.I)
        if " " not in name and not meant and companies.resolve(name) is None:
            shorts = tuple(dict.fromkeys(company.short for company in companies.candidates(name)))
            if len(shorts) > 1:
                return name, shorts[:MOST_OPTIONS]
    return "", ()


# What an answer is for: it decides the style, the length, and what is asked besides.


class ReportUse(NamedTuple):
    style: Style
    words: int | None  # None: as long as it may be
    text: str  # the sub-question it adds
    told: str  # words of a person that mean it


DECISION = ReportUse(
    "executive", 800, "Which benefits, costs and risks of {topic} are known?",
    "decide decision choose choice buy purchase invest deal vote board manage executive strategy comply act",
)  # fmt: skip
BRIEFING = ReportUse(
    "executive", 500, "What is new about {topic}?",
    "brief present presentation talk meeting slides pitch interview memo summary explain",
)  # fmt: skip
PAPER = ReportUse(
    "academic", None, "Which studies and primary sources are there on {topic}?",
    "paper thesis dissertation journal academic essay science research study article review",
)  # fmt: skip
WORK = ReportUse(
    "technical", 1500, "Which technical details and figures of {topic} are given?",
    "build implement engineer develop code repair technical install myself practice work project",
)  # fmt: skip
LEARNING = ReportUse(
    "academic", 1000, "What is the background of {topic}?",
    "learn curious curiosity understand interest interested school class course keep fun know trip",
)  # fmt: skip

# Four for every field, in the words of its people.
_USES: dict[Field, dict[str, ReportUse]] = {
    "company": {"An investment or a deal": DECISION, "A meeting or a briefing": BRIEFING,
                "An article or a study": PAPER, "To keep up with the company": LEARNING},
    "law": {"To act on it or comply with it": DECISION, "A briefing or a memo": BRIEFING,
            "A thesis or an article": PAPER, "To understand the rules": LEARNING},
    "medicine": {"A decision to be made with a doctor": DECISION, "A talk or a briefing": BRIEFING,
                 "A paper or a review": PAPER, "To understand it": LEARNING},
    "software": {"A choice between tools": DECISION, "A talk or a briefing": BRIEFING,
                 "Building something with it": WORK, "To learn how it works": LEARNING},
    "science": {"A paper or a thesis": PAPER, "A talk or a class": BRIEFING,
                "Technical work with it": WORK, "To learn about it": LEARNING},
    "economy": {"A decision I have to make": DECISION, "A briefing or a presentation": BRIEFING,
                "A paper or an article": PAPER, "To learn about it": LEARNING},
    "place": {"A decision I have to make": DECISION, "A talk or a presentation": BRIEFING,
              "A paper or an article": PAPER, "To know the place": LEARNING},
    "general": {"A decision I have to make": DECISION, "A briefing or a presentation": BRIEFING,
                "A paper or a thesis": PAPER, "To learn about it": LEARNING},
}  # fmt: skip
_TO_DO = {"To do it myself": WORK, "A decision whether to do it": DECISION, "To explain it to others": BRIEFING,
          "To learn how it is done": LEARNING}  # fmt: skip

# A question that says itself what it is for.
USE_PATTERN = re.compile(
    r"\b(?:for|in|to) (?:a|an|my|our|the|next)\s+(?:\w+\s+){0,3}(?:decision|briefing|presentation|talk|meeting|paper|"
    r"thesis|dissertation|essay|article|class|course|memo|slides)\b|\b(?:to|help me|help us|must|have to|need to) "
    r"(?:decide|choose|learn|present|buy|invest)\b",
    re.I,
)
# What a question ends with and is not about: "for a short briefing", "for my talk next week".
ENDING = re.compile(
    r"[,;:]?\s+for (?:an?|my|our|next \w+'s|tomorrow's)\s+(?:[\w-]+\s+){0,3}?"
    r"(?:briefing|presentation|talk|meeting|memo|essay|thesis|dissertation)"
    r"(?:\s+(?:tomorrow|today|(?:next|this) \w+|on \w+))?(?=\s*[.?!]*$)",
    re.I,
)


def list_uses(field: Field, *, to_do: bool) -> dict[str, ReportUse]:
    return _TO_DO if to_do else _USES[field]


def parse_use(answer: str) -> ReportUse | None:
    """The one whose word comes first; None for a purpose of another kind."""
    kinds = {stem: use for use in (DECISION, BRIEFING, PAPER, WORK, LEARNING) for stem in stems(use.told)}
    return next((kinds[stem] for stem in stems(answer) if stem in kinds), None)
