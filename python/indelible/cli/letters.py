"""Text in the letters that a terminal or a file has."""

from __future__ import annotations

from typing import TextIO

#: What stands for the letters of our tables where there is only ASCII.
ASCII = str.maketrans({"·": ".", "†": "+", "‡": "#"})

#: And of two letters, so that a table stays as wide as it is.
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
