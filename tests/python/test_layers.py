"""What the modules of the package may import when they are imported (ARCHITECTURE.md)."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import indelible

PACKAGE = Path(indelible.__file__).parent

#: What a part of the package has no business with.
FORBIDDEN = {
    "results": ("text", "plots", "pages", "verbs", "cli"),
    "text": ("plots", "pages", "verbs", "cli"),
    "plots": ("pages", "verbs", "cli"),
    "pages": ("verbs", "cli"),
    "verbs": ("cli",),
}


def _module(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


MODULES = {
    _module(path): path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE / "templates"
}


def _imports(name: str) -> set[str]:
    """Return the package's modules that a module imports at once, not those within functions."""
    found = set()
    for node in ast.parse(MODULES[name].read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            for imported in node.names:
                whole = f"{node.module}.{imported.name}"
                found.add(whole if whole in MODULES else node.module)
    return found & MODULES.keys() - {name, "indelible"}


def _part(name: str) -> str:
    return name.split(".")[1] if "." in name else ""


def test_no_module_imports_itself_by_way_of_others() -> None:
    order = TopologicalSorter({name: _imports(name) for name in MODULES}).static_order()
    assert set(order) == MODULES.keys()


def test_how_answers_look_is_no_business_of_what_is_below() -> None:
    mistakes = [
        (name, imported)
        for name in MODULES
        for imported in _imports(name)
        if _part(imported) in FORBIDDEN.get(_part(name), ())
        or (_part(imported) == "cli" and _part(name) not in ("cli", "__main__"))
    ]
    assert not mistakes
    # The names are read as they are written, or nothing would be found.
    assert "indelible.text.comparison" in _imports("indelible.plots.comparison")
