"""A report of a size nobody has had yet: 500 sources, 3,000 claims, 3,000 statements in 30 sections."""

from typing import Any

CLAIMS, SOURCES, SECTIONS = 3_000, 500, 30
MARKS = ("✓✓", "✓", "⚠")
KINDS = ("web", "academic", "news", "own")
WORDS = "measured tide harbour kiln orbit lattice enzyme glacier treaty voltage".split()


def report(real: dict[str, Any]) -> dict[str, Any]:
    """In place of a real one, of which all else stays."""
    claims = [_claim(n) for n in range(CLAIMS)]
    each = CLAIMS // SECTIONS
    sections = [
        {
            "title": f"Section {at}: the {WORDS[at % 10]} of the {WORDS[at % 7]}",
            "role": "body",
            "sentences": [_sentence(n) for n in range(at * each, (at + 1) * each)],
        }
        for at in range(SECTIONS)
    ]
    coverage = {"checked": CLAIMS, "total": CLAIMS}
    return {**real, "claims": claims, "sections": sections, "sources": [_card(n) for n in range(SOURCES)],
            "coverage": coverage, "disputes": [], "answers": []}  # fmt: skip


def shelf() -> dict[str, Any]:
    cards = [{**_card(n), "whyUsed": "It answers Q1", "credibilityReasons": ["a named author"], "sameAs": [],
              "pinned": False, "excerpts": _excerpts(n)} for n in range(SOURCES)]  # fmt: skip
    for card in cards:
        for name in ("why_used", "credibility_reasons", "same_as"):
            card.pop(name)
    return {"sources": cards, "pinned": [], "vetoed": []}


def _text(n: int) -> str:
    return f"In {1900 + n % 120} the {WORDS[n % 10]} number {n} was {WORDS[n % 7]} at {n % 97}.{n % 10} metres."


def _span(n: int) -> dict[str, Any]:
    source = n % SOURCES
    return {"source": f"S{source + 1}", "document": _hash(source), "start": n, "end": n + 40, "quote": _text(n + 1)}


def _claim(n: int) -> dict[str, Any]:
    return {
        "id": f"C{n + 1}", "text": _text(n + 1), "verdict": "supported", "confidence": 0.5 + n % 50 / 100,
        "mark": MARKS[n % 3], "spans": [_span(n), _span(n + 7)], "against": [], "reasons": ["its figures agree"],
        "questions": ["Q1"], "disputed_by": [], "superseded_by": None,
    }  # fmt: skip


def _sentence(n: int) -> dict[str, Any]:
    return {
        "text": _text(n + 1), "kind": "fact", "claims": [f"C{n + 1}"], "mark": MARKS[n % 3], "opens": n % 5 == 0,
        "citations": [f"S{n % SOURCES + 1}", f"S{(n + 7) % SOURCES + 1}"],
    }  # fmt: skip


def _card(n: int) -> dict[str, Any]:
    return {
        "id": f"S{n + 1}", "title": f"On the {WORDS[n % 10]} and the {WORDS[n % 7]}, part {n}",
        "url": f"https://host{n % 60}.example/{n}", "host": f"host{n % 60}.example", "kind": KINDS[n % 4],
        "author": f"Author {n % 33}", "published": f"20{n % 25:02}-0{n % 9 + 1}-1{n % 9}", "document": _hash(n),
        "group": f"G{n // 2}", "why_used": "It answers Q1", "primary": n % 9 == 0, "credibility": n % 100 / 100,
        "credibility_reasons": ["a named author"], "same_as": [],
    }  # fmt: skip


def _excerpts(source: int) -> list[dict[str, Any]]:
    return [{"claim": f"C{n + 1}", "start": n, "end": n + 40, "quote": _text(n + 1), "against": False}
            for n in range(source, CLAIMS, SOURCES)]  # fmt: skip


def _hash(n: int) -> str:
    return f"{n:064x}"
