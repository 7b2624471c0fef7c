"""The installed command in processes of its own: run, killed, or typed at."""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.system.forks import Fork, can_fork, everyones

ROOT = Path(__file__).resolve().parents[2]
OPENASSAY = Path(sys.executable).with_name("openassay")
LIBRARY = ROOT / "examples" / "library"
ESCAPE = re.compile(r"\x1b[\[\]()][0-9;?]*[ -/]*[@-~]?")
PATIENCE = 300.0  # seconds; a machine that is busy with other tests has taken more than 60
PIPES: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    stdout: bytes
    stderr: bytes

    @property
    def out(self) -> str:
        return self.stdout.decode()

    @property
    def err(self) -> str:
        return self.stderr.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)

    def refused(self, code: int, *words: str) -> None:
        """One line that says what is wrong and at most one that helps; nothing on stdout."""
        lines = self.err.splitlines()
        assert self.code == code, self.err
        assert self.stdout == b""
        assert lines[0].startswith("openassay: ")
        assert 1 <= len(lines) <= 2, self.err
        assert all(word in self.err for word in words), self.err


def environment(data: Path, **extra: str) -> dict[str, str]:
    """A stranger's, on this data directory; tests do not call out."""
    return {**everyones(), "OPENASSAY_DATA_DIR": str(data), "OPENASSAY_OFFLINE": "true", **extra}


@dataclass(frozen=True)
class Command:
    """`openassay` in a working folder, on a data directory."""

    folder: Path
    data: Path

    def __call__(
        self,
        *args: str | bytes | Path,
        prefix: tuple[str, ...] = (),
        stdin: bytes = b"",
        timeout: float = PATIENCE,
        env: dict[str, str] | None = None,
        installed: bool = False,
    ) -> Ran:
        with self.begun(*args, prefix=prefix, env=env, installed=installed) as process:
            try:
                out, err = process.communicate(stdin, timeout)
            finally:
                process.kill()  # nothing where it has ended
        assert b"Traceback" not in err, err.decode()
        return Ran(process.returncode, out, err)

    def begun(
        self,
        *args: str | bytes | Path,
        prefix: tuple[str, ...] = (),
        env: dict[str, str] | None = None,
        installed: bool = False,
        **files: int,
    ) -> subprocess.Popen[bytes]:
        """`installed`: the program itself, from its first import on, as it is anyway behind a prefix and where the
        environment says how an interpreter starts; else a fork of it, which has that behind it."""
        how: dict[str, Any] = {"cwd": self.folder, "env": environment(self.data, **(env or {})), **PIPES, **files}
        if installed or prefix or not can_fork(env or {}):
            return subprocess.Popen([*prefix, str(OPENASSAY), *args], **how)
        return Fork(args, **how)

    @contextmanager
    def started(
        self, *args: str | Path, prefix: tuple[str, ...] = (), env: dict[str, str] | None = None
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Under way; what is left of it afterwards is killed."""
        with self.begun(*args, prefix=prefix, env=env, stdin=subprocess.DEVNULL) as process:
            try:
                yield process
            finally:
                process.kill()  # nothing where it has ended

    @contextmanager
    def typed(self, *args: str | Path, width: int = 100) -> "Iterator[Terminal]":
        terminal = Terminal(args, self.folder, environment(self.data), width)
        try:
            yield terminal
        finally:
            terminal.close()

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """From the database itself; none while there is no database yet."""
        file = self.data / "openassay.sqlite3"
        if not file.exists():
            return []
        try:
            with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=5)) as connection:
                return connection.execute(query, values).fetchall()
        except sqlite3.OperationalError:  # its tables are being made
            return []

    def threads(self) -> list[str]:
        return [str(row[0]) for row in self.rows("SELECT id FROM threads ORDER BY created")]

    def statuses(self, thread: str) -> list[str]:
        return [str(row[0]) for row in self.rows("SELECT status FROM runs WHERE thread = ? ORDER BY started", thread)]

    def wait_for_event(self, kind: str, stage: str) -> str:
        """The thread on which this happened."""
        query = "SELECT thread FROM events JOIN runs ON runs.id = run WHERE kind = ? AND events.stage = ?"
        ends = time.monotonic() + PATIENCE
        while time.monotonic() < ends:
            if rows := self.rows(query, kind, stage):
                return str(rows[-1][0])
            time.sleep(0.02)
        pytest.fail(f"no {kind} event of {stage} within {PATIENCE:.0f} s")


class Terminal:
    """A command at a terminal of its own: what a person would see, type and press."""

    def __init__(self, args: Sequence[str | Path], folder: Path, env: dict[str, str], width: int) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))

        def take_the_terminal() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        how: dict[str, Any] = {"cwd": folder, "env": env, "stdin": slave, "stdout": slave, "stderr": slave}
        if can_fork({}):
            self._process: subprocess.Popen[bytes] = Fork(args, terminal=True, **how)
        else:
            self._process = subprocess.Popen(
                [str(OPENASSAY), *args], start_new_session=True, preexec_fn=take_the_terminal, **how
            )
        os.close(slave)
        self.raw = ""
        self._told = 0

    @property
    def screen(self) -> str:
        """Without escape codes; a line that was written over counts as one of its own."""
        return ESCAPE.sub("", self.raw).replace("\r\n", "\n").replace("\r", "\n")

    def expect(self, words: str) -> None:
        """Wait until the words appear after those that were waited for before."""
        ends = time.monotonic() + PATIENCE
        while (at := self.screen.find(words, self._told)) < 0:
            if not self._read(ends - time.monotonic()):
                pytest.fail(f"{words!r} never appeared on:\n{self.screen[-2000:]}")
        self._told = at + len(words)

    def type(self, line: str) -> None:
        os.write(self._master, line.encode() + b"\n")

    def press(self, key: str) -> None:
        """`C` for Ctrl-C, `D` for Ctrl-D."""
        os.write(self._master, bytes([ord(key) - 64]))

    def ends(self) -> int:
        """Wait for the end; the exit code."""
        while self._read(PATIENCE):
            pass
        return self._process.wait(PATIENCE)

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        os.close(self._master)

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(seconds, 0))
        try:
            piece = os.read(self._master, 65536) if ready else b""
        except OSError:  # the other end is closed
            return False
        self.raw += piece.decode(errors="replace")
        return bool(piece)


def without_privileges() -> tuple[str, ...]:
    """What to put before a command so that file permissions hold for it, even for root."""
    if os.geteuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        pytest.skip("root may read and write everything, and there is no setpriv to take that away")
    return ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--")
