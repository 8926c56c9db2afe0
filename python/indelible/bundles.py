"""Bundles: a folder with a command, the files that it reads and its answer, to be repeated.

An answer is a function of the command's words, the files that these name and the simulator, so
whoever has those gets the same answer, byte for byte except for the fields about the host. That is
what an artefact of a paper has to show, and what `verify` checks.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from indelible import scripts
from indelible.errors import InputError
from indelible.extension import describe, simulator
from indelible.files import naming
from indelible.results import Object
from indelible.settings import MACHINE_FIELD

#: Commands whose answer follows from their words.
BUNDLED = ("run", "compare", "why", "sweep", "reproduce", "crash", "litmus", "characterize")

#: The files of every bundle, beside its inputs and the files that the command writes.
MANIFEST, ANSWER, OUTPUT, README = "bundle.json", "answer.json", "output.txt", "README.md"
INPUTS = "inputs"

#: Flags that name files to be written, flags that change how a command is run but not its answer,
#: and flags whose answer depends on more than a bundle holds.
OUTPUTS = ("--plot", "--csv", "--table", "--report")
MEANS = ("--keep", "--dask")
REFUSED = {
    "--check": "runs a program of yours, which a bundle does not have",
    "--images": "keeps the files that a program of yours rejects",
    "--native": "measures this computer's processor",
    "--json": "after `--` would only repeat answer.json; before `--` it prints the bundle's object",
}

#: Flags that name a file whatever it is called.
FILES = ("--sql", "--ycsb", "--replay")

#: Fields of an answer that depend on the host, and those that differ between any two builds.
OF_THE_HOST = ("host", "seconds", "points_per_s")
OF_THE_BUILD = ("version", "id")

#: Flags of several names with commas between them.
LISTS = ("--designs",)

#: Flags without a value, behind which the tests of `litmus` may stand.
SWITCHES = ("--mutants", "--timelines")

#: The text that stands for a missing value.
NOTHING = "nothing"

#: The most differences that are listed one by one.
TOLD_MAX = 10


@dataclass(frozen=True)
class Words:
    """The words of a command, as they are in a bundle."""

    #: The words with which `verify` repeats the command.
    words: list[str]
    #: The words of the first run, which also say what files it writes, and where and how it runs.
    own: list[str]
    #: The files that it reads, by their places in the bundle.
    inputs: dict[str, Path]


def split(words: Sequence[str], folder: Path) -> Words:
    """Return what a bundle in a folder has of a command, or refuse one that no bundle can have."""
    if not words or words[0] not in BUNDLED:
        asked = f", not `{words[0]}`" if words else ""
        raise InputError(f"the command of a bundle must be one of {', '.join(BUNDLED)}{asked}")
    places = _Places()
    kept_words, own = [], []
    flag = None
    for word in words:
        name, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
        if name in REFUSED:
            raise InputError(f"{name} {REFUSED[name]}; leave it out of a bundle")
        if name and not equals:
            # The next word is its value, if the flag takes one.
            flag = None if name in SWITCHES else name
            if name not in (*OUTPUTS, *MEANS):
                kept_words.append(word)
            own.append(word)
            continue
        flag = name or flag
        if words[0] == "litmus" and own and flag is None:
            value, is_kept = places.of(value), True
        else:
            value, is_kept = _value(flag, value, places, folder)
        said = f"{name}={value}" if name else value
        kept_words += [said] if is_kept else []
        own.append(said)
        flag = None
    return Words(kept_words, own, places.inputs)


def _value(flag: str | None, value: str, places: _Places, folder: Path) -> tuple[str, bool]:
    """Return a word as the bundle has it, and whether `verify` repeats it."""
    if flag in OUTPUTS:
        name = Path(value).name
        if not name or value == "-" or name in (MANIFEST, ANSWER, OUTPUT, README, INPUTS):
            raise InputError(f"{flag} {value} cannot be a file of a bundle; choose another name")
        return name, False
    if flag in MEANS:
        # A relative path, so that the bundle names no folders of this computer.
        is_path = flag == "--keep" or os.path.isfile(value)
        # A folder that is reached through a link has another parent once it is the working folder.
        near = os.path.relpath(os.path.realpath(value), os.path.realpath(folder))
        return near if is_path else value, False
    if flag in FILES:
        return places.of(value), True
    # The machines of `--vary machine=a,b` are a list, too.
    field, equals, machines = value.partition("=")
    if flag == "--vary" and field.strip() == MACHINE_FIELD:
        return f"{field}{equals}{_parts(machines, '--machine', places)}", True
    if flag in LISTS:
        return _parts(value, flag, places), True
    return _part(value.strip(), flag, places), True


def _parts(value: str, flag: str | None, places: _Places) -> str:
    return ",".join(_part(part.strip(), flag, places) for part in value.split(","))


def _part(word: str, flag: str | None, places: _Places) -> str:
    """Return a word that may be a design in Python, a machine file or a litmus test."""
    log, own = scripts.parts(word)
    if re.search(r"[./]", own) and os.path.exists(own):
        place = places.of(own, is_machine=flag == "--machine")
        return f"{log}@{place}" if log else place
    return word


class _Places:
    """The places of a command's input files in its bundle; related files share a folder."""

    def __init__(self) -> None:
        self.inputs: dict[str, Path] = {}
        self._known: dict[Path, str] = {}

    def of(self, name: str, *, is_machine: bool = False) -> str:
        """Return the place of a file that a word names, and have what it reads beside it."""
        path = Path(os.path.abspath(name))
        if path.suffix == scripts.SUFFIX:
            # A design's imports are beside the file itself, and not beside a link to it.
            path = path.resolve()
        if path not in self._known:
            with naming(name):
                mode = path.stat().st_mode
            if not stat.S_ISREG(mode):
                raise InputError(
                    f"{name} is not a regular file; a bundle can only contain regular files"
                )
            every = [path, *_read_by(path, name, is_machine)]
            folder = Path(os.path.commonpath([file.parent for file in every]))
            number = 1 + len({Path(place).parts[1] for place in self.inputs})
            for file in every:
                self.inputs[f"{INPUTS}/{number}/{file.relative_to(folder).as_posix()}"] = file
            # A design in Python is named by a path that has a folder in it.
            self._known[path] = f"./{INPUTS}/{number}/{path.relative_to(folder).as_posix()}"
        return self._known[path]


def _read_by(path: Path, name: str, is_machine: bool) -> Iterator[Path]:
    """Return the files that a file reads: what a machine extends, what a design imports."""
    if path.suffix == scripts.SUFFIX:
        yield from map(Path, scripts.imported(name))
    for base in describe(f"machine:{name}")["extends"] if is_machine else ():
        if os.path.isabs(base):
            raise InputError(
                f"{path}: extends {base}, which is on this computer alone; use a relative path"
            )
        path = Path(os.path.abspath(path.parent / base))
        yield path


def copy(words: Words, folder: Path) -> None:
    """Copy what a command reads into a folder."""
    for place, source in words.inputs.items():
        target = folder / place
        with naming(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def write(folder: Path, words: Words, answer: Any, output: str, code: int, took: float) -> None:  # noqa: ANN401
    """Write what a command answered into its bundle."""
    manifest = {
        "command": words.words,
        "exit_code": code,
        "seconds": round(took, 3),
        "simulator": simulator(),
        "inputs": {place: _digest(folder / place) for place in sorted(words.inputs)},
    }
    _write(folder / ANSWER, json.dumps(without(answer, OF_THE_HOST), indent=1, allow_nan=False))
    _write(folder / OUTPUT, output.rstrip("\n"))
    written = sorted(path.name for path in folder.iterdir() if path.is_file())
    manifest["written"] = {name: _digest(folder / name) for name in written}
    _write(folder / README, _readme(manifest))
    # Last: a folder without it is no bundle.
    _write(folder / MANIFEST, json.dumps(manifest, indent=1))


def _write(path: Path, text: str) -> None:
    with naming(path):
        path.write_text(f"{text}\n", encoding="utf-8")


def read(folder: Path) -> tuple[dict[str, Any], Any]:
    """Return the manifest and the answer of a bundle whose files are as they were."""
    found = []
    with naming(folder / MANIFEST), suppress(PermissionError):
        if not folder.is_dir() or not (folder / MANIFEST).exists():
            raise InputError(
                f"{folder} has no {MANIFEST}; name a folder that `indelible bundle` made"
            )
    for name in (MANIFEST, ANSWER):
        with naming(folder / name):
            text = (folder / name).read_bytes().decode("utf-8", errors="replace")
        try:
            found.append(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise InputError(f"{folder / name}: is not JSON: {error}") from None
    manifest, answer = found
    _require_manifest(folder / MANIFEST, manifest)
    for place, digest in {**manifest["inputs"], **manifest["written"]}.items():
        with naming(folder / place):
            now = _digest(folder / place)
        if now != digest:
            raise InputError(f"{folder / place}: has changed since the bundle was made")
    return manifest, answer


def command_of(manifest: Mapping[str, Any]) -> str:
    """Return the command line of a bundle, as it is typed within the folder."""
    return shlex.join(["indelible", *manifest["command"]])


def _require_manifest(path: Path, manifest: Any) -> None:  # noqa: ANN401
    """Refuse a manifest that no bundle could have: `verify` would run its words."""
    kinds = {"command": list, "inputs": dict, "written": dict, "exit_code": int, "seconds": float}
    own = manifest if isinstance(manifest, dict) else {}
    fits = all(isinstance(own.get(name), kind) for name, kind in kinds.items())
    words = own.get("command") if fits else None
    places = [*own["inputs"], *own["written"]] if fits else []
    if not words or not all(isinstance(word, str) for word in words) or "\0" in "".join(places):
        raise InputError(f"{path}: is not the manifest of a bundle")
    never = (*OUTPUTS, *MEANS, *REFUSED, "-h", "--help", "--json")
    if words[0] not in BUNDLED or any(word.partition("=")[0] in never for word in words):
        raise InputError(f"{path}: a bundle cannot have the command `{shlex.join(words)}`")


class Verified(Object):
    """The result of repeating a bundle's command."""

    @property
    def passed(self) -> bool:
        """Whether the answer is the same."""
        return not self["differences"] and self["exit_code"] == self["exit_code_then"]

    def __str__(self) -> str:
        from indelible.text import bundles as bundles_text

        return bundles_text.verified(self)


def verified(manifest: Mapping[str, Any], then: Any, now: Any, code: int, took: float) -> Verified:  # noqa: ANN401
    """Return how a command's answer of now differs from the answer in its bundle."""
    own, other = simulator(), manifest.get("simulator")
    left_out = () if own == other else OF_THE_BUILD
    now = json.loads(json.dumps(without(now, OF_THE_HOST + left_out)))
    differences = [*_differences(without(then, left_out), now, "")]
    return Verified(
        {
            "command": command_of(manifest),
            "same_build": own == other,
            "simulator": own,
            "simulator_then": other,
            "seconds": round(took, 3),
            "seconds_then": manifest.get("seconds"),
            "exit_code": code,
            "exit_code_then": manifest["exit_code"],
            "values": _count(then),
            "differing": len(differences),
            "differences": differences[:TOLD_MAX],
        }
    )


def without(value: Any, left_out: Sequence[str]) -> Any:  # noqa: ANN401
    """Return an answer without the fields of these names, at any depth."""
    if isinstance(value, Mapping):
        return {k: without(part, left_out) for k, part in value.items() if k not in left_out}
    if isinstance(value, (list, tuple)):
        return [without(part, left_out) for part in value]
    return value


def _differences(then: Any, now: Any, place: str) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    if isinstance(then, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*then, *now]):
            own = f"{place}.{key}".lstrip(".")
            yield from _differences(then.get(key, NOTHING), now.get(key, NOTHING), own)
    elif isinstance(then, list) and isinstance(now, list):
        if len(then) != len(now):
            yield {"place": f"length of {place}", "then": len(then), "now": len(now)}
            return
        for index, (one, other) in enumerate(zip(then, now, strict=True)):
            yield from _differences(one, other, f"{place}[{index}]")
    elif then != now or type(then) is not type(now):
        yield {"place": place, "then": then, "now": now}


def _count(value: Any) -> int:  # noqa: ANN401
    """Return how many values other than lists and objects an answer has."""
    if isinstance(value, dict):
        return sum(map(_count, value.values()))
    return sum(map(_count, value)) if isinstance(value, list) else 1


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _readme(manifest: Mapping[str, Any]) -> str:
    inputs = "".join(f"- `{place}`: read by the command\n" for place in manifest["inputs"])
    return f"""# An answer of Indelible, and how to have it again

    {command_of(manifest)}

That command, in this folder, gave what `{OUTPUT}` shows, in {manifest["seconds"]} s with the
simulator {manifest["simulator"]}. It follows from these words and files alone, so

    indelible verify .

repeats it and says whether the answer is the same, value for value; exit code 0 if it is, 1 if
it is not. Another build of Indelible may answer something else, and `verify` says so.

- `{OUTPUT}`: what it printed
- `{ANSWER}`: the same as JSON, without what is of the host
- `{MANIFEST}`: the command, the simulator, and a digest of each file but this one
{inputs}"""
