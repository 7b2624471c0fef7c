"""Which files a folder gives."""

import os
from pathlib import Path

import pytest

from openassay.errors import PathError, ReadError
from openassay.fetch.documents import LocalFileReader, walk_folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / "b.md").write_text("# B\n\ntext", encoding="utf-8")
    (folder / "a.TXT").write_text("text", encoding="utf-8")
    (folder / "sub" / "c.csv").write_text("x,y\n1,2\n", encoding="utf-8")
    return folder


def names(root: Path, files: list[Path]) -> list[str]:
    return [str(path.relative_to(root)) for path in files]


def test_files_are_found_sorted_and_hidden_ones_left_out(root: Path) -> None:
    for folder in (".git", "node_modules", "__pycache__"):
        (root / folder).mkdir()
        (root / folder / "d.md").write_text("text", encoding="utf-8")
    (root / ".hidden.md").write_text("text", encoding="utf-8")
    (root / "photo.jpg").write_bytes(b"jpg")
    found = walk_folder(root)
    assert names(root, found.files) == ["a.TXT", "b.md", "sub/c.csv"]
    assert found.skipped == [(root / "photo.jpg", "not a kind of file OpenAssay reads")]


def test_loops_end_and_every_file_comes_once(root: Path) -> None:
    (root / "sub" / "loop").symlink_to(root)
    (root / "self").symlink_to(root / "self")
    (root / "a-copy.md").symlink_to(root / "b.md")
    found = walk_folder(root)
    assert names(root, found.files) == ["a.TXT", "b.md", "sub/c.csv"]
    assert [path.name for path, _ in found.skipped] == ["self"]


def test_links_inside_the_root_reach_what_is_hidden(root: Path) -> None:
    (root / ".store").mkdir()
    (root / ".store" / "d.md").write_text("text", encoding="utf-8")
    (root / "open").symlink_to(root / ".store")
    assert "open/d.md" in names(root, walk_folder(root).files)


def test_links_out_of_the_root_are_skipped(root: Path, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "diary.md").write_text("private", encoding="utf-8")
    (root / "folder").symlink_to(tmp_path / "private")
    (root / "diary.md").symlink_to(tmp_path / "private" / "diary.md")
    found = walk_folder(root)
    assert names(root, found.files) == ["a.TXT", "b.md", "sub/c.csv"]
    assert {reason for _, reason in found.skipped} == {"a link that leads outside the folder"}


def test_special_files_are_skipped(root: Path) -> None:
    os.mkfifo(root / "pipe.md")
    assert walk_folder(root).skipped == [(root / "pipe.md", "not a regular file")]


def test_the_limit_holds_and_is_told(root: Path) -> None:
    found = walk_folder(root, limit=2)
    assert names(root, found.files) == ["a.TXT", "b.md"]
    assert found.skipped == [(root, "only the first 2 of 3 files are read")]


def test_a_single_file(root: Path) -> None:
    assert walk_folder(root / "b.md").files == [root / "b.md"]


def test_a_single_file_of_another_kind(root: Path) -> None:
    (root / "photo.jpg").write_bytes(b"jpg")
    with pytest.raises(PathError, match="not a kind of file") as caught:
        walk_folder(root / "photo.jpg")
    assert ".pdf" in caught.value.help


def test_a_missing_root(tmp_path: Path) -> None:
    with pytest.raises(PathError, match="does not exist") as caught:
        walk_folder(tmp_path / "nowhere")
    assert caught.value.help


def test_an_empty_root(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(PathError, match="holds no file") as caught:
        walk_folder(tmp_path / "empty")
    assert "empty" in caught.value.help


def test_a_root_with_nothing_readable(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "a.jpg").write_bytes(b"")
    with pytest.raises(PathError, match="holds no file") as caught:
        walk_folder(folder)
    assert "a.jpg" in caught.value.help


def test_an_unreadable_folder_is_listed(root: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    (root / "sub").chmod(0)
    try:
        found = walk_folder(root)
        with pytest.raises(PathError, match="permission denied"):
            walk_folder(root / "sub")
    finally:
        (root / "sub").chmod(0o755)
    assert names(root, found.files) == ["a.TXT", "b.md"]
    assert found.skipped == [(root / "sub", "permission denied")]


def test_a_huge_file_is_refused_without_reading_it(root: Path) -> None:
    path = root / "huge.txt"
    with path.open("wb") as file:
        file.truncate(200_000_000)
    assert path in walk_folder(root).files
    with pytest.raises(ReadError, match="too large"):
        LocalFileReader().read(path)
