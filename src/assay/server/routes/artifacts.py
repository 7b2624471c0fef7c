"""What a thread has made and a person may edit and keep. What a person makes of it is a version of its own: a new
report never touches it, and says so."""

import re
from collections.abc import Container
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field, ValidationError

from assay.errors import NotFoundError, UsageError
from assay.export.table import as_csv, as_markdown
from assay.model.artifact import Artifact, Kind, Table, Writing
from assay.server.access import ChangedThread, OwnThread, Writer
from assay.server.bodies import Body, Text, refusals
from assay.server.etags import Match, answer, content_of, is_among, refuse_other, tag_of
from assay.server.problems import ConditionMissingError, MalformedError, PreconditionError, TooLargeError
from assay.server.service import Serving
from assay.server.thread_artifacts import ThreadArtifacts
from assay.storage.artifacts import MOST_NAMES, Draft
from assay.view.artifacts import Current

router = APIRouter(tags=["artifacts"])
LONGEST = 1_000_000  # bytes of a content
_NAME = r"^[a-z0-9][a-z0-9-]{0,39}$"
_STATEMENTS = {
    "columns": [{"key": "what", "title": "What"}, {"key": "value", "title": "Value"}],
    "rows": [["Height", 3]],
}
_ADDED: dict[int | str, dict[str, Any]] = {
    201: {
        "links": {
            name: {
                "operationId": name,
                "parameters": {"threadId": "$request.path.threadId", "name": "$response.body#/name"},
            }
            for name in ("get_artifact", "edit_artifact", "list_artifact_versions", "delete_artifact")
        }
    }
}
Name = Annotated[str, Path(description="The name of an artifact.", examples=["claims"])]
Title = Annotated[Text, Field(min_length=1, max_length=200, examples=["Key figures"])]
Content = Annotated[Writing | Table, Field(examples=["# Report\n\nThe kiln is hot.", _STATEMENTS])]


class Format(StrEnum):
    JSON = "json"
    CSV = "csv"
    MD = "md"


class ListedArtifact(Body):
    name: str = Field(examples=["claims"])
    kind: Kind = Field(examples=["table"])
    title: str = Field(examples=["Statements and sources"])
    version: int = Field(examples=[2])
    edited: bool = Field(examples=[True], description="A person has made this version.")
    outdated: bool = Field(examples=[False], description="The report has changed since a person edited this.")
    own: bool = Field(examples=[False], description="A person has added it; no report has made it.")
    updated: datetime = Field(examples=["2026-03-01T12:00:00Z"])


class ShownArtifact(ListedArtifact):
    content: Content = Field(description="Markdown, or a table.")


class ListedArtifacts(Body):
    artifacts: list[ListedArtifact]


class Version(Body):
    version: int = Field(examples=[2])
    title: str = Field(examples=["Key figures"])
    created: datetime = Field(examples=["2026-03-01T12:00:00Z"])
    by: Literal["assay", "person"] = Field(examples=["person"])


class Versions(Body):
    versions: list[Version]


class EditedArtifact(Body):
    title: Title | None = None
    content: Content


class NewArtifact(Body):
    name: str | None = Field(
        default=None, pattern=_NAME, examples=["my-notes"], description="Made from the title where none is given."
    )
    title: Title
    content: Content


@router.get(
    "/api/threads/{threadId}/artifacts", operation_id="list_artifacts", summary="List what a thread has made",
    responses=refusals(404),
)  # fmt: skip
async def list_artifacts(thread: OwnThread, service: Serving) -> ListedArtifacts:
    found = await ThreadArtifacts(service, thread).all()
    return ListedArtifacts(artifacts=[ListedArtifact(**_listed(one)) for one in found.values()])


@router.post(
    "/api/threads/{threadId}/artifacts", status_code=201, operation_id="add_artifact",
    summary="Add an artifact of one's own", responses={**_ADDED, **refusals(404, 409, 413)},
)  # fmt: skip
async def add_artifact(
    thread: ChangedThread, caller: Writer, service: Serving, response: Response, body: NewArtifact
) -> ShownArtifact:
    artifacts = ThreadArtifacts(service, thread)
    found = await artifacts.all()
    if body.name in found:
        raise UsageError(f"there is an artifact {body.name} already", help="Choose another name, or change it.")
    if len(found) >= MOST_NAMES:
        raise UsageError(f"a thread has at most {MOST_NAMES} artifacts", help="Delete one of them.")
    draft = Draft(body.name or _new_name(body.title, found), *_written(body.title, body.content), caller.user)
    return _told(response, await artifacts.keep(draft, None))


@router.get(
    "/api/threads/{threadId}/artifacts/{name}", operation_id="get_artifact", summary="Look at an artifact",
    response_model=ShownArtifact,
    responses={
        **refusals(404),
        200: {"content": {"text/csv": {}, "text/markdown": {}}},
        304: {"description": "You have it already."},
    },
)  # fmt: skip
async def get_artifact(
    thread: OwnThread,
    name: Name,
    service: Serving,
    request: Request,
    version: Annotated[int | None, Query(ge=1, le=1_000_000_000)] = None,
    format: Format = Format.JSON,
) -> Response:
    """The latest version, or another. Its ETag as JSON is what PUT asks for."""
    artifacts = ThreadArtifacts(service, thread)
    found = await artifacts.one(name) if version is None else await artifacts.version(name, version)
    if format is Format.JSON:
        return answer(request, _shown(found))
    return _rendered(request, found.artifact, format)


@router.put(
    "/api/threads/{threadId}/artifacts/{name}", operation_id="edit_artifact", summary="Keep a new version",
    responses={**refusals(404, 409, 412, 413, 428), 201: {"model": ShownArtifact, "description": "There was none."}},
)  # fmt: skip
async def edit_artifact(
    thread: ChangedThread, name: Name, caller: Writer, service: Serving, response: Response, body: EditedArtifact,
    match: Match = None,
) -> ShownArtifact:  # fmt: skip
    """Say in If-Match which version you have seen. Where there is none of this name, one is added."""
    artifacts = ThreadArtifacts(service, thread)
    found = (await artifacts.all()).get(name)
    _refuse_unseen(found, name, match)
    draft = Draft(
        name, *_written(body.title or (found.artifact.title if found else name), body.content), caller.user
    )  # fmt: skip
    if found is None:
        response.status_code = 201
    elif draft.kind != found.artifact.kind:
        raise MalformedError(f"this is a {found.artifact.kind}", help="Add another one for another kind of content.")
    return _told(response, await artifacts.keep(draft, found))


@router.get(
    "/api/threads/{threadId}/artifacts/{name}/versions", operation_id="list_artifact_versions",
    summary="List the versions of an artifact", responses=refusals(404),
)  # fmt: skip
async def list_artifact_versions(thread: OwnThread, name: Name, service: Serving) -> Versions:
    """Oldest first: those that were kept, and what the report makes of it now."""
    return Versions(
        versions=[
            Version(version=one.version, title=one.title, created=one.created, by="person" if one.author else "assay")
            for one in await ThreadArtifacts(service, thread).versions(name)
        ]
    )


@router.delete(
    "/api/threads/{threadId}/artifacts/{name}", status_code=204, operation_id="delete_artifact",
    summary="Go back to what Assay has made", responses=refusals(404, 412),
)  # fmt: skip
async def delete_artifact(thread: ChangedThread, name: Name, service: Serving, match: Match = None) -> Response:
    """Every version a person has made of it goes; one of a person's own goes altogether."""
    artifacts = ThreadArtifacts(service, thread)
    refuse_other(match, _shown(await artifacts.one(name)))
    await artifacts.reset(name)
    return Response(status_code=204)


def _refuse_unseen(found: Current | None, name: str, match: str | None) -> None:
    """Nobody writes over what they have not seen."""
    if found is None and not re.fullmatch(_NAME, name):
        raise MalformedError("this cannot be a name", help="Use up to 40 small letters, digits and hyphens.")
    if found is None and match is not None:
        raise PreconditionError("there is no such artifact", help="Leave If-Match out to add one.")
    if found is not None:
        if match is None:
            raise ConditionMissingError("say which version you have seen", help="Send its ETag as If-Match.")
        refuse_other(match, _shown(found))


# Forms ------------------------------------------------------------------------------------------------


def _written(title: str, content: str | Table) -> tuple[Kind, str, str]:
    kind: Kind = "markdown" if isinstance(content, str) else "table"
    text = content if isinstance(content, str) else content.model_dump_json()
    if len(text.encode()) > LONGEST:
        raise TooLargeError(f"an artifact has at most {LONGEST / 1e6:g} MB", help="Split it.")
    return kind, title, text


def _listed(one: Current) -> dict[str, Any]:
    kept = one.artifact
    return {
        "name": kept.name, "kind": kept.kind, "title": kept.title, "version": kept.version, "edited": one.edited,
        "outdated": one.outdated, "own": one.own, "updated": kept.created,
    }  # fmt: skip


def _shown(one: Current) -> ShownArtifact:
    return ShownArtifact(**_listed(one), content=_content(one.artifact))


def _told(response: Response, one: Current) -> ShownArtifact:
    """With the ETag that the next change has to name."""
    shown = _shown(one)
    response.headers["ETag"] = tag_of(content_of(shown))
    return shown


def _content(artifact: Artifact) -> str | Table:
    try:
        return artifact.content if artifact.kind == "markdown" else Table.model_validate_json(artifact.content)
    except ValidationError as error:
        raise NotFoundError(
            f"{artifact.name} was not written by this version of Assay", help="Upgrade Assay, or delete it."
        ) from error


def _rendered(request: Request, artifact: Artifact, format: Format) -> Response:
    content = _content(artifact)
    if isinstance(content, str) and format is Format.CSV:
        raise MalformedError("a text has no CSV", help="Choose md or json.")
    text = content if isinstance(content, str) else as_csv(content) if format is Format.CSV else as_markdown(content)
    media = "text/csv" if format is Format.CSV else "text/markdown"
    headers = {"ETag": tag_of(text.encode()), "Cache-Control": "private, no-cache"}
    if is_among(headers["ETag"], request.headers.get("if-none-match")):
        return Response(status_code=304, headers=headers)
    return Response(text, headers=headers, media_type=f"{media}; charset=utf-8")


def _new_name(title: str, found: Container[str]) -> str:
    bare = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:32].strip("-") or "artifact"
    return next(name for name in (bare, *(f"{bare}-{n}" for n in range(2, MOST_NAMES + 2))) if name not in found)
