"""`indelible cc`."""

from __future__ import annotations

import argparse

import indelible
from indelible.errors import InputError

HELP = "compile a C or C++ program so that `record` can record it"
DESCRIPTION = (
    "Run the C compiler with these arguments, so that the program can be recorded\n"
    "with `indelible record`. The program needs no change and otherwise runs as\n"
    "usual. Options before the compiler's own arguments are Indelible's: --with\n"
    "COMPILER names the compiler (cc). docs/recording.md says what is seen and what\n"
    "is not."
)
EPILOG = """\
examples:
  indelible cc -O2 -o kv kv.c
  indelible cc --with g++ -O2 -o kv kv.cc
  make -B CC='indelible cc' CXX='indelible cc --with g++'
  indelible record -- ./kv pool
"""

#: Whether the words behind the command are passed on unread: they are the compiler's.
PASSES_ON = True


def add_options(parser: argparse.ArgumentParser) -> None:
    """Describe the words behind `cc`, which `parser.parse` passes on as they are."""
    parser.add_argument("--with", dest="compiler", metavar="COMPILER", help="the compiler (cc)")
    parser.usage = "indelible cc [-h] [--with COMPILER] ARGUMENTS OF THE COMPILER"


def call(args: argparse.Namespace) -> int:
    """Run the compiler."""
    words, name = list(args.rest), "cc"
    flag, equals, value = words[0].partition("=")
    if flag == "--with":
        name, words = (value, words[1:]) if equals else ("".join(words[1:2]), words[2:])
        if not name:
            raise InputError("--with must name a compiler; `indelible cc --help` has examples")
    return indelible.cc(words, name)
