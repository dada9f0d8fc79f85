"""``polariscope report``."""

NAME, HELP, EPILOG = "report", "", ""


def command() -> None:
    raise SystemExit(2)
