"""What is told of litmus tests with too many orders to try every one."""

from __future__ import annotations

import json
from collections.abc import Callable


def test_it_is_told_where_not_every_order_was_tried(
    command: Callable[..., tuple[int, str, str]],
) -> None:
    words = ["litmus", "--order", "hops", "--order", "wide"]
    code, shown, _ = command(*words)
    assert code == 0
    told = " ".join(shown.partition("\nsampled ")[2].partition("\nrepeat ")[0].split())
    assert told.endswith(
        "may still be possible: two_stores on wide (17 power failures), older_value_returns on"
        " wide (17 power failures)"
    )
    rows = json.loads(command(*words, "--json")[1])["rows"]
    assert [row["sampled"] for row in rows] == [0, 17, 0, 17]
    assert "sampled" not in command("litmus", "--order", "hops")[1]
