"""Understanding a message by rules: what is asked, about what, and whether it can be asked at all."""

import re
from typing import Literal

from openassay.models.plan import SHORTEST, Intent, Understanding
from openassay.protocols import CompanyResolver
from openassay.reasoning.base import Conversation
from openassay.reasoning.rules.followups import (
    ELSE,
    MORE,
    OTHERS,
    VAGUE,
    WRAPPED,
    asks_for_form,
    build_discourse,
    is_vague,
    merge_answers,
    rewrite_message,
)
from openassay.reasoning.rules.other_languages import understand_in_language
from openassay.reasoning.rules.phrases import (
    ENDING,
    HAPPENING,
    find_company_options,
    find_matter,
    find_noun_phrases,
    find_subjects,
    is_company,
    join_names,
    spell_out_companies,
    strip_document_references,
)
from openassay.reasoning.rules.references import PRONOUN, THAT_COMPANY, Discourse, needs_context
from openassay.text.other_languages import find_other_language
from openassay.text.small_talk import is_cancellation, is_gibberish, is_indifferent, is_small_talk
from openassay.text.words import STOP_WORDS, content_words, fold

# Questions a person might ask instead, or next.

MOST_SUGGESTIONS = 3
_OF_A_COMPANY = (
    "What is happening with {it}?",
    "How did {it}'s revenue change over the last year?",
    "Who are {it}'s main competitors?",
)
_OF_A_NAME = ("What is {it} known for?", "What is the latest on {it}?", "What do sources disagree on about {it}?")
_OF_A_THING = ("What is known about {it}?", "What has changed in {it} in recent years?", "What is disputed about {it}?")
# A company can be named, given by its ticker, or described.
_COMPANIES = ("Microsoft", "NVDA", "the company that makes the iPhone")


def suggest_questions(topic: str, *, company: bool, named: bool, asked: str = "") -> tuple[str, ...]:
    """Made for a topic; never what was asked anyway."""
    if not topic:
        return ()
    forms = _OF_A_COMPANY if company else _OF_A_NAME if named else _OF_A_THING
    made = (form.format(it=topic) for form in forms)
    return tuple(text for text in made if text.casefold() != asked.casefold())[:MOST_SUGGESTIONS]


def build_examples(asked: str, gap: re.Pattern[str]) -> tuple[str, ...]:
    """The question as it would be with a company in it, in the three ways one can be given."""
    found = gap.search(asked)
    if not found:
        return ()
    end = "?" if asked.rstrip().endswith("?") else ""
    before, after = asked[: found.start()], asked[found.end() :].rstrip("?!. ")
    own = "'s" if found.group().lower() in ("its", "their", "theirs", "his", "her", "hers") else ""
    return tuple(f"{before}{name}{own}{after}{end}" for name in _COMPANIES)


QueryClass = Literal["fact", "change", "comparison", "cause", "overview", "procedure", "yes_no"]

# How much a message leaves open, 0 to 1. The gate asks first where it is more than .6.
OF_A_COMPANY, OF_A_NAME, SPECIFIC, BROAD, A_WORD, LOST = 0.1, 0.2, 0.3, 0.6, 0.65, 0.9
MUCH = 4  # words of meaning: who says so much does not lean on a thread

_COMPANY = re.compile(r"company|firm|business|corporation|stock|shares|revenue|ceo")
_BROAD = re.compile(
    r"^(?P<asking>(?:please )?(?:tell me (?:more )?about|give me an overview of|explain|describe|research|investigate|"
    r"discuss|everything about|all about)\s+)?(?:the\s+|an?\s+)?(?P<topic>[\w'-]+(?:\s+[\w'-]+)?)[\s?.!]*$",
    re.I,
)
_VERB = re.compile(r"\b(?:is|are|was|were|do|does|did|why|how|who|what|when|where)\b", re.I)
_YEARS = re.compile(r"\b(?:19|20)\d{2}\b")
_SPAN_OF_TIME = re.compile(
    r"\b(?:since|between|from|over|during|in|by|until|before|after|as of)\s+(?:the\s+)?(?:(?:first|second|third|fourth|"
    r"last|past|next)\s+)?[^,.;?]{0,30}?(?:19|20)\d{2}(?:\s*(?:-|–|to|and)\s*(?:19|20)\d{2})?|\b(?:last|past|this|next)\s+(?:\d+\s+)?"
    r"(?:year|month|quarter|week|decade|years|months|quarters|weeks|decades)\b|\b(?:today|currently|recently|latest)\b",
    re.I,
)
_CLASSES: tuple[tuple[QueryClass, re.Pattern[str]], ...] = (
    ("comparison", re.compile(r"\b(?:compar\w+|versus|vs\.?|difference between|better than|differ from)\b")),
    ("cause", re.compile(r"^why\b|\b(?:what (?:caused|explains|drove)|causes? of|reasons? for|due to what)\b")),
    ("procedure", re.compile(r"^how (?:to|do i|do you|can i|can you|should i)\b")),
    ("change", re.compile(r"\b(?:chang\w+|evolv\w+|develop(?:ed|ment)? over|trend|grown?|grew|rose|fell|declin\w+)\b|"
                          r"\bover time\b")),
    ("overview", re.compile(r"^(?:what(?:'s| is) (?:happening|new|going on)|tell me|give me|describe|summar)|"
                            r"\boverview\b|^(?:explain|discuss|research|investigate|report on)\b")),
    ("yes_no", re.compile(r"^(?:is|are|was|were|do|does|did|can|could|will|would|should|has|have|had)\b")),
)  # fmt: skip
# What people say before they ask: "Now tell me about Tesla".
_LEAD = re.compile(
    r"^(?:(?:ok(?:ay)?|well|now|so|then|and|but|please|great|good|alright|all right)\b[,.! ]+)+"
    r"(?=(?:tell|give|show|describe|explain|compare|what|how|why|who|when|where|which|can|could)\b)",
    re.I,
)


def understand(message: str, conversation: Conversation, companies: CompanyResolver) -> Understanding:
    asked = " ".join(message.split())
    called_off = any(is_cancellation(said) and not is_indifferent(said) for said in conversation.clarified)
    if is_cancellation(asked) or called_off:
        return Understanding(question=asked, intent="cancel")
    if is_small_talk(asked):
        return Understanding(question=asked, intent="small_talk")
    asked = merge_answers(asked, conversation.clarified, companies)
    so_far = build_discourse(conversation.turns, conversation.summary, conversation.subject, companies)
    if not asked:
        ask, suggested = "What would you like to know?", _suggest_next(so_far, companies)
        return Understanding(
            question="", intent="empty", ambiguity_level=1.0, clarification_question=ask, suggested_questions=suggested
        )
    if is_indifferent(asked):
        ask = "That is fine. What would you like to read about? A name, a topic or a question will do."
        unclear = _build_unclear("", ask, conversation, _suggest_next(so_far, companies))
        return unclear.model_copy(update={"question": asked})
    if find_other_language(asked):
        return understand_in_language(asked)
    if is_gibberish(asked) and not companies.mentions(asked):
        ask = "I could not make out a question in that. What would you like to know, in a few words?"
        return _build_unclear(asked, ask, conversation, _suggest_next(so_far, companies))
    return _understand_question(asked, so_far, conversation, companies)


def _understand_question(
    asked: str, so_far: Discourse, conversation: Conversation, companies: CompanyResolver
) -> Understanding:
    asked = spell_out_companies(asked, companies)
    subjects = find_subjects(asked, companies)
    if several := find_company_options(asked, companies)[1]:
        ask = f"Which one do you mean: {join_names(several, 'or')}?"
        if conversation.clarified:
            ask += " If it is none of them, say in a few words what it is."
        return _build_unclear(asked, ask, conversation, choices=several, level=A_WORD)
    said = rewrite_message(asked, so_far, companies)
    question = said.question
    # Whether it leans on something that nobody has named.
    lacking = not subjects and bool(VAGUE.search(question)) and len(content_words(VAGUE.sub(" ", question))) < 2
    if question == asked:
        lacking = lacking or is_vague(asked) or bool(OTHERS.match(asked)) or asks_for_form(asked)
    if not so_far.topics:
        lacking = lacking or bool(MORE.match(asked) or ELSE.match(asked)) or needs_context(asked)
    elif question == asked and not subjects and len(content_words(asked)) < MUCH:
        lacking = lacking or bool(THAT_COMPANY.search(asked))
    if lacking:
        # Asks what is meant; what the thread has named before may be chosen.
        if OTHERS.match(asked):
            return _build_unclear(asked, "Which others do you mean?", conversation, _suggest_next(so_far, companies))
        plain = fold(" ".join((asked, *conversation.clarified)))
        company = bool(_COMPANY.search(plain))
        ask = "Which company do you mean?" if company else "What exactly is this about? Please name the subject."
        known = tuple(topic.name for topic in reversed(so_far.topics) if topic.proper)[:4]
        gap = VAGUE if VAGUE.search(asked) else PRONOUN
        suggested = build_examples(asked, gap) if company else _suggest_next(so_far, companies)
        return _build_unclear(asked, ask, conversation, suggested, choices=known if len(known) > 1 else ())
    if question == asked:
        return _understand_verbatim(asked, subjects, so_far, conversation, companies)
    if len(question) < SHORTEST:
        question = f"Tell me about {question.rstrip('?!. ')}"
    carried = (said.topic.name,) if said.topic and fold(said.topic.name) in fold(question) else ()
    found = (name for name in find_subjects(question, companies) if not any(name in known for known in carried))
    subjects = (*carried, *found)
    if MORE.match(asked) or ELSE.match(asked):
        return _to_understanding(question, subjects, "more", companies)
    comparing = len(subjects) > 1 and classify_question(question) == "comparison"
    return _to_understanding(question, subjects, "compare" if comparing else "follow_up", companies)


def _understand_verbatim(
    asked: str, subjects: tuple[str, ...], so_far: Discourse, conversation: Conversation, companies: CompanyResolver
) -> Understanding:
    """A word is no question: it is one about a company, or about what the thread is about, or has to be asked about."""
    if len(asked) >= SHORTEST:
        return _to_understanding(asked, subjects, "research", companies)
    word = asked.rstrip("?!. ")
    if subjects and is_company(subjects[0], companies):
        return _to_understanding(f"What is happening with {subjects[0]}?", subjects[:1], "research", companies)
    if so_far.topic and len(word) > 1:
        known = so_far.current
        question = f"What about {word} ({known.name})?" if known else f"What about {word}?"
        made = _to_understanding(question, (known.name,) if known else subjects, "follow_up", companies)
        return made.model_copy(update={"ambiguity_level": A_WORD})
    made_up = suggest_questions(word, company=False, named=bool(subjects))
    return _build_unclear(asked, f"What would you like to know about “{word}”?", conversation, made_up, level=A_WORD)


def _to_understanding(
    question: str, subjects: tuple[str, ...], intent: Intent, companies: CompanyResolver
) -> Understanding:
    topic = extract_topic(question)
    company = bool(subjects) and is_company(subjects[0], companies)
    matter = topic
    if fold(topic).partition(" ")[0] in STOP_WORDS:
        longest = max(find_noun_phrases(question), key=lambda run: len(run.split()), default=topic)
        said = find_matter(question)  # of "what did they learn about old systems", the systems
        matter = said if said != question else longest
    # A capital that only opens a sentence would make it look like a name.
    matter = matter if matter[1:2].isupper() else matter[:1].lower() + matter[1:]
    # A word or two could be asked about in a hundred ways; a company has its usual ones.
    level = OF_A_COMPANY if company else OF_A_NAME if subjects else SPECIFIC
    broad = _BROAD.match(question)
    if not company and broad and not _VERB.search(broad["topic"]) and not (subjects and " " in subjects[0]):
        level = BROAD if broad["asking"] else A_WORD
    clauses = len(re.findall(r"[,;?]|\band\b", question))
    plain: Literal["simple", "moderate"] = "moderate" if clauses or len(question) > 80 else "simple"
    return Understanding(
        question=question,
        intent=intent,
        query_class=classify_question(question),
        primary_subject=subjects[0] if subjects else matter or None,
        subjects=subjects,
        topic_focus=topic,
        temporal_scope=find_period(question),
        complexity="complex" if clauses >= 3 or len(question) > 200 else plain,
        ambiguity_level=level,
        suggested_questions=suggest_questions(
            subjects[0] if subjects else topic, company=company, named=bool(subjects), asked=question
        ),
    )


def _build_unclear(
    asked: str,
    ask: str,
    conversation: Conversation,
    suggested: tuple[str, ...] = (),
    *,
    choices: tuple[str, ...] = (),
    level: float = LOST,
) -> Understanding:
    return Understanding(
        question=asked,
        intent="unclear",
        ambiguity_level=level,
        topic_focus=extract_topic(asked),
        clarification_question=ask if not conversation.clarified else f"I am still not sure. {ask}",
        clarification_options=choices,
        suggested_questions=suggested,
    )


def _suggest_next(so_far: Discourse, companies: CompanyResolver) -> tuple[str, ...]:
    topic = so_far.topic
    return suggest_questions(topic.name, company=is_company(topic.name, companies), named=topic.proper) if topic else ()


def classify_question(question: str) -> QueryClass:
    plain = _LEAD.sub("", fold(question).replace("’", "'").strip())
    for name, pattern in _CLASSES:
        if pattern.search(plain):
            return name
    return "fact"


def find_period(question: str) -> str | None:
    match = _SPAN_OF_TIME.search(question)
    if match:
        return match.group().strip()
    years = _YEARS.findall(question)
    return " ".join(dict.fromkeys(years)) or None


# "Did Apple report any share repurchases" is about "Apple's share repurchases".
_ASSERTED = re.compile(
    r"^(?i:did|do|does|has|have|had|will|can|could)\s+((?:the\s+)?[A-Z][\w.&-]*)(?:'s)?\s+"
    r"(?:report|disclose|announce|make|have|see|show|experience|face|record|mention)\w*\s+(?:any|some|a|an)?\s*"
)
_OPENING = re.compile(
    r"^(?:please\s+)?(?:can you |could you )?(?:tell me(?: more)? about|what happened (?:to|with|at)|"
    r"what explains(?: what is happening with)?|give me (?:an overview|a summary) of|describe|"
    r"explain|"
    r"what(?:'s| is| are| was| were)(?: happening with| new with| going on with| the)?|who(?: is| are| was| were)?|"
    r"(?:what|how) about|how (?:\w+ )?(?:is|are|was|were|did|does|do|has|have)|how (?:much|many)|"
    r"why (?:did|do|does|is|are|was|were|has|have)|when (?:did|do|does|is|are|was|were|will)|"
    r"where (?:did|do|does|is|are|was|were)|which(?: one)?(?: (?:has|have|had|is|are|was|were))?|"
    r"compare|research|investigate|summari[sz]e|is|are|was|were|do|does|did)\s+"
    r"(?:the\s+)?",
    re.I,
)
_FURTHER = re.compile(r"[,;?]| and (?=how|why|what|when|who|where|which)")
_OF_A_LIST = re.compile(r"(?:please )?(?:compare|how do|why do|what are|tell me)\b", re.I)
_AFTER_A_LIST = re.compile(r"[;?]|,?(?: and|,) (?=how|why|what|when|who|where|which|in |since |over |with )")
_OF_A_CHANGE = re.compile(r"(?:how|why|when|did|do|does|has|have|had|will)\b", re.I)  # "climate change" is none
_CHANGE = re.compile(r"\b(?:change|changed|evolve|evolved|develop|developed|grow|grown)\b.*$", re.I)
_MEASURE = re.compile(
    r"^(?:(?:value|price|rate|number|size|cost|amount|level|state|history) of|known (?:about|of)) (?:the )?", re.I
)
# What is left of a verb once its question is taken off: "the Hubble tension arise", "Apple doing", "it be settled".
_OF_DOING = re.compile(r"^(?:how|why|when|where|what about|how about|do|does|did|will|is|are)\b", re.I)
_DOING = re.compile(
    rf"(?<=\w)\s+(?:doing|going|faring|performing|working|developing|evolving|happening|coming (?:along|about|on)|"
    rf"(?:{'|'.join(sorted(HAPPENING))})(?: (?:in more detail|about|from|into being|on|up|out))?|be \w+(?:ed|en))"
    r"(?: (?:so|today|now|well|badly|lately|currently|so far|these days|recently|at the moment|financially))*$",
    re.I,
)
_IS = re.compile(r"^(?:how )?(?:is|are|was|were)\b", re.I)
_BEING = re.compile(r"\w+ing\b", re.I)


def extract_topic(question: str) -> str:
    """The noun phrase a question is about: what is left once the asking words are taken off."""
    wrapped = WRAPPED.fullmatch(question.strip())
    whole = ENDING.sub("", _LEAD.sub("", wrapped[1] if wrapped else question))
    first = (_AFTER_A_LIST if _OF_A_LIST.match(whole) else _FURTHER).split(whole, maxsplit=1)[0]
    topic = _OPENING.sub("", _ASSERTED.sub(r"\1's ", strip_document_references(first).replace("’", "'").strip()))
    if _OF_A_CHANGE.match(first):
        topic = _CHANGE.sub("", topic)
    topic = " ".join(_SPAN_OF_TIME.sub("", _MEASURE.sub("", topic)).split())
    if _OF_DOING.match(first):
        # "How is remote work" has no verb at its end, "How does remote work work" has.
        found = _DOING.search(topic)
        if found and (not _IS.match(first) or _BEING.search(found.group())):
            topic = topic[: found.start()]
    return topic.strip(" .?!") or first.strip(" .?!")
