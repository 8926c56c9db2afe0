"""What transactions of a program of one's own write, on the real simulator."""

from __future__ import annotations

from pathlib import Path

import pytest

import indelible
from conftest import needs_core
from indelible import cli

pytestmark = needs_core


def test_files_are_characterized_with_what_a_run_says_of_them(tmp_path: Path) -> None:
    trace, script = tmp_path / "store.trace", tmp_path / "mine.sql"
    trace.write_text("region 0x0 4096\nmeasured\nstore 0x8 1\nflush 0x8\nfence\n")
    script.write_text("CREATE TABLE t(a);\n-- measured\nINSERT INTO t VALUES (1);\n")
    answer = indelible.characterize(replay=trace, sql=script, txs=20)
    rows = {row["workload"]: row for row in answer["rows"]}
    assert rows["sqlite"]["lines_avg"] > 0
    assert rows["replay"]["lines_avg"] == 0
    note = "replay: no transaction of the trace stored to persistent memory"
    assert any(line.startswith(note) for line in answer["notes"])
    assert note in " ".join(str(answer).split())


def test_a_workload_that_cannot_be_run_is_left_out() -> None:
    asked = {"set": {"hash.items": 10**9}, "txs": 20}
    answer = indelible.characterize(["array", "hash"], **asked)
    assert [row["workload"] for row in answer["rows"]] == ["array"]
    (refused,) = answer["refused"]
    assert refused["workload"] == "hash"
    assert "hash.items" in refused["reason"]
    assert "not run     hash: " in str(answer)
    assert cli.main(["characterize", "--workloads", "array,hash", "--set", "hash.items=1000000000"])
    with pytest.raises(indelible.InputError, match="hash needs"):
        indelible.characterize(["hash"], **asked)


def test_its_title_has_the_numbers_that_the_machine_chose() -> None:
    answer = indelible.characterize(["array"], "tiny", cores=None, txs=None)
    assert answer["cores"] == 4
    assert f" · 4 cores · seed 1 · {answer['txs']:,} transactions a core" in str(answer)
