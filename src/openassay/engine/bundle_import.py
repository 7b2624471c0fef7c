"""Stores the report of an evidence bundle as a finished thread, so that it can be viewed like any other."""

from collections.abc import Sequence
from datetime import UTC, datetime

from langchain_core.runnables import RunnableConfig

from openassay.bootstrap import ServerResources
from openassay.engine.branches import make_title
from openassay.engine.checkpoints import SqlCheckpointSaver
from openassay.graph import build_graph
from openassay.models.event import Event, RunStatus, Status
from openassay.models.evidence import Document
from openassay.models.report import ReportData
from openassay.models.thread import ResearchOptions, Run, Thread, is_id
from openassay.state import question_input
from openassay.storage.events import SqlEvents
from openassay.storage.threads import SqlThreads


async def store_report(resources: ServerResources, report: ReportData, texts: Sequence[Document], user: str) -> str:
    """Return the id of the new thread: the report's own, if it is one that a thread could have."""
    made, rows = report.provenance, resources.rows
    thread, run = (id if is_id(id) else "bundle" for id in (made.thread, made.run))
    question = made.question or report.question
    finished = _parse_time(report.metadata.finished) or datetime.now(UTC)
    title = make_title(report.title or question)
    done = Run(
        id=run,
        thread=thread,
        question=question,
        status=RunStatus.DONE,
        stage=Status.COMPLETED,
        started=_parse_time(report.metadata.started) or finished,
        finished=finished,
        settings=report.metadata.settings,
        options=ResearchOptions(user=user),
    )
    await SqlThreads(rows).create_with_run(
        Thread(id=thread, title=title, created=finished, updated=finished, owner=user), done
    )
    values = {
        **question_input(done, {}),
        "status": Status.COMPLETED.value,
        "plan": report.plan.plain() if report.plan else None,
        "report": report.plain(),
    }
    config = RunnableConfig(configurable={"thread_id": thread})
    await build_graph(SqlCheckpointSaver(rows)).aupdate_state(config, values, as_node="publish")
    for document in texts:
        await resources.documents.put(document)
    await SqlEvents(rows).append(Event(run=run, time=finished, kind="run", data={"status": RunStatus.DONE.value}))
    return thread


def _parse_time(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
