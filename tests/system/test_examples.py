"""The example conversations are had again, the README shows pieces of them, and the Python of the docs runs."""

import re
import subprocess
import sys
from difflib import SequenceMatcher
from pathlib import Path

import pytest

from tests.conversations import EXAMPLES, Example, page, recorded, transcript
from tests.system.command import Command, environment

ROOT = Path(__file__).resolve().parents[2]
LIKENESS = 0.8  # of the lines; processors differ in the last digit of a score, and that may exchange two statements
SAID = ("$ ", "you> ", "(exit code ", "openassay: ")


def settled(text: str) -> list[str]:
    """What was said, how each command ended, and the first line of each reply: the question as it was understood."""
    lines = [line for line in text.splitlines() if line.strip()]
    after = {at + 1 for at, line in enumerate(lines) if line.startswith(SAID[:2])}
    return [line for at, line in enumerate(lines) if at in after or line.startswith(SAID)]


@pytest.mark.slow
@pytest.mark.requirement("C-17")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_a_conversation_goes_as_it_was_recorded(example: Example) -> None:
    shown, again = recorded(example), transcript(example)

    assert settled(again) == settled(shown), "tests/conversations.py writes it anew"
    alike = SequenceMatcher(None, shown.splitlines(), again.splitlines(), autojunk=False).ratio()
    assert alike >= LIKENESS, f"{alike:.2f}\n{again}"


@pytest.mark.requirement("C-17")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_a_page_is_what_the_recorder_writes(example: Example) -> None:
    text = (ROOT / "docs/examples" / f"{example.name}.md").read_text(encoding="utf-8")

    assert text == page(example, recorded(example))
    commands = [line[2:] for line in recorded(example).splitlines() if line.startswith("$ ")]
    assert commands == [step.command for step in example.steps]


@pytest.mark.requirement("C-17")
def test_the_readme_shows_two_conversations_as_they_were_recorded() -> None:
    """Lines may be left out, which `...` tells; none is made up, and they stand in their order."""
    pages = [recorded(example).splitlines() for example in EXAMPLES]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = [block for block in re.findall(r"```text\n(.*?)```", readme, re.DOTALL) if "you> " in block]

    assert len(blocks) >= 2
    for block in blocks:
        lines = [line for line in block.splitlines() if line.strip() not in ("", "...")]
        assert any(stands_in(lines, page) for page in pages), block


def stands_in(lines: list[str], page: list[str]) -> bool:
    rest = iter(page)
    return all(line in rest for line in lines)


@pytest.mark.requirement("C-17")
def test_the_readme_says_how_to_run_it_and_what_is_assumed() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    assert re.search(r"^make demo\b", text, re.MULTILINE)
    assert re.search(r"^make test\b", text, re.MULTILINE)
    assert re.search(r"^## Assumptions$", text, re.MULTILINE)


@pytest.mark.slow
def test_the_python_of_the_docs_runs_from_top_to_bottom(openassay: Command) -> None:
    """But for what needs a server."""
    (openassay.folder / "examples").symlink_to(ROOT / "examples")
    text = "".join(
        (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("quickstart.md", "reference/python.md")
    )
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    code = "\n".join(block for block in blocks if "Client(" not in block)
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=openassay.folder,
        env=environment(openassay.data),
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout
