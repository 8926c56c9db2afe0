"""Bundles of commands, and doing them again."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from conftest import HERE, needs_core
from indelible import bundles, pool
from indelible.cli import main
from indelible.errors import InputError
from indelible.extension import simulator

Command = Callable[..., tuple[int, str, str]]

UNDO_LOG = HERE.parents[1] / "examples" / "designs" / "undo_log.py"
COMPARE = ("compare", "--designs", "native,silo", "--workloads", "hash", "--no-crash")


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def real(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Run the command with the simulator."""
    from indelible.cli import main

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setenv("COLUMNS", "200")
        code = main(words)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_a_bundle_has_what_the_command_printed_and_answered(command: Command) -> None:
    _, alone, _ = command(*COMPARE)
    words = [*COMPARE, "--plot", "figures/it.svg", "--csv=rows.csv", "--keep", "answers"]
    Path("figures").mkdir()
    code, shown, _ = command("bundle", "it", "--", *words)
    assert code == 0
    assert shown.startswith(alone.rstrip("\n"))
    assert shown.endswith("bundle: it; `indelible verify it` repeats it\n")
    files = {path.name for path in Path("it").iterdir()}
    assert files == {
        *("README.md", "answer.json", "bundle.json", "output.txt", "it.svg", "rows.csv")
    }
    assert Path("it/output.txt").read_text(encoding="utf-8").startswith(alone.rstrip("\n"))
    manifest = json.loads(Path("it/bundle.json").read_text(encoding="utf-8"))
    # Whoever does it again writes no files, and takes nothing that was kept.
    assert manifest["command"] == [*COMPARE]
    assert Path("answers").is_dir()
    answer = json.loads(Path("it/answer.json").read_text(encoding="utf-8"))
    assert [row["design"] for row in answer["rows"]] == ["native", "silo"]
    assert "host" not in answer["rows"][0]


def test_the_same_answer_is_verified(command: Command) -> None:
    command("bundle", "it", "--", *COMPARE)
    before = {path: path.read_bytes() for path in Path("it").iterdir()}
    code, shown, _ = command("verify", "it")
    assert (code, "the same build" in shown, "the same: " in shown) == (0, True, True)
    assert {path: path.read_bytes() for path in Path("it").iterdir()} == before
    assert json.loads(command("verify", "it", "--json")[1])["differences"] == []


@pytest.mark.parametrize("more", [[], ["--plot", "it.svg"], ["--json"]])
def test_a_bundle_has_the_distributions_of_latencies_whatever_is_written(
    command: Command, fake: ModuleType, more: list[str]
) -> None:
    words, more = (("--json", "it"), []) if more == ["--json"] else (("it",), more)
    command("bundle", *words, "--", *COMPARE, "--latencies", *more)
    rows = json.loads(Path("it/answer.json").read_text(encoding="utf-8"))["rows"]
    assert all(spec["latencies"] for kind, spec in fake.asked if kind == "run")
    assert all(row["command"].endswith("--latencies") for row in rows)
    fake.asked.clear()
    assert json.loads(command("verify", "it", "--json")[1])["differences"] == []
    assert all(spec["latencies"] for kind, spec in fake.asked if kind == "run")


@pytest.mark.parametrize("view", ["--stalls", "--writes", "--latencies", "--usage", "--summary"])
def test_a_bundle_has_what_a_view_adds(command: Command, view: str) -> None:
    shown = json.loads(command(*COMPARE, view, "--json")[1])
    assert command("bundle", "it", "--", *COMPARE, view)[0] == 0
    kept = json.loads(Path("it/answer.json").read_text(encoding="utf-8"))
    assert set(kept) == set(shown)
    (added,) = set(kept) - set(json.loads(command(*COMPARE, "--json")[1]))
    assert kept[added] == shown[added] != []
    assert json.loads(command("verify", "it", "--json")[1])["differences"] == []


def test_another_answer_is_not(
    command: Command, fake: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    command("bundle", "it", "--", *COMPARE)
    run = fake.run

    def other(spec: str, control: object) -> str:
        row = json.loads(run(spec, control))
        row["cycles"] += 1 if row["design"] == "silo" else 0
        return json.dumps(row)

    monkeypatch.setattr(fake, "run", other)
    code, shown, _ = command("verify", "it")
    assert code == 1
    assert "DIFFERENT: 1 of " in shown
    assert "rows[1].cycles: 2000001 now, 2000000 when bundled" in shown
    (row,) = json.loads(command("verify", "it", "--json")[1])["differences"]
    assert row == {"place": "rows[1].cycles", "then": 2000000, "now": 2000001}


def verified(then: object, now: object) -> bundles.Verified:
    """Return what is said of an answer of now, beside that of a bundle of this simulator."""
    manifest = {"command": ["run"], "simulator": simulator(), "exit_code": 0, "seconds": 1.0}
    return bundles.verified(manifest, then, now, 0, 1.0)


def test_all_that_differs_is_counted_and_the_first_of_it_told() -> None:
    then = {"rows": [{"cycles": number, "txs": 5} for number in range(30)]}
    now = {"rows": [row | {"cycles": row["cycles"] + 1} for row in then["rows"][:12]]}
    found = verified(then, {"rows": now["rows"] + then["rows"][12:]})
    assert (found["values"], found["differing"], len(found["differences"])) == (60, 12, 10)
    assert "DIFFERENT: 12 of 60 values" in str(found)
    assert str(found).endswith("rows[9].cycles: 10 now, 9 when bundled\n  and 2 more")


def test_a_value_of_another_kind_is_another_value() -> None:
    for then, now in ((1, True), (0, False), (2, 2.0)):
        (row,) = verified({"value": then}, {"value": now})["differences"]
        assert row == {"place": "value", "then": then, "now": now}


def test_another_exit_code_is_another_answer() -> None:
    manifest = {"command": ["run"], "simulator": simulator(), "exit_code": 1, "seconds": 1.5}
    found = bundles.verified(manifest, {"txs": 5}, {"txs": 5}, 0, 2.0004)
    assert (found.passed, found["differences"]) == (False, [])
    assert (found["seconds"], found["seconds_then"]) == (2.0, 1.5)
    assert bundles.verified(manifest, {"txs": 5}, {"txs": 5}, 1, 2.0).passed


def test_no_file_of_a_command_is_one_of_the_bundle_itself() -> None:
    for name in ("bundle.json", "answer.json", "output.txt", "README.md", "inputs"):
        words = ["compare", "--csv", f"elsewhere/{name}"]
        with pytest.raises(InputError, match="cannot be a file of a bundle; choose another name"):
            bundles.split(words, Path("it"))


def test_the_readme_names_what_the_command_reads() -> None:
    manifest = {"command": ["run"], "simulator": "it", "seconds": 1.5, "inputs": {"inputs/1/a": ""}}
    assert bundles._readme(manifest).endswith("\n- `inputs/1/a`: read by the command\n")


def test_how_long_a_command_took_is_told_to_the_millisecond() -> None:
    Path("it").mkdir()
    bundles.write(Path("it"), bundles.Words(["run"], ["run"], {}), {}, "done", 0, 1.23456)
    assert manifest_of()["seconds"] == 1.235


def test_where_a_command_runs_is_named_from_within_its_bundle() -> None:
    Path("scheduler.json").touch()
    for said, own in (("scheduler.json", "../scheduler.json"), ("tcp://a:1", "tcp://a:1")):
        found = bundles.split(["run", "--dask", said, "--keep=answers"], Path("it"))
        assert found.own == ["run", "--dask", own, "--keep=../answers"]
        assert found.words == ["run"]


def test_a_file_that_a_flag_names_goes_along_whatever_it_is_called() -> None:
    Path("bare").touch()
    for flag in ("--sql", "--ycsb", "--replay"):
        found = bundles.split(["run", flag, "bare"], Path("it"))
        assert found.words == found.own == ["run", flag, "./inputs/1/bare"]
        assert found.inputs == {"inputs/1/bare": Path("bare").absolute()}


def test_what_a_command_writes_is_in_the_bundle_and_not_done_again() -> None:
    for name in ("run", "compare", "why", "sweep", "reproduce", "crash", "litmus", "characterize"):
        for flag in ("--plot", "--csv", "--table", "--report"):
            found = bundles.split([name, flag, "some/it"], Path("b"))
            assert (found.words, found.own) == ([name], [name, flag, "it"])


def test_what_is_of_the_host_is_no_part_of_an_answer() -> None:
    of_host = {"host": {"seconds": 2.0}, "seconds": 1.5, "points_per_s": 300.0}
    assert verified({"points": 9}, {"points": 9, **of_host}).passed
    assert not verified({"points": 9}, {"points": 9, "events": 3}).passed


def test_another_build_may_have_another_name_for_the_same(
    command: Command, fake: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    command("bundle", "it", "--", *COMPARE)
    run = fake.run
    monkeypatch.setattr(fake, "version", lambda: "0.0.1")
    monkeypatch.setattr(
        fake,
        "run",
        lambda *asked: json.dumps(json.loads(run(*asked)) | {"version": "0.0.1", "id": "7"}),
    )
    code, shown, _ = command("verify", "it")
    shown = " ".join(shown.split())
    assert (code, "another build" in shown, "the same: " in shown) == (0, True, True)


def test_violations_are_an_answer(command: Command) -> None:
    words = ["crash", "--design", "leaky", "--workload", "btree"]
    assert command("bundle", "it", "--", *words)[0] == 1
    assert json.loads(Path("it/bundle.json").read_text())["exit_code"] == 1
    assert command("verify", "it")[0] == 0


def test_an_input_that_has_changed_is_named(command: Command) -> None:
    Path("mine.sql").write_text("SELECT 1;", encoding="utf-8")
    words = ["run", "--design", "silo", "--sql", "mine.sql"]
    assert command("bundle", "it", "--", *words)[0] == 0
    assert command("verify", "it")[0] == 0
    Path("it/inputs/1/mine.sql").write_text("SELECT 2;", encoding="utf-8")
    code, _, complaint = command("verify", "it")
    assert code == 2
    assert "it/inputs/1/mine.sql: has changed since the bundle was made" in complaint


def test_what_no_bundle_can_have_is_a_sentence(command: Command) -> None:
    crash = ("crash", "--design", "undo@x86", "--workload", "replay")
    Path("there").mkdir()
    for words, sentence in {
        (): "takes a folder and a command",
        ("it",): "takes a folder and a command",
        ("it", "--"): "takes a folder and a command",
        ("it", "--", "list", "designs"): "the command of a bundle must be one of run, compare,",
        ("it", "--", "compar"): "the command of a bundle must be one of run, compare,",
        ("it", "--", *crash, "--check", "./v"): "--check runs a program of yours",
        ("it", "--", *COMPARE, "--native"): "--native measures this computer's processor",
        ("it", "--", *COMPARE, "--csv", "-"): "--csv - cannot be a file of a bundle",
        ("it", "--", *COMPARE, "--csv", "answer.json"): "cannot be a file of a bundle",
        ("it", "--", *COMPARE, "--json"): "--json after `--` would only repeat answer.json",
        ("it", "--foo", "--", *COMPARE): "unknown option `--foo` of `indelible bundle`",
        ("it", "--", *COMPARE, "--foo"): "unknown option `--foo` of `indelible compare`",
        ("it", "--", "run", "--design", "silo", "--sql", "none.sql"): "none.sql: no such file",
        ("it", "--", "run", "--design", "sillo", "--workload", "hash"): "unknown design `sillo`",
        ("there", "--", *COMPARE): "there already exists",
        ("no/where", "--", *COMPARE): "no/where: no such file or directory",
    }.items():
        code, _, complaint = command("bundle", *words)
        assert (code, sentence in complaint) == (2, True), complaint
        assert not Path("it").exists()
    for words, sentence in {
        (): "takes a folder that `indelible bundle` made",
        ("there",): "there has no bundle.json; name a folder that `indelible bundle` made",
    }.items():
        code, _, complaint = command("verify", *words)
        assert (code, sentence in complaint) == (2, True), complaint


@pytest.mark.parametrize(
    "words", [("--json", "it", "--"), ("it", "--json", "--"), ("it", "--json")]
)
def test_a_bundle_s_own_option_stands_before_the_command(
    command: Command, words: tuple[str, ...]
) -> None:
    code, out, _ = command("bundle", *words, *COMPARE)
    made = json.loads(out)
    assert (code, made["folder"]) == (0, "it")
    assert made["command"] == json.loads(command("verify", "it", "--json")[1])["command"]
    assert made["command"].startswith("indelible compare --designs ")


def test_of_what_was_interrupted_there_is_no_bundle(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> object:
        raise pool.Interrupted([None, None])

    monkeypatch.setattr(pool, "execute", interrupted)
    code, _, complaint = command("bundle", "it", "--", *COMPARE)
    assert (code, Path("it").exists()) == (130, False)
    assert "it was not made" in complaint


def test_a_list_may_be_longer_than_the_name_of_a_file(command: Command) -> None:
    values = ",".join(map(str, range(1000, 1100)))
    words = ["sweep", "--designs", "silo", "--workloads", "hash"]
    command("bundle", "it", "--", *words, "--vary", f"silo.entries={values}")
    assert f"silo.entries={values}" in Path("it/bundle.json").read_text(encoding="utf-8")


@needs_core
def test_what_a_command_reads_goes_along(real: Command, tmp_path: Path) -> None:
    mine, machines = tmp_path / "designs", tmp_path / "machines"
    mine.mkdir()
    machines.mkdir()
    text = UNDO_LOG.read_text(encoding="utf-8")
    (mine / "sizes.py").write_text("UNUSED = 1\n", encoding="utf-8")
    (mine / "mine.py").write_text(text + "\nimport sizes\n", encoding="utf-8")
    (machines / "near.toml").write_text('extends = "silo"\n', encoding="utf-8")
    (machines / "own").mkdir()
    (machines / "own" / "far.toml").write_text(
        'extends = "../near.toml"\n[controller]\nnoc_latency = "70ns"\n', encoding="utf-8"
    )
    words = ["compare", "--designs", "undo@x86,designs/mine.py", "--workloads", "hash"]
    words += ["--machine", "machines/own/far.toml", "--txs", "20", "--cores", "1", "--no-crash"]
    words += ["--set", "mine.truncate_perc=40"] * ("truncate_perc" in text)
    code, alone, _ = real(*words)
    assert code == 0
    assert real("bundle", "it", "--", *words)[0] == 0
    shutil.move("it", tmp_path / "moved")
    for folder in (mine, machines):
        shutil.rmtree(folder)
    files = {
        path.relative_to("moved/inputs").as_posix() for path in Path("moved/inputs").rglob("*")
    }
    assert {"1/mine.py", "1/sizes.py", "2/near.toml", "2/own/far.toml"} <= files
    code, shown, _ = real("verify", "moved")
    assert (code, "the same: " in shown) == (0, True), shown
    ratio = next(line.split()[2] for line in alone.splitlines() if line.startswith("hash"))
    assert ratio in Path("moved/output.txt").read_text(encoding="utf-8")


@needs_core
def test_a_design_goes_along_from_anywhere_in_a_list() -> None:
    shutil.copyfile(UNDO_LOG, "mine.py")
    asked = "silo, ./mine.py , mine.py,undo@./mine.py"
    found = bundles.split(["compare", "--designs", asked], Path("it"))
    mine = "./inputs/1/mine.py"
    assert found.words == ["compare", "--designs", f"silo,{mine},{mine},undo@{mine}"]
    assert [*found.inputs] == ["inputs/1/mine.py"]


@needs_core
def test_a_machine_file_goes_along_with_those_that_its_bases_extend() -> None:
    bases = {"own/far": "../shared/near.toml", "shared/near": "base.toml", "shared/base": "silo"}
    for name, base in bases.items():
        path = Path(f"{name}.toml")
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'extends = "{base}"\n', encoding="utf-8")
    found = bundles.split(["run", "--machine", "own/far.toml"], Path("it"))
    assert found.words == ["run", "--machine", "./inputs/1/own/far.toml"]
    assert sorted(found.inputs) == sorted(f"inputs/1/{name}.toml" for name in bases)


@needs_core
def test_a_litmus_test_and_hardware_in_python_go_along(real: Command) -> None:
    assert real("new", "order", "mine")[0] == 0
    Path("own.litmus").write_text(
        "thread\n  store A 1\n  order\n  store B 1\n\nimage  A=0 B=1\n", encoding="utf-8"
    )
    words = ["litmus", "--order", "./mine.py", "--mutants", "own.litmus"]
    first = real(*words)[0]
    assert real("bundle", "it", "--", *words)[0] == first
    Path("own.litmus").unlink()
    code, shown, _ = real("verify", "it")
    assert (code, "the same: " in shown) == (0, True), shown
    # Whatever it is called.
    shutil.copyfile("it/inputs/2/own.litmus", "own")
    assert real("bundle", "bare", "--", "litmus", "--order", "x86", "--mutants", "own")[0] == first
    assert real("verify", "bare")[0] == 0


def manifest_of(folder: str = "it") -> dict:
    return json.loads(Path(folder, "bundle.json").read_text(encoding="utf-8"))


def test_a_manifest_that_is_no_bundle_s_is_not_done(command: Command, fake: ModuleType) -> None:
    command("bundle", "it", "--", *COMPARE)
    path, own = Path("it/bundle.json"), manifest_of()
    for change in (
        {"command": []},
        {"command": ["--help"]},
        {"command": [1, 2]},
        {"command": [*COMPARE, "--csv", "/tmp/elsewhere.csv"]},
        {"command": [*COMPARE, "--keep=elsewhere"]},
        {"command": ["crash", "--design", "silo", "--check", "touch elsewhere"]},
        {"command": ["verify", "."]},
        {"command": ["record", "--", "/bin/true"]},
        {"inputs": []},
        {"written": None},
        {"written": {"a\0b": "0"}},
        {"seconds": "x"},
    ):
        path.write_text(json.dumps(own | change), encoding="utf-8")
        fake.asked.clear()
        code, shown, complaint = command("verify", "it")
        assert (code, shown, fake.asked) == (2, "", []), change
        assert "it/bundle.json: " in complaint
    for text in (b"\xff\xfe", b"[" * 200_000):
        path.write_bytes(text)
        assert "it/bundle.json: is not JSON" in command("verify", "it")[2]


def test_what_was_shown_or_written_is_not_changed_behind_ones_back(command: Command) -> None:
    command("bundle", "it", "--", *COMPARE, "--plot", "it.svg", "--csv", "it.csv")
    for name in ("output.txt", "it.svg", "it.csv"):
        path = Path("it", name)
        before = path.read_bytes()
        path.write_text("silo is 10x faster", encoding="utf-8")
        code, _, complaint = command("verify", "it")
        assert code == 2
        assert f"it/{name}: has changed since the bundle was made" in complaint
        path.unlink()
        assert "no such file" in command("verify", "it")[2]
        path.write_bytes(before)
    assert command("verify", "it")[0] == 0


def test_an_answer_that_nothing_was_checked_is_one(
    command: Command, fake: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash = fake.crash
    unchecked = {"checked": False, "violations": []}
    monkeypatch.setattr(
        fake, "crash", lambda *asked: json.dumps(json.loads(crash(*asked)) | unchecked)
    )
    words = ["crash", "--design", "silo", "--workload", "btree"]
    assert command("bundle", "it", "--", *words)[0] == 2
    assert manifest_of()["exit_code"] == 2
    assert command("verify", "it")[0] == 0


def test_nothing_says_where_answers_are_kept(command: Command, tmp_path: Path) -> None:
    command("bundle", "it", "--", *COMPARE, "--keep", "kept")
    assert Path("kept").is_dir()
    said = "".join(path.read_text(encoding="utf-8") for path in Path("it").iterdir())
    assert str(tmp_path) not in said


@needs_core
def test_machine_files_that_no_bundle_can_have_are_refused(real: Command, tmp_path: Path) -> None:
    words = ["run", "--design", "silo", "--workload", "hash", "--txs", "5", "--machine"]
    base = tmp_path / "base.toml"
    base.write_text('extends = "silo"\n', encoding="utf-8")
    Path("far.toml").write_text(f'extends = "{base}"\n', encoding="utf-8")
    code, _, complaint = real("bundle", "it", "--", *words, "far.toml")
    assert (code, "which is on this computer alone" in complaint) == (2, True)
    Path("far.toml").write_text(f'extends = """{base}"""\n', encoding="utf-8")
    code, _, complaint = real("bundle", "it", "--", *words, "far.toml")
    assert (code, "which is on this computer alone" in complaint) == (2, True)
    Path("a.toml").write_text('extends = "b.toml"\n', encoding="utf-8")
    Path("b.toml").write_text('extends = "a.toml"\n', encoding="utf-8")
    code, _, complaint = real("bundle", "it", "--", *words, "a.toml")
    assert (code, "extends itself" in complaint) == (2, True)
    code, _, complaint = real("bundle", "it", "--", *words, "/dev/zero")
    assert (code, "not a regular file" in complaint) == (2, True)
    # Whatever a machine's file is called.
    Path("it's.toml").write_text('extends = "base.toml"\n', encoding="utf-8")
    Path("my, own").write_text('extends = "./it\'s.toml"\n', encoding="utf-8")
    assert real("bundle", "it", "--", *words, "./my, own")[0] == 0
    inputs = {"inputs/1/my, own", "inputs/1/it's.toml", "inputs/1/base.toml"}
    assert set(manifest_of()["inputs"]) == inputs
    assert real("verify", "it")[0] == 0


@needs_core
def test_a_design_is_the_same_in_every_process(tmp_path: Path) -> None:
    folder = tmp_path / "designs"
    (folder / "package").mkdir(parents=True)
    for name in ("one.py", "two.py", "package/three.py"):
        (folder / name).write_text(f"# {name}\nCYCLES = 5\n", encoding="utf-8")
    text = UNDO_LOG.read_text(encoding="utf-8")
    # It goes through a set of texts, and imports files, one of them of a package without its own.
    tail = """
import one
import two
from package import three

class Mine(UndoLog):
    def load(self, load, below):
        order = [*{"a", "b", "c", "d", "e", "f"}]
        return load.at + three.CYCLES * order.index("a")
"""
    (folder / "mine.py").write_text(f"{text}{tail}", encoding="utf-8")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONHASHSEED"}

    def done(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "indelible", *words]
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    words = ["run", "--design", "designs/mine.py", "--workload", "hash", "--txs", "5"]
    made = done("bundle", "it", "--", *words)
    assert made.returncode == 0, made.stderr
    places = {"mine.py", "one.py", "two.py", "package/three.py"}
    assert set(manifest_of()["inputs"]) == {f"inputs/1/{place}" for place in places}
    shutil.rmtree(folder)
    for _ in range(4):
        verified = done("verify", "it")
        assert verified.returncode == 0, verified.stdout + verified.stderr
    assert [path.name for path in Path("it").rglob("__pycache__")] == []


@needs_core
def test_two_folders_may_have_packages_of_one_name(real: Command, tmp_path: Path) -> None:
    for folder, rules in (("d", "five"), ("e", "six")):
        (tmp_path / folder / "package").mkdir(parents=True)
        (tmp_path / folder / "package" / "own.py").write_text(f'SAID = "{rules}"\n')
        text = UNDO_LOG.read_text(encoding="utf-8")
        head = "from package import own\n"
        (tmp_path / folder / f"{folder}1.py").write_text(
            f"{head}{text}\nprint('loaded', own.SAID)\n", encoding="utf-8"
        )
    words = ["--workloads", "hash", "--txs", "5", "--cores", "1", "--no-crash"]
    _, _, said = real("compare", "--designs", "d/d1.py,e/e1.py", *words)
    assert "loaded five" in said
    assert "loaded six" in said


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_bundle_is_made_where_the_terminal_has_fewer_letters(
    command: Command, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    printed = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
    monkeypatch.setattr(sys, "stdout", printed)
    assert main(["bundle", "it", "--", *COMPARE]) == 0
    assert "machine silo" in printed.buffer.getvalue().decode(encoding)
    assert "·" in Path("it/output.txt").read_text(encoding="utf-8")


def test_answers_are_kept_where_one_is_also_if_the_bundle_is_behind_a_link(
    command: Command,
) -> None:
    Path("real/deep").mkdir(parents=True)
    Path("link").symlink_to("real/deep")
    assert command("bundle", "link/it", "--", *COMPARE, "--keep", "answers")[0] == 0
    assert [*Path("answers").iterdir()]
    assert not Path("real/answers").exists()
