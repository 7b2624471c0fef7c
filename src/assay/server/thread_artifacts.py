"""The artifacts of a thread: what its report makes, beside what a person has made of that."""

import asyncio
from datetime import datetime

from assay.errors import NotFoundError
from assay.model.artifact import Artifact
from assay.model.thread import Thread
from assay.server.etags import changed
from assay.server.service import Service
from assay.server.shown import shown_report
from assay.storage.artifacts import Draft, no_artifact
from assay.view.artifacts import Current, Made, current, offered


class ThreadArtifacts:
    def __init__(self, service: Service, thread: Thread) -> None:
        self._service = service
        self._store = service.premises.artifacts
        self._thread = thread

    async def all(self) -> dict[str, Current]:
        made, when = await self._made()
        return current(made, await self._store.latest(self._thread.id), self._thread.id, when)

    async def one(self, name: str) -> Current:
        found = (await self.all()).get(name)
        if found is None:
            raise no_artifact(name)
        return found

    async def versions(self, name: str) -> list[Artifact]:
        """Oldest first: those that were kept, and what the report makes of it now."""
        found = await self.one(name)
        kept = await self._store.versions(self._thread.id, name)
        return [*kept, found.fresh] if found.fresh else kept

    async def version(self, name: str, version: int) -> Current:
        """As it was; the report may have gone on since."""
        found = await self.one(name)
        if version == found.artifact.version:
            return found
        for one in await self.versions(name):
            if one.version == version:
                return found._replace(artifact=one, outdated=found.outdated and bool(one.author))
        raise NotFoundError(f"{name} has no version {version}", help="Look at the list of its versions.")

    async def keep(self, draft: Draft, before: Current | None) -> Current:
        """A new version after the one that was seen, with what Assay makes of it beneath."""
        fresh = before.fresh if before else None
        base = Draft(fresh.name, fresh.kind, fresh.title, fresh.content) if fresh else None
        written = await self._store.keep(self._thread.id, draft, base, seen=before.kept if before else 0)
        if written is None:
            raise changed()
        own = before.own if before else True
        return Current(written, fresh=None, outdated=False, own=own, kept=written.version)

    async def reset(self, name: str) -> None:
        """Every version a person has made goes."""
        if not (await self.one(name)).edited:
            raise NotFoundError(f"nobody has edited {name}", help="It is as Assay has made it.")
        await self._store.delete(self._thread.id, name)

    async def _made(self) -> tuple[list[Made], datetime]:
        """What the report offers, and when it was finished."""
        try:
            report = shown_report(await self._service.engine.report(self._thread.id), self._service.redaction)
        except NotFoundError:
            return [], self._thread.updated
        finished = report.metadata.finished
        when = datetime.fromisoformat(finished) if finished else self._thread.updated
        return await asyncio.to_thread(offered, report), when
