"""Files are written before the answer is printed, whose reader may stop reading."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import indelible
from conftest import needs_core

COMPARE = "compare --designs undo@x86,silo --workloads hash --machine tiny --txs 20 --no-crash"


@needs_core
def test_a_reader_that_goes_leaves_the_files(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "indelible", *COMPARE.split(), "--json", "--csv", "a.csv"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
    assert process.returncode == 141
    assert (tmp_path / "a.csv").read_text().count("\n") == 3


@needs_core
def test_a_verdict_is_found_by_the_machine_s_number_of_cores() -> None:
    """A cell may be named in every way in which its value is found."""
    answer = indelible.compare(["silo"], ["hash"], machine="tiny", txs=20)
    assert answer.crash(("silo", "hash", 4))["verdict"] == "ok"
    with pytest.raises(indelible.InputError, match="tyop"):
        answer.crash(("tyop", "hash", 4))
