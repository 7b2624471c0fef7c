"""Sources taken out of a report for good: what rested on them is derived again by a run that asks nothing new."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from openassay.engine.history import ThreadHistory
from openassay.engine.runner import Runner
from openassay.engine.start import RunStarter, make_title
from openassay.errors import NotFoundError, UsageError
from openassay.export.report import Report
from openassay.models.event import RunStatus
from openassay.models.report import ReportClaim, ReportData, SourceCard
from openassay.models.thread import Consequences, Run, SourceVeto, read_options
from openassay.state import question_input, veto_input
from openassay.text.urls import canonicalize_url, is_within_domain

# Which sources a person means, and what a report would lose without them.


def select_sources(report: ReportData, names: Iterable[str]) -> tuple[SourceVeto, ...]:
    """Sources of the report by their id ("S3" or "3"), address, host, or the beginning of their hash."""
    found: dict[str, SourceVeto] = {}
    for name in names:
        cards = [card for card in report.sources if _is_match(card, name.strip())]
        if not cards:
            known = ", ".join(card.id for card in report.sources) or "none"
            raise NotFoundError(
                f"the report has no source {name!r}", help=f"It has: {known}. openassay threads show lists them."
            )
        found |= {card.document: SourceVeto(document=card.document, url=card.url, title=card.title) for card in cards}
    return tuple(found.values())


LEAST = 6  # characters of a hash


def _is_match(card: SourceCard, name: str) -> bool:
    if not name:
        return False
    if card.id.lower() in (name.lower(), f"s{name}"):
        return True
    if canonicalize_url(name) == canonicalize_url(card.url) or (
        card.host and "." in name and is_within_domain(card.host, name)
    ):
        return True
    return len(name) >= LEAST and card.document.startswith(name.lower())


def assess_consequences(report: ReportData, sources: Sequence[SourceVeto]) -> Consequences:
    out = {source.document for source in sources}
    supported = [claim for claim in report.claims if claim.verdict == "supported"]
    touched = [claim for claim in supported if any(span.document in out for span in claim.spans)]
    lost = [claim for claim in touched if all(span.document in out for span in claim.spans)]
    affected, gone = {claim.id for claim in touched}, {claim.id for claim in lost}
    told = [sentence for section in report.sections for sentence in section.sentences]
    return Consequences(
        sources=tuple(sources),
        lost=tuple(claim.id for claim in lost),
        weaker=tuple(claim.id for claim in touched if claim.id not in gone),
        sentences=tuple(sentence.text for sentence in told if affected & set(sentence.claims)),
        unanswered=_find_open_questions(report, supported, gone),
        untouched=len(supported) - len(touched),
    )


def _find_open_questions(report: ReportData, supported: Sequence[ReportClaim], gone: set[str]) -> tuple[str, ...]:
    """Sub-questions that had answers and would have none."""
    before = {question for claim in supported for question in claim.questions}
    after = {question for claim in supported if claim.id not in gone for question in claim.questions}
    questions = report.plan.questions if report.plan else ()
    return tuple(question.text for question in questions if question.id in before - after)


def merge_vetoes(values: Mapping[str, Any], added: Sequence[SourceVeto]) -> list[dict[str, Any]]:
    """The thread's vetoes with these, each once."""
    known = {source["document"]: source for source in values.get("vetoed") or ()}
    return list({**known, **{source.document: source.plain() for source in added}}.values())


class VetoService:
    def __init__(self, runner: Runner, history: ThreadHistory, beginnings: RunStarter) -> None:
        self._runner = runner
        self._history = history
        self._beginnings = beginnings

    async def consequences(self, thread: str, sources: Sequence[str]) -> Consequences:
        report = await self._history.report(thread)
        return assess_consequences(report, select_sources(report, sources))

    async def begin(self, thread: str, sources: Sequence[str], *, usd: float | None, queued: bool) -> Run:
        _refuse_open(await self._runner.latest_run(thread))
        async with self._runner.lock_thread(thread) as hold:
            run = await self._create_run(thread, sources, usd, RunStatus.QUEUED if queued else RunStatus.RUNNING)
            given = await self.build_input(run, {})
            await self._runner.threads.begin(run)
            if not queued:
                self._runner.spawn(run, [], given, hold)
        return run

    async def _create_run(self, thread: str, sources: Sequence[str], usd: float | None, status: RunStatus) -> Run:
        await self._runner.check(thread)
        before = await self._runner.latest_run(thread)
        report = await self._history.report(thread)
        mine = (before.id, *read_options(before).lineage)  # a branch may begin with a finished report
        _refuse_open(before, has_report=report.provenance.run in mine)
        named = select_sources(report, sources)
        listed = ", ".join(source.title for source in named)
        most = {} if usd is None else {"usd": usd}
        options = read_options(before).model_copy(update={"veto": tuple(source.document for source in named), **most})
        return self._beginnings.build_run(thread, make_title(f"Without {listed}"), options, status)

    async def build_input(self, run: Run, notices: dict[str, str]) -> dict[str, Any]:
        """What the graph is given at the start of a run, whether it takes sources out or asks a question."""
        options = read_options(run)
        if not options.veto:
            return question_input(run.question, run.id, run.options, notices)
        values = (await self._runner.state(run.thread)).values
        cards = [card for card in Report.model_validate(values["report"]).sources if card.document in options.veto]
        named = [SourceVeto(document=card.document, url=card.url, title=card.title) for card in cards]
        return veto_input(run.id, run.options, options.veto, merge_vetoes(values, named))


def _refuse_open(run: Run, *, has_report: bool = True) -> None:
    if run.active or not has_report:
        raise UsageError(
            "this thread's last question has no report yet", help=f"Finish it: openassay resume {run.thread}"
        )
