"""``polariscope ls``: what there is to choose from."""

from typing import Annotated

import typer

from polariscope.cli._shared import Json, say
from polariscope.errors import unknown_name

NAME = "ls"
HELP = "List what there is: score maps, losses, attention kinds, tasks, models, claims."
EPILOG = "Example: polariscope ls attention"

KINDS = {
    "scores": "polariscope.scores",
    "losses": "polariscope.flow.losses",
    "attention": "polariscope.nets",
    "tasks": "polariscope.tasks",
    "models": "polariscope.models",
    "claims": "polariscope.claims",
}


def command(
    kind: Annotated[str, typer.Argument(help=" | ".join(KINDS), metavar="KIND")],
    json: Json = False,
) -> None:
    import importlib

    if kind not in KINDS:
        raise unknown_name("kind of thing to list", kind, KINDS)
    summaries = importlib.import_module(KINDS[kind]).REGISTRY.summaries()
    width = max(map(len, summaries), default=0)
    say(summaries, "\n".join(f"{name:<{width}}  {text}" for name, text in summaries.items()), as_json=json)
