"""The exit status of a command, which scripts rely on: what each number says, once."""

from __future__ import annotations

from typing import Final

DONE: Final = 0
NO: Final = 1  # what was asked is understood, and the answer is no; nothing was spent
WRONG_USE: Final = 2
FAULT: Final = 3  # ours
EMPTY: Final = 4  # released, and nothing survived, or less than 5 %: what it costs is spent
INTERRUPTED: Final = 130  # as shells say it
