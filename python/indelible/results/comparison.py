"""The answer of `compare`: rows and means, no drawing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from indelible.errors import InputError
from indelible.means import interval_fields
from indelible.metrics import metric_named
from indelible.results.crash import Verdict
from indelible.results.origin import origin
from indelible.results.seeds import AnyCell, OfSeeds, known, parts_of
from indelible.rows import rows_as_csv

if TYPE_CHECKING:
    from indelible.batteries import Saved
    from indelible.views import View

#: The views whose rows are stacks, and the key of commit latencies in a row.
STACKED = ("stalls", "writes")
LATENCY = "commit_latency_cycles"

#: The default metric and view, and the view that needs whole distributions.
THROUGHPUT = "throughput"
RATIOS, LATENCIES = "ratios", "latencies"

#: The name in place of a design's where this computer's processor was measured.
NATIVE = "this CPU"

#: One cell of a comparison: design, workload, number of cores (`None` if none was asked for).
ComparedCell = tuple[str, str, "int | None"]

#: One run of a comparison: its cell, and the seed.
SeededCell = tuple[str, str, "int | None", int]


@dataclass(frozen=True, repr=False, kw_only=True)
class Comparison(OfSeeds):
    """The answer of `compare`: designs against workloads."""

    cores: tuple[int | None, ...]
    normalize: str
    #: The measurements on this computer's processor, by workload and number of threads.
    native: Mapping[tuple[str, int | None], Mapping[str, Any]] = field(default_factory=dict)
    #: Whether the processor was to be measured.
    has_native: bool = False
    #: What must be saved at a power failure, as far as known, by design and number of cores.
    saved: Mapping[tuple[str, int | None], Saved] = field(default_factory=dict)
    #: Whether the caller gave the base, which then is that of the views of writes, too.
    is_base_given: bool = False
    #: Whether the whole distributions of commit latencies were asked for.
    has_distributions: bool = False

    def cells(self) -> list[ComparedCell]:
        """Return the cells in the order of the rows."""
        return [(d, w, c) for c in self.cores for w in self.workloads for d in self.designs]

    def place(self, cell: ComparedCell) -> ComparedCell:
        """Return a cell as the rows have it; `None` may also be the machine's number of cores."""
        design, workload, cores = parts_of(cell, "design", "workload", "cores")
        design = known("design", design, self.designs)
        return design, known("workload", workload, self.workloads), self._cores(cores)

    def _cores(self, cores: int | None) -> int | None:
        """Return a number of cores as `compare` was given it; None is the only one, if there is."""
        if cores in self.cores:
            return cores
        if cores is None and len(self.cores) == 1:
            return self.cores[0]
        asked = {self.cores_used(count): count for count in self.cores}
        return asked[known("number of cores", cores, [*asked])]

    def by_metric(self, name: str) -> Comparison:
        """Return the same runs compared by another metric.

        What was measured on this computer is its throughput, and beside no other metric.
        """
        metric_named(name)
        same = name == self.metric
        native = self.native if same else {}
        return replace(self, metric=name, native=native, has_native=self.has_native and same)

    def base(self, cell: ComparedCell) -> ComparedCell:
        """Return the cell that is 1.00 for a cell."""
        return (self.normalize, *cell[1:])

    def native_ratio(self, workload: str, cores: int | None = None) -> float | None:
        """Return the throughput measured on this computer, relative to the base design's."""
        _, workload, cores = self.place((self.normalize, workload, cores))
        measured = self.native.get((workload, cores), {}).get("throughput_tx_per_s")
        base = self.value((self.normalize, workload, cores))
        return measured / base if measured and base else None

    def gmean(self, design: str, cores: int | None = None, seed: int | None = None) -> float | None:
        """Return the geometric mean of a design's ratios over the workloads."""
        return self.mean(self._row(design, cores), seed)

    def gmean_half_width(self, design: str, cores: int | None = None) -> float | None:
        """Return half the width of the confidence interval of a design's mean."""
        return self.mean_half_width(self._row(design, cores))

    def _row(self, design: str, cores: int | None) -> list[ComparedCell]:
        return [self.place((design, workload, cores)) for workload in self.workloads]

    def verdict(self, design: str, cores: int | None = None) -> Verdict:
        """Return the verdict of a design's crash campaigns on all workloads together."""
        cells = self._row(design, cores)
        return Verdict.all_of(self.verdicts[cell] for cell in cells if cell in self.verdicts)

    def command_with(self, view: str, *written: str) -> str:
        """Return the command line that repeats it with a view, and writes this."""
        if view != RATIOS:
            # A view has no metric, and no column of this computer's processor.
            shown = replace(self.by_metric(THROUGHPUT), native={}, has_native=False)
            return shown._line([f"--{view}"], written)
        return self._line(["--native"] if self.has_native else [], written)

    def _line(self, flags: Sequence[str], written: Sequence[str]) -> str:
        own, more = ["--normalize", self.normalize], [*flags, *self.untested(), *written]
        return self.line("compare", self.cores, self.seeds, own, more)

    @property
    def own_view(self) -> str:
        """The view whose command makes the same runs; that of latencies stands alone."""
        alone = self.metric == THROUGHPUT and not self.has_native
        return LATENCIES if self.has_distributions and alone else RATIOS

    @property
    def command(self) -> str:
        """The command line that repeats it."""
        return self.command_with(self.own_view)

    def json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        means = [self._gmean_row(design, cores) for cores in self.cores for design in self.designs]
        answer = {
            **self.asked(),
            "normalize": self.normalize,
            "rows": self.rows,
            "gmean": means,
            "cancelled": self.interrupted,
        }
        if len(self.seeds) > 1:
            answer["cells"] = [*map(self._summary, self.cells())]
        if self.native:
            answer["native"] = [
                {**row, "cores": cores, "normalized": self.native_ratio(workload, cores)}
                for (workload, cores), row in self.native.items()
            ]
        return answer | self.left_out() | origin(self.command, self.settings)

    def csv(self) -> str:
        """Return the rows as comma-separated values, nested keys joined by dots.

        Distributions, which would be tables of their own, are only in the JSON.
        """
        rows = [row | {LATENCY: {**row[LATENCY]}} for row in self.rows]
        for row in rows:
            row[LATENCY].pop("distribution", None)
        return rows_as_csv([*rows, *self._measured()])

    def table(self) -> list[dict[str, Any]]:
        """Return the rows of the table: one for each cell, and `gmean` for the means of designs.

        Over several seeds a row has their mean and its confidence interval.
        """
        from indelible import tables

        return [*tables.compared(self)]

    def save_table(self, path: str | PathLike[str], view: str = "ratios") -> None:
        """Write the table of `--table` into a .csv, .tex or .md; `view` is as in `save`."""
        from indelible import sheets

        sheets.save(path, sheets.compared(self, path, view))

    def stalls(self) -> str:
        """Return the table of `compare --stalls`: what core time is spent on."""
        return self._text("stalls")

    def writes(self) -> str:
        """Return the table of `compare --writes`: what is written to persistent memory, and why."""
        return self._text("writes")

    def latencies(self) -> str:
        """Return the table of `compare --latencies`: percentiles of how long commits take."""
        return self._text("latencies")

    def usage(self) -> str:
        """Return the table of `compare --usage`: how busy caches, queues and banks were."""
        return self._text("usage")

    def summary(self) -> str:
        """Return the table of `compare --summary`: a row for each design, with gains and costs."""
        return self._text("summary")

    def save(self, path: str | PathLike[str], view: str = "ratios") -> None:
        """Draw the figure of `--plot` into a .png, .svg or .pdf.

        `view` is `ratios`, `stalls`, `writes`, `usage`, `summary` or, if the comparison was made
        with `latencies=True`, `latencies`.
        """
        from indelible import plots

        shown, answer = self._viewed(view)
        plots.save(shown.figure, answer, path)

    def report(self, path: str | PathLike[str]) -> None:
        """Write the page of `--report`: the answer as one HTML page, with its rows as JSON."""
        from indelible.pages import report

        report.save(self, path)

    def stacks(self, view: str = "stalls") -> list[dict[str, Any]]:
        """Return a row for each stack of the figure of `--stalls` or of `--writes`.

        On each workload the total of the design that is 1.00 is 100.
        """
        if view not in STACKED:
            raise InputError(f"the view of stacks must be {' or '.join(STACKED)}, not {view!r}")
        return self._view_rows(view)

    def percentiles(self) -> list[dict[str, Any]]:
        """Return the numbers of `--latencies`, in cycles: a row for each design and workload."""
        return self._view_rows("latencies")

    def used(self) -> list[dict[str, Any]]:
        """Return the numbers of `--usage`: a row for each design and workload."""
        return self._view_rows("usage")

    def summarized(self) -> list[dict[str, Any]]:
        """Return the numbers of `--summary`: a row for each number of cores and design."""
        return self._view_rows("summary")

    def _text(self, view: str) -> str:
        shown, answer = self._viewed(view)
        return shown.text(answer)

    def _view_rows(self, view: str) -> list[dict[str, Any]]:
        shown, answer = self._viewed(view)
        return [*shown.rows(answer)]

    def _viewed(self, view: str) -> tuple[View, Comparison]:
        """Return a view, and this comparison relative to the design that it is relative to."""
        from indelible.views import based, view_named

        return view_named(view), based(self, view)

    def _measured(self) -> Iterator[dict[str, Any]]:
        """Return the measurements on this computer as rows with the columns of runs."""
        for (workload, cores), row in self.native.items():
            yield {
                "design": NATIVE,
                "workload": workload,
                "machine": row["processor"],
                "cores": cores,
                "seed": self.seeds[0],
                "throughput_tx_per_s": row["throughput_tx_per_s"],
                "normalized": self.native_ratio(workload, cores),
                "notes": [row["reason"]] if "reason" in row else [],
            }

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of the JSON, one for each run."""
        return [*self._rows()]

    def _rows(self) -> Iterator[dict[str, Any]]:
        for cell in self.cells():
            for seed in self.seeds:
                if (run := self.runs.get((*cell, seed))) is not None:
                    ratio = self.ratio(cell, seed)
                    yield {**run.json(), "normalized": ratio, "crash": self.crash(cell)}

    def _gmean_row(self, design: str, cores: int | None) -> dict[str, Any]:
        mean = {"value": self.gmean(design, cores)}
        if len(self.seeds) > 1:
            mean |= interval_fields(mean["value"], self.gmean_half_width(design, cores))
        return {"design": design, "cores": self.cores_used(cores), **mean}

    def own(self, cell: AnyCell) -> dict[str, Any]:
        """Return the fields that `--json` has for whose numbers a row has."""
        design, workload, cores = cell
        return {"design": design, "workload": workload, "cores": self.cores_used(cores)}

    def _summary(self, cell: ComparedCell) -> dict[str, Any]:
        return {**self.own(cell), **self.means(cell)}

    def cores_used(self, cores: int | None) -> int | None:
        """Return the number of cores that the machine chose, if none was asked for."""
        if cores is not None:
            return cores
        return next((run.data["cores"] for cell, run in self.runs.items() if cell[2] is None), None)

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.designs)} over {', '.join(self.workloads)}>"

    def __str__(self) -> str:
        from indelible.text import comparison as comparison_text

        return comparison_text.comparison(self)
