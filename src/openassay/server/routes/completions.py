"""OpenAssay as a model of chat front ends, in OpenAI's form: a question in, a checked report out.

What is streamed as `reasoning_content` says which agent is at work; the answer itself begins when the report is done,
since nothing that was not checked is ever given as the answer.
"""

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import StreamingResponse

from openassay.models.plan import Depth, Mode
from openassay.models.thread import ResearchOptions
from openassay.server.auth import Reader, Writer
from openassay.server.completions import (
    ChatMessage,
    CompletionRun,
    CompletionWriter,
    answer_task,
    detect_task,
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
    error_responses,
)
from openassay.server.service import ServiceDep

router = APIRouter(tags=["completions"], route_class=CompletionRoute)
THREAD_HEADER = "X-OpenAssay-Thread"
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_DEPTHS: dict[str, Depth | None] = {"openassay": None, **{f"openassay-{depth}": depth for depth in Depth}}
_STREAM = {
    "text/event-stream": {
        "example": 'data: {"id":"chatcmpl-9b1deb4d3b7d","object":"chat.completion.chunk","created":1767605400,'
        '"model":"openassay","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'
    }
}


@router.get("/v1/models", summary="List the models", responses=error_responses())
async def list_models(caller: Reader) -> ModelList:
    """One for each depth of research; `openassay` has that of the settings."""
    return ModelList(data=[ModelInfo(id=id) for id in _DEPTHS])


@router.get("/v1/models/{model}", summary="Get a model", responses=error_responses(404))
async def get_model(model: Annotated[str, Path(max_length=200, examples=["openassay"])], caller: Reader) -> ModelInfo:
    _parse_depth(model)
    return ModelInfo(id=model)


@router.post(
    "/v1/chat/completions",
    summary="Ask a question as a chat front end does",
    response_model=Completion,
    responses={
        200: {"description": "The answer.", "content": _STREAM},
        **error_responses(402, 404, 409, 500, 502, 503),
    },
)
async def create_chat_completion(body: ChatRequest, request: Request, caller: Writer, service: ServiceDep) -> Response:
    """The last message of the user is researched; earlier messages continue the thread on which they were sent. The
    answer is a report in Markdown, with its sources as `annotations` and `citations`. A client that disconnects stops
    its run, unless another follows it; the thread is named in X-OpenAssay-Thread."""
    depth = _parse_depth(body.model) or service.settings.depth
    if (body.n or 1) > 1:
        raise CompletionError("only one answer is given", param="n", code="unsupported_value")
    messages = [ChatMessage(message.role, message.text) for message in body.messages]
    if task := detect_task(messages, body.metadata, body.max_completion_tokens or body.max_tokens):
        writer = CompletionWriter(id=f"chatcmpl-{task}", created=int(service.now().timestamp()), body=body)
        return _respond_at_once(writer, answer_task(task, messages))
    conversation = read_conversation(messages)
    if conversation is None:
        raise CompletionError("there is no message of a user", param="messages", code="missing_question")
    # Other content is refused in the question alone: that of earlier messages was refused then.
    question = next(message for message in reversed(body.messages) if message.role == "user")
    kinds = [part.type for part in question.content] if isinstance(question.content, list) else []
    if other := next((kind for kind in kinds if kind != "text"), None):
        raise CompletionError(
            f"only text is supported here, not {other[:40]}", param="messages", code="unsupported_content"
        )
    # It continues the thread of this conversation; a history without a thread is given to the planner.
    before, context = conversation.before, conversation.instructions
    thread = await service.resources.chats.find_thread(caller.user, *before) if before else None
    if thread is None:
        context = "\n".join(filter(None, (context, conversation.history)))
    options = ResearchOptions(
        depth=depth, mode=Mode.AUTO, interactive=False, source=service.settings.source, context=context
    )
    run = await ask(service, caller, conversation.question, options, thread)
    writer = CompletionWriter(
        id=f"chatcmpl-{run.id}",
        created=int(run.started.timestamp()),
        body=body,
        metadata={"thread": run.thread, "run": run.id},
    )
    completion = CompletionRun(service=service, request=request, writer=writer, run=run, conversation=conversation)
    headers = {THREAD_HEADER: run.thread}
    if body.stream:
        return StreamingResponse(completion.stream(), headers={**_HEADERS, **headers}, media_type="text/event-stream")
    return Response(await completion.complete(), headers=headers, media_type="application/json")


def _respond_at_once(writer: CompletionWriter, text: str) -> Response:
    """Answer a task that needs no run."""
    if not writer.body.stream:
        return Response(writer.encode(ReplyMessage(content=text)), media_type="application/json")
    chunks = [
        writer.encode_chunk({"role": "assistant", "content": text}),
        writer.encode_chunk({}, finish="stop"),
        writer.encode_end(),
    ]
    return StreamingResponse(iter(chunks), headers=_HEADERS, media_type="text/event-stream")


def _parse_depth(model: str) -> Depth | None:
    if model not in _DEPTHS:
        raise CompletionError(f"there is no model {model}", param="model", code="model_not_found", status=404)
    return _DEPTHS[model]
