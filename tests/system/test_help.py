"""What a person sees before anything is researched."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, get_args

import pytest

from openassay.cli.app import COMMANDS, load_command
from openassay.cli.options import DepthName, ModeName, StyleName
from openassay.models.plan import Depth, Mode
from openassay.settings import Settings
from tests.system.command import Command

EXPLAINED = {
    ("research",): "--docs",
    ("ask",): "--docs",
    ("chat",): "--thread",
    ("resume",): "THREAD",
    ("doctor",): "--json",
    ("verify",): "--open",
    ("threads",): "delete",
    ("threads", "show"): "--json",
    ("threads", "log"): "THREAD",
    ("threads", "passage"): "CLAIM",
    ("sources", "document"): "HASH",
    ("admin", "graph"): "Mermaid",
    ("admin", "users"): "revoke",
}


@pytest.mark.requirement("L-01")
def test_help_is_there_at_once(office: Command) -> None:
    """In seconds of CPU, which a busy machine does not take for itself."""
    office("--help", installed=True)
    seconds = []
    for _ in range(3):
        before = os.times()
        shown = office("--help", installed=True)
        after = os.times()
        seconds.append(after.children_user + after.children_system - before.children_user - before.children_system)
        assert shown.code == 0
    assert min(seconds) < 0.4, "measured 0.12 s; see python -X importtime -m openassay --help"


@pytest.mark.requirement("L-01")
def test_help_fits_on_a_screen(office: Command) -> None:
    shown = office("--help", env={"COLUMNS": "80"}).out
    commands = shown.partition("Commands:\n")[2].partition("\n\n")[0]
    assert [line.split()[0] for line in commands.splitlines()] == list(COMMANDS)
    assert len(COMMANDS) <= 14
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert "..." not in commands
    assert office("-h", env={"COLUMNS": "80"}).out == shown


def every_command(group: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    for word, command in group.items():
        yield f"{name}{word}", command
        yield from every_command(getattr(command, "commands", {}), f"{name}{word} ")


def test_every_json_option_says_what_is_printed() -> None:
    printed = {
        name: option.help
        for name, command in every_command({name: load_command(name) for name in COMMANDS})
        for option in command.params
        if option.name == "json"
    }
    assert len(printed) > 25
    assert [name for name, text in printed.items() if not re.fullmatch(r"Print .+ as JSON\.", text)] == []


@pytest.mark.slow
def test_commands_are_imported_when_they_are_called() -> None:
    """Help of a group, and completion, do without the engine."""
    modules = [f"openassay.cli.{path.partition(':')[0]}" for path, _ in COMMANDS.values()]
    heavy = {"langgraph", "openassay.bootstrap", "openassay.engine.engine", "openassay.server.app"}
    program = f"import sys, {', '.join(modules)}; print([*{heavy}.intersection(sys.modules)])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.slow
@pytest.mark.parametrize("command", EXPLAINED, ids=" ".join)
def test_every_command_explains_itself(office: Command, command: tuple[str, ...]) -> None:
    shown = office(*command, "--help")
    assert shown.code == 0
    assert EXPLAINED[command] in shown.out
    assert shown.stderr == b""


def test_the_version_is_the_installed_one(office: Command) -> None:
    from importlib.metadata import version

    assert office("--version").out == f"openassay {version('openassay')}\n"


def test_without_a_command_there_is_help_and_exit_2(office: Command) -> None:
    shown = office()
    assert shown.code == 2
    assert "research" in shown.out + shown.err


def test_the_choices_written_out_for_speed_are_those_of_the_model() -> None:
    assert get_args(DepthName) == tuple(Depth)
    assert get_args(ModeName) == tuple(Mode)
    assert get_args(StyleName) == get_args(Settings.model_fields["style_guide"].annotation)
