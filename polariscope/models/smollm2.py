"""The embedded default model: SmolLM2-135M-Instruct (Allal et al. 2025, arXiv:2502.02737), 4-bit weights dequantized.

Dequantizing takes long; the first load keeps the result, float32 safetensors and tokenizer, beside the GGUF file.
"""

from pathlib import Path

import torch
import transformers
from rich.console import Console

from polariscope.models import _transformers as hf
from polariscope.models import fetch
from polariscope.models._cache import cache_folder, is_whole, note, put_folder
from polariscope.models._dtype import dtype_name, torch_device, torch_dtype
from polariscope.models._loaded import LoadedModel
from polariscope.models._transformers import quiet, refusing
from polariscope.models.gguf_file import dequantized, sha256, tokenizer_of

_WEIGHTS = "model.safetensors"


def open_smollm2(name: str, *, dtype: str = "float32", device: str = "cpu") -> LoadedModel:
    """SmolLM2-135M-Instruct, fetched at the first use; ``revision`` is the sha256 of its GGUF file.

    Args:
        name: ``"smollm2-135m"``.
        dtype: of the weights in memory.
        device: where to put them.
    """
    wanted, place = torch_dtype(dtype), torch_device(device)
    folder = str(prepare())
    with quiet(), refusing("default model", folder, expected="a whole folder", fix="remove that folder and try again"):
        model = hf.load_model(folder, wanted, place, local_files_only=True)
        tokenizer = hf.load_tokenizer(folder)
    return LoadedModel(
        model=model,
        tokenizer=tokenizer,
        name=name,
        source="smollm2-135m",
        revision=f"sha256:{fetch.GGUF_SHA256}",
        dtype=dtype_name(next(model.parameters()).dtype),
        checkpoint_dtype="Q4_1 (GGUF)",
    )


def prepare() -> Path:
    """The folder of the converted model, made first if it is missing or damaged."""
    folder = cache_folder("smollm2-135m") / f"float32-{fetch.GGUF_SHA256[:12]}-transformers-{transformers.__version__}"
    if not is_whole(folder / _WEIGHTS):
        gguf = fetch.default_gguf()
        with Console(stderr=True).status("converting SmolLM2-135M, once, in about a minute"):
            put_folder(folder, lambda new: convert(gguf, new))
    return folder


def convert(gguf: Path, folder: Path) -> None:
    """Dequantize a GGUF file into a folder that loads fast. The logits are the same to the last bit."""
    model = dequantized(gguf, torch.float32)
    config = type(model.config).from_dict(model.config.to_dict())
    # transformers refuses to save a model that says it is quantized; this one no longer is.
    del config.quantization_config
    with torch.random.fork_rng(devices=[]):
        plain = type(model)(config)
    plain.load_state_dict(model.state_dict())
    with quiet(), refusing("conversion of", str(gguf), expected="room for 540 MB", fix=f"make room in {folder.parent}"):
        plain.save_pretrained(folder)
        tokenizer_of(gguf).save_pretrained(folder)
    note(folder / _WEIGHTS, sha256(folder / _WEIGHTS))
