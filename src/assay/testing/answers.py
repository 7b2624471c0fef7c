"""Sensible answers to the forms of the language reasoner, made from nothing but the prompt.

Everything is read from the prompt, nothing remembered: the same prompt has the same answer, however often and in what
order it is asked.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from assay.testing import understood as sensible
from assay.testing.schema import instance
from assay.testing.seen import SeenPrompt
from assay.testing.understood import Heard
from assay.text.words import content_words, fold, stems

Answers = dict[str, Callable[[SeenPrompt], object]]
ASPECTS = ("history", "effects", "causes", "costs", "limits", "uses", "outlook")
VARIATIONS = ("overview", "study", "report", "review", "data", "analysis")
REFINED = ("details", "evidence")  # how the queries of the second and third round end
_MARK = re.compile(r"\s*[✓⚠]+$")


def answers(questions: int, queries: int, rounds: int) -> Answers:
    """`questions` sub-questions with `queries` (three at most) each, and `rounds` of searching in all."""
    return {
        "Understood": understood,
        "Questions": asked_back,
        "Plan": lambda prompt: plan(prompt, questions, queries),
        "Queries": varied,
        "Picks": picks,
        "Analysis": lambda prompt: analysis(prompt, rounds),
        "Claims": claims,
        "Verdicts": verdicts,
        "Draft": draft,
        "Review": review,
        "Summary": summary,
    }


def understood(prompt: SeenPrompt) -> dict[str, Any]:
    _, _, last = prompt.text.rpartition("The new message:")
    heard = Heard(
        message=_tagged(replace(prompt, text=last), "message", first=True),
        subject=_after(prompt.text, "The conversation is about:"),
        answers=tuple(re.findall(r"^Asked back about the new message, the person answered: (.*)$", prompt.text, re.M)),
    )
    return {**sensible.understood(heard), "topic": _topic(heard.text, 4)}


def asked_back(prompt: SeenPrompt) -> dict[str, Any]:
    topic = _topic(_tagged(prompt, "message"), 4)
    options = {letter: f"{aspect} of {topic}" for letter, aspect in zip("abcd", ASPECTS, strict=False)}
    return {"questions": [{"about": "scope", "text": f"Which side of {topic}?", **options, "several": True}]}


def plan(prompt: SeenPrompt, questions: int, queries: int) -> dict[str, Any]:
    """Sections of its own, unless the form has some to choose from."""
    topic = _topic(_tagged(prompt, "message", first=True), 6)
    words = ("{topic} {aspect}", "{aspect} {topic} findings", "{topic} {aspect} results")[:queries]
    given = _at(prompt.schema, "questions", "items", "section").get("enum", [])
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


def varied(prompt: SeenPrompt) -> dict[str, Any]:
    topic = _topic(_tagged(prompt, "message"), 6)
    done = prompt.text.partition("Asked already:")[2]
    fresh = [f"{topic} {word}" for word in VARIATIONS if f"{topic} {word}" not in done]
    count = re.search(r"Write (\d+) new", prompt.system)
    kinds = _at(prompt.schema, "queries", "items", "type").get("enum", ["web"])
    return {"queries": [{"text": text, "type": kinds[0]} for text in fresh[: int(count[1]) if count else 3]]}


def picks(prompt: SeenPrompt) -> dict[str, Any]:
    """The sentences that share most words with the question."""
    wanted = set(stems(_tagged(prompt, "message")))
    shared = {number: len(wanted & set(stems(text))) for number, text in _numbered(prompt)}
    best = max(shared.values(), default=0)
    chosen = sorted((number for number, count in shared.items() if count), key=lambda n: (-shared[n], n))
    scored = [{"first": n, "last": n, "score": round(4 + 5 * shared[n] / best)} for n in chosen[: _most(prompt)]]
    return {"picks": scored}


def analysis(prompt: SeenPrompt, rounds: int) -> dict[str, Any]:
    """A gap for every sub-question in each round but the last."""
    asked = _tagged(prompt, "asked").split("; ")
    now = 1 + sum(any(text.endswith(f" {word}") for text in asked) for word in REFINED)
    lacking = _questions(prompt) if now < rounds and now <= len(REFINED) else []
    gaps = [
        {"question": n, "severity": "major", "missing": "figures", "query": f"{_topic(text, 6)} {REFINED[now - 1]}"}
        for n, text in lacking
    ]
    return {
        "findings": [{"quote": number, "grade": "moderate"} for number, _ in _numbered(prompt)[:5]],
        "themes": [],
        "contradictions": [],
        "gaps": gaps,
        "sufficiency": "gaps_major" if gaps else "sufficient",
        "confidence": 3 + 2 * now if gaps else 9,
    }


def claims(prompt: SeenPrompt) -> dict[str, Any]:
    """Every quote as it stands."""
    quotes = [(number, *_question(text)) for number, text in _numbered(prompt)][: _most(prompt)]
    told = [{"text": text, "quotes": [n], "question": question, "relevance": 7} for n, question, text in quotes]
    found = re.findall(r"^Source (\d+):", prompt.text, re.M)
    return {
        "claims": told,
        "sources": [{"source": int(n), "score": 7, "reason": "as it presents itself"} for n in found],
    }


def verdicts(prompt: SeenPrompt) -> dict[str, Any]:
    short = [name for name in prompt.schema.get("properties", {}) if name.startswith("answer")]
    if short:
        return dict.fromkeys(short, "yes")
    pairs = [{"pair": number, "verdict": "supported", "sure": 9} for number, _ in _numbered(prompt)]
    return {"verdicts": pairs, "conflicts": []}


def draft(prompt: SeenPrompt) -> dict[str, Any]:
    """A sentence a claim in the claim's own section, and again where the report opens and ends."""
    names = _after(prompt.text, "Sections:").split("; ")
    body = [_sentence(number, text, names) for number, text in _numbered(prompt)]
    frame = {"Conclusion"} & set(names)
    opening = [{**sentence, "section": names[0]} for sentence in _leading(body)]
    closing = [{**sentence, "section": name} for sentence in body[:1] for name in frame]
    most = max(1, _most(prompt) - len(opening) - len(closing))
    fixes = re.findall(r"^\d+\. ", prompt.text.partition("A reviewer read")[2], re.M)
    return {
        "title": f"Report on {_topic(_tagged(prompt, 'message'), 5)}",
        "answers": [],
        "sentences": [*opening, *body[:most], *closing],
        "notes": ["Done as asked." for _ in fixes],
    }


def _leading(body: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first two that are not all their section has: a sentence is told once, and no section is to be empty."""
    count = Counter(sentence["section"] for sentence in body)
    taken: list[dict[str, Any]] = []
    for sentence in body:
        if count[sentence["section"]] > 1 and len(taken) < 2:
            count[sentence["section"]] -= 1
            taken.append(sentence)
    return taken or body[:1]


def review(prompt: SeenPrompt) -> dict[str, Any]:
    marks = {"accuracy": 9, "completeness": 8, "coherence": 8, "citation": 9, "methodology": 8, "style": 8}
    return {**marks, "issues": [], "potential": 1}


def summary(prompt: SeenPrompt) -> dict[str, Any]:
    asked = re.findall(r"^user: (.+)$", prompt.text, re.M)
    return {"summary": " ".join(f"The person asked about {_topic(text, 6)}." for text in asked) or "Nothing was asked."}


def fitted(answer: Any, schema: Mapping[str, Any]) -> Any:
    """What the form has room for: its own fields, filled in where the answer has none, and lists no longer than it
    allows."""
    if isinstance(answer, list):
        kept = answer[: schema.get("maxItems", len(answer))]
        return [fitted(item, schema.get("items", {})) for item in kept]
    if isinstance(answer, dict) and "properties" in schema:
        fields = schema["properties"]
        return {k: fitted(answer[k], field) if k in answer else instance(field) for k, field in fields.items()}
    return answer


def _tagged(prompt: SeenPrompt, tag: str, *, first: bool = False) -> str:
    found = re.findall(rf"<{tag}>\n(.*?)\n</{tag}>", prompt.text, re.S)
    return (found[0 if first else -1] if found else prompt.text).strip()


def _numbered(prompt: SeenPrompt) -> list[tuple[int, str]]:
    return [(int(number), text) for number, text in re.findall(r"^\[(\d+)\] (.+)$", prompt.text, re.M)]


def _questions(prompt: SeenPrompt) -> list[tuple[int, str]]:
    listed = re.findall(r"^(\d+)\. (.+)$", _tagged(prompt, "message"), re.M)
    return [(int(number), text) for number, text in listed]


def _question(text: str) -> tuple[int, str]:
    """A quote of evidence stands behind the number of its sub-question."""
    match = re.match(r"\(question (\d+)\) (.*)", text)
    return (int(match[1]), match[2]) if match else (0, text)


def _sentence(number: int, text: str, names: list[str]) -> dict[str, Any]:
    section = next((name for name in names if text.startswith(f"({name}) ")), "")
    said = text.removeprefix(f"({section}) ") if section else text
    return {"section": section or names[0], "text": _MARK.sub("", said), "claims": [number]}


def _after(text: str, label: str) -> str:
    """The rest of the line that begins with the label."""
    match = re.search(rf"^{re.escape(label)}[ ]?(.*)$", text, re.M)
    return match[1].strip() if match else ""


def _most(prompt: SeenPrompt) -> int:
    match = re.search(r"at most (\d+)\b(?! words)", prompt.system)
    return int(match[1]) if match else 10


def _topic(text: str, count: int) -> str:
    """The words that carry meaning, in order."""
    kept = dict.fromkeys(word for word in content_words(text) if word not in {*map(fold, ASPECTS), *REFINED})
    return " ".join(list(kept)[:count]) or "this"


def _at(schema: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    for name in path:
        schema = schema.get("properties", schema).get(name, {})
    return schema
