"""``python -m polariscope.cli``."""

from polariscope.cli import main

main()
