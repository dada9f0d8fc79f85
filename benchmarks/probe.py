"""Time and memory of the probe against a plain forward and against eager maps, as ratios within one run.

    python benchmarks/probe.py --lengths 256,512,2048 --documents 4 --rounds 3

Each way runs in a process of its own: load, a short warm-up, then the documents one by one. Seconds are medians over
documents and rounds, peak memory is the process's largest resident size, loading included. Run it with the machine to
yourself: two processes of torch on the same cores slow one another many times.
"""

import argparse
import itertools
import multiprocessing
import resource
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

import torch
from rich.console import Console
from rich.table import Table

from polariscope import models
from polariscope.probe import corpora, hooks
from polariscope.probe.body import body_of, evaluating
from polariscope.probe.statistics import Recorder

EPS = (0.3,)


def reduce_map(attention):
    """The statistics a careful user takes from a whole map."""
    counts = torch.arange(attention.shape[-1], 0, -1)
    return (
        torch.special.entr(attention).sum(-1).mean(-1),
        attention.amax(-1).mean(-1),
        attention[..., 0].mean(-1),
        attention.sum(-2) / counts,
        attention.square().sum(-1),
    )


@contextmanager
def forward(body):
    yield body


@contextmanager
def probe(body):
    recorder = Recorder(len(body.layers), EPS)

    def step(ids):
        body(ids)
        recorder.finish()

    with hooks.measuring(body, recorder.on_attention, recorder.on_output):
        yield step


@contextmanager
def eager_dropped(body):
    """Each map reduced in a hook as soon as it is there."""
    body.model.set_attn_implementation("eager")
    reduced = []
    for layer in body.layers:
        layer.self_attn.register_forward_hook(lambda module, args, out: reduced.append(reduce_map(out[1])))
    yield body


@contextmanager
def eager_kept(body):
    """All maps of the document, reduced afterwards."""
    body.model.set_attn_implementation("eager")

    def step(ids):
        out = body.network(input_ids=torch.tensor([ids]), use_cache=False, output_attentions=True)
        return [reduce_map(attention) for attention in out.attentions]

    yield step


WAYS = {
    "forward, no statistics": forward,
    "probe": probe,
    "eager maps, dropped in a hook": eager_dropped,
    "eager maps, all kept": eager_kept,
}


def run(way, model, length, documents, threads):
    """Seconds of each document, and the peak memory in GB. Runs in a child process."""
    torch.set_num_threads(threads)
    loaded = models.load(model)
    every = (loaded.tokenizer(document.text).input_ids for document in corpora.read("pydoc"))
    texts = list(itertools.islice((ids[:length] for ids in every if len(ids) >= length), documents))
    seconds = []
    with evaluating(loaded.model), WAYS[way](body_of(loaded.model)) as step:
        step(texts[0][:64])
        for ids in texts:
            started = time.perf_counter()
            step(ids)
            seconds.append(time.perf_counter() - started)
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--lengths", default="256,512,2048")
    parser.add_argument("--documents", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    table = Table("T", "way", "s a document", "tokens/s", "÷ forward", "peak GB", "÷ forward")
    for length in map(int, options.lengths.split(",")):
        seconds, memory = {way: [] for way in WAYS}, dict.fromkeys(WAYS, 0.0)
        for _ in range(options.rounds):
            for way in WAYS:
                with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as one:
                    job = one.submit(run, way, options.model, length, options.documents, options.threads)
                    took, peak = job.result()
                seconds[way].append(statistics.median(took))
                memory[way] = max(memory[way], peak)
        plain, *_ = WAYS
        for way in WAYS:
            middle = statistics.median(seconds[way])
            ratio = statistics.median(a / b for a, b in zip(seconds[way], seconds[plain], strict=True))
            row = (f"{middle:.3f}", f"{length / middle:.0f}", f"{ratio:.2f}", f"{memory[way]:.2f}")
            table.add_row(str(length), way, *row, f"{memory[way] / memory[plain]:.2f}")
        table.add_section()
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
