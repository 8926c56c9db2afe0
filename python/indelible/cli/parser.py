"""The grammar of the command line: the commands, and errors that suggest the right word."""

from __future__ import annotations

import argparse
import difflib
import importlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any, NoReturn, cast

from indelible.errors import InputError
from indelible.extension import version

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

#: The commands in the order of `--help`, and the module of each.
COMMANDS = {
    "list": "catalog",
    "explain": "explain",
    "battery": "battery",
    "characterize": "characterize",
    "probe": "probe",
    "run": "run",
    "trace": "trace",
    "compare": "compare",
    "why": "why",
    "sweep": "sweep",
    "reproduce": "reproduce",
    "crash": "crash",
    "new": "new",
    "litmus": "litmus",
    "cc": "cc",
    "record": "record",
    "explore": "explore",
    "bundle": "bundle",
    "verify": "verify",
    "doctor": "doctor",
    "bench": "bench",
    "native": "native",
}

#: From how close a word is to an option on, from 0 to 1, it is no option of another command.
SURE = 0.85

EPILOG = """\
examples:
  indelible list designs
  indelible explain silo
  indelible run --design silo --workload btree --cores 8
  indelible compare --designs undo@x86,silo --workloads hash,btree,sqlite \\
      --cores 1,8
  indelible why --designs undo@x86,silo --workloads hash
  indelible sweep --designs silo --workloads hash --vary design.entries=10,20,40
  indelible crash --design silo --workload scribble --mutants
  indelible new design mine
  indelible trace --design silo --workload btree
  indelible cc -o kv kv.c && indelible record -- ./kv pool
  indelible native logging --quick

`indelible COMMAND --help`, or `indelible help COMMAND`, has the options of a
command, with examples.
"""


class _Once(argparse._StoreAction):
    """An option with a value, which cannot be given twice; `append` is for those that can be."""

    is_given = False

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,  # noqa: ANN401
        option_string: str | None = None,
    ) -> None:
        """Take the value."""
        if self.is_given and option_string is not None:
            advice = "give all its values after one" if isinstance(values, list) else "keep one"
            raise InputError(f"{option_string} is given twice; {advice}")
        self.is_given = True
        super().__call__(parser, namespace, values, option_string)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence each."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401
        super().__init__(**settings)
        for action in (None, "store"):
            self.register("action", action, _Once)

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        """Print a help text or the version; argparse would ignore that a disk is full."""
        stream = cast("IO[str]", sys.stdout if file is None else file)
        stream.write(message)
        stream.flush()

    def error(self, message: str) -> NoReturn:
        """Raise the message as an `InputError`; argparse would print it with its whole usage."""
        raise InputError(f"{message}; `{self.prog} --help` has the options")


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Return the arguments, with the function that answers them as `call`."""
    argv = list(argv)
    while argv[:1] == ["help"]:
        argv = [*argv[1:2], "--help", *argv[2:]]
    parser = Parser(
        prog="indelible",
        description="A simulator of designs for atomic durability in persistent memory.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"indelible {version()}")
    commands = parser.add_subparsers(metavar="COMMAND", title="commands", dest="command")
    subparsers: dict[str, Parser] = {}
    modules = {name: module_of(name) for name in _needed(argv)}
    for name, module in modules.items():
        subparser = commands.add_parser(
            name,
            help=module.HELP,
            description=module.DESCRIPTION,
            epilog=module.EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        module.add_options(subparser)
        subparser.set_defaults(call=module.call)
        subparsers[name] = subparser

    command = next((word for word in argv if not word.startswith("-")), None)
    if command is not None and command not in COMMANDS:
        raise InputError(_unknown(command, argv))
    own = argv
    if command is not None and hasattr(modules[command], "PASSES_ON"):
        own = argv[: argv.index(command) + 1]
        rest = argv[len(own) :]
        if rest[:1] in ([], ["-h"], ["--help"]):
            own.append("--help")
        subparsers[command].set_defaults(rest=rest)
    args, unknown = parser.parse_known_args(own)
    if unknown:
        _refuse(unknown[0], subparsers.get(args.command, parser), argv)
    if args.command is None:
        parser.print_help()
        raise SystemExit(0)
    return args


def module_of(command: str) -> ModuleType:
    """Import the module of a command."""
    return importlib.import_module(f"indelible.cli.{COMMANDS[command]}")


def _needed(argv: Sequence[str]) -> Iterable[str]:
    """Return the commands that these words need; to import all takes a tenth of a second."""
    if argv == ["--version"]:
        return ()
    return argv[:1] if argv and argv[0] in COMMANDS else COMMANDS


def _unknown(word: str, argv: Sequence[str]) -> str:
    """Return the error for a word that is no command; after an option it may be its value."""
    if argv[0].startswith("-"):
        command = next((name for name in argv if name in COMMANDS), "COMMAND")
        return f"options come after the command: `indelible {command} {argv[0]} ...`"
    return f"unknown command `{word}`{_meant(word, COMMANDS)}"


def _refuse(word: str, parser: Parser, argv: Sequence[str]) -> NoReturn:
    if not word.startswith("-"):
        before = argv[argv.index(word) - 1]
        if before.endswith(",") or word.startswith(","):
            raise InputError(f"unexpected `{word}`: a list has no spaces, {before}{word}")
        raise InputError(f"unexpected `{word}`; `{parser.prog} --help` has the options")
    flag = word.partition("=")[0]
    known = [option for option in parser._option_string_actions if option.startswith("--")]
    if flag in known:
        raise InputError(f"`{flag}` comes after the command: `{parser.prog} {word}`")
    said = f"unknown option `{flag}` of `{parser.prog}`"
    of_others = [f"`{name}`" for name in COMMANDS if flag in _options(name)]
    if of_others and not difflib.get_close_matches(flag, known, 1, SURE):
        *several, last = of_others
        have = f"{', '.join(several)} and {last} have" if several else f"{last} has"
        raise InputError(f"{said}; {have} it")
    raise InputError(f"{said}{_meant(flag, known)}")


def _options(command: str) -> Mapping[str, object]:
    """Return the options of a command; who is about to be told of an error has time to import."""
    parser = Parser()
    module_of(command).add_options(parser)
    return parser._option_string_actions


def _meant(word: str, known: Sequence[str] | Mapping[str, object]) -> str:
    close = difflib.get_close_matches(word, known, 1, 0.6)
    among = ", ".join(f"`{name}`" for name in known)
    return f"; did you mean `{close[0]}`?" if close else f"; there are {among}"
