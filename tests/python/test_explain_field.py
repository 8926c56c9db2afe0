"""`explain` of one field of a machine, a design or a workload, and of one rule."""

from __future__ import annotations

from pathlib import Path

import pytest

import indelible
from conftest import needs_core, refused

pytestmark = needs_core


def test_a_field_of_a_machine_has_the_value_there() -> None:
    (silo,) = indelible.explain("controller.wpq")["rows"]
    (optane,) = indelible.explain("controller.wpq", machine="optane")["rows"]
    assert (silo["key"], silo["value"]) == ("write_buffer_size", 64)
    assert optane["value"] == 4
    (changed,) = indelible.explain("controller.wpq", {"controller.wpq": 7})["rows"]
    assert changed["value"] == 7
    told = str(indelible.explain("pm.tCL"))
    assert told.startswith("pm.tCL (field)\nof machine silo\n")


def test_a_part_of_a_machine_has_all_its_fields() -> None:
    about = indelible.explain("controller", {"controller.wpq": 7}, machine="optane")
    assert {row["section"] for row in about["rows"]} == {"controller"}
    values = {row["key"]: row["value"] for row in about["rows"]}
    assert (values["write_buffer_size"], values["domain"]) == (7, "adr")
    assert str(about).startswith("controller (fields)\nof machine optane\n")
    every = {row["section"] for row in indelible.explain("machine:optane")["rows"]}
    assert not every & {row["name"] for row in indelible.list()}
    text = refused(lambda: indelible.explain("controller", {"silo.entries": 7}))
    assert text == "`silo` is a design that is not run here"


def test_a_field_or_rule_of_a_design_is_told_alone() -> None:
    about = indelible.explain("silo.entries")
    assert [param["name"] for param in about["params"]] == ["entries"]
    assert "rules" not in about
    about = indelible.explain("hops.wait_for_dependences")
    assert [rule["name"] for rule in about["rules"]] == ["wait_for_dependences"]
    assert indelible.explain("btree.items")["kind"] == "workload"
    assert "design.entries  20" in str(indelible.explain("silo.entries"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pm.tcl", "unknown parameter `tcl`; there are: "),
        ("silo.entrys", "unknown parameter or rule of silo `entrys`; there are: entries, "),
        ("design.entries", "`design.entries` is a field of every design that has it; name one,"),
        ("nosuch.foo", "unknown design, workload, machine or ordering hardware `nosuch`"),
    ],
)
def test_what_is_unknown_is_answered_with_what_there_is(name: str, text: str) -> None:
    assert refused(lambda: indelible.explain(name)).startswith(text)


def test_a_machine_file_is_no_field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("far.toml").write_text('extends = "silo"\n[controller]\nwpq = 3\n', encoding="utf-8")
    assert indelible.explain("far.toml")["kind"] == "machine"
    (row,) = indelible.explain("controller.wpq", machine="far.toml")["rows"]
    assert row["value"] == 3
