"""The tool that measures docs/fidelity.md: its tables are the pages', in form and in number."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from conftest import BUILT, needs_core
from fidelity import __main__ as command
from fidelity import document, dpo, others, silo, write_sets
from fidelity.catalog import ALL
from fidelity.tables import Facts, Grid, Table, less, of_run, ratio, shown
from indelible import pool
from indelible.errors import InputError
from indelible.evaluation import Cell, throughput
from indelible.experiment import Experiment
from indelible.native import before_it_is_steady

TABLES = [one for one in ALL if isinstance(one, Table)]
FACTS = [one for one in ALL if isinstance(one, Facts)]

#: The entries before the loop of cached logs is steady.
WARMUP = before_it_is_steady(others.ITEMS, "linear")

#: A document with two parts, one of which is long out of date.
SHORT = """Before.

<!-- measured: one -->

| | x |
|---|---|
| old | 1 |

<!-- end -->

Between.

<!-- measured: two -->
old
<!-- end -->
"""


def canned(cell: Cell) -> dict[str, Any]:
    """Return a row with all that a table may ask of one."""
    speed = 1e6 + 1e5 * len(cell.design + cell.workload)
    return {
        "design": cell.design,
        "workload": cell.workload,
        "cores": cell.cores,
        "txs": 1_000,
        "aborted": 0,
        "core_model": "window",
        "domain": "adr",
        "cycles": 2_000_000,
        "instructions": 90_000,
        "simulated_s": 1_000 / speed,
        "throughput_tx_per_s": speed,
        "commit_latency_cycles": {"mean": 400.0},
        "pm_reads": 900,
        "pm_banks": {"busy_share": 0.75, "bus_share": 0.5},
        "controllers": {"wpq_full_share": 0.25, "pm_read_cycles": {"mean": 300.0}},
        "pm_writes": {
            **{"wpq_bytes": 90_000, "wpq_writes": 1_500, "media_lines": 1_900},
            **{"media_bits": 80_000, "media_fill_reads": 700},
            "by_class": defaultdict(lambda: 15_000),
        },
        "stalls": {"fence": 60, "commit_wait": 20, "log_structure_full": 20},
        "write_set": {
            **{"words_avg": 9.0, "stores_avg": 10.0, "lines_avg": 2.0, "lines_max": 3},
            **{"pages_avg": 1.0, "pages_max": 2},
        },
        "design_counters": defaultdict(lambda: 500),
        "epochs": {
            **{"epochs_per_tx": 8.0, "ordering_points": 8_000, "pm_store_share": 0.5},
            **{"singleton_share": 0.5, "self_dependent_share": 0.5},
            "cross_dependent_share": 0.5,
        },
        "host": {"mem_ops": 60_000},
        "notes": [],
    }


def measured_parts() -> list[tuple[str, str]]:
    """Return the measured parts of all pages, with their names."""
    pages = [command.DOCUMENT, *sorted(command.DOCUMENT.with_suffix("").glob("*.md"))]
    return [part for page in pages for part in document.parts(page.read_text()).items()]


def form(text: str) -> str:
    """Return a text without what is measured: numbers, their prefixes, and columns' widths."""
    text = re.sub(r"[-+]?\d[\d,.]*( (?=[kM]?(tx/s|B/tx))[kM]?)?", "#", text)
    return " ".join(re.sub(r"-{2,}|(?<!\S)-(?!\S)", "#", text).split())


def entries(line: str) -> list[str]:
    """Return what stands in a row of a table of Markdown."""
    return [entry.strip() for entry in line.split("|")[1:-1]]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_document_has_the_form_of_what_is_measured(table: Table) -> None:
    written = dict(measured_parts())[table.name].split("\n")
    made = table.text(canned).split("\n")
    assert "nan" not in "".join(made)
    if table.name == "battery.silo" and not BUILT:
        return
    assert len(made) == len(written)
    if isinstance(table.body, Grid):
        assert made[:2] == written[:2]
        for row, *lines in zip(table.body.rows, made[2:], written[2:], strict=True):
            for entry, one, other in zip(row, *map(entries, lines), strict=True):
                # What a core waits for is measured, too, and has words.
                if isinstance(entry, str):
                    assert one == other
                elif table.name != "silo.stalls":
                    # So is who is before whom.
                    assert sorted(form(one).split()) == sorted(form(other).split())
    else:
        assert [*map(form, made)] == [*map(form, written)]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_rows_are_as_long_as_the_header(table: Table) -> None:
    if isinstance(table.body, Grid):
        assert {len(row) for row in table.body.rows} == {len(table.body.header)}


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_settings_are_of_a_part_of_the_run_and_not_of_a_name(one: Table | Facts) -> None:
    parts = {"design", "workload", "core", "l1d", "l2", "llc", "tlb", "controller", "pm", "dram"}
    assert {key.partition(".")[0] for cell in one.cells for key, _ in cell.settings} <= parts
    assert all(cell.machine and (cell.txs or 0) > 0 for cell in one.cells)


def test_every_marker_has_a_table_and_every_table_a_marker() -> None:
    written = [name for name, _ in measured_parts()]
    assert sorted(written) == sorted(table.name for table in TABLES)
    assert len({one.name for one in ALL}) == len(ALL)


@pytest.mark.parametrize("facts", FACTS, ids=lambda facts: facts.name)
def test_a_fact_is_a_line_with_a_number(facts: Facts) -> None:
    lines = facts.text(canned).split("\n")
    assert len(lines) == len(facts.rows)
    for line, (what, _) in zip(lines, facts.rows, strict=True):
        assert re.search(r"\d", line.removeprefix(f"{what}: ")), line
        assert "nan" not in line


def test_a_number_that_is_rounded_to_nothing_has_no_sign() -> None:
    for value, text in ((-0.2, "0 %"), (0.2, "0 %"), (-0.7, "-1 %"), (20.0, "+20 %")):
        cell = Cell("silo", "hash", 1)
        entry = shown("{:+.0f} %", of_run(cell, lambda _row, value=value: value))
        assert entry.text(canned) == text
    small = of_run(Cell("silo", "hash", 1), lambda _row: -0.05)
    assert shown("{:+.2f}, {:+.1f}", small, small).text(canned) == "-0.05, -0.1"


def test_a_design_is_so_many_times_as_fast_as_the_other() -> None:
    def rows(cell: Cell) -> dict[str, Any]:
        slow = cell.design == "undo@x86" or ("core.fenced_stores", "dispatch") in cell.settings
        return canned(cell) | {"throughput_tx_per_s": 1e6 / (4 if slow else 1)}

    assert {entry.text(rows) for entry in dpo._times("hops", "undo@x86")} == {"4.00"}
    assert silo._gain("silo", 8).text(rows) == "4.00"


def test_a_saving_is_the_opposite_and_a_ratio_is_of_the_first_over_the_second() -> None:
    cell = Cell("silo", "hash", 1)
    three, two = (of_run(cell, lambda _row, value=value: value) for value in (3.0, 2.0))
    entry = shown("{:.1f}, {:.1f}, {:.2f}", less(three), ratio(three, two), less(two))
    assert entry.text(canned) == "-3.0, 1.5, -2.00"


def test_what_waits_most_is_first_and_what_is_little_or_other_is_not_named() -> None:
    stalls = {"fence": 20, "commit_wait": 61, "other": 18, "lock": 1}
    assert silo._stalls({"stalls": stalls}) == "commit wait 61, fence 20"


def test_numbers_of_a_word_and_of_an_entry_are_those_of_the_rows() -> None:
    def by_size(cell: Cell) -> dict[str, Any]:
        # Sixteen times the words, in twenty times the time.
        row = canned(cell)
        row["throughput_tx_per_s"] = 1e6 / (20 if cell.larger == 16 else 1)
        row["write_set"]["words_avg"] = 9.0 * cell.larger
        row["design_counters"] = {"logs_generated": 900, "logs_merged": 200}
        return row

    assert write_sets.change(16).measure(by_size) == pytest.approx(100 * (16 / 20 - 1))
    assert write_sets.logs_left(by_size(Cell("silo", "hash", 8))) == 700
    # Ten stores of each of a thousand transactions, among sixty thousand operations.
    assert write_sets._loads(canned(Cell("silo", "tpcc", 8))) == pytest.approx(50 / 60)
    entry = others._nanoseconds("cached", 8, "dram")
    (cell,) = entry.cells
    assert entry.measure(canned) == pytest.approx(1e9 / (throughput(canned(cell)) * 8))
    assert (cell.txs, cell.warmup) == (others.SIMULATED_ENTRIES // 8, WARMUP // 8)
    assert [f"{others._Rounded(time)}" for time in (99.94, 100.2, 1234.5)] == [
        "99.9",
        "100",
        "1,234",
    ]


def test_the_first_line_of_a_part_keeps_its_place() -> None:
    assert document.parts(SHORT.replace("\nold\n", "\n\n    old\n\n"))["two"] == "    old"


def test_replacing_is_idempotent_and_leaves_the_rest_alone() -> None:
    text = command.DOCUMENT.read_text()
    assert document.with_parts(text, document.parts(text)) == text
    once = document.with_parts(SHORT, {"two": "new"})
    assert document.with_parts(once, {"two": "new"}) == once
    assert document.parts(once) == {"one": document.parts(SHORT)["one"], "two": "new"}
    assert once.replace("\n\nnew\n\n", "\nold\n") == SHORT


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (SHORT.replace("<!-- end -->", "", 1), "<!-- measured: one --> has no <!-- end -->"),
        (SHORT[: SHORT.rindex("<!--")], "<!-- measured: two --> has no <!-- end -->"),
        (SHORT.replace("two", "one"), "the document has <!-- measured: one --> twice"),
        (SHORT.replace("two", "three"), "the document has no <!-- measured: two -->"),
    ],
)
def test_a_document_that_is_marked_wrongly_is_refused(broken: str, sentence: str) -> None:
    with pytest.raises(InputError, match=re.escape(sentence)):
        document.with_parts(broken, {"two": "new"})


def test_an_unknown_table_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    for words, sentence in (
        (["silo.wasy"], "unknown table `silo.wasy`; there are: silo.ways, "),
        (["--check", "hops.prose"], "facts are printed and stand nowhere: drop --check"),
    ):
        assert command.main(words) == 2
        shown, complaint = capsys.readouterr()
        assert (shown, complaint.count("\n")) == ("", 1)
        assert sentence in complaint


def test_the_list_has_every_name(capsys: pytest.CaptureFixture[str], fake: ModuleType) -> None:
    assert command.main(["--list"]) == 0
    listed = capsys.readouterr().out
    assert all(f"\n{one.name} " in listed for one in ALL)
    assert fake.asked == []


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake: ModuleType) -> Path:
    """Have a document of two tables and a fact, which share a run, measured on canned answers."""
    cells = [Cell("silo", name, 8, machine="silo", txs=20) for name in ("hash", "btree")]
    numbers = [shown("{:.1f}", of_run(cell, lambda row: throughput(row) / 1e6)) for cell in cells]
    every = (
        Table("one", "a number", Grid(("", "x"), [("hash", numbers[0])])),
        Table("two", "two numbers", Grid(("", "x", "y"), [("both", *numbers)])),
        Facts("prose", "of it", [("hash", numbers[0])]),
    )
    path = tmp_path / "short.md"
    path.write_text(SHORT)
    monkeypatch.setattr(command, "ALL", every)
    monkeypatch.setattr(command, "DOCUMENT", path)
    return path


def test_tables_are_measured_and_written(
    small: Path, fake: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([]) == 0
    assert capsys.readouterr().out == "changed: one, two\n\nprose: of it\nhash: 11.7\n"
    assert len(fake.asked) == 2, "runs that tables share are made once"
    assert document.parts(small.read_text()) == {
        "one": "| | x |\n|---|---|\n| hash | 11.7 |",
        "two": "| | x | y |\n|---|---|---|\n| both | 11.7 | 7.7 |",
    }
    written = small.read_text()
    assert command.main(["two"]) == 0
    assert capsys.readouterr().out == "changed: no table\n"
    assert small.read_text() == written


def test_a_table_is_written_on_the_page_that_has_its_marker(small: Path) -> None:
    page = small.with_suffix("") / "page.md"
    page.parent.mkdir()
    one, two = (f"<!-- measured: {name} -->\nold\n<!-- end -->\n" for name in ("one", "two"))
    small.write_text(one)
    page.write_text(two)
    assert command.main([]) == 0
    assert [*document.parts(small.read_text())] == ["one"]
    assert document.parts(page.read_text())["two"].endswith("| both | 11.7 | 7.7 |")


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        (SHORT, "short.md and page.md both have <!-- measured: one -->"),
        ("", "no page has <!-- measured: one -->"),
    ],
)
def test_a_marker_is_on_one_page(
    small: Path, capsys: pytest.CaptureFixture[str], page: str, sentence: str
) -> None:
    if not page:
        small.write_text("")
    small.with_suffix("").mkdir()
    (small.with_suffix("") / "page.md").write_text(page)
    assert command.main([]) == 2
    assert sentence in capsys.readouterr().err


def test_a_check_shows_what_differs_and_writes_nothing(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["--check", "one"]) == 1
    shown = capsys.readouterr().out
    assert "-| old | 1 |" in shown
    assert "+| hash | 11.7 |" in shown
    assert small.read_text() == SHORT
    assert command.main(["one"]) == 0
    assert command.main(["--check", "one"]) == 0


def test_a_check_is_of_tables_alone_and_each_once(
    small: Path,
    fake: ModuleType,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = Cell("hops", "hash", 1, machine="silo", txs=20)
    fact = Facts("other", "of it", [("hash", shown("{:.0f}", of_run(other, throughput)))] * 2)
    monkeypatch.setattr(command, "ALL", (*command.ALL, fact))
    assert command.main(["--list"]) == 0
    counts = [line.split()[-1] for line in capsys.readouterr().out.splitlines()[2:]]
    assert counts == ["1", "2", "1", "1"]
    assert command.main(["--check"]) == 1
    assert {spec["design"] for _, spec in fake.asked} == {"silo"}
    printed, told = capsys.readouterr()
    assert told.startswith("fidelity: 2 runs in ")
    assert printed.splitlines()[:2] == [f"--- {small}", "+++ measured"]
    assert command.main(["one", "one"]) == 0
    assert capsys.readouterr().out == "changed: one\n"
    assert command.main([]) == 0
    assert capsys.readouterr().err.startswith("fidelity: 3 runs in ")


def test_a_marker_that_is_missing_is_told_before_the_runs(small: Path, fake: ModuleType) -> None:
    small.write_text("")
    assert command.main([]) == 2
    assert fake.asked == []


def test_a_page_that_stays_as_it_is_is_not_written(small: Path) -> None:
    assert command.main([]) == 0
    os.utime(small, (1, 1))
    assert command.main([]) == 0
    assert small.stat().st_mtime == 1


def test_an_interruption_writes_nothing(
    small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def execute(*_asked: object) -> None:
        raise pool.Interrupted([None, None])

    monkeypatch.setattr(pool, "execute", execute)
    assert command.main([]) == 130
    assert capsys.readouterr().err == "fidelity: interrupted: nothing was written\n"
    assert small.read_text() == SHORT


def test_a_run_of_each_kind_comes_first_and_then_the_longest() -> None:
    asked = [Experiment("silo", "hash", cores=cores) for cores in (2, 8, 1, 4)]
    asked.append(Experiment("lad", "hash", cores=8, txs=9_000))
    asked.append(Experiment("lad", "hash", cores=8, txs=9_001))
    assert command.ordered(asked) == [asked[index] for index in (4, 2, 5, 1, 3, 0)]
    # So is one of each machine, and of each setting; without a length it is the usual one.
    usual = Experiment("silo", "hash", txs=999)
    kinds = [usual, replace(usual, machine="tiny"), replace(usual, settings=(("pm.tRP", "1ns"),))]
    kinds.append(replace(usual, txs=None))
    assert command.ordered(kinds) == kinds


@needs_core
def test_what_needs_no_run_is_as_the_document_has_it() -> None:
    assert command.main(["--check", "battery.silo"]) == 0
