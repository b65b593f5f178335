"""``python -m incrowd`` is the command line."""

from incrowd.ui.cli import main

main()
