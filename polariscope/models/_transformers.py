"""Loading through transformers, with its failures put into words and its chatter switched off meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from huggingface_hub.utils import logging as hub_logging
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from polariscope.errors import InputError

_LONGEST = 400  # letters of a library's message; some go on with a list of every known architecture


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars and no advice from transformers inside the block; its settings are put back afterwards."""
    level, hub_level, bars = logging.get_verbosity(), hub_logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    hub_logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        hub_logging.set_verbosity(hub_level)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def refusing(what: str, got: str, *, expected: str, fix: str) -> Iterator[None]:
    """Turn a failure of the libraries inside the block into an InputError that keeps their first words.

    Every exception counts: on a damaged or foreign file transformers, tokenizers, safetensors and gguf raise anything
    from OSError to struct.error. Put nothing but their calls into the block.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as problem:
        said = f"{type(problem).__name__}: {' '.join(str(problem).split())[:_LONGEST]}"
        raise InputError(what, got=f"{got} ({said})", expected=expected, fix=fix) from problem


def load_model(place: str, dtype: torch.dtype | str, device: torch.device, **options: Any) -> torch.nn.Module:
    """A causal language model in evaluation mode, with every weight read from the files.

    Raises:
        InputError: if weights are missing. transformers would draw them at random and go on.
    """
    loaded: Any = AutoModelForCausalLM.from_pretrained(place, dtype=dtype, output_loading_info=True, **options)
    model, report = loaded
    missing = sorted(report["missing_keys"])
    if missing:
        raise InputError(
            "weights",
            got=f"{len(missing)} weights of {type(model).__name__} are not in {place}, the first is {missing[0]}",
            expected="a checkpoint with every weight of a causal language model",
            fix="check that the checkpoint is complete and made for text generation",
        )
    return model.eval().to(device)


def load_tokenizer(place: str, **options: Any) -> Any:
    """The tokenizer of a checkpoint."""
    return AutoTokenizer.from_pretrained(place, **options)


def load_config(place: str, **options: Any) -> Any:
    """The configuration of a checkpoint, before loading changes its dtype."""
    return AutoConfig.from_pretrained(place, **options)
