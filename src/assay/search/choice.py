"""Which sources a run asks. Nothing about a person's documents leaves the machine unless they say so.

auto    own documents where there are some (and the web too, if wanted); else every provider that is available: for
        the web those with a key, or else the one that needs none; with no network the demo data, and a notice
a,b     just these; one that cannot be asked is an error, never another in its place
"""

from collections.abc import Sequence
from threading import Thread
from time import monotonic

from assay.errors import ConfigurationError, UsageError
from assay.model.plan import TYPES_BY_DEPTH
from assay.model.question import Depth
from assay.model.thread import Options
from assay.ports import Choice, Remote, Source
from assay.search.registry import Bench, available, build

REACH_SECONDS = 2.0
OFFLINE = "offline is set"
NO_NETWORK = "no web source could be reached"
NO_PROVIDER = "no web source is available"
PRIVATE = "this thread is about documents that stay here (--web searches the web)"


def choose(options: Options, bench: Bench) -> Choice:
    """Blocks while it looks which providers can be reached."""
    if options.sources:
        return [_named(name, options, bench) for name in options.sources], {}
    if options.source != "auto":
        names = [name.strip() for name in options.source.split(",") if name.strip()] or [options.source]
        return _by_name(list(dict.fromkeys(names)), options, bench), {}
    if options.docs and not options.web:
        return [_named("documents", options, bench)], {}
    own = [_named("documents", options, bench)] if options.docs else []
    private = options.private and not options.web  # the thread has been about documents
    found, notices, why_none = ([], {}, PRIVATE) if private else _web(options.depth, bench)
    if found or own:
        if not found:
            notices["web"] = f"The web was not searched: {why_none}. Your documents alone were."
        return [*own, *found], notices
    return [_named("demo", options, bench)], {**notices, "source": demo_notice(why_none)}


def demo_notice(reason: str) -> str:
    return (
        f"No documents were given (--docs) and {reason}, so this answer comes from the built-in illustrative demo data "
        "on five companies."
    )


def _by_name(names: Sequence[str], options: Options, bench: Bench) -> list[Source]:
    """Documents that were given are asked beside what was named."""
    if options.docs and "documents" not in names:
        names = ["documents", *names]
    chosen = [_named(name, options, bench) for name in names]
    remote = [source.name for source in chosen if isinstance(source, Remote)]
    if (options.docs or options.private) and remote and not options.web:
        raise UsageError(
            f"{', '.join(remote)} would be asked about your documents", help="Add --web if that is what you want."
        )
    return chosen


def _named(name: str, options: Options, bench: Bench) -> Source:
    if name == "documents" and not options.docs:
        raise ConfigurationError("the documents source needs a folder", help="Name one with --docs PATH.")
    source = build(name, bench)
    if isinstance(source, Remote) and bench.settings.offline:
        raise ConfigurationError(
            f"{name} cannot be asked: {OFFLINE}", help="Unset offline (ASSAY_OFFLINE), or use --docs."
        )
    if not source.is_available():
        raise ConfigurationError(f"the source {name!r} is not available", help=_missing(source))
    return source


def _missing(source: Source) -> str:
    if isinstance(source, Remote) and source.terms.needs:
        return f"Set {source.terms.needs}, or choose another --source; `assay sources` lists them."
    if isinstance(source, Remote) and source.terms.key:
        return f"Set {source.terms.key.upper()}, or choose another --source; `assay sources` lists them."
    return "Run `assay sources` to see what it needs, or choose another --source."


def _web(depth: Depth, bench: Bench) -> tuple[list[Source], dict[str, str], str]:
    """Providers for what the depth asks for, those that cannot be reached left out; and why there are none."""
    if bench.settings.offline:
        return [], {}, OFFLINE
    wanted = {*TYPES_BY_DEPTH[depth], "code"}
    built = [build(name, bench) for name in available(bench.settings)]
    remote = [source for source in built if isinstance(source, Remote)]
    candidates = preferred([source for source in remote if source.is_available() and wanted & set(source.types)])
    if not candidates:
        return [], {}, NO_PROVIDER
    reached = _reached(candidates)
    lost = [source.name for source, there in zip(candidates, reached, strict=True) if not there]
    found = [source for source, there in zip(candidates, reached, strict=True) if there]
    if not found:
        return [], {}, f"{NO_NETWORK} ({', '.join(lost)})"
    notices = {"reach": f"Not asked, since they could not be reached: {', '.join(lost)}."} if lost else {}
    if not any("web" in source.types for source in found):
        notices["web"] = "The web itself was not searched, only papers, news or code."
    return [source for source in found if isinstance(source, Source)], notices, ""


def preferred(sources: Sequence[Remote]) -> list[Remote]:
    """Those who only stand in for others are asked where there are no others of their type, one site aside."""
    proper = [source for source in sources if not _is(source, "stands_in") and not _is(source, "one_site")]
    served = {kind for source in proper for kind in source.types}
    return [source for source in sources if not _is(source, "stands_in") or not served.issuperset(source.types)]


def _is(source: Remote, trait: str) -> bool:
    """Traits of ApiSource that a plugin need not have."""
    return bool(getattr(source, trait, False))


def _reached(sources: Sequence[Remote]) -> list[bool]:
    """All at once, in threads that nobody waits for any longer than that: a lookup without a network may hang."""
    reached = [False] * len(sources)

    def look(place: int) -> None:
        reached[place] = sources[place].reachable()

    threads = [Thread(target=look, args=(place,), daemon=True) for place in range(len(sources))]
    for thread in threads:
        thread.start()
    until = monotonic() + REACH_SECONDS
    for thread in threads:
        thread.join(max(0.0, until - monotonic()))
    return list(reached)
