"""Files that are written: whether they can be, and the sentence that says which was not."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from indelible.experiment import InputError


def require_writable(what: str, path: str) -> None:
    """Refuse a path that cannot be written, before anything is run, and touch nothing.

    A link is written through, to where it leads, also if nothing is there yet.
    """
    if not path:
        raise InputError(f"{what} names no file: its word is empty")
    if path.endswith(os.sep):
        raise InputError(f"{what} {path}: is a directory")
    with naming(f"{what} {path}"):
        refused = _refusal(path)
    if refused is not None:
        raise InputError(f"{what} {path}: {refused}")


def make_folder(what: str, path: str) -> Path:
    """Return a folder for what comes of a command; it is made, if that which it is in is there."""
    if not path:
        raise InputError(f"{what} names no folder: its word is empty")
    require_parent(what, path)
    folder = Path(path)
    with naming(f"{what} {path}"):
        if os.path.exists(path) and not folder.is_dir():
            raise InputError(f"{what} {path}: is not a folder; name one")
        folder.mkdir(exist_ok=True)
    return folder


def require_parent(what: str, path: str) -> None:
    """Refuse a folder that `make_folder` could not make for want of that which it is in."""
    parent = Path(path).parent
    if path and not parent.is_dir():
        raise InputError(f"{what} {path}: there is no directory `{parent}`; make it first")


@contextmanager
def naming(place: str | os.PathLike[str]) -> Iterator[None]:
    """Say of which file it is that the host refuses something: a full disk does not."""
    try:
        yield
    except BrokenPipeError:
        # Whoever read it has enough.
        raise
    except OSError as error:
        raise InputError(f"{place}: {(error.strerror or str(error)).lower()}") from None


def write_new(path: Path, text: str) -> None:
    """Write a file that is not there yet, and no other."""
    with naming(path):
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            raise InputError(f"{path}: is there already; name another") from None


def _refusal(path: str) -> str | None:
    """Return why a file cannot be written, if that is so."""
    try:
        is_folder = stat.S_ISDIR(os.stat(path).st_mode)
    except FileNotFoundError:
        is_link = Path(path).is_symlink()
        folder = Path(os.path.realpath(path) if is_link else path).parent
        if not folder.exists():
            return f"there is no directory `{folder}`; make it first"
        # A file without a name says more than permissions do, of which root has all.
        with tempfile.TemporaryFile(dir=folder):
            return None
    if is_folder:
        return "is a directory"
    return None if os.access(path, os.W_OK) else "permission denied"
