"""What every answer of runs says of its origin: what was set, and the command that repeats it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from indelible import extension
from indelible.commands import as_json
from indelible.settings import Pairs


def origin(command: str, settings: Pairs | Mapping[str, str] = ()) -> dict[str, Any]:
    """Return the fields that end the JSON of every answer of runs."""
    command_line = as_json(command)
    return {"settings": dict(settings), "command": command_line, "version": extension.version()}
