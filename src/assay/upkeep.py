"""What is done to all that is stored, while nothing is at work: carried into another database, sealed anew."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from assay.bootstrap import data_dir, open_database, open_journal, open_rows
from assay.errors import ConfigurationError, NotFoundError
from assay.memory.file import FILE, all_memories
from assay.ports import RunLocks
from assay.settings import Settings
from assay.storage.files import FolderFiles, SharedFiles
from assay.storage.locks import FileLocks
from assay.storage.opening import FILE as DATABASE
from assay.storage.rows import Rows
from assay.storage.sealing import adopt, reseal, sealing
from assay.storage.seals import Seals
from assay.storage.sqlite import SqliteDatabase
from assay.storage.transfer import transfer


async def copy_from(settings: Settings, folder: Path) -> int:
    """Everything that one machine keeps in a data directory, into the empty PostgreSQL database of the settings; how
    many rows. The directory stays as it is, and nothing may be at work on it."""
    if settings.persistence.backend != "postgres":
        raise ConfigurationError(
            f"persistence.backend is {settings.persistence.backend}, and the copy goes into PostgreSQL",
            help="Set it to postgres, and DATABASE_URL to its address.",
        )
    if not (folder / DATABASE).is_file():
        raise NotFoundError(f"{folder} holds no {DATABASE}", help="Name the data directory of that machine.")
    async with AsyncExitStack() as stack:
        file = stack.enter_context(SqliteDatabase(folder / DATABASE))
        target, _ = open_rows(settings, folder, stack)
        source = Rows(file, target.seals)
        adopt(source)
        _refuse_while_at_work(source, FileLocks(folder / "locks"))
        files = (FolderFiles(folder / "uploads"), SharedFiles(target, settings.data_dir / "copies"))
        return await asyncio.to_thread(transfer, source, target, files, await all_memories(folder / FILE))


async def seal(settings: Settings, *, encrypt: bool, trust_unsealed: bool = False) -> int:
    """Write everything anew with the key of the settings, or without one; how many rows. The key before it, if there
    was one, is ASSAY_STORAGE_KEY_BEFORE. Nothing may be at work meanwhile. Rows without seals are taken for what was
    written only if they are to be trusted."""
    key, before = settings.keys.assay_storage_key, settings.keys.assay_storage_key_before
    async with AsyncExitStack() as stack:
        folder = data_dir(settings, stack)
        database, locks = open_database(settings, folder, stack)
        held = sealing(database)
        old = Seals(
            before.get_secret_value() if before else key.get_secret_value() if key and held and held.key else None,
            encrypt=held.encrypt if held else False,
        )
        if held and held.key != old.key_id:
            raise ConfigurationError(
                f"{database.name} is sealed with another key",
                help="Set ASSAY_STORAGE_KEY_BEFORE to the one it has now.",
            )
        new = Seals(key.get_secret_value() if key else None, encrypt=encrypt)
        _refuse_while_at_work(Rows(database, old), locks)
        count = await asyncio.to_thread(reseal, database, old, new, trust_unsealed=trust_unsealed)
        await open_journal(settings, Rows(database, new), folder).renew()
        return count


def _refuse_while_at_work(rows: Rows, locks: RunLocks) -> None:
    with rows.database.connection() as connection:
        threads = connection.execute("SELECT thread FROM runs WHERE status IN ('running', 'queued')").fetchall()
    for row in threads:
        locks.take(row["thread"])
        locks.release(row["thread"])
