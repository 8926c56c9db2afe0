"""The command `indelible`, also as `python -m indelible`."""

import os
import signal
import sys

#: The variable that seeds Python's hashes of texts. If unset, every process has another seed.
HASHES = "PYTHONHASHSEED"
#: A batch system's signal to end, and that of a terminal that was closed.
ENDS = (signal.SIGTERM, signal.SIGHUP)


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
    # A Ctrl-C that came inside an `exec`, which making a data class uses, stays pending until the
    # next `exec`; without this one Python would die of it at exit.
    exec("")
    # Python gives signals their default handlers back before it ends, but none to ignored ones.
    for ends in ENDS:
        if signal.getsignal(ends) is _hear_again:
            signal.signal(ends, signal.SIG_IGN)
    return code


def _end_in_order() -> None:
    """Treat SIGTERM (a batch system's) and SIGHUP (a closed terminal's) like Ctrl-C.

    A process that died of them at once would leave behind what it has started: a checker
    (`--check`) that does not end by itself would run for ever, and temporary files would stay.
    """
    for ends in ENDS:
        # A signal that the caller has set to be ignored, as nohup does, stays ignored.
        if signal.getsignal(ends) == signal.SIG_DFL:
            signal.signal(ends, _end)


def _end(*_: object) -> None:
    """Interrupt the command once: `timeout` tells the process, and then its group."""
    for ends in ENDS:
        if signal.getsignal(ends) is _end:
            # What is started from now on would inherit SIG_IGN.
            signal.signal(ends, _hear_again)
    raise KeyboardInterrupt


def _hear_again(*_: object) -> None:
    """Do nothing: the command is about to end."""


def _runs_python(words: list[str]) -> bool:
    """Return whether these words may name a design in Python; words after `--` are a program's."""
    if words[:1] == ["verify"]:
        # The words are in the bundle.
        return True
    is_program = "--" in words and words[:1] != ["bundle"]
    ours = words[: words.index("--")] if is_program else words
    return any(part.endswith(".py") for word in ours for part in word.split(","))


def _begin_anew() -> None:
    """Start Python again with a fixed hash seed, so that sets of texts have one order.

    A design in Python that iterates over such a set would otherwise answer differently each time.
    """
    if sys.executable:
        environment = os.environ | {HASHES: "0"}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


if __name__ == "__main__":
    sys.exit(main())
