"""The value model: β = V σ(a)."""

from polariscope.flow.models._model import Model, Parameters


def logits(parameters: Parameters) -> object:
    """The logits are the parameters ``a`` themselves."""
    return parameters["a"]


MODEL = Model("value", logits, {"a": "n"}, ("a",), logits, own=True)
