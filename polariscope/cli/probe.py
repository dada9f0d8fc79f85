"""``polariscope probe``."""

NAME, HELP, EPILOG = "probe", "", ""


def command() -> None:
    raise SystemExit(2)
