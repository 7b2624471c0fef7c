"""Vetoes: sources removed from a report for good. A run that asks nothing new derives again what rested on them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from openassay.engine.history import ThreadHistory
from openassay.engine.runner import Runner
from openassay.engine.start import RunStarter, make_title
from openassay.errors import NotFoundError, UsageError
from openassay.export.report import Report
from openassay.models.event import RunStatus
from openassay.models.report import ReportData, SourceCard
from openassay.models.thread import Consequences, Run, SourceVeto
from openassay.state import load_vetoes, question_input, veto_input
from openassay.text.urls import canonicalize_url, is_within_domain

MIN_HASH_CHARS = 6  # of the beginning of a hash by which a source is named


def select_sources(report: ReportData, names: Iterable[str]) -> tuple[SourceVeto, ...]:
    """Find sources of the report by their id ("S3" or "3"), address, host, or the beginning of their hash."""
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


def _is_match(card: SourceCard, name: str) -> bool:
    if not name:
        return False
    return bool(
        card.id.lower() in (name.lower(), f"s{name}")
        or canonicalize_url(name) == canonicalize_url(card.url)
        or (card.host and "." in name and is_within_domain(card.host, name))
        or (len(name) >= MIN_HASH_CHARS and card.document.startswith(name.lower()))
    )


def assess_consequences(report: ReportData, sources: Sequence[SourceVeto]) -> Consequences:
    """Return what the report would lose without these sources."""
    out = {source.document for source in sources}
    supported = [claim for claim in report.claims if claim.verdict == "supported"]
    touched = [claim for claim in supported if any(span.document in out for span in claim.spans)]
    lost = [claim for claim in touched if all(span.document in out for span in claim.spans)]
    affected, gone = {claim.id for claim in touched}, {claim.id for claim in lost}
    sentences = [sentence for section in report.sections for sentence in section.sentences]
    answered = {question for claim in supported for question in claim.questions}
    still_answered = {question for claim in supported if claim.id not in gone for question in claim.questions}
    questions = report.plan.questions if report.plan else ()
    return Consequences(
        sources=tuple(sources),
        lost=tuple(claim.id for claim in lost),
        weaker=tuple(claim.id for claim in touched if claim.id not in gone),
        sentences=tuple(sentence.text for sentence in sentences if affected & set(sentence.claims)),
        unanswered=tuple(question.text for question in questions if question.id in answered - still_answered),
        untouched=len(supported) - len(touched),
    )


def merge_vetoes(values: Mapping[str, Any], added: Sequence[SourceVeto]) -> list[dict[str, object]]:
    """Add vetoes to those of the thread, each once."""
    merged = {veto.document: veto for veto in (*load_vetoes(values), *added)}
    return [veto.plain() for veto in merged.values()]


class VetoService:
    """Starts runs that take sources out of a report."""

    def __init__(self, runner: Runner, history: ThreadHistory, starter: RunStarter) -> None:
        self._runner = runner
        self._history = history
        self._starter = starter

    async def consequences(self, thread: str, sources: Sequence[str]) -> Consequences:
        report = await self._history.report(thread)
        return assess_consequences(report, select_sources(report, sources))

    async def begin(self, thread: str, sources: Sequence[str], *, usd: float | None, queued: bool) -> Run:
        _refuse_open(await self._runner.latest_run(thread))
        async with self._runner.lock_thread(thread) as lock:
            await self._runner.check(thread)
            before = await self._runner.latest_run(thread)
            report = await self._history.report(thread)
            options = before.options
            # A branch may begin with a finished report.
            _refuse_open(before, has_report=report.provenance.run in (before.id, *options.lineage))
            named = select_sources(report, sources)
            update: dict[str, object] = {"veto": tuple(source.document for source in named)}
            options = options.model_copy(update=update if usd is None else {**update, "usd": usd})
            title = make_title(f"Without {', '.join(source.title for source in named)}")
            status = RunStatus.QUEUED if queued else RunStatus.RUNNING
            run = self._starter.build_run(thread, title, options, status)
            input = await self.build_input(run, {})
            await self._runner.threads.begin(run)
            if not queued:
                self._runner.spawn(run, [], input, lock)
        return run

    async def build_input(self, run: Run, notices: dict[str, str]) -> dict[str, Any]:
        """Return the input of the graph at the start of a run, whether it vetoes sources or asks a question."""
        if not run.options.veto:
            return question_input(run, notices)
        values = (await self._runner.state(run.thread)).values
        cards = [card for card in Report.model_validate(values["report"]).sources if card.document in run.options.veto]
        named = [SourceVeto(document=card.document, url=card.url, title=card.title) for card in cards]
        return veto_input(run, merge_vetoes(values, named))


def _refuse_open(run: Run, *, has_report: bool = True) -> None:
    if run.active or not has_report:
        raise UsageError(
            "this thread's last question has no report yet", help=f"Finish it: openassay resume {run.thread}"
        )
