"""Chat completions in OpenAI's form: a conversation becomes a question, and a run its answer, whole or streamed.

A client that disconnects stops its run, since nobody would see what it costs; not if another client follows it, nor
when it is the server that stops.
"""

import asyncio
import json
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fastapi import Request

from openassay.errors import NotFoundError, OpenAssayError
from openassay.export import Report
from openassay.models.event import AT_WORK, Event, RunStatus
from openassay.models.thread import Run
from openassay.server.bodies import redact_event
from openassay.server.problems import Refusal
from openassay.server.schemas import (
    Annotation,
    ChatRequest,
    Completion,
    CompletionChoice,
    CompletionUsage,
    ReplyMessage,
    UrlCitation,
    to_openai_error,
)
from openassay.server.service import Service
from openassay.text.words import is_readable

_log = logging.getLogger("openassay")
MAX_CONTEXT = 3000  # characters of earlier messages, as far as a planner reads
MAX_MESSAGE = 400  # characters of each of them
ATTACHED_NOTE = (
    "What the front end attached to the question was left out: OpenAssay reads its own sources, and documents that are "
    "uploaded through /api/documents."
)
HEARTBEAT = b": still here\n\n"
DONE = b"data: [DONE]\n\n"
POLL_SECONDS = 2.0  # after which it is checked whether a client that waits in silence is still connected
_INSTRUCTION_ROLES = ("system", "developer")
# Open WebUI puts what it has found itself before the question, or the question into a block of its own.
_WRAPPER = re.compile(r"\s*### Task:\s*Respond to the user query using the provided context", re.IGNORECASE)
# What front ends show as thinking, and some send back.
_THOUGHTS = (('<details type="reasoning"', "</details>"), ("<think>", "</think>"), ("<thinking>", "</thinking>"))
_stopping: set[asyncio.Task[None]] = set()  # runs whose client has disconnected


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


# Answers: a report whose marks [S1] lead to its sources -----------------------------------------------------------

_MARK = re.compile(r"\[\[(S\d+)\]\]\(#s\d+\)")  # only ours: what sources say has its brackets escaped
_ANCHOR = re.compile(r'<a id="s\d+"></a>')
_UNSAFE = re.compile(r"[\s<>()\\`\"]")


class ChatAnswer(NamedTuple):
    text: str
    annotations: list[Annotation]  # where in the text which source is cited
    urls: tuple[str, ...]  # of all sources, in their order


def to_chat_answer(report: Report) -> ChatAnswer:
    """Return a report as an answer. Files on the server's disk are listed as sources, but not linked or cited."""
    cards = {card.id: card for card in report.sources if not card.url.startswith("file:")}
    text = _ANCHOR.sub("", report.markdown)
    parts, annotations, length, at = list[str](), list[Annotation](), 0, 0
    for mark in _MARK.finditer(text):
        card = cards.get(mark[1])
        link = f"[{mark[1]}]"
        if card is not None and re.match(r"https?://", card.url):  # a link that can do nothing but open a page
            address = _UNSAFE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), card.url)
            link = f"[{link}]({address})"
        parts += [text[at : mark.start()], link]
        start = length + mark.start() - at
        length, at = start + len(link), mark.end()
        if card is not None:
            citation = UrlCitation(start_index=start, end_index=length, url=card.url, title=card.title)
            annotations.append(Annotation(url_citation=citation))
    return ChatAnswer("".join([*parts, text[at:]]), annotations, tuple(card.url for card in cards.values()))


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

    def format_note(self, text: str) -> str:
        return f"Note: {text}\n"


# Runs ---------------------------------------------------------------------------------------------------------


class NoAnswerError(Refusal):
    """The run has stopped without an answer."""

    status, kind = 409, "unanswered"


class GoneError(Refusal):
    """The client has disconnected."""

    status, kind = 499, "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionWriter:
    """Encodes the answer to one request."""

    id: str
    created: int
    body: ChatRequest
    metadata: dict[str, str] = field(default_factory=dict)

    def encode(self, reply: ReplyMessage, usage: CompletionUsage | None = None, urls: tuple[str, ...] = ()) -> bytes:
        completion = Completion(
            id=self.id,
            created=self.created,
            model=self.body.model,
            choices=[CompletionChoice(message=reply)],
            usage=usage or CompletionUsage(),
            citations=list(urls),
            metadata=self.metadata,
        )
        return completion.model_dump_json().encode()

    def encode_chunk(self, delta: dict[str, Any], *, finish: str | None = None, **more: Any) -> bytes:
        choices = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
        return self._encode_frame({"choices": choices, **({"usage": None} if self._includes_usage else {}), **more})

    def encode_end(self, usage: CompletionUsage | None = None) -> bytes:
        content = {"choices": [], "usage": (usage or CompletionUsage()).model_dump()}
        return (self._encode_frame(content) if self._includes_usage else b"") + DONE

    @property
    def _includes_usage(self) -> bool:
        return bool(self.body.stream_options and self.body.stream_options.include_usage)

    def _encode_frame(self, content: dict[str, Any]) -> bytes:
        frame = {"id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.body.model}
        return f"data: {json.dumps({**frame, **content}, ensure_ascii=False)}\n\n".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRun:
    """The run that answers a request."""

    service: Service
    request: Request
    writer: CompletionWriter
    run: Run
    conversation: ChatConversation

    async def complete(self) -> bytes:
        """Return the whole answer, when the run has ended."""
        narration = Narration()
        lines = [narration.format_note(note) for note in self.conversation.notes]
        async with aclosing(self._follow(POLL_SECONDS)) as batches:
            async for events in batches:
                lines.append(narration.narrate(events))
        report, answer = await self._load_answer()
        reply = ReplyMessage(content=answer.text, reasoning_content="".join(lines), annotations=answer.annotations)
        return self.writer.encode(reply, to_usage(report), answer.urls)

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield what happens, and then the answer, in chunks."""
        narration, encode = Narration(), self.writer.encode_chunk
        yield encode({"role": "assistant", "content": ""})
        try:
            for note in self.conversation.notes:
                yield encode({"reasoning_content": narration.format_note(note)})
            async with aclosing(self._follow(self.service.settings.server.heartbeat)) as batches:
                async for events in batches:
                    lines = narration.narrate(events)
                    yield encode({"reasoning_content": lines}) if lines else b"" if events else HEARTBEAT
            report, answer = await self._load_answer()
            for paragraph in filter(None, re.split(r"(?<=\n\n)", answer.text)):
                yield encode({"content": paragraph})
            last = {"annotations": [one.model_dump() for one in answer.annotations]}
            yield encode(last, finish="stop", citations=list(answer.urls), metadata=self.writer.metadata)
            yield self.writer.encode_end(to_usage(report))
        except GoneError:
            return
        except OpenAssayError as error:
            body = self.service.redaction.redact_data(to_openai_error(error)[1])
            yield f"data: {json.dumps(body)}\n\n".encode() + DONE

    async def _follow(self, max_wait: float) -> AsyncGenerator[list[Event]]:
        """Yield the events of the run until it has ended; an empty list after `max_wait` seconds without one."""
        try:
            async with aclosing(self.service.feeds.read_batches(self.run.id, max_wait=max_wait)) as batches:
                async for events in batches:
                    if await self.request.is_disconnected():
                        raise GoneError("the client has disconnected")
                    yield events
        finally:
            if await self.request.is_disconnected():  # in a task of its own: this one is being cancelled
                task = asyncio.create_task(_stop_run(self.service, self.run), name=f"leaving-{self.run.id}")
                _stopping.add(task)
                task.add_done_callback(_stopping.discard)

    async def _load_answer(self) -> tuple[Report, ChatAnswer]:
        """Store and return the answer. It is stored first: the next question may come at once."""
        outcome = await self.service.engine.outcome(self.run.id)
        run, report = outcome.run, outcome.report
        if report is not None:
            answer = to_chat_answer(report)
            with suppress(NotFoundError):  # the thread was deleted meanwhile
                await self.service.resources.chats.add(run.thread, self.conversation.question, answer.text)
            return report, answer
        if fault := self.service.engine.fault(run.id):
            raise fault
        if run.status is RunStatus.FAILED:
            raise OpenAssayError(run.error or "the run has failed", help=f"The thread is {run.thread}.")
        if run.status in AT_WORK:
            raise NoAnswerError("the server stops", help=f"The run continues on its thread, {run.thread}.")
        raise NoAnswerError(f"the run is {run.status}", help=f"Resume it on its thread, {run.thread}.")


async def _stop_run(service: Service, run: Run) -> None:
    await asyncio.sleep(0)  # the client that has left is no reader any more by then
    if service.feeds.closed or service.feeds.count_readers(run.id):  # another client reads it
        return
    try:
        await service.engine.stop(run.thread, run=run.id)
    except OpenAssayError as error:  # it has ended just now, or its thread is gone
        _log.info("run %s was not stopped: %s", run.id, error.message)


def to_usage(report: Report) -> CompletionUsage:
    """Return the tokens of the language models; the rules use none."""
    models = report.spend.by_model.values()
    prompt, completion = (sum(getattr(one, name) for one in models) for name in ("prompt_tokens", "completion_tokens"))
    return CompletionUsage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=prompt + completion,
        cost=round(report.spend.usd, 6),
    )


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


class PromptShape(NamedTuple):
    """`marks`: all of them stand in the instructions, in any case."""

    task: str
    marks: tuple[str, ...]


SHAPES = (
    # Open WebUI; templates that an administrator has changed keep the block and the key.
    PromptShape("follow_ups", ("<chat_history>", '"follow_ups"')),
    PromptShape("tags", ("<chat_history>", '"tags"')),
    PromptShape("title", ("<chat_history>", '"title"')),
    PromptShape("queries", ("<chat_history>", '"queries"')),
    PromptShape("image_prompt", ("<chat_history>", '"prompt"')),
    PromptShape("autocomplete", ("autocompletion system", '"text"')),
    PromptShape("tool_choice", ("available tools:", "your task is to choose and return the correct tool")),
    PromptShape("emoji", ("your task is to reflect the speaker's likely facial expression", "emoji")),
    PromptShape("merging", ("you have been provided with a set of responses from various models",)),
    # LibreChat
    PromptShape(
        "title_line", ("provide a concise, 5-word-or-less title for the conversation", "only return the title itself")
    ),
    PromptShape("title_and_language", ("analyze this conversation and provide", "detected language", "concise title")),
    PromptShape(
        "title_line", ("please generate a concise title (max 40 characters) for a conversation that starts with",)
    ),
    # LobeChat
    PromptShape("title", ("conversation summarizer", "concise title", '"title"')),
    PromptShape("title_line", ("conversation summarizer", "concise title")),
    PromptShape("title_line", ("summarize user conversations into titles within 10",)),
    PromptShape("title_line", ("会话总结为 10 个字以内的标题",)),
    PromptShape("title_line", ("请总结上述对话为10个字以内的标题",)),
    PromptShape("completion", ("autocomplete engine for a chat input box",)),
    # Goose
    PromptShape("title_line", ("generate a short title (four words or less)", "reply with only the title")),
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
    """Return the task of a request that asks for no research."""
    if metadata and (known := TASKS.get(str(metadata.get("task")))):
        return known
    if not any(message.role == "assistant" for message in messages):
        instructions = _join_prompt(messages)
        for name in _QUOTE_TAGS:  # without what is quoted; its tags stay
            before, opening, rest = instructions.partition(f"<{name}>")
            instructions = before + opening + rest.rpartition(f"</{name}>")[2]
        instructions = instructions.casefold()
        for shape in SHAPES:
            if all(mark.casefold() in instructions for mark in shape.marks):
                return shape.task
    return "short" if max_tokens is not None and max_tokens <= MIN_TOKENS else None


def answer_task(task: str, messages: Sequence[ChatMessage]) -> str:
    """Return the answer to a task in the form that was asked for."""
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
