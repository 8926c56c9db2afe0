"""What stands for the command that repeats an answer where a design is a class."""

from __future__ import annotations

import importlib
import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import indelible
from conftest import needs_core
from indelible.cli import main
from indelible.design import Design

pytestmark = needs_core

#: A design that is not right, so that there is something to show of it.
DESIGN = """
from indelible.design import Design, Param

class {name}(Design):
    durability = "synchronous"
    params = {{"records": Param(4)}}
"""


class Own(Design):
    """One of two designs of this file, which so cannot stand for it."""

    durability = "synchronous"


class Other(Design):
    """The other one."""

    durability = "none"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("one_design", None)


def of_module(text: str) -> ModuleType:
    """Return a module `one_design` of the working directory that has this text."""
    Path("one_design.py").write_text(text)
    return importlib.import_module("one_design")


def test_the_one_design_of_a_module_is_named_by_its_file(
    capsys: pytest.CaptureFixture[str],
) -> None:
    mine = of_module(DESIGN.format(name="Mine")).Mine
    settings = {"Mine.records": 5, "Mine.pm.xpbuffer_entries": 4}
    table = indelible.compare([mine, "silo"], ["queue"], "tiny", cores=1, txs=20, set=settings)
    words = shlex.split(table.command)
    assert words[2:4] == ["--designs", "./one_design.py,silo"]
    assert words[words.index("--normalize") + 1] == "./one_design.py"
    assert "--set one_design.records=5 --set one_design.pm.xpbuffer_entries=4" in table.command
    assert main([*words[1:], "--json"]) == 1, "it fails its crash test"
    again = json.loads(capsys.readouterr().out)
    assert again["command"] == table.command == table.json()["command"]
    assert [row["cycles"] for row in again["rows"]] == [row["cycles"] for row in table.rows]
    run = indelible.run(mine, "queue", "tiny", cores=1, txs=20, set={"design.records": 5})
    assert "crash test  indelible crash --design ./one_design.py " in str(run)
    assert "repeat      indelible run --design ./one_design.py " in str(run)


def test_fields_that_are_asked_for_are_those_of_the_file() -> None:
    mine = of_module(DESIGN.format(name="Mine")).Mine
    fields = ["Mine.records", "controller.wpq"]
    causes = indelible.why([mine], ["queue"], "tiny", txs=20, fields=fields, crash=False)
    assert " --fields one_design.records,controller.wpq " in causes.command
    fields = ["Mine", "design"]
    causes = indelible.why([mine], ["queue"], "tiny", txs=20, fields=fields, crash=False)
    assert " --fields one_design,design " in causes.command
    assert main(shlex.split(causes.command)[1:]) == 0


def test_a_log_stays_on_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = DESIGN.format(name="Hardware").replace('durability = "synchronous"', 'model = "fenced"')
    hardware = of_module(text).Hardware
    asked = {"cores": 1, "txs": 5, "set": {"design.records": 5}}
    run = indelible.run(hardware.under("undo"), "queue", "tiny", **asked)
    assert " --design undo@./one_design.py " in run.command
    assert main(shlex.split(run.command)[1:]) == 0
    # Elsewhere the path is a whole one.
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert f" --design undo@{tmp_path}/one_design.py " in run.command


def test_a_class_of_no_file_is_named_in_place_of_a_command() -> None:
    run = indelible.run(Own, "queue", "tiny", cores=1, txs=20)
    assert str(run).endswith("\nrepeat      in Python, with the class Own")
    assert run.json()["command"] is None
    crash = indelible.crash(Own, "queue", cores=1, txs=20)
    assert "timeline    in Python, with the class Own\n" in str(crash)
    answer = crash.json()
    assert (answer["command"], answer["violations"][0]["replay"]) == (None, None)
    assert answer["violations"][0]["timeline"] is None
    swept = indelible.sweep([Own, "silo"], ["queue"], {"controller.wpq": [8]}, "tiny", txs=20)
    assert swept.json()["command"] is None
    timeline = indelible.trace(Own, "queue", "tiny", txs=5)
    assert timeline.command == "in Python, with the class Own"


def test_files_that_are_written_say_so() -> None:
    pytest.importorskip("jinja2")
    table = indelible.compare([Own, Other, "silo"], ["queue"], "tiny", cores=1, txs=20)
    told = "in Python, with the classes Own and Other"
    table.save_table("table.tex")
    assert Path("table.tex").read_text().startswith(f"% {told}\n")
    table.report("table.html")
    page = Path("table.html").read_text()
    assert f"<p>The same runs are made {told} and Indelible" in page
    assert "This command, with" not in page
    by_design = {row["design"]: row["crash"]["command"] for row in table.json()["rows"]}
    assert by_design["Own"] is None
    assert by_design["silo"].startswith("indelible crash --design silo ")
