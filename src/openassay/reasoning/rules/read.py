"""Reading without a model: which sentences of the passages answer a sub-question."""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from openassay.models.evidence import Passage
from openassay.models.plan import SubQuestion
from openassay.protocols import Embedder
from openassay.reasoning.base import Quote
from openassay.reasoning.rules.phrases import GENERIC, find_matter, strip_document_references, weigh_stems
from openassay.reasoning.rules.understand import classify_question
from openassay.text.days import tells_day
from openassay.text.injection import asks_for_advice, find_instructions, is_order
from openassay.text.quantities import find_quantities
from openassay.text.questions import YearRange, find_year_range, is_pointed
from openassay.text.relations import find_years
from openassay.text.sentences import TextSpan, is_statement, is_table_row, split_sentences
from openassay.text.words import STOP_WORDS, content_words, find_names, fold, jaccard, stem, stems, words

# A sentence with its context: whether it can be understood alone, and what its "it" or "the company" stands for.

MOST_BACK = 2  # sentences before one that may be needed to explain it
LONGEST_CONTEXT = 500  # characters of a sentence with those that explain it

# What kind of thing "the ..." speaks of again. Each word of a name tells its kind by one of these too.
_KINDS = {
    "company": "company firm group business corporation manufacturer retailer carmaker bank airline chain startup inc "
    "corp corporation ltd plc llc ag gmbh holdings co",
    "place": "city town village county district municipality suburb borough neighbourhood neighborhood province state "
    "country island",
    "water": "lake river reservoir bay sea glacier creek",
    "building": "station school building bridge house museum airport hotel church castle tower stadium theatre theater "
    "hospital library cathedral palace temple mill dam plant mall",
    "work": "film movie album song single book novel series show episode game play opera magazine newspaper",
    "body": "agency organisation organization association university college institute club team band party ministry "
    "department society union committee foundation council office",
    "event": "battle festival tournament war competition election conference",
    "other": "mountain ship vessel aircraft telescope satellite mission project road highway railway line "
    "species genus",
}
KIND_OF = {noun: kind for kind, nouns in _KINDS.items() for noun in nouns.split()}
_NOUN = "|".join(sorted(KIND_OF, key=len, reverse=True))
_AHEAD = (
    r"(?P<ahead>(?i:(?:in|by|during|since|at|on|as of|after|before|for|from|until) [^,;]{2,40}, )?"
    r"(?i:(?:today|now|currently|later|then|initially|originally|eventually|recently), )?)"
)
_POINTS = re.compile(
    rf"^{_AHEAD}(?P<word>(?i:it|its|he|his|she|her)|[Tt]h(?:e|is) (?P<noun>{_NOUN}))(?P<own>['’]s)?(?=[ ,])"
)
# "It is likely that" and "it took two years to" stand for nothing.
_NOTHING = re.compile(
    r"^it (?:is|was|has been|had been|will be|would be|may be|seems|appears|remains|takes|took|follows|turns out)\b"
    r"[^.;]{0,60}?\b(?:that|to|whether|how|who|when|until)\b",
    re.I,
)
# What needs its neighbour but is never put into other words.
_LEANS = re.compile(
    r"^(?:they|their|them|these|those|this|that|such|both|either|neither|another|the (?:latter|former|same)|"
    r"here|the (?:study|team|paper|survey|researchers|authors|report|result|results|difference|figure|increase|"
    r"decrease|decline|rise|move|deal|two|three|other|others))\b|"
    r"\b(?:in|during|at|of|on|by) (?:the same|that) (?:year|month|quarter|period|week|day|time|decade)\b|"
    r"^(?:the )?(?:following|next|previous|same) (?:year|month|quarter|week|day)\b",
    re.I,
)
_VERB = (
    r"(?:is|was|are|were|has|had|have|will|would|can|could|may|might|did|does|do|rose|fell|grew|made|won|led|said|says|"
    r"became|becomes|began|lies|lay|stands|stood|runs|ran|took|takes|gave|gives|held|holds|sold|sells|built|cut|sits|"
    r"makes|owns|employs|operates|covers|contains|consists|serves|offers|provides|produces|[a-z]+ed)"
)
_BETWEEN = re.compile(
    rf"^\.?(?: \([^)]{{0,80}}\))?(?:, [^,;]{{1,90}},)? (?:(?:also|now|currently|first|still|then|[a-z]+ly) )?{_VERB}\b"
)
_PLACED = re.compile(r"\b(?:in|near|at|of|on|within|outside|around|since|until|during)(?: the)? $")
_ARTICLE = re.compile(r"^(?:the|a|an)\b", re.I)
_SUFFIX = re.compile(r"\s*(?:[|–—]|\s-\s).*$|\s*\([^)]*\)\s*$")
# Words that open a sentence without an article and are no names: "Revenue rose."
_COMMON_OPENERS = re.compile(
    r"(?:tion|sion|ment|ness|ity|ing|ism|ance|ence|ship|ers|ors|ists|ies|sales|exports|imports)$|"
    r"^(?:revenue|income|profit|growth|demand|supply|output|inflation|unemployment|research|work|data|evidence|water|"
    r"energy|oil|gas|trade|traffic|people|many|some|most|several|one|each|all|total|net|gross|average|critics|"
    r"officials|researchers|scientists|experts|today|yesterday)$"
)


class QuoteStatement(NamedTuple):
    """A sentence as it may be told; `stands` unless a reader would have to ask what it speaks of."""

    text: str
    stands: bool


def needs_context(sentence: str) -> bool:
    """Whether a sentence needs another to be understood."""
    return bool(_LEANS.search(sentence)) or _find_pointer(sentence) is not None


# What a sentence cannot be understood by without knowing who speaks, or what stood before it.
_SPEAKER = frozenset("i me my mine myself you your yours yourself".split())
_ELSEWHERE = frozenset("this these those above below latter former aforementioned following".split())
_NEXT = frozenset("then anyway now actually".split())  # opens what goes on from a sentence before
_PERSONS = frozenset("he she they it him her them his hers their theirs its".split())


LONGEST_LABEL = 6  # words
# A line of code, a footnote or a caption begins with a sign.
_PROSE = re.compile(r"[\w\"“‘'(`@.]")


def stands_alone(sentence: str) -> bool:
    """Whether a reader who sees nothing else knows who speaks and of what: no "I" or "you", nothing that points to what
    stood before, and no pronoun before the first noun it could stand for."""
    if needs_context(sentence) or _DANGLING.match(sentence):
        return False
    if not _PROSE.match(sentence):
        return False
    # "Accessibility Guide: a guide for ..." is an entry of a list.
    label, colon, _ = sentence.partition(": ")
    if colon and len(label.split()) <= LONGEST_LABEL and all(not word[0].islower() for word in label.split()):
        return False
    said = [word.replace("’", "'").partition("'")[0] for word in words(sentence)]  # "I've" speaks of "I"
    such = any(word == "such" and then != "as" for word, then in pairwise([*said, ""]))
    if such or (said[:1] and said[0] in _NEXT) or _SPEAKER & set(said) or _ELSEWHERE & set(said):
        return False
    pronoun = next((at for at, word in enumerate(said) if word in _PERSONS), len(said))
    return pronoun == len(said) or any(word not in STOP_WORDS for word in said[:pronoun])


def find_context_start(text: str, pieces: Sequence[TextSpan], at: int) -> int:
    """Where the words begin that explain `pieces[at]`: at the nearest sentence before it that stands alone. The
    sentence's own start where it needs none, or has none in its paragraph."""
    if not needs_context(pieces[at].text):
        return pieces[at].start
    for back in range(at - 1, max(-1, at - 1 - MOST_BACK), -1):
        between = text[pieces[back].end : pieces[back + 1].start]
        whole = is_statement(pieces[back].text) and not is_table_row(pieces[back].text)
        if between.strip() or "\n\n" in between or not whole or pieces[at].end - pieces[back].start > LONGEST_CONTEXT:
            break
        if not needs_context(pieces[back].text):
            return pieces[back].start
    return pieces[at].start


def split_statements(quote: str, title: str = "", known: Collection[str] = ()) -> list[QuoteStatement]:
    """What a quote states, sentence by sentence, each naming what it speaks of. Sentences that only lead to one that
    could not be put so stay with it. `known` are names a single word may be taken for."""
    pieces = [piece.text for piece in split_sentences(quote)] or [quote]
    if is_table_row(quote) or not is_statement(pieces[-1]):
        return [QuoteStatement(quote, True)]
    if len(pieces) > 1 and needs_context(pieces[-1]):
        told = resolve_pointer(pieces[-1], pieces[:-1], title, known)
        first_stands = not needs_context(pieces[0]) and is_statement(pieces[0])
        return [QuoteStatement(told, True) if told else QuoteStatement(quote, first_stands)]
    stated = []
    for at, piece in enumerate(pieces):
        if is_statement(piece):
            told = resolve_pointer(piece, pieces[:at], title, known) if needs_context(piece) else piece
            stated.append(QuoteStatement(told or piece, bool(told)))
    return stated


def resolve_pointer(sentence: str, before: Sequence[str], title: str, known: Collection[str]) -> str:
    """The sentence with the name of what it points to; empty where that is not certain."""
    pointer = _find_pointer(sentence)
    if pointer is None or _LEANS.search(sentence):
        return ""
    kind = KIND_OF.get(fold(pointer["noun"])) if pointer["noun"] else None
    if before:
        # The subject of the nearest sentence that names one, if no other name but a place could be meant.
        person = pointer["word"].lower() in ("he", "his", "she", "her")
        said = next((one for one in reversed(before) if not needs_context(one)), "")
        article = "The " if said.startswith("The ") else ""
        bare = next(iter(find_names(said)), "").removeprefix("The ")
        name = article + bare
        if not bare or not said.startswith(name) or not _BETWEEN.match(said[len(name) :]):
            return ""
        # One capital at the start of a sentence proves nothing; a second one does.
        proper = len(bare.split()) > 1 or any(letter.isupper() or letter.isdigit() for letter in bare[1:])
        proper = proper or fold(bare) in map(fold, known) or not (article or _COMMON_OPENERS.search(fold(bare)))
        # The name tells its kind, or the sentence says what it is: "Orta is a lake".
        kinds = _find_kinds(name) or {KIND_OF[word] for word in words(said[len(name) :]) if word in KIND_OF}
        other = kind and kind not in kinds and (kinds or kind != "company" or _is_person(name))
        if not proper or person != _is_person(name) or other:
            return ""
        rivals = [one for one in find_names(said) if one not in name and (not person or _is_person(one))]
        if any(not _PLACED.search(said[: said.find(one)]) for one in rivals):
            return ""
    else:
        # A title that is nothing but a name, and tells that it is of the kind spoken of.
        name = _SUFFIX.sub("", title).strip()
        if kind is None or kind not in {KIND_OF.get(word.lower().strip("().")) for word in title.split()}:
            return ""
        small = {"of", "the", "and", "de", "la", "on", "in", "for"}
        named = all(word[0].isupper() or word[0].isdigit() or word in small for word in name.split())
        if not named or not 1 <= len(name.split()) <= 5 or re.search(r"[:;?!,\"]", name):
            return ""
    owned = pointer["own"] or pointer["word"].lower() in ("its", "his", "her")
    shown = f"{name}'{'' if name.endswith('s') else 's'}" if owned else name
    shown = shown if not pointer["ahead"] else re.sub(r"^The\b", "the", shown)
    return f"{pointer['ahead']}{shown}{sentence[pointer.end() :]}"


def _find_pointer(sentence: str) -> re.Match[str] | None:
    found = _POINTS.match(sentence)
    return None if found is None or _NOTHING.match(sentence) else found


def _is_person(name: str) -> bool:
    """Two or three capitalised words none of which tells another kind of thing."""
    parts = name.split()
    plain = all(part[0].isupper() for part in parts) and not any(c.isdigit() or c == "&" for c in name)
    return plain and 2 <= len(parts) <= 4 and not _ARTICLE.match(name) and not _find_kinds(name)


def _find_kinds(name: str) -> set[str]:
    return {kind for word in words(name) if (kind := KIND_OF.get(word.rstrip(".")) or KIND_OF.get(stem(word)))}


# What of its subject a question asks for: the population in "What is the population of Broken Bow?".

# Words of asking, which no text need have.
ASKING = GENERIC | frozenset(
    stems(
        "what's who's value amount figure change happen compare difference overview summary explain latest recent main "
        "known know given information detail background important name type kind many much long regard news "
        "development update event story situation happening matter"
    )
)
# Words that stand for each other in question and answer: a stock's price is what shares trade at.
_SAME = tuple(
    frozenset(stems(group))
    for group in (
        "stock share price trade trading",
        "revenue sales turnover",
        "profit earnings income",
        "ceo boss chief executive head",
        "population people inhabitants residents census",
        "born birth birthplace native",
        "die death died dead killed",
        "founder founded founding established formed created started begun",
        "headquarters headquartered based seat located",
        "location located lies situated",
        "employees staff workers workforce employs headcount",
        "area size covers covered large square",
        "height tall high elevation",
        "director directed filmmaker",
        "author wrote written writer novelist",
        "artist singer recorded performed band",
        "wife husband spouse married marriage",
        "cost price expensive",
        "cause reason because due",
        "opened opening inaugurated",
        "built constructed construction completed",
        "genre style",
        "profession occupation career",
        "party political member",
        "sport played player plays",
        "release released published",
        "shrink shrank shrunk decline dried fell",
        "repurchase repurchased buyback",
        "lawsuit litigation sued proceedings",
    )
)
# Short forms that are capitalised and yet no names.
_COMMON_NAME_PARTS = frozenset("high national royal new north south east west saint great old flight general".split())
_ROLES = frozenset("ceo cfo cto coo gdp eps ipo roi hq ebitda".split())
_QUOTED = re.compile(r"[\"“]([^\"”]{3,80})[\"”]")


class QuestionName(NamedTuple):
    """A name of a question: a quoted phrase, or the stems that tell it from others and its initials."""

    phrase: str
    stems: frozenset[str]
    short: str = ""

    def occurs_in(self, text: str, said: Collection[str]) -> bool:
        if self.phrase:
            return self.phrase in text
        return self.stems <= set(said) or (len(self.short) > 1 and self.short in text.replace(".", "").split())


class QuestionTarget(NamedTuple):
    """The names a question is about, and for each word of what it asks the stems that will do."""

    names: tuple[QuestionName, ...]
    matter: tuple[frozenset[str], ...]

    def coverage(self, said: Iterable[str]) -> float:
        """How much of what is asked a sentence with these stems speaks to; all of it where nothing is."""
        have = set(said)
        return sum(bool(word & have) for word in self.matter) / len(self.matter) if self.matter else 1.0


def parse_target(question: str, context: str) -> QuestionTarget:
    """`context` is the question with its topic, which may name what the question does not."""
    quoted = [match[1] for match in _QUOTED.finditer(context)]
    called = [name for name in find_names(_QUOTED.sub(" ", context)) if fold(name) not in _ROLES]
    of_names = {part for name in [*quoted, *called] for part in stems(name)}
    own = dict.fromkeys(stem(word) for word in content_words(strip_document_references(question)) if not word.isdigit())
    told = [QuestionName(_normalize_words(phrase), frozenset()) for phrase in quoted]
    for name in called:
        # "Zook" of "Zook House", the last of a person's names, all else of the rest.
        parts = [part for part in words(name) if part not in STOP_WORDS]
        telling = [part for part in parts if part not in KIND_OF and part not in _COMMON_NAME_PARTS]
        telling = telling[-1:] if telling == parts and len(parts) <= 3 else telling
        initials = "".join(part[0] for part in parts)
        told.append(QuestionName("", frozenset(map(stem, telling)) - ASKING, initials))
    return QuestionTarget(
        tuple(name for name in told if name.phrase or name.stems),
        tuple(find_synonyms(word) for word in own if word not in of_names | ASKING),
    )


def _normalize_words(text: str) -> str:
    return " ".join(words(text))


def find_synonyms(word: str) -> frozenset[str]:
    """A stem with those that may stand in its place."""
    return frozenset({word}).union(*(group for group in _SAME if word in group))


# How far a text has the words that were asked for, rare ones counting most.


def compute_recall(wanted: Mapping[str, float], text: str, weights: Mapping[str, float]) -> float:
    """The weighted share of the wanted stems that a text has; a stem the corpus lacks is not held against it."""
    have = set(stems(text))
    weighed = {word: share * weights[word] for word, share in wanted.items() if word in weights}
    total = sum(weighed.values())
    return sum(weight for word, weight in weighed.items() if word in have) / total if total else 0.0


# Encoding is the slow part (under a hundred sentences a second on two cores), so words choose what is encoded.
MOST_CANDIDATES = 60
# What the encoder would say, from words alone: a pointed question is answered in its own words, and encoding takes 1 s.
# Of 369 candidates for seven questions the middle one has .35 for its words and .42 for its meaning, every tenth more
# than .71 and .61.
LEAST_MEANING, MEANING_OF_WORDS = 0.25, 0.45
FLOOR = 0.34  # below this a sentence is about something else
NEAR_BEST = 0.8  # a pointed question is answered by its best sentences; an overview takes all that is above the floor
NEAR_BEST_OF_ITS_OWN = 0.4  # for the best sentence of a document: each is heard
TOO_ALIKE = 0.75  # two quotes this alike from one document say the same
PER_DOCUMENT = 3  # quotes from one document, so that others are heard too
OFF_MATTER = 0.22  # taken from what names the subject and says nothing of what is asked of it, where others do
UNNAMED = 0.1  # taken from what stands in a document that does not name the subject
OTHER_YEARS = 0.2  # taken from what speaks of other years than those asked about
FEEDBACK_FROM, FEEDBACK = 5, 0.35  # the best sentences pull the question towards their own words

_DANGLING = re.compile(
    r"^(?:it|its|they|their|this|these|that|those|he|she|his|her|such|both|here|there|however|but|also|thus|hence|"
    r"therefore|instead|nevertheless|meanwhile|similarly|likewise|moreover|furthermore|in addition|as a result|"
    r"for example|for instance|by contrast|in contrast|on the other hand|either|neither|another|"
    r"the (?:latter|former|same|result|difference|second|third|other|new|study|team|company))\b",
    re.I,
)
_POINTER = re.compile(
    r"^(?:refer to|see|please see|for (?:a|an|more|further|additional)\b[^.]*\b(?:see|refer to))\b|"
    r"\b(?:refer to|see) (?:item|note|part|section|figure|table|appendix)\b",
    re.I,
)
_CAUSAL = re.compile(
    r"\b(?:because|due to|caused? by|causes?|caused|driven by|drove|owing to|result(?:s|ed)? (?:of|from)|explain\w*|"
    r"reason\w*|attribut\w+|stems? from|reflect\w*|partially offset|primarily|systematic|bias\w*|account for)\b",
    re.I,
)
_FUTURE = re.compile(
    r"\b(?:will|expect\w*|plan(?:s|ned)?|schedul\w+|forecast\w*|by (?:19|20)\d{2}|due in|aims?)\b", re.I
)
_AMOUNT = re.compile(
    r"\bhow (?:much|many|fast|big|large|long|far|high|old|often|deep|tall|wide|heavy|hot|cold|strong|expensive)\b|"
    r"\bfigures?\b|"
    r"\b(?:value|price|rate|cost|size|number) of\b|\bhow (?:did|has|have|do|does) .*\bchang",
    re.I,
)
_TOTAL = re.compile(r"\b(?:total|overall)\b", re.I)
_WHEN = re.compile(r"^when\b")
_WHEN_WILL = re.compile(r"^when (?:will\b|(?:is|are)\b.*\b(?:going to|expected|due)\b)")
_WHY = re.compile(r"^why\b|\bdrove\b|\bexplan|\bcause|\breason")


class _Candidate(NamedTuple):
    passage: int
    piece: TextSpan
    words: float


def read_passages(
    question: SubQuestion,
    passages: Sequence[Passage],
    limit: int,
    embedder: Embedder,
    titles: Mapping[str, str] | None = None,
) -> list[Quote]:
    """The best sentences, most relevant first, without repeating one document's own words. `titles` are those of the
    documents: they may name what the text calls "it"."""
    wanted = strip_document_references(question.in_context)
    own = set(stems(strip_document_references(question.text)))
    target = parse_target(question.text, question.in_context)
    named = set()
    for passage in passages:
        text = f"{(titles or {}).get(passage.document, '')}\n{passage.text}"
        plain, said = _normalize_words(text), set(stems(text))
        if not target.names or any(name.occurs_in(plain, said) for name in target.names):
            named.add(passage.document)
    # Where most of what is asked about is named nowhere, what is left would answer for something else.
    asked, there = own - ASKING, {word for passage in passages for word in stems(passage.text)}
    if not named or 2 * sum(not find_synonyms(word) & there for word in asked) > len(asked):
        return []
    ranked = _rank_by_words(wanted, own, passages)
    # A row of a table that has nothing of what is asked has the subject's name and the year, as all its rows do.
    ranked = [one for one in ranked if not is_table_row(one.piece.text) or target.coverage(stems(one.piece.text))]
    candidates = [one for one in ranked if could_answer(question.text, one.piece.text)][:MOST_CANDIDATES]
    if not candidates:
        return []
    if is_pointed(question.text):
        meaning = [LEAST_MEANING + MEANING_OF_WORDS * candidate.words for candidate in candidates]
    else:
        meaning = _score_meaning(wanted, candidates, embedder)
    weigh = _make_weigher(question, [passage.document in named for passage in passages], candidates)
    scored = sorted(
        ((weigh(candidate, cosine), candidate) for candidate, cosine in zip(candidates, meaning, strict=True)),
        key=lambda item: (-item[0], item[1].passage, item[1].piece.start),
    )
    # A pointed question is answered by its best sentences and by the best of each document.
    pointed = not question.broad and classify_question(question.text) != "overview" and bool(target.matter)
    floor, first_floor = (max(FLOOR, share * pointed * scored[0][0]) for share in (NEAR_BEST, NEAR_BEST_OF_ITS_OWN))
    firsts: dict[str, _Candidate] = {}
    for _, candidate in scored:
        firsts.setdefault(passages[candidate.passage].document, candidate)
    kept = [
        (score, candidate)
        for score, candidate in scored
        if score >= (first_floor if firsts[passages[candidate.passage].document] is candidate else floor)
    ]
    # What speaks of other years than those asked about counts only where nothing else is left.
    period = find_year_range(question.in_context)
    timely = [item for item in kept if not _is_other_period(period, item[1].piece.text)]
    return _select_distinct(timely or kept, passages, limit)


def _is_other_period(period: YearRange | None, text: str) -> bool:
    """A row of a table may be of a fiscal year, whose first quarter ends in the year before."""
    said = find_years(text)
    told = said | {year + 1 for year in said} if is_table_row(text) else said
    return period is not None and bool(said) and not period.overlaps(told)


def _rank_by_words(question: str, own: set[str], passages: Sequence[Passage]) -> list[_Candidate]:
    """Sentences of passages with at least one of the sub-question's own words: its topic alone makes no answer."""
    counts = Counter(word for passage in passages for word in set(stems(passage.text)))
    weights = {word: math.log(1 + len(passages) / (1 + count)) for word, count in counts.items()}
    wanted = weigh_stems(question)
    found: dict[str, _Candidate] = {}
    for number, passage in enumerate(passages):
        if own and not own & set(stems(passage.text)):
            continue
        around = compute_recall(wanted, passage.text, weights)
        # Orders to a machine tell nothing of the subject. A sentence on "it" comes with those before it.
        orders, pieces = set(find_instructions(passage.text)), split_sentences(passage.text)
        for at, piece in enumerate(pieces):
            if not is_statement(piece.text) or piece in orders or repeats_question(question, piece.text):
                continue
            start = find_context_start(passage.text, pieces, at)
            if any(start <= order.start < piece.start for order in orders):
                start = piece.start
            text = passage.text[start : piece.end]
            score = 0.75 * compute_recall(wanted, text, weights) + 0.25 * around
            found.setdefault(f"{passage.document} {text}", _Candidate(number, TextSpan(start, piece.end, text), score))
    return sorted(found.values(), key=lambda candidate: -candidate.words)


_INTERROGATIVES = frozenset("how what when where which who whom whose why".split())
FEWEST_ASKING = 5  # words of a question, below which a statement may have them in a row by chance


def repeats_question(question: str, sentence: str) -> bool:
    """Tell whether a sentence has the question itself in it, as pages have that are written to be found: "Now you know
    how many ships there are"."""
    asked = words(question.rpartition(": ")[2])
    if len(asked) < FEWEST_ASKING or asked[0] not in _INTERROGATIVES:
        return False
    return f" {' '.join(asked)} " in f" {' '.join(words(sentence))} "


def could_answer(question: str, sentence: str) -> bool:
    """A question for a time needs one in its answer; an order answers only who asks what to do."""
    plain = fold(question)
    if is_order(sentence) and not asks_for_advice(question):
        return False
    # A date, a clock time, a weekday, or four digits that can be a year: before 1900 they are read as a plain number.
    found = find_quantities(sentence) if _WHEN.match(plain) else []
    dated = any(quantity.kind in ("year", "date", "time", "decade") for quantity in found)
    years = [sentence[one.start : one.end] for one in found if one.kind == "number" and 1000 <= one.value <= 2100]
    told = dated or tells_day(sentence) or any(re.fullmatch(r"\d{4}", digits) for digits in years)
    if _WHEN.match(plain) and not told:
        return False
    return not _WHEN_WILL.match(plain) or bool(_FUTURE.search(sentence))


def _score_meaning(question: str, candidates: Sequence[_Candidate], embedder: Embedder) -> list[float]:
    """Cosines to the question, moved a little towards its best answers: their words are the topic's own."""
    import numpy as np

    vectors = embedder.embed([question, find_matter(question), *(candidate.piece.text for candidate in candidates)])
    asked, said = vectors[:2].mean(axis=0), vectors[2:]
    first = 0.5 * (said @ asked) + 0.5 * np.array([candidate.words for candidate in candidates], dtype=np.float32)
    best = first.argsort()[::-1][:FEEDBACK_FROM]
    moved = asked + FEEDBACK * said[best].mean(axis=0)
    moved /= (moved @ moved) ** 0.5
    cosines: list[float] = (said @ moved).tolist()
    return cosines


def _make_weigher(
    question: SubQuestion, named: Sequence[bool], candidates: Sequence[_Candidate]
) -> Callable[[_Candidate, float], float]:
    """Words and meaning, plus what an answer of the asked kind must have."""
    amount, why = bool(_AMOUNT.search(question.text)), bool(_WHY.search(fold(question.text)))
    wanted, period = parse_target(question.text, question.in_context), find_year_range(question.in_context)
    most = max(wanted.coverage(stems(candidate.piece.text)) for candidate in candidates)

    def weigh(candidate: _Candidate, cosine: float) -> float:
        text = candidate.piece.text
        score = 0.35 * candidate.words + 0.65 * max(0.0, cosine)
        score -= OFF_MATTER * (most - wanted.coverage(stems(text)))
        score -= 0.0 if named[candidate.passage] else UNNAMED
        if amount:
            figures = [quantity for quantity in find_quantities(text) if quantity.kind not in ("year", "date")]
            score += 0.12 if any(one.unit or one.kind in ("percent", "money") for one in figures) else -0.08
            score += 0.12 if _TOTAL.search(text) else 0.0  # an unqualified question is about the whole
        if period and find_years(text):
            score += -OTHER_YEARS if _is_other_period(period, text) else 0.05
        if why:
            score += 0.10 if _CAUSAL.search(text) else -0.05
        if _DANGLING.match(text) or (question.broad and not stands_alone(text)):
            score -= 0.15  # without its neighbour the reader cannot tell what it speaks of
        if _POINTER.search(text):
            score -= 0.25  # it says where something is told, not what
        return min(1.0, max(0.0, score))

    return weigh


def _select_distinct(
    scored: Sequence[tuple[float, _Candidate]], passages: Sequence[Passage], limit: int
) -> list[Quote]:
    kept: list[tuple[str, Quote]] = []
    taken: list[_Candidate] = []
    for score, candidate in scored:
        if len(kept) >= limit:
            break
        document = passages[candidate.passage].document
        mine = [quote.text for other, quote in kept if other == document]
        if len(mine) >= PER_DOCUMENT or any(jaccard(candidate.piece.text, text) >= TOO_ALIKE for text in mine):
            continue
        # A sentence may be offered twice, alone and as the lead of the next.
        near = [other.piece for other in taken if other.passage == candidate.passage]
        if any(candidate.piece.start < other.end and other.start < candidate.piece.end for other in near):
            continue
        taken.append(candidate)
        kept.append((document, Quote(passage=candidate.passage, text=candidate.piece.text, relevance=round(score, 4))))
    return [quote for _, quote in kept]
