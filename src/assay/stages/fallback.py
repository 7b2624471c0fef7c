"""The best there is when a report could not be finished (F-12): the draft, else the analysis, else the results, else
an honest nothing; with caveats, the score of the last review and the last errors."""

import asyncio
from collections.abc import Iterator, Sequence

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.model.claim import Claim, Verdict
from assay.model.plan import Plan
from assay.model.report import Basis, ReportStatus, Section, SourceCard
from assay.model.source import Document
from assay.reasoning.protocol import Draft, DraftSection, DraftSentence
from assay.stages.composing import compose, published
from assay.stages.opening import ran_out
from assay.stages.publish import condensed, edited, finish, notice
from assay.stages.standards import notes
from assay.state import Plain, State
from assay.trust.credibility import assess
from assay.trust.independence import groups

MOST_STATEMENTS, MOST_RESULTS = 24, 10
LONGEST_QUOTE = 300  # characters of what a source that was found says
_SPOKEN = {1: "One", 2: "Two", 3: "Three", 4: "Four", 5: "Five"}


async def fallback(state: State, runtime: Runtime[Deps]) -> State:
    deps = runtime.context
    claims = [Claim.model_validate(item) for item in state["claims"]]
    supported = [claim for claim in claims if claim.verdict is Verdict.SUPPORTED]
    basis = basis_of(state, supported)
    status = ReportStatus.PARTIAL if supported else ReportStatus.NO_DATA
    kept = await condensed(state, deps)
    found = await _found(state, deps) if basis == "results" else ()
    sections = _best(state, basis, claims, supported, found, deps)
    report = await compose(state, deps, sections, status)
    # What was found is listed, though nothing rests on it; what is cited keeps its own card.
    cards = (*report.sources, *(card for card in found if card.id not in {known.id for known in report.sources}))
    data = report.metadata.model_copy(update={"sources": len(cards)})
    report = report.model_copy(update={"basis": basis, "sources": cards, "metadata": data})
    return await finish(state, deps, report, kept)


def basis_of(state: State, supported: Sequence[Claim]) -> Basis:
    if supported:
        return "draft" if state["draft"] else "analysis"
    return "results" if state["sources"] and not state["rejected"] else "nothing"


def _best(
    state: State, basis: Basis, claims: Sequence[Claim], supported: Sequence[Claim], found: Sequence[SourceCard],
    deps: Deps,
) -> tuple[Section, ...]:  # fmt: skip
    if basis in ("results", "nothing"):
        return (notice("No answer found", *_apology(state)), *_listed(found))
    draft = edited(state) if basis == "draft" else _analysed(state, supported)
    caveats = notice("Please note", *_caveats(state, basis, deps), *notes(state, draft, deps))
    return (*published(draft, claims, state["sources"]), caveats)


def _analysed(state: State, supported: Sequence[Claim]) -> Draft:
    """What was verified, by the section it answers, best first; superseded statements are left out."""
    plan = Plan.model_validate(state["plan"])
    section_of = {question.id: question.section for question in reversed(plan.questions)}
    placed: dict[str, list[DraftSentence]] = {title: [] for title in (*plan.sections, "What was found")}
    current = [claim for claim in supported if not claim.superseded_by] or supported
    for claim in sorted(current, key=lambda claim: (-claim.relevance, claim.id))[:MOST_STATEMENTS]:
        title = next((section_of[id] for id in claim.questions if id in section_of), "What was found")
        placed[title].append(DraftSentence(text=claim.text, claims=(claim.id,)))
    sections = [DraftSection(title=title, sentences=tuple(told)) for title, told in placed.items() if told]
    return Draft(title="", sections=tuple(sections))


def _caveats(state: State, basis: Basis, deps: Deps) -> Iterator[str]:
    yield "This report was not finished; it holds the best there is."
    if basis == "analysis":
        yield "It was not written out: these are the statements that could be verified, in the words of their sources."
    if state["rejected"]:
        yield f"{_ended(state)}."
    critique = state["critique"]
    if critique and critique["recommendation"] != "approve":
        yield "The last review did not approve it."
        drafts = state["iteration"]
        if drafts > 1:
            yield f"{_SPOKEN.get(drafts, 'Many')} versions were written, and the one reviewed best is given."
        yield f"It was given about {int(critique['score'])} of 10 points."
        critical = sum(issue["severity"] == "critical" for issue in critique["issues"])
        if critical:
            yield f"{critical} critical fault{'s' * (critical != 1)} could not be mended."
    if basis == "analysis" and ran_out(state, deps.options.depth):
        yield f"After {state['research_attempts']} attempts not everything that was asked could be verified."
    yield from (f"Something failed on the way: {_lower(reason)}" for reason in list(state["failures"].values())[-2:])


def _ended(state: State) -> str:
    last = next(reversed(state["approvals"].values()), {})
    return "Nobody answered a review in time" if last.get("decision") == "timeout" else "It was rejected at a review"


def _apology(state: State) -> list[str]:
    if state["rejected"]:
        return [f"{_ended(state)}, so the research ended here.", "Ask again to start over."]
    question = (state["understanding"] or {}).get("question") or state["original_query"]
    lines = [f"Sorry, no source had an answer to “{question}”."]
    if state["failures"]:
        lines.append("Some sources could not be searched; the run log says which and why.")
    if state["research_attempts"] > 1:
        lines.append(f"It was looked for in {state['research_attempts']} attempts, each with other words.")
    lines.append("You could check the spelling, name the subject in full, or add documents that speak of it.")
    return lines


def _listed(found: Sequence[SourceCard]) -> tuple[Section, ...]:
    """Nothing of what they say is asserted, not even their titles: those stand in the list of sources."""
    if not found:
        return ()
    cited = ", ".join(f"[{card.id}]" for card in found)
    return (
        notice("Found but not verified", f"These sources were found and read: {cited}.",
               "Nothing in them could be verified as an answer; what they are is listed with the sources."),
    )  # fmt: skip


async def _found(state: State, deps: Deps) -> tuple[SourceCard, ...]:
    """The sources that were read, those with something on the matter first, each with what it says."""
    quotes: dict[str, str] = {}
    for finding in state["findings"]:  # best first
        quotes.setdefault(finding["span"]["document"], finding["span"]["quote"])
    documents = {source["document"]: await deps.documents.get(source["document"]) for source in state["sources"]}
    together = await asyncio.to_thread(groups, documents.values())
    ranked = sorted(state["sources"], key=lambda source: source["document"] not in quotes)[:MOST_RESULTS]
    return tuple(_card(source, documents[source["document"]], together, quotes) for source in ranked)


def _card(source: Plain, document: Document, together: dict[str, str], quotes: dict[str, str]) -> SourceCard:
    credibility, quote = assess(document), quotes.get(document.hash, "")[:LONGEST_QUOTE]
    return SourceCard(
        id=source["id"], title=document.title, url=document.url, document=document.hash, group=together[document.hash],
        why_used=f"found, not verified: “{quote}”" if quote else "found, and nothing in it on the question",
        host=document.host, kind=document.kind, author=document.author, published=source["published"],
        primary=credibility.primary, credibility=credibility.score, credibility_reasons=credibility.reasons,
    )  # fmt: skip


def _lower(reason: str) -> str:
    """A frame sentence names nothing the sources did not, so an error is quoted without capitals or figures."""
    return "".join(character for character in reason.lower() if not character.isdigit())
