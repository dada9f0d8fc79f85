"""The tied model: one matrix makes both the logits and the predictor, β = Uσ(Ua), with U given as ``V``."""

from polariscope.flow.models._model import Model, Parameters


def logits(parameters: Parameters) -> object:
    """The logits are U a."""
    return parameters["V"] @ parameters["a"]


MODEL = Model("tied", logits, {"a": "n"}, ("a",), lambda parameters: parameters["a"], square=True)
