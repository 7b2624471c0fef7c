"""Writes the conversations of docs/examples: `.venv/bin/python tests/conversations.py [NAME...]`.

What stands in the pages is what the installed command told, word for word: offline, on a data directory of its own,
with the embedded reasoner. Only the thread's id, which is drawn by lot, is written as THREAD.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "examples"
OPENASSAY = Path(sys.executable).with_name("openassay")
SEPARATOR = "/budget"  # told on stderr, once all before it was told on stdout
SEPARATED = "spent in this conversation"
WIDTH = "100"
FOOT = """\
*Recorded by [conversations.py](../../tests/conversations.py), word for word. THREAD stands for the id of the thread; of
a chat the progress on stderr, which a terminal shows meanwhile, is left out. A test has it again and compares.*
"""


@dataclass(frozen=True)
class Step:
    """A command, and what is typed while it runs. THREAD in it is the thread of the example."""

    command: str
    typed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Example:
    name: str
    title: str
    about: str
    steps: tuple[Step, ...]


EXAMPLES = (
    Example(
        "apple",
        "A follow-up, and what an answer rests on",
        "Without documents and without a network the built-in demo data on five companies are asked, and sources are "
        "called so. “Their” in the second question is understood from the first. A slash opens what is behind an "
        "answer; calling it off costs nothing.",
        (
            Step(
                "openassay chat", ("What's happening with Apple?", "What about their stock?", "/source 1", "Never mind")
            ),
        ),
    ),
    Example(
        "hubble",
        "Your own documents, which do not agree",
        "The question goes to the folder `examples/library`; nothing leaves the machine. Figures that differ are told "
        "side by side and asserted nowhere else; `/claim` shows a statement's passage where it stands in the document.",
        (
            Step(
                "openassay chat --docs examples/library",
                ("Why do measurements of the Hubble constant disagree?", "Is crowding the reason?", "/claim C2"),
            ),
        ),
    ),
    Example(
        "plan",
        "Plan mode: questions first",
        "At a terminal the questions come one after the other. Here a script answers them, one command each; exit "
        "code 3 says that one is open. The answers become part of the plan; `auto` leaves the rest to defaults.",
        (
            Step('openassay research "How did Apple change?" --mode plan --depth quick'),
            Step("openassay review answer THREAD 1"),
            Step('openassay review answer THREAD "The last three years"'),
            Step("openassay threads mode THREAD auto"),
        ),
    ),
)


def transcript(example: Example) -> str:
    """The example as a person sees it on a terminal."""
    with tempfile.TemporaryDirectory(prefix="openassay-example-") as name:
        folder, thread, shown = Path(name), "", []
        for step in example.steps:
            words = _words(step.command.replace("THREAD", thread))
            shown += [f"$ {step.command}", *(_talked(words, step.typed, folder) if step.typed else _ran(words, folder))]
            thread = thread or _thread("\n".join(shown))
    lines = [line.rstrip() for part in shown for line in part.replace(thread, "THREAD").splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


def _ran(words: list[str], folder: Path) -> list[str]:
    """Everything a command told, in order."""
    ran = subprocess.run(
        words, cwd=ROOT, env=_environment(folder), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    return [ran.stdout, f"(exit code {ran.returncode})"] if ran.returncode else [ran.stdout]


def _talked(words: list[str], typed: tuple[str, ...], folder: Path) -> list[str]:
    """What was typed, each line with what was told to it; progress, which a terminal shows meanwhile, is left out."""
    told, replies = folder / "told", []
    with told.open("w", encoding="utf-8") as out, subprocess.Popen(
        words, cwd=ROOT, env=_environment(folder), stdin=subprocess.PIPE, stdout=out, stderr=subprocess.PIPE, text=True
    ) as chat:  # fmt: skip
        for line in typed:
            before = len(told.read_text(encoding="utf-8"))
            _say(chat, line)
            replies += [f"\nyou> {line}", told.read_text(encoding="utf-8")[before:]]
        chat.communicate()
    return replies


def _say(chat: "subprocess.Popen[str]", line: str) -> None:
    """And wait until it was answered."""
    if chat.stdin is None or chat.stderr is None:
        raise TypeError("the conversation needs pipes")
    chat.stdin.write(f"{line}\n{SEPARATOR}\n")
    chat.stdin.flush()
    while told := chat.stderr.readline():
        if SEPARATED in told:
            return
    raise RuntimeError(f"the conversation ended at {line!r}")


def _words(command: str) -> list[str]:
    _, *words = shlex.split(command)
    return [str(OPENASSAY), *words]


def _environment(folder: Path) -> dict[str, str]:
    """A stranger's: no setting and no key of whoever records this, and no network."""
    own = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "SYSTEMROOT")}
    config = folder / "config.yaml"
    config.touch()
    return {
        **own, "OPENASSAY_DATA_DIR": str(folder / "data"), "OPENASSAY_CONFIG": str(config), "OPENASSAY_OFFLINE": "true",
        "COLUMNS": WIDTH, "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1",
    }  # fmt: skip


def _thread(told: str) -> str:
    found = re.search(r"\b(?:thread|resume) ([0-9a-f]{12})\b", told)
    if found is None:
        raise RuntimeError(f"no thread is named in {told!r}")
    return found[1]


def page(example: Example, text: str) -> str:
    return f"# {example.title}\n\n{textwrap.fill(example.about, 130)}\n\n```text\n{text}\n```\n\n{FOOT}"


def recorded(example: Example) -> str:
    """The transcript that the page shows."""
    return (FOLDER / f"{example.name}.md").read_text(encoding="utf-8").split("```text\n")[1].split("\n```")[0]


def main(names: list[str]) -> None:
    for example in EXAMPLES:
        if not names or example.name in names:
            (FOLDER / f"{example.name}.md").write_text(page(example, transcript(example)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
