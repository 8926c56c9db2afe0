"""The compiled extension, which is the simulator: JSON text in and out.

Names and settings stay text here: the Rust side, which alone knows them and their ranges, checks
them.
"""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from indelible import _core as core
from indelible import scripts
from indelible.errors import InputError


def _stamp(path: str) -> tuple[int, ...]:
    """Return numbers that distinguish a file from another one put in its place."""
    about = os.stat(path)
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns


#: The extension's file, and its stamp from directly after it was loaded.
_LOADED = (core.__file__, _stamp(core.__file__))


class Elsewhere(ABC):
    """The control of a job whose request another computer answers."""

    #: The progress of the job, where that is known.
    done: int = 0
    total: int = 0

    @abstractmethod
    def cancel(self) -> None:
        """Give the job up."""

    @abstractmethod
    def ask(self, verb: str, request: str) -> str:
        """Return the answer of the simulator there to a request, both as JSON."""


#: The object that watches and stops a job, here or on another computer.
Control = core.Control | Elsewhere


def ask(verb: str, request: str, control: Control) -> str:
    """Return the answer to a request, both as JSON, from the simulator here or elsewhere."""
    if isinstance(control, Elsewhere):
        return control.ask(verb, request)
    return getattr(core, verb)(request, control)


def catalog(kind: str) -> list[dict[str, Any]]:
    """Return the designs, the workloads, the profiles or the machines."""
    rows: list[dict[str, Any]] = json.loads(core.list(kind))["rows"]
    return rows


def designs(asked: Iterable[str]) -> list[dict[str, Any]]:
    """Return the built-in designs, and those in Python that are asked for."""
    own = dict.fromkeys(name for name in asked if scripts.is_script(name))
    return catalog("designs") + [describe(f"design:{name}") for name in own]


def describe(
    name: str,
    settings: tuple[tuple[str, str], ...] = (),
    against: str | None = None,
    on: tuple[str, int | None] | None = None,
) -> dict[str, Any]:
    """Return everything known of a design or an order (`on` a machine), a workload, a machine."""
    about: dict[str, Any] = json.loads(core.explain(name, list(settings), against, on))
    for rows in (about.get(key, []) for key in ("params", "rules", "rows")):
        # These texts are comments of the source and begin with a blank.
        rows[:] = [row | {"doc": row["doc"].strip()} if "doc" in row else row for row in rows]
    return about


def batteries(
    designs: list[str], machine: str, cores: int | None, settings: tuple[tuple[str, str], ...]
) -> dict[str, Any]:
    """Return the batteries that designs (every design if none is named) need on a machine."""
    return json.loads(core.battery(designs, machine, cores, list(settings)))


def version() -> str:
    """Return the version of the simulator."""
    return core.version()


def simulator() -> str:
    """Return this process's simulator as text: its version, and a digest of its bytes."""
    return f"{version()} ({digest()[:16]})"


def digest() -> str:
    """Return a digest of the simulator that this process has loaded.

    It refuses a file that has been replaced since: that file is not what runs, and answers of the
    loaded simulator would be kept as those of another.
    """
    path = getattr(core, "__file__", None)
    return _digest(path) if path else _fingerprint(version().encode())


@cache
def _digest(path: str) -> str:
    text = Path(path).read_bytes()
    if path == _LOADED[0] and _stamp(path) != _LOADED[1]:
        raise InputError(f"{path} was rebuilt after this process loaded it; restart the process")
    return _fingerprint(text)


def _fingerprint(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:32]
