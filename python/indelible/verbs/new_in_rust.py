"""The verb `new` in Rust: a first design among those of a checkout, to be changed."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from indelible import _core as core
from indelible.errors import InputError
from indelible.files import naming, require_writable, write, write_new
from indelible.scripts import require_no_section

#: The suffix of a file of Rust.
SUFFIX = ".rs"

#: The folder of designs in a checkout, the file there that lists them, and the one that is copied.
SOURCES = Path("crates/designs/src")
REGISTRY = f"lib{SUFFIX}"
TEMPLATE = "template"

#: The address of the repository, for users without a checkout.
REPOSITORY = "https://github.com/indelible-lab/indelible"

#: The possible names of designs; a design's module of Rust has the name with `_` for `-`.
NAME = re.compile("[a-z][a-z0-9]*([-_][a-z0-9]+)*")

#: The names that no module may have: keywords (Rust reference), and crates that are used there.
RESERVED = re.compile(
    "abstract|as|async|await|become|box|break|const|continue|crate|do|dyn|else|enum|extern|false"
    "|final|fn|for|gen|if|impl|in|let|loop|macro|match|mod|move|mut|override|priv|pub|ref|return"
    "|self|static|struct|super|trait|true|try|type|typeof|unsafe|unsized|use|virtual|where|while"
    "|yield|alloc|core|model|slab|std"
)

#: A type that the template's macros name, beside the types in its own text.
IN_MACROS = "Default"


@dataclass(frozen=True)
class NewInRust:
    """A design that was written among those of a checkout, and the list that names it now."""

    file: str
    registry: str
    design: str
    name: str
    kind: str = "design"

    def json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        return asdict(self)

    def __str__(self) -> str:
        """Return the names of the files, and the commands to try next."""
        name, module = self.name, Path(self.file).name
        return "\n".join(
            [
                f"{self.file}: the design {name}, a hardware undo log; change it",
                f"{self.registry}: two lines that name it",
                "",
                "make build",
                f"indelible explain {name}",
                f"indelible compare --designs undo@x86,silo,{name} --workloads hash,btree",
                f"indelible crash --design {name} --workload scribble --mutants",
                f"ONLY={name} cargo test -p indelible-lab conformance::",
                f"ONLY={name} cargo test -p indelible-lab mutants::",
                "",
                "`make test` also requires, as CONTRIBUTING.md (A design) says:",
                f"- `{name}` in the table of README.md (What there is)",
                f"- `{module}` in ARCHITECTURE.md (Code map)",
                "- its snapshots: UPDATE=1 cargo test -p indelible-lab scenarios::",
            ]
        )


def require_new(name: str) -> None:
    """Refuse a name by which settings, or the user, could mean something else."""
    kinds = ("designs", "orders", "workloads", "profiles")
    if name.replace("_", "-") in [taken for kind in kinds for taken in _names(kind)]:
        raise InputError(f"there already is a `{name}`; choose another name")
    require_no_section(name)


def new_in_rust(name: str) -> NewInRust:
    """Write a design in Rust into the checkout of the current folder, and into its list."""
    name = name.removesuffix(SUFFIX).replace("_", "-")
    module = name.replace("-", "_")
    if not NAME.fullmatch(name) or RESERVED.fullmatch(module):
        raise InputError(
            f"`{name}` cannot be the name of a design in Rust; use lowercase letters, such as"
            " `mine`, then digits and `-`, but no keyword of Rust"
        )
    require_new(name)
    folder = _sources()
    source = folder / f"{TEMPLATE}{SUFFIX}"
    with naming(source):
        template = source.read_text(encoding="utf-8")
    design = "".join(word.capitalize() for word in name.split("-"))
    if design == IN_MACROS or re.search(rf"\b{design}\b", template):
        raise InputError(
            f"the type of `{name}` would be `{design}`, which its file already has; choose another"
            " name"
        )
    text = re.sub(rf"\b{TEMPLATE.capitalize()}\b", design, template)
    text = text.replace(f'name: "{TEMPLATE}"', f'name: "{name}"')
    path, registry = folder / f"{module}{SUFFIX}", folder / REGISTRY
    for file in (path, registry):
        require_writable("new design", str(file))
    with naming(registry):
        listed = _listed(registry, name, f"entry::<{module}::{design}>()")
    write_new(path, text)
    with naming(registry):
        write(registry, listed)
    return NewInRust(str(path), str(registry), design, name)


def _names(kind: str) -> list[str]:
    """Return the names of designs, or of another kind, in their order."""
    return [row["name"] for row in json.loads(core.list(kind))["rows"]]


def _sources() -> Path:
    """Return the folder of designs in the checkout that the current folder is in."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / SOURCES / REGISTRY).is_file():
            return Path(os.path.relpath(folder / SOURCES, here))
    own = Path(__file__).resolve().parents[3]
    is_checkout = (own / SOURCES / REGISTRY).is_file()
    raise InputError(
        f"a design in Rust is added to a checkout of the sources, and {here} is not in one: "
        + (f"cd {own}" if is_checkout else f"git clone {REPOSITORY}, and `make build` there")
    )


def _listed(registry: Path, name: str, entry: str) -> str:
    """Return the list of designs with a module and an entry more, in alphabetical order."""
    lines = registry.read_text(encoding="utf-8").splitlines(keepends=True)
    module = name.replace("-", "_")
    modules = {
        found[1]: place
        for place, line in enumerate(lines)
        if (found := re.fullmatch(r"pub mod (\w+);\n", line))
    }
    try:
        first = lines.index("pub static ALL: &[Entry] = &[\n") + 1
        entries = range(first, lines.index("];\n", first))
    except ValueError:
        modules = {}
    if not modules:
        raise InputError(f"{registry}: has no list `ALL`; CONTRIBUTING.md says what to write")
    if module in modules:
        raise InputError(f"{registry}: already has a module `{module}`; choose another name")
    names = _names("designs")
    if len(names) != len(entries):
        raise InputError(
            f"{registry}: lists {len(entries)} designs, and this command has {len(names)}:"
            " `make build` first"
        )
    before = next((at for at, other in zip(entries, names, strict=True) if other > name), None)
    lines.insert(entries.stop if before is None else before, f"    {entry},\n")
    # Modules come before the list, so the insertion above has not moved their lines.
    later = [place for other, place in modules.items() if other > module]
    lines.insert(min(later, default=max(modules.values()) + 1), f"pub mod {module};\n")
    return "".join(lines)
