"""What the store of uploads does, with the bytes in a folder and in the database: one person's files, whole or not
there."""

import os
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from openassay.errors import IntegrityError, NotFoundError, StorageError, UsageError
from openassay.models.user import Upload, UploadCursor, UploadQuota
from openassay.storage.database import CHUNKS
from openassay.storage.integrity import SqlIntegrity, ensure_seals, reseal
from openassay.storage.sealed_rows import Rows, Seals
from openassay.storage.uploads import (
    ABANDON_SECONDS,
    CHUNK,
    DatabaseFileStore,
    FileStore,
    FolderFileStore,
    SqlUploads,
    public_address,
)
from tests.contract.conftest import KEY

pytestmark = pytest.mark.requirement("F-10")
ROOM = UploadQuota(files=3, bytes=1_000)
MUCH = UploadQuota(files=9, bytes=9_000_000)


def opened(rows: Rows, folder: Path) -> FileStore:
    """As on SQLite, and as on PostgreSQL."""
    return FolderFileStore(folder) if rows.database.for_update == "" else DatabaseFileStore(rows, folder)


@pytest.fixture
def files(rows: Rows, tmp_path: Path) -> FileStore:
    return opened(rows, tmp_path / "uploads")


@pytest.fixture
def uploads(rows: Rows, files: FileStore) -> SqlUploads:
    return SqlUploads(rows, files)


async def give(uploads: SqlUploads, owner: str, *files: tuple[str, str], room: UploadQuota = ROOM) -> list[Upload]:
    given = []
    for name, text in files:
        path = await uploads.new_folder() / name
        path.write_text(text, encoding="utf-8")
        given.append((path, "text/plain"))
    return await uploads.add(owner, given, room)


def read(files: FileStore, upload: Upload) -> str:
    """As a run does."""
    [file] = files.locate(f"upload:{upload.owner}/{upload.id}").iterdir()
    assert file.name == upload.name
    return file.read_text(encoding="utf-8")


def count(rows: Rows, table: str) -> int:
    with rows.database.connection() as connection:
        return int(connection.execute(f"SELECT count(*) AS n FROM {table}").fetchone()["n"])  # noqa: S608


async def test_a_file_is_kept_for_its_owner_alone(uploads: SqlUploads, files: FileStore) -> None:
    [upload] = await give(uploads, "ann", ("notes.txt", "hello"))

    assert await uploads.get("ann", upload.id) == upload
    assert (upload.name, upload.size, upload.media) == ("notes.txt", 5, "text/plain")
    assert read(files, upload) == "hello"
    file = files.folder / "ann" / upload.id / "notes.txt"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    for strange in (upload.id, "0" * 16, "", "..", "a/b", "\ud800", "\0"):
        with pytest.raises(NotFoundError):
            await uploads.get("bob", strange)
    with pytest.raises(NotFoundError):
        await uploads.paths("bob", [upload.id])
    with pytest.raises(NotFoundError):
        await uploads.delete("bob", upload.id)
    with pytest.raises(NotFoundError):
        files.locate(f"upload:bob/{upload.id}")


async def test_what_a_run_is_given_names_no_place(uploads: SqlUploads, files: FileStore, tmp_path: Path) -> None:
    [upload] = await give(uploads, "ann", ("Größe 1.txt", "hello"))
    [name] = await uploads.paths("ann", [upload.id, upload.id])
    folder = files.folder

    assert name == f"upload:ann/{upload.id}"
    assert files.locate(name) == folder / "ann" / upload.id
    assert files.locate("/some/docs") == Path("/some/docs")
    assert (
        public_address(folder / "ann" / upload.id / upload.name, folder)
        == f"upload:{upload.id}/Gr%C3%B6%C3%9Fe%201.txt"
    )
    assert public_address(tmp_path / "a.txt", folder) == (tmp_path / "a.txt").as_uri()
    await uploads.delete("ann", upload.id)
    assert not (folder / "ann" / upload.id).exists()
    for gone in (name, "upload:../..", "upload:ann"):
        with pytest.raises(NotFoundError, match="was deleted"):
            files.locate(gone)


async def test_the_same_bytes_are_the_same_upload(uploads: SqlUploads, files: FileStore) -> None:
    [first] = await give(uploads, "ann", ("a.txt", "hello"))
    [again, other, twice] = await give(uploads, "ann", ("b.txt", "hello"), ("c.txt", "other"), ("d.txt", "other"))
    [hers] = await give(uploads, "bob", ("a.txt", "hello"))

    assert again == first
    assert twice == other
    assert len({first.id, other.id, hers.id}) == 3
    assert [read(files, upload) for upload in (first, other, hers)] == ["hello", "other", "hello"]
    await uploads.delete("ann", first.id)
    assert (await uploads.get("bob", hers.id)).name == "a.txt"
    assert read(files, hers) == "hello"
    assert [upload.id for upload in await uploads.list_for("ann", limit=9)] == [other.id]


async def test_there_is_room_for_so_much(uploads: SqlUploads, rows: Rows) -> None:
    await give(uploads, "ann", ("a.txt", "a" * 600))

    with pytest.raises(UsageError, match=r"0\.0 MB|MB"):
        await give(uploads, "ann", ("b.txt", "b"), ("c.txt", "c" * 500))
    with pytest.raises(UsageError, match="4 documents; the limit is 3"):
        await give(uploads, "ann", *[(f"{n}.txt", str(n)) for n in range(3)])
    assert count(rows, "uploads") == 1  # all or none
    assert count(rows, "chunks") <= 1
    assert len(await give(uploads, "ann", ("a.txt", "a" * 600), room=UploadQuota(0, 0))) == 1  # nothing new


async def test_pages_go_from_the_newest_to_the_oldest(uploads: SqlUploads) -> None:
    given = await give(uploads, "ann", *[(f"{n}.txt", str(n)) for n in range(3)])
    seen: list[Upload] = []
    while page := await uploads.list_for(
        "ann", limit=2, after=UploadCursor(seen[-1].created, seen[-1].id) if seen else None
    ):
        seen += page

    assert sorted(seen, key=lambda one: one.id) == sorted(given, key=lambda one: one.id)
    assert [one.created for one in seen] == sorted((one.created for one in given), reverse=True)


async def test_what_was_left_on_its_way_is_swept(uploads: SqlUploads, rows: Rows, files: FileStore) -> None:
    """A process was killed while a file came in."""
    [kept] = await give(uploads, "ann", ("kept.txt", "kept"))
    half, young = await uploads.new_folder(), await uploads.new_folder()
    (half / "part").write_bytes(b"half")
    os.utime(half, (0, time.time() - ABANDON_SECONDS - 1))

    await SqlUploads(rows, files).new_folder()

    assert not half.exists()
    assert young.exists()
    assert await uploads.get("ann", kept.id) == kept
    assert read(files, kept) == "kept"


async def test_an_upload_that_fails_half_way_leaves_nothing(
    uploads: SqlUploads, rows: Rows, files: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = files.put, list[str]()

    def full(upload: Upload, file: Path) -> None:
        calls.append(upload.name)
        if len(calls) == 2:
            raise StorageError("the disk is full")
        real(upload, file)

    monkeypatch.setattr(files, "put", full)
    with pytest.raises(StorageError, match="full"):
        await give(uploads, "ann", ("a.txt", "a"), ("b.txt", "b"))

    assert await uploads.list_for("ann", limit=9) == []
    assert (count(rows, "uploads"), count(rows, "chunks")) == (0, 0)
    assert len(await give(uploads, "ann", ("a.txt", "a"), ("b.txt", "b"))) == 2


async def test_names_are_encrypted(keyed_rows: Rows, tmp_path: Path) -> None:
    uploads = SqlUploads(keyed_rows, opened(keyed_rows, tmp_path / "uploads"))
    [upload] = await give(uploads, "ann", ("salaries.txt", "hello"))

    assert (await uploads.get("ann", upload.id)).name == "salaries.txt"
    with keyed_rows.database.connection() as connection:
        assert "salaries" not in str(connection.execute("SELECT name FROM uploads").fetchone()["name"])


# In a folder -----------------------------------------------------------------------------------------


@pytest.fixture
def one_machine(sqlite_database: Any, tmp_path: Path) -> tuple[Rows, Path, SqlUploads]:
    rows, folder = Rows(sqlite_database), tmp_path / "uploads"
    return rows, folder, SqlUploads(rows, FolderFileStore(folder))


async def test_what_has_arrived_stays_though_this_database_knows_nothing_of_it(
    one_machine: tuple[Rows, Path, SqlUploads],
) -> None:
    rows, folder, uploads = one_machine
    [kept] = await give(uploads, "ann", ("kept.txt", "kept"))
    rowless = folder / "ann" / ("0" * 16)
    rowless.mkdir()
    for place in (rowless, folder / "ann" / kept.id):
        (place / "part").write_bytes(b"half")
        os.utime(place, (0, time.time() - ABANDON_SECONDS - 1))

    await SqlUploads(rows, FolderFileStore(folder)).new_folder()

    assert (rowless / "part").exists()
    assert await uploads.get("ann", kept.id) == kept


async def test_a_row_whose_file_is_gone_does_not_count_and_can_be_given_again(
    one_machine: tuple[Rows, Path, SqlUploads],
) -> None:
    rows, folder, uploads = one_machine
    [upload] = await give(uploads, "ann", ("a.txt", "hello"))
    (folder / "ann" / upload.id / "a.txt").unlink()

    with pytest.raises(NotFoundError):
        await uploads.get("ann", upload.id)
    assert await give(uploads, "ann", ("a.txt", "hello")) == [upload]
    assert await uploads.get("ann", upload.id) == upload
    rows.check("user", "ann", deep=True)


# In the database -------------------------------------------------------------------------------------


@pytest.fixture
def shared_rows(postgres_database: Any) -> Rows:
    return Rows(postgres_database)


async def test_a_large_file_is_read_on_another_machine(shared_rows: Rows, tmp_path: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(40_000))
    assert len(text) > 3 * CHUNK
    [upload] = await give(
        SqlUploads(shared_rows, DatabaseFileStore(shared_rows, tmp_path / "a")), "ann", ("a.txt", text), room=MUCH
    )

    other = DatabaseFileStore(shared_rows, tmp_path / "b")

    assert read(other, upload) == text
    [file] = other.locate(f"upload:ann/{upload.id}").iterdir()
    assert file.stat().st_mtime == upload.created.timestamp()  # the same everywhere: what was indexed stays indexed
    assert [row["number"] for row in shared_rows.read(CHUNKS, "ORDER BY number")] == list(range(4))
    assert not list((tmp_path / "b" / ".incoming").iterdir())


MEASURED = """
import asyncio, resource, sys, tracemalloc
from pathlib import Path
from openassay.storage.uploads import DatabaseFileStore
from openassay.storage.postgres import PostgresDatabase
from openassay.storage.sealed_rows import Rows
from openassay.storage.uploads import SqlUploads
from openassay.models.user import UploadQuota
rows = Rows(PostgresDatabase(sys.argv[1]))
files = DatabaseFileStore(rows, Path(sys.argv[2]))
uploads = SqlUploads(rows, files)
tracemalloc.start()
[upload] = asyncio.run(uploads.add("ann", [(Path(sys.argv[3]), "text/plain")], UploadQuota(9, 10**9)))
files.locate(f"upload:ann/{upload.id}")
print(tracemalloc.get_traced_memory()[1])
rows.database.close()
"""


@pytest.mark.slow
def test_a_file_of_25_mb_takes_little_memory(postgres_address: str, tmp_path: Path) -> None:
    file = tmp_path / "large.txt"
    file.write_bytes(os.urandom(25_000_000))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", MEASURED, postgres_address, tmp_path / "copies", file],
        env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 12_000_000


async def test_a_copy_that_was_damaged_is_made_anew(shared_rows: Rows, tmp_path: Path) -> None:
    files = DatabaseFileStore(shared_rows, tmp_path / "copies")
    [upload] = await give(SqlUploads(shared_rows, files), "ann", ("a.txt", "hello"))
    assert read(files, upload) == "hello"
    for damage in ("hollo", "", "hello, and more"):
        (files.folder / "ann" / upload.id / "a.txt").write_text(damage, encoding="utf-8")
        assert read(files, upload) == "hello"


async def test_bytes_that_were_damaged_are_told_and_can_be_given_again(shared_rows: Rows, tmp_path: Path) -> None:
    files = DatabaseFileStore(shared_rows, tmp_path / "copies")
    uploads = SqlUploads(shared_rows, files)
    text = "x" * CHUNK + "y"
    [upload] = await give(uploads, "ann", ("a.txt", text), room=MUCH)
    [name] = await uploads.paths("ann", [upload.id])
    with shared_rows.database.transaction() as connection:
        connection.execute("UPDATE chunks SET content = 'z' WHERE number = 1")

    with pytest.raises(IntegrityError, match=f"chunks {upload.id}/1"):
        files.locate(name)
    assert any(f"chunks {upload.id}/1" in problem for problem in await SqlIntegrity(shared_rows).problems())
    with shared_rows.database.transaction() as connection:
        connection.execute("DELETE FROM chunks WHERE number = 1")
    with pytest.raises(IntegrityError, match="not what was given"):
        files.locate(name)
    with pytest.raises(NotFoundError):
        await uploads.get("ann", upload.id)
    assert not (files.folder / "ann").exists()

    assert await give(uploads, "ann", ("a.txt", text), room=MUCH) == [upload]
    assert read(files, upload) == text


async def test_two_who_fetch_the_same_at_once_both_have_it(shared_rows: Rows, tmp_path: Path) -> None:
    text = "x" * (2 * CHUNK)
    [upload] = await give(
        SqlUploads(shared_rows, DatabaseFileStore(shared_rows, tmp_path / "a")), "ann", ("a.txt", text), room=MUCH
    )
    processes = [DatabaseFileStore(shared_rows, tmp_path / "copies") for _ in range(8)]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda files: read(files, upload), processes)) == [text] * 8
    assert not list((tmp_path / "copies" / ".incoming").iterdir())


async def test_what_is_deleted_on_one_machine_goes_on_the_others(shared_rows: Rows, tmp_path: Path) -> None:
    here, there = (DatabaseFileStore(shared_rows, tmp_path / name) for name in ("here", "there"))
    uploads = SqlUploads(shared_rows, here)
    [upload, kept] = await give(uploads, "ann", ("a.txt", "hello"), ("b.txt", "kept"))
    assert [read(there, one) for one in (upload, kept)] == ["hello", "kept"]

    await uploads.delete("ann", upload.id)

    assert count(shared_rows, "chunks") == 1
    with pytest.raises(NotFoundError):
        there.locate(f"upload:ann/{upload.id}")
    there.tidy()
    assert [folder.name for folder in (tmp_path / "there" / "ann").iterdir()] == [kept.id]


async def test_copies_are_bounded_and_what_is_in_use_stays(shared_rows: Rows, tmp_path: Path) -> None:
    files = DatabaseFileStore(shared_rows, tmp_path / "copies", max_bytes=250)
    given = await give(SqlUploads(shared_rows, files), "ann", *((f"{n}.txt", str(n) * 100) for n in range(3)))
    for upload in given:
        read(files, upload)
    old = [files.folder / "ann" / upload.id for upload in given]

    files.tidy()
    assert all(folder.exists() for folder in old)  # somebody may be reading them
    for age, folder in zip((2, 3, 0), old, strict=True):
        os.utime(folder, (0, time.time() - age * ABANDON_SECONDS))
    files.tidy()

    assert [folder.exists() for folder in old] == [True, False, True]
    assert read(files, given[1]) == "1" * 100  # fetched again


async def test_a_disk_that_takes_no_copy_is_told(
    shared_rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = DatabaseFileStore(shared_rows, tmp_path / "copies")
    [upload] = await give(SqlUploads(shared_rows, files), "ann", ("a.txt", "hello"))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(StorageError, match="No space left") as caught:
        files.locate(f"upload:ann/{upload.id}")
    assert "room" in caught.value.help


async def test_bytes_are_encrypted_and_sealed_anew(postgres_database: Any, tmp_path: Path) -> None:
    plain, keyed = Rows(postgres_database), Rows(postgres_database, Seals(KEY, encrypt=True))
    ensure_seals(plain)
    uploads = SqlUploads(plain, DatabaseFileStore(plain, tmp_path / "a"))
    [upload] = await give(uploads, "ann", ("a.txt", "a secret"))
    assert stored(plain) == b"a secret"

    reseal(postgres_database, plain.seals, keyed.seals)

    assert b"secret" not in stored(keyed)
    assert read(DatabaseFileStore(keyed, tmp_path / "b"), upload) == "a secret"


def stored(rows: Rows) -> bytes:
    with rows.database.connection() as connection:
        return bytes(connection.execute("SELECT content FROM chunks").fetchone()["content"])
