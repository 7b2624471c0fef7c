"""What a person sees before anything is researched."""

import os
from typing import get_args

import pytest

from openassay.cli.options import DepthName, ModeName, StyleName
from openassay.models.plan import Depth, Mode
from openassay.settings import Settings
from tests.system.command import Command

COMMANDS = {
    ("research",): "--docs", ("ask",): "--docs", ("chat",): "--thread", ("resume",): "THREAD", ("graph",): "Mermaid",
    ("doctor",): "--json", ("document",): "HASH", ("passage",): "CLAIM", ("threads",): "delete",
    ("threads", "show"): "--json", ("threads", "log"): "THREAD", ("threads", "delete"): "THREAD",
}  # fmt: skip


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
def test_help_names_every_command(office: Command) -> None:
    shown = office("--help").out
    assert all(command[0] in shown for command in COMMANDS)
    assert office("-h").out == shown


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_explains_itself(office: Command, command: tuple[str, ...]) -> None:
    shown = office(*command, "--help")
    assert shown.code == 0
    assert COMMANDS[command] in shown.out
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
