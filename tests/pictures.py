"""Draws the pictures of architecture.md from the code: `.venv/bin/python tests/pictures.py`.

    layers    what may import what, from pyproject.toml
    question  the graph without the places where people are asked
    people    those places

The last two are the compiled graph and together all of it.
"""

import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from openassay.graph import STATUS, build_graph

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
HANDLER = "__error_handler__"  # LangGraph's own, one for each stage that runs once for each sub-question
NAMES = {"__start__": "start", "__end__": "done"}  # `end` is a word of Mermaid's

Edge = tuple[str, str, bool]  # from, to, whether it is one of several ways


@cache
def edges() -> tuple[Edge, ...]:
    drawn = build_graph().get_graph().edges
    named = ((NAMES.get(edge.source, edge.source), NAMES.get(edge.target, edge.target), edge) for edge in drawn)
    return tuple(sorted((a, b, edge.conditional) for a, b, edge in named if not (a + b).count(HANDLER)))


@cache
def parallel() -> frozenset[str]:
    """Stages that run once for each sub-question: where one fails, the others go on."""
    return frozenset(
        name.removeprefix(HANDLER).strip("_") for name in build_graph().get_graph().nodes if HANDLER in name
    )


def asks(name: str) -> bool:
    return name.startswith("approve_")


def question() -> str:
    return picture(edge for edge in edges() if not asks(edge[0]) and not asks(edge[1]))


def people() -> str:
    return picture(edge for edge in edges() if asks(edge[0]) or asks(edge[1]))


def picture(shown: Iterable[Edge]) -> str:
    """Stages stand together by the status a run has in them."""
    shown = list(shown)
    names = {name for edge in shown for name in edge[:2]}
    lines = ["flowchart TD"]
    for status in dict.fromkeys(STATUS.values()):
        inside = [name for name in STATUS if name in names and STATUS[name] is status]
        lines += [f"  subgraph {status}", *(f"    {shape(name)}" for name in inside), "  end"] if inside else []
    lines += [f"  {name}(({name}))" for name in sorted(names - STATUS.keys())]
    return "\n".join([*lines, *(f"  {a} {'-.->' if choice else '-->'} {b}" for a, b, choice in shown)])


def shape(name: str) -> str:
    if name in parallel():
        return f'{name}[["{name} (each sub-question)"]]'
    return f"{name}{{{{{name}}}}}" if asks(name) else f"{name}[{name}]"


def layers() -> str:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = next(one for one in settings["tool"]["importlinter"]["contracts"] if one["type"] == "layers")
    return "\n".join(layer.replace("openassay.", "") for layer in contract["layers"])


def drawn(text: str) -> str:
    """A page with its pictures as the code has them now."""
    pictures = {"layers": ("text", layers()), "question": ("mermaid", question()), "people": ("mermaid", people())}
    for name, (kind, made) in pictures.items():
        before, rest = text.split(f"<!-- drawn: {name} -->\n")
        after = rest.partition("<!-- end -->")[2]
        text = f"{before}<!-- drawn: {name} -->\n```{kind}\n{made}\n```\n<!-- end -->{after}"
    return text


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
