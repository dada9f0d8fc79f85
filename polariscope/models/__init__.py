"""How a language model is loaded: one name in, a model in evaluation mode and its tokenizer out.

Importing this package is cheap: torch and transformers are imported by the first ``load``.
"""

from typing import Any

from polariscope.models._loaded import LoadedModel
from polariscope.models._resolve import opener, resolve
from polariscope.registry import Registry

__all__ = ["REGISTRY", "LoadedModel", "fetch_default", "load", "resolve"]

REGISTRY = Registry(
    "model",
    {
        "planted": (
            "polariscope.models.planted:open_planted",
            "tiny random transformer with a known sink and a known massive channel; needs no file",
        ),
        "smollm2-135m": (
            "polariscope.models.smollm2:open_smollm2",
            "SmolLM2-135M-Instruct, the default model: 30 layers × 9 heads, fetched once (93 MB)",
        ),
        "FILE.gguf": ("polariscope.models.gguf_file:open_gguf", "a GGUF file, dequantized"),
        "FOLDER": ("polariscope.models.folder:open_folder", "a local folder in Hugging Face form"),
        "hub:NAME": (
            "polariscope.models.hub:open_hub",
            "a model of the Hugging Face hub; plain OWNER/NAME or NAME works as well",
        ),
    },
)


def load(name: str, **options: Any) -> LoadedModel:
    """Load a model and its tokenizer.

    Args:
        name: a MODEL, resolved in this order: a registered name (``planted``, ``smollm2-135m``); ``hub:NAME``; a
            ``.gguf`` file; an existing folder; a hub id ``OWNER/NAME`` or ``NAME``.
        **options: ``dtype`` ("float32" unless given; "auto" keeps the checkpoint's) and ``device`` ("cpu") for every
            source, and those of the source (``revision``, ``tokenizer``, ``trust_remote_code``, ``seed``). An option
            that is None counts as not given.

    Returns:
        A `LoadedModel`.

    Raises:
        InputError: for an unknown name, a missing, truncated or foreign file, a hub that cannot be reached, or an
            option the source does not have.
    """
    source, target = resolve(name, REGISTRY)
    return opener(source, REGISTRY, options)(target)


def fetch_default() -> None:
    """Put the default model ``smollm2-135m`` into the user's cache, ready to load; a no-op if it is there."""
    from polariscope.models import smollm2

    smollm2.prepare()
