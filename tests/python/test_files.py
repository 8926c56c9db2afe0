"""Files that a command writes, and words that name none."""

from __future__ import annotations

import csv
import io
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from conftest import needs_full
from indelible import files, pool
from indelible.rows import rows_as_csv

Command = Callable[..., tuple[int, str, str]]

COMPARE = ["compare", "--designs", "native,silo", "--workloads", "hash", "--no-crash"]
SWEEP = [*("sweep", "--designs", "silo", "--workloads", "hash"), *("--vary", "cores=1,2")]


@pytest.mark.parametrize("words", [COMPARE, SWEEP])
def test_rows_go_to_standard_output(
    command: Command, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files_too = ("--plot", "it.svg", "--report", "it.html")
    code, shown, complaints = command(*words, "--csv", "-", *files_too)
    assert (code, complaints) == (0, "")
    rows = list(csv.DictReader(io.StringIO(shown)))
    assert [row["workload"] for row in rows] == ["hash", "hash"]
    assert {path.name for path in tmp_path.iterdir()} == {"it.svg", "it.html"}


def test_what_is_interrupted_is_not_printed_as_rows(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> tuple:
        raise KeyboardInterrupt

    monkeypatch.setattr(pool, "_await", interrupt)
    said = "indelible: interrupted, so nothing was written to standard output\n"
    assert command(*COMPARE, "--csv", "-") == (130, "", said)


#: Words, and what is wrong with the file that they name.
NO_FILES = {
    "both": ([*COMPARE, "--csv", "-", "--json"], "--json and --csv - both go to standard output"),
    "one": (
        [*COMPARE, "--csv", "it.svg", "--plot", "./it.svg"],
        "--plot and --csv both name it.svg: one would replace the other",
    ),
    "two": (
        [*COMPARE, "--table", "it.csv", "--csv", "it.csv"],
        "--csv and --table both name it.csv: one would replace the other",
    ),
    "csv": ([*COMPARE, "--csv", ""], "--csv must name a file; it is an empty string"),
    "plot": (
        [*COMPARE, "--plot", "-"],
        "--plot -: the name of a figure must end in one of .png, .svg, .pdf",
    ),
    "trace": (
        ["trace", "--design", "silo", "--workload", "hash", "--out", "-"],
        "--out must name a file; it cannot go to standard output (-)",
    ),
    "sql": (
        ["run", "--design", "silo", "--sql", ""],
        "--sql must name a file; it is an empty string",
    ),
    "ycsb": (
        ["run", "--design", "silo", "--ycsb", ""],
        "--ycsb must name a file; it is an empty string",
    ),
    "litmus": (["litmus", ""], "a test must name a file; it is an empty string"),
}


@pytest.mark.parametrize("name", NO_FILES)
def test_what_names_no_file_is_a_sentence(command: Command, name: str) -> None:
    words, sentence = NO_FILES[name]
    code, shown, complaints = command(*words)
    assert (code, shown, complaints.count("\n")) == (2, "", 1)
    assert sentence in complaints


@needs_full
@pytest.mark.parametrize(
    ("words", "place"),
    [
        ([*COMPARE, "--csv"], "--csv /dev/full"),
        ([*SWEEP, "--table"], "--table /dev/full"),
        (["trace", "--design", "silo", "--workload", "hash", "--out"], "/dev/full"),
    ],
)
def test_a_full_disk_is_told_with_the_file(command: Command, words: list[str], place: str) -> None:
    code, _, complaints = command(*words, "/dev/full")
    assert (code, complaints) == (2, f"indelible: error: {place}: no space left on device\n")


@contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    """Have the host refuse what goes beyond, as a full disk does: the first bytes are written."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


TRACE = ["trace", "--design", "silo", "--workload", "hash", "--out"]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ([*COMPARE, "--csv"], "it.csv"),
        ([*SWEEP, "--table"], "it.csv"),
        ([*COMPARE, "--plot"], "it.pdf"),
        ([*COMPARE, "--plot"], "it.png"),
        ([*COMPARE, "--report"], "it.html"),
        (TRACE, "it.pftrace"),
    ],
)
def test_what_fails_halfway_leaves_the_older_file(
    command: Command, tmp_path: Path, words: list[str], name: str
) -> None:
    file = tmp_path / name
    file.write_text("of last week", encoding="utf-8")
    with no_file_longer_than(4):
        code, _, complaints = command(*words, str(file))
    assert (code, complaints.rpartition(": ")[2]) == (2, "file too large\n")
    assert file.read_text(encoding="utf-8") == "of last week"
    assert [*tmp_path.iterdir()] == [file]
    file.unlink()
    with no_file_longer_than(4):
        assert command(*words, str(file))[0] == 2
    assert not [*tmp_path.iterdir()]


def test_a_new_file_that_fails_halfway_is_none(tmp_path: Path) -> None:
    with no_file_longer_than(4), pytest.raises(files.InputError, match="file too large"):
        files.write_new(tmp_path / "mine.py", "a design")
    assert not [*tmp_path.iterdir()]


def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path) -> None:
    private, other = tmp_path / "private.csv", tmp_path / "other.csv"
    private.write_text("old", encoding="utf-8")
    private.chmod(0o600)
    for file in (private, other):
        files.write(file, "new")
    assert private.stat().st_mode & 0o777 == 0o600
    (tmp_path / "plain").touch()
    assert other.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_file_with_two_names_has_them_still(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("old", encoding="utf-8")
    other.hardlink_to(one)
    files.write(one, "new")
    assert other.read_text(encoding="utf-8") == "new"


def test_a_file_of_another_user_is_still_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new file in its place would be ours."""
    file = tmp_path / "theirs"
    file.write_text("old", encoding="utf-8")
    before = file.stat().st_ino
    monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)
    files.write(file, "new")
    assert (file.read_text(encoding="utf-8"), file.stat().st_ino) == ("new", before)


@pytest.mark.parametrize("place", ["/dev/stdout", "/dev/fd/1", "link"])
@pytest.mark.parametrize("into", ["a pipe", "a file"])
def test_a_stream_of_ours_is_written_itself(tmp_path: Path, place: str, into: str) -> None:
    (tmp_path / "link").symlink_to("/dev/stdout")
    write = f"from indelible import files; files.write({place!r}, 'rows')"
    words = [sys.executable, "-c", f"{write}; print('the rest')"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    if into == "a pipe":
        done = subprocess.run(words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE)
        assert done.stdout == b"rowsthe rest\n"
        return
    file = tmp_path / "out"
    with file.open("a") as out:
        subprocess.run(words, cwd=tmp_path, env=environment, stdout=out, check=True)
    # Who else has it open sees it.
    assert file.read_text(encoding="utf-8") == "rowsthe rest\n"
    assert {path.name for path in tmp_path.iterdir()} == {"link", "out"}


def test_cells_are_as_json_has_them() -> None:
    rows = [{"a": False, "b": [], "c": None, "d": {"e": True, "f": 1.5, "g": "x"}, "h": ["y, z"]}]
    assert rows_as_csv(rows) == 'a,b,c,d.e,d.f,d.g,h\nfalse,,,true,1.5,x,"[""y, z""]"\n'


def table_of(command: Command, path: Path, *words: str) -> list[dict[str, str]]:
    code, _, complaints = command(*words, "--table", str(path))
    assert (code, complaints) == (0, "")
    with path.open(encoding="utf-8") as file:
        return [*csv.DictReader(file)]


def what(row: Mapping[str, str]) -> tuple[str, ...]:
    """Return what the numbers of a row are."""
    return row["metric"], row["unit"], row["relative_to"]


def test_the_table_is_a_file_of_means(command: Command, tmp_path: Path) -> None:
    words = ["compare", "--designs", "native,silo", "--workloads", "hash,sqlite", "--no-crash"]
    words += ["--cores", "1,8", "--seeds", "3"]
    rows = table_of(command, tmp_path / "means.csv", *words)
    assert [(row["design"], row["cores"], row["workload"]) for row in rows[:4]] == [
        ("native", "1", "hash"),
        ("native", "1", "sqlite"),
        ("native", "1", "gmean"),
        ("silo", "1", "hash"),
    ]
    assert len(rows) == 2 * 2 * 3
    assert {what(row) for row in rows} == {("throughput", "tx/s", "native")}
    answer = json.loads(command(*words, "--json")[1])
    cell = next(c for c in answer["cells"] if (c["design"], c["workload"]) == ("silo", "sqlite"))
    assert float(rows[4]["normalized"]) == cell["normalized"]
    mean = next(m for m in answer["gmean"] if m["design"] == "silo")
    assert (rows[5]["value"], float(rows[5]["normalized"])) == ("", mean["value"])
    for key in ("half_width_95", "low_95", "high_95"):
        assert (float(rows[4][key]), float(rows[5][key])) == (cell[key], mean[key])


def test_the_table_of_a_sweep_is_a_file(command: Command, tmp_path: Path) -> None:
    rows = table_of(command, tmp_path / "means.csv", *SWEEP)
    found = [(row["point.cores"], row["workload"], row["normalized"]) for row in rows]
    assert found == [
        ("1", "hash", "1.0"),
        ("1", "gmean", "1.0"),
        ("2", "hash", "2.0"),
        ("2", "gmean", "2.0"),
    ]
    assert {what(row) for row in rows} == {("throughput", "tx/s", "cores=1")}


def test_what_core_time_is_spent_on_is_a_file_and_in_json(command: Command, tmp_path: Path) -> None:
    rows = table_of(command, tmp_path / "stacks.csv", *COMPARE, "--stalls")
    stacks = json.loads(command(*COMPARE, "--stalls", "--json")[1])["stacks"]
    base = stacks[0]["design"]
    assert {(row["unit"], row["relative_to"]) for row in rows} == {("percent", base)}
    assert [(row["design"], row["workload"]) for row in stacks] == [
        *[("native", "hash"), ("native", "mean")],
        *[("silo", "hash"), ("silo", "mean")],
    ]
    assert stacks[0]["total"] == pytest.approx(100)
    assert stacks[2]["total"] == pytest.approx(sum(stacks[2]["parts"].values()))
    assert [float(row["parts.fence"]) for row in rows] == [row["parts"]["fence"] for row in stacks]
    assert "stacks" not in json.loads(command(*COMPARE, "--json")[1])


@pytest.mark.parametrize("dangles", [True, False])
def test_a_link_is_written_through(command: Command, tmp_path: Path, dangles: bool) -> None:
    files = {"--csv": "rows.csv", "--table": "means.csv", "--plot": "it.svg"}
    (tmp_path / "far").mkdir()
    words = [*COMPARE]
    for flag, name in files.items():
        (tmp_path / name).symlink_to(tmp_path / "far" / name)
        if not dangles:
            (tmp_path / "far" / name).write_text("old", encoding="utf-8")
        words += [flag, str(tmp_path / name)]
    assert command(*words)[0] == 0
    for name in files.values():
        assert (tmp_path / name).is_symlink()
        assert len((tmp_path / "far" / name).read_text(encoding="utf-8")) > len("old")


def test_a_path_is_looked_at_and_not_touched(
    command: Command, fake: ModuleType, tmp_path: Path
) -> None:
    link, nowhere = tmp_path / "link.csv", tmp_path / "nowhere.csv"
    code, _, complaints = command(*COMPARE, "--csv", str(tmp_path / "no" / ".." / "x.csv"))
    assert (code, fake.asked, "make it first" in complaints) == (2, [], True)
    link.symlink_to(tmp_path / "new.csv")
    nowhere.symlink_to(tmp_path / "no" / "new.csv")

    def looks() -> dict[Path, tuple]:
        stats = {path: path.lstat() for path in tmp_path.iterdir()}
        return {path: (s.st_mode, s.st_ino, s.st_size, s.st_mtime_ns) for path, s in stats.items()}

    before = looks()
    # The second is refused, after the first was looked at.
    code, _, complaints = command(*COMPARE, "--csv", str(link), "--table", str(nowhere))
    assert (code, fake.asked) == (2, [])
    assert f"there is no directory `{tmp_path / 'no'}`; make it first" in complaints
    assert looks() == before


@pytest.mark.parametrize("flag", ["--replay", "--sql", "--ycsb", ""])
def test_a_device_has_no_end_and_is_not_read(command: Command, flag: str) -> None:
    words = ["run", "--design", "silo", flag] if flag else ["litmus"]
    code, _, complaints = command(*words, "/dev/zero")
    place = f"{flag} /dev/zero".lstrip()
    said = f"indelible: error: {place}: is a device; name a file or a pipe\n"
    assert (code, complaints) == (2, said)


def test_a_pipe_is_read_as_a_file_is(command: Command, fake: ModuleType) -> None:
    out, into = os.pipe()
    with open(into, "w", encoding="utf-8") as file:
        file.write("SELECT 1;\n")
    try:
        # As a shell names what it puts in the place of `<(...)`.
        assert command("run", "--design", "silo", "--sql", f"/dev/fd/{out}")[0] == 0
    finally:
        os.close(out)
    assert fake.asked[-1][1]["script"] == [f"/dev/fd/{out}", "SELECT 1;\n"]
