"""Which report of a thread is meant, and who may see it."""

import asyncio
from datetime import datetime
from typing import Annotated

from fastapi import Query

from openassay.engine.artifacts import ArtifactOffer, CurrentArtifact, offer_artifacts, resolve_artifacts
from openassay.errors import NotFoundError
from openassay.export.report import Report
from openassay.models.event import RunStatus
from openassay.models.report import Artifact
from openassay.models.thread import Thread
from openassay.server.auth import Principal
from openassay.server.bodies import Id
from openassay.server.redact import redact_report
from openassay.server.responses import precondition_error
from openassay.server.service import Service
from openassay.storage.artifacts import ArtifactDraft, no_artifact
from openassay.storage.threads import no_run

RunQuery = Annotated[Id | None, Query(description="One of the thread's runs; the latest that is finished unless said.")]


async def load_report(service: Service, caller: Principal, thread: Thread, run: str | None) -> Report:
    """NotFoundError where there is none. Whoever has a link sees the latest: another run is as unknown to them as one
    that never was."""
    if run is not None and caller.share is not None:
        done = [one.id for one in await service.engine.threads.runs(thread.id) if one.status is RunStatus.DONE]
        if run not in done[-1:]:
            raise no_run(run)
    return await service.engine.report(thread.id, run)


# The artifacts of a thread: what its report makes, beside what a person has made of that.


class ThreadArtifacts:
    def __init__(self, service: Service, thread: Thread) -> None:
        self._service = service
        self._store = service.resources.artifacts
        self._thread = thread

    async def load_all(self) -> dict[str, CurrentArtifact]:
        made, when = await self._derive_from_report()
        return resolve_artifacts(made, await self._store.latest(self._thread.id), self._thread.id, when)

    async def get(self, name: str) -> CurrentArtifact:
        found = (await self.load_all()).get(name)
        if found is None:
            raise no_artifact(name)
        return found

    async def list_versions(self, name: str) -> list[Artifact]:
        """Oldest first: those that were kept, and what the report makes of it now."""
        found = await self.get(name)
        kept = await self._store.versions(self._thread.id, name)
        return [*kept, found.fresh] if found.fresh else kept

    async def get_version(self, name: str, version: int) -> CurrentArtifact:
        """As it was; the report may have gone on since."""
        found = await self.get(name)
        if version == found.artifact.version:
            return found
        for one in await self.list_versions(name):
            if one.version == version:
                return found._replace(artifact=one, outdated=found.outdated and bool(one.author))
        raise NotFoundError(f"{name} has no version {version}", help="Look at the list of its versions.")

    async def save(self, draft: ArtifactDraft, before: CurrentArtifact | None) -> CurrentArtifact:
        """A new version after the one that was seen, with what OpenAssay makes of it beneath."""
        fresh = before.fresh if before else None
        base = ArtifactDraft(fresh.name, fresh.kind, fresh.title, fresh.content) if fresh else None
        written = await self._store.keep(self._thread.id, draft, base, seen=before.kept if before else 0)
        if written is None:
            raise precondition_error()
        own = before.own if before else True
        return CurrentArtifact(written, fresh=None, outdated=False, own=own, kept=written.version)

    async def reset(self, name: str) -> None:
        """Every version a person has made goes."""
        if not (await self.get(name)).edited:
            raise NotFoundError(f"nobody has edited {name}", help="It is as OpenAssay has made it.")
        await self._store.delete(self._thread.id, name)

    async def _derive_from_report(self) -> tuple[list[ArtifactOffer], datetime]:
        """What the report offers, and when it was finished."""
        try:
            report = redact_report(await self._service.engine.report(self._thread.id), self._service.redaction)
        except NotFoundError:
            return [], self._thread.updated
        finished = report.metadata.finished
        when = datetime.fromisoformat(finished) if finished else self._thread.updated
        return await asyncio.to_thread(offer_artifacts, report), when
