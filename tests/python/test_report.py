"""The page of a comparison: what is in it, what it says of designs, and what it is not to load."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from types import ModuleType

import pytest

import indelible
from conftest import needs_core, needs_full, refused
from indelible.pages import comparison as comparison_page
from indelible.pages import report
from indelible.pages.inline import inlined
from indelible.results.comparison import Comparison
from indelible.views import VIEWS
from pages import Element, Page, cells, command_of, have_heads, heads, is_alone

Command = Callable[..., tuple[int, str, str]]

DESIGNS = ["native", "undo@x86", "hops", "silo", "leaky"]
ASKED = ("compare", "--designs", ",".join(DESIGNS), "--workloads", "hash,btree")


def compared(**asked: object) -> Comparison:
    return indelible.compare(DESIGNS, ["hash", "btree"], **asked)


def page_of(answer: Comparison) -> Element:
    return Page(report.html(answer)).root


def row_of(table: Element, design: str) -> Element:
    """Return the first row of a design."""
    named = (row for row in table.all("tr") if any(h.text.startswith(design) for h in heads(row)))
    return next(named)


def test_the_page_has_its_parts_in_their_order(fake: ModuleType) -> None:
    page = page_of(compared(cores=8, seeds=2, txs=500, latencies=True))
    assert page.one("h1").text == "native, undo@x86, hops, silo, leaky on hash, btree"
    assert page.one("title").text == page.one("h1").text
    asked = page.one("header").text
    assert "machine silo · window core · domain adr" in asked
    assert "cores 8 transactions 62 of each core seeds 1, 2 simulator Indelible 0.0.0" in asked
    order = [one.attributes["id"] for one in page.one("main").children]
    assert order == [
        *("ratios-table", "summary-table", "figures"),
        *("machine", "designs", "workloads", "again"),
    ]
    figures = [*page.all("figure")]
    assert [figure.attributes["id"] for figure in figures] == [
        *("ratios", "writes", "stalls", "usage", "latencies", "summary")
    ]
    assert {*comparison_page.FIGURES} == {*VIEWS}
    for figure in figures:
        drawing = figure.one("svg", role="img")
        assert "undo@x86" in drawing.attributes["aria-label"]
        assert [*figure.one("details").all("table")]


def test_every_number_of_the_main_table_is_in_it(fake: ModuleType) -> None:
    answer = compared(cores=[1, 8], seeds=3)
    tables = [*page_of(answer).one("section", id="ratios-table").all("table")]
    printed = str(answer).split("\n\nThroughput")
    assert len(tables) == 2
    for table, cores in zip(tables, (1, 8), strict=True):
        shown = cells(table)
        assert shown[0] == ["design", "hash", "btree", "gmean", "± 95 %"]
        assert [row[1:] for row in shown[1:]] == [
            row[1:] for row in VIEWS["ratios"].grid(answer, cores)[1:]
        ]
        silo = next(row for row in shown if row[0].startswith("silo"))
        assert silo[1:4] == [
            f"{answer.ratio(('silo', 'hash', cores)):.2f}",
            f"{answer.ratio(('silo', 'btree', cores)):.2f}",
            f"{answer.gmean('silo', cores):.2f}",
        ]
        assert all(number in "".join(printed) for row in shown[1:] for number in row[1:])


def test_a_verdict_stands_beside_every_number_of_a_design(fake: ModuleType) -> None:
    page = page_of(compared(cores=8))
    said = {
        "native": "native none no durability",
        "undo@x86": "undo@x86 ok 400",
        "hops": "hops ok 400 weaker durability",
        "silo": "silo ok 400",
        "leaky": "leaky FAIL 5/400 not crash-safe",
    }
    found = [row for table in page.all("table") for row in table.all("tr") if heads(row)]
    of_designs = [head.text for row in found for head in heads(row) if is_design(head)]
    assert {*of_designs} == {*said.values(), "1.00 is"}
    # Five designs in two tables and their figures', on two workloads and their mean elsewhere.
    assert len(of_designs) == 2 * (5 + 1) + 2 * 5 + 2 * 5 * 3 + 2 * 5 * 2
    for figure in page.all("figure"):
        told = [*figure.all("p")][-1].text
        assert told == (
            "Crash test: native† none no durability, undo@x86 ok 400,"
            " hops† ok 400 weaker durability, silo ok 400, leaky! FAIL 5/400 not crash-safe"
        )
    legend = page.one("section", id="ratios-table").text
    assert "M of N power failures broke something" in legend
    assert "a bound, not a rival" in legend
    assert "untested" not in legend


def is_design(head: Element) -> bool:
    return head.attributes.get("class") == "design"


def test_what_is_no_rival_is_marked_and_what_is_safe_is_not(fake: ModuleType) -> None:
    table = page_of(compared(cores=8)).one("section", id="ratios-table").one("table")
    marked = {d: row_of(table, d).attributes.get("class") for d in DESIGNS}
    warned = dict.fromkeys(["native", "hops", "leaky"], "warned")
    assert marked == {"undo@x86": None, "silo": None} | warned


def test_without_campaigns_designs_are_untested(fake: ModuleType) -> None:
    page = page_of(indelible.compare(["silo"], ["hash"], crash=False))
    assert row_of(page.one("section", id="ratios-table"), "silo").text == "silo untested 1.00 1.00"
    assert "indelible crash" not in page.one("section", id="again").text


def test_a_note_of_many_runs_is_told_once(fake: ModuleType) -> None:
    answer = compared(cores=8)
    for run in answer.runs.values():
        run.data["notes"] = ["a note of all"]
    answer.runs["silo", "hash", 8, 1].data["notes"] = ["a note of all", "a note of one"]
    told = page_of(answer).one("section", id="ratios-table").text
    assert (told.count("a note of all"), told.count("a note of one")) == (1, 1)


def test_a_campaign_is_there_once_and_none_of_what_keeps_nothing(fake: ModuleType) -> None:
    table, _ = page_of(compared(cores=[4, 8])).one("section", id="again").all("table")
    assert [tuple(row[:2]) for row in cells(table)[1:]] == [
        (design, workload) for workload in ("hash", "btree") for design in DESIGNS[1:]
    ]


def test_what_was_simulated_has_its_facts_and_what_it_accepts(fake: ModuleType) -> None:
    page = page_of(compared())
    design = next(page.one("section", id="designs").all("dl")).text
    assert design == "paper A Paper, HPCA 2023 file crates/designs/src/silo.rs"
    table = next(page.one("section", id="designs").all("table"))
    assert cells(table)[1] == ["design.entries", "20", "Logs that a buffer holds. [1 to 4096]"]
    machine = cells(page.one("section", id="machine").one("table"))[1]
    about = "Entries of the write-pending queue. [1 to 4096]"
    assert machine == ["controller.wpq", "64", "count", "Silo, Table II", about]


def test_a_number_of_items_is_one_of_the_machine(fake: ModuleType) -> None:
    page = page_of(compared(set={"workload.items": 1000}))
    assert "workload.items=1000 (it was 400000)." in page.one("section", id="machine").text
    for section in ("designs", "workloads"):
        shown = [
            row for table in page.one("section", id=section).all("table") for row in cells(table)
        ]
        assert "workload.items" not in [row[0] for row in shown]


def test_the_seeds_of_a_page_are_those_of_its_numbers(fake: ModuleType) -> None:
    answer = compared(cores=8, seeds=3)
    runs = {cell: run for cell, run in answer.runs.items() if cell != ("silo", "hash", 8, 2)}
    head = page_of(replace(answer, runs=runs, interrupted=True)).one("header").text
    assert "seeds 1 simulator" in head
    assert "interrupted: 29 of 30 runs had ended" in head


def test_the_page_loads_nothing_and_has_no_id_twice(fake: ModuleType) -> None:
    is_alone(report.html(compared(latencies=True)), "comparison")


def test_tables_have_heads_that_say_of_what_they_are(fake: ModuleType) -> None:
    tables = [*page_of(compared(latencies=True)).all("table")]
    assert len(tables) > 10
    have_heads(tables)


def test_the_same_rows_give_the_same_bytes(fake: ModuleType, tmp_path: Path) -> None:
    answer, again = (compared(cores=8, latencies=True) for _ in range(2))
    answer.report(tmp_path / "one.html")
    again.report(tmp_path / "two.html")
    one = (tmp_path / "one.html").read_bytes()
    assert one == (tmp_path / "two.html").read_bytes()
    run = again.runs["silo", "hash", 8, 1]
    run.data["throughput_tx_per_s"] *= 2
    again.report(tmp_path / "two.html")
    assert one != (tmp_path / "two.html").read_bytes()


def test_the_rows_are_those_of_the_json(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "it.html"
    code, shown, complaint = command(*ASKED, "--seeds", "2", "--json", "--report", str(path))
    assert (code, complaint) == (1, "")
    assert report.read(path) == json.loads(shown)
    other = tmp_path / "other.html"
    other.write_text("<p>Nothing.</p>", encoding="utf-8")
    assert refused(lambda: report.read(other)) == f"{other}: is not a page that `--report` wrote"
    gone = tmp_path / "gone.html"
    assert refused(lambda: report.read(gone)) == f"{gone}: no such file or directory"


def test_what_the_page_says_of_python_gives_its_rows(
    fake: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = compared()
    answer.report(tmp_path / "report.html")
    monkeypatch.chdir(tmp_path)
    page = Path("report.html").read_text(encoding="utf-8")
    (said,) = re.findall(r"<code>(from indelible[^<]*)</code>", page)
    *imports, rows = unescape(said).strip().splitlines()
    names: dict[str, object] = {}
    exec("\n".join(imports), names)
    assert eval(rows, names) == json.loads(json.dumps(answer.rows))


NAME = "<script>alert(1)</script>\"&'<b>"


def test_what_users_name_is_text(fake: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake, "WORKLOADS", fake.WORKLOADS | {NAME: 1e6})
    monkeypatch.setattr(fake, "DESIGNS", fake.DESIGNS | {NAME: ("synchronous", 0.5)})
    told = fake.explain
    monkeypatch.setattr(
        *(fake, "explain"),
        lambda name, *asked: told(name, *asked).replace("in a battery", "<script>x</script>"),
    )
    answer = indelible.compare([NAME, "silo"], [NAME, "hash"])
    for run in answer.runs.values():
        run.data["notes"] = [f"a note {NAME}"]
    text = report.html(answer)
    page = Page(text).root
    assert page.one("h1").text == f"{NAME}, silo on {NAME}, hash"
    assert len([*page.all("script")]) == 1
    assert not [*page.all("b")]
    assert f"a note {NAME}" in page.one("section", id="ratios-table").text
    assert "Logs <script>x</script>-backed buffer." in page.one("section", id="designs").text
    assert NAME not in text


def test_a_script_is_named_where_its_workload_is(command: Command, tmp_path: Path) -> None:
    script, path = tmp_path / "<script>&.sql", tmp_path / "it.html"
    script.write_text("SELECT 1;\n", encoding="utf-8")
    words = ["compare", "--designs", "silo", "--workloads", "sqlite", "--sql", str(script)]
    assert command(*words, "--report", str(path))[0] == 0
    page = Page(path.read_text(encoding="utf-8")).root
    assert f"--sql {script}" in page.one("section", id="workloads").text
    assert f"--sql '{script}'" in page.one("section", id="again").text
    assert len([*page.all("script")]) == 1


def test_what_was_set_is_marked(fake: ModuleType) -> None:
    answer = compared(set={"controller.wpq": 8, "silo.entries": 4, "workload.value": 8})
    machine = page_of(answer).one("section", id="machine")
    (changed,) = machine.all("tr", **{"class": "changed"})
    shown = [cell.text for cell in changed.children]
    assert shown[:4] == ["controller.wpq", "8 set; it was 64", "count", "Silo, Table II"]
    assert "controller.wpq=8 (it was 64)." in machine.text
    unset = page_of(compared()).one("section", id="machine")
    assert not [*unset.all("mark")]


@needs_core
def test_what_was_set_of_a_design_and_a_workload_is_marked_there() -> None:
    answer = indelible.compare(
        ["undo@x86", "silo"],
        ["hash"],
        **{"cores": 1, "txs": 20, "crash": False},
        set={"silo.entries": 4, "workload.value": 8, "pm.write_latency": "200ns"},
    )
    page = page_of(answer)
    found = {
        section: [
            [cell.text for cell in row.children[:2]]
            for row in page.one("section", id=section).all("tr", **{"class": "changed"})
        ]
        for section in ("machine", "designs", "workloads")
    }
    assert found == {
        "machine": [["pm.tWRITE", "200ns set; it was 150ns"]],
        "designs": [["design.entries", "4 set; it was 20"]],
        "workloads": [["workload.value", "8 set; it was 64"]],
    }
    told = page.one("section", id="designs").text
    assert "Zhang and Hua, HPCA 2023" in told
    assert "an acknowledged transaction is durable, whole" in told
    ids = [run.id for run in answer.runs.values()]
    assert all(id in page.one("section", id="again").text for id in ids)


def test_what_was_set_of_the_machine_of_one_design_is_marked_there(fake: ModuleType) -> None:
    page = page_of(compared(set={"silo.controller.wpq": 8, "controller.wpq": 32}))
    found = {
        section: [
            [cell.text for cell in row.children[:2]]
            for row in page.one("section", id=section).all("tr", **{"class": "changed"})
        ]
        for section in ("machine", "designs")
    }
    assert found == {
        "machine": [["controller.wpq", "32 set; it was 64"]],
        "designs": [["controller.wpq", "8 set; it was 32"]],
    }


def test_a_view_without_a_figure_says_why(fake: ModuleType) -> None:
    figure = page_of(compared()).one("figure", id="latencies")
    assert not [*figure.all("svg")]
    assert "compare with latencies=True" in figure.text
    assert "812" in figure.one("table").text


def test_writes_are_relative_to_a_design_that_writes(fake: ModuleType) -> None:
    answer = compared()
    for run in answer.runs.values():
        if run.design == "native":
            run.data["pm_writes"] |= {"wpq_bytes": 0, "by_class": {"data": 0, "log": 0}}
    page = page_of(answer)
    assert (
        page.one("section", id="ratios-table").one("h2").text.endswith("native, higher is better")
    )
    assert page.one("section", id="summary-table").one("h2").text.endswith("to undo@x86")
    assert [*page.one("figure", id="writes").all("svg")]
    assert "all of undo@x86 = 100" in page.one("figure", id="writes").text
    assert "all of native = 100" in page.one("figure", id="stalls").text
    # Of bounds alone nothing is.
    bounds = indelible.compare(["native"], ["hash"], crash=False)
    assert page_of(bounds).one("section", id="summary-table").one("h2").text.endswith("to native")


def test_what_was_interrupted_is_not_written_by_the_command(
    command: Command, interrupt: Callable[[int], None], tmp_path: Path
) -> None:
    path = tmp_path / "it.html"
    interrupt(1)
    code, _, complaint = command(*ASKED, "--report", str(path), "--set", "fake.sleep=0.05")
    assert (code, path.exists()) == (130, False)
    assert complaint == f"indelible: interrupted, so nothing was written to {path}\n"


def test_a_part_of_a_comparison_says_that_it_is_one(fake: ModuleType) -> None:
    answer = compared()
    part = {cell: run for cell, run in answer.runs.items() if cell[0] != "silo"}
    page = page_of(replace(answer, runs=part, interrupted=True))
    assert "interrupted: 8 of 10 runs had ended" in page.one("header").text
    nothing = replace(answer, runs={}, interrupted=True)
    assert refused(lambda: report.html(nothing)) == "there is no report: no run was completed"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("it.pdf", "--report it.pdf: the name of a report must end in .html"),
        ("no/such/it.html", "--report no/such/it.html: there is no directory `no/such`; make it"),
        ("-", "--report -: the name of a report must end in .html"),
        ("", "--report : the name of a report must end in .html"),
    ],
)
def test_what_cannot_be_a_report_is_told_before_anything_is_run(
    command: Command, fake: ModuleType, name: str, said: str
) -> None:
    code, shown, complaint = command(*ASKED, "--report", name)
    assert (code, shown, fake.asked, complaint.count("\n")) == (2, "", [], 1)
    assert said in complaint


def test_two_outputs_are_not_one_file(command: Command, fake: ModuleType, tmp_path: Path) -> None:
    path = str(tmp_path / "it.html")
    code, _, complaint = command(*ASKED, "--csv", path, "--report", path)
    assert (code, fake.asked) == (2, [])
    assert f"--csv and --report both name {path}: one would replace the other" in complaint


@pytest.mark.parametrize("library", ["jinja2", "matplotlib", "textalloc"])
def test_a_missing_library_is_told_before_anything_is_run(
    command: Command,
    fake: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    library: str,
) -> None:
    imported = report.importlib.import_module

    def without(name: str) -> ModuleType:
        if name == library:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return imported(name)

    monkeypatch.setattr(report.importlib, "import_module", without)
    path = tmp_path / "it.html"
    code, shown, complaint = command(*ASKED, "--report", str(path))
    assert (code, shown, fake.asked, path.exists()) == (2, "", [], False)
    fix = f"needs {library}: python -m pip install 'indelible[report]'\n"
    assert complaint == f"indelible: error: --report {fix}"
    answer = compared()
    assert refused(lambda: answer.report(path)) == f"a report {fix}".rstrip()


@needs_full
def test_a_full_disk_is_told_with_the_file(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "full.html"
    path.symlink_to("/dev/full")
    code, _, complaint = command(*ASKED, "--report", str(path))
    assert (code, complaint) == (2, f"indelible: error: {path}: no space left on device\n")


def test_a_drawing_within_a_page_has_names_of_its_own() -> None:
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
        "<metadata>of all</metadata><defs><style>*{fill: red}</style>"
        '<path id="m1"/><clipPath id="p1"/></defs><g id="unused" fill="#001122">'
        '<use xlink:href="#m1" clip-path="url(#p1)" style="fill: url(#h1)"/>'
        '<image id="i1" xlink:href="data:image/png;base64,iVBO"/>'
        "<text>id=&quot;m1&quot; url(#p1) &lt;b&gt;\x07</text></g></svg>"
    )
    assert inlined(svg, "it", 'a "figure"') == (
        '<svg role="img" aria-label="a &quot;figure&quot;"><defs><path id="it-m1" />'
        '<clipPath id="it-p1" /></defs><g fill="#001122">'
        '<use href="#it-m1" clip-path="url(#it-p1)" style="fill: url(#it-h1)" />'
        '<image href="data:image/png;base64,iVBO" />'
        '<text>id="m1" url(#p1) &lt;b&gt;\ufffd</text></g></svg>'
    )


def test_the_command_is_said_of_what_was_compared(fake: ModuleType) -> None:
    assert command_of(page_of(compared()), "compare") == [
        *("--designs", "native,undo@x86,hops,silo,leaky", "--workloads", "hash,btree"),
        *("--machine", "silo", "--normalize", "native", "--seed", "1", "--report", "report.html"),
    ]
