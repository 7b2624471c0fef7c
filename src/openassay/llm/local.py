"""Serves a .gguf file as a model, by llama.cpp on a free loopback port, in a process of its own.

A process, because loading a gigabyte stops the one it happens in, and a damaged file may end it. The child dies with
its parent: it reads from a pipe that ends when the parent does. A key that only the two know keeps others out.
"""

import contextlib
import importlib
import importlib.util
import json
import os
import secrets
import subprocess
import sys
import threading
from pathlib import Path

from openassay.errors import ConfigurationError, install_help

LOAD_SECONDS = 600.0  # a large file on a slow disk
CONTEXT_TOKENS = 8192  # of prompt and answer; its memory grows with it


def require_llamacpp() -> None:
    if importlib.util.find_spec("xllamacpp") is None:
        raise ConfigurationError(
            "models in a .gguf file need llama.cpp, which is not installed",
            help=install_help("local"),
        )


class LocalServer:
    """The server of one file, shared by all users in this process."""

    _running: dict[Path, "LocalServer"] = {}
    _guard = threading.Lock()

    def __init__(self, path: Path) -> None:
        self.path = path
        self.secret = secrets.token_urlsafe(24)
        self._users = 0
        self._process = self._spawn()
        timer = threading.Timer(LOAD_SECONDS, self._process.kill)
        timer.start()
        address = ""  # the child's one line, unless it died before writing it
        stdin, stdout = self._process.stdin, self._process.stdout
        try:
            with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
                if stdin is not None and stdout is not None:
                    stdin.write(f"{self.secret}\n")
                    stdin.flush()
                    address = str(json.loads(stdout.readline())["address"])
        finally:
            timer.cancel()
        if not address:
            self._end()
            raise ConfigurationError(
                f"llama.cpp cannot load {self.path}",
                help="Download the file again; if it is whole, there may be too little memory for it.",
            )
        self.address = f"{address}/v1"

    @classmethod
    def acquire(cls, path: Path) -> "LocalServer":
        """Return the running server or start it; blocks until the model is loaded. Each call needs a `release`."""
        path = path.resolve()
        with cls._guard:
            server = cls._running.get(path)
            if server is None or server.ended:
                server = cls._running[path] = cls(path)
            server._users += 1
            return server

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def release(self) -> None:
        with self._guard:
            self._users -= 1
            if self._users == 0:
                if self._running.get(self.path) is self:
                    del self._running[self.path]
                self._end()

    def _spawn(self) -> subprocess.Popen[str]:
        require_llamacpp()
        return subprocess.Popen(
            [sys.executable, "-m", "openassay.llm.local", str(self.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # Ctrl-C is for the parent, which finishes its step
        )

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):  # what a dead child did not read
                    pipe.close()


def _serve(path: str) -> None:
    """Run as the child: load the model, write the address, and end when the parent does."""
    xllamacpp = importlib.import_module("xllamacpp")  # published without types
    secret = sys.stdin.readline().strip()
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.hostnames = ["127.0.0.1"]
    params.port = 0  # a free one
    params.api_keys = [secret]
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.cache_ram_mib = 0  # 8 GB of old prompts by default
    params.endpoint_slots = False
    params.verbosity = -1
    params.offline = True
    try:
        server = xllamacpp.Server(params)
    except RuntimeError:
        sys.exit(1)
    sys.stdout.write(json.dumps({"address": server.listening_address}) + "\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)  # its threads do not end by themselves


if __name__ == "__main__":
    _serve(sys.argv[1])
