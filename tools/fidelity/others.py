"""Batteries, write sets of profiles, and the simulator on the loop of cached logs."""

from __future__ import annotations

from collections.abc import Sequence

import indelible
from fidelity.tables import Block, Entry, Facts, Grid, Table, of_run, ratio, said, shown
from indelible import extension
from indelible.evaluation import Cell, Quantity, Rows
from indelible.native import SIMULATED, SIMULATED_ENTRIES, before_it_is_steady
from indelible.text import battery as battery_text
from indelible.text import characterization as characterization_text
from indelible.verbs import characterize

#: Columns of the document's text.
WIDTH = 80


def _table_of(printed: str) -> str:
    """Return the table that a command prints, without title and notes."""
    return printed.split("\n\n")[1]


# Batteries.


def _batteries(_rows: Rows) -> str:
    return _table_of(battery_text.battery(indelible.battery(machine="silo", cores=8), WIDTH))


# Write sets of profiles.


def _profiles() -> dict[str, Cell]:
    return {
        name: Cell(
            characterize.WITH,
            name,
            1,
            machine=characterize.ON,
            txs=characterize.TXS,
            epochs=True,
        )
        for name in PROFILES
    }


#: The profiles with published numbers, in the order of the paper's table.
PROFILES = (
    "btree-rand",
    "rbtree-rand",
    "hash-rand",
    "sps",
    "btree-zipf",
    "rbtree-zipf",
    "hash-zipf",
    "memcached-mtm",
    "vacation",
)


def _write_sets(rows: Rows) -> str:
    published = {row["name"]: row["published"] for row in extension.catalog("profiles")}
    answer = {
        "machine": characterize.ON,
        "cores": 1,
        "txs": characterize.TXS,
        "seed": 1,
        "rows": [
            characterize.characterized(rows(cell), published) for cell in _profiles().values()
        ],
        "notes": [],
        "cancelled": False,
    }
    return _table_of(characterization_text.characterization(answer, WIDTH))


# The loop of cached logs.

#: The elements of an array of 8 MiB.
ITEMS = 2_097_152


def _nanoseconds(
    variant: str, entries: int, place: str, machine: str = "optane", more: str = ""
) -> Quantity:
    """Return the time of an entry with log and array in this kind of memory."""
    memory, design, domain = SIMULATED[place]
    settings = said(
        f"controller.domain={domain} workload.variant={variant}"
        f" workload.entries_per_fence={entries} workload.items={ITEMS}"
        f" workload.log_in={memory} workload.array_in={memory} {more}"
    )
    run = Cell(
        design,
        "logcache",
        1,
        settings,
        machine=machine,
        txs=SIMULATED_ENTRIES // entries,
        warmup=before_it_is_steady(ITEMS, "linear") // entries,
    )
    return of_run(run, lambda row: 1e9 * row["simulated_s"] / (row["txs"] * entries))


def _simulated(variant: str, entries: int, native: str) -> Sequence[Entry]:
    """Return a row; the times of processors were measured once and are constants here."""
    label = f"`{variant}`, {entries}"
    if variant == "cached":
        label += " entry"
    return [
        label,
        native,
        *(
            shown(
                "{} ({})",
                *(
                    _rounded(_nanoseconds(variant, entries, place, machine))
                    for machine in ("optane", "silo")
                ),
            )
            for place in ("dram", "adr", "media", "eadr")
        ),
    ]


class _Rounded(float):
    """A time that is written with one digit after the point if it is below a hundred."""

    def __format__(self, spec: str) -> str:
        return f"{float(self):,.0f}" if self >= 100 else f"{float(self):.1f}"


def _rounded(quantity: Quantity) -> Quantity:
    return Quantity(quantity.cells, lambda rows: _Rounded(quantity.measure(rows)))


SIMULATED_LOOP = Grid(
    ("", "native", "DRAM", "PM, `adr`", "PM, `media`", "PM, caches survive"),
    [
        _simulated("cached", 1, "2.0, 2.0"),
        _simulated("cached+clwb", 1, "160, 231"),
        _simulated("cached+clwb", 8, "19.7, 25.4"),
        _simulated("cached+clflushopt", 1, "304, 334"),
        _simulated("movnti4", 1, "104, 302"),
        _simulated("movnti4", 8, "11.9, 23.6"),
    ],
)

STOPS = "core.fenced_stores=dispatch"

BATTERIES = Table("battery.silo", "batteries", Block((), _batteries))

WRITE_SETS = Table(
    "ssp.write_sets",
    "write sets of SSP's workloads",
    Block(tuple(_profiles().values()), _write_sets),
)

LOOP = (
    Table("logcache.simulated", "the simulator on the loop of cached logs", SIMULATED_LOOP),
    Facts(
        "logcache.prose",
        "of the simulator on the loop of cached logs, machine optane",
        [
            (
                "DRAM: cached+clwb over movnti4, movnti4 over cached",
                shown(
                    "{:.1f}, {:.1f}",
                    *(
                        ratio(_nanoseconds(over, 1, "dram"), _nanoseconds(under, 1, "dram"))
                        for over, under in (("cached+clwb", "movnti4"), ("movnti4", "cached"))
                    ),
                ),
            ),
            (
                "cores that stop at a store: cached, and movnti4 over it",
                shown(
                    "{:.1f} ns, {:.1f}",
                    _nanoseconds("cached", 1, "dram", more=STOPS),
                    ratio(
                        _nanoseconds("movnti4", 1, "dram", more=STOPS),
                        _nanoseconds("cached", 1, "dram", more=STOPS),
                    ),
                ),
            ),
            ("nt64 where caches survive", shown("{:.1f} ns", _nanoseconds("nt64", 1, "eadr"))),
        ],
    ),
)
