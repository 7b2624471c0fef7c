"""The reports and artifacts of a thread: which one is meant, and who may see it."""

import asyncio
from datetime import datetime
from typing import Annotated

from fastapi import Query

from openassay.engine.artifacts import CurrentArtifact, offer_artifacts, resolve_artifacts
from openassay.errors import NotFoundError
from openassay.export import Report
from openassay.models.event import RunStatus
from openassay.models.report import Artifact
from openassay.models.thread import Thread
from openassay.server.auth import Principal
from openassay.server.bodies import Id, redact_report, redact_report_for_link
from openassay.server.responses import precondition_error
from openassay.server.service import Service
from openassay.storage.threads import ArtifactDraft, no_artifact, no_run

RunQuery = Annotated[Id | None, Query(description="One of the thread's runs; the latest finished one if left out.")]


async def load_report(service: Service, caller: Principal, thread: Thread, run: str | None) -> Report:
    """Return a report, or raise NotFoundError. A link shows the latest: other runs are unknown to it."""
    if run is not None and caller.share is not None:
        done = [one.id for one in await service.engine.threads.runs(thread.id) if one.status is RunStatus.DONE]
        if run not in done[-1:]:
            raise no_run(run)
    return await service.engine.history.report(thread.id, run)


def redact_for(caller: Principal, report: Report, service: Service) -> Report:
    """Return a report as this caller may see it."""
    return (redact_report if caller.share is None else redact_report_for_link)(report, service.redaction)


class ThreadArtifacts:
    """What the report of a thread makes, and what a person has made of it."""

    def __init__(self, service: Service, thread: Thread) -> None:
        self._service = service
        self._store = service.resources.artifacts
        self._thread = thread

    async def load_all(self) -> dict[str, CurrentArtifact]:
        offers: list[ArtifactDraft] = []
        updated = self._thread.updated
        try:
            report = redact_report(await self._service.engine.history.report(self._thread.id), self._service.redaction)
        except NotFoundError:
            pass
        else:
            finished = report.metadata.finished
            updated = datetime.fromisoformat(finished) if finished else updated
            offers = await asyncio.to_thread(offer_artifacts, report)
        return resolve_artifacts(offers, await self._store.latest(self._thread.id), self._thread.id, updated)

    async def get(self, name: str) -> CurrentArtifact:
        found = (await self.load_all()).get(name)
        if found is None:
            raise no_artifact(name)
        return found

    async def list_versions(self, name: str) -> list[Artifact]:
        """Return the stored versions, the oldest first, and then what the report makes of it now."""
        found = await self.get(name)
        stored = await self._store.versions(self._thread.id, name)
        return [*stored, found.fresh] if found.fresh else stored

    async def get_version(self, name: str, version: int) -> CurrentArtifact:
        """Return a version as it was; the report may have changed since."""
        found = await self.get(name)
        if version == found.artifact.version:
            return found
        for one in await self.list_versions(name):
            if one.version == version:
                return found._replace(artifact=one, outdated=found.outdated and bool(one.author))
        raise NotFoundError(f"{name} has no version {version}", help="Look at the list of its versions.")

    async def save(self, draft: ArtifactDraft, before: CurrentArtifact | None) -> CurrentArtifact:
        """Store a new version after the one that was seen, on top of what the report makes of it."""
        fresh = before.fresh if before else None
        base = ArtifactDraft(fresh.name, fresh.kind, fresh.title, fresh.content) if fresh else None
        written = await self._store.keep(self._thread.id, draft, base, seen=before.kept if before else 0)
        if written is None:
            raise precondition_error()
        own = before.own if before else True
        return CurrentArtifact(written, fresh=None, outdated=False, own=own, kept=written.version)

    async def reset(self, name: str) -> None:
        """Delete every version that a person has made."""
        if not (await self.get(name)).edited:
            raise NotFoundError(f"nobody has edited {name}", help="It is as OpenAssay has made it.")
        await self._store.delete(self._thread.id, name)
