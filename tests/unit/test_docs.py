"""The reference is held against the code: what is not documented, or documented and gone, fails."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import typer
from pydantic import BaseModel

from assay.cli.app import app
from assay.cli.chat_commands import COMMANDS
from assay.model.event import EventKind
from assay.model.report import ReportData
from assay.settings import Keys, Settings

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs/reference"


def table(name: str) -> dict[str, list[str]]:
    """First cell (without its backticks) -> the other cells, for every table row of a page."""
    rows = {}
    for line in (REFERENCE / name).read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if line.startswith("| `"):
            rows[cells[0].strip("`")] = cells[1:]
    return rows


def keys(model: BaseModel, prefix: str = "") -> Iterator[tuple[str, object]]:
    for name in type(model).model_fields:
        value = getattr(model, name)
        if name == "keys":
            continue
        if isinstance(value, BaseModel):
            yield from keys(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def shown(value: object) -> str:
    if value is None:
        return "(empty)"
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def test_every_setting_is_documented_with_its_default() -> None:
    documented = table("settings.md")
    expected = dict(keys(Settings(data_dir=Path("data"))))
    secrets = {name.upper() for name in Keys.model_fields}
    assert set(documented) == set(expected) | secrets
    for key, value in expected.items():
        default, meaning = documented[key]
        assert default == f"`{shown(value)}`", key
        assert meaning, f"{key} has no meaning"


def commands(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Typer brings its own copy of Click, so its groups are told by what they have."""
    for name, command in group.commands.items():
        yield f"{prefix}{name}", command
        if hasattr(command, "commands"):
            yield from commands(command, f"{prefix}{name} ")


def options(command: Any) -> set[str]:
    return {option for parameter in command.params for option in parameter.opts if option.startswith("-")}


def test_every_command_and_option_is_documented() -> None:
    page = (REFERENCE / "cli.md").read_text(encoding="utf-8")
    for name, command in commands(typer.main.get_command(app)):
        assert re.search(rf"`(assay )?{name}\b", page), f"command {name}"
        for option in options(command) - {"-h", "--help"}:
            assert f"`{option}" in page, f"{name} {option}"


def test_every_documented_option_exists() -> None:
    root = typer.main.get_command(app)
    known = options(root).union(*(options(command) for _, command in commands(root)))
    for option in re.findall(r"^\| `(--[a-z-]+)", (REFERENCE / "cli.md").read_text(encoding="utf-8"), re.M):
        assert option in known, option


def test_every_command_of_the_chat_is_documented() -> None:
    page = (REFERENCE / "cli.md").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert re.search(rf"`{name}\b", page), name


def test_every_event_kind_is_documented() -> None:
    assert set(table("events.md")) == set(get_args(EventKind))


def test_the_published_schema_is_the_reports() -> None:
    published = json.loads((REFERENCE / "report.schema.json").read_text(encoding="utf-8"))
    assert published == ReportData.model_json_schema()


def test_every_report_field_is_documented() -> None:
    page = (REFERENCE / "report.md").read_text(encoding="utf-8")
    for name in ReportData.model_fields:
        assert re.search(rf"`{name}(\[\])?`", page), name


def test_readme_is_short_and_its_links_lead_somewhere() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 150
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert target.startswith("http") or (ROOT / target).exists(), target
