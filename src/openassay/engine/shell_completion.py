"""What a shell completes: threads and sources. Quick to import, and silent where there is nothing."""

import sqlite3
from importlib.metadata import entry_points

from openassay.errors import OpenAssayError
from openassay.settings import load

MAX_THREADS = 50
_RECENT = "SELECT id, title FROM threads WHERE owner = ? ORDER BY updated DESC LIMIT ?"


def list_recent_threads() -> list[tuple[str, str]]:
    """List the newest threads of the user in the settings' SQLite database, with their titles unless encrypted."""
    from openassay.storage.admin import open_database

    try:
        settings = load()
        if settings.persistence.backend != "sqlite":  # asking a server takes longer than a person waits for a Tab
            return []
        with open_database(settings) as database, database.connection() as connection:
            rows = connection.execute(_RECENT, (settings.user, MAX_THREADS)).fetchall()
        return [(row["id"], "" if settings.persistence.encrypt else " ".join(row["title"].split())) for row in rows]
    except (OpenAssayError, sqlite3.Error, OSError):
        return []


def list_source_names() -> list[str]:
    """List the sources that are installed, and those that the settings name."""
    try:
        named = set(load().search.mcp)
    except OpenAssayError:
        named = set()
    return sorted({point.name for point in entry_points(group="openassay.sources")} | named)
