"""What was chosen or found and not read yet, and what a report could not use: searches that failed, and pages that were
found but not read."""

from collections import Counter
from collections.abc import Mapping

from assay.state import Plain, State

MOST_REASONS = 4


def done(harvested: Mapping[str, Plain]) -> set[str]:
    """Addresses that need not be fetched any more: they were read, or trying again would not help."""
    return {key for key, outcome in harvested.items() if not outcome["again"]}


def unread(state: State, question: str) -> list[Plain]:
    """Passages chosen for a sub-question that no round has read for it."""
    before = {
        tuple(place) for key, places in state["perused"].items() if key.endswith(f":{question}") for place in places
    }
    return [p for p in state["selected"].get(question, ()) if (p["document"], p["start"]) not in before]


def unused(state: State) -> list[str]:
    return [*_unsearched(state), *_unread(state)]


def _unsearched(state: State) -> list[str]:
    failed: Counter[str] = Counter()
    reasons: dict[str, str] = {}
    for key in sorted(state["searched"]):
        for source, (message, count) in state["searched"][key].get("errors", {}).items():
            failed[source] += count
            reasons.setdefault(source, message)
    return [
        f"{count} {'searches' if count > 1 else 'search'} of {source} failed: {reasons[source]}."
        for source, count in sorted(failed.items())
    ]


def _unread(state: State) -> list[str]:
    outcomes = list(state["harvested"].values())
    reasons = Counter(str(outcome["reason"]) for outcome in outcomes if not outcome["document"])
    if not reasons:
        return []
    listed = "; ".join(
        f"{reason} ({count})" if count > 1 else reason for reason, count in reasons.most_common(MOST_REASONS)
    )
    more = "; and other reasons" if len(reasons) > MOST_REASONS else ""
    return [f"{reasons.total()} of {len(outcomes)} pages found were not read: {listed}{more}. The run log lists them."]
