"""The verb `new`: a file with a first design, to be changed."""

from __future__ import annotations

import keyword
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from indelible.arguments import named, truth
from indelible.errors import InputError
from indelible.files import require_writable, write_new
from indelible.names import unknown
from indelible.scripts import SUFFIX
from indelible.verbs.new_in_rust import SUFFIX as RUST
from indelible.verbs.new_in_rust import NewInRust, new_in_rust, require_new

#: The kinds of templates, with descriptions; the template of a kind is the file of that name.
KINDS = {"design": "a hardware undo log", "order": "ordering hardware with a flush and a fence"}
TEMPLATES = Path(__file__).parents[1] / "templates"

#: The name of the class in a template.
CLASS = "Template"


@dataclass(frozen=True)
class New:
    """A file that was written, and the design in it."""

    file: str
    design: str
    kind: str

    def json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        return asdict(self)

    def __str__(self) -> str:
        """Return the name of the file, and the commands to try next."""
        path = shlex.quote(self.file)
        next_of = {
            "design": [
                f"indelible compare --designs undo@x86,silo,{path} --workloads hash,btree",
                f"indelible crash --design {path} --workload scribble --mutants",
            ],
            "order": [
                f"indelible litmus --order {path} --random 100 --mutants",
                f"indelible compare --designs undo@x86,undo@{path} --workloads hash,btree",
                f"indelible crash --design undo@{path} --workload scribble --mutants",
            ],
        }
        return "\n".join(
            [
                f"{self.file}: the design {self.design}, {KINDS[self.kind]}; change it",
                "",
                f"indelible explain {path}",
                *next_of[self.kind],
            ]
        )


def new(kind: str, name: str, rust: bool = False) -> New | NewInRust:
    """Write a file with a first design, or ordering hardware (`order`), in Python.

    The name is `mine`, or the path of a file `mine.py`. With `rust` the same design is written in
    Rust, among the designs of the checkout that the current folder is in.
    """
    if named("kind", kind) not in KINDS:
        raise unknown("kind", kind, KINDS)
    name, rust = named("name", name), truth("rust", rust)
    if rust and kind != "design":
        raise InputError(
            "--rust works only for a design; CONTRIBUTING.md says how to add ordering hardware"
        )
    if rust:
        return new_in_rust(name)
    if not name:
        raise InputError("the name of a design is empty; type one, such as `mine`")
    if name.endswith(RUST):
        stem = name.removesuffix(RUST)
        raise InputError(f"for a design in Rust, type `indelible new {kind} {stem} --rust`")
    path = Path(name if name.endswith(SUFFIX) else name + SUFFIX)
    design = "".join(word[:1].upper() + word[1:] for word in path.stem.replace("-", "_").split("_"))
    if not design.isidentifier() or keyword.iskeyword(design):
        raise InputError(
            f"`{path.stem}` cannot be the name of a design; use letters, such as `mine`"
        )
    require_new(path.stem)
    require_writable("new design", str(path))
    text = (TEMPLATES / f"{kind}.py").read_text(encoding="utf-8")
    text = text.replace(f"class {CLASS}(", f"class {design}(")
    write_new(path, text)
    # A bare name would be looked up among the built-in designs.
    return New(str(path) if path.parent != Path() else f"./{path}", design, kind)
