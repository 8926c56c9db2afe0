"""What a design in Python says of a run that does not fit it, told from a mistake of the design."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: How an error begins of which it is known where in a script it was raised.
PLACE = re.compile(r"[^\n]+:[0-9]+: in [^\n]+: ")

#: While jobs run: the sentences for the user that designs have raised as an `InputError`.
_sentences: set[str] = set()


def sentence(text: str) -> str:
    """Remember that a text is a sentence of a design for the user, and return it."""
    _sentences.add(text)
    return text


def forget() -> None:
    """Forget the sentences, since no job runs that could end with one."""
    _sentences.clear()


def is_mistake(text: str, names: Iterable[str]) -> bool:
    """Return whether the error of a run says that its design, which has these names, is wrong.

    A place in a script or a name of the design is in front of it then. What the design says itself,
    with an `InputError` or `below.give_up`, is that what was asked for does not fit it.
    """
    is_named = text.startswith(tuple(f"{name}:" for name in names))
    return text not in _sentences and (is_named or PLACE.match(text) is not None)
