"""``python -m incrowd`` is the command line."""

from incrowd.cli.main import main

main()
