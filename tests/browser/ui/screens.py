"""A walk through everything a thread shows, for tests that look at all of it. It goes by what stays the same whatever
the words are: places and buttons."""

from collections.abc import Iterator

from playwright.sync_api import Page, expect

PANES = ("sources", "artifacts", "pictures", "timeline", "log")


def walked(page: Page) -> Iterator[str]:
    """The name of each screen, while it is shown."""
    _turn(page, "answer")
    expect(page.locator(".statement").first).to_be_visible()
    yield "answer"
    yield from _statement(page)
    yield from _verify(page)
    for pane in PANES:
        _turn(page, pane)
        yield pane
        yield from _INSIDE[pane](page)


def _turn(page: Page, pane: str) -> None:
    tab = page.locator(f"#tab-{pane}")
    if tab.is_visible():
        tab.click()
        expect(tab).to_have_attribute("aria-selected", "true")
    expect(page.locator(".busy")).to_have_count(0)


def _dialog(page: Page, name: str) -> Iterator[str]:
    """Open, and closed again."""
    expect(page.locator("dialog[open]")).to_be_visible()
    expect(page.locator("dialog[open] .busy")).to_have_count(0)
    yield name
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)


def _statement(page: Page) -> Iterator[str]:
    page.locator(".statement").nth(2).focus()
    page.keyboard.press("Enter")
    expect(page.locator(".proof")).to_be_visible()
    yield "statement"
    page.locator(".proof").get_by_role("button", name="Open passage").first.click()
    expect(page.locator("dialog[open] mark").first).to_be_attached()
    yield from _dialog(page, "passage")
    page.keyboard.press("Escape")


def _verify(page: Page) -> Iterator[str]:
    page.locator(".verify-button").click()
    expect(page.locator(".verify")).to_be_visible()
    page.get_by_role("button", name="Doubtful").click()
    yield "verify"
    page.locator(".verify").get_by_role("button", name="Close").click()


def _sources(page: Page) -> Iterator[str]:
    page.locator(".pane summary").first.click()
    yield "sources-filters"
    page.locator(".pane").get_by_role("button", name="Veto").first.click()
    yield from _dialog(page, "veto")


def _artifacts(page: Page) -> Iterator[str]:
    page.locator(".pane li button, .pane li a").first.click()
    expect(page.locator(".busy")).to_have_count(0)
    yield "artifact"


def _pictures(page: Page) -> Iterator[str]:
    tabs = page.locator(".pane [role=radio], .pane [role=tab]")
    for at in range(tabs.count()):
        tabs.nth(at).click()
        expect(page.locator(".busy")).to_have_count(0)
        yield f"picture-{at + 1}"


def _timeline(page: Page) -> Iterator[str]:
    slider = page.locator(".pane input[type=range]")
    slider.focus()
    slider.press("ArrowLeft")
    expect(page.get_by_text("are shown as they were at this moment")).to_be_visible()
    yield "moment"
    page.locator(".pane").get_by_role("button", name="Fork from here").click()
    yield from _dialog(page, "fork")
    page.locator(".pane").get_by_role("button", name="Back to now").first.click()


def _log(page: Page) -> Iterator[str]:
    page.locator(".pane").get_by_role("button", expanded=False).last.click()
    yield "log-entry"


_INSIDE = {"sources": _sources, "artifacts": _artifacts, "pictures": _pictures, "timeline": _timeline, "log": _log}
