"""Designs in Python that keep in variables what a power failure takes, or change at one."""

from __future__ import annotations

import importlib
import os
import sys
import sysconfig
from pathlib import Path

import pytest

import indelible
from conftest import Write, needs_core, write_class
from indelible import scripts

pytestmark = needs_core

#: The head of a design that imports a library.
ONCE = "import once\nfrom indelible.templates.design import Template"

EXAMPLES = Path(__file__).parents[2] / "examples" / "designs"

#: A design without a log in memory: the old values of words are in a variable.
NO_LOG = """
import part
from indelible.design import WAIT, Design

KEPT = {}

class D(Design):
    kept = {}

    def __init__(self, setup):
        self.lines = [{} for _ in range(setup.shape.cores)]
        self.unwritten = [0] * setup.shape.cores
        WHERE.update({core: [] for core in range(setup.shape.cores)})

    def store(self, store, below):
        if store.tx is not None:
            self.lines[store.core][store.line] = True
            WHERE[store.core].append((store.address, store.old))

    def commit(self, tx, below):
        lines, self.lines[tx.core] = self.lines[tx.core], {}
        self.unwritten[tx.core] = 1
        for late, line in enumerate(lines):
            self.unwritten[tx.core] += below.write_back(tx.stored + late, line, tell=tx.core)
        below.at(tx.stored + len(lines), tx.core)
        return WAIT

    def event(self, at, core, below):
        self.unwritten[core] -= 1
        if self.unwritten[core] == 0:
            WHERE[core] = []
            below.wake(core, at + self.shape.path)

    @classmethod
    def recover(cls, image, setup):
        for records in WHERE.values():
            for address, old in reversed(records):
                image.merge_word(address, old)
"""


@pytest.mark.parametrize("where", ["D.kept", "KEPT", "part.KEPT"])
def test_what_hooks_keep_in_variables_is_lost_with_the_power(tmp_path: Path, where: str) -> None:
    (tmp_path / "part.py").write_text("KEPT = {}\n", encoding="utf-8")
    path = tmp_path / "d.py"
    path.write_text(NO_LOG.replace("WHERE", where), encoding="utf-8")
    crash = indelible.crash(path, "scribble", txs=10, points=100, lives=1)
    assert {violation["text"].partition(":")[0] for violation in crash.violations} == {"atomicity"}


def test_what_modules_of_the_caller_keep_is_lost_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program may have imported them before, and goes on with its own."""
    (tmp_path / "part.py").write_text("KEPT = {}\n", encoding="utf-8")
    path = tmp_path / "d.py"
    path.write_text(NO_LOG.replace("WHERE", "part.KEPT"), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "part", raising=False)
    mine = importlib.import_module("part")
    crash = indelible.crash(path, "scribble", txs=10, points=100, lives=1)
    assert crash.failed
    assert sys.modules["part"] is mine
    assert not mine.KEPT
    del sys.modules["part"]


def test_a_library_in_the_folder_of_a_design_is_loaded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project's folder has its libraries in `.venv`, and some cannot be loaded twice."""
    folder = Path(os.path.realpath(tmp_path))
    packages = folder / ".venv" / "lib" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "once.py").write_text(
        "import os\nassert not os.environ.get('ONCE')\nos.environ['ONCE'] = 'loaded'\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("ONCE", "")
    monkeypatch.syspath_prepend(packages)
    paths = sysconfig.get_paths() | {"purelib": str(packages)}
    monkeypatch.setattr(sysconfig, "get_paths", lambda: paths)
    write_class(folder / "d.py", "Template", "pass", ONCE)
    assert indelible.crash(folder / "d.py", "scribble", txs=5, points=20).passed
    assert "once" in sys.modules
    assert not scripts.imported(str(folder / "d.py"))
    del sys.modules["once"]


def test_what_a_later_life_keeps_in_variables_is_lost_too(tmp_path: Path) -> None:
    path = tmp_path / "d.py"
    write_class(
        path,
        "Template",
        "kept = []\n"
        "def store(self, store, below):\n"
        "    D.kept.append(store.address)\n"
        "    return super().store(store, below)\n"
        "@classmethod\n"
        "def recover(cls, image, setup):\n"
        "    assert not cls.kept\n"
        "    super().recover(image, setup)\n"
        "@classmethod\n"
        "def boot(cls, image, setup):\n"
        "    assert not cls.kept\n"
        "    return super().boot(image, setup)",
        "from indelible.templates.design import Template",
    )
    crash = indelible.crash(path, "scribble", txs=20, points=200, lives=3)
    assert crash.passed, str(crash)
    assert crash.boots > 8


def test_what_an_interrupted_recovery_keeps_is_lost_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not each time, since to load a file takes as long as a power failure."""
    path = tmp_path / "d.py"
    body = "pass"
    head = "import os\nfrom indelible.templates.design import Template\nos.environ['LOADED'] += '.'"
    write_class(path, "Template", body, head)
    loaded = {}
    for nested in (False, True):
        monkeypatch.setenv("LOADED", "")
        crash = indelible.crash(path, "scribble", txs=20, lives=1, nested=nested)
        assert crash.passed
        loaded[nested] = len(os.environ["LOADED"])
    assert loaded[False] < 5
    assert loaded[False] < loaded[True] < crash.points / 16


def test_a_design_is_loaded_anew_from_what_was_read(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    (folder / "package").mkdir(parents=True)
    files = {
        "d.py": "import part\nfrom package import inner\nfrom indelible.design import Design\n"
        "class D(Design):\n    kept = []\n    parts = part, inner\n",
        "part.py": "KEPT, TEXT = [], 'old'\n",
        "package/__init__.py": "",
        "package/inner.py": "from package import __name__ as name\nKEPT, TEXT = [], 'old'\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    first, _, _ = scripts.find(str(folder / "d.py"))
    for kept in (first.kept, *(part.KEPT for part in first.parts)):
        kept.append(1)
    for name in files:
        (folder / name).write_text("TEXT = 'new'\n", encoding="utf-8")
    anew = scripts.anew(first)
    assert anew is not first
    assert (anew.kept, [part.KEPT for part in anew.parts]) == ([], [[], []])
    assert [part.TEXT for part in anew.parts] == ["old", "old"]
    # One that was typed has no text to be loaded from.
    assert scripts.anew(type("Typed", (), {})).__name__ == "Typed"


def changed(name: str, old: str, new: str, to: Path) -> str:
    """Write an example with something else in it."""
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    assert old in text
    to.write_text(text.replace(old, new), encoding="utf-8")
    return str(to)


def test_who_takes_out_what_it_saves_is_told_so(tmp_path: Path) -> None:
    """Nothing else is wrong with it, and without that it would be convicted of something else."""
    path = changed(
        "battery.py",
        "            for index, log in enumerate(logs):\n",
        "            for index in range(len(logs)):\n                log = core.logs.pop(0)\n",
        tmp_path / "d.py",
    )
    crash = indelible.crash(path, "scribble", txs=20)
    texts = {violation["text"] for violation in crash.violations}
    assert len(texts) == 1
    assert texts.pop().startswith("determinism: `power_loss` changes the design")


def test_who_counts_what_it_saves_is_told_so(tmp_path: Path) -> None:
    path = changed(
        "battery.py",
        "            gasp.save_words(core.base, [core.spilled, len(logs)])\n",
        "            gasp.save_words(core.base, [core.spilled, len(logs)])\n"
        "            core.spilled += len(logs)\n",
        tmp_path / "d.py",
    )
    texts = {violation["text"] for violation in indelible.crash(path, "hash", txs=20).violations}
    assert [text.partition(" changes")[0] for text in texts] == ["determinism: `power_loss`"]


def test_who_changes_when_it_is_asked_about_a_power_failure_is_told_so(write: Write) -> None:
    """Of other hooks that is the end of the run."""
    leaves = write(
        "asked = 0\ndef leaves_behind(self, line):\n    self.asked += 1\n"
        "    return self.asked % 2 == 0"
    )
    crash = indelible.crash(leaves, "hash", txs=5, set={"controller.domain": "eadr"})
    told = "determinism: `leaves_behind` changes the design"
    assert told in crash.violations[0]["text"], str(crash)
    tries = write(
        "model = 'fenced'\nasked = 0\ndef could_be_durable(self, below, arrived):\n"
        "    self.asked += 1\n"
        "    dirty = below.dirty_lines() if self.asked % 2 else []\n"
        "    return [(line, below.line(line)) for line in dirty if arrived()]"
    )
    told = "determinism: `could_be_durable` changes the design"
    assert told in indelible.crash(f"undo@{tries}", "hash", txs=5).violations[0]["text"]
