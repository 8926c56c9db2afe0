"""Mistakes of designs in Python: what is told of each, and where."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import indelible
from conftest import Write, heed_interrupts, needs_core, refused
from indelible.design import Design

pytestmark = needs_core

UNDO_LOG = Path(__file__).parents[2] / "examples" / "designs" / "undo_log.py"


# Mistakes.


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("durability = 'sometimes'", "`durability` must be one of synchronous, asynchronous"),
        ("rules = ['a']", "`rules` must be a mapping from names, not ['a']"),
        ("rules = {'a': 3}", "`rules['a']` must be a string, not 3"),
        ("params = {'a:b': Param(3)}", "a key of `params` must be an identifier, not 'a:b'"),
        ("rules = {'a b': 'why'}", "a key of `rules` must be an identifier, not 'a b'"),
        ("family = 3", "`family` must be a string, not 3"),
        ("migrates = 'no'", "`migrates` must be True or False"),
        ("needless = {'a': 'b'}", "`needless` names `a`, which is not in `rules`"),
        ("params = {'a': 3}", "`a` of `params` must be a `Param`, not 3"),
        ("params = {'a': Param(9, 1, 4)}", "the default of `a` is 9; it must be 1 to 4"),
        (
            "params = {'a': Param(2, 1, 4, tight=[3, 5])}",
            "`tight` of `a` has 5; it must be 1 to 4",
        ),
        ("params = {'a': Param(2**63, most=2**63)}", "the numbers of `a` must be whole, from 0 up"),
        ("params = {'a': Param(True)}", "the numbers of `a` must be whole, from 0 up, not (True, "),
        ("params = {'a': Param(1, tight=[True])}", "the numbers of `a` must be whole, from 0 up"),
        ("params = {'a': Param(0.5)}", "the numbers of `a` must be whole, from 0 up, not (0.5, "),
        ("params = {'a': Param('x')}", "the numbers of `a` must be whole, from 0 up, not ('x', "),
        ("params = {'a': Param(9, 1, 4, tight=[3])}", "the default of `a` is 9; it must be 1 to"),
        ("params = {'a': Param(3, doc=4)}", "`the doc of a` must be a string, not 4"),
        ("params = {'a': Param('x', choices=['y'])}", "`a` must be one of y, not 'x'"),
        ("params = {'a': Param('x', choices=['x', 3])}", "`a choice of a` must be a string, not 3"),
        (
            "params = {'a': Param('x', choices=['x'], tight=[1])}",
            "`tight` of `a` must be a list of numbers, and empty if it has choices",
        ),
        (
            "params = {'a': Param(3, tight=4)}",
            "`tight` of `a` must be a list of numbers, and empty if it has choices",
        ),
        (
            "def recover(self, image, setup): pass",
            "`recover` is called on the class, before there is an object: make it a `@classmethod`",
        ),
        (
            "def store(self, store, below): return True",
            "`store` answered True, which is not a cycle: ",
        ),
        (
            "def store(self, store, below): yield WAIT",
            "d.py: `store` must answer with `return`, not with `yield`",
        ),
        (
            "def event(self, at, event, below): yield",
            "d.py: `event` must answer with `return`, not with `yield`",
        ),
        ("async def commit(self, tx, below): pass", "`commit` must be a plain function"),
        (
            "def fill(self, fill, below): return 2.5",
            "which is not a cycle: it must answer nothing, a whole number from ",
        ),
        ("def on_store(self, store, below): pass", "no hook `on_store`; did you mean `store`?"),
        (
            "def stor(self): pass\ndef load_(self): pass\ndef evcit(self): pass\n"
            "def begins(self): pass\ndef fil(self): pass\ndef commits(self): pass",
            "no hook `begins`; did you mean `begin`?",
        ),
        ("hardwares = lambda setup: ()", "no hook `hardwares`; did you mean `hardware`?"),
        (
            "durabilty = 'none'",
            "no attribute `durabilty`; did you mean `durability`? If not, choose another name,"
            " such as `_durabilty`",
        ),
        ("granularty = 'word'", "no attribute `granularty`; did you mean `granularity`?"),
        ("need = 'nothing'", "no attribute `need`; did you mean `needs`?"),
        ("needles = {}\nneeds = 'eadr'", "no attribute `needles`; did you mean `needless`?"),
        ("parms = {'a': Param(3)}", "no attribute `parms`; did you mean `params`?"),
        ("rule = {'a': 'b'}\nneedless = {'a': 'b'}", "`rule`; did you mean `rules`?"),
        ("has_fence = False", "no attribute `has_fence`; did you mean `has_fences`?"),
        ("modle = 'fenced'\ndef fence(self, fence, below): pass", "`modle`; did you mean `model`?"),
        (
            "def hardware(self, setup): return ()",
            "`hardware` is called on the class, before there is an object: make it a",
        ),
        (
            "def could_be_durable(self, below, arrived): return []",
            "`could_be_durable` is called only on ordering hardware",
        ),
        (
            "model = 'fenced'\ndef leaves_behind(self, line): return True",
            "`leaves_behind` is never called on ordering hardware",
        ),
        ("async def evict(self, evict, below): yield", "`evict` must be a plain function"),
        ("def store(self, store, below): 1 / 0", ":4: in store: ZeroDivisionError: division by"),
        (
            "def store(self, store, below):\n"
            "    error = ValueError('one\\n  two'); error.__notes__ = ['three']; raise error",
            ":5: in store: ValueError: one two: three",
        ),
        (
            "def store(self, store, below): self.rules.x",
            "AttributeError: there is no `x`; there are: ",
        ),
        (
            "def store(self, store, below): return 'x'",
            "d.py: `store` answered 'x', which is not a cycle",
        ),
        ("def commit(self, tx, below): return -1", "`commit` answered -1, which is not a cycle"),
        ("def commit(self, tx, below): return tx.at - 1", "answered the earlier cycle"),
        ("def evict(self, evict, below): return 5", "`evict` must answer Home or TAKEN, not 5"),
        (
            "def evict(self, evict, below): return 'TAKEN'",
            "`evict` must answer Home or TAKEN, not 'TAKEN'",
        ),
        (
            "def store(self, store, below): below.wake(9, 1)",
            "ValueError: there is no core 9; the machine has 2",
        ),
        ("def store(self, store, below): below.at(-1, 2)", "`at` must be a whole cycle from 0 up"),
        (
            "def store(self, store, below): below.at(2**63, 2)",
            "ValueError: 9223372036854775808 is no",
        ),
        (
            "def commit(self, tx, below): below.at(tx.at + 9, 2)\n"
            "def event(self, at, event, below): below.at(at - 1, 2)",
            "is past: it is ",
        ),
        (
            "def fill(self, fill, below): below.read(fill.asked - 1, fill.line)",
            "is past: what the hook is about begins at ",
        ),
        (
            "def store(self, store, below): below.read(store.at - 1, store.line)",
            "is past: what the hook is about begins at ",
        ),
        (
            "def commit(self, tx, below): below.at(tx.at, 'x')",
            "x is due, but there is no hook `event`",
        ),
        ("def store(self, store, below): below.log(store.at, 0, [1])", "is outside of the logs, "),
        (
            "def store(self, store, below): below.send(store.at, 8, bytes(64))",
            "0x8 is not the address",
        ),
        (
            "def store(self, store, below): below.send(store.at, 64, b'x')",
            "a line must have 64 bytes, not",
        ),
        (
            "def store(self, store, below): below.give(store.at, 64, bytes(64))",
            "only be called in `event`",
        ),
        ("def store(self, store, below): below.line(2**50)", "are outside of persistent memory"),
        ("def store(self, store, below): below.line(8)", "0x8 is not the address of a line"),
        (
            "def store(self, store, below): below.send(store.at, 64, bytes(64), kind='x')",
            "unknown kind of write `x`; there are: data, log, ",
        ),
        ("def store(self, store, below): return WAIT", "core 0's `store` answered WAIT at"),
        (
            "def counters(self): return {'x': 0.5}",
            "counter `x` is 0.5; it must be a whole number from",
        ),
        ("def counters(self): return {'x': '5'}", "counter `x` is '5'; it must be a whole number"),
        ("def hardware(): return ()", "d.py: `hardware`: TypeError: "),
        ("hardware = lambda setup: [3]", "it must return a list of `Structure`, not of 3"),
        (
            "hardware = lambda setup: [Structure('a', 2**32, 2**32)]",
            "`a` has 18446744073709551616 bits; it must have fewer than 2^53",
        ),
        (
            "hardware = lambda setup: [Structure('a', -1)]",
            "`bits` of `a` must be a whole number from 0 up, not",
        ),
        (
            "hardware = lambda setup: [Structure('a', 1, 0.5)]",
            "`count` of `a` must be a whole number from 0 up, not 0.5",
        ),
        (
            "hardware = lambda setup: [Structure('a', 2**52, 2)]",
            "`a` has 9007199254740992 bits; it must have fewer than 2^53",
        ),
        (
            "hardware = lambda setup: [Structure('a', 1, kept_by='luck')]",
            "`kept_by` of `a` must be one of nothing, adr, battery, eadr, cells, not 'luck'",
        ),
        ("def __init__(self, setup): raise InputError('no such machine')", "d.py: no such machine"),
        ("def store(self, store, below): below.give_up('too small')", "too small"),
    ],
)
def test_mistakes_are_one_line_that_says_where(write: Write, body: str, told: str) -> None:
    path = write(body)
    said = refused(
        lambda: (indelible.explain(path), indelible.run(path, "scribble", "tiny", cores=2, txs=20))
    )
    assert told in said
    assert "\n" not in said
    assert "d.py" in said or "give_up" in body


def test_a_mistake_in_what_is_imported_is_not_one_of_the_importing_line(write: Write) -> None:
    path = write("import part")
    Path(path).with_name("part.py").write_text("\n\ndef x(:\n", encoding="utf-8")
    told = ":4: in D: SyntaxError: invalid syntax (part.py, line 3)"
    assert refused(lambda: indelible.explain(path)) == f"{path}{told}"


def test_what_could_be_durable_may_be_answered_one_by_one(write: Write) -> None:
    path = write(
        "model = 'fenced'\n"
        "def could_be_durable(self, below, arrived):\n"
        "    for line in below.dirty_lines():\n"
        "        if arrived(): yield line, below.line(line)"
    )
    assert indelible.explain(path)["kind"] == "order"


def derive_from_template(path: str) -> None:
    """Have a design do what the template does, where it does not do something else."""
    text = Path(path).read_text(encoding="utf-8").replace("D(Design)", "D(Template)")
    head = "from indelible.templates.design import Template\n"
    Path(path).write_text(head + text, encoding="utf-8")


def test_a_mistake_of_recovery_says_where(write: Write) -> None:
    for body, told in (
        ("@classmethod\ndef recover(cls, image, setup): image.words(0, 2**50)", ":5: in recover: "),
        (
            "@classmethod\ndef recover(cls, image, setup): image.set_word(2**45, 0)",
            "outside of persis",
        ),
        (
            "@classmethod\ndef recover(cls, image, setup): image.line(8)",
            "0x8 is not the address of a line",
        ),
        (
            "def power_loss(self, gasp): gasp.save(2**45, b'x')",
            ":4: in power_loss: ValueError: 1 bytes",
        ),
    ):
        path = write(body)
        crash = indelible.crash(path, "scribble", txs=20)
        assert crash.failed
        assert told in crash.violations[0]["text"]
        # It is of one power failure, which is told.
        assert crash.violations[0]["event"] > 0
        assert "the run was not completed" not in str(crash)
        table = indelible.compare([path], ["queue"], "tiny", txs=20)
        assert "FAIL" in str(table), "also beside a speed"
    path = write("@classmethod\ndef boot(cls, image, setup): pass")
    derive_from_template(path)
    found = indelible.crash(path, "scribble", txs=20, lives=2)
    (violation,) = found.violations
    told = "d.py: `boot`: TypeError: it must return the design, not None"
    assert violation["text"].endswith(told)
    # That of the image from which the machine was to boot.
    assert (violation["life"], violation["after"][0]["event"] > 0) == (2, True)
    assert "violations  FAIL in life 2 of a machine" in str(found)


def test_a_mistake_while_booting_is_cut_short_is_of_that_cut(write: Write) -> None:
    path = write(
        "@classmethod\n"
        "def boot(cls, image, setup):\n"
        "    try: image.set_word(setup.shape.logs[0], 7)\n"
        "    except Exception: raise ValueError('no such thing')\n"
        "    return cls(setup)"
    )
    derive_from_template(path)
    violation, *_ = indelible.crash(path, "scribble", txs=20, lives=2).violations
    assert "in boot: ValueError: no such thing" in violation["text"]
    assert (violation["life"], violation["nested"]) == (2, 0)


@pytest.mark.parametrize(
    ("step", "told"),
    [
        ("image.set_word(64, 7)", "`recover` makes 4 million writes"),
        ("image.word(64)", "`recover` makes 16 million reads"),
        ("image.words(0, 1 << 20)", "`recover` makes 16 million reads"),
    ],
)
def test_a_recovery_that_does_not_end_is_a_violation_of_its_power_failure(
    write: Write, step: str, told: str
) -> None:
    path = write(f"@classmethod\ndef recover(cls, image, setup):\n    while True:\n        {step}")
    violation, *_ = indelible.crash(path, "scribble", txs=20, points=1).violations
    assert violation["text"].startswith(f"liveness: recovery does not end: {told}, ")
    assert violation["text"].endswith("d.py:7: in recover")
    assert violation["event"] > 0


@pytest.mark.parametrize("is_relative", [False, True])
def test_a_hook_that_does_not_return_is_named_when_it_is_interrupted(
    write: Write, tmp_path: Path, is_relative: bool
) -> None:
    begun = tmp_path / "begun"
    path = write(
        "@classmethod\n"
        "def recover(cls, image, setup):\n"
        f"    open({str(begun)!r}, 'w').close()\n"
        "    while True: pass"
    )
    path = "./d.py" if is_relative else path
    run = subprocess.Popen(
        [sys.executable, "-m", "indelible", "crash", "--design", path, "--workload", "hash"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
        cwd=tmp_path,
    )
    try:
        until = time.monotonic() + 60
        while not begun.exists() and time.monotonic() < until:
            time.sleep(0.05)
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=60)
    finally:
        run.kill()
    assert f"indelible: did not stop: {path}:7: in recover\n" in said


def test_a_recovery_that_remembers_something_is_told_so(write: Write) -> None:
    """Recovery makes another number of writes each time, where it is to do the same again."""
    path = write(
        "recovered = 0\n"
        "@classmethod\n"
        "def recover(cls, image, setup):\n"
        "    super().recover(image, setup)\n"
        "    D.recovered += 1\n"
        "    for _ in range(D.recovered % 3): image.set_word(setup.shape.logs[0] + 8, 1)"
    )
    text = Path(path).read_text(encoding="utf-8").replace("D(Design)", "D(Template)")
    Path(path).write_text(
        f"from indelible.templates.design import Template\n{text}", encoding="utf-8"
    )
    told = "determinism: `recover` depends on something besides the image"
    violations = indelible.crash(path, "hash", txs=5).violations
    assert {violation["text"] for violation in violations} == {told}


@pytest.mark.parametrize(
    ("does", "took"),
    [
        ("merge_word(mark, 0)", (0, 0)),
        ("merge_word(mark, 2**64 - 1, 0)", (0, 0)),
        ("merge_word(mark, 3)", (0, 1)),
        ("merge_word(mark, 3, 2)", (0, 1)),
        ("set_word(mark, image.word(mark))", (1, 1)),
    ],
)
def test_who_merges_what_is_so_writes_and_reads_nothing(
    write: Write, does: str, took: tuple[int, int]
) -> None:
    path = write(
        "@classmethod\n"
        "def recover(cls, image, setup):\n"
        "    mark = setup.shape.logs[0]\n"
        f"    image.{does}"
    )
    found = indelible.crash(path, "array", txs=1, points=1).recovery
    assert (found["lines_read_max"], found["lines_written_max"]) == took


def test_what_was_lent_to_a_hook_is_of_no_use_behind_it(write: Write) -> None:
    path = write(
        "kept = None\n"
        "def store(self, store, below):\n"
        "    self.kept = below\n"
        "def power_loss(self, gasp):\n"
        "    if self.kept: self.kept.word(0)"
    )
    told = "RuntimeError: `below` was lent to a hook that has ended"
    assert told in indelible.crash(path, "scribble", txs=20).violations[0]["text"]


def test_nothing_is_given_where_it_is_not_durable_then(write: Write) -> None:
    path = write(
        "needs = 'nothing'\n"
        "def commit(self, tx, below): below.at(tx.at, 1)\n"
        "def event(self, at, event, below): below.give(at, 64, bytes(64))"
    )
    asked = {"txs": 2, "set": {"controller.domain": "media"}}
    said = refused(lambda: indelible.run(path, "array", "tiny", **asked))
    assert "RuntimeError: in the domain `media` a write is not durable when it is accepted" in said


def test_who_hides_that_the_power_failed_has_not_recovered(tmp_path: Path) -> None:
    text = UNDO_LOG.read_text(encoding="utf-8")
    hidden = text.replace(
        "            recover(image, Area(setup.shape, core), setup.rules)\n",
        "            try:\n"
        "                recover(image, Area(setup.shape, core), setup.rules)\n"
        "            except BaseException:\n"
        "                pass\n",
    )
    assert hidden != text
    path = tmp_path / "hidden.py"
    path.write_text(hidden, encoding="utf-8")
    open_, hides = (indelible.crash(name, "hash", txs=20) for name in (str(UNDO_LOG), path))
    assert open_.passed
    assert hides.passed
    assert open_.nested_points == hides.nested_points > 0


def test_what_a_battery_saves_is_held_to_what_was_declared(write: Write) -> None:
    body = "def power_loss(self, gasp): gasp.save(self.shape.log_base, bytes(65))\n"
    declared = "hardware = lambda setup: [Structure('a', 8, {count}, kept_by='battery')]"
    assert (
        indelible.crash(write(body + declared.format(count=65)), "array", txs=3, points=9).data[
            "saved_bytes_max"
        ]
        == 65
    )
    crash = indelible.crash(write(body + declared.format(count=64)), "array", txs=3, points=9)
    assert crash.failed


def test_a_wake_too_many_loses_no_transactions_unseen(write: Write) -> None:
    path = write(
        "def commit(self, tx, below):\n"
        "    [below.wake(core, tx.at) for core in range(self.shape.cores)]\n"
        "    return tx.at\n"
        "def __init__(self, setup):\n"
        "    self.shape = setup.shape"
    )
    told = refused(lambda: indelible.run(path, "hash", "tiny", cores=4, txs=50))
    assert "a design wakes a core once for each WAIT" in told
    assert "\n" not in told


def test_a_class_may_have_two_names(write: Write) -> None:
    path = write("pass")
    with Path(path).open("a") as file:
        file.write("\nAlso = D\n")
    assert indelible.explain(path)["family"]


def test_a_setting_of_a_design_that_is_called_like_its_workload_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "hash.py"
    path.write_text(UNDO_LOG.read_text())
    for verb in (indelible.run, indelible.crash):
        with pytest.raises(indelible.InputError, match=r"could be those of .*hash\.py or of hash"):
            verb(str(path), "hash", txs=5, set={"hash.items": 60})
        assert verb(str(path), "queue", txs=5, set={"hash.entries": 16})


def test_a_mistake_in_a_notebook_is_told_with_its_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    def named(file: str) -> tuple[str, str] | None:
        return ("Cell", "In[3]") if file == "/tmp/kernel_7/1.py" else None

    ipython = ModuleType("IPython")
    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=named))
    vars(ipython)["get_ipython"] = lambda: shell
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    text = "class Mine(Design):\n    def store(self, store, below):\n        1 / 0\n"
    for file, place in (("/tmp/kernel_7/1.py", "Cell In[3]"), ("/tmp/a.py", "/tmp/a.py")):
        cell = {"Design": Design, "__name__": "cells"}
        exec(compile(text, file, "exec"), cell)
        told = refused(lambda mine=cell["Mine"]: indelible.run(mine, "queue", "tiny", txs=5))
        assert told == f"{place}:3: in store: ZeroDivisionError: division by zero"


@pytest.mark.parametrize(
    ("cycle", "told"),
    [
        ("1.5", "`at` must be a whole cycle, not a float"),
        ("'soon'", "`at` must be a whole cycle, not a str"),
        ("-5", "`at` must be a whole cycle from 0 up, not a negative one"),
        ("2**70", "`at` must be a whole cycle that is not so large"),
    ],
)
def test_what_is_no_cycle_is_told_in_a_sentence(
    cycle: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    indelible.new("design", "mine")
    text = Path("mine.py").read_text(encoding="utf-8")
    right = "below.at(tx.stored + len(core.lines), "
    assert right in text
    Path("mine.py").write_text(text.replace(right, f"below.at({cycle}, "), encoding="utf-8")
    with pytest.raises(indelible.InputError) as error:
        indelible.run("./mine.py", "hash", txs=5)
    assert str(error.value).endswith(f"in commit: {told}")


@pytest.mark.parametrize(
    "body",
    [
        "def store(self, store, below): below.give_up('too small: raise design.records')",
        "def commit(self, tx, below): raise InputError('too small: raise design.records')",
        "def __init__(self, setup): raise InputError('too small: raise design.records')",
    ],
)
def test_a_design_that_gives_up_leaves_an_empty_cell_as_one_in_rust_does(
    write: Write, body: str
) -> None:
    path = write(f"params = {{'records': Param(4)}}\n{body}")
    table = indelible.compare(["silo", path], ["queue"], "tiny", cores=1, txs=20)
    (row,) = table.json()["refused"]
    assert (row["design"], row["reason"]) == (path, "too small: raise design.records")
    shown = " ".join(str(table).split())
    assert "! d on queue, 1 core: too small: raise design.records" in shown
    assert "? d was not tested on queue: too small" in shown
    swept = indelible.sweep(["silo", path], ["queue"], {"controller.wpq": [32]}, "tiny", txs=20)
    assert "! d on queue: too small: raise design.records" in str(swept)
    # Without any other run there is nothing to show.
    assert refused(lambda: indelible.compare([path], ["queue"], "tiny", txs=20)).endswith(
        "too small: raise design.records"
    )


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("def store(self, store, below): raise ValueError('oops')", "ValueError: oops"),
        ("def store(self, store, below): return 'x'", "`store` answered 'x'"),
        ("def store(self, store, below): return WAIT", "deadlock: "),
    ],
)
def test_a_mistake_of_a_design_ends_a_comparison(write: Write, body: str, told: str) -> None:
    path = write(body)
    said = refused(lambda: indelible.compare(["silo", path], ["queue"], "tiny", txs=20))
    assert said.startswith("d on queue: ")
    assert told in said
