"""Settings of published measurements, by name."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from polariscope.errors import unknown_name


@dataclass(frozen=True)
class Preset:
    """Settings of a published measurement.

    Args:
        options: what it sets, by the names of the options.
        source: where it was published.
        data: what was measured there; no preset changes ``--data``.
        read: the metric that the publication reports.
    """

    options: Mapping[str, Any]
    source: str
    data: str
    read: str


PRESETS: Mapping[str, Preset] = {
    "gu2024": Preset(
        {"max_length": 64, "limit": 100, "bos": "auto", "eps": "0.3"},
        "Gu et al. 2024, arXiv:2410.10781",
        "100 texts",
        "sink_rate",
    ),
    "paper": Preset(
        {"max_length": 256, "limit": 1000, "bos": "off", "seed": 42},
        "Varre, Rofin, Flammarion 2026, arXiv:2603.06248",
        "pile-10k: --data hub:NeelNanda/pile-10k",
        "first_key_share",
    ),
    "sun2024": Preset(
        {"max_length": 4096, "limit": 10, "bos": "off"},
        "Sun et al. 2024, arXiv:2402.17762",
        "RedPajama",
        "massive_max",
    ),
    "streaming": Preset(
        {"max_length": 4096, "limit": 256, "bos": "auto"},
        "Xiao et al. 2023, arXiv:2309.17453",
        "sentences of 4096 tokens",
        "last_query_first_key",
    ),
    "barbero": Preset(
        {"limit": 170, "eps": "0.8"},
        "Barbero et al. 2025, arXiv:2504.02732",
        "170 prompts",
        "sink_rate",
    ),
}


def get(name: str) -> Preset:
    """The preset of that name. Raises InputError for an unknown one."""
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS)
    return PRESETS[name]
