"""What `new` writes in Rust: a copy of a design that `make test` runs, in a list where it belongs.

The suite `template` of crates/lab runs the copied design; here its twin in Python is held to the
same numbers.
"""

from __future__ import annotations

import difflib
import json
import re
import shutil
from pathlib import Path

import pytest

import indelible
from conftest import needs_core, refused

pytestmark = needs_core

ROOT = Path(__file__).parents[2]
SOURCES = Path("crates/designs/src")
SNAPSHOT = ROOT / "crates" / "lab" / "snapshots" / "template.json"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where designs are in a checkout that a test is in and may change."""
    monkeypatch.chdir(tmp_path)
    SOURCES.mkdir(parents=True)
    for name in ("lib.rs", "template.rs"):
        shutil.copy(ROOT / SOURCES / name, SOURCES)
    return tmp_path / SOURCES


def changes(old: str, new: str) -> list[str]:
    """Return the lines that two texts do not share, each with its sign."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm="")
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


@pytest.mark.parametrize("name", ["a-first-log", "lines-of-2", "undo-words-too", "zlog"])
def test_it_is_the_template_but_for_its_name_and_in_the_list_where_it_belongs(
    checkout: Path, name: str
) -> None:
    module = name.replace("-", "_")
    design = "".join(word.capitalize() for word in name.split("-"))
    answer = indelible.new("design", name, rust=True)
    assert answer.json() == {
        "file": f"crates/designs/src/{module}.rs",
        "registry": "crates/designs/src/lib.rs",
        "design": design,
        "name": name,
        "kind": "design",
    }
    template = (ROOT / SOURCES / "template.rs").read_text(encoding="utf-8")
    assert changes(template, Path(answer.file).read_text(encoding="utf-8")) == [
        "-pub struct Template {",
        f"+pub struct {design} {{",
        "-impl Design for Template {",
        f"+impl Design for {design} {{",
        '-        name: "template",',
        f'+        name: "{name}",',
        "-impl Template {",
        f"+impl {design} {{",
    ]
    was = (ROOT / SOURCES / "lib.rs").read_text(encoding="utf-8")
    now = (checkout / "lib.rs").read_text(encoding="utf-8")
    entry = f"    entry::<{module}::{design}>(),"
    assert changes(was, now) == [f"+pub mod {module};", f"+{entry}"]
    lines = now.splitlines()
    before = [row["name"] < name for row in indelible.list("designs")].count(True)
    assert lines[lines.index("pub static ALL: &[Entry] = &[") + 1 + before] == entry
    modules = re.findall(r"pub mod (\w+);", now)
    assert modules == sorted(modules)


def test_it_is_written_from_any_folder_of_a_checkout(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checkout)
    answer = indelible.new("design", "nobodys.rs", rust=True)
    assert (answer.file, answer.registry) == ("nobodys.rs", "lib.rs")
    assert "ONLY=nobodys cargo test" in str(answer)
    assert "`nobodys.rs` in ARCHITECTURE.md" in str(answer)


def test_what_cannot_be_written_is_refused_and_nothing_is_touched(checkout: Path) -> None:
    def told(name: str) -> str:
        return refused(lambda: indelible.new("design", name, rust=True))

    was = (checkout / "lib.rs").read_text(encoding="utf-8")
    for name in ("1x", "Mine", "my log", "fn", "core", "model", "mine-", "x/mine", "mïne", ""):
        assert told(name).endswith("but no keyword of Rust"), name
    assert told("silo") == "there already is a `silo`; choose another name"
    assert told("hash") == "there already is a `hash`; choose another name"
    assert told("pm") == "settings already have a section `pm`; choose another name"
    assert told("store").startswith(
        "the type of `store` would be `Store`, which its file already has"
    )
    assert told("default").startswith("the type of `default` would be")
    assert told("parts").endswith("has a module `parts`; choose another name")
    (checkout / "nobodys.rs").touch()
    assert told("nobodys") == "crates/designs/src/nobodys.rs: already exists; choose another name"
    assert (checkout / "lib.rs").read_text(encoding="utf-8") == was
    assert sorted(path.name for path in checkout.iterdir()) == [
        "lib.rs",
        "nobodys.rs",
        "template.rs",
    ]


def test_the_command_and_the_sources_have_the_same_designs(checkout: Path) -> None:
    indelible.new("design", "nobodys", rust=True)
    text = refused(lambda: indelible.new("design", "yours-or-mine", rust=True))
    assert re.fullmatch(
        r"crates/designs/src/lib\.rs: lists \d+ designs, and this command has \d+:"
        r" `make build` first",
        text,
    )
    (checkout / "lib.rs").write_text("// Nothing.\n", encoding="utf-8")
    text = refused(lambda: indelible.new("design", "yours-or-mine", rust=True))
    assert text.endswith("has no list `ALL`; CONTRIBUTING.md says what to write")


def test_outside_of_a_checkout_it_says_where_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = refused(lambda: indelible.new("design", "nobodys", rust=True))
    assert text.startswith("a design in Rust is added to a checkout of the sources, and")
    assert text.endswith(f"is not in one: cd {ROOT}")
    text = refused(lambda: indelible.new("order", "mine", rust=True))
    assert text.startswith("--rust works only for a design; CONTRIBUTING.md")
    text = refused(lambda: indelible.new("design", "mine.rs"))
    assert text == "for a design in Rust, type `indelible new design mine --rust`"


def test_the_same_design_in_python_takes_the_same_cycles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mine = indelible.new("design", "mine").file
    snapshot = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    for run in snapshot["runs"]:
        _, workload, *words = run["run"].split()
        options = dict(word.split("=") for word in words)
        settings = {key: options.pop(key) for key in list(options) if "." in key}
        machine = options.pop("machine", "tiny")
        numbers = {key: int(value) for key, value in options.items()}
        row = indelible.run(mine, workload, machine, **numbers, set=settings).json()
        assert {key: row[key] for key in run["row"]} == run["row"], run["run"]
    crash = indelible.crash(mine, "scribble", cores=2, txs=20, mutants=True, lives=2)
    told = [{key: row[key] for key in ("rule", "seed", "event")} for row in crash.mutants]
    assert told == snapshot["mutants"]
