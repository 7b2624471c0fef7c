"""What a reviewer sees at a breakpoint, in few lines."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from assay.cli.lines import dollars, one_line
from assay.cli.screen import item
from assay.text.words import counted

MOST_LISTED = 20  # claims, issues, hosts


def seen(shown: dict[str, Any]) -> Iterator[RenderableType]:
    rest = {key: value for key, value in shown.items() if key not in _HIDDEN and value not in (None, [], {}, "")}
    for key, teller in _TELLERS.items():
        if key in rest:
            yield from teller(rest.pop(key))
    for key, value in rest.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        yield item("•", Text.assemble((f"{key}: ", "cyan"), _short(text, 300)))


def _short(text: str, most: int = 110) -> str:
    line = one_line(" ".join(text.split()))
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def _draft(draft: dict[str, Any]) -> Iterator[RenderableType]:
    yield Text(f"  {_short(draft['title'])}", style="underline")
    for letter, section in zip(LETTERS, draft["sections"], strict=False):
        sentences = section["sentences"]
        first = f" {_short(sentences[0]['text'], 140)}" if sentences else ""
        title = _short(section["title"] or section.get("role", ""))
        size = f" ({counted(len(sentences), 'sentence')})"
        yield item(letter, Text.assemble((title, "bold"), (size, "dim"), first))


def _critique(critique: dict[str, Any]) -> Iterator[RenderableType]:
    yield Text.assemble("  score ", (f"{critique['score']:.1f}", "bold"), f" of 10, {critique['recommendation']}")


def _issues(issues: Sequence[dict[str, Any]]) -> Iterator[RenderableType]:
    for issue in issues[:MOST_LISTED]:
        style = "red" if issue["severity"] == "critical" else "yellow"
        fix = f" → {issue['fix']}" if issue.get("fix") else ""
        yield item("•", Text.assemble((f"{issue['severity']}: ", style), _short(f"{issue['description']}{fix}", 240)))
    yield from _more(issues)


def _claims(claims: Sequence[dict[str, Any]]) -> Iterator[RenderableType]:
    for claim in claims[:MOST_LISTED]:
        judged = f" {str(claim['verdict']).replace('_', ' ')} {claim.get('mark') or ''}".rstrip()
        yield item(claim["id"], Text.assemble(_short(claim["text"], 160), (judged, "dim")), 4)
    yield from _more(claims)


def _hosts(hosts: Sequence[str]) -> Iterator[RenderableType]:
    listed = ", ".join(_short(host, 60) for host in hosts[:MOST_LISTED])
    yield Text.assemble(
        ("  from ", "cyan"), listed, f" and {len(hosts) - MOST_LISTED} more" if hosts[MOST_LISTED:] else ""
    )


def _more(items: Sequence[object]) -> Iterator[RenderableType]:
    if items[MOST_LISTED:]:
        yield Text(f"  … and {len(items) - MOST_LISTED} more: assay review show lists all", style="dim")


def _cost(usd: float) -> Iterator[RenderableType]:
    yield Text(f"  about {dollars(usd)}" if usd else "  costs nothing")


def _count(noun: str) -> Callable[[int], Iterator[RenderableType]]:
    return lambda number: iter([Text(f"  {counted(number, noun)}")])


def _listed(noun: str) -> Callable[[Sequence[object]], Iterator[RenderableType]]:
    return lambda items: iter([Text(f"  {counted(len(items), noun)}")])


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_HIDDEN = frozenset({"breakpoint", "key", "asked", "seconds", "on_timeout", "id", "number", "of", "plan"})
_TELLERS: dict[str, Callable[[Any], Iterator[RenderableType]]] = {
    "pages": _count("web page"), "passages": _count("passage"), "usd": _cost, "hosts": _hosts, "draft": _draft,
    "critique": _critique, "issues": _issues, "claims": _claims, "disagreements": _listed("disagreement"),
    "sources": _listed("source"),
}  # fmt: skip
