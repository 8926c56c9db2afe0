"""The pages of a sweep and of `why`, and what holds of each page."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

import indelible
from conftest import needs_core, refused
from indelible import text
from indelible.changes import Change, Refused
from indelible.pages import report
from indelible.results.causes import Causes
from indelible.results.sweep import Sweep
from indelible.text import sweep as sweep_text
from pages import Element, Page, cells, command_of, facts, have_heads, is_alone, without_host

Command = Callable[..., tuple[int, str, str]]

BOTH = ["silo", "leaky"]
PAIR = ["undo@x86", "silo"]
ENTRIES = {"silo.entries": [4, 12, 20]}
PLANE = ENTRIES | {"controller.wpq": [32, 64]}


def swept(vary: dict | None = None, **more: object) -> Sweep:
    # Of the two leaky would fail its crash test on btree, and not compete.
    asked = {"crash": False} | more
    return indelible.sweep(BOTH, ["hash", "btree"], vary or ENTRIES, **asked)


def asked_why(**more: object) -> Causes:
    return indelible.why(PAIR, ["hash", "btree"], **more)


#: Answers that have a page, and the words of their commands.
ANSWERS = {"sweep": swept, "why": asked_why}
WORDS = {
    "sweep": ("sweep", "--designs", "silo,leaky", "--workloads", "hash", "--vary", "cores=4,8"),
    "why": ("why", "--designs", "undo@x86,silo", "--workloads", "hash"),
}
each = pytest.mark.parametrize("verb", [*ANSWERS])


def page_of(answer: Sweep | Causes) -> Element:
    return Page(report.html(answer)).root


# What holds of both.


@each
def test_a_page_needs_no_library_that_its_figure_does_not_use(
    verb: str, command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "textalloc", None)
    path = tmp_path / "it.html"
    assert command(*WORDS[verb], "--report", str(path))[0] == 0
    assert Page(path.read_text(encoding="utf-8")).root.all("svg")


@each
def test_the_page_has_its_parts_in_their_order(fake: ModuleType, verb: str) -> None:
    page = page_of(ANSWERS[verb](cores=8, seeds=2, txs=500, crash=True))
    assert page.one("title").text == page.one("h1").text
    order = [one.attributes["id"] for one in page.one("main").children]
    own = {
        "sweep": ["values-table", "crossings", "figures"],
        "why": [f"{name}-table" for name in ("values", "stacks", "busy", "changes")]
        + ["better", "figures"],
    }
    assert order == [*own[verb], "machine", "designs", "workloads", "again"]
    head = facts(page.one("header"))
    said = {"workloads": "hash, btree", "cores": "8", "seeds": "1, 2", "transactions": "62"}
    assert {key: head[key].removesuffix(" of each core") for key in said} == said
    assert head["machine"] == "silo · window core · domain adr"
    assert head["simulator"] == "Indelible 0.0.0"
    judged = {
        "sweep": "silo ok 1200, leaky! FAIL 5/400",
        "why": "undo@x86 ok 400, silo ok 400",
    }
    assert head["crash test"] == judged[verb]
    assert "interrupted" not in page.one("header").text
    figure = page.one("figure")
    assert "on hash, btree" in figure.one("svg", role="img").attributes["aria-label"]
    assert [*figure.one("details").all("table")]


@each
def test_the_page_loads_nothing_and_has_no_id_twice(fake: ModuleType, verb: str) -> None:
    is_alone(report.html(ANSWERS[verb]()), verb)


def test_a_heat_map_has_its_colours_in_the_page(fake: ModuleType) -> None:
    is_alone(report.html(swept(PLANE)), "sweep")


@each
def test_tables_have_heads_that_say_of_what_they_are(fake: ModuleType, verb: str) -> None:
    tables = [*page_of(ANSWERS[verb]()).all("table")]
    assert len(tables) > 5
    have_heads(tables)


@each
def test_the_same_rows_give_the_same_bytes(fake: ModuleType, tmp_path: Path, verb: str) -> None:
    answer, again = (ANSWERS[verb]() for _ in range(2))
    answer.report(tmp_path / "one.html")
    again.report(tmp_path / "two.html")
    one = (tmp_path / "one.html").read_bytes()
    assert one == (tmp_path / "two.html").read_bytes()
    run = next(iter(again.runs.values()))
    run.data["throughput_tx_per_s"] *= 2
    again.report(tmp_path / "two.html")
    assert one != (tmp_path / "two.html").read_bytes()


@each
def test_the_answer_is_that_of_the_json(command: Command, tmp_path: Path, verb: str) -> None:
    path = tmp_path / "it.html"
    code, shown, complaint = command(*WORDS[verb], "--seeds", "2", "--json", "--report", str(path))
    assert (code, complaint) == (0, "")
    assert report.read(path) == json.loads(shown)
    assert report.read(path)["rows"]
    assert command(*WORDS[verb], "--report", str(path))[1].endswith(f"\nreport: {path}\n")


@each
def test_what_was_interrupted_is_not_written_by_the_command(
    command: Command, interrupt: Callable[[int], None], tmp_path: Path, verb: str
) -> None:
    path = tmp_path / "it.html"
    interrupt(1)
    words = ("--report", str(path), "--set", "fake.sleep=0.05")
    code, _, complaint = command(*WORDS[verb], *words)
    assert (code, path.exists()) == (130, False)
    assert complaint == f"indelible: interrupted, so nothing was written to {path}\n"


@each
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("it.pdf", "--report it.pdf: the name of a report must end in .html"),
        ("no/such/it.html", "--report no/such/it.html: there is no directory `no/such`; make it"),
    ],
)
def test_what_cannot_be_a_report_is_told_before_anything_is_run(
    command: Command, fake: ModuleType, verb: str, name: str, said: str
) -> None:
    code, shown, complaint = command(*WORDS[verb], "--report", name)
    assert (code, shown, fake.asked, complaint.count("\n")) == (2, "", [], 1)
    assert said in complaint


@each
def test_a_missing_library_is_told_before_anything_is_run(
    command: Command, fake: ModuleType, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    imported = report.importlib.import_module

    def without(name: str) -> ModuleType:
        if name == "jinja2":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return imported(name)

    answer = ANSWERS[verb]()
    fake.asked.clear()
    monkeypatch.setattr(report.importlib, "import_module", without)
    code, shown, complaint = command(*WORDS[verb], "--report", "it.html")
    assert (code, shown, fake.asked) == (2, "", [])
    fix = "needs jinja2: python -m pip install 'indelible[report]'"
    assert complaint == f"indelible: error: --report {fix}\n"
    assert refused(lambda: answer.report("it.html")) == f"a report {fix}"


NAME = "<script>alert(1)</script>\"&'<b>"


@each
def test_what_users_name_is_text(
    fake: ModuleType, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setattr(fake, "WORKLOADS", fake.WORKLOADS | {NAME: 1e6})
    monkeypatch.setattr(fake, "DESIGNS", fake.DESIGNS | {NAME: ("synchronous", 0.5)})
    designs, workloads = [NAME, "silo"], [NAME, "hash"]
    if verb == "sweep":
        answer = indelible.sweep(designs, workloads, {"fake.<b>": [NAME, "2"]})
    else:
        answer = indelible.why(designs, workloads)
        change = Change("machine", "pm.<b>", NAME, NAME)
        answer = replace(answer, refused=(Refused(change, f"no {NAME}"),))
    for run in answer.runs.values():
        run.data["notes"] = [f"a note {NAME}"]
    shown = report.html(answer)
    page = Page(shown).root
    assert NAME in page.one("h1").text
    assert f"a note {NAME}" in page.text
    assert len([*page.all("script")]) == 1
    assert not [*page.all("b")]
    assert NAME not in shown
    if verb == "why":
        assert f"no {NAME}" in page.one("section", id="again").text


@needs_core
@pytest.mark.parametrize(
    "words",
    [
        ["compare", "--cores", "1,2", "--seeds", "2", "--txs", "20"],
        ["compare", "--no-crash", "--latencies", "--txs", "20"],
        [
            *("compare", "--normalize", "native", "--exact", "--set", "silo.entries=4"),
            *("--metric", "pm-writes", "--seed", "7", "--txs", "20"),
        ],
        ["sweep", "--vary", "cores=1,2", "--vary", "seed=1:3:1", "--exact"],
        ["sweep", "--vary", "txs=10,20", "--seed", "7", "--normalize", "native"],
        [
            *("sweep", "--vary", "pm.write_latency=50ns,100ns", "--cores", "1", "--seeds", "2"),
            *("--set", "silo.entries=4", "--metric", "pm-writes", "--txs", "20"),
        ],
        [
            *("why", "--fields", "silo,pm.tWRITE", "--set", "silo.entries=4", "--cores", "1"),
            *("--seeds", "2", "--by", "4", "--metric", "pm-writes", "--txs", "20"),
        ],
    ],
)
def test_the_command_of_a_page_makes_the_same(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
) -> None:
    from indelible.cli import main

    monkeypatch.chdir(tmp_path)
    asked = ["--designs", "silo,lad", "--workloads", "hash", "--machine", "tiny"]
    assert main([*words, *asked, "--report", "first.html"]) == 0
    again = Page(Path("first.html").read_text(encoding="utf-8")).root
    assert main([words[0], *command_of(again, words[0])]) == 0
    capsys.readouterr()
    first, second = (without_host(Path(name)) for name in ("first.html", "report.html"))
    assert first == second


def test_what_is_no_page_of_these_is_told(tmp_path: Path) -> None:
    other = tmp_path / "other.html"
    other.write_text('<script type="application/json" id="rows">{}</script>', encoding="utf-8")
    assert refused(lambda: report.read(other)) == f"{other}: is not a page that `--report` wrote"


# A sweep.


def test_every_number_of_a_sweep_is_in_it(fake: ModuleType) -> None:
    answer = swept(seeds=2)
    page = page_of(answer)
    assert page.one("h1").text == "silo, leaky on hash, btree over silo.entries"
    assert facts(page.one("header"))["varies"] == "silo.entries: 4, 12, 20"
    section = page.one("section", id="values-table")
    assert section.one("h2").text == sweep_text.title_lines(answer)[0]
    assert cells(section.one("table")) == [
        ["silo.entries", "silo", "leaky"],
        *([p, f"{answer.gmean((p,), 'silo'):.2f}", "1.00"] for p in ("4", "12", "20")),
    ]
    behind = cells(page.one("figure").one("table"))
    heads = ["silo.entries", "design", "workload", "throughput", "relative", "± 95 %"]
    assert behind[0] == heads
    assert len(behind) == 1 + 3 * 2 * (2 + 1)
    cell = (("12",), "silo", "hash")
    width = answer.ratio_half_width(cell)
    said = [f"{answer.value(cell) / 1e6:.1f} Mtx/s", "1.04", text.half_width_cell(width, 1.04)]
    assert ["12", "silo", "hash", *said] in behind
    assert ["12", "silo", "gmean", "-", "1.04"] in [row[:-1] for row in behind]


def test_a_design_that_failed_is_marked_in_every_table(fake: ModuleType) -> None:
    page = page_of(swept(PLANE, crash=True))
    section = page.one("section", id="values-table")
    captions = [table.one("caption").text.partition(" · ")[0] for table in section.all("table")]
    assert captions == ["silo", "leaky!"], "and none of who is ahead"
    assert "leaky is not crash-safe; to see it: indelible crash --design leaky" in section.text
    (behind,) = page.one("figure").all("table")
    assert {row[2] for row in cells(behind)[1:]} == {"silo", "leaky!"}


def test_who_passes_whom_is_said(fake: ModuleType) -> None:
    section = page_of(swept()).one("section", id="crossings")
    assert section.one("h2").text == "Where one design passes another in throughput"
    passed = "silo passes leaky in throughput between silo.entries=4 and 12"
    assert [one.text for one in section.all("li")] == [passed]
    nobody = page_of(swept({"silo.entries": [12, 20]})).one("section", id="crossings")
    assert nobody.text.endswith(
        "none does: what is compared is throughput itself, and not what it is relative to."
    )
    alone = indelible.sweep(["silo"], ["hash"], ENTRIES)
    for answer in (
        alone,
        swept(PLANE),
        replace(swept({"silo.entries": [12, 20]}), interrupted=True),
    ):
        assert not [*page_of(answer).all("section", id="crossings")]


def test_two_fields_have_a_grid_each_and_one_of_who_is_ahead(fake: ModuleType) -> None:
    answer = swept(PLANE)
    page = page_of(answer)
    tables = [*page.one("section", id="values-table").all("table")]
    axes = "rows: silo.entries · columns: controller.wpq"
    said = [table.one("caption").text for table in tables]
    assert said == [f"{name} · {axes}" for name in ("silo", "leaky", "ahead")]
    assert cells(tables[2])[:2] == [["silo.entries", "32", "64"], ["4", "leaky 1.02", "leaky 1.02"]]
    assert "whose geometric mean of throughput is highest" in page.text
    figure = page.one("figure")
    assert figure.one("image").attributes["href"].startswith("data:image/png;base64,")
    assert len(cells(figure.one("table"))[0]) == 6


def test_what_holds_of_all_tables_of_a_sweep_is_said_once(fake: ModuleType) -> None:
    page = page_of(swept(PLANE))
    section = page.one("section", id="values-table").text
    assert section.count("machine silo · window core · domain adr · 8 cores · seed 1") == 1
    assert page.text.count("whose geometric mean of throughput is highest") == 1
    # With a field alone the machine is that of the table.
    (said,) = (
        one.text for one in page_of(swept()).one("section", id="values-table").all("caption")
    )
    assert said.startswith("machine silo · window core")


def test_what_cannot_be_drawn_says_why(fake: ModuleType) -> None:
    figure = page_of(swept(PLANE | {"cores": [4, 8]})).one("figure")
    assert not [*figure.all("svg")]
    assert "a figure shows a sweep of one field or two, not of 3" in figure.text
    assert len(cells(figure.one("table"))) == 1 + 3 * 2 * 2 * 2 * 3


def test_lines_are_not_as_wide_as_the_page_and_maps_are(fake: ModuleType) -> None:
    wide = ENTRIES | {"leaky.entries": range(4, 20)}
    figures = (page_of(swept(vary)).one("figure") for vary in (ENTRIES, wide))
    boxes = [next(one.all("div", role="group")).attributes["class"] for one in figures]
    assert boxes == ["wide paper narrow", "wide paper"]


def test_fields_that_vary_are_marked_in_what_was_simulated(fake: ModuleType) -> None:
    page = page_of(swept(PLANE))
    found = {
        section: {
            row.children[0].text: row.one("em").text
            for row in page.one("section", id=section).all("tr")
            if [*row.all("em")]
        }
        for section in ("machine", "designs")
    }
    assert found == {
        "machine": {"controller.wpq": "varies: 32, 64"},
        "designs": {"design.entries": "varies: 4, 12, 20"},
    }
    told = page.one("section", id="designs").text
    assert "Its parameters: none of 1 set, 1 varied" in told
    assert "Its parameters: none of 1 set field" in told, "nothing varies of leaky"
    # Under the name that another tool has for it.
    alias = page_of(swept({"controller.entries": [32, 64]})).one("section", id="machine")
    assert [mark.text for mark in alias.all("em")] == ["varies: 32, 64"]


def test_a_field_of_the_machine_of_one_design_is_marked_where_it_varies(fake: ModuleType) -> None:
    page = page_of(swept({"silo.controller.entries": [32, 64]}))
    assert not [*page.one("section", id="machine").all("em")]
    rows = [row for row in page.one("section", id="designs").all("tr") if [*row.all("em")]]
    assert [[cell.text for cell in row.children[:2]] for row in rows] == [
        ["controller.wpq", "64 varies: 32, 64"]
    ]


def test_cores_and_seeds_that_vary_are_those_of_the_points(fake: ModuleType) -> None:
    page = page_of(swept({"cores": [4, 8], "seed": [3, 5]}, txs=80))
    head = facts(page.one("header"))
    assert (head["cores"], head["seeds"], head["transactions"]) == (
        *("4, 8", "3, 5"),
        "10 to 20 of each core",
    )
    runs = page.one("section", id="again").one("table")
    assert cells(runs)[0] == ["design", "workload", "cores", "seed", "version", "id"]
    assert cells(runs)[1][:4] == ["silo", "hash", "4", "3"]
    assert len(cells(runs)) == 1 + 4 * 2 * 2
    words = command_of(page, "sweep")
    assert "--seed" not in words
    assert "--cores" not in words
    assert words[words.index("--txs") + 1] == "80"


@needs_core
def test_transactions_that_vary_are_those_of_each_core() -> None:
    answer = indelible.sweep(["silo"], ["hash"], {"txs": [10, 20]}, "tiny", cores=2)
    page = page_of(answer)
    runs = cells(page.one("section", id="again").one("table"))
    assert [row[:4] for row in runs] == [
        ["design", "workload", "txs", "cores"],
        ["silo", "hash", "10", "2"],
        ["silo", "hash", "20", "2"],
    ]
    assert facts(page.one("header"))["transactions"] == "10 to 20 of each core"


def test_a_part_of_a_sweep_says_that_it_is_one(fake: ModuleType) -> None:
    answer = swept()
    part = {cell: run for cell, run in answer.runs.items() if cell[0] != ("20",)}
    page = page_of(replace(answer, runs=part, interrupted=True))
    assert "interrupted: 8 of 12 cells had ended" in page.one("header").text
    nothing = replace(answer, runs={}, interrupted=True)
    assert refused(lambda: report.html(nothing)) == "there is no report: no run was completed"


# Why.


def test_what_the_ratio_is_and_where_it_stays_is_said(fake: ModuleType) -> None:
    page = page_of(indelible.why(PAIR, ["hash"]))
    assert page.one("h1").text == "Why undo@x86 and silo differ on hash"
    section = page.one("section", id="values-table")
    assert section.one("h2").text == "Throughput: silo over undo@x86 on hash, higher is better"
    assert section.one("p").text == (
        "As it is silo over undo@x86 is 2.38, and above 1 with every one of 12 changes:"
        " 1.58 (undo@x86.entries=40) to 3.36 (controller.wpq=32)."
    )
    assert cells(section.one("table")) == [
        ["as it is", "hash"],
        ["undo@x86", "4.92 Mtx/s"],
        ["silo", "11.7 Mtx/s"],
    ]


def test_the_tables_of_why_are_those_of_the_terminal(fake: ModuleType) -> None:
    answer = indelible.why(PAIR, ["hash"])
    page, printed = page_of(answer), " ".join(str(answer).split())
    for name in ("stacks", "busy", "changes"):
        section = page.one("section", id=f"{name}-table")
        rows = cells(section.one("table"))
        assert len(rows) > 3
        for row in rows:
            assert " ".join(filter(None, row)) in printed
    assert section.one("h2").text in printed
    better = facts(page.one("section", id="better"))
    assert better["silo"] == ("gains most from silo.entries=40 (1.21), silo.entries=10 (1.05)")
    assert "changes with an effect below 2 %: 4" in section.text


def test_the_notes_of_why_are_those_of_the_terminal(fake: ModuleType) -> None:
    page = page_of(indelible.why(["hops", "silo"], ["hash"], seeds=2))
    assert (
        "* misses that a core waits for behind a fence"
        in page.one("section", id="stacks-table").text
    )
    told = page.one("section", id="changes-table").text
    for note in (
        "* each design relative to itself as it is; ratio: silo over hops†, both changed",
        "* changes with an effect below 2 %, or whose 95 % interval includes 1: 6",
        "± 95 %: the widest confidence interval over 2 seeds is that of hops†",
        "† hops: weaker durability: a commit returns before it is durable",
    ):
        assert told.count(note) == 1


def test_every_change_is_behind_the_figure(fake: ModuleType) -> None:
    answer = asked_why(by=3)
    page = page_of(answer)
    rows = cells(page.one("figure").one("table"))
    assert len(rows) == 2 + len(answer.rows) > 10
    assert {tuple(row[:3]) for row in rows[2:]} == {
        (row["field"], row["before"], row["after"]) for row in answer.rows
    }
    fields = facts(page.one("header"))["fields"]
    assert fields.startswith("every one, one at a time: numbers divided and multiplied by 3")
    some = facts(page_of(asked_why(fields=["controller", "silo"])).one("header"))["fields"]
    assert some.startswith("controller, silo, one at a time: numbers halved and doubled")


def test_what_moves_less_than_the_most_is_counted(
    fake: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    from indelible.pages import causes as causes_page

    monkeypatch.setattr(causes_page, "TOP", 3)
    section = page_of(indelible.why(PAIR, ["hash"])).one("section", id="changes-table")
    assert len(cells(section.one("table"))) == 2 + 3
    assert "changes that move less than those above, below the figure: 5" in section.text
    assert "--top" not in section.text


def test_changed_fields_are_marked_in_what_was_simulated(fake: ModuleType) -> None:
    page = page_of(asked_why(set={"silo.entries": 4}))
    marks = [mark.text for mark in page.one("section", id="machine").all("em")]
    assert marks == ["varies: 32, 128", "varies: 200000, 800000"]
    designs = {
        part.one("h3").text: next(part.one("table").all("td")).text
        for part in page.one("section", id="designs").all("section")
    }
    assert designs == {
        "undo@x86": "20 varies: 10, 40",
        "silo": "20 varies: 2, 8",
    }


def test_runs_are_counted_and_changes_that_were_not_run_told(fake: ModuleType) -> None:
    answer = indelible.why(PAIR, ["hash"])
    page = page_of(answer).one("section", id="again")
    count = len(answer.sweep.runs)
    assert (
        f"It is of {count} runs, and runs in the JSON are those without a change: 2." in page.text
    )
    assert not [*page.all("table")]
    change = Change("machine", "pm.banks", "16", "8")
    page = page_of(replace(answer, refused=(Refused(change, "one bank is needed"),)))
    assert cells(page.one("section", id="again").one("table"))[1:] == [
        ["pm.banks", "16", "8", "one bank is needed"]
    ]


def test_of_one_design_there_is_no_ratio(fake: ModuleType) -> None:
    page = page_of(indelible.why(["silo"], ["hash"], metric="pm-writes"))
    assert page.one("h1").text == "What silo on hash depends on"
    section = page.one("section", id="values-table")
    assert not [*section.all("p")]
    assert cells(section.one("table"))[1][0] == "silo"
    assert page.one("section", id="stacks-table").one("h2").text.startswith("PM writes")
    assert cells(page.one("section", id="changes-table").one("table"))[0][-1] == "silo"


def test_a_part_of_an_answer_says_that_it_is_one(fake: ModuleType) -> None:
    answer = indelible.why(PAIR, ["hash"])
    here = {cell: run for cell, run in answer.sweep.runs.items() if cell[0] == ("as it is",)}
    part = replace(answer, sweep=replace(answer.sweep, runs=here, interrupted=True))
    page = page_of(part)
    assert f"interrupted: 2 of {len(answer.sweep.runs)} cells had ended" in page.one("header").text
    figure = page.one("figure")
    assert "no change has an effect that could be drawn" in figure.text
    half = {cell: run for cell, run in here.items() if cell[1] == "silo"}
    assert page_of(replace(part, sweep=replace(part.sweep, runs=half))).one("h1").text
    nothing = replace(part, sweep=replace(part.sweep, runs={}))
    assert refused(lambda: report.html(nothing)) == "there is no report: no run was completed"
