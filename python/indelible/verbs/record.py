"""The verb `record`: a program's operations on persistent memory, as a trace for `--replay`."""

from __future__ import annotations

import bisect
import ctypes
import os
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from indelible import processes
from indelible.arguments import named, truth, whole, worded
from indelible.commands import flag
from indelible.commands import line as command_line
from indelible.errors import InputError
from indelible.files import naming, replacing, require_writable
from indelible.results.origin import origin
from indelible.results.recording import Recorded
from indelible.verbs import cc

#: The default limit of a trace in bytes (ours: some five million operations).
BYTES_MAX = 256 << 20

#: The counts of a recording, in the order of its JSON.
COUNTS = (
    "stores",
    "streams",
    "loads",
    "flushes",
    "fences",
    "marks",
    "transactions",
    "work",
    "unseen",
)

#: The words that the recorder writes when the program ends (process.c).
TOLD = (
    *COUNTS,
    *("unseen_at", "unseen_from", "threads", "nested", "forks", "full", "crowded", "failed"),
    *("wrong", "wrong_at", "wrong_from", "wrong_since"),
)

#: The flag that asks Linux for the same addresses in each run, so that pointers in persistent
#: memory are the same in each trace (personality(2)); where Linux refuses they may differ.
ADDR_NO_RANDOMIZE = 0x0040000

#: The number of the place that an operation comes from, as the recorder writes it.
FROM = re.compile(r" #@([0-9a-f]+)$")

#: The most lines of source given for an operation, the innermost first (ours: programs flush in a
#: function that another one calls, for a third one).
FRAMES_TOLD = 6

#: The argument with which personality(2) changes nothing and returns the present value.
PERSONALITY_ASKED = 0xFFFFFFFF

#: The library that calls a program's first function.
LIBC = "libc."

#: The folders of the compiler's and the system's own headers and libraries.
SYSTEM = ("/usr/lib/", "/usr/include/", "/usr/local/lib/gcc")

#: The errors in a program's transactions, in the order of `enum wrong` (recorder/inner.h).
WRONG = (
    "",
    "indelible_abort() at {at}: {word} no longer holds what it held at indelible_begin(), since"
    " the store of {since}. The trace drops an aborted transaction, and indelible_abort() restores"
    " nothing: the program must restore its memory before it calls it",
    "indelible_begin() at {at} is within the transaction that begins at {since}: transactions do"
    " not nest",
    "indelible_commit() at {at} ends a transaction, and none has begun",
    "indelible_abort() at {at} ends a transaction, and none has begun",
    "the transaction that begins at {since} does not end: neither indelible_commit() nor"
    " indelible_abort() follows",
    "indelible_measured() at {at} is within the transaction that begins at {since}",
)
UNKNOWN = "an unknown place"

#: The note on a program that seems never to write anything back.
NOT_WRITTEN_BACK = (
    "no flush and no fence was seen; those in objects that `indelible cc` has not built are not"
    " recorded: build them again (`make -B`, or `make clean` first)"
)

#: The note on a program that does not say where its operations come from.
NO_LINES = (
    "{} has no debug information (-g0, -s, strip), or addr2line of binutils is missing: the trace"
    " does not say where in the program operations come from"
)


class EndError(InputError):
    """A program that ended by a signal, or did not end in time."""


def trace_of(command: Sequence[str]) -> str:
    """Return the default name of a program's trace."""
    return f"{os.path.basename(command[0])}.trace"


def record(
    command: Sequence[str],
    out: str | os.PathLike[str] | None = None,
    *,
    pool: str | os.PathLike[str] | None = None,
    loads: bool = True,
    unseen: bool = False,
    most: int = BYTES_MAX,
    seed: int = 1,
    stdout: IO[str] | int | None = None,
    stderr: IO[str] | None = None,
    until: Callable[[], str | None] | None = None,
) -> Recorded:
    """Run a program that `indelible cc` has built, and write its trace to the file `out`.

    The default of `out` is `PROGRAM.trace` in the working directory. Persistent memory is files
    that the program maps shared (with `pool` that file alone), and regions that it names with
    `indelible_region`. With `unseen`, bytes that changed without a recorded store count as stores
    just before the next flush, fence or end. At most `most` bytes are recorded; the trace's lines
    of source come on top of that. `seed` chooses the order in which several threads go on.
    The program's output goes to `stdout` and `stderr`, or where it always goes. With `until` the
    program has no input, and is stopped, with all that it has started, once `until` returns a
    reason.

    Raises:
        InputError: if there is no such program, or it cannot be recorded; `EndError` if a signal or
            `until` ended it.
    """
    command = command_of(command)
    out = trace_of(command) if out is None else named("out", out)
    asked = what_of(pool, loads, unseen, most)
    seed = whole("seed", seed)
    require_writable("`out`", out)
    cc.require_host()
    with tempfile.TemporaryDirectory(prefix="indelible-") as name:
        folder = Path(name)
        started = time.monotonic()
        code = _run(command, _asked(folder, asked, seed), (stdout, stderr), until)
        seconds = time.monotonic() - started
        status = _status(folder, command, code)
        sources = Sources(folder)
        _require_whole(status, sources, asked, code)
        with naming(out), replacing(out, errors="replace") as file:
            file.writelines(_trace(folder, command, status, sources))
    counts = {name: status[name] for name in COUNTS}
    chosen = ["--seed", str(seed), "--out", out]
    repeat = command_line("record", chosen, words_of(command, asked))
    return Recorded(
        {
            "trace": out,
            "program": list(command),
            "exit_code": code,
            "seconds": seconds,
            "regions": status["regions"],
            "threads": status["threads"],
            "seed": seed,
            **counts,
            "bytes": Path(out).stat().st_size,
            "notes": [*_notes(counts), *sources.notes()],
            **origin(repeat),
        }
    )


def command_of(value: object) -> tuple[str, ...]:
    """Return a program and its arguments as words, or refuse anything else."""
    found = worded("command", value)
    if not found or not found[0]:
        raise InputError(f"`command` must name a program, not {value!r}")
    return found


def what_of(pool: object, loads: object, unseen: object, most: object) -> dict[str, Any]:
    """Return the checked options that say what is recorded of a program."""
    pool = None if pool is None else named("pool", pool)
    if pool == "":
        raise InputError("`pool` must name a file; it is an empty string")
    return {
        "pool": pool,
        "loads": truth("loads", loads),
        "unseen": truth("unseen", unseen),
        "most": whole("most", most, 1),
    }


def words_of(command: Sequence[str], asked: Mapping[str, Any]) -> list[str]:
    """Return the words of a command line that say what is recorded, and of which program."""
    words = flag("--pool", asked["pool"])
    words += flag("--no-loads", not asked["loads"])
    words += flag("--unseen", asked["unseen"])
    words += [] if asked["most"] == BYTES_MAX else ["--most", f"{asked['most']}B"]
    return [*words, "--", *command]


def _asked(folder: Path, asked: Mapping[str, Any], seed: int) -> dict[str, str]:
    """Return the recorder's options as variables of the environment (process.c)."""
    found = {
        "INDELIBLE_RECORD": str(folder),
        "INDELIBLE_RECORD_BYTES": str(asked["most"]),
        "INDELIBLE_RECORD_SEED": str(seed),
    }
    if asked["pool"] is not None:
        found["INDELIBLE_RECORD_POOL"] = os.path.realpath(asked["pool"])
    return found | ({"INDELIBLE_RECORD_LOADS": "1"} if asked["loads"] else {})


def _run(
    command: Sequence[str],
    asked: Mapping[str, str],
    prints: tuple[IO[str] | int | None, IO[str] | None],
    until: Callable[[], str | None] | None,
) -> int:
    # A personality holds for this thread, and for the processes that it starts.
    personality = ctypes.CDLL(None).personality
    own = personality(PERSONALITY_ASKED)
    personality(own | ADDR_NO_RANDOMIZE)
    stdout, stderr = prints
    try:
        # A program that `until` may stop gets a session of its own, which no Ctrl-C reaches. Any
        # other stays in the foreground, where it may read the terminal.
        program = subprocess.Popen(
            list(command),
            env={**os.environ, **asked},
            stdin=None if until is None else subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=until is not None,
        )
    except OSError as error:
        folder = "is a directory" if os.path.isdir(command[0]) else None
        refused = folder or (error.strerror or str(error)).lower()
        raise InputError(f"{command[0]}: {refused}") from None
    finally:
        personality(own)
    try:
        return processes.finish(program, until)
    except processes.StopError as reason:
        raise EndError(f"`{shlex.join(command)}` {reason}") from None


def _status(folder: Path, command: Sequence[str], code: int) -> dict[str, Any]:
    """Return the words that the recorder wrote when the program ended, with their values."""
    program = shlex.join(command)
    if not (folder / "head").exists():
        raise InputError(
            f"`{program}` was not built with `indelible cc`, and ran nothing that was;"
            " docs/recording.md says how"
        )
    if (folder / "others").exists():
        raise InputError(
            f"`{program}` starts several programs that were built with `indelible cc`; record each"
            " alone"
        )
    if code < 0:
        raise EndError(f"`{program}` was ended by signal {-code}")
    if not (folder / "status").exists():
        raise EndError(
            f"`{program}` must return from main or call exit; it ended another way, such as by exec"
        )
    # Names of files come last, each behind a zero byte, because they may contain line breaks.
    counts, *regions = os.fsdecode((folder / "status").read_bytes()).split("\0")
    told = [line.partition(" ")[::2] for line in counts.splitlines()]
    if [name for name, _ in told] != [*TOLD]:
        raise InputError(
            f"`{program}` was built with another version of `indelible cc`; build it again"
        )
    status: dict[str, Any] = {name: int(count) for name, count in told}
    status["regions"] = []
    for place, size, file in (region.split(" ", 2) for region in regions):
        region = {"address": int(place), "bytes": int(size), "file": file or None}
        status["regions"] += [region] if region["bytes"] else []
    return status


def _require_whole(
    status: Mapping[str, Any], sources: Sources, asked: Mapping[str, Any], code: int
) -> None:
    """Refuse a recording that does not show all that the program did."""
    if not status["regions"]:
        ended = f"; it ended with exit code {code}" if code else ""
        raise InputError(
            "no persistent memory: the program mapped no file shared and writable (or not that of"
            f" --pool), and named no region with indelible_region() of indelible.h{ended}"
        )
    if status["nested"]:
        raise InputError(
            f"{status['nested']:,} accesses of a signal handler came while another access was"
            " recorded; record the program without such handlers"
        )
    if status["full"]:
        raise InputError(
            f"the trace does not fit in {asked['most']:,} bytes; record less, with"
            " indelible_measured() or --no-loads, or raise --most"
        )
    if status["crowded"] or status["failed"]:
        reason = (
            "more than 64 files, or 256 mappings of them at a time, are persistent memory, or more"
            " than 64 threads use it, or 1,024 exist at a time"
            if status["crowded"]
            else "a file could not be read, the temporary folder is full, or the program closed all"
            " files that were open"
        )
        raise InputError(f"the recording is incomplete: {reason}")
    if status["unseen"] and not asked["unseen"]:
        before = sources.of(status["unseen_from"])
        place = f"before {before}" if before else "before the end"
        forked = (
            "; the program forked, and what a child stores is not recorded"
            if status["forks"]
            else ""
        )
        size = f"{status['unseen']:,} byte{'' if status['unseen'] == 1 else 's'}"
        raise InputError(
            f"{size} of persistent memory changed without a store that was seen, the first at"
            f" {status['unseen_at']:#x} {place}; build what stores there with `indelible cc`, or"
            " use --unseen to treat them as stored just before the next flush or fence. An"
            f" instruction that the compiler does not report can do this too{forked}"
        )
    if status["wrong"]:
        raise InputError(_wrong(status, sources))


def _wrong(status: Mapping[str, Any], sources: Sources) -> str:
    """Return the sentence about an error in the program's transactions."""
    at = sources.of(status["wrong_from"]) or UNKNOWN
    since = sources.of(status["wrong_since"]) or UNKNOWN
    return WRONG[status["wrong"]].format(at=at, since=since, word=f"{status['wrong_at']:#x}")


def _notes(counts: Mapping[str, int]) -> list[str]:
    """Return what may be wrong with a recording that is whole."""
    stores = counts["stores"] or counts["streams"]
    orders = counts["flushes"] or counts["fences"] or counts["transactions"]
    return [NOT_WRITTEN_BACK] if stores and not orders else []


def _trace(
    folder: Path,
    command: Sequence[str],
    status: Mapping[str, Any],
    sources: Sources,
) -> Iterator[str]:
    """Return the lines of a trace: the initial memory, and the operations."""
    words = "".join(letter if letter.isprintable() else "?" for letter in shlex.join(command))
    yield f"# indelible record -- {words}\n"
    for region in status["regions"]:
        yield f"region {region['address']:#x} {region['bytes']}\n"
    if status["threads"] > 1:
        yield "interleaved\n"
    with open(folder / "head", encoding="ascii") as lines:
        yield from lines
    yield "measured\n"
    with open(folder / "body", encoding="utf-8", errors="replace") as lines:
        yield from sources.tell(lines)


@dataclass(frozen=True)
class Part:
    """A part of the program in memory: a file, and the bias to be subtracted from addresses."""

    start: int
    end: int
    file: str
    bias: int


class Sources:
    """The lines of source of the places that operations come from, from the debug information."""

    def __init__(self, folder: Path) -> None:
        self.parts = _parts(os.fsdecode((folder / "maps").read_bytes()))
        self.starts = [part.start for part in self.parts]
        self.body = folder / "body"
        # The instruction of each place, and the calls that led there.
        lines = (folder / "places").read_text(encoding="ascii").splitlines()
        numbers = ([int(word, 16) for word in line.split()] for line in lines)
        self.places = {place: calls for place, *calls in numbers}
        # The lines of each address; None if nothing is known of it.
        self.frames: dict[int, list[str] | None] = {}

    def of(self, place: int) -> str:
        """Return the lines of an instruction and of its callers, the innermost first.

        What is left out says nothing new: a line that was given already (of a function that calls
        itself), and the name of a file behind another line of it.
        """
        self._learn([place])
        frames: dict[str, None] = {}
        for depth, call in enumerate(self.places.get(place, ())):
            lines = self.frames[call]
            # Code of which nothing is known may have left anything where frames are looked for.
            if lines is None and depth:
                break
            frames |= dict.fromkeys(lines or ())
        told, before = [], ""
        for frame in [*frames][:FRAMES_TOLD]:
            file, _, line = frame.rpartition(":")
            told.append(f":{line}" if file == before else frame)
            before = file
        return " < ".join(told)

    def tell(self, lines: Iterable[str]) -> Iterator[str]:
        """Replace the number behind each operation by lines of source."""
        with open(self.body, encoding="utf-8", errors="replace") as body:
            found = {match[1] for line in body if (match := FROM.search(line))}
        self._learn([int(number, 16) for number in found])
        told = {number: self.of(int(number, 16)) for number in found}
        for line in lines:
            operation, at, number = line.rstrip("\n").partition(" #@")
            source = told[number] if at else ""
            yield f"{operation} # {source}\n" if source else f"{operation}\n"

    def notes(self) -> list[str]:
        """Return which files of the program say nothing of the operations that come from them."""
        known: dict[str, bool] = {}
        for address in {calls[0] for calls in self.places.values()} & self.frames.keys():
            part = self._part(address)
            if part and not part.file.startswith(SYSTEM):
                has_lines = self.frames[address] is not None
                known[part.file] = known.get(part.file, False) or has_lines
        silent = sorted(
            os.path.basename(file) for file, has_lines in known.items() if not has_lines
        )
        return [NO_LINES.format(", ".join(silent))] if silent else []

    def _part(self, address: int) -> Part | None:
        index = bisect.bisect_right(self.starts, address) - 1
        part = self.parts[index] if index >= 0 else None
        return part if part and address < part.end else None

    def _learn(self, places: Iterable[int]) -> None:
        asked: dict[str, list[tuple[int, int]]] = {}
        calls = {call for place in places for call in self.places.get(place, ())}
        for address in sorted(calls - self.frames.keys()):
            self.frames[address] = None
            part = self._part(address)
            if part and not os.path.basename(part.file).startswith(LIBC):
                asked.setdefault(part.file, []).append((address, address - part.bias))
        for file, pairs in asked.items():
            found = _frames(file, [at for _, at in pairs])
            self.frames.update((address, found.get(at)) for address, at in pairs)


def _frames(file: str, addresses: Sequence[int]) -> dict[int, list[str]]:
    """Return the source lines of addresses in a file of machine code, inlining callers included.

    An address of which the file says nothing is left out.
    """
    asked = "".join(f"{address:#x}\n" for address in addresses)
    try:
        told = subprocess.run(
            ["addr2line", "-a", "-i", "-e", file],
            input=asked.encode(),
            capture_output=True,
            check=False,
        ).stdout
    except FileNotFoundError:
        return {}
    frames: dict[int, list[str]] = {}
    address = 0
    # Names of files may be in any encoding, and contain what Unicode takes for the end of a line.
    for line in os.fsdecode(told).split("\n"):
        if line.startswith("0x"):
            address = int(line, 16)
            continue
        # `??:0` means unknown, and functions of system headers are no place in the program.
        place = line.partition(" (")[0]
        if place and "?" not in place:
            known = frames.setdefault(address, [])
            known += [] if place.startswith(SYSTEM) else [os.path.basename(place)]
    return frames


def _parts(maps: str) -> list[Part]:
    """Return the parts of a process with machine code, in order."""
    first: dict[str, int] = {}
    parts = []
    for line in maps.split("\n"):
        words = line.split(maxsplit=5)
        if len(words) < 6 or not words[5].startswith("/"):
            continue
        start, end = (int(word, 16) for word in words[0].split("-"))
        file = words[5]
        first.setdefault(file, start)
        if "x" in words[1]:
            parts.append(Part(start, end, file, first[file] if _moves(file) else 0))
    return sorted(parts, key=lambda part: part.start)


def _moves(file: str) -> bool:
    """Return whether a file of machine code is loaded at any address, and not at its own."""
    try:
        with open(file, "rb") as elf:
            return int.from_bytes(elf.read(18)[16:], "little") == 3
    except OSError:
        return True
