"""The command `indelible`, also as `python -m indelible`."""

import sys


def main() -> int:
    """Run the command; Ctrl-C while it is still being imported ends it like any other."""
    try:
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


if __name__ == "__main__":
    sys.exit(main())
