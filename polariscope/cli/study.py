"""``polariscope study``."""

NAME, HELP, EPILOG = "study", "", ""


def command() -> None:
    raise SystemExit(2)
