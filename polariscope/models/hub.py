"""A model of the Hugging Face hub."""

from polariscope.models import _transformers as hf
from polariscope.models._dtype import dtype_name, torch_device, torch_dtype
from polariscope.models._loaded import LoadedModel
from polariscope.models._transformers import quiet, refusing


def open_hub(
    name: str,
    *,
    revision: str | None = None,
    dtype: str = "float32",
    device: str = "cpu",
    tokenizer: str | None = None,
    trust_remote_code: bool = False,
) -> LoadedModel:
    """The model ``OWNER/NAME`` or ``NAME`` of the hub, from the local hub cache if it is there.

    Args:
        name: the hub id.
        revision: a branch, tag or commit; the default branch unless given. The commit is recorded.
        dtype: of the weights in memory, or "auto" for the checkpoint's.
        device: where to put them.
        tokenizer: another hub id or folder to take the tokenizer from.
        trust_remote_code: run Python code that comes with the model.

    Raises:
        InputError: if the hub cannot be reached, has no such model, does not let us have it, or if the model is not a
            causal language model.
    """
    wanted, place = torch_dtype(dtype), torch_device(device)
    asked = f"{name!r} at revision {revision!r}" if revision else repr(name)
    with (
        quiet(),
        refusing(
            "model of the Hugging Face hub",
            f"{asked}, looked for in the local hub cache and on the hub",
            expected="a causal language model that can be reached and that you may read",
            fix="check the name and the connection; log in with 'hf auth login' if the model is gated; give "
            "trust_remote_code if it brings its own code and you trust it; 'smollm2-135m' and 'planted' need no hub",
        ),
    ):
        config = hf.load_config(name, revision=revision, trust_remote_code=trust_remote_code)
        stored = dtype_name(getattr(config, "dtype", None))
        model = hf.load_model(name, wanted, place, revision=revision, trust_remote_code=trust_remote_code)
        words = (
            hf.load_tokenizer(tokenizer, trust_remote_code=trust_remote_code)
            if tokenizer
            else hf.load_tokenizer(name, revision=revision, trust_remote_code=trust_remote_code)
        )
    return LoadedModel(
        model=model,
        tokenizer=words,
        name=name,
        source="hub:NAME",
        revision=getattr(config, "_commit_hash", None) or revision or "unknown",
        dtype=dtype_name(next(model.parameters()).dtype),
        checkpoint_dtype=stored,
    )
