"""A model in a file, served by a process of its own."""

import importlib.util
import subprocess
from pathlib import Path

import pytest

from openassay.errors import ConfigurationError
from openassay.llm import local
from openassay.llm.local import LocalServer
from openassay.llm.names import parse_name
from openassay.llm.vendors import open_vendor
from openassay.settings import Settings


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    path = tmp_path / "damaged.gguf"
    path.write_bytes(b"GGUF\x03\x00\x00\x00" + b"\xff" * 5000)
    return path


def test_without_llama_cpp_it_says_what_to_install(damaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match="not installed") as caught:
        open_vendor(parse_name(f"local:{damaged}"), Settings())
    assert "make local" in caught.value.help


@pytest.mark.parametrize("end", ["exit 3", "kill -SEGV $$", "echo nonsense", "echo {}"])
def test_a_child_that_dies_or_babbles_is_a_file_that_cannot_be_loaded(
    damaged: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    children: list[subprocess.Popen[str]] = []

    def spawned(server: LocalServer) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        children.append(subprocess.Popen(["/bin/sh", "-c", end], stdin=pipe, stdout=pipe, text=True))
        return children[-1]

    monkeypatch.setattr(LocalServer, "_spawn", spawned)
    with pytest.raises(ConfigurationError, match="cannot load"):
        LocalServer.acquire(damaged)
    assert children[0].poll() is not None
    assert not LocalServer._running


def test_a_child_that_never_answers_is_ended(damaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spawned(server: LocalServer) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(["/bin/sleep", "60"], stdin=pipe, stdout=pipe, text=True)

    monkeypatch.setattr(LocalServer, "_spawn", spawned)
    monkeypatch.setattr(local, "LOAD_SECONDS", 0.3)
    with pytest.raises(ConfigurationError, match="cannot load"):
        LocalServer.acquire(damaged)


def test_one_server_for_all_who_ask_for_a_file(damaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = """read key; echo '{"address": "http://127.0.0.1:1"}'; cat > /dev/null"""

    def spawned(server: LocalServer) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(["/bin/sh", "-c", script], stdin=pipe, stdout=pipe, text=True)

    monkeypatch.setattr(LocalServer, "_spawn", spawned)
    first, second = LocalServer.acquire(damaged), LocalServer.acquire(damaged)
    assert first is second
    assert first.address == "http://127.0.0.1:1/v1"
    first.release()
    assert first._process.poll() is None
    second.release()
    assert first._process.poll() is not None
    assert not LocalServer._running


@pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="the extra `local` is not installed")
def test_a_damaged_file_ends_a_child_and_not_this_process(damaged: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot load") as caught:
        open_vendor(parse_name(f"local:{damaged}"), Settings())
    assert "Download the file again" in caught.value.help
