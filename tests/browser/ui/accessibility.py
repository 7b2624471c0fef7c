"""What of WCAG 2.2 AA a program can see: axe-core, on the page as it is."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "resultTypes": ["violations"],  # all that is good would have to be sent too: 5.9 s a page instead of 1.3
}


def violations(page: Page) -> list[str]:
    """One line for each: the rule, and the first elements that break it."""
    found = Axe().run(page, options=RULES).response["violations"]
    return [f"{one['id']}: {one['help']}: {[node['html'][:160] for node in one['nodes'][:4]]}" for one in found]
