"""Which files of a folder can be read."""

import os
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from assay.errors import PathError
from assay.harvest.files import SUFFIXES

_SILENT = {"__pycache__", "node_modules"}
_KINDS = ", ".join(sorted(SUFFIXES))


@dataclass(frozen=True, slots=True)
class Walk:
    files: list[Path]
    skipped: list[tuple[Path, str]]


def walk(root: Path, *, limit: int = 1_000_000) -> Walk:
    """Readable files under `root`, sorted; raises PathError when there are none.

    Links are followed inside the root only, so that a folder shares no more than it seems to.
    """
    try:
        is_folder = _check(root)
    except OSError as error:
        raise _unreadable(root, error) from error
    if not is_folder:
        return Walk([root], [])
    found = _Search(root, root.resolve(), limit).run()
    if not found.files:
        raise PathError(f"{root} holds no file that Assay reads", help=_why(found), path=str(root))
    return found


def _check(root: Path) -> bool:
    """Whether the root is a folder (else a file that can be read)."""
    if root.is_dir():
        os.scandir(root).close()
        return True
    root.stat()
    if not root.is_file() or root.suffix.lower() not in SUFFIXES:
        raise PathError(f"{root} is not a kind of file Assay reads", help=f"It reads {_KINDS}.", path=str(root))
    with root.open("rb"):
        return False


def _unreadable(root: Path, error: OSError) -> PathError:
    if isinstance(error, FileNotFoundError):
        return PathError(f"{root} does not exist", help="Check the spelling of the path.", path=str(root))
    reason = (error.strerror or type(error).__name__).lower()
    return PathError(f"{root} cannot be read: {reason}", help="Check its permissions.", path=str(root))


def _why(found: Walk) -> str:
    if not found.skipped:
        return f"The folder is empty. Put files there: {_KINDS}."
    path, reason = found.skipped[0]
    return f"{len(found.skipped)} skipped, such as {path.name} ({reason}). It reads {_KINDS}."


@dataclass
class _Search:
    root: Path
    real: Path
    limit: int
    files: dict[tuple[int, int], Path] = field(default_factory=dict)
    skipped: list[tuple[Path, str]] = field(default_factory=list)
    seen: set[tuple[int, int]] = field(default_factory=set)
    links: deque[Path] = field(default_factory=deque)

    def run(self) -> Walk:
        """Real files first, links after them: a file reached both ways goes by its own name."""
        self._folder(self.root)
        while self.links:
            self._link(self.links.popleft())
        files = sorted(self.files.values())
        if len(files) > self.limit:
            self.skipped.append((self.root, f"only the first {self.limit:,} of {len(files):,} files are read"))
        return Walk(files[: self.limit], sorted(self.skipped))

    def _folder(self, top: Path) -> None:
        folders = [top]
        while folders:
            folder = folders.pop()
            try:
                if not self._is_new(folder):
                    continue
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            except OSError as error:
                self._skip(folder, error)
                continue
            folders += [path for entry in entries if (path := self._entry(entry)) is not None]

    def _is_new(self, folder: Path) -> bool:
        stat = folder.stat()
        key = (stat.st_dev, stat.st_ino)
        if key in self.seen:
            return False
        self.seen.add(key)
        return True

    def _entry(self, entry: os.DirEntry[str]) -> Path | None:
        """Take one entry; the path comes back when it is a folder to enter."""
        path = Path(entry.path)
        if entry.name.startswith(".") or entry.name in _SILENT:
            return None
        try:
            if entry.is_symlink():
                self.links.append(path)
            elif entry.is_dir():
                return path
            else:
                self._file(path)
        except OSError as error:
            self._skip(path, error)
        return None

    def _link(self, link: Path) -> None:
        try:
            target = link.resolve(strict=True)
            if not target.is_relative_to(self.real):
                self.skipped.append((link, "a link that leads outside the folder"))
            elif target.is_dir():
                self._folder(link)
            else:
                self._file(link)
        except (OSError, RuntimeError) as error:  # RuntimeError: a link to itself
            self._skip(link, error)

    def _file(self, path: Path) -> None:
        if path.suffix.lower() not in SUFFIXES:
            self.skipped.append((path, "not a kind of file Assay reads"))
        elif not path.is_file():
            self.skipped.append((path, "not a regular file"))
        else:
            stat = path.stat()
            self.files.setdefault((stat.st_dev, stat.st_ino), path)

    def _skip(self, path: Path, error: Exception) -> None:
        reason = error.strerror if isinstance(error, OSError) else None
        self.skipped.append((path, (reason or "a link that leads nowhere").lower()))
