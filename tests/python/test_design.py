"""Designs in Python, on the real simulator: they are held to what those in Rust are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import indelible
from conftest import Write, needs_core, refused
from indelible import design, scripts
from indelible.design import LINE, TAKEN, WAIT, Design, Param, Structure

pytestmark = needs_core

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "designs"
UNDO_LOG = str(EXAMPLES / "undo_log.py")

#: Caches survive in part: the lines with the lowest addresses, which are data and no records.
SOME_ENERGY = {"controller.domain": "eadr", "controller.flush_bytes": "256B"}


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the path of what `new` writes."""
    monkeypatch.chdir(tmp_path)
    return indelible.new("design", "mine").file


def run_of(path: str) -> indelible.Run:
    return indelible.run(path, "scribble", "tiny", cores=2, txs=20)


# What is written to begin with, and the examples.


def test_what_one_begins_with_is_right_and_each_of_its_rules_is_needed(mine: str) -> None:
    crash = indelible.crash(mine, "hash", txs=60, mutants=True, trials=8)
    assert crash.passed, str(crash)
    assert crash.mutants
    assert crash.trials["runs"] == 8
    for workload in ("btree", "queue"):
        assert indelible.crash(mine, workload, cores=4, txs=30, points=300, lives=3).passed
    assert indelible.crash(mine, "scribble", txs=40, set=SOME_ENERGY).passed


def test_what_one_begins_with_says_what_to_do_next(mine: str) -> None:
    with pytest.raises(
        indelible.InputError, match=r"^mine\.py: already exists; choose another name$"
    ):
        indelible.new("design", "mine.py")
    assert refused(lambda: indelible.new("design", "1x")).startswith("`1x` cannot be the name")
    assert (
        refused(lambda: indelible.new("machine", "x"))
        == "unknown kind `machine`; there are: design, order"
    )
    assert "there is no directory" in refused(lambda: indelible.new("design", "no/x"))
    assert "a section `core`" in refused(lambda: indelible.new("design", "core"))
    assert "there already is a `hash`" in refused(lambda: indelible.new("design", "hash"))
    assert "there already is a `loc_kiln`" in refused(lambda: indelible.new("design", "loc_kiln"))
    answer = indelible.new("design", "my-log")
    assert answer.json() == {"file": "./my-log.py", "design": "MyLog", "kind": "design"}
    assert "--design ./my-log.py" in str(answer)
    assert indelible.new("design", "ourUndo_log").design == "OurUndoLog"
    assert indelible.explain(answer.file)["file"] == answer.file


@pytest.mark.parametrize("name", ["behind", "battery", "undo_log"])
def test_examples_are_right(name: str) -> None:
    path = str(EXAMPLES / f"{name}.py")
    crash = indelible.crash(path, "hash", txs=30, points=300, mutants=name != "undo_log", trials=3)
    assert crash.passed, str(crash)
    small = CACHES | {"controller.count": 2}
    for workload in ("scribble", "queue"):
        crash = indelible.crash(path, workload, cores=3, txs=30, points=300, lives=3, set=small)
        assert crash.passed, str(crash)
    assert indelible.crash(path, "scribble", txs=40, set=SOME_ENERGY).passed


#: Caches from which lines leave before their entries are durable.
CACHES = {"llc.size": "256B", "l2.size": "128B", "l1d.size": "128B"}


@pytest.mark.parametrize(
    ("machine", "entries", "settings"),
    [
        ("silo", 64, {}),
        ("ssp", 4, {}),
        ("tiny", 4, {"controller.domain": "eadr"}),
        ("tiny", 64, {"controller.domain": "media"}),
        ("tiny", 64, CACHES),
        ("tiny", 64, CACHES | {"controller.count": 2}),
    ],
)
def test_a_design_in_python_takes_the_same_cycles_as_in_rust(
    machine: str, entries: int, settings: dict[str, object]
) -> None:
    own = {"id", "config", "design", "command", "host", "settings"}
    for workload, cores, seed in (("hash", 1, 1), ("btree", 2, 2), ("queue", 4, 3)):
        rust, python = (
            indelible.run(
                name,
                workload,
                machine,
                cores=cores,
                txs=100,
                seed=seed,
                set={"design.entries": entries} | settings,
            ).json()
            for name in ("undo-log", UNDO_LOG)
        )
        assert {k: v for k, v in rust.items() if k not in own} == {
            k: v for k, v in python.items() if k not in own
        }


def test_its_mutants_are_caught_where_those_of_the_rust_design_are() -> None:
    told = ("rule", "caught", "seed", "event", "workload", "cores", "txs")
    rust, python = (
        [
            [row.get(key) for key in told]
            for row in indelible.crash(name, "scribble", txs=20, mutants=True).mutants
        ]
        for name in ("undo-log", UNDO_LOG)
    )
    assert rust == python


# Trials.


def test_what_says_that_it_needs_nothing_is_tried_with_the_cells_alone(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    """A record that is torn counts as whole, and controllers take whole lines."""
    from indelible.cli import main
    from indelible.templates.design import Template

    class Torn(Template):
        needs = "nothing"

    assert indelible.crash(Torn, "hash", txs=40).passed
    crash = indelible.crash(Torn, "hash", txs=40, trials=20)
    assert crash.failed
    assert crash.trials["wrong"]["settings"]["controller.domain"] == "media"
    path = write("needs = 'nothing'")
    assert main(["explain", path]) == 0
    assert "needs       nothing" in capsys.readouterr().out
    assert indelible.explain("order:bbb")["needs"] == "adr"
    title = str(indelible.crash("undo-log", "array", txs=2, set={"controller.domain": "media"}))
    assert title.splitlines()[0].endswith("· seed 1 · domain media")


def test_trials_find_what_an_ordinary_campaign_does_not(tmp_path: Path) -> None:
    """Without its jump by a lap the example takes records of the last life for its own."""
    text = (EXAMPLES / "behind.py").read_text(encoding="utf-8")
    assert "end + area.records" in text
    path = tmp_path / "wrong.py"
    path.write_text(text.replace("end + area.records", "end"), encoding="utf-8")
    assert indelible.crash(path, "hash", txs=60).passed
    crash = indelible.crash(path, "hash", txs=60, points=100, trials="all")
    assert crash.failed
    assert not crash.violations
    wrong = crash.trials["wrong"]
    assert wrong["life"] > 1
    assert "trials      FAIL, the last of " in str(crash)
    assert wrong["replay"] in " ".join(str(crash).replace("\\\n", " ").split())
    again = subprocess.run(
        [sys.executable, "-m", "indelible", *wrong["replay"].split()[1:]],
        check=False,
        capture_output=True,
    )
    assert again.returncode == 1


def test_trials_are_of_the_designs_in_rust_too() -> None:
    crash = indelible.crash("silo", "hash", txs=10, points=10, trials=6)
    assert crash.passed
    assert crash.trials["runs"] == 6
    assert "\ntrials      6 runs of scribble on small machines, " in str(crash)
    without = indelible.crash(
        "silo", "hash", txs=1, points=1, trials=40, without="undo_newest_first"
    )
    assert without.failed
    assert refused(lambda: indelible.crash("silo", "hash", trials=0)).startswith(
        "`trials` must be a whole"
    )


# Names.


class Lazy(Design):
    """Nothing is durable."""

    durability = "none"
    params = {"small": Param(3, 1, 9, "A number.")}  # noqa: RUF012


def test_trials_that_were_interrupted_before_the_first_are_no_failure(
    fake: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = fake.crash
    none = {"runs": 0, "points": 0, "checked": 0, "refused": 0, "refusal": "", "wrong": None}
    for early, said in (
        ({"cancelled": True, "trials": none}, "trials      none: interrupted before"),
        ({"trials": none | {"refused": 3, "refusal": "too small"}}, "FAIL, nothing was tried"),
    ):
        monkeypatch.setattr(
            fake, "crash", lambda *a, early=early: json.dumps(json.loads(whole(*a)) | early)
        )
        answer = indelible.crash("silo", "hash", trials=6)
        assert said in str(answer)
        assert answer.checked, "the campaign itself was"
        assert ("FAIL" in str(answer)) == ("cancelled" not in early) == answer.failed


def test_a_class_is_a_design() -> None:
    table = indelible.compare(["silo", Lazy], ["queue"], "tiny", cores=1, txs=20, normalize=Lazy)
    assert [row["design"] for row in table.rows] == ["silo", "Lazy"]
    assert "Lazy" in str(table)
    assert indelible.explain(Lazy)["summary"] == "Nothing is durable"
    assert indelible.run(Lazy, "queue", "tiny", txs=5, set={"Lazy.small": 9}).design == "Lazy"
    assert "it takes 1 to 9" in refused(
        lambda: indelible.run(Lazy, "queue", "tiny", txs=5, set={"design.small": 10})
    )
    assert refused(lambda: indelible.run(int, "queue")).startswith("int is not a design; derive it")
    other = type("Lazy", (Design,), {})
    assert "2 classes called Lazy" in refused(lambda: indelible.compare([Lazy, other], ["queue"]))
    assert "there already is" in refused(
        lambda: indelible.run(type("silo", (Design,), {}), "queue")
    )


TYPED = """
from indelible.design import Design
class Typed(Design):
    durability = "none"
    def __init__(self, setup): self.stores = 0
    def store(self, store, below): self.stores += 1
    def counters(self): return {"stores": self.stores}
"""

NOTEBOOK = """
import linecache, sys
import indelible
for text in sys.argv[1:]:
    name = f"/tmp/{id(text)}.py"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    exec(compile(text, name, "exec"))
    run = indelible.run(Typed, "queue", "tiny", cores=1, txs=5)
    print(run.id, run.design_counters["stores"], indelible.explain(Typed)["file"])
"""


def test_a_class_is_a_design_where_it_is_typed() -> None:
    # What a notebook has of a cell: its text, under the name of no file, and no file of `__main__`.
    twice = TYPED.replace("+= 1", "+= 2")
    done = [
        subprocess.run([sys.executable, "-c", NOTEBOOK, *texts], capture_output=True, text=True)
        for texts in ((TYPED, twice), (TYPED, TYPED))
    ]
    assert not done[0].stderr
    (one, few, file), (other, many, _) = map(str.split, done[0].stdout.splitlines())
    assert int(many) == 2 * int(few) > 0
    assert file == "Typed"
    # The same text is the same run, whichever process asks; another one is another.
    again = {line.split()[0] for line in done[1].stdout.splitlines()}
    assert again == {one} != {other}


def test_a_file_is_named_by_its_path(mine: str, tmp_path: Path) -> None:
    # A design in Rust may be called `mine`, and is then found.
    Path(mine).with_name("nobodys.py").write_text(Path(mine).read_text(encoding="utf-8"))
    told = "unknown design `nobodys`; did you mean `./nobodys.py`?"
    assert refused(lambda: run_of("nobodys")) == told
    assert refused(lambda: run_of("./mine")) == "unknown design `./mine`; did you mean `./mine.py`?"
    Path("folder").mkdir()
    told = "./folder is a directory; a design in Python is a file, such as ./folder/mine.py"
    assert refused(lambda: run_of("./folder")) == told
    assert refused(lambda: indelible.explain("./folder")) == told
    Path("silo").mkdir()
    assert run_of("silo").data["design"] == "silo"
    assert refused(lambda: run_of("./no.py")) == "./no.py: no such file or directory"
    assert refused(lambda: run_of(f"{tmp_path}/.py")).endswith("no such file or directory")
    # The system does not say of such names whether there are files of them.
    long = f"./{'n' * 300}"
    assert refused(lambda: run_of(f"{long}.py")) == f"{long}.py: file name too long"
    assert refused(lambda: run_of(long)).startswith("unknown design `./nnn")
    for text, told in (
        ("x = 1", "has no design; it must have one class derived"),
        (
            "from indelible.design import Design\nclass A(Design): pass\nclass B(Design): pass\n",
            "(A, B)",
        ),
        ("def x(:\n", ":1: invalid syntax"),
        ("1 / 0\n", ":1: in <module>: ZeroDivisionError: division by zero"),
    ):
        Path("other.py").write_text(text, encoding="utf-8")
        assert told in refused(lambda: run_of("./other.py"))
    table = indelible.compare(["silo", mine], ["hash"], cores=1, txs=20, set={"mine.records": 64})
    assert "--set design.records=64" in table.rows[1]["command"]


def test_a_design_stays_as_it_was_while_it_runs(mine: str) -> None:
    with scripts.held_still():
        held, _, _ = scripts.find(mine)
        text = Path(mine).read_text(encoding="utf-8")
        Path(mine).write_text(text.replace("2**20, 2,", "2**19, 2,"), encoding="utf-8")
        assert scripts.find(mine)[0] is held
    edited, _, _ = scripts.find(mine)
    assert edited is not held
    assert edited is scripts.find(mine)[0]


def test_each_folder_has_modules_of_its_own(tmp_path: Path) -> None:
    body = (
        "from indelible.design import Design\nimport part\n"
        "class D(Design):\n    paper = part.PAPER\n"
    )
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "part.py").write_text(f"PAPER = {name!r}\n", encoding="utf-8")
        (tmp_path / name / "d.py").write_text(body, encoding="utf-8")
    assert [indelible.explain(str(tmp_path / n / "d.py"))["paper"] for n in "ab"] == ["a", "b"]


def test_nothing_of_a_design_in_python_is_kept(mine: str, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    indelible.compare(["native", mine], ["queue"], "tiny", txs=5, keep=folder)
    assert len([*folder.iterdir()]) == 1


def test_the_answer_is_the_same_beside_others(mine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def rows() -> list[dict]:
        table = indelible.compare([mine, UNDO_LOG, "silo"], ["queue", "hash"], "tiny", txs=30)
        return [{key: value for key, value in row.items() if key != "host"} for row in table.rows]

    monkeypatch.setenv("INDELIBLE_JOBS", "1")
    alone = rows()
    monkeypatch.delenv("INDELIBLE_JOBS")
    assert rows() == alone


def test_a_timeline_names_the_events(mine: str) -> None:
    trace = indelible.trace(mine, "scribble", "tiny", cores=1, txs=5)
    assert "('logged', 0)" in json.dumps(trace.json()["events"])


def test_a_timeline_shows_no_places_in_the_hosts_memory() -> None:
    class Plain:
        pass

    class Named:
        def __repr__(self) -> str:
            return "line at 0x40"

    class Timed(Design):
        def store(self, store: design.Store, below: design.Below) -> None:
            below.at(store.at, (Plain(), Named(), self.store))

        def event(self, at: int, event: tuple, below: design.Below) -> None:
            pass

    shown = json.dumps(indelible.trace(Timed, "scribble", "tiny", cores=1, txs=5).json()["events"])
    assert "Plain object>, line at 0x40, <bound method " in shown
    assert " object at 0x" not in shown


def test_what_hooks_are_given_can_be_shown(write: Write) -> None:
    path = write("def store(self, store, below): raise ValueError(repr(store))")
    assert "ValueError: Store { core: " in refused(lambda: run_of(path))
    assert {design.Store, design.Below, LINE, WAIT, TAKEN, Structure}


def test_what_a_design_prints_is_no_part_of_the_answer(write: Write) -> None:
    path = write("def store(self, store, below): print('stored')")
    words = ("run", "--design", path, "--workload", "array", "--txs", "2", "--json")
    done = subprocess.run(
        [sys.executable, "-m", "indelible", *words], check=False, capture_output=True, text=True
    )
    assert json.loads(done.stdout)["design"] == path
    assert "stored\n" in done.stderr


def test_each_write_is_as_large_as_it_was_asked_for(write: Write) -> None:
    """One by one of each way to memory, told of in the moment in which it is durable."""
    path = write(
        "durability = 'none'\n"
        "def __init__(self, setup): self.told = []\n"
        "def commit(self, tx, below):\n"
        "    if self.told: return\n"
        "    base, self.told = self.shape.log_base, [0]\n"
        "    assert below.controller_of(base) == 0 and below.has_room(base)\n"
        "    assert below.read(tx.at, base) > tx.at\n"
        "    assert below.log(tx.at, base + 8, [], tell='nothing') == 0\n"
        "    below.send(tx.at, base, bytes(64), kind='metadata', mask=0xff, tell='part')\n"
        "    line, way = base + 64, {'direct': True, 'tell': 'direct'}\n"
        "    below.send(tx.at, line, bytearray(64), kind='checkpoint', **way)\n"
        "    below.when_room(base, 'room')\n"
        "    below.at(tx.at + 5000, 'give')\n"
        "def event(self, at, event, below):\n"
        "    self.told.append(event)\n"
        "    if event == 'give':\n"
        "        below.give(at, self.shape.log_base + 128, bytes(64), kind='consolidation')\n"
        "def counters(self): return {event: 1 for event in map(str, self.told)}"
    )
    run = indelible.run(path, "array", "tiny", cores=1, txs=3, set={"pm.log_size": "1MiB"})
    assert run.pm_writes["by_class"] | {"data": 0, "home_write_back": 0} == dict.fromkeys(
        run.pm_writes["by_class"], 0
    ) | {"metadata": 8, "checkpoint": 64, "consolidation": 64}
    assert set(run.design_counters) == {"0", "room", "part", "direct", "give"}


def test_it_is_told_where_no_order_but_that_of_timing_was_tried(mine: str) -> None:
    """One byte that survives, and that the mark comes behind its lines, is luck."""
    from indelible.templates.design import Template

    class Lucky(Template):
        def commit(self, tx: design.Tx, below: design.Below) -> object:
            lines = len(self.cores[tx.core].lines)
            answer = super().commit(tx, below)
            if lines:
                super().move_mark(tx.core, tx.stored + lines + 40, below)
            return answer

        def move_mark(self, number: int, at: int, below: design.Below) -> None:
            pass

    class Charged(Lucky):
        @classmethod
        def hardware(cls, setup: design.Setup) -> list[Structure]:
            return [*super().hardware(setup), Structure("a byte", 8, kept_by="battery")]

    told = "were tested only in the order that timing produced"
    asked = {"txs": 40, "lives": 1}
    assert indelible.crash(Lucky, "hash", **asked).failed
    crash = indelible.crash(Charged, "hash", **asked)
    assert crash.passed, str(crash)
    assert crash.data["untried_early"] > 0
    assert told in " ".join(str(crash).split())
    crash = indelible.crash(
        Charged, "hash", **asked, set={"controller.arrival_jitter": "500cycles"}
    )
    assert crash.failed
    assert told not in " ".join(str(crash).split())
    crash = indelible.crash(mine, "hash", **asked)
    assert (crash.data["untried_early"], crash.data["notes"]) == (0, [])


def test_structures_depend_on_what_a_design_is_set_up_with(write: Write) -> None:
    path = write(
        "params = {'cells': Param(0, 0, 1)}\n"
        "def hardware(setup):\n"
        "    return [Structure('a', 8, 8, kept_by='cells')] * setup.params.cells\n"
        "def power_loss(self, gasp):\n"
        "    if self.params.cells: gasp.save(self.shape.capacity, b'12345678')\n"
        "@classmethod\n"
        "def recover(cls, image, setup):\n"
        "    if setup.params.cells: assert image.line(image.capacity)[:8] == b'12345678'"
    )
    for cells in (0, 1):
        crash = indelible.crash(path, "array", txs=2, points=2, set={"design.cells": cells})
        assert not any("raises" in row["text"] for row in crash.violations), str(crash)


def test_two_designs_of_one_name_are_two(mine: str) -> None:
    first = indelible.run(mine, "array", "tiny", txs=2)
    text = Path(mine).read_text(encoding="utf-8")
    Path(mine).write_text(text + "\nimport part\n", encoding="utf-8")
    Path("part.py").write_text("X = 1\n", encoding="utf-8")
    second = indelible.run(mine, "array", "tiny", txs=2)
    Path("part.py").write_text("X = 2\n", encoding="utf-8")
    third = indelible.run(mine, "array", "tiny", txs=2)
    assert len({first.id, second.id, third.id}) == 3
    Path("pm.py").write_text(text, encoding="utf-8")
    assert "settings already have a section `pm`" in refused(lambda: indelible.explain("./pm.py"))


def test_designs_are_held_still_until_the_last_run_ends(mine: str) -> None:
    one, two = scripts.held_still(), scripts.held_still()
    one.__enter__()
    held, _, _ = scripts.find(mine)
    two.__enter__()
    one.__exit__(None, None, None)
    Path(mine).write_text(Path(mine).read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert scripts.find(mine)[0] is held
    two.__exit__(None, None, None)
    assert scripts.find(mine)[0] is not held


def test_a_trial_in_which_a_design_raises_is_wrong(write: Write) -> None:
    """It is right but on a machine with a parameter that only trials set."""
    path = write("params = {'size': Param(9, 1, 9, tight=[1])}")
    text = Path(path).read_text(encoding="utf-8").replace("D(Design)", "D(Template)")
    body = "    def begin(self, tx, below): assert self.params.size == 9\n"
    body += "    params = {**Template.params, 'size': Param(9, 1, 9, tight=[1])}\n"
    Path(path).write_text(
        f"from indelible.templates.design import Template\n{text}{body}", encoding="utf-8"
    )
    crash = indelible.crash(path, "hash", txs=10, points=9, trials=9)
    assert crash.failed
    assert "raises: " in crash.trials["wrong"]["text"]
    assert "--set design.size=1" in crash.trials["wrong"]["replay"]
