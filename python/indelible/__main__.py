"""The command `indelible`, also as `python -m indelible`."""

import os
import sys

#: What Python takes the hashes of texts from, in every process from another number if it is unset.
HASHES = "PYTHONHASHSEED"


def main() -> int:
    """Run the command; Ctrl-C while it is still being imported ends it like any other."""
    try:
        if HASHES not in os.environ and _runs_python(sys.argv[1:]):
            _begin_anew()
        _end_in_order()
        from indelible import cli

        code = cli.main()
        cli.leave(code)
    except KeyboardInterrupt:
        if sys.stderr is not None:
            print("indelible: interrupted", file=sys.stderr)
        code = 130
    # Python remembers a Ctrl-C that came in what `exec` runs, as a data class is made, until the
    # next `exec`, and would die of it at exit.
    exec("")
    return code


def _end_in_order() -> None:
    """Have what ends a process, as a batch system does, or a terminal that is closed, be Ctrl-C.

    Who is ended at once leaves behind what it has started: a checker (`--check`) that does not end
    by itself would run on for ever, and files that are made for a while would stay.
    """
    import signal

    for ends in (signal.SIGTERM, signal.SIGHUP):
        # What somebody has it ignore, as nohup does, it ignores.
        if signal.getsignal(ends) == signal.SIG_DFL:
            signal.signal(ends, signal.default_int_handler)


def _runs_python(words: list[str]) -> bool:
    """Return whether these words may name a design in Python: those of a program are none."""
    if words[:1] == ["verify"]:
        # The words are in the bundle.
        return True
    is_program = "--" in words and words[:1] != ["bundle"]
    ours = words[: words.index("--")] if is_program else words
    return any(part.endswith(".py") for word in ours for part in word.split(","))


def _begin_anew() -> None:
    """Begin anew with the same hashes in every process, so that sets of texts have one order.

    A design in Python that goes through one would have other answers each time.
    """
    if sys.executable:
        environment = os.environ | {HASHES: "0"}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


if __name__ == "__main__":
    sys.exit(main())
