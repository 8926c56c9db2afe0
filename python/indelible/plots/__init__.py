"""Figures of results, in the format of papers: rows in, a matplotlib `Figure` out.

Nothing is run here. matplotlib is imported inside the functions: it takes longer than `--help`.
"""

from __future__ import annotations

import importlib
import io
import math
import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from itertools import islice
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from indelible import files
from indelible.errors import InputError
from indelible.results.comparison import Comparison
from indelible.results.seeds import OfSeeds
from indelible.text.verdicts import judged

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.ticker import Formatter

Answer = TypeVar("Answer")
Look = TypeVar("Look")

SUFFIXES = (".png", ".svg", ".pdf")

#: The variable that says how matplotlib is to show figures.
BACKEND = "MPLBACKEND"

#: The width of two columns of a paper, and the height of one block of bars, in inches.
WIDTH_INCHES = 7.0
HEIGHT_INCHES = 2.4

#: The font sizes of titles and of values over bars, in points; the points of an inch; and the width
#: of the numbers beside a panel, and of a label of up to two lines, in inches.
TITLE_FONT = 7
MARK_FONT = 6
POINTS = 72
NUMBERS_INCHES = 0.9

#: The distance of lines of text, in font sizes.
LINE_HEIGHT = 1.25

#: Distinct in grey and for the colour-blind (Okabe and Ito), each with a hatch of its own.
BLACK = "#000000"
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999", BLACK)
MARKERS = ("o", "s", "^", "v", "D", "P", "X", "<", ">", "*")
HATCHES = ("", "//", "..", "xx", "\\\\", "++", "--", "oo")
LINES = ("-", "--", "-.", ":")

#: The hatch of designs that are not crash-safe, which are drawn as an outline.
UNSAFE_HATCH = "////"

#: The ratio of the largest to the least value from which on an axis is logarithmic.
DECADE = 10

#: The numbers of a logarithmic axis whose range has fewer than two of the usual ones (ours).
FEW_NUMBERS = 4

#: The width of a legend's column beside its labels (handle and spacing), in sizes of their font;
#: the rows for which figures have room; and the height of a further row, in inches.
LEGEND_COLUMN = 4.8
LEGEND_ROWS = 2
LEGEND_ROW_INCHES = 0.17

#: More workloads than these are counted in a title, and not named.
NAMED_WORKLOADS = 6

#: The look of confidence intervals.
INTERVAL_LOOK = {"elinewidth": 0.7, "capsize": 1.5, "capthick": 0.7}

STYLE: dict[str, Any] = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "hatch.linewidth": 0.6,
    # Type-42 fonts, which the submission systems of conferences ask for.
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "indelible",
    # Text between two dollars, as in a file's name, is no formula.
    "text.parse_math": False,
    "text.usetex": False,
    "axes.formatter.use_mathtext": False,
}

#: Neither a date nor a version: the same rows give the same file.
UNDATED = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {"Software": None}}


def check(path: str | PathLike[str], flag: str = "") -> None:
    """Refuse a path to which no figure can be saved."""
    if Path(path).suffix.lower() not in SUFFIXES:
        place = f"{flag} {path}".lstrip()
        raise InputError(f"{place}: the name of a figure must end in one of {', '.join(SUFFIXES)}")
    try:
        library()
    except ImportError as error:
        raise missing(error, flag) from None


def library() -> ModuleType:
    """Return matplotlib, also where the environment has it draw as nothing here can.

    A notebook has every program that it starts draw into it (`MPLBACKEND`), for which ours has no
    library. Figures here are drawn into files alone.
    """
    try:
        return importlib.import_module("matplotlib")
    except ValueError:
        backend = os.environ.pop(BACKEND, None)
        if backend is None:
            raise
        # What was imported of it knows only the module that has failed.
        for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
            del sys.modules[name]
        try:
            return importlib.import_module("matplotlib")
        finally:
            os.environ[BACKEND] = backend


def missing(error: ImportError, flag: str = "", extra: str = "plot") -> InputError:
    """Return the error that a figure, or the output of `flag`, needs a missing library."""
    what = f"{flag or 'a figure'} needs {error.name or error}"
    return InputError(f"{what}: python -m pip install 'indelible[{extra}]'")


@contextmanager
def our_style() -> Iterator[None]:
    """Draw figures in our style alone, and not in that of a notebook or a `matplotlibrc`."""
    matplotlib = library()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def styled(draw: Callable[[Answer], Figure]) -> Callable[[Answer], Figure]:
    """Return the function with our style, whatever the caller's style is."""

    @wraps(draw)
    def drawn(answer: Answer) -> Figure:
        with our_style():
            drawing = draw(answer)
            # The labels of ticks are made only now, and have to be in our style, too.
            drawing.draw_without_rendering()
        return drawing

    return drawn


def save(draw: Callable[[Answer], Figure], answer: Answer, path: str | PathLike[str]) -> None:
    """Draw an answer into a file, whose suffix says the format."""
    check(path)
    with our_style():
        drawing, suffix = draw(answer), Path(path).suffix.lower()
        with files.naming(path), files.replacing(path, "wb", None) as file:
            drawing.savefig(file, dpi=200, format=suffix[1:], metadata=UNDATED[suffix])


def svg(draw: Callable[[Answer], Figure], answer: Answer) -> str:
    """Return the text of the SVG of an answer."""
    out = io.StringIO()
    with our_style():
        draw(answer).savefig(out, format="svg", metadata=UNDATED[".svg"])
    return out.getvalue()


def blocks(
    answer: Comparison,
    draw: Callable[[Axes, Comparison, int | None], None],
    inches: float,
    *,
    labels_in_row: int,
    labels: Sequence[str] = (),
) -> Figure:
    """Return a figure with a block of this height for each number of cores, and one legend.

    The legend has the labels in the order of `labels`, or without that as they come.
    """
    from matplotlib.figure import Figure

    count = len(answer.cores)
    drawing = Figure(figsize=(WIDTH_INCHES, 0.5 + inches * count), layout="constrained")
    grid = drawing.subplots(count, 1, squeeze=False)
    for axes, cores in zip(grid[:, 0], answer.cores, strict=True):
        draw(axes, answer, cores)
    # A label may be in one block and not in another.
    named = {
        label: handle
        for axes in grid[:, 0]
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    named = {label: named[label] for label in labels or named if label in named}
    add_legend(drawing, named, "outside upper center", labels_in_row)
    return drawing


def add_legend(
    drawing: Figure, named: Mapping[str, Artist], place: str, labels_in_row: int
) -> None:
    """Add a legend with at most so many columns, and no more than fit side by side.

    The drawing becomes higher if the legend has more than the usual rows.
    """
    labels, room = [*named], drawing.get_figwidth() * POINTS / STYLE["font.size"]
    columns = min(len(labels), labels_in_row)
    while columns > 1 and _legend_width(labels, columns) > room:
        columns -= 1
    further = max(math.ceil(len(labels) / max(columns, 1)) - LEGEND_ROWS, 0)
    drawing.set_figheight(drawing.get_figheight() + further * LEGEND_ROW_INCHES)
    drawing.legend(named.values(), labels, loc=place, ncols=columns, frameon=False)


def _legend_width(labels: Sequence[str], columns: int) -> float:
    """Return a legend's width, in sizes of its font; its first columns may have a label more."""
    rows, longer = divmod(len(labels), columns)
    rest, width = iter(labels), 0.0
    for column in range(columns):
        width += LEGEND_COLUMN + widest(islice(rest, rows + (column < longer)))
    return width


def entitle(axes: Axes, said: str) -> None:
    """Write a title above a panel that has the figure's whole width, and its label already."""
    further = max(axes.get_ylabel().count("\n") - 1, 0)
    taken = NUMBERS_INCHES + further * LINE_HEIGHT * STYLE["font.size"] / POINTS
    said = filled(said, axes.figure.get_figwidth() - taken)
    axes.set_title(said, fontsize=TITLE_FONT, loc="left", color="0.3")


def name_groups(axes: Axes, places: Sequence[float], names: Sequence[str]) -> None:
    """Write the names of groups of bars below them, upright where they would overlap."""
    is_upright = widest(names) * STYLE["font.size"] > room_of(axes, len(names))
    axes.set_xticks(places, names, rotation=90 if is_upright else 0)


def room_of(axes: Axes, count: float) -> float:
    """Return how wide each of so many things beside each other may be, in points."""
    return (axes.figure.get_figwidth() - NUMBERS_INCHES) * POINTS / count


def filled(said: str, inches: float, font: float = TITLE_FONT) -> str:
    """Return a text broken into lines no wider than so many inches."""
    room, letters, lines = inches * POINTS / font, len(said), [said]
    while (wide := widest(lines)) > room and letters > 1:
        letters = min(letters - 1, math.ceil(letters * room / wide))
        lines = textwrap.wrap(said, letters, break_on_hyphens=False)
    return "\n".join(lines)


def widest(said: Iterable[str]) -> float:
    """Return how wide the widest line of texts is, in sizes of its font."""
    return max(_wide(line) for words in said for line in words.split("\n"))


@cache
def _wide(line: str) -> float:
    from matplotlib.textpath import TextPath

    return TextPath((0, 0), line, size=1).get_extents().width


def mark(axes: Axes, said: str, x: float, y: float, upright: bool = False) -> None:
    """Write a bar's value, or the mark of a missing one, above its place."""
    axes.annotate(
        said,
        (x, y),
        xytext=(0, 1),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=MARK_FONT,
        rotation=90 if upright else 0,
    )


def number_decades(axis: Axis, formatter: Formatter) -> None:
    """Give a logarithmic axis numbers that do not overlap."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    decades = math.log10(high / low)
    steps = (1, 2, 5) if decades < 1.5 else (1, 3) if decades < 3 else (1,)
    # With at most one of these in range, a `LogLocator` would choose any number of others.
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)))
    there = [step for e in exponents for step in steps if low <= step * 10.0**e <= high]
    axis.set_major_locator(LogLocator(subs=steps) if len(there) > 1 else MaxNLocator(FEW_NUMBERS))
    axis.set_major_formatter(formatter)
    axis.set_minor_formatter(NullFormatter())


def nothing_to_draw(answer: Comparison) -> InputError:
    """Return the error that there are no ratios, with the advice to choose another base."""
    return InputError(
        f"there is no figure: {answer.normalize} is 0 or has no value here; choose another with"
        " --normalize"
    )


def require_ratios(answer: OfSeeds, base: str) -> None:
    """Refuse to draw an answer without any ratio."""
    cells = answer.cells()
    if any(answer.ratio(cell) is not None for cell in cells):
        return
    known = any(answer.value(answer.base(cell)) is not None for cell in cells)
    raise InputError(
        f"there is no figure: {base} {'is 0' if known else 'has no value'} here; choose another"
        " with --normalize"
    )


def label(answer: OfSeeds, design: str) -> str:
    """Return the label of a design in a legend."""
    name = in_legend(judged(answer, design))
    return name if answer.is_safe(design) else f"{name} (not crash-safe)"


def in_legend(name: str) -> str:
    """Return a name as the label of a legend: matplotlib leaves out those that begin with `_`."""
    return f" {name}" if name.startswith("_") else name


def look_of(answer: Comparison, design: str, index: int) -> dict[str, object]:
    """Return the look of a design's bars, which have no fill if it is not crash-safe."""
    colour = COLOURS[index % len(COLOURS)]
    if answer.is_safe(design):
        hatch = beside_colour(HATCHES, index)
        # A hatch has the colour of the edge, and has to be seen on black, too.
        edge = "white" if colour == BLACK else "black"
        return {"facecolor": colour, "edgecolor": edge, "linewidth": 0.5, "hatch": hatch}
    outline = {
        "edgecolor": colour,
        "linewidth": 0.8,
        "linestyle": LINES[_round(index) % len(LINES)],
    }
    return {"facecolor": "white", **outline, "hatch": UNSAFE_HATCH}


def beside_colour(looks: Sequence[Look], index: int) -> Look:
    """Return the look that goes with a colour, another one each time a colour is used again."""
    return looks[(index + _round(index)) % len(looks)]


def _round(index: int) -> int:
    """Return how often all colours have been used before."""
    return index // len(COLOURS)
