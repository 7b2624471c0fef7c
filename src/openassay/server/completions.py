"""What chat front ends send and show: a conversation becomes a question, events become lines of progress, and tasks
such as a title for the chat are answered without research."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from openassay.models.event import Event
from openassay.server.bodies import redact_event
from openassay.text.words import is_readable

MAX_CONTEXT = 3000  # characters of earlier messages, as far as a planner reads
MAX_MESSAGE = 400  # characters of each of them
ATTACHED_NOTE = (
    "What the front end attached to the question was left out: OpenAssay reads its own sources, and documents that are "
    "uploaded through /api/documents."
)
_INSTRUCTION_ROLES = ("system", "developer")
# Open WebUI puts what it has found itself before the question, or the question into a block of its own.
_WRAPPER = re.compile(r"\s*### Task:\s*Respond to the user query using the provided context", re.IGNORECASE)
# What front ends show as thinking, and some send back.
_THOUGHTS = (('<details type="reasoning"', "</details>"), ("<think>", "</think>"), ("<thinking>", "</thinking>"))


# Conversations ------------------------------------------------------------------------------------------------


class ChatMessage(NamedTuple):
    role: str
    text: str


class ChatConversation(NamedTuple):
    """`before` is the last question that was answered, and its answer; `instructions` and `history` are what a planner
    may know of the rest. `notes` are shown to the person."""

    question: str
    before: tuple[str, str] | None
    instructions: str
    history: str
    notes: tuple[str, ...] = ()


def read_conversation(messages: Sequence[ChatMessage]) -> ChatConversation | None:
    """Return the conversation whose question is the last message of the user; None where there is none."""
    last = max((number for number, message in enumerate(messages) if message.role == "user"), default=None)
    if last is None:
        return None
    question, was_wrapped = _extract_question(messages[last].text)
    earlier: list[ChatMessage] = []
    for role, text in messages[:last]:
        if role == "user":
            text, _ = _extract_question(text)
        elif role == "assistant":
            for opening, closing in _THOUGHTS:
                text = strip_blocks(text, opening, closing)
        else:
            continue
        if text.strip():
            earlier.append(ChatMessage(role, text.strip()))
    before = None
    match earlier:
        case [*_, ChatMessage(role="user", text=asked), ChatMessage(role="assistant", text=answer)]:
            before = (asked, answer)
    newest_first = [message for message in reversed(messages[:last]) if message.role in _INSTRUCTION_ROLES]
    history = (f"{message.role}: {_to_line(message.text)}" for message in reversed(earlier))
    return ChatConversation(
        question=question,
        before=before,
        instructions=_format_context("instructions", (_to_line(message.text) for message in newest_first)),
        history=_format_context("conversation", history),
        notes=(ATTACHED_NOTE,) if was_wrapped else (),
    )


def _extract_question(text: str) -> tuple[str, bool]:
    """Return the person's own words, and whether a front end had wrapped them."""
    if not _WRAPPER.match(text):
        return text.strip(), False
    _, is_marked, marked = text.partition("<user_query>")
    return (marked.partition("</user_query>")[0] if is_marked else text.rpartition("</context>")[2]).strip(), True


def strip_blocks(text: str, opening: str, closing: str) -> str:
    """Return the text without such blocks; in one pass, since the sender may be hostile."""
    parts, at = list[str](), 0
    while (begin := text.find(opening, at)) >= 0 and (end := text.find(closing, begin)) >= 0:
        parts.append(text[at:begin])
        at = end + len(closing)
    return "".join([*parts, text[at:]])


def _format_context(name: str, lines: Iterable[str]) -> str:
    """Return the newest lines, which come first, as one line: searches use the question alone."""
    chosen: list[str] = []
    for line in lines:
        if sum(map(len, chosen)) + len(line) > MAX_CONTEXT:
            break
        chosen.insert(0, line)
    return f"The conversation so far: ({name}) {' | '.join(chosen)}" if chosen else ""


def _to_line(text: str) -> str:
    line = "".join(letter for letter in " ".join(text[: 4 * MAX_MESSAGE].split()) if is_readable(letter))
    return line if len(line) <= MAX_MESSAGE else f"{line[: MAX_MESSAGE - 1]}…"


# Progress, in lines that chat front ends show as thinking: no drafts, and nothing that pages say -------------------

_AGENTS = {
    "understand": "Planner: understanding the question",
    "plan": "Planner: planning the research",
    "dispatch": "Searcher: searching",
    "harvest": "Searcher: fetching pages",
    "read": "Reader: reading what was found",
    "consolidate": "Analyst: putting findings together",
    "analyse": "Analyst: looking for gaps",
    "verify": "Verifier: checking every statement against its source",
    "write": "Writer: writing the report",
    "review": "Reviewer: judging the draft",
    "withdraw": "Analyst: taking sources out",
    "publish": "Writer: publishing what was checked",
    "fallback": "Writer: publishing the best there is",
}
_Data = dict[str, Any]
_FORMATTERS: dict[tuple[str, str], Callable[[_Data], Iterable[str]]] = {
    ("section", "plan"): lambda data: (f"- {question}" for question in data.get("questions", ())),
    ("finding", ""): lambda data: [f"- {data.get('text')}: {data.get('findings')} findings"],
    ("notice", ""): lambda data: [f"Note: {data.get('text') or data.get('reason') or ''}"],
    ("error", ""): lambda data: [f"Error: {data.get('message')}"],
}


class Narration:
    """Describes events, each thing once. Many readers begin at once: they are one line."""

    def __init__(self) -> None:
        self._agent = ""
        self._lines: set[str] = set()

    def narrate(self, events: Iterable[Event]) -> str:
        """Return what is new, as text to be added."""
        new: list[str] = []
        for event in events:
            if event.kind == "enter":
                agent = _AGENTS.get(event.stage, "")
                if agent and agent != self._agent:
                    self._agent = agent
                    new.append(agent)
            elif format_lines := _FORMATTERS.get((event.kind, event.stage)) or _FORMATTERS.get((event.kind, "")):
                lines = dict.fromkeys(" ".join(line.split()) for line in format_lines(redact_event(event).data))
                new += [line for line in lines if line not in self._lines]
                self._lines.update(lines)
        return "".join(f"{line}\n" for line in new)


# Tasks of chat front ends: a title for the chat, tags, what to ask next --------------------------------------------
#
# They are sent to whatever model is chosen, after or even during every answer. Research would be wasted on them: they
# are answered by code, at no cost.
#
# A prompt is recognised by its shape, which is that of one front end: all its marks stand in the instructions, outside
# the conversation that is quoted to the model. A person's question about titles has no such shape.

MIN_TOKENS = 64  # no report is that short
SHORT_ANSWER = f"OpenAssay is ready. Nothing was researched: a report needs more than {MIN_TOKENS} tokens."
MERGE_ANSWER = "OpenAssay does not merge the answers of other models. Ask it the question itself."
MAX_TITLE, MAX_TITLE_WORDS = 60, 8  # characters and words
_MAX_OPENING = 4000  # characters of a conversation in which its first question stands
_QUOTE_TAGS = ("chat_history", "conversation")
_SPEAKER = re.compile(r"^[ #]{0,8}(?:user|human) ?:|<user>", re.IGNORECASE | re.MULTILINE)
_OTHER = re.compile(r"^[ #]{0,8}(?:assistant|ai) ?:|</user>", re.IGNORECASE | re.MULTILINE)
_MARKUP = re.compile(r"[*_`#>\[\]{}\"]")


SHAPES: tuple[tuple[str, tuple[str, ...]], ...] = (  # tasks, and the marks that all stand in their instructions
    # Open WebUI; templates that an administrator has changed keep the block and the key.
    ("follow_ups", ("<chat_history>", '"follow_ups"')),
    ("tags", ("<chat_history>", '"tags"')),
    ("title", ("<chat_history>", '"title"')),
    ("queries", ("<chat_history>", '"queries"')),
    ("image_prompt", ("<chat_history>", '"prompt"')),
    ("autocomplete", ("autocompletion system", '"text"')),
    ("tool_choice", ("available tools:", "your task is to choose and return the correct tool")),
    ("emoji", ("your task is to reflect the speaker's likely facial expression", "emoji")),
    ("merging", ("you have been provided with a set of responses from various models",)),
    # LibreChat
    ("title_line", ("provide a concise, 5-word-or-less title for the conversation", "only return the title itself")),
    ("title_and_language", ("analyze this conversation and provide", "detected language", "concise title")),
    ("title_line", ("please generate a concise title (max 40 characters) for a conversation that starts with",)),
    # LobeChat
    ("title", ("conversation summarizer", "concise title", '"title"')),
    ("title_line", ("conversation summarizer", "concise title")),
    ("title_line", ("summarize user conversations into titles within 10",)),
    ("title_line", ("会话总结为 10 个字以内的标题",)),
    ("title_line", ("请总结上述对话为10个字以内的标题",)),
    ("completion", ("autocomplete engine for a chat input box",)),
    # Goose
    ("title_line", ("generate a short title (four words or less)", "reply with only the title")),
)
# What a request may say of itself: `metadata.task` of Open WebUI.
TASKS = {
    "title_generation": "title",
    "tags_generation": "tags",
    "follow_up_generation": "follow_ups",
    "emoji_generation": "emoji",
    "query_generation": "queries",
    "image_prompt_generation": "image_prompt",
    "autocomplete_generation": "autocomplete",
    "function_calling": "tool_choice",
    "moa_response_generation": "merging",
}
_ANSWERS: Mapping[str, Callable[[str], object]] = {
    "title": lambda text: {"title": suggest_title(text)},
    "title_line": lambda text: suggest_title(text),
    "title_and_language": lambda text: {"language": "", "title": suggest_title(text)},
    "tags": lambda text: {"tags": ["Research"]},
    "follow_ups": lambda text: {"follow_ups": []},
    "queries": lambda text: {"queries": []},
    "image_prompt": lambda text: {"prompt": ""},
    "autocomplete": lambda text: {"text": ""},
    "completion": lambda text: {"completion": ""},
    "tool_choice": lambda text: {"tool_calls": []},
    "emoji": lambda text: "\N{LEFT-POINTING MAGNIFYING GLASS}",
    "merging": lambda text: MERGE_ANSWER,
    "short": lambda text: SHORT_ANSWER,
}


def detect_task(
    messages: Sequence[ChatMessage], metadata: Mapping[str, Any] | None, max_tokens: int | None
) -> str | None:
    if metadata and (known := TASKS.get(str(metadata.get("task")))):
        return known
    if not any(message.role == "assistant" for message in messages):
        instructions = _join_prompt(messages)
        for name in _QUOTE_TAGS:  # without what is quoted; its tags stay
            before, opening, rest = instructions.partition(f"<{name}>")
            instructions = before + opening + rest.rpartition(f"</{name}>")[2]
        instructions = instructions.casefold()
        for task, marks in SHAPES:
            if all(mark.casefold() in instructions for mark in marks):
                return task
    return "short" if max_tokens is not None and max_tokens <= MIN_TOKENS else None


def answer_task(task: str, messages: Sequence[ChatMessage]) -> str:
    answer = _ANSWERS[task](_join_prompt(messages))
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


def suggest_title(prompt: str) -> str:
    """Return the first question of the conversation that is quoted, shortened."""
    quoted = next((prompt.partition(f"<{name}>")[2] for name in _QUOTE_TAGS if f"<{name}>" in prompt), prompt)
    first = _OTHER.split(_SPEAKER.split(quoted[:_MAX_OPENING], maxsplit=1)[-1], maxsplit=1)[0]
    words = _MARKUP.sub(" ", first).split()
    line = " ".join(words[:MAX_TITLE_WORDS]).rstrip(" ?.!,:;")
    return (line if len(line) <= MAX_TITLE else f"{line[: MAX_TITLE - 1]}…") or "Research"


def _join_prompt(messages: Sequence[ChatMessage]) -> str:
    """Return the front end's instructions and the last message."""
    instructions = [message.text for message in messages if message.role in _INSTRUCTION_ROLES]
    return "\n".join([*instructions, messages[-1].text])
