"""Messages that are only a part of a question: "What about Tesla?", "And in 2023?", "the lowest?", "compare them"."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from openassay.models.plan import ThreadMessage
from openassay.protocols import CompanyResolver
from openassay.reasoning.rules.phrases import (
    find_company_options,
    find_mentions,
    find_noun_phrases,
    find_subjects,
    is_person,
    join_names,
    to_possessive,
)
from openassay.reasoning.rules.references import (
    PRONOUN,
    Discourse,
    Topic,
    add_article,
    resolve_former_latter,
    resolve_references,
)
from openassay.text.sentences import split_sentences
from openassay.text.small_talk import is_cancellation, is_gibberish, is_indifferent, is_small_talk
from openassay.text.words import STOP_WORDS, content_words, fold, stems, words

# A question with the answers to clarifying questions worked in.

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
MOST_TOPIC_WORDS = 4  # of a message that is no more than a topic
_THE_ONE = re.compile(r"^the one(?= (?:that|which|who|behind|making)\b)", re.I)
_ORDINALS = {
    "1": 0, "first": 0, "one": 0, "former": 0, "2": 1, "second": 1, "two": 1, "latter": 1, "3": 2, "third": 2, "4": 3,
    "fourth": 3,
}  # fmt: skip
_THE = re.compile(r"^(?:the|that|this|an?)\s+", re.I)
_ANSWER_LEAD = re.compile(
    r"^(?:(?:i'?m? (?:mean|meant|am asking|asking|want)|it'?s|that'?s|about|the company is|i want)\s+)+"
    r"(?:about\s+|for\s+)?",
    re.I,
)


def is_vague(text: str) -> bool:
    """Whether nothing is said but "that thing"."""
    return bool(VAGUE.search(text)) and not content_words(_FILLER.sub(" ", VAGUE.sub(" ", text)))


def merge_answers(asked: str, answers: tuple[str, ...], companies: CompanyResolver) -> str:
    """Who says twice what fits none of the companies on offer means something else by the name."""
    refused = 0
    for answer in answers:
        bare, before = "" if is_indifferent(answer) else " ".join(answer.split()), ""
        while bare != before:
            before, bare = bare, _OPENING.sub("", bare)
        name, shorts = find_company_options(asked, companies)
        if not name or not bare:
            asked = _merge_answer(asked, bare, companies)
        elif chosen := _choose_company(name, shorts, bare, companies):
            asked = _replace_name(asked, name, chosen)
        elif _QUESTION.match(bare):
            asked = bare
        elif not (is_small_talk(bare) or is_gibberish(bare)):
            refused += 1
            asked = _replace_name(asked, name, f"{name} ({bare.rstrip('?!. ')})") if refused > 1 else asked
    return asked


def _merge_answer(asked: str, answer: str, companies: CompanyResolver) -> str:
    """'Tell me about the company' + 'Apple' is 'Tell me about Apple'; another question takes the place of the first."""
    if not answer or is_small_talk(answer) or is_gibberish(answer) or set(words(answer)) <= set(words(asked)):
        return asked
    if not content_words(asked) or is_gibberish(asked):
        return answer
    if _QUESTION.match(answer) and content_words(answer):
        gap = PRONOUN.search(answer) if len(asked.split()) <= MOST_TOPIC_WORDS else None
        return _fill_gap(answer, gap, asked.rstrip("?!. ")) if gap else answer
    meant = _THE_ONE.sub("the company", _ANSWER_LEAD.sub("", answer))
    company = companies.resolve(meant)
    subjects = find_subjects(meant, companies) or ((company.short,) if company else ())
    if subjects and (gap := VAGUE.search(asked) or PRONOUN.search(asked)):
        return _fill_gap(asked, gap, subjects[0])
    if len(meant.split()) > 6:
        return meant
    if VAGUE.search(meant) and not subjects:
        return asked
    return f"{asked.rstrip('?!. ')} ({meant.rstrip('?!. ')})"


def _fill_gap(asked: str, gap: re.Match[str], subject: str) -> str:
    owned = gap.group().lower() in ("its", "their", "theirs", "his", "her", "hers")
    return f"{asked[: gap.start()]}{to_possessive(subject) if owned else subject}{asked[gap.end() :]}"


def _choose_company(name: str, shorts: tuple[str, ...], answer: str, companies: CompanyResolver) -> str:
    """One of several by its name, its place in the list, or a word of its name; or what else goes by that name."""
    place = next((_ORDINALS[word] for word in fold(answer).strip(" .!").split() if word in _ORDINALS), None)
    if place is not None and len(answer.split()) <= 3 and place < len(shorts):
        return shorts[place]
    meant = _ANSWER_LEAD.sub("", answer).rstrip("?!. ")
    if company := companies.resolve(meant) or companies.resolve(f"{name} {_THE.sub('', meant)}"):
        return company.short
    # The only option that has a word of the answer in what it is called or registered as.
    wanted = set(stems(meant)) - set(stems(name))
    called = {company.short: f"{company.short} {company.name}" for company in companies.candidates(name)}
    fitting = [short for short in shorts if wanted & set(stems(called.get(short, short)))]
    if len(fitting) == 1:
        return fitting[0]
    says_more = set(words(meant)) - STOP_WORDS > set(words(name)) and len(meant.split()) <= MOST_TOPIC_WORDS
    return meant if says_more else ""


def _replace_name(asked: str, name: str, chosen: str) -> str:
    return re.sub(rf"\b{re.escape(name)}\b", lambda _: chosen, asked, count=1)


# Condensing older turns of a thread into a few lines.

LONGEST_SUMMARY = 2000
ASKED, ANSWERED = "Asked: ", "Answered: "


def condense(turns: Sequence[ThreadMessage], summary: str) -> str:
    """The earlier summary, then each question with the first sentence of its answer; oldest lines go first."""
    lines = summary.splitlines()
    for turn in turns:
        first = next((piece.text for piece in split_sentences(turn.content)), turn.content)[:200]
        lines.append(f"{ASKED if turn.role == 'user' else ANSWERED}{first}")
    while lines and len("\n".join(lines)) > LONGEST_SUMMARY:
        lines.pop(0)
    return "\n".join(lines)


def parse_summary(summary: str) -> list[ThreadMessage]:
    """The turns a summary tells of, as far as they can be told; other words are taken as an answer."""
    turns = []
    for line in filter(str.strip, summary.splitlines()):
        asked = line.startswith(ASKED)
        content = line.removeprefix(ASKED).removeprefix(ANSWERED)
        turns.append(ThreadMessage(role="user" if asked else "assistant", content=content))
    return turns


# Requests about the form of an answer: "shorter please", "as a table", "in German". They name no subject.

_NUMBER = r"(?:(?:about |at most |only )?\d{1,5}|an?|a few|a single|one|two|three|four|five|six|ten|half a)"
_LENGTH = re.compile(
    rf"\b(?:in|to|with|within|under|using|into) {_NUMBER} (?:short |simple )?(?:word|sentence|paragraph|line|page)s?\b"
)
_MEASURED = re.compile(r"\b(?:\d{1,5} words?|(?:\d{1,3}|one|two|three|half a|a) pages?)\b")  # what a report can keep to
_SHAPE = (
    r"tables?|(?:bullet(?:ed)? |numbered |short |simple )?lists?|bullets|bullet points?|timeline|chart|diagram|essay|"
    r"paragraphs?|markdown|json|csv|html|outline|summary|tweet|e-?mail|poem|story|prose|key points"
)
_LANGUAGE = (
    "english german deutsch french spanish italian portuguese dutch polish russian ukrainian chinese mandarin japanese "
    "korean arabic hebrew turkish greek swedish danish norwegian finnish czech hungarian romanian hindi latin"
)
_ASKED_FOR = re.compile(
    r"\b(?:"
    r"(?:(?:a (?:bit|little|lot)|much|even) )?(?:shorter|longer|briefer|simpler|clearer)|"
    r"(?:more|less) (?:concise|brief|simple|compact|technical|formal|readable|complicated)(?:ly)?|"
    r"too (?:long|short|complicated)|briefly|concisely|simply|in (?:short|brief|full|a nutshell)|tl;? ?dr|eli5|"
    r"(?:in|with|using) (?:simple|simpler|plain|easy|other|different|layman'?s?|fewer|your own) "
    r"(?:terms|words|english|language|sentences)|"
    rf"(?:in|as|into|with|in the form of)(?: an?)? (?:{_SHAPE})|"
    rf"(?:in|into|to|auf) (?:{'|'.join(_LANGUAGE.split())})|"
    r"(?:an? |the )?(?:(?:short|brief|quick) )?summary|summari[sz]e|sum (?:it |that |this |all that )?up|recap|shorten|"
    r"simplify|translate|repeat|rephrase|reword|rewrite|paraphrase|again|once (?:more|again)|one more time|"
    r"(?:like|as if) i(?:'m| am| was| were) (?:five|5|a child|a kid)|"
    r"(?:to|for) (?:an? )?(?:child|children|kids?|beginners?|laymen|layman|five[- ]year[- ]old)"
    r")(?!['\w-])"
)
_BESIDES = frozenset(
    "please pls thanks and but or ok okay now then so just can could would will you i i'd want need like to have let "
    "me us get give show do make put say write tell explain answer present format turn convert describe it that this "
    "all of them these the a an your my last above previous whole answer report text result reply version "
    "explanation one for in with as time instead if possible more".split()
)


def asks_for_form(text: str) -> bool:
    """Whether nothing is asked for but another form of the last answer."""
    plain = " ".join(fold(text).replace("’", "'").split())
    rest = _ASKED_FOR.sub(" ", _LENGTH.sub(" ", plain))
    return rest != plain and all(word.strip(".,!?;:") in _BESIDES | {""} for word in rest.split())


# Messages that are no more than "Why?", "How?" or "When?", asked of the last question.

_BARE = re.compile(
    r"^(?:(?:and|but|so|ok(?:ay)?)[,]?\s+)*(?:(why|how|when|where|since when|why not)|how come|why so|explain why|"
    r"why (?:is|was) (?:that|this|it)(?: so)?|for what reason|(?:what(?:'s| is) the |the )?reasons?)[\s?.!]*$",
    re.I,
)
WRAPPED = re.compile(r"(?:why|how|when|where|since when|why not)\? \((.+)\)", re.I)
_BE_OR_DO = r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)"
_ASKING = re.compile(rf"^(?:why|when|where|how(?: (?:much|many|long|far|often|well))?)\s+(?={_BE_OR_DO}\b)", re.I)
_LEADING_VERB = re.compile(rf"{_BE_OR_DO}\b", re.I)
_DOING = re.compile(r"\b(?:doing|going|faring|performing)(?: (?:today|now|lately|currently|so far))?$", re.I)
_COMPARED = re.compile(r"^(?:please )?compar\w+ |\bcompare$", re.I)
# What is asked for as a whole, with the name or the noun that is asked about.
_WHOLE = re.compile(
    r"^(?:please )?(?:tell me (?:more )?about|describe|explain|give me an? (?:overview|summary) of|research|"
    r"investigate|(?:what|how) about|what(?:'s| is) (?:happening|going on|new) (?:with|at|in)|"
    r"what(?:'s| is| are| was| were)) (.{2,})$",
    re.I,
)
_HAPPENING = re.compile(r"\b(?:happening|going on|new) (?:with|at|in)\b", re.I)
_CHOICE = re.compile(r"^(?:which|who)\s+(?:one\s+)?(?:has|have|had|is|are|was|were)\b", re.I)


def complete_reason(asked: str, so_far: Discourse) -> str | None:
    """ "Why?" is "Why did sales fall?" after "Did sales fall?", and "What explains it?" after "What is acid rain?" """
    bare = _BARE.match(asked.replace("’", "'"))
    if not bare or not so_far.asked:
        return None
    word = (bare[1] or "why").capitalize()
    wrapped = WRAPPED.fullmatch(so_far.asked)
    last = (wrapped[1] if wrapped else so_far.asked).rstrip("?!. ")
    rest = _ASKING.sub("", last)
    if _LEADING_VERB.match(rest) and word != "Why not":
        so = " so" if word == "Why" and rest != last and _DOING.search(rest) else ""
        return f"{word} {rest[:1].lower()}{rest[1:]}{so}?"
    about = f"{so_far.topic.name}: " if so_far.topic and not so_far.topic.occurs_in(last) else ""
    if word == "Why" and not about:
        if so_far.group and _COMPARED.search(last):
            return f"Why do {join_names(so_far.group)} differ?"
        if _CHOICE.match(last):
            return f"What explains {last[:1].lower()}{last[1:]}?"
        if whole := _WHOLE.match(last):
            happening = _HAPPENING.search(last) or (len(so_far.latest) == 1 and whole[1] == so_far.latest[0])
            return f"What explains {'what is happening with ' if happening else ''}{whole[1]}?"
    return f"{word}? ({about}{last})"


# Messages that are no more than what somebody or something has: "their CEO?", "and the market cap?".

_ROLES = {
    "Who is": "ceo|cfo|coo|cto|chair(?:man|woman|person)?|president|(?:co-?)?founder|owner|boss|head|leader|director|"
    "chief executive(?: officer)?|inventor|parent(?: company)?|wife|husband|spouse|father|mother|successor|predecessor",
    "Who are": "ceos|(?:co-?)?founders|owners|leaders|directors|executives|competitors|rivals|customers|suppliers|"
    "shareholders|investors|parents|children|board(?: of directors| members)?",
    "Where is": "headquarters?|hq|head office|seat",
    "Where are": "offices|factories|plants|stores",
    "What is": "revenue|turnover|(?:stock|share) price|market cap(?:itali[sz]ation)?|market share|valuation|debt|"
    "(?:(?:net|operating) )?(?:income|profit|margin)|profit margin|cash flow|dividend|eps|p/e ratio|net worth|"
    "headcount|ticker(?: symbol)?|number of employees|business model",
    "What are": "revenues|profits|earnings|sales|margins|results|products|financials|subsidiaries|brands",
}
_ADJECTIVE = r"(?:(?:current|new|former|first|latest|annual|quarterly|yearly|total|main|biggest|largest) )?"
_PLURAL = {"Who is": "Who are", "Where is": "Where are", "What is": "What are"}
_KINDS = {opening: re.compile(f"{_ADJECTIVE}(?:{roles})", re.I) for opening, roles in _ROLES.items()}
_MESSAGE = re.compile(
    r"(?:(?:and|but|so|ok|what about|how about)[,]? )*(?P<whose>(?:their|its|his|her|the) )?"
    rf"(?P<role>{_ADJECTIVE}(?:{'|'.join(_ROLES.values())}))(?P<many>s?)[ ?!.]*",
    re.I,
)


def complete_role(asked: str, so_far: Discourse) -> str | None:
    """ "Who is Apple's CEO?"; after "What was Apple's profit in 2022?", "and revenue?" is of 2022 too."""
    found = _MESSAGE.fullmatch(asked.replace("’", "'"))
    whose = ((found["whose"] if found else None) or "").strip().lower()
    topic = so_far.current or (so_far.topic if whose in ("their", "its") else None)
    owner = join_names(so_far.group) if whose == "their" and so_far.group else topic.name if topic else ""
    if not found or not owner:
        return None
    role = found["role"]
    opening, kind = next((opening, kind) for opening, kind in _KINDS.items() if kind.fullmatch(role))
    if found["many"]:
        return f"{_PLURAL.get(opening, opening)} {to_possessive(owner)} {role}s?"
    before = re.compile(rf"(?<={re.escape(to_possessive(owner))} )(?:{kind.pattern})\b", re.I)
    if before.search(so_far.asked):
        return before.sub(lambda _: role, so_far.asked, count=1)
    return f"{opening} {to_possessive(owner)} {role}?"


MORE = re.compile(
    r"^(?:please\s+)?(?:(?:can|could) you\s+)?(?:(?:tell|give) me\s+)?(?:some\s+)?(?:more|go on|continue|elaborate|"
    r"expand on (?:that|this)|go deeper|keep going|more (?:details?|info(?:rmation)?|on (?:that|this|it)|"
    r"about (?:that|this|it|them|him|her)))(?:,? please)?[\s.!?]*$",
    re.I,
)
ELSE = re.compile(
    r"^(?:and\s+)?(?:is there\s+)?(?:anything|what|something) else(?: of (?:note|interest)| interesting)?[\s.!?]*$",
    re.I,
)
OTHERS = re.compile(
    r"^(?:(?:and|but|so|ok|okay)[,]?\s+)*(?:(?:what|how) about|what of|and|same for)?\s*(?:for\s+)?(?:all\s+)?the\s+"
    r"(?:others?|rest|other (?:one|two|three|companie|compan|firm|name)(?:y|s|ies)?)(?: of them)?[\s?.!]*$",
    re.I,
)
_WHAT_ABOUT = re.compile(
    r"^(?:(?:and|but|so|ok|okay|no|oh|sorry|then|also)[,.]?\s+)*(?:(?:what|how) about|what of|i mean|i meant|same for|"
    r"the same for|and for|and)\s+(.{2,60}?)[\s?.!]*$",
    re.I,
)
_PART = re.compile(
    r"^(?:and|but|so)?\s*((?:in|for|since|during|from|by|between|before|after|at)\s+.{2,40}?)[\s?.!]*$", re.I
)
_WHEN = re.compile(
    r"^(?:(?:in|for|since|during|from|by)\s+)?(?:the\s+)?(?:(?:first|second|third|fourth|last|next|this|previous)\s+)?"
    r"(?:q[1-4]\s*)?(?:(?:19|20)\d{2}|year|quarter|month|week|decade|half)$",
    re.I,
)
_PERIOD = re.compile(
    r"\b(?:in|for|since|during|from|by)\s+(?:q[1-4]\s*)?(?:19|20)\d{2}\b|\b(?:in|during|over)?\s*\b(?:last|this|next|previous)\s+"
    r"(?:year|quarter|month|week|decade)\b",
    re.I,
)
_AUXILIARY = re.compile(r"\b(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)\b", re.I)
_COMPARE = re.compile(
    r"\b(?:the two|both|each other|one another|these two|those two|the both)\b|^how do they (?:compare|differ)|"
    r"^(?:please\s+)?compare(?: them| these| both)?(?: all)?[\s.!?]*$|"
    r"^which (?:one |of (?:them|these|those|the (?:two|three|four)) )?"
    r"(?:is|was|are|has|had|does|did|makes|pays|offers|performed)\b|"
    r"^who (?:is|was|has|had|makes|pays) (?:the )?(?:\w{2,}er|\w{2,}est|more|most|worse|worst)\b",
    re.I,
)
_TWO = re.compile(r"\b(?:two|both)\b", re.I)
_THE_TWO = re.compile(r"\bthey(?: both)?\b|\b(?:the|these|those) two\b|\bboth(?: of them)?\b", re.I)
_OF_THEM = re.compile(r" (?:of )?(?:the|these|those) (?:two|three|four)\b| of (?:them|these|those)\b", re.I)
_COMPARES = re.compile(r"\b(?:compar\w+|versus|vs\.?|difference between|differ|\w+er than)\b|^which .+ or \w", re.I)
_NO_SUPERLATIVE = "inter|for|w|t|requ|inv|prot|harv|cont|arr|qu|gu|r|n|sugg|dig|hon|mod|midw|lat|pri|manif"
_SUPERLATIVE = (
    r"(?:most|least)(?: (?!has|have|is|are|in|of\b)[a-z]+(?= |$))?|"
    rf"(?!(?:{_NO_SUPERLATIVE})est\b)[a-z]{{1,12}}est|worst"
)
_EXTREME = re.compile(
    r"^(?:(?:and|but|or|so|ok)[,]?\s+)*(?:(?:what|how) about\s+|which (?:one )?(?:is|has)\s+)?"
    rf"the\s+({_SUPERLATIVE})(?: one)?[\s?.!]*$",
    re.I,
)
_IN_QUESTION = re.compile(rf"\b(?<=the )(?:{_SUPERLATIVE})\b", re.I)
_PLURAL_VERBS = {"is": "are", "was": "were", "has": "have", "does": "do"}


class CompleteQuestion(NamedTuple):
    question: str
    subject: str = ""  # that takes the place of the topic
    aside: bool = False  # no question of its own: the last one stays what "why?" and "and in 2023?" are asked of


def complete_question(asked: str, so_far: Discourse, companies: CompanyResolver) -> CompleteQuestion | None:
    """The whole question, made of the last one; None where the message is no such part."""
    if asks_for_form(asked) and so_far.asked:
        length = _MEASURED.search(fold(asked))
        again = f"{so_far.asked.rstrip('?!. ')}, in {length.group()}?" if length else so_far.asked
        return CompleteQuestion(again, aside=True)
    topic = so_far.named_topic or so_far.topic
    if topic and (MORE.match(asked) or ELSE.match(asked)):
        compared = bool(so_far.group and _COMPARES.search(so_far.asked))
        about = so_far.shift_target or add_article(topic.name, so_far)
        group = join_names(so_far.group)
        more = f"How do {group} compare in more detail?" if compared else f"Tell me more about {about}"
        if ELSE.match(asked):
            more = f"What else is there to know about {group if compared else about}?"
        return CompleteQuestion(more, aside=True)
    whole = complete_role(asked, so_far)
    extreme, said = _EXTREME.match(asked), _IN_QUESTION.search(so_far.asked)
    if not whole and extreme and said:  # "And the lowest?" after "Which has the highest revenue?"
        wanted = extreme[1]
        if wanted.lower() in ("most", "least") and " " in said.group():  # after "the most valuable", the least valuable
            wanted = f"{wanted} {said.group().partition(' ')[2]}".strip()
        whole = f"{so_far.asked[: said.start()]}{wanted}{so_far.asked[said.end() :]}"
    them = so_far.several[-2:] if _TWO.search(asked) and not so_far.group else so_far.several
    if not whole and len(them) > 1 and _COMPARE.search(asked) and not find_subjects(asked, companies):
        bare = asked.rstrip("?!. ")
        # "Which of the two is larger?" is "Which is larger, Apple or Tesla?"
        whole = f"{_OF_THEM.sub('', bare)}, {join_names(them, 'or')}?"
        if re.match(r"(?:please\s+)?compare\b", bare, re.I):
            whole = f"Compare {join_names(them)}"
        elif not bare.lower().startswith("which") and _THE_TWO.search(bare):
            whole = _THE_TWO.sub(lambda _: join_names(them), f"{bare}?", count=1)
    if not whole and OTHERS.match(asked):
        # The last question for what else the thread has asked about; of those it chose from, what is known of the rest.
        rest = so_far.others or tuple(name for name in so_far.group if fold(name) not in fold(so_far.answered))
        if so_far.others and not so_far.group:
            whole = _replace_subject(join_names(rest), so_far, companies)
        if not whole and (so_far.others or 0 < len(rest) < len(so_far.group)):
            whole = f"Tell me about {join_names(rest)}"
    whole = whole or complete_reason(asked, so_far)
    return CompleteQuestion(whole) if whole else _ask_same_of(asked, so_far, companies)


def _ask_same_of(asked: str, so_far: Discourse, companies: CompanyResolver) -> CompleteQuestion | None:
    """The last question about another subject, or another time or place."""
    found = _WHAT_ABOUT.match(asked) or _PART.match(asked)
    if not found or not so_far.asked or _AUXILIARY.search(found[1]):
        return None
    part = found[1].strip()
    if _WHEN.match(part):
        when = part if re.match(r"(?:in|for|since|during|from|by|last|this|next)\b", part, re.I) else f"in {part}"
        if _PERIOD.search(so_far.asked):
            return CompleteQuestion(_PERIOD.sub(lambda _: when, so_far.asked, count=1))
        return CompleteQuestion(f"{so_far.asked.rstrip('?!. ')} {when}?")
    if _PART.match(part) and not companies.mentions(part):
        return CompleteQuestion(f"{so_far.asked.rstrip('?!. ')} {part[:1].lower()}{part[1:]}?")
    mentioned = tuple(mention.company.short for mention in companies.mentions(asked))
    subjects = mentioned or find_subjects(part, companies)
    alone = len(subjects) == 1 and len(content_words(part)) <= len(content_words(subjects[0])) + 1
    whole = _replace_subject(subjects[0], so_far, companies) if alone else None
    added = whole and so_far.group and all(name in whole for name in so_far.group)
    return CompleteQuestion(whole, "" if added else subjects[0]) if whole else None


def _replace_subject(subject: str, so_far: Discourse, companies: CompanyResolver) -> str | None:
    asked, topic = so_far.asked, so_far.named_topic
    them = join_names(so_far.group)
    if them and re.match(r"(?:please\s+)?compare\b", asked, re.I) and subject not in so_far.group:
        all_of_them = join_names((*so_far.group, subject))
        return asked.replace(them, all_of_them) if them in asked else f"Compare {all_of_them}"
    if them and them in asked:
        return asked.replace(them, subject)
    if not topic or fold(subject) == fold(topic.name):
        return None
    said = [mention.text for mention in companies.mentions(asked) if mention.company.short == topic.name]
    name = next(iter(said), topic.name)
    if fold(name) not in fold(asked):
        return None
    owned = re.compile(re.escape(to_possessive(name)) + r"(?=\W)", re.I)
    text = owned.sub(lambda _: to_possessive(subject), asked)
    text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", lambda _: subject, text, flags=re.I)
    if " and " in subject and " and " not in name:  # "How is Apple and Tesla doing?" has a verb for one
        verb = re.compile(rf"\b(is|was|has|does)(?= (?:the )?{re.escape(subject)}(?!'))", re.I)
        text = verb.sub(lambda match: _PLURAL_VERBS[match[1].lower()], text, count=1)
    return text


# Follow-up messages made to stand alone: what leans on the thread is replaced by what it stands for.

LONGEST_TITLE, CAPITALS = 8, 0.75  # words, and the share of them in capitals

# Signs that a message without a name goes on about what was named before.
_PAST = re.compile(r"\b(?:did|was|were|had|became|won|made|\w{3,}ed)\b", re.I)
_OTHER = re.compile(r"\b(?:other|others|else|another|more|next|also|too|again|first|last|later|latest)\b", re.I)
_EXISTENTIAL = re.compile(r"\b(?:is|are|was|were|where|any)\s+there\b|\bthere\s+(?:is|are|was|were)\b|\bany\b", re.I)
_DEFINITE = re.compile(r"\bthe\s+(?!(?:same|best|most|difference|differences|usa?|uk|world|internet)\b)[a-z]", re.I)
_CONTINUED = re.compile(
    r"^(?:and|but|or|so|in|for|from|by|since|during|at|on|with|without|as)\b(?!.*\b(?:is|are|do|does|can|i)\b)", re.I
)
_PARTIAL = re.compile(r"(?:what|which|who|how|when|where|why|any|other|more|another)\b", re.I)
_SPEAKER = re.compile(r"\b(?:i|i'm|i'll|my|we|our|you|your)\b", re.I)
_FINITE_VERB = re.compile(
    r"\b(?:is|are|was|were|am|be|been|do|does|did|has|have|had|can|could|will|would|should|may|might|must|isn't|aren't|"
    r"don't|doesn't|didn't|can't|won't|what's|who's|where's|how's|it's)\b|^(?:tell|give|show|explain|describe|compare|"
    r"list|find|summari[sz]e|write|research|investigate|discuss|name|define|i)\b|^(?:what|who)\s+\w+(?:s|ed)\s+\w",
    re.I,
)
_DEFINING = re.compile(
    r"^(?:what|who) (?:is|are|was|were) (?!the\b)|^(?:how|why|when) (?:do|does|can|is|are)\b|^what causes\b|"
    r"^(?:now )?(?:tell me about|explain|define|describe|research)\b",
    re.I,
)
_TURNING = re.compile(r"(?:and |but |so )?(?:what|how) about\b", re.I)
_ENDS_IN_NOUN = re.compile(r"\b(?:is|are|was|were) the (?:\w+ )?\w+$", re.I)


_WHO_IS_NAME = re.compile(r"who (?:is|was) (?-i:[A-Z][\w.'-]*(?: [A-Z][\w.'-]*)+)[?!. ]*", re.I)
_NO_PERSON = re.compile(r"(?:\b(?:in|at|to|from|the|near)|(?<=\s)[A-Z][\w-]*)\s+$")


class RewriteResult(NamedTuple):
    question: str
    topic: Topic | None = None  # what the thread is about from here on
    aside: bool = False  # it asks for more of the last answer, or for another form of it


def build_discourse(
    turns: Sequence[ThreadMessage], summary: str, subject: str | None, companies: CompanyResolver
) -> Discourse:
    """The thread so far. `subject` is what it is known to be about now, `summary` what came before the turns."""
    so_far = Discourse()
    for turn in (*parse_summary(summary), *turns):
        if turn.role == "assistant":
            so_far = so_far.add_answer(turn.content)
        elif turn.content.strip() and not any(
            is_idle(turn.content) for is_idle in (is_small_talk, is_cancellation, is_gibberish)
        ):
            said = rewrite_message(turn.content, so_far, companies)
            so_far = so_far.with_topic(said.topic) if said.topic else so_far
            if not said.aside:
                so_far = so_far.add_question(said.question, find_subjects(said.question, companies))
    known = (subject or "").strip()
    if known and so_far.topic and so_far.topic.proper and set(words(known)) < set(words(so_far.topic.name)):
        known = so_far.topic.name
    proper = known[:1].isupper() or known[:1].isdigit()
    if known and (proper or not so_far.topics):
        so_far = so_far.with_topic(Topic(known, proper=proper))._replace(subject=known)
    return so_far


def rewrite_message(message: str, so_far: Discourse, companies: CompanyResolver) -> RewriteResult:
    asked = resolve_former_latter(" ".join(message.split()), so_far)
    topic = so_far.topic
    if whole := complete_question(asked, so_far, companies):
        other = Topic(whole.subject, proper=True) if whole.subject else topic
        return RewriteResult(whole.question, other, aside=whole.aside)
    if OTHERS.match(asked):
        return RewriteResult(asked, topic)
    named = not PRONOUN.search(asked) and find_subjects(asked, companies)
    if named and not any(known.occurs_in(asked) for known in so_far.topics):
        return RewriteResult(asked, _find_new_topic(asked, so_far, companies) or topic)
    question, meant = resolve_references(asked, so_far)
    if meant is None and topic and topic.occurs_in(asked):
        meant = topic
    if meant:
        # A part of a person's name becomes the whole name.
        shortened = meant.proper and fold(meant.name) not in fold(question) and is_person(meant.name)
        for part in meant.name.split() if shortened else ():
            found = re.search(rf"(?<!\w){re.escape(part)}(?!\w)", question, re.I if meant.is_person else 0)
            if not found or re.match(r"\s+[A-Z]", question[found.end() :]):
                continue
            if meant.is_person or not _NO_PERSON.search(question[: found.start()]):
                question = question[: found.start()] + meant.name + question[found.end() :]
                break
        return RewriteResult(question, meant)
    known = so_far.current
    if known and not known.occurs_in(question) and _leans_on_topic(asked, known, companies):
        return RewriteResult(_append_topic(question, known), known)
    if topic and not known and question == asked and not find_subjects(asked, companies):
        # "What are the benefits?" says what of nothing, and so does "what about costs?".
        turning = _TURNING.match(asked)
        spoken_of = " " in topic.name and fold(topic.name) in fold(so_far.asked) and _FINITE_VERB.search(so_far.asked)
        asks = _FINITE_VERB.search(asked) and not _DEFINING.match(asked)
        if (spoken_of if turning else asks) and len(content_words(asked)) <= (2 if turning else 1):
            return RewriteResult(_append_topic(question, topic), topic)
    stays = question != asked and not find_subjects(asked, companies)
    return RewriteResult(question, topic if stays else _find_new_topic(asked, so_far, companies) or topic)


def _leans_on_topic(asked: str, topic: Topic, companies: CompanyResolver) -> bool:
    if find_subjects(asked, companies) or find_mentions(asked) or is_vague(asked):
        return False
    if _CONTINUED.match(asked):
        return True
    if not _FINITE_VERB.search(asked):
        about = asked.endswith("?") or bool(_PARTIAL.match(asked)) or companies.resolve(topic.name) is not None
        return about and len(content_words(asked)) <= 3
    if _SPEAKER.search(asked):
        return False
    if _PAST.search(asked) or _OTHER.search(asked):
        return True
    short = len(content_words(asked)) <= 2
    return short and bool(_EXISTENTIAL.search(asked) or _DEFINITE.search(asked))


def _append_topic(asked: str, topic: Topic) -> str:
    """ "Who is the CEO of Apple?" where it reads well, else in brackets."""
    bare = asked.rstrip("?!. ")
    ends_in_noun = _ENDS_IN_NOUN.search(bare) or not (_FINITE_VERB.search(bare) or _TURNING.match(bare))
    return f"{bare} of {topic.name}?" if ends_in_noun else f"{bare} ({topic.name})?"


def _find_new_topic(asked: str, so_far: Discourse, companies: CompanyResolver) -> Topic | None:
    """What a message is about that leans on nothing; None where it stays within what was spoken of."""
    if companies.mentions(asked):
        return Topic(find_subjects(asked, companies)[0], proper=True)
    # A message that is nothing but a name: "Big Brother and the Holding Company".
    bare = re.sub(r"\s*\([^)]*\)$", "", asked).strip(" ?!")
    parts = [part for part in bare.split() if fold(part) not in STOP_WORDS]
    capital = sum(part[:1].isupper() or part[:1].isdigit() for part in parts) if any(map(str.isalpha, bare)) else 0
    fits = (2 if so_far.topics else 1) <= len(parts) <= LONGEST_TITLE and capital >= CAPITALS * len(parts)
    if fits and not _CONTINUED.match(bare) and not _FINITE_VERB.search(bare):
        return Topic(bare, proper=True)
    runs = find_noun_phrases(asked)
    subjects = [name for name in find_subjects(asked, companies) if " " in asked.strip(" ?!.") or name.isupper()]
    if subjects:
        about_things = so_far.named_topic and not is_person(so_far.named_topic.name)
        if fold(subjects[0]) in so_far.heard and not (about_things and _WHO_IS_NAME.fullmatch(asked)):
            return None
        return Topic(subjects[0], proper=True)
    if not runs or (so_far.current and _FINITE_VERB.search(asked) and not _DEFINING.match(asked)):
        return None
    return Topic(max(runs, key=lambda run: len(run.split())), proper=False)
