"""Text in the letters of the encoding of a terminal or a file."""

from __future__ import annotations

from typing import TextIO

#: The replacements of our tables' letters in an encoding that has only ASCII.
ASCII = str.maketrans({"·": ".", "†": "+", "‡": "#"})

#: A replacement of two letters by two, so that a table keeps its width.
PLUS_MINUS = ("± ", "+-")


def fitted(text: str, stream: TextIO) -> str:
    """Return text that the stream can print; any letter that it does not have is a `?`."""
    encoding = stream.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.replace(*PLUS_MINUS)
        return text.translate(ASCII).encode(encoding, "replace").decode(encoding)
    return text
