"""The verb `cc`: programs are compiled and linked with the recorder, so that `record` sees them.

The compiler's thread sanitizer inserts calls at loads and stores, which the recorder takes instead
of the sanitizer's library; `recorder/shim.py` stands in for assembler and linker, and sees the
rest.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from errno import ENOENT
from pathlib import Path

from indelible.arguments import named, worded
from indelible.errors import InputError
from indelible.files import naming
from indelible.recorder.shim import WRAPPED

SOURCES = Path(__file__).parents[1] / "recorder"

#: The sources of the recorder's shared library, and how they are compiled. Where thunks call it, a
#: program's vector registers are live, so these sources may not touch them (recorder.c).
LIBRARY = "libindelible_record.so"
CALLED_BY_THUNKS = (
    *("recorder.c", "transactions.c", "unseen.c", "origins.c"),
    *("threads.c", "memory.c", "text.c"),
)
UNITS = (
    *CALLED_BY_THUNKS,
    *("process.c", "pthread.c", "hooks.c", "wide.c", "libpmem.c", "thunks.S"),
)
HOW = (
    *("-fPIC", "-O2", "-std=gnu11", "-DINDELIBLE", "-fno-omit-frame-pointer"),
    *("-fno-builtin", "-ftls-model=initial-exec", "-I", str(SOURCES / "include")),
)

#: Against gcc turning loops that copy bytes into calls, which it does even without builtins.
GCC_HOW = ("-fno-tree-loop-distribute-patterns",)

#: The flags that come before the program's own. Wrapped functions (`shim.WRAPPED`) must stay calls,
#: and traces name lines of source, which takes `-g1`. With DWARF 5, addr2line of binutils 2.40
#: names the wrong file for some functions in headers.
FLAGS = (
    *("-U__SANITIZE_THREAD__", "-gdwarf-4", "-g1", "-DINDELIBLE"),
    *(f"-fno-builtin-{name}" for name in WRAPPED if not name.startswith("_")),
)

#: The flags that come after the program's own and override them. Frames say where a function was
#: called; `_FORTIFY_SOURCE` would replace calls of wrapped functions by checking ones.
LAST = (
    *("-fsanitize=thread", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"),
    "-U_FORTIFY_SOURCE",
)

#: Flags that cannot be combined with the thread sanitizer or with a shared library.
REFUSED = re.compile(r"-fsanitize=.*\b(address|hwaddress|leak|memory)\b|-static(-pie)?$")

#: gcc warns that its sanitizer does not see fences; the recorder sees them.
GCC_LAST = ("-Wno-tsan",)

#: Further flags for clang: it has an integrated assembler, and links its sanitizer's library by a
#: path; with link-time optimisation it would make no assembly that the shim could see.
CLANG_FLAGS = ("-fno-integrated-as", "-fno-sanitize-link-runtime")
CLANG_LAST = ("-fno-lto",)

#: The exit code of a program that a signal has ended, less the number of the signal.
SIGNALLED = 128


def cc(arguments: Sequence[str], compiler: str = "cc") -> int:
    """Compile or link as the compiler would with these arguments; return its exit code.

    The resulting program runs as usual, and `record` can record it.

    Raises:
        InputError: if there is no such compiler, or this is not Linux on x86-64.
    """
    asked, compiler = worded("arguments", arguments), named("compiler", compiler)
    require_host()
    if refused := next(filter(REFUSED.match, asked), None):
        needed = "the compiler's thread sanitizer" if "=" in refused else "a shared library"
        raise InputError(
            f"`indelible cc` needs {needed}, which does not work with {refused}; leave it out"
        )
    real = _found(compiler)
    folder = _tools(real)
    include = SOURCES / "include"
    found = ["-B", f"{folder}/", "-isystem", str(include), "-include", str(include / "builtins.h")]
    flags, last = [*FLAGS, *found], [*LAST]
    if _is_clang(real):
        flags, last = [*flags, *CLANG_FLAGS], [*last, *CLANG_LAST]
    else:
        last += GCC_LAST
    code = subprocess.call([real, *flags, *asked, *last])
    # As a shell says that a signal has ended a program; Python says it by a code below 0.
    return code if code >= 0 else SIGNALLED - code


def require_host() -> None:
    """Refuse computers on which the recorder does not work."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise InputError(
            f"programs can be recorded only on Linux on x86-64, and this is {platform.system()} on"
            f" {platform.machine()}; docs/replay.md describes the format of a trace"
        )


def _found(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise InputError(
            f"there is no `{program}` on this computer; name a compiler with --with COMPILER"
        )
    return path


def _is_clang(compiler: str) -> bool:
    # What is found on the path may still be no program of this computer.
    with naming(compiler):
        shown = subprocess.run([compiler, "--version"], capture_output=True, check=False)
    return b"clang" in shown.stdout


def _tools(compiler: str) -> Path:
    """Return the folder with the recorder and the shims for assembler and linker.

    The folder is made when it is needed first, and made again when any source of it has changed.
    """
    digest = hashlib.sha256()
    for source in sorted(SOURCES.rglob("*")):
        if source.suffix in (".c", ".h", ".S", ".py"):
            digest.update(source.read_bytes())
    how = [compiler, *HOW, *(() if _is_clang(compiler) else GCC_HOW)]
    digest.update(os.fsencode(" ".join([sys.executable, *how])))
    with _keeping() as caches:
        return _made(caches / f"recorder-{digest.hexdigest()[:16]}", how)


def require_cache() -> None:
    """Refuse a computer on which the recorder cannot be kept."""
    with _keeping() as caches:
        caches.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=caches):
            pass


@contextmanager
def _keeping() -> Iterator[Path]:
    """Give the folder in which the recorder is kept, and explain why it cannot be kept there."""
    # Somebody without a home is at `~`.
    own = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    caches = Path(own) / "indelible"
    try:
        if own.startswith("~"):
            raise FileNotFoundError(ENOENT, "there is no home directory")
        yield caches
    except OSError as error:
        raise InputError(
            f"the recorder cannot be stored in {caches}: {(error.strerror or str(error)).lower()};"
            " set XDG_CACHE_HOME to a writable folder, now and where the program runs"
        ) from None


def _made(folder: Path, how: Sequence[str]) -> Path:
    """Return the folder, and make it if it is missing."""
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        _make(made, folder, how)
        made.rename(folder)
    except OSError:
        # Another process was faster.
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return folder


def _make(made: Path, folder: Path, how: Sequence[str]) -> None:
    objects = []
    for unit in UNITS:
        flags = ["-mgeneral-regs-only"] if unit in CALLED_BY_THUNKS else []
        objects.append(str(made / f"{unit}.o"))
        language = "c" if unit.endswith(".c") else "assembler-with-cpp"
        _run([*how, *flags, "-x", language, "-c", "-o", objects[-1], str(SOURCES / unit)])
    _run([how[0], "-shared", "-Wl,-z,now", "-o", str(made / LIBRARY), *objects, "-ldl"])
    assembler = "as-of-clang" if _is_clang(how[0]) else "as"
    roles = {"as": assembler} | dict.fromkeys(("ld", "ld.bfd", "ld.gold", "ld.lld"), "ld")
    for name, role in roles.items():
        real = shutil.which(name)
        if real is None:
            continue
        words = [sys.executable, "-I", SOURCES / "shim.py", role, real, folder / LIBRARY]
        script = made / name
        script.write_bytes(os.fsencode(f'#!/bin/sh\nexec {shlex.join(map(str, words))} "$@"\n'))
        script.chmod(0o755)


def _run(command: Sequence[str]) -> None:
    made = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if made.returncode != 0:
        told = made.stderr.strip().splitlines() or ["it printed nothing"]
        wrong = next((line for line in told if "error" in line), told[-1])
        raise InputError(f"`{command[0]}` could not build the recorder: {wrong}")
