"""How the command begins and ends, whatever its streams are, and whoever presses Ctrl-C when."""

from __future__ import annotations

import builtins
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import indelible
from conftest import needs_core, needs_full
from indelible import benchmark, cli, pool
from indelible.cli import options, parser

#: Presses Ctrl-C when a module is looked for, in code that is made as a data class's is.
PRESSED = """
import sys

class Press:
    def find_spec(self, name, path, target=None):
        if name == {name!r}:
            exec("raise KeyboardInterrupt")

sys.meta_path.insert(0, Press())
"""


@pytest.mark.parametrize(
    ("is_terminal", "variable"), [(True, None), (True, ""), (True, "1"), (False, None)]
)
def test_verdicts_have_colours_on_a_terminal_alone(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    is_terminal: bool,
    variable: str | None,
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    monkeypatch.delenv("NO_COLOR", raising=False)
    if variable is not None:
        monkeypatch.setenv("NO_COLOR", variable)
    coloured = is_terminal and not variable
    red, green, off = ("\33[1;31m", "\33[32m", "\33[0m") if coloured else ("", "", "")
    options.show("FAIL 3/12,400, ok 400, token, FAIL: none, NOT CAUGHT WRONG, WRONG WITH IT")
    assert capsys.readouterr().out == (
        f"{red}FAIL 3/12,400{off}, {green}ok{off} 400, token, {red}FAIL{off}: none,"
        f" {red}NOT CAUGHT{off} {red}WRONG{off}, {red}WRONG WITH IT{off}\n"
    )


@pytest.mark.parametrize("name", ["cli", "_core", "extension", "verbs.run", "text", "cli.parser"])
def test_ctrl_c_in_an_import_is_an_interruption(tmp_path: Path, name: str) -> None:
    """A module that Python imports before any other presses it."""
    (tmp_path / "sitecustomize.py").write_text(PRESSED.format(name=f"indelible.{name}"))
    places = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "indelible", "run", "--design", "silo", "--workload", "hash"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": places},
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "indelible: interrupted\n"


@pytest.mark.parametrize(
    ("words", "own"), [(["list", "machines"], ["catalog"]), (["--version"], [])]
)
def test_a_command_imports_no_other_one(words: list[str], own: list[str]) -> None:
    """All of them take a tenth of a second, which a loop in a shell would pay for each run."""
    code = (
        f"import sys, conftest; from indelible.cli import main; main({words}); print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    imported = {*done.stdout.splitlines()[-1].split()}
    assert {*parser.COMMANDS.values()} & {
        name.removeprefix("indelible.cli.") for name in imported
    } == {*own}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["compare", "--vary", "machine=silo,ssp"], "; `sweep` and `reproduce` have it"),
        (["run", "--against", "optane"], "; `native` has it"),
        # What a letter more or less makes one of its own is told as that.
        (["run", "--designs", "silo"], "; did you mean `--design`?"),
        (["compare", "--varied", "x"], "; did you mean "),
    ],
)
def test_an_option_of_another_command_is_said_to_be_its(
    command: Callable[..., tuple[int, str, str]], words: list[str], said: str
) -> None:
    code, _, complaints = command(*words)
    told = f"indelible: error: unknown option `{words[1]}` of `indelible {words[0]}`{said}"
    assert (code, complaints.startswith(told), complaints.count("\n")) == (2, True, 1)


@needs_core
def test_without_stderr_the_exit_code_is_the_same() -> None:
    words = "-m indelible run --design foo --workload hash"
    done = subprocess.run(["sh", "-c", f'"$0" {words} 2>&-', sys.executable])
    assert done.returncode == 2


#: Flushes lines in the order of a set of texts.
HASHED = """
from indelible.templates.order import Template

class Hashed(Template):
    def __init__(self, setup):
        self.lines = [set() for _ in range(setup.shape.cores)]

    def fence(self, fence, below):
        mine = self.lines[fence.core]
        if fence.kind == "flush":
            return mine.add(f"{fence.line:x}")
        for late, line in enumerate(mine):
            below.flush(fence.core, fence.drained + late, int(line, 16))
        mine.clear()
        return below.fence(fence.core, fence.drained)
"""


@needs_core
def test_designs_answer_the_same_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "hashed.py").write_text(HASHED, encoding="utf-8")
    words = "-m indelible run --workload btree --machine tiny --txs 100 --json --design"
    unset = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    unset["PYTHONPATH"] = os.pathsep.join(sys.path)

    def cycles(**environment: str) -> int:
        done = subprocess.run(
            [sys.executable, *words.split(), "undo@./hashed.py"],
            cwd=tmp_path,
            env=unset | environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["cycles"]

    assert len({cycles() for _ in range(3)}) == 1
    # Whoever says another order has it.
    assert len({cycles(PYTHONHASHSEED=str(seed)) for seed in range(5)}) > 1


@needs_core
@needs_full
@pytest.mark.parametrize("redirected", ["2>/dev/full", ">/dev/full 2>&1"])
def test_where_no_sentence_can_be_written_the_exit_code_is_the_same(redirected: str) -> None:
    words = "-m indelible run --design foo --workload hash"
    done = subprocess.run(["sh", "-c", f'"$0" {words} {redirected}', sys.executable])
    assert done.returncode == 2


@needs_core
@needs_full
@pytest.mark.parametrize("words", ["--help", "--version", "run --help", "help compare", "cc"])
def test_help_that_cannot_be_written_is_an_error(words: str) -> None:
    said = ["sh", "-c", f'"$0" -m indelible {words} >/dev/full', sys.executable]
    done = subprocess.run(said, capture_output=True, text=True)
    told = "indelible: error: the output: no space left on device\n"
    assert (done.returncode, done.stderr) == (2, told)


def test_a_simulation_that_goes_on_ends_the_process_and_not_its_caller(
    command: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[int] = []
    monkeypatch.setattr(os, "_exit", left.append)
    # Libraries of tests before this one leave threads in the process.
    others, running = {*threading.enumerate()}, threading.enumerate
    monkeypatch.setattr(threading, "enumerate", lambda: [t for t in running() if t not in others])
    cli.leave(2)
    assert left == []
    is_over = threading.Event()
    goes_on = threading.Thread(target=is_over.wait, daemon=True)
    goes_on.start()
    try:
        assert (command("list", "designs")[0], left) == (0, [])
        cli.leave(2)
        assert left == [2]
    finally:
        is_over.set()
        goes_on.join()


def test_nothing_is_left_of_jobs_that_are_done(
    command: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    take = pool.Waiting.take

    def slowly(waiting: pool.Waiting) -> int | None:
        index = take(waiting)
        time.sleep(0.1 if index is None else 0)
        return index

    monkeypatch.setattr(pool.Waiting, "take", slowly)
    before = threading.active_count()
    assert command("compare", "--no-crash")[0] == 0
    assert threading.active_count() == before


def test_every_name_of_the_package_is_there() -> None:
    for name in indelible.__all__:
        assert getattr(indelible, name) is not None
        assert name in dir(indelible)
    with pytest.raises(AttributeError, match="module `indelible` has no `nosuch`"):
        _ = indelible.nosuch


def test_a_star_leaves_the_names_of_python_alone() -> None:
    told: dict[str, object] = {}
    exec("from indelible import *", told)
    assert told["compare"] is indelible.compare
    assert not {*told} & {*dir(builtins)}
    assert "list" in dir(indelible)
    assert indelible.list("machines")


def test_the_benchmark_is_a_call(fake: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = benchmark.CELLS[:2]
    monkeypatch.setattr(benchmark, "cells", lambda designs: cells)

    def measured(cell: benchmark.SpeedCell, txs: int, seed: int) -> dict[str, object]:
        if seed == 2 and cell is cells[1]:
            raise KeyboardInterrupt
        return {"design": cell.design, "txs": txs, "cpu_us_per_tx": 2.0}

    monkeypatch.setattr(benchmark, "_measured", measured)
    whole = indelible.bench(quick=True)
    assert [row["txs"] for row in whole["rows"]] == [cell.txs // 20 for cell in cells]
    assert not whole["cancelled"]
    with pytest.raises(indelible.Interrupted) as caught:
        indelible.bench(seed=2)
    assert len(caught.value.partial["rows"]) == 1
    with pytest.raises(indelible.InputError, match="`seed` must be a whole number"):
        indelible.bench(seed=-1)


def test_answers_have_the_rows_of_their_json(fake: ModuleType) -> None:
    compared = indelible.compare(["silo"], ["hash", "btree"], crash=False)
    swept = indelible.sweep(["silo"], ["hash"], {"cores": [1, 2]})
    for answer in (compared, swept):
        assert len(answer.rows) == 2
        assert answer.rows == answer.json()["rows"]


@needs_core
def test_the_host_s_time_zone_decides_nothing(tmp_path: Path) -> None:
    script = tmp_path / "zone.sql"
    hour = "strftime('%H', 0, 'unixepoch', 'localtime')"
    script.write_text(f"CREATE TABLE t(v);\nINSERT INTO t VALUES (zeroblob(1000 * {hour}));\n")
    asked = ["run", "--design", "silo", "--sql", str(script), "--cores", "1", "--txs", "3"]

    def written(zone: str) -> object:
        done = subprocess.run(
            [sys.executable, "-m", "indelible", *asked, "--json"],
            capture_output=True,
            check=True,
            env={**os.environ, "TZ": zone},
        )
        return json.loads(done.stdout)["pm_writes"]

    assert written("AWAY-9") == written("UTC")
