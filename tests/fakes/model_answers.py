"""Sensible answers to the forms of the language reasoner, made from nothing but the prompt.

Everything is read from the prompt, nothing remembered: the same prompt has the same answer, however often and in what
order it is asked.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from openassay.text.words import content_words, find_names, fold, stems
from tests.fakes.llm_api import ModelPrompt

# The smallest value a JSON schema allows.

MAX_DEPTH = 6  # a form that holds itself is not followed further than it must be


def build_instance(schema: dict[str, Any], root: dict[str, Any] | None = None, depth: int = 0) -> Any:
    """A value of the schema: all fields, one item a list, the first of several choices."""
    root = schema if root is None else root
    if "$ref" in schema:
        return build_instance(_resolve_reference(schema["$ref"], root), root, depth + 1)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return build_instance(_first_choice(schema[choice]), root, depth)
    return _build_by_type(schema, root, depth)


def _build_by_type(schema: dict[str, Any], root: dict[str, Any], depth: int) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = next(name for name in kind if name.lower() != "null")
    match kind.lower():  # Google writes OBJECT
        case "object":
            return _build_object(schema, root, depth)
        case "array":
            count = max(schema.get("minItems", 0), int(depth < MAX_DEPTH and schema.get("maxItems", 1) > 0))
            return [build_instance(schema.get("items", {}), root, depth + 1) for _ in range(count)]
        case "string":
            return _build_text(schema)
        case "integer" | "number":
            return _build_number(schema)
        case "boolean":
            return True
        case _:
            return None


def _build_object(schema: dict[str, Any], root: dict[str, Any], depth: int) -> dict[str, Any]:
    fields = schema.get("properties", {})
    wanted = fields if depth < MAX_DEPTH else [name for name in fields if name in schema.get("required", ())]
    return {name: build_instance(fields[name], root, depth + 1) for name in wanted}


def _build_text(schema: dict[str, Any]) -> str:
    text = {"date": "2025-01-01", "date-time": "2025-01-01T00:00:00Z"}.get(schema.get("format", ""), "text")
    return text.ljust(schema.get("minLength", 0), ".")[: schema.get("maxLength", 1000)]


def _build_number(schema: dict[str, Any]) -> float:
    """1 where it may be, else the nearest that may."""
    low = schema.get("minimum", schema.get("exclusiveMinimum", 1))
    high = schema.get("maximum", schema.get("exclusiveMaximum", 1))
    inside: float = max(low, min(high, 1))
    step = 1 if schema.get("type") == "integer" else (high - low) / 2 if high > low else 1
    if inside == schema.get("exclusiveMinimum"):
        inside += step
    if inside == schema.get("exclusiveMaximum"):
        inside -= step
    return inside


def _resolve_reference(reference: str, root: dict[str, Any]) -> dict[str, Any]:
    place: Any = root
    for name in reference.removeprefix("#/").split("/"):
        place = place[name]
    return dict(place)


def _first_choice(choices: list[dict[str, Any]]) -> dict[str, Any]:
    return next((choice for choice in choices if choice.get("type") != "null"), choices[0])


# What a sensible model makes of a message: who is meant by "they", what is vague, what is only a greeting.

# What any model knows by heart, as it would be written in small letters or described.
COMPANIES = {
    "Apple": r"apple|aapl|i?phone maker|maker of the iphone",
    "Tesla": r"tesla|tsla|electric (?:car|vehicle) (?:company|maker)|ev (?:company|maker)",
    "Microsoft": r"microsoft|msft|windows (?:company|maker)|maker of windows",
    "Amazon": r"amazon|amzn|online retailer|company behind (?:aws|prime)",
    "Google": r"google|alphabet|googl|search(?: engine)? (?:company|giant)",
}
_COMPANY_PATTERNS = {name: re.compile(rf"\b(?:the )?(?:{pattern})\b") for name, pattern in COMPANIES.items()}
_GREETING = re.compile(r"^(?:hi|hello|hey|good (?:morning|evening)|thanks?|thank you)\b[^?]{0,30}$")
_CANCEL = re.compile(r"^(?:never ?mind|cancel|forget (?:it|that)|stop|let's drop (?:it|this)|no thanks?)\b[^?]{0,30}$")
_MORE = re.compile(r"^(?:tell me more|go on|more(?: details?)?|what else)\W*$")
_LEANS = re.compile(r"^(?:and|what about|how about|compare)\b")
_PRONOUN = re.compile(r"\b(?:it|its|they|their|them|that company|the company)\b", re.I)
_VAGUE = re.compile(r"\b(?:the|that|this|some|a)(?: \w+)? (?:company|one|firm|business|thing)\b", re.I)
_COMPARES = re.compile(r"\b(?:compar\w+|versus|vs)\b")
_OVERVIEW = re.compile(r"\b(?:happening|tell me|latest|news|overview|going on)\b")


@dataclass(frozen=True)
class MessageContext:
    """A message, what the conversation is about, and what was said when it was asked back."""

    message: str
    subject: str = ""
    answers: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """An answer that is a question of its own takes the place of the message; of an empty one any does."""
        own = [answer for answer in self.answers if answer.rstrip().endswith("?") and len(answer.split()) > 3]
        return (own or [self.message] if self.message.strip() else self.answers or [""])[-1]

    @property
    def plain(self) -> str:
        return fold(self.text).replace("’", "'").strip()

    @property
    def subjects(self) -> list[str]:
        """Everybody who is named or described, in order; else what the answers name."""
        for text in (self.text, *reversed(self.answers)):
            if found := find_mentions(text):
                return found
        return []


def find_mentions(text: str) -> list[str]:
    plain = fold(text)
    at = {name: match.start() for name, pattern in _COMPANY_PATTERNS.items() if (match := pattern.search(plain))}
    for name in find_names(text.removeprefix("Actually, ")):
        if not any(fold(known) in fold(name) or _COMPANY_PATTERNS[known].search(fold(name)) for known in at):
            at.setdefault(name, plain.find(fold(name)))
    return sorted(at, key=lambda name: at[name])[:4]


def understand_message(heard: MessageContext) -> dict[str, object]:
    if any(_CANCEL.match(fold(text).strip()) for text in (heard.message, *heard.answers)):
        return _build_result("cancel", heard.message)
    if _GREETING.match(heard.plain):
        return _build_result("small_talk", heard.message)
    subjects = heard.subjects
    if heard.subject and _needs_context(heard, subjects):
        return _resolve_follow_up(heard, subjects)
    incomplete = len(subjects) < (2 if _COMPARES.search(heard.plain) else 1)
    if incomplete and (_is_vague(heard.plain) or _needs_context(heard, subjects)):
        again = "I am still not sure. " if heard.answers else ""
        return {
            **_build_result("unclear", heard.message),
            "must_ask": True,
            "ask": f"{again}Which company do you mean?",
        }
    question = heard.text
    if subjects and not find_mentions(question):
        question = (
            _VAGUE.sub(subjects[0], question, count=1) if _VAGUE.search(question) else f"{question} ({subjects[0]})"
        )
    return _build_result(
        "compare" if len(subjects) > 1 and _COMPARES.search(heard.plain) else "research", question, subjects
    )


def _is_vague(plain: str) -> bool:
    """ "Tell me about the company", but not "Which is the largest company of Europe?" """
    return _VAGUE.search(plain) is not None and len(content_words(_VAGUE.sub(" ", plain))) < 2


def _needs_context(heard: MessageContext, subjects: list[str]) -> bool:
    """Whether it cannot be understood without the conversation: "Apple and its chips" can, and so can whatever says
    enough before it says "it"."""
    if _MORE.match(heard.plain) or (_LEANS.match(heard.plain) and not subjects):
        return True
    pronoun = _PRONOUN.search(heard.text)
    if pronoun is None:
        return False
    before = heard.text[: pronoun.start()]
    return not find_mentions(before) and len(content_words(before)) < 3


def _resolve_follow_up(heard: MessageContext, named: list[str]) -> dict[str, object]:
    if _MORE.match(heard.plain):
        return _build_result("more", f"Tell me more about {heard.subject}", [heard.subject])
    subjects = list(dict.fromkeys([heard.subject, *named]))
    question = _PRONOUN.sub(heard.subject, heard.text)
    if question == heard.text:
        question = f"{question.rstrip('?!. ')} of {heard.subject}?"
    return _build_result("compare" if len(subjects) > 1 else "follow_up", question, subjects)


def _build_result(intent: str, question: str, subjects: list[str] | None = None) -> dict[str, object]:
    plain = fold(question)
    kind = "comparison" if _COMPARES.search(plain) else "overview" if _OVERVIEW.search(plain) else "fact"
    return {
        "intent": intent, "subjects": subjects or [], "question": question, "kind": kind, "complexity": "moderate",
        "must_ask": False, "ask": "",
    }  # fmt: skip


AnswerTable = dict[str, Callable[[ModelPrompt], object]]
ASPECTS = ("history", "effects", "causes", "costs", "limits", "uses", "outlook")
VARIATIONS = ("overview", "study", "report", "review", "data", "analysis")
REFINEMENTS = ("details", "evidence")  # how the queries of the second and third round end
_MARK = re.compile(r"\s*[✓⚠]+$|^[✓⚠]+\s*")
_ALSO = re.compile(r" \(also in: .*\)$")


def build_answers(questions: int, queries: int, rounds: int) -> AnswerTable:
    """`questions` sub-questions with `queries` (three at most) each, and `rounds` of searching in all."""
    return {
        "Understood": understand_prompt,
        "Questions": ask_back,
        "Plan": lambda prompt: make_plan(prompt, questions, queries),
        "Queries": vary_queries,
        "Picks": pick_sentences,
        "Analysis": lambda prompt: analyse_quotes(prompt, rounds),
        "Claims": make_claims,
        "Verdicts": judge_pairs,
        "Voices": compare_voices,
        "Draft": write_draft,
        "Report": compose_report,
        "Edited": edit_nothing,
        "Review": write_review,
        "Summary": summarise,
    }


def understand_prompt(prompt: ModelPrompt) -> dict[str, Any]:
    _, _, last = prompt.text.rpartition("The new message:")
    heard = MessageContext(
        message=_find_tag(replace(prompt, text=last), "message", first=True),
        subject=_rest_of_line(prompt.text, "The conversation is about:"),
        answers=tuple(re.findall(r"^Asked back about the new message, the person answered: (.*)$", prompt.text, re.M)),
    )
    return {**understand_message(heard), "topic": _extract_topic(heard.text, 4)}


def ask_back(prompt: ModelPrompt) -> dict[str, Any]:
    topic = _extract_topic(_find_tag(prompt, "message"), 4)
    options = {letter: f"{aspect} of {topic}" for letter, aspect in zip("abcd", ASPECTS, strict=False)}
    return {"questions": [{"about": "scope", "text": f"Which side of {topic}?", **options, "several": True}]}


def make_plan(prompt: ModelPrompt, questions: int, queries: int) -> dict[str, Any]:
    """Sections of its own, unless the form has some to choose from."""
    topic = _extract_topic(_find_tag(prompt, "message", first=True), 6)
    words = ("{topic} {aspect}", "{aspect} {topic} findings", "{topic} {aspect} results")[:queries]
    given = _schema_at(prompt.schema, "questions", "items", "section").get("enum", [])
    made = [
        {
            "text": f"What are the {aspect} of {topic}?",
            "section": given[n % len(given)] if given else aspect.capitalize(),
            **{f"query{n}": "" for n in (1, 2, 3)},
            **{f"query{n}": text.format(topic=topic, aspect=aspect) for n, text in enumerate(words, 1)},
        }
        for n, aspect in enumerate(ASPECTS[:questions])
    ]
    return {"reasoning": [f"Sides of {topic}"], "questions": made, "confidence": 8, "warnings": []}


def vary_queries(prompt: ModelPrompt) -> dict[str, Any]:
    topic = _extract_topic(_find_tag(prompt, "message"), 6)
    done = prompt.text.partition("Asked already:")[2]
    fresh = [f"{topic} {word}" for word in VARIATIONS if f"{topic} {word}" not in done]
    count = re.search(r"Write (\d+) new", prompt.system)
    kinds = _schema_at(prompt.schema, "queries", "items", "type").get("enum", ["web"])
    return {"queries": [{"text": text, "type": kinds[0]} for text in fresh[: int(count[1]) if count else 3]]}


def pick_sentences(prompt: ModelPrompt) -> dict[str, Any]:
    """The sentences that share most words with the question."""
    wanted = set(stems(_find_tag(prompt, "message")))
    shared = {number: len(wanted & set(stems(text))) for number, text in _find_lines(prompt)}
    best = max(shared.values(), default=0)
    chosen = sorted((number for number, count in shared.items() if count), key=lambda n: (-shared[n], n))
    scored = [{"first": n, "last": n, "score": round(4 + 5 * shared[n] / best)} for n in chosen[: _find_limit(prompt)]]
    return {"picks": scored}


def analyse_quotes(prompt: ModelPrompt, rounds: int) -> dict[str, Any]:
    """A gap for every sub-question in each round but the last."""
    asked = _find_tag(prompt, "asked").split("; ")
    now = 1 + sum(any(text.endswith(f" {word}") for text in asked) for word in REFINEMENTS)
    lacking = _find_questions(prompt) if now < rounds and now <= len(REFINEMENTS) else []
    gaps = [
        {
            "question": n,
            "severity": "major",
            "missing": "figures",
            "query": f"{_extract_topic(text, 6)} {REFINEMENTS[now - 1]}",
        }
        for n, text in lacking
    ]
    return {
        "findings": [{"quote": number, "grade": "moderate"} for number, _ in _find_lines(prompt)[:5]],
        "themes": [],
        "contradictions": [],
        "gaps": gaps,
        "sufficiency": "gaps_major" if gaps else "sufficient",
        "confidence": 3 + 2 * now if gaps else 9,
    }


def make_claims(prompt: ModelPrompt) -> dict[str, Any]:
    """Every quote as it stands."""
    quotes = [(number, *_split_question(text)) for number, text in _find_lines(prompt)][: _find_limit(prompt)]
    told = [{"text": text, "quotes": [n], "question": question, "relevance": 7} for n, question, text in quotes]
    found = re.findall(r"^Source (\d+):", prompt.text, re.M)
    return {
        "claims": told,
        "sources": [{"source": int(n), "score": 7, "reason": "as it presents itself"} for n in found],
    }


def judge_pairs(prompt: ModelPrompt) -> dict[str, Any]:
    short = [name for name in prompt.schema.get("properties", {}) if name.startswith("answer")]
    if short:
        return dict.fromkeys(short, "yes")
    drawn = [int(number) for number in re.findall(r"^Sentence (\d+): ", prompt.text, re.M)]
    numbers = drawn or [number for number, _ in _find_lines(prompt)]
    pairs = [{"pair": number, "verdict": "supported", "sure": 9} for number in numbers]
    return {"verdicts": pairs, "conflicts": []}


def compose_report(prompt: ModelPrompt) -> dict[str, Any]:
    """The plan's parts as sections, the claims dealt out in turn, each in its own words."""
    lines = [f"{_ALSO.sub('', _MARK.sub('', text))} [{number}]" for number, text in _find_lines(prompt)]
    parts = re.findall(r"^\d+\. (.*)$", _find_tag(prompt, "message"), re.M) or ["Findings"]
    parts = parts[: max(1, min(len(parts), len(lines)))]
    title = f"Report on {_extract_topic(_find_tag(prompt, 'message', first=True), 5)}"
    body = [
        {"role": "section", "title": " ".join(part.split()[:8]).rstrip("?."), "text": " ".join(lines[at :: len(parts)])}
        for at, part in enumerate(parts)
    ]
    abstract = {"role": "abstract", "title": "", "text": " ".join(lines[:3])}
    conclusion = {"role": "conclusion", "title": "", "text": lines[0]}
    return {"outline": "What the sources say.", "title": title, "sections": [abstract, *body, conclusion]}


def edit_nothing(prompt: ModelPrompt) -> dict[str, Any]:
    return {"paragraphs": []}


def compare_voices(prompt: ModelPrompt) -> dict[str, Any]:
    """Two documents are two voices."""
    numbers = re.findall(r"^Pair (\d+): ", prompt.text, re.M)
    return {"pairs": [{"pair": int(number), "origin": "its own report", "voices": "two"} for number in numbers]}


def write_draft(prompt: ModelPrompt) -> dict[str, Any]:
    """A sentence a claim in the claim's own section, and again where the report opens and ends."""
    names = _rest_of_line(prompt.text, "Sections:").split("; ")
    body = [_build_sentence(number, text, names) for number, text in _find_lines(prompt)]
    frame = {"Conclusion"} & set(names)
    opening = [{**sentence, "section": names[0]} for sentence in _choose_opening(body)]
    closing = [{**sentence, "section": name} for sentence in body[:1] for name in frame]
    most = max(1, _find_limit(prompt) - len(opening) - len(closing))
    fixes = re.findall(r"^\d+\. ", prompt.text.partition("A reviewer read")[2], re.M)
    return {
        "title": f"Report on {_extract_topic(_find_tag(prompt, 'message'), 5)}",
        "answers": [],
        "sentences": [*opening, *body[:most], *closing],
        "notes": ["Done as asked." for _ in fixes],
    }


def _choose_opening(body: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first two that are not all their section has: a sentence is told once, and no section is to be empty."""
    count = Counter(sentence["section"] for sentence in body)
    taken: list[dict[str, Any]] = []
    for sentence in body:
        if count[sentence["section"]] > 1 and len(taken) < 2:
            count[sentence["section"]] -= 1
            taken.append(sentence)
    return taken or body[:1]


def write_review(prompt: ModelPrompt) -> dict[str, Any]:
    marks = {"accuracy": 9, "completeness": 8, "coherence": 8, "citation": 9, "methodology": 8, "style": 8}
    return {**marks, "issues": [], "potential": 1}


def summarise(prompt: ModelPrompt) -> dict[str, Any]:
    asked = re.findall(r"^user: (.+)$", prompt.text, re.M)
    return {
        "summary": " ".join(f"The person asked about {_extract_topic(text, 6)}." for text in asked)
        or "Nothing was asked."
    }


def fit_schema(answer: Any, schema: Mapping[str, Any]) -> Any:
    """What the form has room for: its own fields, filled in where the answer has none, and lists no longer than it
    allows."""
    if isinstance(answer, list):
        kept = answer[: schema.get("maxItems", len(answer))]
        return [fit_schema(item, schema.get("items", {})) for item in kept]
    if isinstance(answer, dict) and "properties" in schema:
        fields = schema["properties"]
        return {
            k: fit_schema(answer[k], field) if k in answer else build_instance(field) for k, field in fields.items()
        }
    return answer


def _find_tag(prompt: ModelPrompt, tag: str, *, first: bool = False) -> str:
    found = re.findall(rf"<{tag}>\n(.*?)\n</{tag}>", prompt.text, re.S)
    return (found[0 if first else -1] if found else prompt.text).strip()


def _find_lines(prompt: ModelPrompt) -> list[tuple[int, str]]:
    return [(int(number), text) for number, text in re.findall(r"^\[(\d+)\] (.+)$", prompt.text, re.M)]


def _find_questions(prompt: ModelPrompt) -> list[tuple[int, str]]:
    listed = re.findall(r"^(\d+)\. (.+)$", _find_tag(prompt, "message"), re.M)
    return [(int(number), text) for number, text in listed]


def _split_question(text: str) -> tuple[int, str]:
    """A quote of evidence stands behind the number of its sub-question."""
    match = re.match(r"\(question (\d+)\) (.*)", text)
    return (int(match[1]), match[2]) if match else (0, text)


def _build_sentence(number: int, text: str, names: list[str]) -> dict[str, Any]:
    section = next((name for name in names if text.startswith(f"({name}) ")), "")
    said = text.removeprefix(f"({section}) ") if section else text
    return {"section": section or names[0], "text": _MARK.sub("", said), "claims": [number]}


def _rest_of_line(text: str, label: str) -> str:
    """The rest of the line that begins with the label."""
    match = re.search(rf"^{re.escape(label)}[ ]?(.*)$", text, re.M)
    return match[1].strip() if match else ""


def _find_limit(prompt: ModelPrompt) -> int:
    match = re.search(r"at most (\d+)\b(?! words)", prompt.system)
    return int(match[1]) if match else 10


def _extract_topic(text: str, count: int) -> str:
    """The words that carry meaning, in order."""
    kept = dict.fromkeys(word for word in content_words(text) if word not in {*map(fold, ASPECTS), *REFINEMENTS})
    return " ".join(list(kept)[:count]) or "this"


def _schema_at(schema: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    for name in path:
        schema = schema.get("properties", schema).get(name, {})
    return schema
