"""Every measure by name. The modules load what they measure, so they are imported when they are needed."""

from difflib import get_close_matches
from importlib import import_module

from assay.errors import NotFoundError
from assay.evaluation.measure import Measure

# In the order of the table: reading, judging, finding, answering, withstanding.
MODULES = {
    "extraction": "extraction",
    "duplicates": "duplicates",
    "urls": "urls",
    "companies": "companies",
    "wice": "support",
    "fever": "support",
    "evidence": "evidence",
    "hotpotqa": "retrieval",
    "deepscholar": "retrieval",
    "ramdocs": "ramdocs",
    "followups": "followups",
    "sec10q": "filings",
    "nuggets": "nuggets",
    "injection": "injection",
    "hostile": "hostile",
}


def measure(name: str) -> Measure:
    """Each module has its measures in `MEASURES`."""
    if name not in MODULES:
        near = get_close_matches(name, MODULES, n=1, cutoff=0.5)
        meant = f"Did you mean {near[0]}? " if near else ""
        raise NotFoundError(f"no measure is called {name!r}", help=f"{meant}See: assay eval --list")
    found: dict[str, Measure] = import_module(f"assay.evaluation.{MODULES[name]}").MEASURES
    return found[name]


def every() -> list[Measure]:
    return [measure(name) for name in MODULES]
