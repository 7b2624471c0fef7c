"""A run, given back as OpenAI's clients expect it: whole, or in pieces as it goes.

A client that goes away stops its run, since nobody would see what it costs; not if somebody else follows it, nor when
it is the server that stops.
"""

import asyncio
import json
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fastapi import Request

from openassay.engine.engine import RunOutcome
from openassay.errors import NotFoundError, OpenAssayError
from openassay.export.report import Report
from openassay.models.event import AT_WORK, Event, RunStatus
from openassay.models.report import SourceCard
from openassay.models.thread import Run
from openassay.server.problems import Refusal
from openassay.server.redact import redact_event
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

# What a chat front end sends, taken for what it is: a question, what was said before it, and how it goes on.

LONGEST_CONTEXT = 3000  # characters of what was said before, as far as a planner reads
LONGEST_MESSAGE = 400  # characters of one message of it
ATTACHED = (
    "What the front end attached to the question was left out: OpenAssay "
    "reads sources of its own, and documents that are"
    " given to it through /api/documents."
)
_INSTRUCTION_ROLES = ("system", "developer")
_CHAT_ROLES = ("user", "assistant")
# Open WebUI puts what it has found itself before the question, or the question into a block of its own.
_WRAPPER = re.compile(r"\s*### Task:\s*Respond to the user query using the provided context", re.IGNORECASE)
# What front ends show as thinking, and some send back.
_THOUGHTS = (('<details type="reasoning"', "</details>"), ("<think>", "</think>"), ("<thinking>", "</thinking>"))


class ChatMessage(NamedTuple):
    role: str
    text: str


class ChatConversation(NamedTuple):
    """`before` is the last question that was answered, and its answer; `context` what a planner may know of the rest.
    `notes` are told to the person."""

    question: str
    before: tuple[str, str] | None
    context: str
    history: str
    notes: tuple[str, ...] = ()


def read_conversation(messages: Sequence[ChatMessage]) -> ChatConversation | None:
    """The last message of the person is the question; None where there is none."""
    at = max((number for number, said in enumerate(messages) if said.role == "user"), default=None)
    if at is None:
        return None
    question, was_wrapped = _extract_question(messages[at].text)
    earlier = [_clean_message(said) for said in messages[:at] if said.role in _CHAT_ROLES]
    earlier = [said for said in earlier if said.text]
    instructions = (_to_line(said.text) for said in reversed(messages[:at]) if said.role in _INSTRUCTION_ROLES)
    return ChatConversation(
        question=question,
        before=_last_exchange(earlier),
        context=_format_context("instructions", instructions),
        history=_format_context("conversation", (f"{said.role}: {_to_line(said.text)}" for said in reversed(earlier))),
        notes=(ATTACHED,) if was_wrapped else (),
    )


def _extract_question(text: str) -> tuple[str, bool]:
    """The person's own words, and whether there was something around them."""
    if not _WRAPPER.match(text):
        return text.strip(), False
    _, is_marked, marked = text.partition("<user_query>")
    return (marked.partition("</user_query>")[0] if is_marked else text.rpartition("</context>")[2]).strip(), True


def _clean_message(said: ChatMessage) -> ChatMessage:
    text = said.text
    if said.role == "user":
        return ChatMessage(said.role, _extract_question(text)[0])
    for opening, closing in _THOUGHTS:
        text = strip_blocks(text, opening, closing)
    return ChatMessage(said.role, text.strip())


def strip_blocks(text: str, opening: str, closing: str) -> str:
    """The text without such blocks; in one pass, since whoever sends it may mean no good."""
    kept, at = list[str](), 0
    while (begin := text.find(opening, at)) >= 0 and (end := text.find(closing, begin)) >= 0:
        kept.append(text[at:begin])
        at = end + len(closing)
    return "".join([*kept, text[at:]])


def _last_exchange(earlier: Sequence[ChatMessage]) -> tuple[str, str] | None:
    """What was said last, if it was an answer."""
    match earlier:
        case [*_, ChatMessage(role="user", text=question), ChatMessage(role="assistant", text=answer)]:
            return question, answer
        case _:
            return None


def _format_context(name: str, lines: Iterable[str]) -> str:
    """The newest of it, which comes first, on one line that says what it is: searches go by the question alone."""
    kept: list[str] = []
    for line in lines:
        if sum(map(len, kept)) + len(line) > LONGEST_CONTEXT:
            break
        kept.insert(0, line)
    return f"The conversation so far: ({name}) {' | '.join(kept)}" if kept else ""


def _to_line(text: str) -> str:
    line = "".join(letter for letter in " ".join(text[: 4 * LONGEST_MESSAGE].split()) if is_readable(letter))
    return line if len(line) <= LONGEST_MESSAGE else f"{line[: LONGEST_MESSAGE - 1]}…"


# A report as the answer of a chat: its marks [S1] lead to the sources themselves, and each is told apart as well.

_MARK = re.compile(r"\[\[(S\d+)\]\]\(#s\d+\)")  # only ours: what sources say has its brackets escaped
_ANCHOR = re.compile(r'<a id="s\d+"></a>')
_UNSAFE = re.compile(r"[\s<>()\\`\"]")


class AnswerCitation(NamedTuple):
    """Where in the answer a source is cited; `end` is behind the last character."""

    start: int
    end: int
    url: str
    title: str


class ChatAnswer(NamedTuple):
    text: str
    citations: tuple[AnswerCitation, ...]
    urls: tuple[str, ...]  # of all sources, in their order


def to_chat_answer(report: Report) -> ChatAnswer:
    """Files of the server's disk are named in the list of sources, and led to from nowhere."""
    cards = {card.id: card for card in report.sources}
    parts, citations, length = list[str](), list[AnswerCitation](), 0
    for piece, card in _split_marks(_ANCHOR.sub("", report.markdown), cards):
        if card is not None and _is_public(card):
            citations.append(AnswerCitation(length, length + len(piece), card.url, card.title))
        parts.append(piece)
        length += len(piece)
    return ChatAnswer("".join(parts), tuple(citations), tuple(card.url for card in cards.values() if _is_public(card)))


def _split_marks(text: str, cards: dict[str, SourceCard]) -> Iterator[tuple[str, SourceCard | None]]:
    """The text as it goes out: what stands between marks, and marks with what they stand for."""
    at = 0
    for mark in _MARK.finditer(text):
        yield text[at : mark.start()], None
        card = cards.get(mark[1])
        yield (_link_mark(mark[1], card) if card else f"[{mark[1]}]"), card
        at = mark.end()
    yield text[at:], None


def _link_mark(name: str, card: SourceCard) -> str:
    """A link only where it can do nothing but open a page."""
    if not re.match(r"https?://", card.url):
        return f"[{name}]"
    address = _UNSAFE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), card.url)
    return f"[[{name}]]({address})"


def _is_public(card: SourceCard) -> bool:
    return not card.url.startswith("file:")


def split_paragraphs(text: str) -> Iterator[str]:
    """As it is sent: a paragraph at a time."""
    for piece in re.split(r"(?<=\n\n)", text):
        if piece:
            yield piece


# Which agent is at work, in lines that chat front ends show as thinking: no draft, and nothing that pages say.

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
    """Says each thing once."""

    def __init__(self) -> None:
        self._agent = ""
        self._said: set[str] = set()

    def narrate(self, events: Iterable[Event]) -> str:
        """What is new, as text to be added."""
        return "".join(f"{line}\n" for event in events for line in self._describe(event))

    def format_note(self, text: str) -> str:
        return f"Note: {text}\n"

    def _describe(self, event: Event) -> list[str]:
        if event.kind == "enter":
            return self._announce_agent(_AGENTS.get(event.stage, ""))
        teller = _FORMATTERS.get((event.kind, event.stage)) or _FORMATTERS.get((event.kind, ""))
        lines = [" ".join(line.split()) for line in teller(redact_event(event).data)] if teller else []
        new = [line for line in dict.fromkeys(lines) if line not in self._said]
        self._said.update(new)
        return new

    def _announce_agent(self, agent: str) -> list[str]:
        """Many readers begin at once: they are told of as one."""
        if not agent or agent == self._agent:
            return []
        self._agent = agent
        return [agent]


_log = logging.getLogger("openassay")
BEAT = b": still here\n\n"
DONE = b"data: [DONE]\n\n"
LOOK = 2.0  # seconds after which it is looked whether a client that waits in silence is still there
_leaving: set[asyncio.Task[None]] = set()  # runs being stopped, since nobody waits for them any more


class NoAnswerError(Refusal):
    """The run stands still without an answer."""

    status = 409


class GoneError(Refusal):
    """Nobody is there any more to be told this."""

    status = 499


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionWriter:
    """How what answers one request is written."""

    id: str
    created: int
    body: ChatRequest
    named: dict[str, str] = field(default_factory=dict)

    def encode(self, reply: ReplyMessage, usage: CompletionUsage | None = None, urls: tuple[str, ...] = ()) -> bytes:
        made = Completion(
            id=self.id, created=self.created, model=self.body.model, choices=[CompletionChoice(message=reply)],
            usage=usage or CompletionUsage(), citations=list(urls), metadata=self.named,
        )  # fmt: skip
        return made.model_dump_json().encode()

    def encode_chunk(self, delta: dict[str, Any], *, finish: str | None = None, **more: Any) -> bytes:
        choices = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
        return self._encode_frame({"choices": choices, **({"usage": None} if self._includes_usage else {}), **more})

    def encode_end(self, usage: CompletionUsage | None = None) -> bytes:
        used = {"choices": [], "usage": (usage or CompletionUsage()).model_dump()}
        return (self._encode_frame(used) if self._includes_usage else b"") + DONE

    @property
    def _includes_usage(self) -> bool:
        return bool(self.body.stream_options and self.body.stream_options.include_usage)

    def _encode_frame(self, more: dict[str, Any]) -> bytes:
        frame = {"id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.body.model}
        return f"data: {json.dumps({**frame, **more}, ensure_ascii=False)}\n\n".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRun:
    service: Service
    request: Request
    wire: CompletionWriter
    run: Run
    talk: ChatConversation

    async def complete(self) -> bytes:
        narration = Narration()
        told = [narration.format_note(note) for note in self.talk.notes]
        async with aclosing(self._follow(LOOK)) as batches:
            async for events in batches:
                told.append(narration.narrate(events))
        report, made = await self._load_answer()
        reply = ReplyMessage(content=made.text, reasoning_content="".join(told), annotations=to_annotations(made))
        return self.wire.encode(reply, to_usage(report), made.urls)

    async def stream(self) -> AsyncIterator[bytes]:
        yield self.wire.encode_chunk({"role": "assistant", "content": ""})
        try:
            async with aclosing(self._stream_chunks()) as found:
                async for piece in found:
                    yield piece
        except GoneError:
            return
        except OpenAssayError as error:
            told = self.service.redaction.redact_data(to_openai_error(error)[1])
            yield f"data: {json.dumps(told)}\n\n".encode() + DONE

    async def _stream_chunks(self) -> AsyncGenerator[bytes]:
        narration = Narration()
        for note in self.talk.notes:
            yield self.wire.encode_chunk({"reasoning_content": narration.format_note(note)})
        async with aclosing(self._follow(self.service.settings.server.heartbeat)) as batches:
            async for events in batches:
                lines = narration.narrate(events)
                yield self.wire.encode_chunk({"reasoning_content": lines}) if lines else b"" if events else BEAT
        report, made = await self._load_answer()
        for text in split_paragraphs(made.text):
            yield self.wire.encode_chunk({"content": text})
        last = {"annotations": [one.model_dump() for one in to_annotations(made)]}
        yield self.wire.encode_chunk(last, finish="stop", citations=list(made.urls), metadata=self.wire.named)
        yield self.wire.encode_end(to_usage(report))

    async def _follow(self, patience: float) -> AsyncGenerator[list[Event]]:
        """What happens in the run, until it has ended; nothing now and then, while nothing happens."""
        try:
            async with aclosing(self.service.feeds.read_batches(self.run.id, patience=patience)) as batches:
                async for events in batches:
                    if await self.request.is_disconnected():
                        raise GoneError("the client is gone")
                    yield events
        finally:
            if await self.request.is_disconnected():
                self._abandon()

    async def _load_answer(self) -> tuple[Report, ChatAnswer]:
        """What was said is kept before it is told: the next question may come at once."""
        outcome = await self.service.engine.outcome(self.run.id)
        if outcome.report is None:
            raise self._to_error(outcome)
        made = to_chat_answer(outcome.report)
        with suppress(NotFoundError):  # the thread was deleted meanwhile
            await self.service.resources.chats.add(self.run.thread, self.talk.question, made.text)
        return outcome.report, made

    def _to_error(self, outcome: RunOutcome) -> OpenAssayError:
        if known := self.service.engine.fault(self.run.id):
            return known
        run = outcome.run
        if run.status is RunStatus.FAILED:
            return OpenAssayError(run.error or "the run has failed", help=f"The thread is {run.thread}.")
        if run.status in AT_WORK:
            return NoAnswerError("the server stops", help=f"The run goes on, on its thread, {run.thread}.")
        return NoAnswerError(f"the run is {run.status}", help=f"Go on with it on its thread, {run.thread}.")

    def _abandon(self) -> None:
        """In a task of its own: the one that answered is being cancelled."""
        task = asyncio.create_task(_stop_run(self.service, self.run), name=f"leaving-{self.run.id}")
        _leaving.add(task)
        task.add_done_callback(_leaving.discard)


async def _stop_run(service: Service, run: Run) -> None:
    await asyncio.sleep(0)  # whoever has left does not read any more by then
    if service.feeds.closed or service.feeds.count_readers(run.id):  # somebody else reads it
        return
    try:
        await service.engine.stop(run.thread, run=run.id)
    except OpenAssayError as error:  # it has ended just now, or its thread is gone
        _log.info("run %s was not stopped: %s", run.id, error.message)


def to_annotations(made: ChatAnswer) -> list[Annotation]:
    return [
        Annotation(url_citation=UrlCitation(start_index=one.start, end_index=one.end, url=one.url, title=one.title))
        for one in made.citations
    ]


def to_usage(report: Report) -> CompletionUsage:
    """Of the language models that were asked; the embedded reasoner uses none."""
    models = report.spend.by_model.values()
    read, written = (sum(getattr(one, name) for one in models) for name in ("prompt_tokens", "completion_tokens"))
    return CompletionUsage(
        prompt_tokens=read, completion_tokens=written, total_tokens=read + written, cost=round(report.spend.usd, 6)
    )


# Errands of chat front ends: a title for the chat, tags, what to ask next. They are sent to whatever model is chosen,
# after or even during every answer. Research would be wasted on them: plain code answers, at no cost.
#
# A prompt is known by its shape, that of one front end each: all its marks stand in the instructions, which is what is
# said outside the conversation that is quoted to the model. A person's question that speaks of titles has no such
# shape.

TINY = 64  # tokens: no report is that short
SHORT = f"OpenAssay is ready. Nothing was researched: a report needs more than {TINY} tokens."
MERGING = "OpenAssay does not merge the answers of other models. Ask it the question itself."
LONGEST_TITLE = 60  # characters
_WORDS = 8

_LONGEST_OPENING = 4000  # characters of a conversation in which its first question stands
_QUOTE_TAGS = ("chat_history", "conversation")
_SPEAKER = re.compile(r"^[ #]{0,8}(?:user|human) ?:|<user>", re.IGNORECASE | re.MULTILINE)
_OTHER = re.compile(r"^[ #]{0,8}(?:assistant|ai) ?:|</user>", re.IGNORECASE | re.MULTILINE)
_MARKUP = re.compile(r"[*_`#>\[\]{}\"]")


class PromptShape(NamedTuple):
    """`marks`: all stand in the instructions, in whatever case."""

    errand: str
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
    "title_generation": "title", "tags_generation": "tags", "follow_up_generation": "follow_ups",
    "emoji_generation": "emoji", "query_generation": "queries", "image_prompt_generation": "image_prompt",
    "autocomplete_generation": "autocomplete", "function_calling": "tool_choice", "moa_response_generation": "merging",
}  # fmt: skip
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
    "merging": lambda text: MERGING,
    "short": lambda text: SHORT,
}


def detect_task(said: Sequence[tuple[str, str]], metadata: Mapping[str, Any] | None, most: int | None) -> str | None:
    """What a request is about, if it asks for no research. `said` are the messages as (role, text), `most` the tokens
    its answer may have."""
    if metadata and (known := TASKS.get(str(metadata.get("task")))):
        return known
    if not any(role == "assistant" for role, _ in said):
        instructions = _extract_instructions(_join_prompt(said)).casefold()
        for shape in SHAPES:
            if all(mark.casefold() in instructions for mark in shape.marks):
                return shape.errand
    return "short" if most is not None and most <= TINY else None


def answer_task(errand: str, said: Sequence[tuple[str, str]]) -> str:
    """In the form that was asked for."""
    given = _ANSWERS[errand](_join_prompt(said))
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def suggest_title(prompt: str) -> str:
    """The first question of the conversation that is quoted, shortened."""
    talk = next((prompt.partition(f"<{name}>")[2] for name in _QUOTE_TAGS if f"<{name}>" in prompt), prompt)
    first = _OTHER.split(_SPEAKER.split(talk[:_LONGEST_OPENING], maxsplit=1)[-1], maxsplit=1)[0]
    words = _MARKUP.sub(" ", first).split()
    line = " ".join(words[:_WORDS]).rstrip(" ?.!,:;")
    return (line if len(line) <= LONGEST_TITLE else f"{line[: LONGEST_TITLE - 1]}…") or "Research"


def _extract_instructions(prompt: str) -> str:
    """Without what is quoted; the marks of that stay."""
    for name in _QUOTE_TAGS:
        before, opening, rest = prompt.partition(f"<{name}>")
        prompt = before + opening + rest.rpartition(f"</{name}>")[2]
    return prompt


def _join_prompt(said: Sequence[tuple[str, str]]) -> str:
    """What the front end's own words and its last message say."""
    return "\n".join([*(text for role, text in said if role in ("system", "developer")), said[-1][1]])
