"""A local folder in Hugging Face form: config.json, weights (safetensors), tokenizer files."""

import hashlib
from pathlib import Path

from polariscope.errors import InputError
from polariscope.models import _transformers as hf
from polariscope.models._dtype import dtype_name, torch_device, torch_dtype
from polariscope.models._loaded import LoadedModel
from polariscope.models._transformers import quiet, refusing

_FIX = "check its files; a model that brings its own code needs the option trust_remote_code, if you trust it"
WEIGHTS = ("*.safetensors", "*.bin")


def open_folder(
    folder: str,
    *,
    dtype: str = "float32",
    device: str = "cpu",
    tokenizer: str | None = None,
    trust_remote_code: bool = False,
) -> LoadedModel:
    """The model in a folder; ``revision`` is the sha256 of its configuration and weights.

    Args:
        folder: the path.
        dtype: of the weights in memory, or "auto" for the checkpoint's.
        device: where to put them.
        tokenizer: another folder or hub id to take the tokenizer from.
        trust_remote_code: run Python code that lies in the folder.

    Raises:
        InputError: if the folder lacks a part, or a part is damaged or foreign.
    """
    wanted, place = torch_dtype(dtype), torch_device(device)
    _check(Path(folder))
    with (
        quiet(),
        refusing("model folder", folder, expected="a causal language model", fix=_FIX),
    ):
        config = hf.load_config(folder, trust_remote_code=trust_remote_code)
        stored = dtype_name(getattr(config, "dtype", None))
        model = hf.load_model(folder, wanted, place, trust_remote_code=trust_remote_code, local_files_only=True)
    with (
        quiet(),
        refusing(
            "tokenizer", tokenizer or folder, expected="tokenizer files", fix="name one with the option tokenizer"
        ),
    ):
        words = hf.load_tokenizer(tokenizer or folder, trust_remote_code=trust_remote_code)
    return LoadedModel(
        model=model,
        tokenizer=words,
        name=folder,
        source="FOLDER",
        revision=digest(Path(folder)),
        dtype=dtype_name(next(model.parameters()).dtype),
        checkpoint_dtype=stored,
    )


def digest(folder: Path) -> str:
    """``sha256:…`` over the name and the bytes of config.json and of every weight file, in order of name."""
    total = hashlib.sha256()
    for path in [folder / "config.json", *_weights(folder)]:
        with path.open("rb") as file:
            total.update(path.name.encode() + hashlib.file_digest(file, "sha256").digest())
    return f"sha256:{total.hexdigest()}"


def _weights(folder: Path) -> list[Path]:
    return sorted(path for pattern in WEIGHTS for path in folder.glob(pattern))


def _check(folder: Path) -> None:
    config = folder / "config.json"
    if not config.is_file():
        raise InputError(
            "model folder",
            got=f"{folder}, without config.json",
            expected="a folder in Hugging Face form",
            fix="name the folder that holds config.json",
        )
    if not _weights(folder):
        raise InputError(
            "model folder",
            got=f"{folder}, without weights",
            expected="*.safetensors files in it",
            fix="copy them there",
        )
