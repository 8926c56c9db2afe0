"""Files that commands write: before the answer is printed, and not over what they read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import indelible
from conftest import needs_core
from indelible.cli import main

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


def write_inputs(folder: Path) -> None:
    """Write files that commands read."""
    (folder / "s.sql").write_text("SELECT 1;\n")
    (folder / "far.toml").write_text('extends = "tiny"\n')
    (folder / "kv").write_text("a program\n")


@pytest.mark.parametrize(
    "command",
    [
        "compare --designs silo --workloads sqlite --sql s.sql --csv ./s.sql",
        "sweep --designs silo --workloads hash --machine far.toml --vary cores=1 --csv far.toml",
        "trace --design silo --workload hash --machine far.toml --out far.toml",
        "record --out kv -- ./kv",
    ],
)
def test_no_output_replaces_an_input(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_inputs(tmp_path)
    before = {path.name: path.read_text() for path in tmp_path.iterdir()}
    monkeypatch.chdir(tmp_path)
    assert main(command.split()) == 2
    assert "this command reads that file; name another one" in capsys.readouterr().err
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == before
