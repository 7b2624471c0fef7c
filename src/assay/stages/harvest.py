"""One sub-question's pages: fetched, read and kept. A page that cannot be read is told of and stops nothing."""

import asyncio
import re
from datetime import date

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.errors import BudgetError
from assay.model.source import Document
from assay.model.spend import Fee
from assay.ports import Page
from assay.state import Plain, State, Task

_NAMES = re.compile(r"//[^/?#]*@")  # a name and a password before the host are nobody's business


async def harvest(task: Task, runtime: Runtime[Deps]) -> State:
    deps = runtime.context
    found = await asyncio.gather(*(_read(page, task, deps) for page in task["pages"]))
    return {"harvested": dict(zip((page["key"] for page in task["pages"]), found, strict=True))}


async def _read(wanted: Plain, task: Task, deps: Deps) -> Plain:
    page, question = await _bought(wanted, task, deps), task["question"]["id"]
    if page.document is None:
        await deps.emit(
            "skip",
            "harvest",
            path=_NAMES.sub("//", wanted["url"]),
            reason=page.reason,
            question=question,
            cached=page.cached,
            **_latency(page),
        )
        return _outcome(wanted, task, page)
    document = completed(page.document, wanted)
    await deps.documents.put(document)
    await deps.emit(
        "read", "harvest", url=document.url, title=document.title, host=document.host, question=question,
        words=len(document.text.split()), cached=page.cached, document=document.hash, **_latency(page),
    )  # fmt: skip
    return _outcome(wanted, task, page)


def _latency(page: Page) -> dict[str, object]:
    return {"seconds": round(page.seconds, 3)} if page.seconds else {}


def _outcome(wanted: Plain, task: Task, page: Page) -> Plain:
    """`again`: another round, or a larger budget, may have more luck."""
    round, _, _ = task["key"].partition(":")
    document = page.document.hash if page.document else None
    return {
        "address": wanted["url"], "document": document, "reason": page.reason, "cached": page.cached,
        "again": page.again, "round": round,
    }  # fmt: skip


async def _bought(wanted: Plain, task: Task, deps: Deps) -> Page:
    """Every page counts as one request of the run."""
    read: list[Page] = []

    async def request() -> str:
        read.append(await deps.pages.read(wanted["url"], kind=wanted["kind"]))
        return ""

    fee = Fee(step="harvest", task=task["question"]["id"], provider="web", request=wanted["key"])
    try:
        await deps.account.buy(fee, request)
    except BudgetError as error:
        return Page(wanted["url"], reason=error.message, again=True)
    return read[0] if read else await deps.pages.read(wanted["url"], kind=wanted["kind"])


def completed(document: Document, wanted: Plain) -> Document:
    """What a page does not say of itself, its search result may have said."""
    published = date.fromisoformat(wanted["published"]) if wanted["published"] else None
    return document.model_copy(
        update={
            "title": document.title or wanted["title"] or document.url,
            "author": document.author or wanted["author"],
            "published": document.published or published,
        }
    )
