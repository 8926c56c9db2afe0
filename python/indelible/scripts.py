"""Designs in Python: how one is found by its file or its class, and described to the simulator.

The simulator calls `find`, `about`, `anew`, `setup`, `explained` and `placed`; the rest of the
package calls `named`.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import linecache
import os
import pkgutil
import re
import site
import sys
import sysconfig
import threading
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, FunctionType, MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

from indelible import _core as core
from indelible import mistakes
from indelible.described import description
from indelible.design import Design, InputError, Param, Setup, Shape, Structure, Values
from indelible.names import unknown

if TYPE_CHECKING:
    from typing_extensions import Self

#: The suffix of a design's file.
SUFFIX = ".py"

#: The software logs that may stand on ordering hardware: `undo@./mine.py`.
LOGS = ("undo", "redo", "count")

#: The known designs: classes by their names, and files by their paths and digests of their texts.
#: Two threads may each have a class of one name, and each thread finds its own.
_classes: dict[str, type[Design]] = {}
_mine: ContextVar[Mapping[str, type[Design]]] = ContextVar("mine", default=MappingProxyType({}))
_files: dict[tuple[str, str], type[Design]] = {}

#: The files that a design has imported from its own folder, and a digest of each.
_parts: dict[type[Design], dict[str, str]] = {}

#: The sources from which the designs of files were loaded.
_sources: dict[type[Design], Source] = {}

#: While jobs run: the designs of files as they were at the first request.
_still: dict[str, type[Design]] = {}
_running = 0
_lock = threading.RLock()
#: Held while the text of a class is looked for.
_parsing = threading.Lock()

#: What the extension says of an argument that is no whole number, or too large or too small.
ARGUMENT = re.compile(r"while processing '(\w+)'")
NO_INTEGER = re.compile(r"'(\w+)' object cannot be interpreted as an integer")

#: The variable that, set to anything, shows the traceback of a design's error.
DEBUG = "INDELIBLE_DEBUG"


def is_script(name: str) -> bool:
    """Return whether a name is that of a design in Python, or of a log on hardware in Python."""
    return parts(name)[1] in _classes or name.endswith(SUFFIX)


def class_of(name: str) -> type[Design] | None:
    """Return the class that has a name, alone or under a log; None if no class has it."""
    own = parts(name)[1]
    return _mine.get().get(own, _classes.get(own))


def parts(name: str) -> tuple[str | None, str]:
    """Return the log and the hardware of LOG@ORDER, or None and the name of any other name."""
    log, at, hardware = name.partition("@")
    return (log, hardware) if at and log in LOGS else (None, name)


def called(name: str) -> str:
    """Return a design's name in settings and labels: a file's name without its ending.

    A log on hardware in Python is called by both: `undo@mine`.
    """
    log, hardware = parts(name)
    stem = Path(hardware).stem if name.endswith(SUFFIX) else hardware
    return f"{log}@{stem}" if log else stem


class Named(str):
    """The name of a design that is a class, which it keeps; copies in other processes do not."""

    __slots__ = ("design",)

    design: type[Design]

    def __new__(cls, name: str, design: type[Design]) -> Self:
        """Return the name of a class."""
        named = super().__new__(cls, name)
        named.design = design
        return named

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)


def named(design: type | Named) -> Named:
    """Register a class as a design, and return its name."""
    if isinstance(design, Named):
        named(design.design)
        return design
    name = design.__name__
    if not issubclass(design, Design):
        raise InputError(f"{name} is not a design; derive it from `indelible.design.Design`")
    if any(row["name"] == name for row in json.loads(core.list("designs"))["rows"]):
        raise InputError(f"there already is a design {name}; choose another name for the class")
    require_no_section(name, f"class {name}")
    _classes[name] = design
    _mine.set({**_mine.get(), name: design})
    return Named(name, design)


def under(log: str, design: type[Design]) -> Named:
    """Return the name of a log on a class that is ordering hardware."""
    if log not in LOGS:
        raise unknown("software log", log, LOGS)
    return Named(f"{log}@{named(design)}", design)


def find(name: str) -> tuple[type[Design], str | None, str] | None:
    """Return the design of a name, the log on it, and the name without the log.

    None if the name is not that of a design in Python.
    """
    log, own = parts(name)
    if own in _classes:
        design = _mine.get().get(own, _classes[own])
    elif own.endswith(SUFFIX):
        if log is None and not os.path.isfile(own):
            _require_log(name)
        design = _loaded(own)
    elif own and os.path.isfile(own + SUFFIX):
        path = own if os.path.dirname(own) else f"./{own}"
        path = f"{log}@{path}" if log else path
        raise InputError(f"unknown design `{name}`; did you mean `{path}{SUFFIX}`?")
    elif os.path.dirname(own) and os.path.isdir(own):
        raise InputError(
            f"{own} is a directory; a design in Python is a file, such as"
            f" {os.path.join(own, f'mine{SUFFIX}')}"
        )
    else:
        _require_log(name)
        return None
    if log and design.model is None:
        raise InputError(
            f"{own} is not ordering hardware, so the log `{log}` cannot run on it; ordering"
            " hardware sets `model`, what it promises"
        )
    return design, log, own


def imported(path: str) -> list[str]:
    """Return the files that the design of a file has imported from its own folder."""
    return [*_parts[_loaded(path)]]


def _require_log(name: str) -> None:
    """Refuse an unknown log on known hardware in Python."""
    log, _, own = name.partition("@")
    if own in _classes or (own.endswith(SUFFIX) and os.path.isfile(own)):
        raise unknown("software log", log, LOGS)


def _loaded(path: str) -> type[Design]:
    """Return the design of a file; while jobs run, the one from their first request."""
    with _lock:
        if not _running:
            return _load(path)
        if path not in _still:
            _still[path] = _load(path)
        return _still[path]


@contextmanager
def held_still() -> Iterator[None]:
    """Keep designs as they are while they run, even if their files are edited."""
    global _running
    with _lock:
        _running += 1
    try:
        yield
    finally:
        with _lock:
            _running -= 1
            if not _running:
                _still.clear()
                mistakes.forget()


def _load(path: str) -> type[Design]:
    """Return the design of a file; the same class as before if the text is the same."""
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    key = (os.path.abspath(path), hashlib.sha256(text).hexdigest())
    known = _files.get(key)
    if known is None or any(_digest(part) != digest for part, digest in _parts[known].items()):
        require_no_section(called(path), path)
        module, own, source = _first(path, text, key[1])
        known = _files[key] = design_of(module, path)
        files = filter(None, map(_file_of, own.values()))
        _parts[known] = {part: _digest(part) for part in files}
        _sources[known] = source
    return known


def _digest(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


def require_no_section(name: str, of: str = "") -> None:
    """Refuse a name, of a class or a file, that is one of the sections of settings, too."""
    if name in _sections():
        before = f"{of}: " if of else ""
        raise InputError(f"{before}settings already have a section `{name}`; choose another name")


@cache
def _sections() -> set[str]:
    rows = json.loads(core.explain("machine:tiny", [], None, None))["rows"]
    return {"design", "workload", *(row["section"] for row in rows)}


@dataclass(frozen=True)
class Source(MetaPathFinder, Loader):
    """The compiled files of a design, from which it can be loaded again even if they are edited.

    While it is loaded, this object finds the modules of the design's own folder.
    """

    path: str
    folder: str
    name: str
    code: CodeType
    #: The modules that were imported from its folder: file, whether it is a package's, and code.
    modules: Mapping[str, tuple[str, bool, CodeType]]
    #: The names of the modules and packages that there are in its folder.
    beside: frozenset[str]

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        """Return how a module of the folder is loaded; None for any other module."""
        if name not in self.modules:
            return None
        file, is_package, _ = self.modules[name]
        places = [os.path.dirname(file)] if is_package else None
        return spec_from_file_location(name, file, loader=self, submodule_search_locations=places)

    def exec_module(self, module: ModuleType) -> None:
        """Execute a module of the folder."""
        exec(self.modules[module.__name__][2], module.__dict__)


def anew(design: type[Design]) -> type[Design]:
    """Return a design loaded again, with fresh variables of the class and of its module.

    The modules of its own folder are fresh, too. A class that is of no file is returned as it is.
    """
    source = _sources.get(design)
    if source is None:
        return design
    with _lock:
        first = sys.modules[source.name]
        sys.meta_path.insert(0, source)
        try:
            module, _ = _executed(source)
        finally:
            sys.meta_path.remove(source)
            sys.modules[source.name] = first
    return design_of(module, source.path)


def _first(path: str, text: bytes, digest: str) -> tuple[ModuleType, dict[str, ModuleType], Source]:
    """Return a file as a module, those that it has imported from its folder, and its source."""
    linecache.checkcache(path)
    try:
        code = compile(text, path, "exec")
    except Exception as error:
        raise InputError(explained(error, path)) from None
    folder = str(Path(path).resolve().parent)
    source = Source(path, folder, f"indelible_script_{digest[:16]}", code, {}, _beside(folder))
    module, own = _executed(source)
    modules = {}
    for name, one in own.items():
        file, loader = _file_of(one), getattr(one, "__loader__", None)
        # An extension module, or a package without a file, is imported again as usual.
        if file is not None and (its := getattr(loader, "get_code", lambda _: None)(name)):
            modules[name] = (file, hasattr(one, "__path__"), its)
    return module, own, replace(source, modules=modules)


def _beside(folder: str) -> frozenset[str]:
    """Return the names of a folder's modules and packages, as `import` would find them there.

    Python's own and this package are never taken from a folder.
    """
    found = {module.name for module in pkgutil.iter_modules([folder])}
    return frozenset(found - {*sys.stdlib_module_names, "indelible"})


def _executed(source: Source) -> tuple[ModuleType, dict[str, ModuleType]]:
    """Return a file as a module, with its own folder first on the import path.

    Also returns the modules that it imported from there. They are taken out of `sys.modules`,
    because another design's folder may have modules of the same names. So may the caller, whose
    modules are set aside for as long.
    """
    module = ModuleType(source.name)
    module.__file__ = source.path
    aside = {
        name: sys.modules.pop(name)
        for name in [*sys.modules]
        if name.partition(".")[0] in source.beside
    }
    # Data classes look their module up in `sys.modules`.
    sys.modules[module.__name__] = module
    folder, known = source.folder, set(sys.modules)
    own: dict[str, ModuleType] = {}
    sys.path.insert(0, folder)
    try:
        exec(source.code, module.__dict__)
    except Exception as error:
        raise InputError(explained(error, source.path)) from None
    finally:
        sys.path.remove(folder)
        # In the order of their names, since a design's fingerprint must not depend on hashes.
        for name in sorted(sys.modules.keys() - known):
            places = (_file_of(sys.modules[name]), *_places(sys.modules[name]))
            # Namespace packages, which have folders but no file, count, too.
            if any(_is_in(str(place), folder) for place in places):
                own[name] = sys.modules.pop(name)
        sys.modules.update(aside)
    return module, own


def _is_in(place: str, folder: str) -> bool:
    """Return whether a module's place is in a design's folder, and not in a library there.

    A project's folder often has Python's own libraries in it, as `.venv`.
    """
    if not place.startswith(folder + os.sep):
        return False
    libraries = {
        *sysconfig.get_paths().values(),
        site.getusersitepackages(),
        os.path.dirname(__file__),
    }
    return not any(
        library.startswith(folder + os.sep) and place.startswith(library + os.sep)
        for library in map(os.path.realpath, libraries)
    )


def _file_of(module: ModuleType) -> str | None:
    """Return the file of a module, or None if it has none."""
    file = getattr(module, "__file__", None)
    return None if file is None else str(file)


def _places(module: ModuleType) -> Iterable[str]:
    """Return the folders of a package; a module that is none has none."""
    try:
        return [*getattr(module, "__path__", ())]
    except TypeError:
        return ()


def design_of(module: ModuleType, path: str) -> type[Design]:
    """Return the one design of a module, or refuse the file if there is another number of them."""
    found = [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, Design)
        and value.__module__ == module.__name__
    ]
    # A class from which others are derived is not the design, and may have several names.
    found = list(dict.fromkeys(found))
    ends = [one for one in found if not any(one in other.__mro__[1:] for other in found)]
    if len(ends) != 1:
        names = ", ".join(one.__name__ for one in ends)
        has = f"has {len(ends)} designs ({names})" if ends else "has no design"
        raise InputError(
            f"{path}: {has}; it must have one class derived from `indelible.design.Design`"
        )
    return ends[0]


def explained(error: BaseException, name: str, hook: str = "") -> str:
    """Return an error of a script as one line, with the script's own innermost place.

    An `InputError` that the script raises is a sentence for the user and gets no place.
    """
    if os.environ.get(DEBUG):
        traceback.print_exception(error)
    if isinstance(error, InputError):
        own = str(error)
        return mistakes.sentence(own if own.startswith(name) else f"{name}: {own}")
    if isinstance(error, SyntaxError) and error.filename == name:
        return f"{name}:{error.lineno}: {error.msg}"
    if (sentence := _no_number(error)) is not None:
        return f"{placed(error, name, hook)}: {sentence}"
    said = [str(error), *getattr(error, "__notes__", ())]
    what = ": ".join([type(error).__name__, *(" ".join(text.split()) for text in said if text)])
    return f"{placed(error, name, hook)}: {what}"


def _no_number(error: BaseException) -> str | None:
    """Return what is wrong with an argument that the simulator cannot read as a number of its own.

    None for any other error.
    """
    notes = " ".join(getattr(error, "__notes__", ()))
    argument, kind = ARGUMENT.search(notes), NO_INTEGER.search(str(error))
    if argument is None or not (kind or isinstance(error, OverflowError)):
        return None
    what = "cycle" if argument[1] == "at" else "number"
    if kind:
        return f"`{argument[1]}` must be a whole {what}, not a {kind[1]}"
    limit = "from 0 up, not a negative one" if "negative" in str(error) else "that is not so large"
    return f"`{argument[1]}` must be a whole {what} {limit}"


def placed(error: BaseException, name: str, hook: str = "") -> str:
    """Return where a script was when something was raised."""
    package = os.path.dirname(__file__)
    stack = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in stack if not frame.filename.startswith((package, "<frozen"))]
    # The `__init__` of a dataclass is a text that is in no file, as what `python -c` runs.
    frames = [frame for frame in frames if frame.filename != "<string>"] or frames
    # The script's own line says more than a line of a library that it calls.
    if own := _own(frames, name) or frames:
        return _place(own[-1])
    return f"{name}: `{hook}`" if hook else name


def running(thread: int) -> str | None:
    """Return the place at which a thread is in a script, or None outside of scripts."""
    frame = sys._current_frames().get(thread)
    own = _own(traceback.extract_stack(frame), "") if frame else []
    return _place(own[-1]) if own else None


def _own(stack: Iterable[traceback.FrameSummary], name: str) -> list[traceback.FrameSummary]:
    """Return the frames that are in the folder of a script."""
    folders = {os.path.dirname(path) for path, _ in _files} | {os.path.dirname(name)}

    def is_own(file: str) -> bool:
        # Code of a file that was named by a relative path has that path.
        whole = file if file.startswith("<") else os.path.abspath(file)
        return bool(folders & {os.path.dirname(file), os.path.dirname(whole)})

    return [frame for frame in stack if is_own(frame.filename)]


def _place(step: traceback.FrameSummary) -> str:
    return f"{_cell(step.filename) or step.filename}:{step.lineno}: in {step.name}"


def _cell(file: str) -> str | None:
    """Return the notebook's label, such as `Cell In[3]`, of a cell with this file name."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    label = getattr(getattr(shell, "compile", None), "format_code_name", lambda _: None)(file)
    return " ".join(label) if label else None


def about(design: type[Design], name: str) -> dict[str, Any]:
    """Return the description of a design, or refuse a class with wrong attributes."""
    return description(design, name) | {"digest": _fingerprint(design)}


def _fingerprint(design: type[Design]) -> str:
    """Return a digest of a design's text, or of its identity if there is no text."""
    texts = [digest for (_, digest), known in _files.items() if known is design]
    texts += _parts.get(design, {}).values()
    if not texts:
        # Those from which it is derived stand in other cells of a notebook, or in other files.
        own = [one for one in design.__mro__ if one not in Design.__mro__]
        texts = [text for one in own for text in _texts(one)]
    return hashlib.sha256("".join(texts).encode()).hexdigest()[:16]


def _texts(design: type) -> list[str]:
    """Return the text of a class, those of its methods, and what these take from around them.

    A method may have been replaced since, and the same text in a function that makes classes may
    have other values around it.
    """
    try:
        # It parses the file, which two threads of Python 3.11 cannot do at once (SystemError).
        with _parsing:
            texts = [inspect.getsource(design)]
    except (OSError, TypeError):
        # The class was typed; only a notebook keeps its text.
        texts = _cells(design) or [str(id(design))]
    for name, method in _methods(design):
        try:
            texts.append(inspect.getsource(method))
        except (OSError, TypeError):
            texts.append(repr((method.__code__.co_code, method.__code__.co_names)))
        around = inspect.getclosurevars(method)
        taken = {
            **around.globals,
            **around.nonlocals,
            "defaults": method.__defaults__,
            **(method.__kwdefaults__ or {}),
        }
        texts += [f"{name}:{key}={value!r}" for key, value in taken.items() if _is_plain(value)]
    return texts


def _is_plain(value: object) -> bool:
    """Return whether a value is written the same in every process."""
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return value is None or type(value) in (bool, int, float, complex, str, bytes)


def _methods(design: type) -> list[tuple[str, FunctionType]]:
    found = [(name, getattr(value, "__func__", value)) for name, value in vars(design).items()]
    return [(name, method) for name, method in found if inspect.isfunction(method)]


def _cells(design: type) -> list[str]:
    """Return the texts of the notebook cells that have the methods of a class."""
    codes = [method.__code__ for _, method in _methods(design)]
    texts = ("".join(linecache.getlines(code.co_filename)) for code in codes)
    return [text for text in dict.fromkeys(texts) if text]


def setup(
    design: type[Design],
    settings: Mapping[str, int],
    without: str | None,
    shape: Mapping[str, Any],
) -> Setup:
    """Return the setup of a design: its parameters, its rules and the machine."""
    params = {key: _value(param, settings.get(key)) for key, param in design.params.items()}
    rules = {rule: rule != without for rule in design.rules}
    obeyed = Values if without not in rules else _noting(without)
    return Setup(Values(**params), obeyed(**rules), Shape(**shape))


@cache
def _noting(rule: str) -> type[Values]:
    """Return a class of rules that tells the simulator when a hook asks for this one."""

    class Noting(Values):
        def __init__(self, **rules: bool) -> None:
            super().__init__(**rules)
            core.note_asked(is_asked=False)

        def __getattribute__(self, name: str) -> Any:  # noqa: ANN401
            # Whoever takes the names and values of all rules has this one, too.
            if name in (rule, "__dict__"):
                core.note_asked(is_asked=True)
                object.__setattr__(self, "__class__", Values)
            return Values.__getattribute__(self, name)

    return Noting


def _value(param: Param, said: int | None) -> int | str:
    if said is None:
        return param.default
    return param.choices[said] if param.choices else said


def hardware(design: type[Design], setup: Setup) -> list[tuple[Any, ...]]:
    """Return the structures that a design adds to the hardware, as tuples."""
    found = list(design.hardware(setup))
    for structure in found:
        if not isinstance(structure, Structure):
            raise TypeError(f"it must return a list of `Structure`, not of {structure!r}")
    return [tuple(asdict(structure).values()) for structure in found]
