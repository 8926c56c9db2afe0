"""Silo and its rivals once the caches are full of lines that were stored to."""

from __future__ import annotations

from collections.abc import Sequence

from fidelity.rivals import LONG, SMALL_SETS
from fidelity.tables import Entry, Facts, Grid, Table, each, labelled, said, shown
from indelible.evaluation import TXS, Over, Quantity

#: Transactions of a core before measuring begins, and those that are measured.
WARM, MEASURED = 25_000, 4_000

#: Warm-ups beside those of runs of usual lengths; the last two give nearly the same.
WARMUPS = (3_000, 12_000, WARM, 40_000)

#: So few items that the last level holds them.
FEW = " ".join(f"{name}.items=20000" for name in SMALL_SETS)

DESIGNS = ("native", "undo@x86", "fwb", "morlog", "lad", "silo")


def _over(
    design: str,
    under: str,
    *,
    workloads: Sequence[str] = SMALL_SETS,
    warmup: int | None = WARM,
    txs: int = MEASURED,
    settings: str = "",
    own: str = "",
) -> Over:
    return Over(
        design,
        under,
        workloads,
        8,
        said(settings),
        said(own),
        machine="silo",
        txs=txs,
        warmup=warmup,
    )


def _row(label: str, workloads: Sequence[str], settings: str = "") -> Sequence[Entry]:
    """Return all designs over base in the steady state."""
    return [
        label,
        *(
            shown("{:.2f}", _over(name, "base", workloads=workloads, settings=settings).times())
            for name in DESIGNS
        ),
    ]


STEADY = Grid(
    ("over `base`, 8 cores", *(f"`{name}`" for name in DESIGNS)),
    [
        *(_row(f"`{name}`", (name,)) for name in SMALL_SETS),
        _row("geometric mean", SMALL_SETS),
        _row("20,000 items, which the last level holds", SMALL_SETS, FEW),
    ],
)

PAIRS = (
    ("silo", "lad"),
    ("silo", "morlog"),
    ("silo", "fwb"),
    ("silo", "undo@x86"),
    ("native", "undo@x86"),
)


def _length(label: str, warmup: int | None, txs: int) -> Sequence[Entry]:
    """Return ratios of designs after a warm-up."""
    pairs = [_over(over, under, warmup=warmup, txs=txs) for over, under in PAIRS]
    return [label, *(shown("{:.2f}", pair.times()) for pair in pairs)]


LENGTHS = Grid(
    ("warm-up", *(f"`{over}` over `{under}`" for over, under in PAIRS)),
    [
        _length("200, then 2,000 (the default)", None, TXS),
        _length("1,000, then 10,000", None, LONG),
        *(_length(f"{warmup:,}, then 4,000", warmup, MEASURED) for warmup in WARMUPS),
    ],
)


def _own(design: str, own: str) -> Sequence[Quantity]:
    """Return a design with another setting over itself on each workload, and their mean."""
    parts = [(name,) for name in SMALL_SETS]
    return [
        _over(design, design, workloads=part, warmup=None, txs=TXS, own=own).times()
        for part in (*parts, SMALL_SETS)
    ]


def _morlog_over_fwb(own: str = "", settings: str = "") -> Quantity:
    """Return MorLog over FWB, with a setting of MorLog's own or one of both."""
    return _over("morlog", "fwb", warmup=None, txs=TXS, settings=settings, own=own).times()


def _ring(over: str, *, warmup: int | None, txs: int) -> Quantity:
    """Return a design over `undo@x86` whose log is a ring."""
    ring = "undo@x86.log_place=ring"
    return _over(over, "undo@x86", warmup=warmup, txs=txs, settings=ring).times()


PROSE = Facts(
    "steady.prose",
    "of the steady state, and of what decides between rivals of Silo",
    [
        *(
            (
                f"{over} over undo@x86 whose log is a ring: 2,000; when the caches are full",
                each(
                    "{:.2f}",
                    [
                        _ring(over, warmup=None, txs=TXS),
                        _ring(over, warmup=WARM, txs=MEASURED),
                    ],
                ),
            )
            for over in ("silo", "native")
        ),
        (
            "LAD with prepare_interval 74 over 1, 8 cores, 2,000; geometric mean last",
            labelled("{:.2f}", (*SMALL_SETS, "gmean"), _own("lad", "design.prepare_interval=74")),
        ),
        (
            "MorLog over FWB, 2,000; FWB with 60 lines; MorLog with 2 and 4 entries",
            each(
                "{:.2f}",
                [
                    _morlog_over_fwb(),
                    _morlog_over_fwb(settings="fwb.log_buffer=60"),
                    _morlog_over_fwb("design.ur_entries=2 design.r_entries=4"),
                ],
            ),
        ),
    ],
)

PARTS = (
    Table("rivals.steady", "Silo and its rivals once the caches are full", STEADY),
    Table("rivals.lengths", "what the warm-up moves", LENGTHS),
    PROSE,
)
