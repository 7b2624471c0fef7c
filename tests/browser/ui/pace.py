"""How much work something gives the page: what its thread computes, which other programs on the machine do not slow."""

from playwright.sync_api import Page

# A person is answered within 100 ms on a machine that has nothing else to do (benchmarks/bench_ui.py measures it); one
# that runs other tests beside computes up to three times as long.
QUICK = 400.0  # ms
_DRAWN = "() => new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)))"


class Pace:
    def __init__(self, page: Page) -> None:
        self._page = page
        self._session = page.context.new_cdp_session(page)
        self._session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def measure(self, script: str) -> float:
        """Milliseconds until it is done and drawn."""
        before = self._worked()
        self._page.evaluate(script)
        self._page.evaluate(_DRAWN)
        return (self._worked() - before) * 1000

    def _worked(self) -> float:
        metrics = self._session.send("Performance.getMetrics")["metrics"]
        return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))
