"""Every request there is, described once: how it is sent, and what its answer becomes."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx2

from assay.client.answers import Page, Started
from assay.client.wire import Call
from assay.export.report import Report

Plain = dict[str, Any]


def _plain(answer: httpx2.Response) -> Plain:
    found: Plain = answer.json()
    return found


def _nothing(answer: httpx2.Response) -> None:
    return None


def _started(answer: httpx2.Response) -> Started:
    return Started.model_validate_json(answer.content)


def _report(answer: httpx2.Response) -> Report:
    return Report.model_validate_json(answer.content)


def _page(name: str) -> Callable[[httpx2.Response], Page]:
    def read(answer: httpx2.Response) -> Page:
        found = answer.json()
        return Page(found[name], found.get("nextCursor"))

    return read


def _listed(name: str) -> Callable[[httpx2.Response], list[Plain]]:
    def read(answer: httpx2.Response) -> list[Plain]:
        found: list[Plain] = answer.json()[name]
        return found

    return read


def _once() -> dict[str, str]:
    """So that a request whose answer was lost can be sent again."""
    return {"Idempotency-Key": uuid4().hex}


def _get(path: str, **params: Any) -> Call[Plain]:
    return Call(method="GET", path=path, read=_plain, params=params)


def _delete(path: str) -> Call[None]:
    return Call(method="DELETE", path=path, read=_nothing)


def _send(method: str, path: str, body: Any, *, once: bool = False) -> Call[Plain]:
    return Call(method=method, path=path, read=_plain, json=body, headers=_once() if once else {})


def _given(**values: Any) -> Plain:
    return {name: value for name, value in values.items() if value is not None}


def _of(thread: str, *rest: str) -> str:
    return "/".join(["/api/threads", *(quote(part, safe="") for part in (thread, *rest))])


# Runs ----------------------------------------------------------------------------------------------------


def start(goal: str, mode: str | None, thread: str | None, interactive: bool, options: Plain) -> Call[Started]:
    body = _given(goal=goal, modeOverride=mode, threadId=thread, interactive=interactive, **options)
    return Call(method="POST", path="/api/threads/start", read=_started, json=body, headers=_once())


def quoted(goal: str, options: Plain) -> Call[Plain]:
    return _send("POST", "/api/quote", {"goal": goal, **options})


def resume(thread: str, interrupt: str | None, value: Any) -> Call[Plain]:
    body = {} if interrupt is None else {"interruptId": interrupt, "value": value}
    return _send("POST", _of(thread, "resume"), body, once=True)


def cancel(thread: str, drain: bool) -> Call[Plain]:
    return _send("POST", _of(thread, "cancel"), {"drain": drain})


def set_mode(thread: str, mode: str) -> Call[Plain]:
    return _send("PATCH", _of(thread, "mode"), {"mode": mode})


# Threads -------------------------------------------------------------------------------------------------


def threads(limit: int, cursor: str | None, status: str | None, q: str | None) -> Call[Page]:
    params = {"limit": limit, "cursor": cursor, "status": status, "q": q}
    return Call(method="GET", path="/api/threads", read=_page("threads"), params=params)


def thread(id: str) -> Call[Plain]:
    return _get(_of(id))


def rename(id: str, title: str) -> Call[Plain]:
    return _send("PATCH", _of(id), {"title": title})


def delete(id: str) -> Call[None]:
    return _delete(_of(id))


def runs(thread: str) -> Call[list[Plain]]:
    return Call(method="GET", path=_of(thread, "runs"), read=_listed("runs"))


def state(thread: str, checkpoint: str | None) -> Call[Plain]:
    return _get(_of(thread, "state"), checkpoint=checkpoint)


def report(thread: str, run: str | None) -> Call[Report]:
    return Call(method="GET", path=_of(thread, "report"), read=_report, params={"run": run})


def timings(thread: str, run: str | None) -> Call[Plain]:
    return _get(_of(thread, "timings"), run=run)


# Time travel ---------------------------------------------------------------------------------------------


def history(thread: str) -> Call[list[Plain]]:
    return Call(method="GET", path=_of(thread, "history"), read=_listed("moments"))


def branches(thread: str) -> Call[Plain]:
    return _get(_of(thread, "branches"))


def fork(thread: str, checkpoint: str | None, changes: Plain) -> Call[Started]:
    body = _given(checkpoint=checkpoint, changes=changes)
    return Call(method="POST", path=_of(thread, "fork"), read=_started, json=body, headers=_once())


def diff(a: str, b: str) -> Call[Plain]:
    return _get("/api/diff", a=a, b=b)


# Questions and sources -----------------------------------------------------------------------------------


def reviews(thread: str | None) -> Call[list[Plain]]:
    path = _of(thread, "reviews") if thread else "/api/reviews"
    return Call(method="GET", path=path, read=_listed("reviews"))


def answer(review: str, value: Any) -> Call[Plain]:
    return _send("POST", f"/api/reviews/{quote(review, safe='')}/answer", {"value": value})


def sources(thread: str, run: str | None) -> Call[list[Plain]]:
    return Call(method="GET", path=_of(thread, "sources"), read=_listed("sources"), params={"run": run})


def pin(thread: str, source: str, *, pinned: bool) -> Call[None]:
    method = "PUT" if pinned else "DELETE"
    return Call(method=method, path=_of(thread, "sources", source, "pin"), read=_nothing)


def veto(thread: str, source: str) -> Call[Started]:
    return Call(method="POST", path=_of(thread, "sources", source, "veto"), read=_started, json={})


# What is kept --------------------------------------------------------------------------------------------


def artifacts(thread: str) -> Call[list[Plain]]:
    return Call(method="GET", path=_of(thread, "artifacts"), read=_listed("artifacts"))


def artifact(thread: str, name: str, version: int | None) -> Call[Plain]:
    return _get(_of(thread, "artifacts", name), version=version)


def export(thread: str, format: str) -> Call[bytes]:
    return Call(method="GET", path=_of(thread, "export"), read=lambda answer: answer.content, params={"format": format})


def upload(paths: Sequence[Path]) -> Call[list[Plain]]:
    files = [("files", (path.name, path.read_bytes())) for path in paths]
    return Call(method="POST", path="/api/documents", read=_listed("documents"), files=files)


def documents(limit: int, cursor: str | None) -> Call[Page]:
    params = {"limit": limit, "cursor": cursor}
    return Call(method="GET", path="/api/documents", read=_page("documents"), params=params)


def delete_document(id: str) -> Call[None]:
    return _delete(f"/api/documents/{quote(id, safe='')}")


def memory() -> Call[Plain]:
    return _get("/api/memory")


def remember(text: str) -> Call[Plain]:
    return _send("POST", "/api/memory/facts", {"text": text})


def forget(fact: str) -> Call[None]:
    return _delete(f"/api/memory/facts/{quote(fact, safe='')}")


def share(thread: str, days: float | None) -> Call[Plain]:
    return _send("POST", _of(thread, "shares"), _given(days=days))


def unshare(thread: str, share: str) -> Call[None]:
    return _delete(_of(thread, "shares", share))


def account() -> Call[Plain]:
    return _get("/api/account")
