"""The artifacts of a thread, which a person may edit. Edits are versions of their own, which a new report never
changes."""

import asyncio
import re
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field, ValidationError

from openassay.engine.artifacts import CurrentArtifact, offer_artifacts, resolve_artifacts
from openassay.errors import NotFoundError, UsageError, no_artifact
from openassay.export.layout import as_csv, as_markdown
from openassay.models.report import MAX_ARTIFACTS, Artifact, ArtifactDraft, ArtifactKind, ArtifactTable, PlainText
from openassay.models.thread import Thread
from openassay.server.auth import OwnThread, WritableThread, Writer
from openassay.server.bodies import Body, ReadableText, created_links, redact_report, refusals
from openassay.server.responses import (
    IfMatch,
    MalformedError,
    PreconditionError,
    Refusal,
    TooLargeError,
    compute_etag,
    precondition_error,
    require_match,
    respond_unless_seen,
    respond_with_etag,
    to_json_bytes,
)
from openassay.server.service import Service, ServiceDep

router = APIRouter(prefix="/api/threads/{threadId}/artifacts", responses=refusals(404), tags=["artifacts"])
MAX_BYTES = 1_000_000  # of a content
_NAME = r"^[a-z0-9][a-z0-9-]{0,39}$"
_STATEMENTS = {
    "columns": [{"key": "what", "title": "What"}, {"key": "value", "title": "Value"}],
    "rows": [["Height", 3]],
}
_CREATED = {"threadId": "$request.path.threadId", "name": "$response.body#/name"}
_ARTIFACT_LINKS = created_links(
    get_artifact=_CREATED, edit_artifact=_CREATED, list_artifact_versions=_CREATED, delete_artifact=_CREATED
)
Name = Annotated[str, Path(description="The name of an artifact.", examples=["claims"])]
Title = Annotated[ReadableText, Field(min_length=1, max_length=200, examples=["Key figures"])]
Content = Annotated[PlainText | ArtifactTable, Field(examples=["# Report\n\nThe kiln is hot.", _STATEMENTS])]


class ArtifactFormat(StrEnum):
    JSON = "json"
    CSV = "csv"
    MD = "md"


class ArtifactEntry(Body):
    name: str = Field(examples=["claims"])
    kind: ArtifactKind = Field(examples=["table"])
    title: str = Field(examples=["Statements and sources"])
    version: int = Field(examples=[2])
    edited: bool = Field(examples=[True], description="A person has made this version.")
    outdated: bool = Field(examples=[False], description="The report has changed since a person edited this.")
    own: bool = Field(examples=[False], description="A person has added it; it is not from a report.")
    updated: datetime = Field(examples=["2026-03-01T12:00:00Z"])


class ArtifactBody(ArtifactEntry):
    content: Content = Field(description="Markdown, or a table.")


class ArtifactList(Body):
    artifacts: list[ArtifactEntry]


class ArtifactVersion(Body):
    version: int = Field(examples=[2])
    title: str = Field(examples=["Key figures"])
    created: datetime = Field(examples=["2026-03-01T12:00:00Z"])
    by: Literal["openassay", "person"] = Field(examples=["person"])


class ArtifactVersionList(Body):
    versions: list[ArtifactVersion]


class ArtifactEdit(Body):
    title: Title | None = None
    content: Content


class NewArtifact(Body):
    name: str | None = Field(
        default=None, pattern=_NAME, examples=["my-notes"], description="Made from the title where none is given."
    )
    title: Title
    content: Content


class ThreadArtifacts(NamedTuple):
    """What the report of a thread makes, and what a person has made of it."""

    service: Service
    thread: Thread

    async def load_all(self) -> dict[str, CurrentArtifact]:
        offers: list[ArtifactDraft] = []
        updated = self.thread.updated
        try:
            report = redact_report(await self.service.engine.history.report(self.thread.id), self.service.redaction)
        except NotFoundError:
            pass
        else:
            finished = report.metadata.finished
            updated = datetime.fromisoformat(finished) if finished else updated
            offers = await asyncio.to_thread(offer_artifacts, report)
        return resolve_artifacts(
            offers, await self.service.resources.artifacts.latest(self.thread.id), self.thread.id, updated
        )

    async def get(self, name: str, version: int | None = None) -> CurrentArtifact:
        """Return an artifact, or a version of it as it was; the report may have changed since."""
        found = (await self.load_all()).get(name)
        if found is None:
            raise no_artifact(name)
        if version in (None, found.artifact.version):
            return found
        for one in await self.list_versions(found):
            if one.version == version:
                return found._replace(artifact=one, outdated=found.outdated and bool(one.author))
        raise NotFoundError(f"{name} has no version {version}", help="Look at the list of its versions.")

    async def list_versions(self, found: CurrentArtifact) -> list[Artifact]:
        """Return the stored versions, the oldest first, and then what the report makes of it now."""
        stored = await self.service.resources.artifacts.versions(self.thread.id, found.artifact.name)
        return [*stored, found.fresh] if found.fresh else stored

    async def save(self, draft: ArtifactDraft, before: CurrentArtifact | None) -> CurrentArtifact:
        """Store a new version after the one that was seen, on top of what the report makes of it."""
        fresh = before.fresh if before else None
        base = ArtifactDraft(fresh.name, fresh.kind, fresh.title, fresh.content) if fresh else None
        written = await self.service.resources.artifacts.keep(
            self.thread.id, draft, base, seen=before.kept if before else 0
        )
        if written is None:
            raise precondition_error()
        own = before.own if before else True
        return CurrentArtifact(written, fresh=None, outdated=False, own=own, kept=written.version)


@router.get("", summary="List the artifacts of a thread")
async def list_artifacts(thread: OwnThread, service: ServiceDep) -> ArtifactList:
    found = await ThreadArtifacts(service, thread).load_all()
    return ArtifactList(artifacts=[ArtifactEntry(**_entry_fields(one)) for one in found.values()])


@router.post("", status_code=201, summary="Add an artifact", responses={**_ARTIFACT_LINKS, **refusals(409, 413)})
async def add_artifact(
    thread: WritableThread, caller: Writer, service: ServiceDep, response: Response, body: NewArtifact
) -> ArtifactBody:
    artifacts = ThreadArtifacts(service, thread)
    found = await artifacts.load_all()
    if body.name in found:
        raise UsageError(f"there is an artifact {body.name} already", help="Choose another name, or change it.")
    if len(found) >= MAX_ARTIFACTS:
        raise UsageError(f"a thread has at most {MAX_ARTIFACTS} artifacts", help="Delete one of them.")
    stem = re.sub(r"[^a-z0-9]+", "-", body.title.lower()).strip("-")[:32].strip("-") or "artifact"
    names = (stem, *(f"{stem}-{number}" for number in range(2, MAX_ARTIFACTS + 2)))
    name = body.name or next(name for name in names if name not in found)
    draft = ArtifactDraft(name, *_encode_content(body.title, body.content), caller.user)
    return _body_with_etag(response, await artifacts.save(draft, None))


@router.get(
    "/{name}",
    summary="Get an artifact",
    response_model=ArtifactBody,
    responses={
        200: {"content": {"text/csv": {}, "text/markdown": {}}},
        304: {"description": "Not modified."},
    },
)
async def get_artifact(
    thread: OwnThread,
    name: Name,
    service: ServiceDep,
    request: Request,
    version: Annotated[int | None, Query(ge=1, le=1_000_000_000)] = None,
    format: ArtifactFormat = ArtifactFormat.JSON,
) -> Response:
    """The latest version, or another. PUT needs the ETag of its JSON."""
    found = await ThreadArtifacts(service, thread).get(name, version)
    if format is ArtifactFormat.JSON:
        return respond_with_etag(request, _to_body(found))
    content, is_csv = _decode_content(found.artifact), format is ArtifactFormat.CSV
    if isinstance(content, str) and is_csv:
        raise MalformedError("a text has no CSV", help="Choose md or json.")
    if not isinstance(content, str):
        content = as_csv(content) if is_csv else as_markdown(content)
    return respond_unless_seen(request, content.encode(), f"text/{'csv' if is_csv else 'markdown'}; charset=utf-8")


@router.put(
    "/{name}",
    summary="Save a new version of an artifact",
    responses={**refusals(409, 412, 413, 428), 201: {"model": ArtifactBody, "description": "It was created."}},
)
async def edit_artifact(
    thread: WritableThread,
    name: Name,
    caller: Writer,
    service: ServiceDep,
    response: Response,
    body: ArtifactEdit,
    match: IfMatch = None,
) -> ArtifactBody:
    """Give the version that you have seen in If-Match. If there is none of this name, it is added."""
    artifacts = ThreadArtifacts(service, thread)
    found = (await artifacts.load_all()).get(name)
    if found is None:
        if not re.fullmatch(_NAME, name):
            raise MalformedError("this cannot be a name", help="Use up to 40 small letters, digits and hyphens.")
        if match is not None:
            raise PreconditionError("there is no such artifact", help="Leave If-Match out to add one.")
        response.status_code = 201
    elif match is None:
        help = "Send the ETag of the version that you have seen."
        raise Refusal("If-Match is required", help=help, status=428, kind="condition-missing")
    else:
        require_match(match, _to_body(found))
    title = body.title or (found.artifact.title if found else name)
    draft = ArtifactDraft(name, *_encode_content(title, body.content), caller.user)
    if found and draft.kind != found.artifact.kind:
        raise MalformedError(f"this is a {found.artifact.kind}", help="Add another one for another kind of content.")
    return _body_with_etag(response, await artifacts.save(draft, found))


@router.get("/{name}/versions", summary="List the versions of an artifact")
async def list_artifact_versions(thread: OwnThread, name: Name, service: ServiceDep) -> ArtifactVersionList:
    """The stored versions, the oldest first, and what the report makes of it now."""
    artifacts = ThreadArtifacts(service, thread)
    versions = [
        ArtifactVersion(
            version=one.version, title=one.title, created=one.created, by="person" if one.author else "openassay"
        )
        for one in await artifacts.list_versions(await artifacts.get(name))
    ]
    return ArtifactVersionList(versions=versions)


@router.delete("/{name}", status_code=204, summary="Delete the edits of an artifact", responses=refusals(412))
async def delete_artifact(thread: WritableThread, name: Name, service: ServiceDep, match: IfMatch = None) -> Response:
    """Every version that a person has made is deleted; an artifact of their own is deleted altogether."""
    found = await ThreadArtifacts(service, thread).get(name)
    require_match(match, _to_body(found))
    if not found.edited:
        raise NotFoundError(f"nobody has edited {name}", help="It is as OpenAssay has made it.")
    await service.resources.artifacts.delete(thread.id, name)
    return Response(status_code=204)


def _encode_content(title: str, content: str | ArtifactTable) -> tuple[ArtifactKind, str, str]:
    kind: ArtifactKind = "markdown" if isinstance(content, str) else "table"
    text = content if isinstance(content, str) else content.model_dump_json()
    if len(text.encode()) > MAX_BYTES:
        raise TooLargeError(f"an artifact has at most {MAX_BYTES / 1e6:g} MB", help="Split it.")
    return kind, title, text


def _entry_fields(one: CurrentArtifact) -> dict[str, Any]:
    artifact = one.artifact
    return {
        **artifact.model_dump(include={"name", "kind", "title", "version"}),
        "edited": one.edited,
        "outdated": one.outdated,
        "own": one.own,
        "updated": artifact.created,
    }


def _to_body(one: CurrentArtifact) -> ArtifactBody:
    return ArtifactBody(**_entry_fields(one), content=_decode_content(one.artifact))


def _body_with_etag(response: Response, one: CurrentArtifact) -> ArtifactBody:
    """Return the body, and set the ETag that the next change has to give."""
    shown = _to_body(one)
    response.headers["ETag"] = compute_etag(to_json_bytes(shown))
    return shown


def _decode_content(artifact: Artifact) -> str | ArtifactTable:
    try:
        return artifact.content if artifact.kind == "markdown" else ArtifactTable.model_validate_json(artifact.content)
    except ValidationError as error:
        raise NotFoundError(
            f"{artifact.name} was not written by this version of OpenAssay", help="Upgrade OpenAssay, or delete it."
        ) from error
