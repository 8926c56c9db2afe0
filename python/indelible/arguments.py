"""The arguments of calls, checked: a value of any library becomes Python's own, or is refused."""

from __future__ import annotations

import operator
import os
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any, TypeVar

from indelible import scripts
from indelible.errors import InputError
from indelible.names import unknown

Thing = TypeVar("Thing")

#: A file's path, or a machine by its name or the path of the file that describes it.
FileName = str | os.PathLike[str]

#: A design by its name, the path of its file, or its class.
DesignName = FileName | type

#: The largest number that JSON readers and Rust agree on.
WHOLE_MAX = 2**63 - 1

#: The arguments that name designs.
DESIGNS = ("design", "designs", "normalize", "name", "orders")

#: The least value of the arguments that cannot be 0.
LEAST = {"cores": 1, "txs": 1, "points": 1, "lives": 1, "event": 1, "leave_out": 1, "trials": 1}


def whole(name: str, value: object, least: int = 0, most: int = WHOLE_MAX) -> int:
    """Return a whole number of any library as Python's `int`, or refuse anything else."""
    try:
        number = -1 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = -1
    least = max(least, LEAST.get(name, 0))
    if number > most == WHOLE_MAX:
        raise InputError(f"`{name}` is too large: {value!r}")
    if not least <= number <= most:
        raise InputError(f"`{name}` must be a whole number {span(least, most)}, not {value!r}")
    return number


def above_zero(name: str, value: object) -> float:
    """Return a positive number of any library as Python's `float`, or refuse anything else."""
    if isinstance(value, bool) or not isinstance(value, Real) or not value > 0:  # type: ignore[operator]
        raise InputError(f"`{name}` must be a number above 0, not {value!r}")
    try:
        return float(value)
    except OverflowError:
        raise InputError(f"`{name}` is too large") from None


def truth(name: str, value: object) -> bool:
    """Return a truth value, or refuse anything else: to Python a word such as `no` is true."""
    if not is_truth(value):
        raise InputError(f"`{name}` must be True or False, not {value!r}")
    return bool(value)


def is_truth(value: object) -> bool:
    """Return whether a value is a truth value, of Python or of numpy (as in tables of pandas)."""
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    return isinstance(value, bool) or (kind == "b" and getattr(value, "ndim", None) == 0)


def span(least: int, most: int) -> str:
    """Return a range in words, without an upper limit that is only that of our formats."""
    return f"from {least} up" if most == WHOLE_MAX else f"from {least} to {most}"


def named(what: str, value: object) -> str:
    """Return a name or a path as text, or refuse anything else; a class is a design in Python."""
    if isinstance(value, (type, scripts.Named)) and what in DESIGNS:
        return scripts.named(value)
    if not isinstance(value, (str, os.PathLike)) or "\0" in os.fsdecode(value):
        several = f"; `sweep` takes several: vary={{'machine': {value!r}}}"
        hint = several if what == "machine" and isinstance(value, (list, tuple)) else ""
        raise InputError(f"`{what}` must be a name, not {value!r}{hint}")
    return readable(what, os.fsdecode(value))


def shell_text(what: str, value: object) -> str:
    """Return a command for a shell as text, or refuse anything else: its words are no text."""
    if isinstance(value, (str, os.PathLike)):
        return named(what, value)
    words = value if isinstance(value, (list, tuple)) else ()
    is_command = bool(words) and all(isinstance(word, str) for word in words)
    text = shlex.join(words) if is_command else "python3 verify.py"
    raise InputError(f"`{what}` must be a command as one text, not {value!r}; write {text!r}")


def one_of(what: str, name: object, there: Mapping[str, Thing]) -> Thing:
    """Return the thing with a name, or refuse and list the known names."""
    name = named(what, name)
    if name not in there:
        raise unknown(what, name, there)
    return there[name]


def readable(what: str, text: str) -> str:
    """Return a text that can be passed on, or refuse one that is not valid UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"`{what}` must be text in UTF-8, not {text!r}") from None
    return text


def listed(what: str, value: object) -> tuple[str, ...]:
    """Return a list of names, or of the one name that stands alone, or refuse anything else."""
    if isinstance(value, str):
        return (named(what, value),)
    if isinstance(value, (set, frozenset)):
        # The first design is 1.00, and a set's first element differs from process to process.
        raise InputError(f"`{what}` must be a list, not a set, which has no order")
    found = tuple(value) if isinstance(value, Iterable) else (value,)
    if not all(isinstance(name, (str, os.PathLike, type)) for name in found):
        raise InputError(f"`{what}` must be a list of names, not {value!r}")
    require_distinct(what, found)
    return tuple(named(what, name) for name in found)


def require_distinct(what: str, found: Iterable[object]) -> None:
    """Refuse different classes of one name among designs: each would be taken for the other."""
    own = (one.design if isinstance(one, scripts.Named) else one for one in found)
    classes = dict.fromkeys(one for one in own if isinstance(one, type))
    for name, times in Counter(one.__name__ for one in classes).items():
        if times > 1:
            raise InputError(
                f"`{what}` has {times} classes called {name}; choose another name for one"
            )


def worded(what: str, value: object) -> tuple[str, ...]:
    """Return the words of a command, or refuse anything else: a text would split into letters."""
    several = isinstance(value, Iterable) and not isinstance(value, (str, bytes))
    found: tuple[Any, ...] = tuple(value) if several else (None,)  # type: ignore[arg-type]
    if not all(isinstance(word, (str, os.PathLike)) for word in found):
        raise InputError(
            f"`{what}` must be a list of words such as ['./program', 'pool'], not {value!r}"
        )
    decoded = tuple(map(os.fsdecode, found))
    for word in decoded:
        if "\0" in word:
            raise InputError(f"a word of `{what}` must not contain a NUL: {word!r}")
    return decoded
