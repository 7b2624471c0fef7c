"""Whatever others have written, in a real browser: no script of theirs runs, and nothing leaves the origin (the fixture
`look` fails a test on a dialog, a script error, a message of the policy, or a request to elsewhere)."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.ui.conftest import Opened
from tests.browser.ui.screens import PANES, walked
from tests.browser.ui.site import Site

# What the API tells of others' words, or of people's; names and enumerations stay, or nothing would be shown at all.
WRITTEN = {
    "text", "title", "quote", "url", "host", "author", "whyUsed", "why_used", "about", "resolution", "question",
    "reason", "description", "location", "fix", "what", "value", "when", "message", "help", "snippet", "summary",
    "changed", "moment", "path", "query", "goal", "deliverable", "section", "content", "published", "error", "party",
}  # fmt: skip
ALIVE = "#app :is(img, iframe, object, embed, form[action], a[href^=javascript], [onerror], [onload])"
LISTED = {"queries", "notices", "errors", "credibilityReasons", "reasons", "constraints", "sub_questions", "issues"}


@pytest.fixture(scope="module")
def payloads(eval_data: Path) -> list[str]:
    scripts = (eval_data / "hostile" / "xss.txt").read_text("utf-8", "replace").splitlines()
    naughty = json.loads((eval_data / "hostile" / "naughty-strings.json").read_text("utf-8"))
    markdown = [
        "[a](javascript:alert(1))",
        "![x](https://evil.example/x.png)",
        "<https://evil.example>",
        "# *a* _b_ `c`",
    ]
    return [line for line in (*markdown, *scripts, *naughty) if line.strip()]


def poisoned(value: Any, words: Iterator[str], key: str = "") -> Any:
    """Every text that somebody else may have written is a payload."""
    if isinstance(value, dict):
        return {name: poisoned(held, words, name) for name, held in value.items()}
    if isinstance(value, list):
        return [next(words) if key in LISTED and isinstance(one, str) else poisoned(one, words, key) for one in value]
    return next(words) if key in WRITTEN and isinstance(value, str) and value else value


def poison(page: Page, words: Iterator[str]) -> None:
    def answer(route: Route) -> None:
        response = route.fetch()
        kind = response.headers.get("content-type", "")
        if "event-stream" in kind:
            route.fulfill(response=response, body="\n".join(map(line, response.text().split("\n"))))
        elif "json" in kind:
            route.fulfill(response=response, json=poisoned(response.json(), words))
        else:
            route.fulfill(response=response)

    def line(text: str) -> str:
        return f"data: {json.dumps(poisoned(json.loads(text[6:]), words))}" if text.startswith("data: ") else text

    page.route("**/api/**", answer)


@pytest.mark.slow
@pytest.mark.requirement("W-11")
@pytest.mark.parametrize("width", [1440, 360])
def test_whatever_the_server_tells_is_text_on_every_screen(
    look: Opened, site: Site, finished: str, payloads: list[str], width: int
) -> None:
    page = look(site, width=width)
    words = itertools.cycle(payloads)
    poison(page, words)
    for _ in range(2):  # other payloads in other places
        page.goto(f"{site.url}/t/{finished}")
        for name in walked(page):
            assert (
                page.locator("#app img, #app iframe, #app object, #app form[action], #app a[href^=javascript]").count()
                == 0
            ), name
        assert is_narrow_enough(page)


@pytest.mark.slow
def test_a_question_and_a_file_name_full_of_markup_are_shown_as_they_stand(
    look: Opened, site: Site, tmp_path: Path
) -> None:
    file = tmp_path / "hubble <img src=x onerror=alert(1)>.md"
    file.write_text("The Planck satellite measured a Hubble constant of 67.4 km/s/Mpc in 2018.", encoding="utf-8")
    question = "What did the Planck satellite measure <img src=x onerror=alert(2)>?"
    thread = site.research(question, documents=site.upload(file))
    page = look(site, f"/t/{thread}")
    expect(page.locator("h1")).to_have_text(question)
    expect(page.locator(".pane")).to_contain_text("onerror=alert(1)")
    assert page.locator(ALIVE).count() == 0


def is_narrow_enough(page: Page) -> bool:
    """Nobody has to scroll sideways."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth + 1"))


@pytest.mark.slow
def test_very_long_words_and_right_to_left_text_stay_in_their_place(look: Opened, site: Site, finished: str) -> None:
    words = itertools.cycle(["A" * 3_000, "مرحبا بالعالم " * 20, "\u202eright to left", "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢" * 10])
    page = look(site, width=360)
    poison(page, words)
    page.goto(f"{site.url}/t/{finished}")
    seen = set()
    for name in walked(page):
        assert is_narrow_enough(page), name
        seen.add(name)
    assert set(PANES) <= seen
