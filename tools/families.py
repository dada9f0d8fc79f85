"""Which types of transformers the probe measures exactly: every causal language model that the library knows.

    python tools/families.py                      # all of them, and docs/families.md written anew
    python tools/families.py --only llama,mamba   # some, without writing

Each type gets a tiny random model in a process of its own, with limits on time and memory: what breaks ends nothing.
"""

import argparse
import multiprocessing
import resource
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path

import torch
import transformers
from check_family import LENGTH, TOLERANCE, Verdict, check_family
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

DOC = Path(__file__).parent.parent / "docs" / "families.md"
SECONDS, BYTES, WORKERS = 120, 8 << 30, 2
VERDICTS = {
    "exact": "measured through AttentionInterface, equal to the model's own eager maps",
    "fallback": "measured from the model's own maps, one layer at a time",
    "not applicable": "no softmax attention: state-space and linear models",
    "failing": "not measured; the note says why",
}
PAGE = """# Model families

Every type of causal language model in transformers {version}, as `make families` found it.
Each is built tiny, with random weights, and probed on random tokens (T = {length}, float32). The statistics of every
attention call (row sums, largest weights, first-key weights, entropies, sums of squares, column means) must equal
those of the same model's own eager maps to {tolerance:g}; the probe's self-checks must pass.

{summary}

{meanings}

With the fallback the maps are the model's own, so the deviation says only that the right ones were taken. Logits,
keys and values are not seen then, and the metrics made of them are missing.

{table}
"""


def main() -> None:
    options = argparse.ArgumentParser(description="Check the probe on every type of causal language model.")
    options.add_argument("--only", help="types, separated by commas; then nothing is written")
    options.add_argument("--workers", type=int, default=WORKERS)
    chosen = options.parse_args()
    types = chosen.only.split(",") if chosen.only else sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    verdicts = check_all(types, chosen.workers)
    for verdict in verdicts:
        print(" ".join(row(verdict)), flush=True)
    print(summary(verdicts))
    if not chosen.only:
        DOC.write_text(document(verdicts), encoding="utf-8")


def check_all(types: list[str], workers: int = WORKERS) -> list[Verdict]:
    """The verdicts, in order; each from a process of its own, which inherits the loaded libraries."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["polariscope.probe.session"])
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda name: _in_a_process(context, name), types))


def _in_a_process(context: multiprocessing.context.ForkServerContext, name: str) -> Verdict:
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_check, args=(name, sender))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(SECONDS) else Verdict(name, note=f"no answer within {SECONDS} s")
    except EOFError:
        process.join()
        return Verdict(name, note=f"the process ended with code {process.exitcode}")
    finally:
        process.kill()
        process.join()


def _check(name: str, sender: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    sender.send(check_family(name))


def summary(verdicts: list[Verdict]) -> str:
    """The counts, and the shares among the types with attention."""
    count = Counter(verdict.verdict for verdict in verdicts)
    attending = len(verdicts) - count["not applicable"]
    both = count["exact"] + count["fallback"]
    return (
        f"{len(verdicts)} types: {count['exact']} exact, {count['fallback']} by fallback, "
        f"{count['not applicable']} not applicable, {count['failing']} failing. Of the {attending} with attention, "
        f"{count['exact'] / max(attending, 1):.1%} are measured exactly through the interface, "
        f"{both / max(attending, 1):.1%} with the fallback."
    )


def row(verdict: Verdict) -> list[str]:
    deviation = "" if verdict.deviation is None else f"{verdict.deviation:.1e}"
    return [verdict.type, verdict.model, verdict.verdict, verdict.way, verdict.engine, deviation, verdict.note]


def document(verdicts: list[Verdict]) -> str:
    """The page of the documentation."""
    heads = ["type", "class", "verdict", "way", "engine", "largest deviation", "note"]
    table = [heads, ["---"] * len(heads), *map(row, verdicts)]
    return PAGE.format(
        version=transformers.__version__,
        length=LENGTH,
        tolerance=TOLERANCE,
        summary=summary(verdicts),
        meanings="\n".join(f"- **{name}**: {meaning}." for name, meaning in VERDICTS.items()),
        table="\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |" for cells in table),
    )


if __name__ == "__main__":
    main()
