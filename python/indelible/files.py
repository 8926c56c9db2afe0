"""Writing files: whether a path can be written, and errors that name the file."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from indelible.errors import InputError


def require_writable(what: str, path: str) -> None:
    """Refuse a path that cannot be written, before anything is run, and touch nothing.

    A symbolic link is written through, even if its target does not exist yet.
    """
    if not path:
        raise InputError(f"{what} must name a file; it is an empty string")
    if path.endswith(os.sep):
        raise InputError(f"{what} {path}: is a directory")
    with naming(f"{what} {path}"):
        refused = _refusal(path)
    if refused is not None:
        raise InputError(f"{what} {path}: {refused}")


def make_folder(what: str, path: str) -> Path:
    """Return the folder for a command's output, and make it if its parent exists."""
    if not path:
        raise InputError(f"{what} must name a folder; it is an empty string")
    require_parent(what, path)
    folder = Path(path)
    with naming(f"{what} {path}"):
        if os.path.exists(path) and not folder.is_dir():
            raise InputError(f"{what} {path}: is not a folder; name one")
        folder.mkdir(exist_ok=True)
    return folder


def require_parent(what: str, path: str) -> None:
    """Refuse a folder that `make_folder` could not make because its parent is missing."""
    parent = Path(path).parent
    if path and not parent.is_dir():
        raise InputError(f"{what} {path}: there is no directory `{parent}`; make it first")


@contextmanager
def naming(place: str | os.PathLike[str]) -> Iterator[None]:
    """Name the file in errors of the host, which do not name it themselves on a full disk, say."""
    try:
        yield
    except BrokenPipeError:
        # The reader has closed the pipe, which is no error of the file.
        raise
    except OSError as error:
        raise InputError(f"{place}: {(error.strerror or str(error)).lower()}") from None


def write(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file whole, or leave it as it was."""
    is_text = isinstance(content, str)
    with replacing(path, "w" if is_text else "wb", "utf-8" if is_text else None) as file:
        file.write(content)


@contextmanager
def replacing(
    path: str | os.PathLike[str],
    mode: str = "w",
    encoding: str | None = "utf-8",
    errors: str | None = None,
) -> Iterator[IO[Any]]:
    """Open a file for writing that replaces the older one only when it is whole.

    If writing fails, on a full disk say, the older file stays as it was. A link is written through.
    """
    if not _can_be_replaced(path):
        with open(path, mode, encoding=encoding, errors=errors) as file:
            yield file
        return
    target = Path(os.path.realpath(path))
    with made_beside(target) as part:
        with open(part, mode, encoding=encoding, errors=errors) as file:
            yield file
        if target.exists():
            shutil.copymode(target, part)


@contextmanager
def made_beside(target: Path) -> Iterator[Path]:
    """Name a temporary file that replaces the target at the end, or is removed on an error.

    It is in the target's folder, because a rename cannot go from one disk to another.
    """
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        yield part
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_new(path: Path, text: str) -> None:
    """Write a file that does not exist yet; refuse one that does."""
    with naming(path):
        try:
            file = path.open("x", encoding="utf-8")
        except FileExistsError:
            raise InputError(f"{path}: already exists; choose another name") from None
        try:
            with file:
                file.write(text)
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def _can_be_replaced(path: str | os.PathLike[str]) -> bool:
    """Return whether a new file may replace the one at a path, if there is one.

    Devices and pipes, files that this process has open (as `/dev/stdout` may be), files with other
    names and files of another user are not replaced: a caller who names one means the file itself.
    """
    folder = Path(os.path.realpath(path)).parent
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return os.access(folder, os.W_OK)
    is_plain = stat.S_ISREG(there.st_mode) and there.st_nlink == 1
    is_ours = there.st_uid == os.geteuid() and os.access(path, os.W_OK)
    return is_plain and is_ours and os.access(folder, os.W_OK) and not _is_open(there)


def _is_open(there: os.stat_result) -> bool:
    """Return whether this process has a file open, or may have it."""
    try:
        descriptors = [*map(int, os.listdir("/dev/fd"))]
    except OSError:
        # As without /proc.
        return True
    for descriptor in descriptors:
        # The descriptor that listed the folder is closed by now.
        with suppress(OSError):
            if os.path.samestat(os.fstat(descriptor), there):
                return True
    return False


def _refusal(path: str) -> str | None:
    """Return why a file cannot be written, if that is so."""
    try:
        is_folder = stat.S_ISDIR(os.stat(path).st_mode)
    except FileNotFoundError:
        is_link = Path(path).is_symlink()
        folder = Path(os.path.realpath(path) if is_link else path).parent
        if not folder.exists():
            return f"there is no directory `{folder}`; make it first"
        # Making an unnamed file says more than permissions, since root has them all.
        with tempfile.TemporaryFile(dir=folder):
            return None
    if is_folder:
        return "is a directory"
    return None if os.access(path, os.W_OK) else "permission denied"
