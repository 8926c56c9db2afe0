"""`battery`: what is computed beside what was published, and whose settings a row is of."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType

import pytest

import indelible
from indelible import extension
from indelible.batteries import Saved, saved
from indelible.errors import InputError
from indelible.experiment import Experiment

Command = Callable[..., tuple[int, str, str]]


def test_a_battery_stands_beside_the_published_one(command: Command, fake: ModuleType) -> None:
    words = [
        "battery",
        "--designs",
        "silo,native",
        "--cores",
        "4",
        "--set",
        "energy.dirty_share=9%",
    ]
    answer = json.loads(command(*words, "--json")[1])
    (row,) = answer["rows"]
    cells = "flush_kb energy_uj supercap_mm3 supercap_mm2 li_mm3 li_mm2"
    assert [*row] == ["design", *cells.split(), "published", "cores", "dirty_percent"]
    assert [*row["published"]] == ["source", *cells.split()]
    assert (row["design"], row["published"]["source"]) == ("silo", "HPCA'23 Silo")
    assert (row["energy_uj"], row["published"]["energy_uj"]) == (61.08032, 62)
    assert answer["without"] == ["native"]
    asked = {"designs": ["silo", "native"], "cores": 4}
    assert fake.batteries == [asked | {"settings": [("energy.dirty_share", "9%")]}]
    assert indelible.battery()["without"][0] == "native"
    assert fake.batteries[-1]["designs"] == []


def test_a_battery_is_of_a_design_s_own_settings(command: Command, fake: ModuleType) -> None:
    words = ["--set", "silo.entries=40", "--set", "energy.dirty_share=9%"]
    shared, own = ("energy.dirty_share", "9%"), ("design.entries", "40")
    answer = json.loads(command("battery", "--designs", "silo,native,hops", *words, "--json")[1])
    assert [row["design"] for row in answer["rows"]] == ["silo", "hops"]
    assert answer["rows"][1]["published"] is None
    assert (answer["without"], answer["machine"]) == (["native"], "silo")
    said = [(asked["designs"], asked["settings"]) for asked in fake.batteries]
    assert said == [(["silo"], [own, shared]), (["native"], [shared]), (["hops"], [shared])]
    shown = command("battery", "--designs", "silo,hops", "--set", "hops.core.cores_max=2")[1]
    assert shown.startswith("Batteries: machine silo · 45 % of caches dirty\n")
    assert "silo: 8 cores · 45 % of caches dirty; hops: 2 cores · 45 % of" in shown
    fake.batteries.clear()
    command("battery", "--designs", "silo", *words)
    assert [asked["settings"] for asked in fake.batteries] == [[own, shared]]


def test_what_is_saved_is_the_most_of_each_kind_or_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = {"8": {"bytes": 500, "energy_uj": 9.0}, "16": {"bytes": 700, "energy_uj": 3.0}}

    def batteries(
        designs: list[str], machine: str, cores: int, settings: tuple[tuple[str, str], ...]
    ) -> dict:
        (value,) = dict(settings).values()
        if value not in rows:
            raise InputError("no such machine")
        return {"saved": [rows[value]]}

    monkeypatch.setattr(extension, "batteries", batteries)

    def of(*values: str) -> Saved | None:
        runs = [Experiment("lad", "hash", settings=(("controller.wpq", one),)) for one in values]
        return saved(runs, 2)

    assert of("8", "16") == Saved(700, 9.0)
    assert of("8") == Saved(500, 9.0)
    # The runs that are not known may be those that save the most.
    assert of("8", "none") is None
