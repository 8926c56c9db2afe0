"""Ordering hardware in Python, on the real simulator: under software logs, and alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import indelible
from conftest import needs_core, refused, write_class
from indelible import scripts
from indelible.cli import main
from indelible.templates.order import Template

pytestmark = needs_core

EPOCHS = str(Path(__file__).parents[2] / "examples" / "designs" / "epochs.py")

#: What differs between a design and the same one in Python.
OWN = {"id", "config", "design", "command", "host", "settings"}

Write = Callable[[str], str]


@pytest.fixture
def fenced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the path of what `new` writes."""
    monkeypatch.chdir(tmp_path)
    return indelible.new("order", "mine").file


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Return what writes hardware as one begins with, changed by a body, and returns its path."""
    monkeypatch.chdir(tmp_path)

    def written(body: str) -> str:
        head = "from indelible.templates.order import Template"
        write_class(Path("d.py"), "Template", body, head)
        return "./d.py"

    return written


def without_own(answer: indelible.Run) -> dict[str, Any]:
    return {key: value for key, value in answer.json().items() if key not in OWN}


# What one begins with is x86.


@pytest.mark.parametrize("log", scripts.LOGS)
def test_hardware_in_python_takes_the_same_cycles_as_in_rust(fenced: str, log: str) -> None:
    for workload, cores, domain in (("hash", 1, "adr"), ("btree", 4, "media"), ("queue", 2, "adr")):
        rust, python = (
            without_own(
                indelible.run(
                    f"{log}@{hardware}",
                    workload,
                    cores=cores,
                    txs=100,
                    set={"controller.domain": domain},
                )
            )
            for hardware in ("x86", fenced)
        )
        assert rust == python


def test_its_campaigns_are_those_of_the_same_in_rust(fenced: str) -> None:
    told = ("rule", "caught", "seed", "event", "workload", "cores", "txs")
    asked = {"txs": 40, "points": 200, "mutants": True, "trials": 10}
    rust, python = (
        indelible.crash(f"undo@{hardware}", "scribble", **asked) for hardware in ("x86", fenced)
    )
    assert rust.passed
    assert python.passed
    for key in ("points", "nested_points", "later_points", "later_nested_points"):
        assert rust.data[key] == python.data[key]
    assert rust.trials["points"] == python.trials["points"] > 1000
    mutants = ([[row.get(key) for key in told] for row in one.mutants] for one in (rust, python))
    assert next(mutants) == next(mutants)


def test_it_answers_litmus_tests_as_the_same_in_rust(fenced: str) -> None:
    found = indelible.litmus(orders=["x86", fenced], random=60, mutants=True)
    assert found.passed, str(found)
    by_order = {
        order: [
            {key: value for key, value in row.items() if key != "order"}
            for kind in ("rows", "random", "mutants")
            for row in found.data[kind]
            if row["order"] == order
        ]
        for order in ("x86", fenced)
    }
    assert by_order["x86"] == by_order[fenced]
    assert len(by_order["x86"]) == 12 + 1 + 2


# The example has buffers and epochs.


@pytest.mark.long
def test_the_example_keeps_its_promise_and_each_rule_is_needed() -> None:
    found = indelible.litmus(orders=EPOCHS, random=120, mutants=True)
    assert found.passed, str(found)
    assert found.data["random"][0]["images"] > 50_000
    assert len(found.data["mutants"]) == 7
    # Its epochs order less than fences do: what a load saw last is not ordered.
    allowed = {row["test"] for row in found.data["rows"] if row["allowed"]}
    assert {"volatile_flag", "after_a_read"} < allowed


@pytest.mark.parametrize("log", scripts.LOGS)
def test_logs_are_right_on_the_example(log: str) -> None:
    crash = indelible.crash(
        f"{log}@{EPOCHS}", "hash", txs=30, points=300, mutants=log == "undo", trials=3
    )
    assert crash.passed, str(crash)
    small = {"llc.size": "256B", "l2.size": "128B", "l1d.size": "128B", "controller.count": 2}
    crash = indelible.crash(f"{log}@{EPOCHS}", "queue", cores=3, txs=30, points=300, set=small)
    assert crash.passed, str(crash)


def test_what_is_said_of_a_log_on_the_example() -> None:
    name = f"undo@{EPOCHS}"
    row = indelible.explain(name)
    assert (row["kind"], row["durability"], row["granularity"]) == ("design", "synchronous", "line")
    assert {"lookup", "entries"} <= {param["name"] for param in row["params"]}
    assert {"flush_log", "drop_evictions"} <= {rule["name"] for rule in row["rules"]}
    alone = indelible.explain(EPOCHS)
    assert (alone["kind"], alone["model"]) == ("order", "epoch")
    assert name in alone["pairings"]
    assert indelible.battery([name])["without"] == [name]
    # The buffers of four cores, and a store that waits in each.
    survives = indelible.battery([name], cores=4, set={"controller.domain": "eadr"}).json()
    assert survives["rows"][0]["flush_kb"] == 64 * 4 * 33 / 1024
    # Its fields are those of `design.`, and of the name of both.
    set = {"undo@epochs.entries": 1, "design.lookup": 9}
    few = indelible.run(name, "hash", "tiny", txs=50, set=set)
    assert few.data["cycles"] > indelible.run(name, "hash", "tiny", txs=50).data["cycles"]


# Where a store survives from when it is visible.

VISIBLE = {
    "caches": """
needs = "eadr"
model = "visible"
rules = {"fence_waits": "a fence waits for what was stored past the caches"}
def fence(self, fence, below):
    if fence.kind != "flush" and self.rules.fence_waits:
        return below.fence(fence.core, fence.drained)
""",
    "battery": """
needs = "adr"
model = "visible"
brings_stores = True
rules = {"kept_at_once": "a store is kept from when it is visible"}
def __init__(self, setup):
    self.kept = {}
def fence(self, fence, below):
    return None
def store(self, store, below):
    if self.rules.kept_at_once:
        self.kept[store.line] = below.line(store.line)
    else:
        below.at(store.at + 50, store.line)
def event(self, at, line, below):
    self.kept[line] = below.line(line)
def could_be_durable(self, below, arrived):
    return []
def power_loss(self, gasp):
    for line, data in self.kept.items():
        gasp.save(line, data)
@classmethod
def hardware(cls, setup):
    from indelible.design import Structure
    return [Structure("every byte", 8, setup.shape.capacity, kept_by="battery")]
""",
}


@pytest.mark.parametrize("kind", VISIBLE)
def test_stores_survive_from_when_they_are_visible(write: Write, kind: str) -> None:
    path = write(VISIBLE[kind])
    found = indelible.litmus(orders=path, random=60, mutants=True)
    assert found.passed, str(found)
    assert len(found.data["mutants"]) == 1
    assert indelible.crash(f"undo@{path}", "hash", txs=30, points=300, trials=4).passed


# What is wrong is found, and said.


def test_hardware_that_does_not_keep_its_promise_is_found(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write('model = "visible"')
    found = indelible.litmus(orders=path)
    assert not found.passed
    assert found.data["rows"][0]["violation"].startswith("order: ")
    path = write("def fence(self, fence, below):\n    return None")
    assert main(["crash", "--design", f"undo@{path}", "--workload", "hash", "--txs", "50"]) == 1
    capsys.readouterr()
    assert main(["litmus", "--order", path, "--random", "9"]) == 1
    shown = capsys.readouterr().out
    assert "WRONG       program 1 on d: order: " in shown
    assert "core 1      " in shown
    assert main(["litmus", "--order", path, "--random", "9", "--json"]) == 1
    (row,) = json.loads(capsys.readouterr().out)["random"]
    assert (row["programs"], len(row["program"]["cores"])) == (1, 2)
    assert row["program"]["cores"][0][-1] == "durable"


@pytest.mark.parametrize("where", ["line + 48", "0x20000"])
def test_hardware_that_writes_where_nobody_has_stored_is_found(write: Write, where: str) -> None:
    path = write(f"""
def fence(self, fence, below):
    if fence.kind == "flush":
        line = fence.line
        data = bytearray(below.line(({where}) // 64 * 64))
        data[48:56] = b"garbage!"
        below.send(fence.drained, ({where}) // 64 * 64, bytes(data))
    return super().fence(fence, below)
""")
    (row,) = indelible.litmus(orders=path, random=9).data["random"]
    assert "where nobody has stored and 0x0 was" in row["violation"]
    assert not indelible.litmus(orders=path).passed


def test_what_is_wrong_with_every_rule_shows_that_none_is_missing(write: Write) -> None:
    path = write("def fence(self, fence, below):\n    return None")
    found = indelible.litmus(orders=path, mutants=True)
    assert not found.passed
    assert not any(row["caught"] for row in found.data["mutants"])


def test_a_rule_that_nothing_shows_is_told(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write('rules = {**Template.rules, "be_kind": "always"}')
    assert main(["litmus", "--order", path, "--mutants"]) == 1
    shown = capsys.readouterr().out
    assert "be_kind            NOT CAUGHT" in shown
    assert "2 of 3 caught" in shown


def test_what_hardware_raises_is_a_violation(write: Write) -> None:
    path = write("def fence(self, fence, below):\n    if fence.kind == 'durable': 1 / 0")
    found = indelible.litmus(orders=path, random=5)
    wrong = [row["violation"] for row in found.data["rows"] if row["violation"]]
    assert wrong
    # It does not write back either.
    raised = [text for text in wrong if text.startswith("raises: ")]
    assert raised
    assert all("d.py:4: in fence: ZeroDivisionError" in text for text in raised)
    assert "ZeroDivisionError" in found.data["random"][0]["violation"]
    assert indelible.crash(f"undo@{path}", "hash", txs=5).failed


def test_that_recovery_raises_does_not_show_what_a_rule_is_for(write: Write) -> None:
    path = write(
        'rules = {**Template.rules, "be_kind": "always"}\n'
        "@classmethod\n"
        "def recover(cls, image, setup):\n"
        "    if not setup.rules.be_kind: 1 / 0"
    )
    found = indelible.litmus(orders=path, mutants=True)
    (row,) = (row for row in found.data["mutants"] if row["rule"] == "be_kind")
    assert not row["caught"]
    assert row["raises"].endswith(": in recover: ZeroDivisionError: division by zero")


def test_cores_that_wait_for_ever_are_a_violation(write: Write) -> None:
    path = write(
        "def fence(self, fence, below):\n    from indelible.design import WAIT\n    return WAIT"
    )
    found = indelible.litmus(orders=path)
    assert all(row["violation"].startswith("liveness: core ") for row in found.data["rows"][1:])


def test_nothing_changes_where_it_is_asked_what_could_be_durable(write: Write) -> None:
    path = write(
        "def could_be_durable(self, below, arrived):\n    below.at(1 << 40, 'later')\n    return []"
    )
    text = indelible.litmus(orders=path).data["rows"][0]["violation"]
    assert "this hook must change nothing: it is only asked what is there" in text
    path = write(
        "def could_be_durable(self, below, arrived):\n"
        "    kept.append(arrived)\n"
        "    return [(line, below.line(line), 0xff) for line in below.dirty_lines() if arrived()]\n"
        "def fence(self, fence, below):\n"
        "    for one in kept: one()\n"
        "    return super().fence(fence, below)"
    )
    Path("d.py").write_text(f"kept = []\n{Path('d.py').read_text()}", encoding="utf-8")
    text = next(
        row["violation"] for row in indelible.litmus(orders=path).data["rows"] if row["violation"]
    )
    assert "`arrived` was lent to a hook that has ended" in text
    path = write("def could_be_durable(self, below, arrived):\n    return [(3, bytes(64))]")
    assert (
        "0x3 is not the address of a line"
        in indelible.litmus(orders=path).data["rows"][0]["violation"]
    )


FIRST_IN_FIRST_OUT = """
needs = "nothing"
model = "epoch"
brings_stores = True
def __init__(self, setup):
    self.queue, self.waiting = [], []
def store(self, store, below):
    data = below.line(store.line)
    if self.queue[1:] and self.queue[-1][0] == store.line:
        self.queue[-1] = (store.line, data)
        return
    self.queue.append((store.line, data))
    if len(self.queue) == 1:
        below.send(store.leaves, store.line, data, tell="durable")
def fence(self, fence, below):
    if fence.kind == "durable" and self.queue:
        self.waiting.append(fence.core)
        return __import__("indelible").design.WAIT
def evict(self, evict, below):
    return __import__("indelible").design.TAKEN
def event(self, at, event, below):
    self.queue.pop(0)
    if self.queue:
        return below.send(at, *self.queue[0], tell="durable")
    while self.waiting:
        below.wake(self.waiting.pop(), at)
def could_be_durable(self, below, arrived):
    return []
def power_loss(self, gasp):
    for line, data in self.queue if self.shape.caches_survive else []:
        gasp.save(line, data)
@classmethod
def hardware(cls, setup):
    from indelible.design import Structure
    kept_by = "battery" if setup.shape.caches_survive else "nothing"
    return [Structure("a line that waits", 64 * 8, 64, kept_by=kept_by)]
"""


def test_cells_that_are_torn_show_what_relies_on_whole_lines(write: Write) -> None:
    """A store joins the youngest line also across an order, which tears with it."""
    path = write(FIRST_IN_FIRST_OUT)
    found = indelible.litmus(orders=path, random=60)
    assert not any(row["violation"] for row in found.data["rows"])
    (row,) = found.data["random"]
    assert row["violation"].startswith("order: ")
    assert "controller.domain=media" in row["program"]["machine"]
    again = indelible.litmus(orders=path, program=row["number"])
    assert again.data["random"][0]["violation"] == row["violation"]
    assert indelible.litmus(orders=path, random=60, set={"controller.domain": "adr"}).passed


def test_what_its_own_recovery_brings_home_has_survived(write: Write) -> None:
    body = (
        VISIBLE["battery"]
        .replace("gasp.save(line, data)", "pass")
        .replace(
            "for line, data in self.kept.items():",
            "words = [(line, *memoryview(data).cast('Q')) for line, data in self.kept.items()]\n"
            "    gasp.save_words(self.shape.logs[0], [len(words), *sum(words, ())])\n"
            "    for line in ():",
        )
    )
    recover = """
@classmethod
def recover(cls, image, setup):
    base = setup.shape.logs[0]
    words = [image.word(base + 8 * at) for at in range(1, 9 * image.word(base) + 1)]
    for line, *kept in zip(*[iter(words)] * 9):
        for place, word in enumerate(kept):
            image.set_word(line + 8 * place, word)
    image.set_word(base, 0)
"""
    path = write(body)
    assert not indelible.litmus(orders=path).passed
    path = write(body + recover)
    found = indelible.litmus(orders=path, random=30, mutants=True)
    assert found.passed, str(found)


def test_the_power_is_cut_before_stores_of_which_something_survives(write: Write) -> None:
    """Whatever its model says of when that counts."""
    one = "thread\nstore A 1\nstore B 1\nimage A=1 B=0\n"
    for model in ("visible", "epoch"):
        path = write(VISIBLE["battery"].replace("visible", model))
        Path("one.litmus").write_text(one, encoding="utf-8")
        (row,) = indelible.litmus("one.litmus", orders=path).data["rows"]
        assert (row["allowed"], row["seen"]) == (True, True)


@pytest.mark.parametrize("asked", ["below.fence(fence.core, fence.at)", "self.early(fence, below)"])
def test_nothing_is_flushed_that_has_not_left_its_core(write: Write, asked: str) -> None:
    path = write(
        f"def fence(self, fence, below):\n    return {asked}\n"
        "def early(self, fence, below):\n"
        "    if fence.kind == 'flush': below.flush(fence.core, fence.at, fence.line)\n"
        "    return None"
    )
    found = indelible.litmus(orders=path, random=1)
    text = str([row["violation"] for row in (*found.data["rows"], *found.data["random"])])
    assert "earlier stores have not left the core: they have at " in text
    assert "`fence.drained`" in text


def test_what_is_asked_is_not_taken_for_the_answer(write: Write) -> None:
    path = write("def could_be_durable(self, below, arrived):\n    return [] if arrived else []")
    text = indelible.litmus(orders=path).data["rows"][0]["violation"]
    assert "TypeError: `arrived` must be called, once for each write: `if arrived():`" in text


@pytest.mark.parametrize("answer", ["below.dirty_lines() or [64]", "None", "[(64, 'text')]"])
def test_what_could_be_durable_is_lines_with_their_bytes(write: Write, answer: str) -> None:
    path = write(f"def could_be_durable(self, below, arrived):\n    return {answer}")
    text = indelible.litmus(orders=path).data["rows"][0]["violation"]
    assert "must answer (line, bytes), or (line, bytes, mask), for each write, not " in text


def test_that_it_raises_does_not_show_what_a_rule_is_for(write: Write) -> None:
    path = write(
        "rules = {**Template.rules, 'be_kind': 'always'}\n"
        "def fence(self, fence, below):\n"
        "    return super().fence(fence, below) if self.rules.be_kind else {}['oops']"
    )
    for mutants in (
        indelible.litmus(orders=path, mutants=True).data["mutants"],
        indelible.crash(f"undo@{path}", "scribble", txs=10, mutants=True).data["mutants"],
    ):
        (kind,) = (row for row in mutants if row["rule"] == "be_kind")
        assert (kind["caught"], "KeyError: 'oops'" in kind["raises"]) == (False, True)
        assert all(row["caught"] for row in mutants if row is not kind)


# What hardware says of itself.


def test_a_rule_may_be_needless_under_one_log(write: Write) -> None:
    body = VISIBLE["caches"] + "needless = {'undo:fence_waits': 'not there', 'redo:use_up': ''}"
    assert "names `redo:use_up`, which is not a rule" in refused(
        lambda: indelible.explain(write(body))
    )
    path = write(body.replace(", 'redo:use_up': ''", ""))
    needless = {
        log: {
            rule["name"]
            for rule in indelible.explain(f"{log}@{path}").json()["rules"]
            if rule["needless"]
        }
        for log in scripts.LOGS
    }
    # What a log has no need of on such hardware is known.
    assert needless["undo"] - {"fence_waits"} == {
        rule["name"]
        for rule in indelible.explain("undo@bbb").json()["rules"]
        if rule["needless"] and rule["name"] in needless["undo"]
    }
    assert ["fence_waits" in needless[log] for log in ("undo", "redo", "count")] == [
        True,
        False,
        False,
    ]
    assert "use_up_number_at_boot" in needless["count"]
    found = indelible.crash(f"undo@{path}", "scribble", txs=10, mutants=True)
    assert found.passed, str(found)
    assert "fence_waits" in {rule["rule"] for rule in found.data["needless_rules"]}
    # Alone it needs it.
    assert indelible.litmus(orders=path, mutants=True).data["mutants"][0]["caught"]


def test_what_is_no_instruction_takes_no_time(write: Write) -> None:
    asked = {"machine": "silo", "cores": 1, "txs": 100, "set": {"controller.domain": "eadr"}}
    body = 'needs = "eadr"\nmodel = "visible"\ndef fence(self, fence, below):\n    return None'
    ours = indelible.run("undo@eadr", "queue", **asked)
    all_of_them, none, half = (
        indelible.run(f"undo@{write(body + more)}", "queue", **asked)
        for more in (
            "",
            "\nhas_fences = False\nhas_flushes = False",
            "\nhas_flushes = False",
        )
    )
    assert none.instructions == ours.instructions < half.instructions < all_of_them.instructions
    assert none.cycles == ours.cycles < all_of_them.cycles


def test_threads_move_where_it_says_that_they_may(write: Write) -> None:
    asked = {"workload": "hash", "machine": "tiny", "txs": 40, "set": {"core.migrate": 30}}
    text = refused(lambda: indelible.run(f"undo@{write('pass')}", **asked))
    assert text.endswith("set `migrates = True` if the design keeps nothing per core")
    moving = without_own(indelible.run(f"undo@{write('migrates = True')}", **asked))
    assert moving == without_own(indelible.run("undo@x86", **asked))


def test_settings_of_two_designs_of_one_name_are_refused(fenced: str) -> None:
    Path(fenced).rename("x86.py")
    designs = ["undo@x86", "undo@./x86.py"]
    asked = {"workloads": ["hash"], "txs": 20}
    rows = indelible.compare(designs, **asked, crash=False).rows
    assert rows[0]["cycles"] == rows[1]["cycles"]
    text = refused(lambda: indelible.compare(designs, **asked, set={"undo@x86.record": 1000}))
    assert text.startswith("settings of `undo@x86` could be those of undo@x86 or of undo@./x86.py")


# What is no hardware, or has no log.

HARDWARE = "is ordering hardware, which keeps no transaction whole; name a log on it: undo@"

WRONG = {
    "alone": (lambda path: indelible.run(path, "hash"), "", HARDWARE),
    "compared alone": (lambda path: indelible.compare([path], ["hash"]), "", HARDWARE),
    "no such log": (
        lambda path: indelible.run(f"wal@{path}", "hash"),
        "",
        "unknown software log `wal`; there are: undo, redo, count",
    ),
    "no model": (
        lambda path: indelible.run(f"undo@{path}", "hash"),
        "model = None\nfence = __import__('indelible').design.Design.fence",
        "./d.py is not ordering hardware, so the log `undo` cannot run on it",
    ),
    "no order": (
        lambda path: indelible.litmus(orders=path),
        "model = None\nfence = __import__('indelible').design.Design.fence",
        "./d.py is not ordering hardware, on which tests run without a log",
    ),
    "fences of a design": (
        lambda path: indelible.explain(path),
        "model = None",
        "./d.py: `fence` is called only on ordering hardware, a class with a `model`",
    ),
    "commits of hardware": (
        lambda path: indelible.explain(path),
        "def commit(self, tx, below): pass",
        "./d.py: `commit` is never called on ordering hardware, whose log has the",
    ),
    "another model": (
        lambda path: indelible.explain(path),
        "model = 'strict'",
        "./d.py: `model` must be one of fenced, epoch, visible, not 'strict'",
    ),
    "a rule of the log": (
        lambda path: indelible.explain(f"undo@{path}"),
        "rules = {'flush_log': 'mine'}",
        "./d.py: the log `undo` also has a rule `flush_log`; choose another name",
    ),
    "a parameter of the log": (
        lambda path: indelible.explain(f"undo@{path}"),
        "params = {'lookup': __import__('indelible').design.Param(1)}",
        "./d.py: the log `undo` also has a parameter `lookup`; choose another name",
    ),
    "needless nothing": (
        lambda path: indelible.explain(path),
        "needless = {'flush_lg': 'why'}",
        "./d.py: `needless` names `flush_lg`, which is not a rule, nor one of a log",
    ),
    "brings": (
        lambda path: indelible.explain(path),
        "brings_stores = 1",
        "./d.py: `brings_stores` must be True or False",
    ),
    "too many programs": (
        lambda path: indelible.litmus(orders=path, random=10**9),
        "",
        "`random` must be a whole number from 0 to 1000000",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_hardware_is_told(write: Write, name: str) -> None:
    ask, body, text = WRONG[name]
    path = write(body or "pass")
    assert text in refused(lambda: ask(path))


def test_a_class_is_hardware_too() -> None:
    class Mine(Template):
        """The same."""

    name = Mine.under("redo")
    assert name == "redo@Mine"
    asked = {"workload": "hash", "txs": 50}
    assert without_own(indelible.run(name, **asked)) == without_own(
        indelible.run("redo@x86", **asked)
    )
    assert indelible.litmus(orders=[Mine]).passed
    assert refused(lambda: Mine.under("wal")).startswith("unknown software log `wal`")
    rows = indelible.compare([name, "redo@x86"], ["hash"], txs=50).rows
    assert rows[0]["cycles"] == rows[1]["cycles"]
