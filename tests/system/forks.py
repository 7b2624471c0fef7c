"""The command in processes of their own that need not import anything first: forks of one that has.

To import what it needs takes the command a second or two of CPU, and the tests start it hundreds of times. So one
process imports it all and waits; a start is a fork of it, which the tests adopt: it is their child, to be read from,
signalled, killed and waited for like any other. Run as a program, this file is the process that waits.
"""

import ctypes
import fcntl
import gc
import importlib
import io
import json
import os
import pkgutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

# What commands import when they need it, and tests often make them. Not onnxruntime: it starts a thread.
BESIDES = (
    "openassay.bootstrap",
    "openassay.engine.maintenance",
    "openassay.engine.maintenance",
    "openassay.server.app",
    "openassay.llm.vendors.openai",
    "numpy",
    "tokenizers",
    "prompt_toolkit",
    "rich.live",
)
AT_START = ("PYTHON", "LC_", "LANG", "NO_COLOR", "FORCE_COLOR")  # heeded when an interpreter starts, or at imports
PR_SET_CHILD_SUBREAPER = 36
SIZE = struct.Struct("!I")
_one_at_a_time = threading.Lock()


def everyones() -> dict[str, str]:
    """A stranger's environment: no keys and no settings. Bytecode is kept, as on any machine but a build machine."""
    ours = ("OPENASSAY_", "LANGSMITH_", "LANGCHAIN_", "PYTEST_")
    unwanted = {"PYTHONDONTWRITEBYTECODE", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"}
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(ours) and not name.endswith("_API_KEY") and name not in unwanted
    }
    return {**kept, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}


def can_fork(unusual: Mapping[str, str]) -> bool:
    """In an environment that has these besides what every other has. Only Linux lets one adopt processes."""
    return sys.platform == "linux" and not any(name.startswith(AT_START) for name in unusual)


class Fork(subprocess.Popen[bytes]):
    """`openassay` with these arguments; all else is as of any process."""

    def __init__(self, args: Sequence[str | bytes | Path], *, terminal: bool = False, **options: Any) -> None:
        self._terminal = terminal
        super().__init__(args, **options)

    def _execute_child(self, args: Sequence[str | bytes | Path], *rest: Any) -> None:
        """In place of the one that forks and executes; everything around it is the library's."""
        _, _, _, _, cwd, env, _, _, _, p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, *_ = rest
        request = {
            "args": [os.fsdecode(arg) for arg in args], "cwd": str(cwd), "env": dict(env), "terminal": self._terminal,
        }  # fmt: skip
        with _one_at_a_time:
            self.pid = _adopted(_waiting()[0], json.dumps(request).encode(), [p2cread, c2pwrite, errwrite])
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]


def _adopted(waiting: socket.socket, request: bytes, files: list[int]) -> int:
    """An orphan becomes the child of whoever stands in for its parents. We do so for this moment alone: what tests
    leave behind on purpose is not ours."""
    _stand_in(True)
    try:
        socket.send_fds(waiting, [SIZE.pack(len(request))], files)
        waiting.sendall(request)
        answer = waiting.recv(SIZE.size, socket.MSG_WAITALL)
    finally:
        _stand_in(False)
    if not answer:
        raise OSError("the process that waits has ended; it says why above")
    pid: int = SIZE.unpack(answer)[0]
    return pid


def _stand_in(wanted: bool) -> None:
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(wanted), 0, 0, 0):
        raise OSError("this process cannot stand in for others' parents")


@cache
def _waiting() -> tuple[socket.socket, "subprocess.Popen[bytes]"]:
    """It ends when our end of the line is closed."""
    ours, its = socket.socketpair()
    environment = {**everyones(), "OPENBLAS_NUM_THREADS": "1"}  # else numpy starts a thread
    with its:
        command = [sys.executable, "-P", __file__, str(its.fileno())]
        return ours, subprocess.Popen(command, pass_fds=[its.fileno()], env=environment)


# The process that waits ------------------------------------------------------------------------------


def wait(requests: socket.socket) -> list[str]:
    """Returns in forks alone: with the arguments each is for."""
    while True:
        size, files, _, _ = socket.recv_fds(requests, SIZE.size, 3)
        if not size:
            os._exit(0)
        request = json.loads(requests.recv(SIZE.unpack(size)[0], socket.MSG_WAITALL))
        told, tells = os.pipe()
        if (between := os.fork()) == 0:
            if os.fork():
                os._exit(0)  # leaves an orphan
            for one in (requests.detach(), told):
                os.close(one)
            become(request, files)
            os.write(tells, SIZE.pack(os.getpid()))  # not before: a signal is forgotten in the middle of a fork
            os.close(tells)
            return [str(arg) for arg in request["args"]]
        os.waitpid(between, 0)
        requests.sendall(os.read(told, SIZE.size))
        for one in (*files, told, tells):
            os.close(one)


def become(request: dict[str, Any], files: list[int]) -> None:
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    if request["terminal"]:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8")
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(1, "w", closefd=False)), "utf-8", line_buffering=os.isatty(1)
    )
    sys.stderr = io.TextIOWrapper(io.BufferedWriter(io.FileIO(2, "w", closefd=False)), "utf-8", line_buffering=True)


def import_all() -> None:
    from openassay import cli

    for name in (*(module.name for module in pkgutil.iter_modules(cli.__path__, "openassay.cli.")), *BESIDES):
        importlib.import_module(name)
    assert len(os.listdir("/proc/self/task")) == 1, "what other threads hold is held for ever in a fork"
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    # What a script starts in the background ignores Ctrl-C, and so would every process that is started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    import_all()
    from openassay.cli import main

    sys.argv = ["openassay", *wait(socket.socket(fileno=int(sys.argv[1])))]
    main()
