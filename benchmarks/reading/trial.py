"""Runs one question with a strong model that answers through a bridge, a server that turns each call into a file."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import yaml

MODEL = "compatible:strong"
START_SECONDS = 30


def write_settings(folder: Path, port: int) -> None:
    """Room for answers that take minutes to write, and no other model to fall back on."""
    llm = {
        "model": MODEL,
        "base_url": f"http://127.0.0.1:{port}/v1",
        "prompt_tokens": 96_000,
        "answer_tokens": 12_000,
        "calls_at_once": 16,
        "call_seconds": 3_000,
        "step_seconds": 12_000,
        "fallback_model": "none",
        "budget_model": "none",
        "prices": {MODEL: {"input": 0.5, "output": 1.5}},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump({"llm": llm}, sort_keys=False), encoding="utf-8")


def run_question(question: str, documents: Path, folder: Path, server: Sequence[str], port: int, calls: Path) -> int:
    """Leaves report.json, report.md and run.log in the folder; returns the exit code. `server`: what serves the folder
    of `calls` on the port, for Python."""
    home = folder / "home"
    for made in (home, calls):
        made.mkdir(parents=True, exist_ok=True)
    write_settings(home, port)
    docs, report = str(documents.resolve()), str(folder.resolve() / "report.json")
    research = ["research", question, "--docs", docs, "--depth", "standard", "-y", "--budget", "100", "--out", report]
    export = ["threads", "export", "last", "--out", str(folder.resolve() / "report.md")]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # or bridge and program would run on
    env = os.environ | {"COMPATIBLE_API_KEY": "none"}  # the bridge asks for none, the program for some
    with (folder / "run.log").open("w") as log, (folder / "bridge.log").open("w") as served:
        command = [sys.executable, *server, str(calls), str(port)]
        serving = subprocess.Popen(command, stdout=served, stderr=served)
        try:
            wait_for_port(port)
            code = 0
            for arguments in (research, export):
                ran = [sys.executable, "-m", "openassay", *arguments]
                code = code or subprocess.run(ran, cwd=home, env=env, stdout=log, stderr=log, check=False).returncode
        finally:
            (calls / "done").touch()  # ends the waiting of whoever answers
            serving.terminate()
            serving.wait()
    return code


def wait_for_port(port: int) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)
