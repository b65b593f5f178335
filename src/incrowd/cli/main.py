"""The command line. Thin; the work is elsewhere."""

from __future__ import annotations

import gc
import os
import sys


def main() -> None:
    """Run the command line, and exit with the status that says how it went.

    0 done, 1 the answer is no, 2 wrong use, 3 a fault of ours, 4 released and empty, 130
    interrupted.
    """
    gc.set_threshold(200_000, 20, 20)  # before anything is loaded: nearly all of that stays
    # Pydantic looks through every installed package for plugins, of which we use none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from incrowd.cli.commands import run_command

    status = run_command()
    gc.freeze()  # else everything is searched for cycles, twice, just before it goes anyway
    sys.exit(status)
