"""The command `indelible`, also as `python -m indelible`."""

import sys


def main() -> int:
    """Run the command; Ctrl-C while it is still being imported ends it like any other."""
    try:
        from indelible.cli import main as command

        return command()
    except KeyboardInterrupt:
        if sys.stderr is not None:
            print("indelible: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
