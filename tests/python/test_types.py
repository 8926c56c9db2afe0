"""What a checker of types is told: the stub of the extension is true, and its names are types."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import indelible
from conftest import needs_core

PACKAGE = Path(indelible.__file__).parent
STUB = ast.parse((PACKAGE / "_core.pyi").read_text(encoding="utf-8"))
DESIGN = ast.parse((PACKAGE / "design.py").read_text(encoding="utf-8"))


def _annotations(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign):
            yield node.annotation
        elif isinstance(node, ast.FunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            found = [node.returns, *(argument.annotation for argument in arguments)]
            yield from (annotation for annotation in found if annotation)


def _names(tree: ast.AST) -> set[str]:
    return {
        node.id
        for annotation in _annotations(tree)
        for node in ast.walk(annotation)
        if isinstance(node, ast.Name)
    }


def test_what_hooks_are_given_is_a_type_in_the_annotations_of_a_design() -> None:
    assigned = {
        node.id
        for statement in DESIGN.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        for node in ast.walk(target)
        if isinstance(node, ast.Name)
    }
    assert {"LINE", "WAIT"} <= assigned
    assert {"Below", "Store", "Image"} <= _names(DESIGN)
    # A variable that holds a class is none to a checker.
    assert not assigned & _names(DESIGN)


def test_no_function_of_the_stub_hides_a_type_that_it_names() -> None:
    functions = {node.name for node in STUB.body if isinstance(node, ast.FunctionDef)}
    assert "list" in functions
    assert not functions & _names(STUB)


def _arguments(function: ast.FunctionDef) -> list[str]:
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return [argument.arg for argument in given]


@needs_core
@pytest.mark.parametrize(
    "said",
    [node for node in STUB.body if isinstance(node, ast.FunctionDef)],
    ids=lambda node: node.name,
)
def test_the_stub_has_the_arguments_of_a_function(said: ast.FunctionDef) -> None:
    from indelible import _core

    assert _arguments(said) == [*inspect.signature(getattr(_core, said.name)).parameters]


@needs_core
def test_the_stub_has_all_that_the_extension_has() -> None:
    from indelible import _core

    said = {
        node.name: node for node in STUB.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))
    }
    assert {*said} == {name for name in vars(_core) if not name.startswith("__")}
    for name, node in said.items():
        if not isinstance(node, ast.ClassDef):
            continue
        fields = {item.target.id for item in node.body if isinstance(item, ast.AnnAssign)}
        methods = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
        public = {field for field in vars(getattr(_core, name)) if not field.startswith("__")}
        assert {field for field in fields | methods if not field.startswith("__")} == public, name


def test_a_name_that_the_package_has_not_is_a_mistake_to_a_checker() -> None:
    """A function `__getattr__` would have it believe in any."""
    tree = ast.parse(Path(indelible.__file__).read_text(encoding="utf-8"))
    assert not any(
        isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in tree.body
    )
    with pytest.raises(AttributeError, match="no `nope`"):
        _ = indelible.nope
