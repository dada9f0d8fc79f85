"""A tiny configuration of any type of transformers: the default one with every size made small.

Sizes are replaced by the name of their field, so that a new type needs no code. Where a type wants other sizes than its
neighbours, `tiny_configs.yaml` says so.
"""

import dataclasses
from pathlib import Path
from typing import Any

import yaml
from transformers import CONFIG_MAPPING, PreTrainedConfig

_TABLE = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
VOCABULARY, FIRST_FREE_ID = 96, 32


def tiny_config(model_type: str) -> PreTrainedConfig:
    """The configuration of this type with two layers, or one of each kind of layer that it has by default."""
    return _tiny(CONFIG_MAPPING[model_type], _TABLE["types"].get(model_type, {}))


def _tiny(kind: type[PreTrainedConfig], special: dict[str, Any]) -> PreTrainedConfig:
    default = kind()
    sizes: dict[str, Any] = {}
    for name in _names(kind):
        value = _value(default, name)
        if isinstance(value, PreTrainedConfig):
            sizes[name] = _tiny(type(value), _TABLE["types"].get(value.model_type, {}) | special.get(name, {}))
        elif name in _TABLE["lists"] and isinstance(value, list | tuple):
            sizes[name] = list(dict.fromkeys(value))
        elif name == "is_decoder":
            sizes[name] = True
        elif isinstance(value, int) and not isinstance(value, bool):
            sizes |= _small(name, value)
    if "kv_lora_rank" in sizes:  # latent attention: as many key heads as query heads
        sizes["num_key_value_heads"] = sizes["num_attention_heads"]
    kinds = next((sizes[name] for name in _TABLE["lists"] if name in sizes), [])
    if len(kinds) > 1:
        sizes |= {name: len(kinds) for name in _TABLE["layers"] if name in sizes}
    elif kinds:
        sizes |= {name: value * 2 for name, value in sizes.items() if name in _TABLE["lists"]}
    return kind(
        **sizes | {name: value for name, value in special.items() if not isinstance(sizes.get(name), PreTrainedConfig)}
    )


def _names(kind: type[PreTrainedConfig]) -> list[str]:
    """The options of a configuration, under the names that it gives them itself."""
    return [field.name for field in dataclasses.fields(kind) if field.init]


def _value(config: PreTrainedConfig, name: str) -> Any:
    """An option; what the class says of one that differs from layer to layer."""
    try:
        return getattr(config, name, None)
    except RuntimeError:
        return type(config).__dataclass_fields__[name].default


def _small(name: str, value: int) -> dict[str, int]:
    if name.endswith(("_token_id", "_token_index")):
        known = {"pad": 0, "bos": 1, "eos": 2}
        return {name: known.get(name.split("_")[0], 3)} if value >= FIRST_FREE_ID else {}
    if name in _TABLE["layers"]:
        return {name: 2}
    return {name: _TABLE["sizes"][name]} if name in _TABLE["sizes"] else {}
