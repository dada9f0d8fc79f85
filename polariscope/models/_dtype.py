"""The two options every source has: dtype and device."""

import torch

from polariscope.errors import InputError, unknown_name

DTYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


def torch_dtype(name: str) -> torch.dtype | str:
    """The torch dtype of a name; ``"auto"`` stays, it means the checkpoint's. Raises InputError for other words."""
    if name == "auto":
        return name
    if name not in DTYPES:
        raise unknown_name("dtype", name, [*DTYPES, "auto"])
    return DTYPES[name]


def torch_device(name: str) -> torch.device:
    """The torch device of a name. Raises InputError if there is no such device on this machine."""
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, ValueError, NotImplementedError) as problem:
        raise InputError(
            "device", got=f"{name!r} ({_first_line(problem)})", expected="cpu, cuda, cuda:0, mps", fix="try cpu"
        ) from problem
    return device


def dtype_name(dtype: object) -> str:
    """``"float32"`` for ``torch.float32``; ``"unknown"`` for None."""
    return "unknown" if dtype is None else str(dtype).removeprefix("torch.")


def _first_line(problem: BaseException) -> str:
    return str(problem).strip().partition("\n")[0]
