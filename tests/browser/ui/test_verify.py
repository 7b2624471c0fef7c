"""A person checks a report: statement by statement, and passage by passage."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.ui.accessibility import violations
from tests.browser.ui.conftest import Opened, shot
from tests.browser.ui.site import Site

FERRY = "The ferry Aurora carried 48,210 passengers to Lake Marrow in 2023."
FILLER = "The harbour of Lake Marrow keeps its boats in good order, and says so in many words. " * 30
# Characters that are two to JavaScript stand before the passage, and one within the document's first lines.
TEXT = f"""# 🚢 Lake Marrow ferry 🚢🌊

𝔐arch 2024. {FERRY} The ferry Aurora has 12 crew members on Lake Marrow.

{FILLER}

The ferry Aurora burned 310 tonnes of fuel on Lake Marrow in 2023. 🌊 The ferry Aurora cost 4.2 million euros.
"""


@pytest.fixture(scope="module")
def ferry(site: Site, tmp_path_factory: pytest.TempPathFactory) -> str:
    file: Path = tmp_path_factory.mktemp("ferry") / "ferry.md"
    file.write_text(TEXT)
    return site.research(
        "How many passengers did the ferry Aurora carry to Lake Marrow in 2023, and how much fuel did it burn?",
        documents=site.upload(file), depth="quick",
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.requirement("X-01", "W-11")
def test_a_passage_is_highlighted_where_it_stands_whatever_characters_come_before(
    look: Opened, site: Site, ferry: str
) -> None:
    page = look(site, f"/t/{ferry}")
    page.locator(".statement").filter(has_text=FERRY).first.click()
    page.get_by_role("button", name="Open passage").first.click()
    passage = page.get_by_role("dialog", name="Passage in its source")
    expect(passage.locator("mark")).to_have_text(FERRY)
    expect(passage.locator("mark")).to_be_in_viewport()
    expect(passage.get_by_text("word for word in the snapshot")).to_be_visible()
    shown = passage.locator(".excerpt").inner_text()
    passage.get_by_role("button", name="More after").click()
    expect(passage.locator(".excerpt")).not_to_have_text(shown)
    expect(passage.locator("mark")).to_have_text(FERRY)
    assert len(passage.locator(".excerpt").inner_text()) > len(shown) + 1_000
    assert violations(page) == []
    shot(page, "passage-light-1440")
    passage.get_by_role("button", name="Next passage").click()
    expect(passage.locator("mark")).not_to_have_text(FERRY)
    expect(passage.get_by_text("word for word in the snapshot")).to_be_visible()
    page.keyboard.press("Escape")
    expect(passage).to_have_count(0)


@pytest.mark.slow
@pytest.mark.requirement("W-11", "X-02")
def test_all_statements_are_walked_through_the_weakest_first_and_judged(look: Opened, site: Site, ferry: str) -> None:
    page = look(site, f"/t/{ferry}?panel=log", dark=True)
    page.get_by_role("button", name="Verify").click()
    walk = page.get_by_role("region", name="Verify the statements")
    expect(page.get_by_role("tab", name="Sources")).to_have_attribute("aria-selected", "true")
    first = weakest_first(site, ferry)[0]
    expect(walk.locator(".said")).to_contain_text(first)
    expect(walk.locator("mark").first).to_contain_text("ferry Aurora")
    total = int(walk.get_by_text("weakest first").inner_text().split()[2].strip(","))
    assert total == len(weakest_first(site, ferry))
    expect(page.locator(".statement[data-lit]")).to_be_in_viewport()
    shot(page, "verify-dark-1440")
    assert violations(page) == []
    page.keyboard.press("ArrowRight")
    expect(walk.get_by_text(f"2 of {total}")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    walk.get_by_role("button", name="Doubtful").click()  # and goes on to the next
    walk.get_by_role("button", name="Looks right").click()
    expect(walk.get_by_text(f"2 of {total} looked at, 1 doubtful")).to_be_visible()
    page.keyboard.press("Escape")
    expect(walk).to_have_count(0)
    expect(page.get_by_role("button", name="Verify")).to_be_focused()
    expect(page.locator(".statement").filter(has_text="marked as doubtful").first).to_contain_text(first)
    page.reload()
    expect(page.get_by_text(f"2 of {total} looked at, 1 doubtful")).to_be_visible()


@pytest.mark.slow
def test_on_a_phone_the_marked_words_of_a_passage_are_in_sight(look: Opened, site: Site, ferry: str) -> None:
    page = look(site, f"/t/{ferry}", width=360)
    page.get_by_role("button", name="Verify").click()
    walk = page.get_by_role("region", name="Verify the statements")
    seen = walk.locator(".seen")
    expect(seen.locator("mark").first).to_be_visible()
    mark, box = seen.locator("mark").first.bounding_box(), seen.bounding_box()
    assert mark is not None
    assert box is not None
    assert box["y"] <= mark["y"] <= mark["y"] + mark["height"] <= box["y"] + box["height"]
    shot(page, "verify-light-360")


def weakest_first(site: Site, thread: str) -> list[str]:
    """The texts, each once, as the walk must have them."""
    report = site.call("GET", f"/api/threads/{thread}/report")
    sure = {claim["id"]: claim["confidence"] for claim in report["claims"]}
    facts = [*report["answers"], *(one for part in report["sections"] for one in part["sentences"] if one["claims"])]
    once = {(tuple(one["claims"]), one["text"]): one for one in facts}
    rank = ["⚠", "✓", "✓✓"]
    ordered = sorted(once.values(), key=lambda one: (rank.index(one["mark"]), min(sure[id] for id in one["claims"])))
    return [str(one["text"]) for one in ordered]
