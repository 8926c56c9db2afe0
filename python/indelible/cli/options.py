"""The parts that commands share: flags, checks before anything is run, and output."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, Protocol, TypeVar

from indelible import files
from indelible.arguments import WHOLE_MAX, span
from indelible.cli import INTERRUPTED, letters
from indelible.errors import InputError
from indelible.experiment import SCRIPT_FLAGS
from indelible.metrics import METRICS
from indelible.pool import Interrupted
from indelible.verbs import SEEDS_MAX

Answer = TypeVar("Answer")


class Printed(Protocol):
    """An answer whose `str` is the text that its command prints."""

    def json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""


Shown = TypeVar("Shown", bound=Printed)

#: The words of a command before the designs that it compares.
COMPARED = "compare --designs "

#: The help of `--workloads` where there are none without it.
WORKLOADS = "the workloads; implied by --sql, --ycsb or --replay"

#: More digits than the largest valid number has, even with a `_` here and there.
DIGITS_MAX = 30


def whole(least: int, most: int = WHOLE_MAX) -> Callable[[str], int]:
    """Return a reader of whole numbers in a range."""

    def read(word: str) -> int:
        if not re.fullmatch(r"[0-9]+(_[0-9]+)*", word):
            raise refused(word)
        # Python refuses to read some thousand digits.
        value = int(word) if len(word) <= DIGITS_MAX else WHOLE_MAX + 1
        if value > most == WHOLE_MAX:
            raise argparse.ArgumentTypeError(
                f"a number of {len(word)} digits is too large; {WHOLE_MAX} is the largest"
            )
        if not least <= value <= most:
            raise refused(word)
        return value

    def refused(word: str) -> Exception:
        return argparse.ArgumentTypeError(f"`{word}` is not a whole number {span(least, most)}")

    return read


def above_zero(word: str) -> float:
    """Return a positive number, `inf` included."""
    try:
        value = float(word)
    except ValueError:
        value = 0
    if not value > 0:
        raise argparse.ArgumentTypeError(f"`{word}` is not a number above 0")
    return value


def one(what: str, several: str | None = None) -> Callable[[str], str]:
    """Return a reader of one name; `several` are the words of a command that takes several."""

    def read(word: str) -> str:
        is_several = "," in word or word == "all"
        if is_several and not os.path.isfile(word):
            instead = (
                "; name one" if several is None else f"; `indelible {several}{word}` runs several"
            )
            raise argparse.ArgumentTypeError(f"`{word}` is not one {what}{instead}")
        return word

    return read


def names(word: str) -> list[str]:
    """Read a list of names with commas between them."""
    return _listed(word, "names")


def wholes(word: str) -> list[int]:
    """Read a list of whole numbers with commas between them."""
    return list(dict.fromkeys(whole(1)(name) for name in _listed(word, "whole numbers")))


def _listed(word: str, what: str) -> list[str]:
    found = [name.strip() for name in word.split(",") if name.strip()]
    if not found:
        said = f"`{word}`" if word else "an empty string"
        raise argparse.ArgumentTypeError(f"{said} is not a list of {what} separated by commas")
    return found


def setting(word: str) -> tuple[str, str]:
    """Read `section.field=value`."""
    key, equals, value = word.partition("=")
    if not equals or not key.strip() or not value.strip():
        raise argparse.ArgumentTypeError(f"`{word}` is not of the form section.field=value")
    return key.strip(), value.strip()


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object and nothing else"
    )


def add_cores(parser: argparse.ArgumentParser, default: str = "all that the machine has") -> None:
    """Add `--cores`; `default` says in its help how many there are without it."""
    parser.add_argument("--cores", type=whole(1), metavar="N", help=f"number of cores ({default})")


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add `--seed` and `--json`."""
    parser.add_argument(
        "--seed",
        type=whole(0),
        default=1,
        metavar="S",
        help="seed of all random choices; the same seed gives the same answer (1)",
    )
    add_json(parser)


def add_machine(parser: argparse.ArgumentParser, default: str, several: str | None = None) -> None:
    """Add `--machine`; `several` are the words of a command that takes several of them."""
    parser.add_argument(
        "--machine",
        type=one("machine", several),
        default=default,
        metavar="M",
        help=f"the machine ({default})",
    )


def add_cell(parser: argparse.ArgumentParser, design: str = "the design") -> None:
    """Add the flags that name one design and one workload; `design` is the help of the first."""
    parser.add_argument("--design", type=one("design", COMPARED), metavar="D", help=design)
    parser.add_argument(
        "--workload",
        type=one("workload", "compare --workloads "),
        metavar="W",
        help="the workload; implied by --sql, --ycsb or --replay",
    )


def add_experiment(parser: argparse.ArgumentParser, machine: str, txs: str) -> None:
    """Add the flags that say what is simulated, except designs, workloads and cores."""
    add_machine(parser, machine, "sweep --vary machine=")
    parser.add_argument("--txs", type=whole(1), metavar="N", help=f"transactions per core ({txs})")
    add_settings(parser)
    add_files(parser)
    parser.add_argument(
        "--exact",
        action="store_true",
        help="strict time order: slower; results differ by less than 1 %%, on machine tiny by up to"
        " 3 %%",
    )


def add_files(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the files that workloads read."""
    parser.add_argument(
        "--sql",
        metavar="FILE",
        help="the SQL script that `sqlite` runs. What follows a line `-- measured` is measured and"
        " repeated; without that line the whole script is, each time from an empty database, and"
        " emptying it counts as a transaction",
    )
    parser.add_argument(
        "--ycsb",
        metavar="FILE",
        help="the properties of the workload `ycsb`; its `operationcount`, over all cores, is the"
        " length of a run without --txs",
    )
    parser.add_argument(
        "--replay",
        metavar="FILE",
        help="the trace that the workload `replay` repeats: what a program did to its memory, or a"
        " store log of pmemcheck (docs/replay.md)",
    )


def add_keep(parser: argparse.ArgumentParser) -> None:
    """Add `--keep`."""
    parser.add_argument(
        "--keep",
        metavar="FOLDER",
        help="store the results of runs and campaigns in this folder and reuse those it has: the"
        " same command resumes where it was interrupted, a larger one runs only what is new. A line"
        " below the table says how many were reused",
    )


def add_crash(parser: argparse.ArgumentParser) -> None:
    """Add `--no-crash`."""
    parser.add_argument(
        "--no-crash",
        dest="crash",
        action="store_false",
        help="skip the crash campaigns; there are then no verdicts",
    )


def add_dask(parser: argparse.ArgumentParser, more: str = "") -> None:
    """Add `--dask`, with `more` at the end of its help."""
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="run on the workers of a Dask cluster: the scheduler's address, such as"
        f" tcp://head:8786, or its scheduler file (docs/cluster.md){more}",
    )


#: The metric that is compared by default.
METRIC = "throughput"


def add_metric(parser: argparse.ArgumentParser) -> None:
    """Add `--metric`."""
    parser.add_argument(
        "--metric",
        default=METRIC,
        metavar="METRIC",
        help=f"{', '.join(METRICS)} ({METRIC})",
    )


def varied(args: argparse.Namespace) -> dict[str, tuple[str, ...]]:
    """Return the fields of `--vary` with their values, or refuse one that is there twice."""
    fields = dict(args.vary or ())
    if len(fields) < len(args.vary or ()):
        raise InputError("a field varies twice; give all its values after one --vary")
    return fields


def add_seeds(parser: argparse.ArgumentParser) -> None:
    """Add `--seeds`."""
    parser.add_argument(
        "--seeds",
        type=whole(1, SEEDS_MAX),
        default=1,
        metavar="N",
        help="run everything except crash campaigns with this many seeds, from --seed on; shows"
        " means and how certain they are (1)",
    )


def add_warmup(parser: argparse.ArgumentParser) -> None:
    """Add the flag that says when counting begins."""
    parser.add_argument(
        "--warmup",
        type=whole(0),
        metavar="N",
        help="transactions per core before counting begins (a tenth of --txs)",
    )


def add_settings(
    parser: argparse.ArgumentParser,
    of: str = "a field of the machine, the design or the workload",
    named: str = "one design or workload",
    alone: str = "silo.entries=64",
) -> None:
    """Add `--set`, which overrides a field `of` these, or of one that is `named`, as in `alone`."""
    parser.add_argument(
        "--set",
        type=setting,
        action="append",
        default=[],
        metavar="SECTION.FIELD=VALUE",
        help=f"override {of}, such as controller.wpq=128; may be repeated. SECTION may also be the"
        f" name of {named}; the value then applies to it alone, such as {alone}."
        " NAME.SECTION.FIELD is a field of its machine alone",
    )


#: What `add_experiment` and `add_common` read for a Python call.
EXPERIMENT = ("machine", "txs", "seed", "set", "sql", "ycsb", "replay", "exact")


def given(args: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return flags as arguments of a Python call, which has the same words."""
    return {name: getattr(args, name) for name in names}


def require(args: argparse.Namespace, *flags: str) -> None:
    """Refuse a command without a flag that it needs."""
    for flag in flags:
        if getattr(args, flag) is None:
            raise InputError(
                f"`indelible {args.command}` needs --{flag};"
                f" `indelible list {flag.removesuffix('s')}s` lists them"
            )


def require_workloads(args: argparse.Namespace) -> None:
    """Have files name the workloads that read them, and refuse a command without any."""
    if args.workloads is None:
        files = {workload: flag.removeprefix("--") for workload, flag in SCRIPT_FLAGS.items()}
        args.workloads = [name for name, file in files.items() if getattr(args, file)] or None
    require(args, "workloads")


def require_cell(args: argparse.Namespace) -> None:
    """Refuse a command that does not say which design and which workload."""
    require(args, "design")
    if all(getattr(args, name) is None for name in ("workload", "sql", "ycsb", "replay")):
        require(args, "workload")


def require_writable(flag: str, path: str) -> None:
    """Refuse a path that cannot be written, before anything is run, and touch nothing."""
    if path == "-":
        raise InputError(f"{flag} must name a file; it cannot go to standard output (-)")
    files.require_writable(flag, path)


def require_apart(
    args: argparse.Namespace, outputs: Mapping[str, str | None], *inputs: str
) -> None:
    """Refuse outputs, by their flags, that would replace a file that the command reads."""
    words = [getattr(args, name, None) for name in ("sql", "ycsb", "replay", "machine", "design")]
    words += [*inputs, *(getattr(args, "designs", None) or ())]
    read = {Path(word).resolve() for word in words if word is not None and Path(word).is_file()}
    for flag, path in outputs.items():
        if path is not None and Path(path).resolve() in read:
            raise InputError(f"{flag} {path}: this command reads that file; name another one")


#: The functions that are called with each answer that is shown.
_listeners: list[Callable[[Any], None]] = []


@contextmanager
def listening(hear: Callable[[Any], None]) -> Iterator[None]:
    """Call `hear` with each answer that a command shows within the block."""
    _listeners.append(hear)
    try:
        yield
    finally:
        _listeners.remove(hear)


def tell(found: Any) -> None:  # noqa: ANN401
    """Have the listeners hear an answer."""
    for hear in _listeners:
        hear(found)


def is_heard() -> bool:
    """Return whether there are listeners; answers must then have everything that `--json` has."""
    return bool(_listeners)


def answer(ask: Callable[[], Answer], show: Callable[[Answer], int]) -> int:
    """Show the answer, or after Ctrl-C the part of it that there is."""
    try:
        # Whatever a design in Python prints meanwhile goes to stderr.
        with redirect_stdout(sys.stderr):
            found = ask()
    except Interrupted as interrupt:
        if interrupt.partial is None:
            raise
        show(interrupt.partial)
        return INTERRUPTED
    tell(found)
    return show(found)


def reply(
    args: argparse.Namespace, ask: Callable[[], Shown], code: Callable[[Shown], int] = lambda _: 0
) -> int:
    """Print the answer as `show_answer` does; return the exit code that `code` has for it."""

    def show(found: Shown) -> int:
        show_answer(args, found)
        return code(found)

    return answer(ask, show)


def show_answer(args: argparse.Namespace, found: Printed) -> None:
    """Print an answer: its JSON, or the text that `print` shows of it in Python."""
    if args.json:
        show_json(found.json())
    else:
        show(str(found))


def show_json(value: object) -> None:
    """Print one object."""
    print(json.dumps(value, indent=2, allow_nan=False))


def show(text: str) -> None:
    """Print text, in colour on a terminal, and in ASCII if the stream has only that."""
    text = letters.fitted(text, sys.stdout)
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        failed = r"\bFAIL\b( [\d,/]*\d)?|NOT CAUGHT|\bWRONG( WITH IT)?\b"
        text = re.sub(failed, "\033[1;31m\\g<0>\033[0m", text)
        text = re.sub(r"\bok\b", "\033[32m\\g<0>\033[0m", text)
    print(text)
