"""Every route of the API with generated input, good and bad, one after the other and linked, by Schemathesis.

A case is one request. What counts as a failure: an answer of 500 or more, one that the OpenAPI document does not
foresee (status, content type, body), a route that lets somebody in without a token, or that takes input it should not.
"""

import os
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
    "response_schema_conformance",
)  # fmt: skip
SECONDS = 15.0  # one request; a stream that has nothing to tell is given up


@dataclass
class Fuzzed:
    cases: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    operations: set[str] = field(default_factory=set)
    failures: dict[str, str] = field(default_factory=dict)  # what is wrong where, with a request that shows it
    errors: list[str] = field(default_factory=list)  # of the tool itself

    @property
    def server_errors(self) -> int:
        return sum(count for status, count in self.statuses.items() if status >= 500)


class Effort(NamedTuple):
    """`examples` generated requests a route; `chains` of linked requests; `coverage`: each limit of each parameter,
    one by one; and when to stop."""

    examples: int
    chains: int
    steps: int = 6
    coverage: bool = True
    seconds: float = 3600.0
    cases: int = 1_000_000
    strangers: bool = False  # every request without its token, too: a server lets them try a few times a minute alone


def fuzz(url: str, token: str, effort: Effort, seed: int = 0) -> Fuzzed:
    import schemathesis
    from schemathesis.engine import from_schema

    checks = (*CHECKS, "ignored_auth") if effort.strangers else CHECKS
    generation = {"max-examples": effort.examples, "no-shrink": True, "mode": "all", "database": "none"}
    given: dict[str, Any] = {
        "seed": seed,
        "headers": {"Authorization": f"Bearer {token}"},
        "request-timeout": SECONDS,
        "max-time": effort.seconds,
        "continue-on-failure": True,
        "workers": 1,
        "generation": generation,
        "checks": {"enabled": False, **{name: {"enabled": True} for name in checks}},
        "phases": {
            "coverage": {"enabled": effort.coverage},
            "stateful": {
                "enabled": True,
                "max-steps": effort.steps,
                "generation": {**generation, "max-examples": effort.chains},
            },
        },
    }
    config = schemathesis.config.SchemathesisConfig.from_dict(given)
    os.environ.setdefault("NO_PROXY", "127.0.0.1")
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json", config=config)
    found = Fuzzed()
    stream = from_schema(schema).execute()
    for event in stream:
        _count(event, found)
        if found.cases >= effort.cases:
            stream.stop()
    return found


def _count(event: Any, found: Fuzzed) -> None:
    from schemathesis.engine import events

    if isinstance(event, events.ScenarioFinished):
        found.operations |= {event.label} if event.label else set()
        _look_into(event.recorder, found)
    elif isinstance(event, events.NonFatalError | events.FatalError):
        told = str(getattr(event, "value", None) or getattr(event, "exception", event))[:500]
        if "example_generating_inner_function" not in told:  # the generator's own deadline, on a busy machine
            found.errors.append(told)


def _look_into(recorder: Any, found: Fuzzed) -> None:
    for interaction in recorder.interactions.values():
        found.cases += 1
        if interaction.response is not None:
            found.statuses[interaction.response.status_code] += 1
    for case, checks in recorder.checks.items():
        for check in checks:
            if check.failure_info is not None:
                failure = check.failure_info.count_failure
                shown = recorder.cases[case].value
                place = f"{check.name}: {shown.operation.label}: {failure.title}"
                found.failures.setdefault(place, f"{failure.message[:300]}\n{shown.as_curl_command()[:600]}")
