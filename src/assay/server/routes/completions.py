"""Assay as a model of chat front ends, in OpenAI's form: a question in, a checked report out.

What is streamed as `reasoning_content` says which agent is at work; the answer itself begins when the report is done,
since nothing that was not checked is ever given as the answer.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import StreamingResponse

from assay.model.question import Depth, Mode
from assay.model.thread import Options, Run
from assay.server import sidecalls
from assay.server.access import Principal, Reader, Writer
from assay.server.asking import ask
from assay.server.chatting import Said, Talk, read
from assay.server.completing import Completing, Wire
from assay.server.service import Service, Serving
from assay.server.wire import ChatRequest, Completion, Message, Model, Models, Reply, WireError, WireRoute, faults

router = APIRouter(tags=["completions"], route_class=WireRoute)
THREAD = "X-Assay-Thread"
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_DEPTHS: dict[str, Depth | None] = {"assay": None, **{f"assay-{depth}": depth for depth in Depth}}
_STREAM = {
    "text/event-stream": {
        "example": 'data: {"id":"chatcmpl-9b1deb4d3b7d","object":"chat.completion.chunk","created":1767605400,'
        '"model":"assay","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'
    }
}


@router.get("/v1/models", operation_id="list_models", summary="Assay as models", responses=faults())
async def list_models(caller: Reader) -> Models:
    """One for each depth of research; `assay` has that of the settings."""
    return Models(data=[Model(id=id) for id in _DEPTHS])


@router.get("/v1/models/{model}", operation_id="get_model", summary="One of the models", responses=faults(404))
async def get_model(model: Annotated[str, Path(max_length=200, examples=["assay"])], caller: Reader) -> Model:
    _depth(model)
    return Model(id=model)


@router.post(
    "/v1/chat/completions",
    operation_id="create_chat_completion",
    summary="Ask a question as a chat front end does",
    response_model=Completion,
    responses={200: {"description": "The answer.", "content": _STREAM}, **faults(402, 404, 409, 500, 502, 503)},
)
async def create_chat_completion(body: ChatRequest, request: Request, caller: Writer, service: Serving) -> Response:
    """The last message of the person is researched; what was said before continues the thread it was said on. The
    answer is a report in Markdown, with its sources as `annotations` and `citations`. A client that goes away stops its
    run, unless somebody else follows it; the thread is named in X-Assay-Thread."""
    depth = _depth(body.model) or service.settings.depth
    if (body.n or 1) > 1:
        raise WireError("one answer is given, not several", param="n", code="unsupported_value")
    said = [Said(message.role, _text(message)) for message in body.messages]
    if errand := sidecalls.errand(said, body.metadata, body.max_completion_tokens or body.max_tokens):
        wire = Wire(id=f"chatcmpl-{errand}", created=int(service.now().timestamp()), body=body)
        return _at_once(wire, sidecalls.answer(errand, said))
    talk = read(said)
    if talk is None:
        raise WireError("there is no message of a user", param="messages", code="missing_question")
    _refuse_images(body.messages)
    run = await _asked(service, caller, talk, depth)
    wire = Wire(
        id=f"chatcmpl-{run.id}", created=int(run.started.timestamp()), body=body,
        named={"thread": run.thread, "run": run.id},
    )  # fmt: skip
    return await _answer(Completing(service=service, request=request, wire=wire, run=run, talk=talk))


async def _asked(service: Service, caller: Principal, talk: Talk, depth: Depth) -> Run:
    """On the thread where this conversation was left; a history that nobody here knows is told to the planner."""
    thread = await service.premises.chats.thread(caller.user, *talk.before) if talk.before else None
    context = talk.context if thread else "\n".join(filter(None, (talk.context, talk.history)))
    options = Options(depth=depth, mode=Mode.AUTO, interactive=False, source=service.settings.source, context=context)
    return await ask(service, caller, talk.question, options, thread)


async def _answer(completing: Completing) -> Response:
    headers = {THREAD: completing.run.thread}
    if completing.wire.body.stream:
        return StreamingResponse(completing.streamed(), headers={**_HEADERS, **headers}, media_type="text/event-stream")
    return Response(await completing.whole(), headers=headers, media_type="application/json")


def _at_once(wire: Wire, text: str) -> Response:
    """What needs no run."""
    if not wire.body.stream:
        return Response(wire.whole(Reply(content=text)), media_type="application/json")

    def pieces() -> Iterator[bytes]:
        yield wire.piece({"role": "assistant", "content": text})
        yield wire.piece({}, finish="stop")
        yield wire.end()

    return StreamingResponse(pieces(), headers=_HEADERS, media_type="text/event-stream")


def _depth(model: str) -> Depth | None:
    if model not in _DEPTHS:
        raise WireError(f"there is no model {model}", param="model", code="model_not_found", status=404)
    return _DEPTHS[model]


def _text(message: Message) -> str:
    if isinstance(message.content, list):
        return "\n".join(part.text for part in message.content if part.type == "text" and part.text)
    return message.content or ""


def _refuse_images(messages: Sequence[Message]) -> None:
    """Of the question itself: what was sent earlier was refused then."""
    last = next(message for message in reversed(messages) if message.role == "user")
    parts: Iterable[str] = (part.type for part in last.content) if isinstance(last.content, list) else ()
    if other := next((kind for kind in parts if kind != "text"), None):
        raise WireError(f"only text is understood here, not {other[:40]}", param="messages", code="unsupported_content")
