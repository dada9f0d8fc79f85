"""``polariscope flow``."""

NAME, HELP, EPILOG = "flow", "", ""


def command() -> None:
    raise SystemExit(2)
