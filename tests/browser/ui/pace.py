"""How much work something gives the page: what its thread computes, which other programs on the machine do not slow."""

from playwright.sync_api import Page

# Sorts what takes a machine with nothing else to do about 100 ms, the time in which a person should be answered
# (benchmarks/bench_ui.py measures that). What a page computes is held against it, in the same browser and the same run.
_YARDSTICK = """() => {
  let seed = 1
  const words = Array.from({length: 120000}, () => String((seed = (seed * 48271) % 2147483647)))
  words.sort()
}"""
_TIMES = 6  # how much longer than the yardstick something may take before it is called slow
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

    @property
    def limit(self) -> float:
        """Milliseconds that an answer to a person may take in this browser, now."""
        return _TIMES * min(self.measure(_YARDSTICK) for _ in range(3))
