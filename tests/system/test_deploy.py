"""What a team is given to deploy is held against the code: settings exist, commands parse, nothing is left open."""

import json
import re
import shlex
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from openassay import settings
from openassay.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
EXAMPLES = sorted(DEPLOY.glob("*.env.example"))
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
MADE_HERE = ("server", "worker", "migrate")
VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?::(?P<kind>[-?])(?P<rest>[^}]*))?\}")


def filled(text: str) -> str:
    """As Compose fills variables in, where none but those that must be are set."""
    return VARIABLE.sub(lambda found: (found["rest"] or "") if found["kind"] == "-" else "secret", text)


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    return read


@pytest.fixture(scope="module")
def dockerfile() -> list[str]:
    """Its instructions, each on one line."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return [line for line in "\n".join(lines).replace("\\\n", "").splitlines() if line]


def instructions(dockerfile: list[str], word: str) -> list[str]:
    return [line.removeprefix(word).strip() for line in dockerfile if line.startswith(f"{word} ")]


def parsed(words: list[str]) -> None:
    """As the command line reads them; whatever it does not know is an error."""
    command: Any = typer.main.get_command(app)
    context = command.make_context("openassay", list(words))
    while hasattr(command, "commands"):
        rest = [*context._protected_args, *context.args]
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)


# Settings and commands -------------------------------------------------------------------------------


def loaded(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> settings.Settings:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return settings.load()


@pytest.mark.requirement("F-10", "W-14")
@pytest.mark.parametrize("service", MADE_HERE)
def test_every_service_is_given_settings_that_exist(
    services: dict[str, Any], service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {name: filled(value) for name, value in services[service]["environment"].items()}
    read = loaded(monkeypatch, given)
    assert read.persistence.backend == "postgres"
    assert read.cache.backend == "redis"
    assert read.server.runs == "workers"
    assert read.keys.database_url is not None
    assert read.keys.database_url.get_secret_value() == "postgresql://openassay:secret@postgres/openassay"
    assert read.keys.redis_url is not None


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_line_of_an_example_can_be_used(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are commented out, too; what is empty there is for people to fill in."""
    lines = re.findall(r"^(?:# )?([A-Z][A-Z0-9_]*)=(.*)$", example.read_text(encoding="utf-8"), re.MULTILINE)
    known = {name.upper() for name in settings.Keys.model_fields}
    compose = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    for name, _ in lines:
        assert name.startswith("OPENASSAY_") or name in known or name in compose, name
    loaded(monkeypatch, {name: value or "x" * 24 for name, value in lines})


def test_no_example_holds_a_secret() -> None:
    for example in EXAMPLES:
        for name, value in re.findall(r"^(?:# )?(\w+)=(.*)$", example.read_text(encoding="utf-8"), re.MULTILINE):
            if re.search("KEY|PASSWORD|TOKEN|SECRET", name):
                assert value == "", f"{example.name}: {name}"


def test_every_command_of_compose_is_one(services: dict[str, Any]) -> None:
    for name in MADE_HERE:
        parsed(services[name]["command"])


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_every_command_of_a_unit_is_one(unit: Path) -> None:
    commands = re.findall(
        r"^ExecStart(?:Pre)?=/opt/openassay/bin/openassay (.*)$", unit.read_text(encoding="utf-8"), re.M
    )
    assert commands
    for command in commands:
        parsed(shlex.split(command))


def commands_of_the_page() -> Iterator[str]:
    page = (ROOT / "docs/howto/deploy.md").read_text(encoding="utf-8")
    for line in re.findall(r"```sh\n(.*?)```", page, re.DOTALL):
        yield from re.findall(r"^(?:docker compose run --rm server|as-openassay) (.*)$", line, re.MULTILINE)
        yield from re.findall(r"^docker run .* openassay ((?:--version|ask|research).*)$", line, re.MULTILINE)


def test_every_command_of_the_page_is_one() -> None:
    found = list(commands_of_the_page())
    assert len(found) >= 7
    for command in found:
        words = shlex.split(command, comments=True)
        if words != ["--version"]:
            parsed(words)


def test_links_of_the_page_lead_somewhere() -> None:
    page = ROOT / "docs/howto/deploy.md"
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


# Who reaches whom, and who waits for whom ------------------------------------------------------------


def test_nothing_is_reachable_from_elsewhere(services: dict[str, Any]) -> None:
    published = {name: list(map(filled, one["ports"])) for name, one in services.items() if "ports" in one}
    assert published.pop("server") == ["127.0.0.1:8765:8765"]
    for name, ports in published.items():
        assert services[name]["profiles"] == ["observability"]
        assert all(port.startswith("127.0.0.1:") for port in ports)


def test_databases_have_no_way_out(services: dict[str, Any]) -> None:
    networks = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["networks"]
    assert networks["inside"]["internal"] is True
    assert services["postgres"]["networks"] == services["valkey"]["networks"] == ["inside"]


def test_everything_waits_for_the_tables(services: dict[str, Any]) -> None:
    assert services["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert services["migrate"]["restart"] == "no"
    for name in ("server", "worker"):
        assert services[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
        assert services[name]["restart"] == "unless-stopped"
    for name in ("postgres", "valkey"):
        assert services[name]["healthcheck"]["test"]


def test_containers_of_ours_can_do_little(services: dict[str, Any]) -> None:
    for name in MADE_HERE:
        one = services[name]
        assert one["read_only"] is True
        assert one["cap_drop"] == ["ALL"]
        assert one["security_opt"] == ["no-new-privileges:true"]
        assert one["volumes"] == ["data:/data"]
        assert "user" not in one, "the image says who it is"


def test_everything_that_stays_up_has_limits(services: dict[str, Any]) -> None:
    for name, one in services.items():
        if name != "migrate":
            assert set(one["deploy"]["resources"]["limits"]) >= {"cpus", "memory"}, name
    assert services["worker"]["deploy"]["replicas"] == 2


def seconds(said: str) -> int:
    number, unit = re.fullmatch(r"(\d+)(s|m|)", said).groups()  # type: ignore[union-attr]
    return int(number) * (60 if unit == "m" else 1)


@pytest.mark.requirement("W-16")
def test_a_run_is_given_the_time_it_was_promised(services: dict[str, Any]) -> None:
    """Who stops a process waits longer than it takes to end in good order."""
    promised = {"server": settings.ServerSettings().drain_seconds, "worker": settings.FleetSettings().drain_seconds}
    for name, drain in promised.items():
        assert seconds(services[name]["stop_grace_period"]) >= drain + 10
    for unit in UNITS:
        [said] = re.findall(r"^TimeoutStopSec=(\w+)$", unit.read_text(encoding="utf-8"), re.MULTILINE)
        assert seconds(said) >= promised["worker" if "worker" in unit.name else "server"] + 10


def test_images_have_a_version_and_no_address(services: dict[str, Any]) -> None:
    for name, one in services.items():
        image = filled(one["image"])
        assert "." not in image.partition("/")[0], image
        assert name in MADE_HERE or re.search(r":\S*\d", image), image


def test_what_is_mounted_exists(services: dict[str, Any]) -> None:
    sources = [volume.split(":")[0] for one in services.values() for volume in one.get("volumes", ())]
    for source in sources:
        assert not source.startswith(".") or (ROOT / source).exists(), source


# The image -------------------------------------------------------------------------------------------


def test_the_image_is_nobodys_who_could_do_harm(dockerfile: list[str]) -> None:
    user = instructions(dockerfile, "USER")[-1]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user), "a number, which a cluster can tell from root"
    assert instructions(dockerfile, "VOLUME") == ["/data"]
    assert json.loads(instructions(dockerfile, "ENTRYPOINT")[0]) == ["openassay"]
    parsed(json.loads(instructions(dockerfile, "CMD")[0]))


def test_the_image_says_which_version_it_is(dockerfile: list[str]) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert f"VERSION={version}" in instructions(dockerfile, "ARG")


def test_every_package_is_checked_by_its_hash(dockerfile: list[str]) -> None:
    installs = re.findall(r"pip [^&]*install [^&]*", " && ".join(instructions(dockerfile, "RUN")))
    assert len(installs) == 3
    for one in installs:
        assert "--no-deps" in one
        assert ("--require-hashes" in one and "--only-binary :all:" in one) or "--no-index" in one


def test_what_is_copied_is_let_through_and_nothing_else_is(dockerfile: list[str]) -> None:
    ignore = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    let_through = {line[1:] for line in ignore if line.startswith("!")}
    copies = [line for line in instructions(dockerfile, "COPY") if not line.startswith("--from")]
    copied = {name for line in copies for name in line.split()[:-1]}
    assert "*" in ignore
    assert copied == let_through
    assert all((ROOT / name).exists() for name in copied)


class Answering(BaseHTTPRequestHandler):
    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status if self.path in ("/healthz", "/metrics") else 404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """The test says what it has to say."""


@pytest.mark.parametrize("status", [200, 503])
def test_the_health_checks_tell_well_from_ill(
    dockerfile: list[str], services: dict[str, Any], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Answering, "status", status)
    of_image = json.loads(instructions(dockerfile, "HEALTHCHECK")[0].partition(" CMD ")[2])[2]
    of_worker = services["worker"]["healthcheck"]["test"][3]
    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("OPENASSAY_SERVER__PORT", str(server.server_port))
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # nobody there
        for code in (of_image, of_worker.replace("9464", str(server.server_port))):
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
            assert (done.returncode == 0) is (status == 200), done.stderr
        server.shutdown()
