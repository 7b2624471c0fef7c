"""Errands of chat front ends: a title for the chat, tags, what to ask next. They are sent to whatever model is chosen,
after or even during every answer. Research would be wasted on them: plain code answers, at no cost.

A prompt is known by its shape, that of one front end each: all its marks stand in the instructions, which is what is
said outside the conversation that is quoted to the model. A person's question that speaks of titles has no such shape.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

TINY = 64  # tokens: no report is that short
SHORT = f"Assay is ready. Nothing was researched: a report needs more than {TINY} tokens."
MERGING = "Assay does not merge the answers of other models. Ask it the question itself."
LONGEST_TITLE = 60  # characters
_WORDS = 8

_LOOKED = 4000  # characters of a conversation in which its first question stands
_QUOTED = ("chat_history", "conversation")
_SPEAKER = re.compile(r"^[ #]{0,8}(?:user|human) ?:|<user>", re.IGNORECASE | re.MULTILINE)
_OTHER = re.compile(r"^[ #]{0,8}(?:assistant|ai) ?:|</user>", re.IGNORECASE | re.MULTILINE)
_MARKUP = re.compile(r"[*_`#>\[\]{}\"]")


class Shape(NamedTuple):
    """`marks`: all stand in the instructions, in whatever case."""

    errand: str
    marks: tuple[str, ...]


SHAPES = (
    # Open WebUI; templates that an administrator has changed keep the block and the key.
    Shape("follow_ups", ("<chat_history>", '"follow_ups"')),
    Shape("tags", ("<chat_history>", '"tags"')),
    Shape("title", ("<chat_history>", '"title"')),
    Shape("queries", ("<chat_history>", '"queries"')),
    Shape("image_prompt", ("<chat_history>", '"prompt"')),
    Shape("autocomplete", ("autocompletion system", '"text"')),
    Shape("tool_choice", ("available tools:", "your task is to choose and return the correct tool")),
    Shape("emoji", ("your task is to reflect the speaker's likely facial expression", "emoji")),
    Shape("merging", ("you have been provided with a set of responses from various models",)),
    # LibreChat
    Shape(
        "title_line", ("provide a concise, 5-word-or-less title for the conversation", "only return the title itself")
    ),
    Shape("title_and_language", ("analyze this conversation and provide", "detected language", "concise title")),
    Shape("title_line", ("please generate a concise title (max 40 characters) for a conversation that starts with",)),
    # LobeChat
    Shape("title", ("conversation summarizer", "concise title", '"title"')),
    Shape("title_line", ("conversation summarizer", "concise title")),
    Shape("title_line", ("summarize user conversations into titles within 10",)),
    Shape("title_line", ("会话总结为 10 个字以内的标题",)),
    Shape("title_line", ("请总结上述对话为10个字以内的标题",)),
    Shape("completion", ("autocomplete engine for a chat input box",)),
    # Goose
    Shape("title_line", ("generate a short title (four words or less)", "reply with only the title")),
)
# What a request may say of itself: `metadata.task` of Open WebUI.
TASKS = {
    "title_generation": "title", "tags_generation": "tags", "follow_up_generation": "follow_ups",
    "emoji_generation": "emoji", "query_generation": "queries", "image_prompt_generation": "image_prompt",
    "autocomplete_generation": "autocomplete", "function_calling": "tool_choice", "moa_response_generation": "merging",
}  # fmt: skip
_ANSWERS: Mapping[str, Callable[[str], object]] = {
    "title": lambda text: {"title": title(text)},
    "title_line": lambda text: title(text),
    "title_and_language": lambda text: {"language": "", "title": title(text)},
    "tags": lambda text: {"tags": ["Research"]},
    "follow_ups": lambda text: {"follow_ups": []},
    "queries": lambda text: {"queries": []},
    "image_prompt": lambda text: {"prompt": ""},
    "autocomplete": lambda text: {"text": ""},
    "completion": lambda text: {"completion": ""},
    "tool_choice": lambda text: {"tool_calls": []},
    "emoji": lambda text: "\N{LEFT-POINTING MAGNIFYING GLASS}",
    "merging": lambda text: MERGING,
    "short": lambda text: SHORT,
}


def errand(said: Sequence[tuple[str, str]], metadata: Mapping[str, Any] | None, most: int | None) -> str | None:
    """What a request is about, if it asks for no research. `said` are the messages as (role, text), `most` the tokens
    its answer may have."""
    if metadata and (known := TASKS.get(str(metadata.get("task")))):
        return known
    if not any(role == "assistant" for role, _ in said):
        instructions = _instructions(_whole(said)).casefold()
        for shape in SHAPES:
            if all(mark.casefold() in instructions for mark in shape.marks):
                return shape.errand
    return "short" if most is not None and most <= TINY else None


def answer(errand: str, said: Sequence[tuple[str, str]]) -> str:
    """In the form that was asked for."""
    given = _ANSWERS[errand](_whole(said))
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def title(prompt: str) -> str:
    """The first question of the conversation that is quoted, shortened."""
    talk = next((prompt.partition(f"<{name}>")[2] for name in _QUOTED if f"<{name}>" in prompt), prompt)
    first = _OTHER.split(_SPEAKER.split(talk[:_LOOKED], maxsplit=1)[-1], maxsplit=1)[0]
    words = _MARKUP.sub(" ", first).split()
    line = " ".join(words[:_WORDS]).rstrip(" ?.!,:;")
    return (line if len(line) <= LONGEST_TITLE else f"{line[: LONGEST_TITLE - 1]}…") or "Research"


def _instructions(prompt: str) -> str:
    """Without what is quoted; the marks of that stay."""
    for name in _QUOTED:
        before, opening, rest = prompt.partition(f"<{name}>")
        prompt = before + opening + rest.rpartition(f"</{name}>")[2]
    return prompt


def _whole(said: Sequence[tuple[str, str]]) -> str:
    """What the front end's own words and its last message say."""
    return "\n".join([*(text for role, text in said if role in ("system", "developer")), said[-1][1]])
