"""Answers that are kept in a folder, and what makes another answer of them."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

import indelible
from conftest import needs_core
from indelible import errors, experiment, extension, kept
from indelible.experiment import Campaign, Experiment
from indelible.work import UNTESTED, Tried

Command = Callable[..., tuple[int, str, str]]

#: A machine of one's own, which may change.
MACHINE = """\
extends = "tiny"
name = "mine"
[pm]
tWRITE = "{write}"
"""


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def ending(answer: object) -> str:
    """Return the last block of a text, however it is wrapped."""
    return " ".join(str(answer).rpartition("\n\n")[2].split())


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what the simulator is asked, as it is."""
    asked: list[str] = []
    for verb in ("run", "crash"):
        real = getattr(extension.core, verb)

        def told(spec: str, control: object, real: Callable[..., str] = real) -> str:
            asked.append(spec)
            return real(spec, control)

        monkeypatch.setattr(extension.core, verb, told)
    return asked


@needs_core
def test_what_was_run_is_not_run_again(tmp_path: Path, runs: list[str]) -> None:
    folder, asked = tmp_path / "kept", {"machine": "tiny", "txs": 20, "set": {"workload.items": 8}}
    first = indelible.compare(["native", "silo"], ["queue"], **asked, keep=folder)
    # Two runs, and the campaign of silo.
    assert (len(runs), len(files(folder))) == (3, 3)
    again = indelible.compare(["native", "silo"], ["queue"], **asked, keep=folder)
    assert len(runs) == 3
    assert again.json() == first.json(), "also of the host it tells what it was then"
    more = indelible.compare(["native", "silo", "lad"], ["queue"], **asked, keep=folder)
    assert len(runs) == 5
    assert more.json()["rows"][0] == first.json()["rows"][0]
    # A sweep has the same runs, and those of other values.
    swept = {"machine": "tiny", "txs": 20, "set": asked["set"]}
    indelible.sweep(["silo"], ["queue"], {"seed": [1, 2]}, **swept, keep=folder)
    assert len(runs) == 6


@needs_core
def test_a_run_is_the_same_one_in_whichever_order_it_is_set(
    tmp_path: Path, runs: list[str]
) -> None:
    one = {"controller.wpq": 32, "core.rob": 128}
    other = dict(reversed(one.items()))
    asked = {"machine": "tiny", "txs": 20, "crash": False, "keep": tmp_path}
    for settings in (one, other):
        indelible.compare(["silo"], ["queue"], set=settings, **asked)
    assert len(runs) == 1


@needs_core
def test_a_run_is_the_same_one_whoever_asks_for_it(tmp_path: Path) -> None:
    asked = {"machine": "tiny", "txs": 20}
    values = {"silo.entries": [10, 20, 40]}

    def taken(folder: str, *verbs: str) -> list[str]:
        at = asked | {"keep": tmp_path / folder}
        ask = {
            "sweep": lambda: indelible.sweep(["silo", "lad"], ["queue"], values, **at),
            "why": lambda: indelible.why(["silo", "lad"], ["queue"], fields=["silo.entries"], **at),
        }
        return [str(ask[verb]().taken).partition(" runs")[0] for verb in verbs]

    # That silo has 20 is a word more than it has as it is.
    # Each run has a campaign beside it.
    assert taken("one", "why", "sweep", "why", "sweep") == ["0 of 8", "6 of 8", "8 of 8", "8 of 8"]
    assert taken("other", "sweep", "why") == ["0 of 8", "6 of 8"]


@needs_core
def test_that_a_run_cannot_be_is_kept_and_still_ends_what_needs_it(
    tmp_path: Path, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is found to be so only while it runs, as that a log is too small."""
    real = extension.core.run

    def refusing(spec: str, control: object) -> str:
        said = real(spec, control)
        if "design.entries" in json.loads(spec)["settings"]:
            raise errors.InputError("these are too few")
        return str(said)

    monkeypatch.setattr(extension.core, "run", refusing)
    asked = {"machine": "tiny", "txs": 5, "keep": tmp_path}
    found = indelible.why(["silo"], ["queue"], fields=["silo.entries", "pm.tWRITE"], **asked)
    assert {row["reason"] for row in found.json()["refused"]} == {"these are too few"}
    count = len(runs)
    again = indelible.why(["silo"], ["queue"], fields=["silo.entries", "pm.tWRITE"], **asked)
    assert (again.json()["refused"], len(runs)) == (found.json()["refused"], count)
    with pytest.raises(indelible.InputError, match=r"^these are too few$"):
        indelible.sweep(["silo"], ["queue"], {"silo.entries": [10]}, **asked)
    assert len(runs) == count


@needs_core
def test_the_text_ends_with_what_was_taken(tmp_path: Path) -> None:
    folder, asked = tmp_path / "kept", {"machine": "tiny", "txs": 20}
    alone = indelible.compare(["silo"], ["queue"], **asked)
    assert (alone.taken, "taken from" in str(alone)) == (None, False)
    asked["keep"] = folder
    first = indelible.compare(["silo"], ["queue"], **asked)
    assert ending(first) == f"0 of 2 runs and campaigns taken from {folder}"
    more = indelible.compare(["native", "silo"], ["queue"], **asked)
    assert ending(more) == f"2 of 3 runs and campaigns taken from {folder}"
    assert ending(more.stalls()) == ending(more)
    untested = indelible.compare(["native", "silo"], ["queue"], crash=False, **asked)
    assert ending(untested) == f"2 of 2 runs taken from {folder}"
    swept = indelible.sweep(["silo"], ["queue"], {"seed": [1, 2, 3]}, **asked)
    # Of all seeds there is one campaign, which is that of the comparison.
    assert ending(swept) == f"2 of 4 runs and campaigns taken from {folder}"
    assert (swept.taken.count, swept.taken.of, swept.taken.folder) == (2, 4, folder)


def test_what_is_never_kept_is_not_counted(tmp_path: Path) -> None:
    job = experiment.Experiment("silo", "queue")
    jobs = [
        kept.KeptJob(job, tmp_path / "one.json", True),
        kept.KeptJob(job, tmp_path / "two.json"),
    ]
    # Such as that of a design in Python.
    assert str(kept.taken([*jobs, job], "runs")) == f"1 of 2 runs taken from {tmp_path}"
    assert kept.taken([job], "runs") is None


@needs_core
@pytest.mark.parametrize("vary", [None, {"txs": [5, 6]}])
def test_the_claims_end_with_what_was_taken(tmp_path: Path, vary: dict | None) -> None:
    at = {"vary": vary, "set": {"workload.items": 100}, "keep": tmp_path}
    at |= {} if vary else {"txs": 5}
    first, again = (indelible.reproduce("loc", **at) for _ in range(2))
    assert str(first).rpartition("\n\n")[0] == str(again).rpartition("\n\n")[0]
    count = len(files(tmp_path))
    assert ending(first) == f"0 of {count} runs taken from {tmp_path}"
    assert ending(again) == f"{count} of {count} runs taken from {tmp_path}" == str(again.taken)


@needs_core
def test_another_machine_script_or_simulator_is_another_answer(
    tmp_path: Path, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, trace, folder = tmp_path / "mine.toml", tmp_path / "mine.trace", tmp_path / "kept"

    def cycles(write: str = "10ns", operations: int = 1) -> int:
        machine.write_text(MACHINE.format(write=write))
        trace.write_text("begin\n" + "store 0x1000 1\n" * operations + "commit\n")
        asked = {"replay": str(trace), "crash": False, "cores": 1, "keep": folder}
        (row,) = indelible.compare(["silo"], ["replay"], str(machine), **asked).json()["rows"]
        return int(row["cycles"])

    plain = cycles()
    assert (cycles(), len(runs)) == (plain, 1)
    cycles(write="500ns")
    assert len(runs) == 2, "a file of the same name says something else"
    assert (cycles(operations=9) > plain, len(runs)) == (True, 3)
    assert (cycles(), len(runs)) == (plain, 3)
    other = tmp_path / "other.so"
    other.write_bytes(b"another simulator")
    monkeypatch.setattr(extension.core, "__file__", str(other))
    assert (cycles(), len(runs)) == (plain, 4)


#: What builds another simulator in the place of the one that is loaded.
BUILD = """
library = extension.core.__file__
with open(library + ".new", "wb") as file:
    file.write(open(library, "rb").read() + b"of another build")
os.replace(library + ".new", library)
"""

#: What asks for a run that may be kept, and prints how many answers were taken.
ASK = """
asked = {"machine": "tiny", "txs": 5, "crash": False, "keep": sys.argv[1]}
try:
    print(indelible.compare(["native"], ["queue"], **asked).taken.count)
except indelible.InputError as error:
    print(error)
"""


@needs_core
def test_what_a_simulator_answers_is_never_kept_as_that_of_one_built_meanwhile(
    tmp_path: Path,
) -> None:
    """Neither if it is asked which it is after that alone, nor if it has been asked before."""
    package, folder = tmp_path / "package", tmp_path / "kept"
    no_caches = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(indelible.__file__).parent, package / "indelible", ignore=no_caches)

    def said(*steps: str) -> str:
        steps = ("import os, sys, indelible; from indelible import extension", *steps)
        words = [sys.executable, "-c", "\n".join(steps), str(folder)]
        environment = {**os.environ, "PYTHONPATH": str(package)}
        done = subprocess.run(words, capture_output=True, text=True, env=environment, check=True)
        return done.stdout.strip()

    assert "was rebuilt after this process" in said(BUILD, ASK)
    assert not folder.exists() or files(folder) == set()
    assert said("extension.simulator()", BUILD, ASK) == "0"
    assert said(ASK) == "0", "the one that was built has its own answer"
    assert said(ASK) == "1"


@needs_core
def test_a_machine_that_calls_itself_otherwise_is_another_one(tmp_path: Path) -> None:
    machine = tmp_path / "mine.toml"

    def name(own: str) -> str:
        machine.write_text(MACHINE.format(write="10ns").replace("mine", own))
        asked = {"machine": machine, "txs": 5, "crash": False, "keep": tmp_path / "kept"}
        (row,) = indelible.compare(["native"], ["queue"], **asked).rows
        return str(row["machine"])

    assert [name("mine"), name("yours"), name("mine")] == ["mine", "yours", "mine"]


@needs_core
def test_a_claim_is_not_run_again(tmp_path: Path, runs: list[str]) -> None:
    asked = {"txs": 5, "set": {"workload.items": 100}, "keep": tmp_path}
    found = indelible.reproduce("loc", **asked)
    count = len(runs)
    assert count == len(found.runs)
    assert indelible.reproduce("loc", **asked).rows == found.rows
    assert len(runs) == count


#: Campaigns that differ in one word each.
CAMPAIGNS: list[dict[str, object]] = [
    {},
    {"points": 50},
    {"points": "all"},
    {"design": "lad"},
    {"design": "lad", "mutants": True},
    {"nested": False},
    {"without": "undo_newest_first"},
    {"lives": 1},
    {"lives": 3},
    {"cores": 1},
    {"seed": 2},
    {"set": {"design.entries": 4}},
]


@needs_core
def test_a_campaign_is_kept_by_all_of_its_words(tmp_path: Path, runs: list[str]) -> None:
    common = {"design": "silo", "workload": "scribble", "txs": 5, "keep": tmp_path}
    asked = [common | own for own in CAMPAIGNS]
    first = [indelible.crash(**one) for one in asked]
    assert len(runs) == len(files(tmp_path)) == len(CAMPAIGNS)
    again = [indelible.crash(**one) for one in asked]
    assert len(runs) == len(CAMPAIGNS)
    for one, other in zip(first, again, strict=True):
        assert one.json() == other.json(), "also how long it took is what it was then"
        assert (one.taken.count, other.taken.count) == (0, 1)
        assert f"\nkept        in {tmp_path}\n" in str(one)
        assert str(other) == str(one).replace("        in /", "        taken from /")
    assert "\nkept" not in str(indelible.crash("silo", "scribble", txs=5))


@needs_core
def test_a_campaign_that_was_run_beside_speeds_is_taken_by_crash(
    tmp_path: Path, runs: list[str]
) -> None:
    compared = indelible.compare(["silo"], ["queue"], "tiny", txs=20, keep=tmp_path)
    verdict, count = compared.verdict("silo"), len(runs)
    assert verdict.command.endswith("--cores 2 --seed 1 --points 200 --no-nested --lives 1")
    sampled = {"cores": 2, "seed": 1, "points": 200, "nested": False, "lives": 1}
    again = indelible.crash("silo", "queue", **sampled, keep=tmp_path)
    assert (again.points, again.taken.count, len(runs)) == (verdict.points, 1, count)


@needs_core
def test_that_a_campaign_beside_a_run_cannot_be_is_kept_and_an_error_of_crash(
    tmp_path: Path,
) -> None:
    campaign = Campaign(Experiment("silo", "no-such-workload", "tiny", txs=5))
    tried, alone = kept.keeping([Tried(campaign), campaign], tmp_path)
    assert tried.file == alone.file
    said = tried.start(extension.core.Control())[UNTESTED]
    assert "no-such-workload" in said
    assert tried.start(extension.core.Control())[UNTESTED] == said
    assert tried.was_taken
    with pytest.raises(indelible.InputError, match=f"^{re.escape(said)}$"):
        alone.start(extension.core.Control())
    assert alone.was_taken


def test_what_a_program_says_of_a_campaign_is_not_kept(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    words = ["crash", "--design", "silo", "--workload", "hash", "--keep", str(folder)]
    for own in (["--check", "./verify"], ["--images", "images"]):
        code, shown, complaints = command(*words, *own)
        assert (code, shown, complaints.count("\n")) == (2, "", 1)
        assert "`keep` does not work with `check` or `images`" in complaints
    assert not folder.exists()


@needs_core
def test_a_campaign_that_was_stopped_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = extension.core.crash

    def stopped(spec: str, control: extension.core.Control) -> str:
        control.cancel()
        answer = json.loads(real(spec, control))
        assert answer["cancelled"]
        return json.dumps(answer)

    with monkeypatch.context() as patch:
        patch.setattr(extension.core, "crash", stopped)
        indelible.crash("silo", "scribble", txs=5, keep=tmp_path)
    assert files(tmp_path) == set()
    assert not indelible.crash("silo", "scribble", txs=5, keep=tmp_path).interrupted
    assert len(files(tmp_path)) == 1


@needs_core
def test_what_this_computer_has_no_room_for_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is of no design that its campaign found no room, and may have some the next time."""
    asked = {"machine": "tiny", "txs": 5, "keep": tmp_path}

    def refused(spec: str, control: object) -> str:
        raise errors.HostError("the host has no room")

    with monkeypatch.context() as patch:
        patch.setattr(extension.core, "crash", refused)
        first = indelible.compare(["silo"], ["queue"], **asked)
    assert first.verdict("silo").kind == "untested"
    again = indelible.compare(["silo"], ["queue"], **asked)
    assert (again.verdict("silo").kind, again.taken.count) == ("ok", 1)


#: A process that has no room for 16 GiB of memory, of which the pages come when they are used.
NARROW = """
import pickle
import resource
import indelible
from indelible import extension

here = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (here + (1 << 30), resource.RLIM_INFINITY))
for ask in (indelible.run, indelible.crash):
    try:
        ask("silo", "queue", "silo", txs=5)
    except indelible.HostError as error:
        print(pickle.loads(pickle.dumps(error)))
"""


@needs_core
def test_that_this_computer_has_no_room_is_told_from_other_mistakes() -> None:
    done = subprocess.run([sys.executable, "-c", NARROW], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 2, done.stderr
    for line in lines:
        assert line.startswith("the host has no room for the machine's memories (")
        assert line.endswith("): lower pm.device_size")


#: A process that has room for a machine of 1 GiB, and none for the one that is switched on over
#: what that left.
CRAMPED = """
import resource
import indelible

large = {"pm.device_size": "1GiB"}
indelible.crash("silo", "queue", txs=5, points=2)
here = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
for more in range(1, 64):
    room = here + (more << 28)
    resource.setrlimit(resource.RLIMIT_AS, (room, resource.RLIM_INFINITY))
    try:
        indelible.crash("silo", "queue", txs=5, points=2, lives=1, set=large)
    except indelible.HostError:
        continue
    try:
        indelible.crash("silo", "queue", txs=5, points=2, lives=2, set=large)
    except indelible.HostError as error:
        print(error)
    break
"""


@needs_core
def test_a_later_life_that_finds_no_room_is_of_this_computer_too() -> None:
    done = subprocess.run([sys.executable, "-c", CRAMPED], capture_output=True, text=True)
    assert done.stdout.startswith("the host has no room"), done.stdout + done.stderr
    assert done.stdout.endswith("): lower pm.device_size\n")


@needs_core
def test_of_what_cannot_be_written_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"txs": 5, "machine": "tiny", "crash": False, "keep": tmp_path}

    def full(answer: object, out: IO[str]) -> None:
        out.write("{")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(json, "dump", full)
        with pytest.raises(indelible.InputError, match="no space left on device"):
            indelible.compare(["native"], ["queue"], **asked)
    assert files(tmp_path) == set()


@needs_core
def test_whoever_may_read_a_folder_may_read_what_is_kept_there(tmp_path: Path) -> None:
    asked = {"txs": 5, "machine": "tiny", "crash": False, "keep": tmp_path}
    other = tmp_path / "other"
    other.touch()
    indelible.compare(["native"], ["queue"], **asked)
    (name,) = files(tmp_path) - {other.name}
    assert (tmp_path / name).stat().st_mode == other.stat().st_mode


@needs_core
def test_a_file_that_is_no_answer_is_named(tmp_path: Path) -> None:
    asked = {"txs": 5, "machine": "tiny", "crash": False, "keep": tmp_path}
    indelible.compare(["native"], ["queue"], **asked)
    (name,) = files(tmp_path)
    whole = (tmp_path / name).read_bytes()
    damaged = [
        b"",
        b"[1]",
        b'{"cycles": 1',
        b"{}",
        b'{"cancelled": true}',
        b"\x80{}",
        b"[" * 200_000,
    ]
    damaged.append(whole.replace(b'"cycles": ', b'"cycles": 9', 1))
    for text in damaged:
        (tmp_path / name).write_bytes(text)
        with pytest.raises(indelible.InputError, match=f"{name}: is not a valid kept answer"):
            indelible.compare(["native"], ["queue"], **asked)
    (tmp_path / name).unlink()
    indelible.compare(["native"], ["queue"], **asked)
    assert "cycles" in json.loads((tmp_path / name).read_text())


@needs_core
def test_what_was_stopped_goes_on(
    tmp_path: Path, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INDELIBLE_JOBS", "1")
    real, asked = extension.core.run, {"txs": 5, "machine": "tiny", "crash": False}

    def failing(spec: str, control: object) -> str:
        if len(runs) == 2:
            raise indelible.HostError("the third one has no room")
        return str(real(spec, control))

    with monkeypatch.context() as patch:
        patch.setattr(extension.core, "run", failing)
        with pytest.raises(indelible.HostError, match="on array: the third one"):
            indelible.compare(["native", "silo"], ["queue", "array"], **asked, keep=tmp_path)
    assert len(files(tmp_path)) == 2
    indelible.compare(["native", "silo"], ["queue", "array"], **asked, keep=tmp_path)
    assert (len(runs), len(files(tmp_path))) == (4, 4), "the first two were not run again"


@needs_core
def test_what_was_interrupted_says_what_it_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INDELIBLE_JOBS", "1")
    asked = {"txs": 5, "machine": "tiny", "crash": False, "keep": tmp_path}
    indelible.compare(["native"], ["queue"], **asked)

    def interrupted(spec: str, control: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(extension.core, "run", interrupted)
    with pytest.raises(indelible.Interrupted) as caught:
        indelible.compare(["native", "silo"], ["queue", "array"], **asked)
    partial = caught.value.partial
    assert (partial.interrupted, len(partial.runs)) == (True, 1)
    assert str(partial.taken) == f"1 of 4 runs taken from {tmp_path}"


def test_a_folder_that_cannot_be_is_a_sentence(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    words = ["compare", "--designs", "native", "--workloads", "hash", "--keep"]
    for folder, why in (
        (tmp_path / "file", "is not a folder; name one"),
        (tmp_path / "no" / "where", f"there is no directory `{tmp_path / 'no'}`; make it first"),
    ):
        code, _, complaints = command(*words, str(folder))
        assert (code, complaints.count("\n")) == (2, 1)
        assert f"--keep {folder}: {why}" in complaints
    monkeypatch.chdir(tmp_path)
    Path("a.trace").write_text("store 0 1\n")
    nowhere = str(tmp_path / "no" / "where")
    words = ["crash", "--design", "undo@x86", "--replay", "a.trace", "--check", "true"]
    code, _, complaints = command(*words, "--images", nowhere)
    assert code == 2
    assert f"--images {nowhere}: there is no directory `{tmp_path / 'no'}`; make it" in complaints
