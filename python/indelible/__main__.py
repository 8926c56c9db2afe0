"""`python -m indelible` is the command `indelible`."""

import sys

from indelible.cli import main

sys.exit(main())
