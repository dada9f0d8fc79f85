"""Sections for each kind of result: a study, a probe, a training run, a solved flow."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from polariscope.files import SETTINGS, read_json
from polariscope.report._page import Figure, Section, Table
from polariscope.report.figures import flows, training
from polariscope.report.figures import probe as probe_figures

STUDY_TITLE = "Does gradient flow polarize attention?"
STUDY_LEAD = (
    "An attention layer mixes values V with weights s that add up to one. A 2026 paper argues that training itself "
    "drives these weights towards a single token: the softmax that makes them compete also makes one of them win. That "
    "would explain why language models park attention on their first token and why a prediction can hang on one word.",
    "This page tests claims of that paper by experiment. Each has a rule that was fixed before the experiment ran, one "
    "number with its uncertainty, and a verdict that follows from the rule alone.",
    "Symbols: n tokens compete; s holds their attention weights, u how far the value of each points along the target. "
    "Gradient flow is training in infinitely small steps, and t its time, so large in the end that its logarithm is "
    "shown. One-hot means all weight on one token; entropy measures how evenly the weight is spread.",
)

# Claim id to the charts made from its result folder; a claim without a line has a section without charts.
FIGURES: dict[str, Callable[[Path], Sequence[Figure]]] = {
    "C1": flows.replicator,
    "C2": flows.study_paths,
    "C3": flows.rate_law,
    "C11": probe_figures.study_probe,
    "C12": training.flip_rates,
}


def study(folder: Path) -> list[Section]:
    """One section per claim of a study."""
    return [_claim_section(record, folder / record["id"]) for record in read_json(folder / "claims.json")]


def claim(folder: Path) -> list[Section]:
    """The section of one claim, whose record stands in the study around its folder."""
    records = read_json(folder.absolute().parent / "claims.json")
    return [_claim_section(record, folder) for record in records if record["id"] == folder.absolute().name]


def _claim_section(record: Mapping[str, Any], folder: Path) -> Section:
    failed = record["verdict"] == "error"
    found = [] if failed else [("What came out.", f"{number(record)}. {record['notes']}")]
    return Section(
        anchor=record["id"],
        title=f"{record['id']}. {record['claim']}",
        badge=record["verdict"],
        paragraphs=[
            ("In plain words.", record["plain"]),
            ("How it was tested.", record["method"]),
            ("The rule.", f"{record['rule'][0].upper()}{record['rule'][1:]}."),
            *(found or [("It failed.", record["notes"])]),
            ("Source.", f"{record['source']}. This experiment took {record['seconds']:.0f} s."),
        ],
        figures=() if failed else FIGURES.get(record["id"], lambda _: ())(folder),
        command=record["command"],
    )


def claim_rows(folder: Path) -> list[dict[str, str]]:
    """The claims table: id, claim, verdict and the number in words."""
    return [
        {"id": r["id"], "claim": r["claim"], "verdict": r["verdict"], "number": number(r)}
        for r in read_json(folder / "claims.json")
    ]


def number(record: Mapping[str, Any]) -> str:
    """The statistic, its interval and what it is, in one phrase."""
    if record["statistic"] is None:
        return "no number"
    text = f"{record['measure']}: {record['statistic']:.3g}"
    if record["interval"] is not None:
        low, high = record["interval"]
        text += f" (95 % interval {low:.3g} to {high:.3g})"
    return text[0].upper() + text[1:]


def probe(folder: Path) -> list[Section]:
    """The section of one probed model."""
    settings, results = read_json(folder / SETTINGS), read_json(folder / "results.json")
    rows = [
        (name.replace("_", " "), _cell(m["value"]), f"{_cell(m['low'])} to {_cell(m['high'])}")
        for name, m in results["metrics"].items()
        if m["value"] is not None
    ]
    options = settings["options"]
    return [
        Section(
            anchor=f"probe-{folder.name}",
            title=f"Attention of {options['model']}",
            paragraphs=[("Measured on.", f"{options['data']}, {options['max_length']} tokens a document.")],
            figures=probe_figures.study_probe(folder),
            tables=[
                Table("Means over documents and heads, with 95 % intervals", ("measure", "value", "interval"), rows)
            ],
        )
    ]


def train(folder: Path) -> list[Section]:
    """The section of one training run."""
    settings, metrics = read_json(folder / SETTINGS), read_json(folder / "metrics.json")
    heads = metrics["heads"]
    columns = [name for name in heads[0] if not isinstance(heads[0][name], list | dict)]
    rows = [tuple(_cell(head[name]) for name in columns) for head in heads]
    options = settings["options"]
    return [
        Section(
            anchor=f"train-{folder.name}",
            title=f"{options['task']} with {options['attention']} attention",
            paragraphs=[("Result.", f"Accuracy {_cell(metrics['accuracy'])}, loss {_cell(metrics['loss'])}.")],
            figures=training.trace(folder),
            tables=[Table("Heads", [name.replace("_", " ") for name in columns], rows)],
        )
    ]


def flow(path: Path) -> list[Section]:
    """One section per solved problem of a file written by ``polariscope flow``."""
    results = read_json(path)
    results = results if isinstance(results, list) else [results]
    return [flow_section(result, f"flow-{index}") for index, result in enumerate(results)]


def flow_section(result: Mapping[str, Any], anchor: str) -> Section:
    """The section of one solved problem: its checks, and its paths when it has several times."""
    words = {True: "yes", False: "no", None: "not applicable"}
    checks = [(check["name"], words[check["holds"]]) for check in result["checks"]]
    return Section(
        anchor=anchor,
        title=f"Flow: {result.get('name') or anchor}",
        paragraphs=[("Status.", f"{result['status']}. {result['message']}")],
        figures=flows.result_paths(result),
        tables=[Table("Statements of the theory along this path", ("statement", "holds"), checks)],
    )


def settings_rows(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Command line, time, machine and versions, as they stand in settings.json."""
    rows = [(name, settings[key]) for name, key in (("Made", "created"), ("Machine", "machine")) if key in settings]
    if "command_line" in settings:
        rows.insert(0, ("Command", " ".join(settings["command_line"])))
    versions = settings.get("versions", {})
    return [*rows, *((name, version) for name, version in versions.items() if version)]


def _cell(value: Any) -> str:
    return "–" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
