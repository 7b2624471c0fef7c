"""The docs are held against the code: what is not documented, or documented and gone, fails."""

import ast
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any, get_args

import pytest
import typer
from fastapi import FastAPI
from pydantic import BaseModel

import openassay
from openassay.cli.app import COMMANDS, app, load_command
from openassay.cli.chat import COMMANDS as CHAT_COMMANDS
from openassay.graph import STATUS
from openassay.models.event import EventKind
from openassay.models.report import ReportData
from openassay.server.app import ROUTERS
from openassay.server.routes.threads import StartRequest
from openassay.settings import Keys, Settings
from tests import pictures

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


def root_command() -> Any:
    """The command with all of its commands, which it imports when they are called."""
    root: Any = typer.main.get_command(app)
    for name in COMMANDS:
        root.add_command(load_command(name), name)
    return root


def options(command: Any) -> set[str]:
    return {option for parameter in command.params for option in parameter.opts if option.startswith("-")}


def test_every_command_and_option_is_documented() -> None:
    page = (REFERENCE / "cli.md").read_text(encoding="utf-8")
    for name, command in commands(root_command()):
        assert re.search(rf"`(openassay )?{name}\b", page), f"command {name}"
        for option in options(command) - {"-h", "--help"}:
            assert f"`{option}" in page, f"{name} {option}"


def test_every_documented_option_exists() -> None:
    root = root_command()
    known = options(root).union(*(options(command) for _, command in commands(root)))
    for option in re.findall(r"^\| `(--[a-z-]+)", (REFERENCE / "cli.md").read_text(encoding="utf-8"), re.M):
        assert option in known, option


def test_every_command_of_the_chat_is_documented() -> None:
    page = (REFERENCE / "cli.md").read_text(encoding="utf-8")
    for name in CHAT_COMMANDS:
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


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 150


# The pages -------------------------------------------------------------------------------------------


PAGES = sorted((ROOT / "docs").rglob("*.md")) + [
    ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "examples/README.md")
]
FENCE = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
# Of the place of the settings, of tests, of another program, and `OPENASSAY_KEY` for any.
UNSET = {
    "OPENASSAY_CONFIG",
    "OPENASSAY_EVAL_DATA",
    "OPENASSAY_TEST_MODEL_URL",
    "OPENASSAY_TEST_MODEL_FILE",
    "LANGSMITH_API_KEY",
    "OPENASSAY_KEY",
}
a_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def fences(page: Path, *languages: str) -> list[str]:
    return [dedent(code) for name, code in FENCE.findall(page.read_text(encoding="utf-8")) if name in languages]


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def spans(page: Path) -> list[str]:
    """What stands between backticks, outside blocks of code."""
    return re.findall(r"`([^`\n]+)`", prose(page))


def anchors(page: Path) -> set[str]:
    """What GitHub calls the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@a_page
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if not link.startswith(("http://", "https://")):
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


def test_every_page_can_be_reached_from_the_index() -> None:
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    for folder in ("howto", "explanation", "reference", "examples"):
        for page in (ROOT / "docs" / folder).glob("*.md"):
            assert f"]({folder}/{page.name})" in index, page.name


def written_commands(page: Path) -> Iterator[str]:
    """What follows `openassay ` wherever it is a command: in blocks of a shell, in transcripts, between backticks."""
    texts = (*fences(page, "", "sh", "text"), *(span for span in spans(page) if r"\n" not in span))
    for text in texts:
        for command in re.findall(r"(?:^|(?<=[\s(|&;/$]))openassay ([a-z][^\n|;&>#()]*)", text):
            yield re.sub(r'"[^"]*"|“[^”]*”', "TEXT", command)


@pytest.mark.slow
@a_page
def test_commands_and_their_options_exist(page: Path) -> None:
    root = root_command()
    for written in written_commands(page):
        command: Any = root
        words = written.split()
        while hasattr(command, "commands") and words and words[0] in command.commands:
            command = command.commands[words.pop(0)]
        misspelt = hasattr(command, "commands") and words and re.fullmatch(r"[a-z]+", words[0])
        assert not misspelt, f"openassay {written}"
        unknown = set(re.findall(r"(?<!\S)--[a-z-]+", written)) - options(command) - {"--help"}
        assert not unknown, f"openassay {written}"


@pytest.mark.slow
@a_page
def test_settings_exist(page: Path) -> None:
    known = {key for key, _ in keys(Settings(data_dir=Path("data")))}
    groups = {key.split(".")[0] for key in known if "." in key}
    for span in (span for span in spans(page) if not span.endswith(".lock")):
        if (found := re.fullmatch(r"([a-z_]+)((?:\.[a-z_]+)+)(?:: .*)?", span)) and found[1] in groups:
            name = found[1] + found[2]
            assert any(key == name or name.startswith(f"{key}.") for key in known), span


@a_page
def test_variables_of_the_environment_exist(page: Path) -> None:
    own = {*UNSET, *(name.upper() for name in Keys.model_fields)}
    known = {"OPENASSAY_" + key.upper().replace(".", "__") for key, _ in keys(Settings(data_dir=Path("data")))} | own
    written = re.findall(r"\b(?:OPENASSAY_[A-Z_]*[A-Z]|[A-Z_]+_API_KEY)\b", page.read_text(encoding="utf-8"))
    assert not [name for name in written if not any(name == one or name.startswith(f"{one}__") for one in known)]


@a_page
def test_python_is_python(page: Path) -> None:
    for code in fences(page, "python"):
        compile(code, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


# What programs call ----------------------------------------------------------------------------------


def test_every_route_is_documented_as_the_openapi_document_has_it() -> None:
    api = FastAPI()
    for router in ROUTERS:
        api.include_router(router)
    described = {
        (operation["tags"][0], f"`{method.upper()} {path}`", operation["summary"])
        for path, operations in api.openapi()["paths"].items()
        for method, operation in operations.items()
    }
    documented, section = set(), ""
    for line in (REFERENCE / "api.md").read_text(encoding="utf-8").splitlines():
        section = line[3:] if line.startswith("## ") else section
        if row := re.fullmatch(r"\| (`[A-Z]+ /[^`]*`) \| (.+) \|", line):
            documented.add((section, row[1], row[2]))
    assert documented == described


def test_what_a_question_may_be_asked_with_is_documented() -> None:
    page = (REFERENCE / "api.md").read_text(encoding="utf-8")
    for name, field in StartRequest.model_fields.items():
        assert f"`{field.alias or name}`" in page, name


def test_what_python_exports_is_documented() -> None:
    page = (REFERENCE / "python.md").read_text(encoding="utf-8")
    assert re.findall(r"`(\w+)`", page.split("promised: ")[1].split(". ")[0]) == [
        "research", "aresearch", "Report", "Client", "AsyncClient", "OpenAssayError"
    ]  # fmt: skip
    assert sorted(openassay.__all__) == ["AsyncClient", "Client", "OpenAssayError", "Report", "aresearch", "research"]
    arguments = [
        name for name, one in inspect.signature(openassay.aresearch).parameters.items() if one.kind != one.VAR_KEYWORD
    ]
    assert [name for name in arguments if name not in table("python.md")] == []


@pytest.mark.parametrize("client", [openassay.Client, openassay.AsyncClient])
def test_the_methods_of_the_clients_are_documented_with_their_arguments(client: type) -> None:
    documented = {}
    for row in table("python.md"):
        if "(" in row and not row.startswith("str("):
            name, given = row.rstrip(")").split("(")
            documented[name] = [argument.split("=")[0].strip("* ") for argument in given.split(",") if argument]
    methods = {
        name: list(inspect.signature(method).parameters)[1:]
        for name, method in inspect.getmembers(client, inspect.isfunction)
        if not name.startswith("_")
    }
    assert documented == methods


def test_the_pictures_of_the_architecture_are_drawn_from_the_code() -> None:
    page = pictures.PAGE.read_text(encoding="utf-8")
    assert pictures.drawn(page) == page, "tests/pictures.py draws them"
    assert all(re.search(rf"\b{stage}[\[{{]", page) for stage in STATUS)
    assert all((ROOT / "src/openassay" / name).exists() for name in re.findall(r"`([a-z_/]+\.py)`", page))
