"""What the store of uploads does, on both databases: one person's files, whole or not there."""

import os
import stat
import time
from pathlib import Path

import pytest

from assay.errors import NotFoundError, UsageError
from assay.model.upload import Upload
from assay.storage.rows import Rows
from assay.storage.uploads import ABANDONED, Page, Room, SqlUploads, address, located

ROOM = Room(files=3, bytes=1_000)


@pytest.fixture
def uploads(rows: Rows, tmp_path: Path) -> SqlUploads:
    return SqlUploads(rows, tmp_path / "uploads")


async def give(uploads: SqlUploads, owner: str, *files: tuple[str, str], room: Room = ROOM) -> list[Upload]:
    given = []
    for name, text in files:
        path = await uploads.incoming() / name
        path.write_text(text, encoding="utf-8")
        given.append((path, "text/plain"))
    return await uploads.add(owner, given, room)


def on_disk(tmp_path: Path) -> list[str]:
    folder = tmp_path / "uploads"
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and ".incoming" not in str(path)
    )


async def test_a_file_is_kept_for_its_owner_alone(uploads: SqlUploads, tmp_path: Path) -> None:
    [upload] = await give(uploads, "ann", ("notes.txt", "hello"))

    assert await uploads.get("ann", upload.id) == upload
    assert (upload.name, upload.size, upload.media) == ("notes.txt", 5, "text/plain")
    assert on_disk(tmp_path) == [f"ann/{upload.id}/notes.txt"]
    file = tmp_path / "uploads" / "ann" / upload.id / "notes.txt"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    for strange in (upload.id, "0" * 16, "", "..", "a/b", "\ud800", "\0"):
        with pytest.raises(NotFoundError):
            await uploads.get("bob", strange)
    with pytest.raises(NotFoundError):
        await uploads.paths("bob", [upload.id])
    with pytest.raises(NotFoundError):
        await uploads.delete("bob", upload.id)


async def test_what_a_run_is_given_names_no_place(uploads: SqlUploads, tmp_path: Path) -> None:
    [upload] = await give(uploads, "ann", ("Größe 1.txt", "hello"))
    [name] = await uploads.paths("ann", [upload.id, upload.id])
    folder = tmp_path / "uploads"

    assert name == f"upload:ann/{upload.id}"
    assert located(name, folder) == folder / "ann" / upload.id
    assert located("/some/docs", folder) == Path("/some/docs")
    assert address(folder / "ann" / upload.id / upload.name, folder) == f"upload:{upload.id}/Gr%C3%B6%C3%9Fe%201.txt"
    assert address(tmp_path / "a.txt", folder) == (tmp_path / "a.txt").as_uri()
    await uploads.delete("ann", upload.id)
    for gone in (name, "upload:../..", "upload:ann"):
        with pytest.raises(NotFoundError, match="not there any more"):
            located(gone, folder)


async def test_the_same_bytes_are_the_same_upload(uploads: SqlUploads, tmp_path: Path) -> None:
    [first] = await give(uploads, "ann", ("a.txt", "hello"))
    [again, other] = await give(uploads, "ann", ("b.txt", "hello"), ("c.txt", "other"))
    [hers] = await give(uploads, "bob", ("a.txt", "hello"))

    assert again == first
    assert len({first.id, other.id, hers.id}) == 3
    assert len(on_disk(tmp_path)) == 3
    await uploads.delete("ann", first.id)
    assert (await uploads.get("bob", hers.id)).name == "a.txt"
    assert [upload.id for upload in await uploads.of("ann", limit=9)] == [other.id]


async def test_there_is_room_for_so_much(uploads: SqlUploads, tmp_path: Path) -> None:
    await give(uploads, "ann", ("a.txt", "a" * 600))

    with pytest.raises(UsageError, match=r"0\.0 MB|MB"):
        await give(uploads, "ann", ("b.txt", "b"), ("c.txt", "c" * 500))
    with pytest.raises(UsageError, match="4 documents; 3 are the most"):
        await give(uploads, "ann", *[(f"{n}.txt", str(n)) for n in range(3)])
    assert len(on_disk(tmp_path)) == 1  # all or none
    assert len(await give(uploads, "ann", ("a.txt", "a" * 600), room=Room(0, 0))) == 1  # nothing new


async def test_pages_go_from_the_newest_to_the_oldest(uploads: SqlUploads) -> None:
    given = await give(uploads, "ann", *[(f"{n}.txt", str(n)) for n in range(3)])
    seen: list[Upload] = []
    while page := await uploads.of("ann", limit=2, after=Page(seen[-1].created, seen[-1].id) if seen else None):
        seen += page

    assert sorted(seen, key=lambda one: one.id) == sorted(given, key=lambda one: one.id)
    assert [one.created for one in seen] == sorted((one.created for one in given), reverse=True)


async def test_what_was_left_on_its_way_is_swept(rows: Rows, tmp_path: Path) -> None:
    """A process was killed while a file came in. What has arrived stays, though this database knows nothing of it."""
    uploads = SqlUploads(rows, tmp_path / "uploads")
    [kept] = await give(uploads, "ann", ("kept.txt", "kept"))
    half, rowless = await uploads.incoming(), tmp_path / "uploads" / "ann" / ("0" * 16)
    rowless.mkdir()
    young = await uploads.incoming()
    for folder in (half, rowless, tmp_path / "uploads" / "ann" / kept.id):
        (folder / "part").write_bytes(b"half")
        os.utime(folder, (0, time.time() - ABANDONED - 1))

    await SqlUploads(rows, tmp_path / "uploads").incoming()

    assert not half.exists()
    assert (rowless / "part").exists()
    assert young.exists()
    assert (await uploads.get("ann", kept.id)) == kept


async def test_a_row_whose_file_is_gone_does_not_count_and_can_be_given_again(rows: Rows, tmp_path: Path) -> None:
    uploads = SqlUploads(rows, tmp_path / "uploads")
    [upload] = await give(uploads, "ann", ("a.txt", "hello"))
    (tmp_path / "uploads" / "ann" / upload.id / "a.txt").unlink()

    with pytest.raises(NotFoundError):
        await uploads.get("ann", upload.id)
    assert await give(uploads, "ann", ("a.txt", "hello")) == [upload]
    assert await uploads.get("ann", upload.id) == upload
    rows.check("user", "ann", deep=True)


async def test_names_are_encrypted(keyed_rows: Rows, tmp_path: Path) -> None:
    uploads = SqlUploads(keyed_rows, tmp_path / "uploads")
    [upload] = await give(uploads, "ann", ("salaries.txt", "hello"))

    assert (await uploads.get("ann", upload.id)).name == "salaries.txt"
    with keyed_rows.database.connection() as connection:
        assert "salaries" not in str(connection.execute("SELECT name FROM uploads").fetchone()["name"])
