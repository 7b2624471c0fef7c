"""One thing done on an engine that is open for it alone."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from assay.bootstrap import open_engine
from assay.engine import Engine
from assay.settings import load

T = TypeVar("T")


def with_engine(work: Callable[[Engine], Awaitable[T]]) -> T:
    async def run() -> T:
        async with open_engine(load()) as engine:
            return await work(engine)

    return asyncio.run(run())
