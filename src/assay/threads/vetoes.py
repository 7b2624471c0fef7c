"""Sources taken out of a report for good: what rested on them is derived again by a run that asks nothing new."""

from collections.abc import Sequence
from typing import Any

from assay.errors import UsageError
from assay.export.report import Report
from assay.model.event import RunStatus
from assay.model.thread import Run, chosen
from assay.model.veto import Consequences, Vetoed
from assay.runs.runner import Runner
from assay.state import new_question, withdrawal
from assay.threads.beginnings import Beginnings, title
from assay.threads.history import History
from assay.view import veto


class Vetoes:
    def __init__(self, runner: Runner, history: History, beginnings: Beginnings) -> None:
        self._runner = runner
        self._history = history
        self._beginnings = beginnings

    async def consequences(self, thread: str, sources: Sequence[str]) -> Consequences:
        report = await self._history.report(thread)
        return veto.consequences(report, veto.chosen(report, sources))

    async def begin(self, thread: str, sources: Sequence[str], *, usd: float | None, queued: bool) -> Run:
        _refuse_open(await self._runner.latest(thread))
        async with self._runner.holding(thread) as hold:
            run = await self._asked(thread, sources, usd, RunStatus.QUEUED if queued else RunStatus.RUNNING)
            given = await self.given(run, {})
            await self._runner.threads.begin(run)
            if not queued:
                self._runner.spawn(run, [], given, hold)
        return run

    async def _asked(self, thread: str, sources: Sequence[str], usd: float | None, status: RunStatus) -> Run:
        await self._runner.check(thread)
        before = await self._runner.latest(thread)
        report = await self._history.report(thread)
        mine = (before.id, *chosen(before).lineage)  # a branch may begin with a finished report
        _refuse_open(before, has_report=report.provenance.run in mine)
        named = veto.chosen(report, sources)
        listed = ", ".join(source.title for source in named)
        most = {} if usd is None else {"usd": usd}
        options = chosen(before).model_copy(update={"veto": tuple(source.document for source in named), **most})
        return self._beginnings.run(thread, title(f"Without {listed}"), options, status)

    async def given(self, run: Run, notices: dict[str, str]) -> dict[str, Any]:
        """What the graph is given at the start of a run, whether it takes sources out or asks a question."""
        options = chosen(run)
        if not options.veto:
            return new_question(run.question, run.id, run.options, notices)
        values = (await self._runner.state(run.thread)).values
        cards = [card for card in Report.model_validate(values["report"]).sources if card.document in options.veto]
        named = [Vetoed(document=card.document, url=card.url, title=card.title) for card in cards]
        return withdrawal(run.id, run.options, options.veto, veto.all_vetoed(values, named))


def _refuse_open(run: Run, *, has_report: bool = True) -> None:
    if run.active or not has_report:
        raise UsageError("this thread's last question has no report yet", help=f"Finish it: assay resume {run.thread}")
