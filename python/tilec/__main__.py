"""The `tilec` command: `tilec FILE ..`, or `python -m tilec FILE ..`."""

from __future__ import annotations

import signal
import sys

from . import _tilec


def main() -> None:
    """Does what the command line asks, and ends the process."""
    # Ctrl-C ends the command at once, as it ends the one without Python.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_tilec.command(sys.argv[1:], [sys.executable, "-m", "tilec"]))


if __name__ == "__main__":
    main()
