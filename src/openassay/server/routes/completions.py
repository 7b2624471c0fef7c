"""OpenAssay as a model of chat front ends, in OpenAI's form: a question in, a checked report out.

What is streamed as `reasoning_content` says which agent is at work; the answer itself begins when the report is done,
since nothing that was not checked is ever given as the answer.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import StreamingResponse

from openassay.models.plan import Depth, Mode
from openassay.models.thread import ResearchOptions, Run
from openassay.server import completions
from openassay.server.auth import Principal, Reader, Writer
from openassay.server.completions import (
    ChatConversation,
    ChatMessage,
    CompletionRun,
    CompletionWriter,
    read_conversation,
)
from openassay.server.runs import ask
from openassay.server.schemas import (
    ChatRequest,
    Completion,
    CompletionError,
    CompletionRoute,
    ModelInfo,
    ModelList,
    ReplyMessage,
    RequestMessage,
    error_responses,
)
from openassay.server.service import Service, ServiceDep

router = APIRouter(tags=["completions"], route_class=CompletionRoute)
THREAD = "X-OpenAssay-Thread"
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_DEPTHS: dict[str, Depth | None] = {"openassay": None, **{f"openassay-{depth}": depth for depth in Depth}}
_STREAM = {
    "text/event-stream": {
        "example": 'data: {"id":"chatcmpl-9b1deb4d3b7d","object":"chat.completion.chunk","created":1767605400,'
        '"model":"openassay","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'
    }
}


@router.get("/v1/models", operation_id="list_models", summary="OpenAssay as models", responses=error_responses())
async def list_models(caller: Reader) -> ModelList:
    """One for each depth of research; `openassay` has that of the settings."""
    return ModelList(data=[ModelInfo(id=id) for id in _DEPTHS])


@router.get("/v1/models/{model}", operation_id="get_model", summary="One of the models", responses=error_responses(404))
async def get_model(model: Annotated[str, Path(max_length=200, examples=["openassay"])], caller: Reader) -> ModelInfo:
    _parse_depth(model)
    return ModelInfo(id=model)


@router.post(
    "/v1/chat/completions",
    operation_id="create_chat_completion",
    summary="Ask a question as a chat front end does",
    response_model=Completion,
    responses={
        200: {"description": "The answer.", "content": _STREAM},
        **error_responses(402, 404, 409, 500, 502, 503),
    },
)
async def create_chat_completion(body: ChatRequest, request: Request, caller: Writer, service: ServiceDep) -> Response:
    """The last message of the person is researched; what was said before continues the thread it was said on. The
    answer is a report in Markdown, with its sources as `annotations` and `citations`. A client that goes away stops its
    run, unless somebody else follows it; the thread is named in X-OpenAssay-Thread."""
    depth = _parse_depth(body.model) or service.settings.depth
    if (body.n or 1) > 1:
        raise CompletionError("one answer is given, not several", param="n", code="unsupported_value")
    said = [ChatMessage(message.role, _join_text(message)) for message in body.messages]
    if errand := completions.detect_task(said, body.metadata, body.max_completion_tokens or body.max_tokens):
        wire = CompletionWriter(id=f"chatcmpl-{errand}", created=int(service.now().timestamp()), body=body)
        return _respond_at_once(wire, completions.answer_task(errand, said))
    talk = read_conversation(said)
    if talk is None:
        raise CompletionError("there is no message of a user", param="messages", code="missing_question")
    _refuse_images(body.messages)
    run = await _ask(service, caller, talk, depth)
    wire = CompletionWriter(
        id=f"chatcmpl-{run.id}", created=int(run.started.timestamp()), body=body,
        named={"thread": run.thread, "run": run.id},
    )  # fmt: skip
    return await _respond(CompletionRun(service=service, request=request, wire=wire, run=run, talk=talk))


async def _ask(service: Service, caller: Principal, talk: ChatConversation, depth: Depth) -> Run:
    """On the thread where this conversation was left; a history that nobody here knows is told to the planner."""
    thread = await service.resources.chats.find_thread(caller.user, *talk.before) if talk.before else None
    context = talk.context if thread else "\n".join(filter(None, (talk.context, talk.history)))
    options = ResearchOptions(
        depth=depth, mode=Mode.AUTO, interactive=False, source=service.settings.source, context=context
    )
    return await ask(service, caller, talk.question, options, thread)


async def _respond(completing: CompletionRun) -> Response:
    headers = {THREAD: completing.run.thread}
    if completing.wire.body.stream:
        return StreamingResponse(completing.stream(), headers={**_HEADERS, **headers}, media_type="text/event-stream")
    return Response(await completing.complete(), headers=headers, media_type="application/json")


def _respond_at_once(wire: CompletionWriter, text: str) -> Response:
    """What needs no run."""
    if not wire.body.stream:
        return Response(wire.encode(ReplyMessage(content=text)), media_type="application/json")

    def pieces() -> Iterator[bytes]:
        yield wire.encode_chunk({"role": "assistant", "content": text})
        yield wire.encode_chunk({}, finish="stop")
        yield wire.encode_end()

    return StreamingResponse(pieces(), headers=_HEADERS, media_type="text/event-stream")


def _parse_depth(model: str) -> Depth | None:
    if model not in _DEPTHS:
        raise CompletionError(f"there is no model {model}", param="model", code="model_not_found", status=404)
    return _DEPTHS[model]


def _join_text(message: RequestMessage) -> str:
    if isinstance(message.content, list):
        return "\n".join(part.text for part in message.content if part.type == "text" and part.text)
    return message.content or ""


def _refuse_images(messages: Sequence[RequestMessage]) -> None:
    """Of the question itself: what was sent earlier was refused then."""
    last = next(message for message in reversed(messages) if message.role == "user")
    parts: Iterable[str] = (part.type for part in last.content) if isinstance(last.content, list) else ()
    if other := next((kind for kind in parts if kind != "text"), None):
        raise CompletionError(
            f"only text is understood here, not {other[:40]}", param="messages", code="unsupported_content"
        )
