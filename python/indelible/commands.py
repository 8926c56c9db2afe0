"""The command lines that repeat answers, from their words."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from indelible.errors import InputError
from indelible.scripts import SUFFIX, called, class_of, design_of, parts

if TYPE_CHECKING:
    from indelible.experiment import Script
    from indelible.settings import Pairs


#: The flags of designs and orders, with commas between them, those of settings, and the one of
#: fields and sections, with commas between them, too.
DESIGNS = ("--design", "--designs", "--normalize", "--order")
FIELDS = ("--set", "--vary")
SECTIONS = "--fields"


class InPython(str):
    """What is said in place of a command line, where a design is a class that no file is.

    It says that, whatever options would follow.
    """

    __slots__ = ()

    @staticmethod
    def of(classes: Sequence[str]) -> InPython:
        """Return what is said of designs with these names."""
        *others, last = classes
        names = f"es {', '.join(others)} and {last}" if others else f" {last}"
        return InPython(f"in Python, with the class{names}")

    def __add__(self, options: str) -> InPython:
        return self


def line(*words: str | Sequence[str]) -> str:
    """Return a command line, of words and of lists of them; designs that are classes are files.

    `InPython` if there is a class among them that is not the one design of a module's file.
    """
    each = [[word] if isinstance(word, str) else word for word in words]
    flat = [word for several in each for word in several]
    named = [name for flag, value in pairwise(flat) if flag in DESIGNS for name in value.split(",")]
    files = {name: _file_of(name, design) for name in named if (design := class_of(name))}
    if classes := [name for name, file in files.items() if file is None]:
        return InPython.of(classes)
    return shlex.join(["indelible", *_with_files(flat, files)] if files else ["indelible", *flat])


def as_json(value: Any) -> Any:  # noqa: ANN401
    """Return a value for JSON, with null in place of each command line that there is not."""
    if isinstance(value, Mapping):
        return {key: as_json(own) for key, own in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(own) for own in value]
    return None if isinstance(value, InPython) else value


def _file_of(name: str, design: type) -> str | None:
    """Return how the command line names a class, as the one design of its module's file.

    None if it is of none, as that of a notebook. What is in a package may need the rest of that,
    and a program that is running may do more than to define it.
    """
    module = sys.modules.get(design.__module__)
    file = getattr(module, "__file__", None)
    is_alone = design.__module__ != "__main__" and "." not in design.__module__
    if module is None or not is_alone or not file or not file.endswith(SUFFIX):
        return None
    try:
        if design_of(module, file) is not design:
            return None
    except InputError:
        return None
    path = os.path.relpath(file)
    path = file if path.startswith(os.pardir) else os.path.join(os.curdir, path)
    log = parts(name)[0]
    return (f"{log}@{path}" if log else path) if os.path.isfile(path) else None


def _with_files(words: Sequence[str], files: Mapping[str, str | None]) -> list[str]:
    """Return the words of a command line with files in place of classes, also in settings."""
    sections = {called(name): called(file) for name, file in files.items() if file is not None}

    def field(word: str) -> str:
        section, dot, rest = word.partition(".")
        return sections.get(section, section) + dot + rest

    def word(flag: str, word: str) -> str:
        if flag in DESIGNS:
            return ",".join(files.get(name) or name for name in word.split(","))
        if flag == SECTIONS:
            return ",".join(map(field, word.split(",")))
        return field(word) if flag in FIELDS else word

    return [word(*pair) for pair in pairwise(["", *words])]


def flag(name: str, value: object) -> list[str]:
    """Return a flag with its value or its list of values; a switch that is on has none.

    Nothing for a switch that is off, and for no value.
    """
    if value is None or value is False or value in ([], ()):
        return []
    several = value if isinstance(value, (list, tuple)) else [value]
    return [name] if value is True else [name, ",".join(map(str, several))]


def flags(of: object, *names: str) -> list[str]:
    """Return the flags that are called as these attributes of an object."""
    each = (flag(f"--{name.replace('_', '-')}", getattr(of, name)) for name in names)
    return [word for words in each for word in words]


def sets(settings: Pairs) -> list[str]:
    """Return the flags of settings."""
    return [word for pair in settings for word in ("--set", "=".join(pair))]


def reads(scripts: Iterable[Script]) -> list[str]:
    """Return the flags of the files that workloads read."""
    return [word for script in scripts for word in (script.flag, script.path)]
