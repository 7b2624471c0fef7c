"""Settings: defaults, the layers above them, and one clear line for whatever is wrong."""

import ast
import importlib.metadata
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from openassay import cli
from openassay.errors import ConfigurationError
from openassay.models.plan import Depth
from openassay.settings import load

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory without any configuration; config.yaml and .env are looked for there."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.delenv("OPENASSAY_CONFIG")
    monkeypatch.delenv("OPENASSAY_DATA_DIR")
    return work


def refused(**overrides: object) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load(**overrides)
    assert "\n" not in caught.value.message
    assert caught.value.help
    assert caught.value.exit_code == 2
    return caught.value.message


# F-14

APPENDIX_B: dict[str, object] = {
    "depth": "standard",
    "style_guide": "academic",
    "target_length": 2000,
    "max_iterations": 3,
    "max_search_iterations": 5,
    "max_gap_searches": 2,
    "max_search_errors": 3,
    "hitl_after_planning": False,
    "hitl_before_output": False,
}
ROLES = {"planner": 0.3, "searcher": 0.1, "analyst": 0.2, "writer": 0.4, "reviewer": 0.1}


@pytest.mark.requirement("F-14")
@pytest.mark.parametrize(("key", "default"), APPENDIX_B.items())
def test_every_documented_key_has_its_default(folder: Path, key: str, default: object) -> None:
    assert getattr(load(), key) == default


@pytest.mark.requirement("F-14")
@pytest.mark.parametrize(("role", "temperature"), ROLES.items())
def test_every_role_has_a_model_a_temperature_and_a_token_limit(
    folder: Path, monkeypatch: pytest.MonkeyPatch, role: Any, temperature: float
) -> None:
    settings = load()

    assert getattr(settings.llm, role).temperature == temperature
    assert getattr(settings.llm, role).max_tokens >= 1000
    assert settings.model_for(role) == settings.llm.model
    assert settings.llm.model.startswith("anthropic:")
    monkeypatch.setenv(f"OPENASSAY_{role.upper()}_MODEL", "openai:gpt-4o-mini")
    monkeypatch.setenv(f"OPENASSAY_LLM__{role.upper()}__TEMPERATURE", "0.9")
    monkeypatch.setenv(f"OPENASSAY_LLM__{role.upper()}__MAX_TOKENS", "123")
    changed = load()
    assert changed.model_for(role) == "openai:gpt-4o-mini"
    assert (getattr(changed.llm, role).temperature, getattr(changed.llm, role).max_tokens) == (0.9, 123)
    assert all(changed.model_for(other) == settings.llm.model for other in ROLES if other != role)  # type: ignore[arg-type]


@pytest.mark.requirement("F-14")
def test_a_role_keeps_what_was_not_set_for_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = load().llm.writer.max_tokens
    monkeypatch.setenv("OPENASSAY_LLM__WRITER__TEMPERATURE", "0.9")

    assert (load().llm.writer.temperature, load().llm.writer.max_tokens) == (0.9, limit)


@pytest.mark.requirement("F-14")
@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "SERPER_API_KEY", "NEWS_API_KEY", "DATABASE_URL"])
@pytest.mark.parametrize("where", ["environment", ".env"])
def test_secrets_keep_their_vendors_names_and_are_never_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, where: str
) -> None:
    if where == "environment":
        monkeypatch.setenv(name, "s3cret-value")
    else:
        (folder / ".env").write_text(f"{name}=s3cret-value\n", encoding="utf-8")

    settings = load()

    assert getattr(settings.keys, name.lower()).get_secret_value() == "s3cret-value"
    assert "s3cret" not in repr(settings) + str(settings) + settings.model_dump_json()


@pytest.mark.requirement("F-14")
def test_threads_are_kept_in_sqlite_unless_said_otherwise(folder: Path) -> None:
    assert load().persistence.backend == "sqlite"
    assert load().persistence.ttl_hours is None
    assert load(persistence={"backend": "memory", "ttl_hours": 24}).persistence.ttl_hours == 24


# L-10


@pytest.mark.requirement("L-10")
def test_each_layer_overrides_the_one_below(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = [load().target_length]
    (folder / "config.yaml").write_text("target_length: 300\nmax_iterations: 5\nllm: {model: a}\n", encoding="utf-8")
    seen.append(load().target_length)
    (folder / ".env").write_text("OPENASSAY_TARGET_LENGTH=400\nOPENASSAY_LLM__MODEL=b\n", encoding="utf-8")
    seen.append(load().target_length)
    monkeypatch.setenv("OPENASSAY_TARGET_LENGTH", "500")
    seen.append(load().target_length)
    seen.append(load(target_length=600).target_length)

    assert seen == [2000, 300, 400, 500, 600]
    assert load().max_iterations == 5  # what a higher layer does not name stays
    assert load().llm.model == "b"
    monkeypatch.setenv("OPENASSAY_LLM__MODEL", "c")
    assert load().llm.model == "c"
    assert load().llm.fallback_model == "openai:gpt-4o"


@pytest.mark.requirement("L-10")
def test_the_file_can_be_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "other.yaml").write_text("depth: quick\n", encoding="utf-8")
    monkeypatch.setenv("OPENASSAY_CONFIG", "other.yaml")

    assert load().depth is Depth.QUICK
    monkeypatch.setenv("OPENASSAY_CONFIG", "missing.yaml")
    assert "missing.yaml" in refused()


@pytest.mark.requirement("L-10")
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("depth", "deep"),
        ("max_iterations", "many"),
        ("max_iterations", 99),
        ("max_gap_searches", 3),  # three rounds at most, so that it would have no effect
        ("target_length", -1),
        ("budget.usd", -2),
        ("budget.verification_share", 1),
        ("persistence.backend", "floppy"),
        ("reading.max_file_mb", 0),
        ("log_level", "loud"),
        ("llm", 3),
        ("llm.planner.temperature", 7),
    ],
)
@pytest.mark.parametrize("layer", ["file", "environment"])
def test_a_bad_value_is_refused_by_the_name_of_its_key(
    folder: Path, monkeypatch: pytest.MonkeyPatch, key: str, value: object, layer: str
) -> None:
    if layer == "environment":
        monkeypatch.setenv(f"OPENASSAY_{key.upper().replace('.', '__')}", str(value))
    else:
        *parents, leaf = key.split(".")
        lines = [f"{'  ' * depth}{name}:" for depth, name in enumerate(parents)]
        (folder / "config.yaml").write_text("\n".join([*lines, f"{'  ' * len(parents)}{leaf}: {value}"]), "utf-8")

    assert key in refused()


@pytest.mark.requirement("L-10")
def test_all_bad_keys_are_named_at_once(folder: Path) -> None:
    (folder / "config.yaml").write_text("depth: deep\nmax_iterations: 0\n", encoding="utf-8")

    message = refused()

    assert "depth" in message
    assert "max_iterations" in message


@pytest.mark.requirement("L-10")
@pytest.mark.parametrize(
    ("text", "named", "meant"),
    [
        ("detph: quick", "detph", "depth"),
        ("llm:\n  modle: x", "llm.modle", "model"),
        ("budget:\n  tokenz: 3", "budget.tokenz", "tokens"),
        ("llm:\n  planner: {temprature: 1}", "llm.planner.temprature", "temperature"),
    ],
)
def test_an_unknown_key_is_refused_with_the_one_that_was_meant(folder: Path, text: str, named: str, meant: str) -> None:
    (folder / "config.yaml").write_text(text, encoding="utf-8")

    message = refused()

    assert named in message
    assert message.endswith(f"(did you mean {meant}?)")


def test_there_is_no_setting_that_nothing_reads(folder: Path) -> None:
    assert "llm.reasoner" in refused(llm={"reasoner": "embedded"})


@pytest.mark.parametrize("variable", ["ASSAY_DEPTH", "ASSAY_LLM__MODEL", "ASSAY_STORAGE_KEY", "ASSAY_CONFIG"])
def test_a_variable_of_version_0_1_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "x")
    with pytest.raises(ConfigurationError, match=f"{variable} is a name of version 0.1") as caught:
        load()
    assert caught.value.help == f"Rename it to OPEN{variable}."


def test_variables_of_other_programs_are_none_of_ours(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_LAB_ADDRESS", "x")
    assert load().depth is Depth.STANDARD


@pytest.mark.requirement("L-10")
@pytest.mark.parametrize("where", ["environment", ".env", "argument"])
def test_a_misspelt_setting_is_not_ignored(folder: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    if where == "environment":
        monkeypatch.setenv("OPENASSAY_DETPH", "quick")
    elif where == ".env":
        (folder / ".env").write_text("PATH_OF_OTHERS=x\nOPENASSAY_DETPH=quick\n", encoding="utf-8")

    message = refused(**({"detph": "quick"} if where == "argument" else {}))

    assert "DETPH" in message.upper()
    assert "DEPTH" in message.upper().partition("DID YOU MEAN")[2]


@pytest.mark.requirement("L-10")
@pytest.mark.parametrize(
    "content",
    [
        b"depth: [quick",
        b"depth: quick\n  mode: auto\n\t- x",
        b"- depth\n- mode",
        b"just some text",
        b"42",
        b"\xff\xfe\x00",
    ],
    ids=["open bracket", "bad indentation", "a list", "a sentence", "a number", "binary"],
)
def test_a_file_that_holds_no_settings_is_one_clear_line(folder: Path, content: bytes) -> None:
    (folder / "config.yaml").write_bytes(content)

    assert "config" in refused()


@pytest.mark.requirement("L-10")
def test_an_empty_file_and_variables_of_others_are_fine(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "config.yaml").write_text("", encoding="utf-8")
    (folder / ".env").write_text("SOMETHING_ELSE=1\n", encoding="utf-8")
    monkeypatch.setenv("DEPTH", "nonsense")

    assert load().depth is Depth.STANDARD


def test_the_fingerprint_follows_what_makes_a_result(folder: Path) -> None:
    plain = load().fingerprint()

    assert load(data_dir="elsewhere", log_level="debug").fingerprint() == plain
    assert load(depth="quick").fingerprint() != plain


@pytest.mark.requirement("L-10")
@pytest.mark.parametrize(
    ("config", "shown"),
    [("log_level: debug", True), ("log_level: info", False), ("", False), ("log_level: loud", False)],
)
def test_where_a_fault_happened_is_shown_as_the_settings_say(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], config: str, shown: bool
) -> None:
    def fault() -> None:
        raise RuntimeError("the works are stuck")

    (folder / "config.yaml").write_text(config, encoding="utf-8")
    monkeypatch.setattr("signal.signal", lambda *_: None)  # pytest goes on

    with pytest.raises(SystemExit) as ended:
        cli.report_errors(fault)

    told = capsys.readouterr().err
    assert ended.value.code == 1
    assert told.startswith("openassay: RuntimeError: the works are stuck\n")
    assert ("Traceback" in told) is shown
    assert "ConfigurationError" not in told


def test_only_the_settings_read_the_environment() -> None:
    reading = re.compile(r"\bos\.(environ\b(?!\.setdefault)|getenv)")
    readers = {
        path.relative_to(ROOT / "src/openassay").as_posix()
        for path in (ROOT / "src").rglob("*.py")
        if reading.search(path.read_text("utf-8"))
    }

    assert readers == {"settings.py"}


@pytest.mark.slow
def test_every_package_that_is_imported_is_declared() -> None:
    """One that comes with another today may not come with its next version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    installed = {name for group, lines in extras.items() if group != "dev" for name in _names(lines)}
    installed |= _names(project["dependencies"])
    owners = importlib.metadata.packages_distributions()
    for path in (ROOT / "src").rglob("*.py"):
        declared = installed | _names(extras["dev"]) if "testing" in path.parts else installed
        for name in _imported(path) - set(sys.stdlib_module_names) - {"openassay"}:
            assert {_plain(owner) for owner in owners.get(name, [name])} & declared, f"{path.name} imports {name}"


def _names(lines: list[str]) -> set[str]:
    return {_plain(re.split(r"[^\w.-]", line)[0]) for line in lines}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


def test_a_list_that_is_no_json_is_told_how_to_be_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENASSAY_HARVEST__ALLOW_ADDRESSES", "127.0.0.1")
    with pytest.raises(ConfigurationError) as caught:
        load()
    assert "harvest" in caught.value.message
    assert "JSON" in caught.value.help


@pytest.mark.requirement("L-10")
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"user": "b ob"}, "user: should be 1 to 64 letters, digits, hyphens and underscores, not 'b ob'"),
        ({"banned_words": 3}, "banned_words: input should be a list, not 3"),
        ({"llm": 3}, "llm: input should be a mapping, not 3"),
        ({"breakpoints": {"custom": [{"name": "a"}]}}, "breakpoints.custom.0.at: field required"),
        (
            {"breakpoints": {"custom": [{"name": "a", "at": "plan"}] * 2}},
            "breakpoints.custom: two breakpoints have the same name",
        ),
        (
            {"breakpoints": {"custom": [{"name": "a", "at": "plan", "tmeout": 1}]}},
            "unknown setting breakpoints.custom.0.tmeout (did you mean timeout?)",
        ),
    ],
)
def test_what_is_wrong_is_said_in_plain_words(folder: Path, given: dict[str, Any], told: str) -> None:
    assert refused(**given) == told
