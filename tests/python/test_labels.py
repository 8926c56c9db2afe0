"""What designs in files are called in tables and figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import indelible
from conftest import needs_core
from indelible.labels import labels


@needs_core
def test_a_design_in_a_file_has_its_name_unless_another_has_it() -> None:
    assert labels(["silo", "./mine.py"]) == {"silo": "silo", "./mine.py": "mine"}
    assert labels(["undo@a/mine.py"]) == {"undo@a/mine.py": "undo@mine"}
    assert labels(["mine.py", "a/mine.py", "b.py"]) == {
        "mine.py": "mine.py",
        "a/mine.py": "a/mine.py",
        "b.py": "b",
    }
    # It would be taken for ours, also where ours is not there.
    assert labels(["./silo.py"]) == {"./silo.py": "./silo.py"}


@needs_core
def test_tables_and_figures_have_the_name_and_rows_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    indelible.new("design", "mine")
    asked = {"cores": 1, "txs": 20}
    compared = indelible.compare(["./mine.py", "native"], ["hash"], crash=False, **asked)
    views = ["ratios", "stalls", "writes", "usage", "summary"]
    shown = [str(compared), *(getattr(compared, view)() for view in views[1:])]
    for view in views:
        compared.save("it.svg", view=view)
        compared.save_table("it.tex", view)
        shown.append(Path("it.svg").read_text(encoding="utf-8"))
        tex = Path("it.tex").read_text(encoding="utf-8")
        shown.append("\n".join(tex.splitlines()[1:]))
        # It is made by the file.
        assert "--designs ./mine.py,native" in tex.splitlines()[0]
    # A view has no metric, and nothing is measured beside it.
    measured = replace(compared, metric="pm-writes", native={("hash", 1): {}})
    for view in views[1:]:
        measured.save_table("it.tex", view)
        made_by = Path("it.tex").read_text(encoding="utf-8").splitlines()[0]
        assert f"--{view}" in made_by
        assert "--metric" not in made_by
        assert "--native" not in made_by
    swept = indelible.sweep(["./mine.py", "native"], ["hash"], {"seed": [1, 2]}, **asked)
    why = indelible.why(["./mine.py", "native"], ["hash"], fields=["controller.count"], **asked)
    for answer in (swept, why):
        answer.save("it.svg")
        shown += [str(answer), Path("it.svg").read_text(encoding="utf-8")]
    for text in shown:
        assert ("mine" in text, "mine.py" in text) == (True, False), text
    for answer in (compared, swept):
        assert answer.rows[0]["design"] == "./mine.py"


@needs_core
def test_batteries_and_litmus_tests_call_a_file_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    indelible.new("design", "mine")
    indelible.new("order", "ours")
    found = indelible.battery(["./mine.py", "silo"])
    assert found["without"] == ["./mine.py"]
    assert "\nno battery: mine\nsaved by ADR's own energy: silo " in str(found)
    tests = indelible.litmus(orders=["./ours.py", "x86"], random=2, mutants=True)
    told = str(tests)
    shown = told[: told.index("see one")]
    assert "./ours.py" not in shown
    assert shown.splitlines()[0].split() == ["test", "image", "ours", "x86"]
    assert "random      2 on ours: ok" in shown
    assert "--order ./ours.py" in told[told.index("see one") :]
