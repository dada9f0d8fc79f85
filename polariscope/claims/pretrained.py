"""C11, softmax half: attention sinks and low entropy in the default pretrained language model."""

from pathlib import Path

import pandas as pd

from polariscope.claims._base import Claim, Context, Outcome
from polariscope.files import read_json


def experiment(context: Context) -> None:
    """Probe the model and save the probe's own result files."""
    from polariscope import models, probe
    from polariscope.probe import corpora

    settings = context.settings
    context.progress(0, settings["documents"], f"loading {settings['model']}")
    loaded = models.load(settings["model"])
    result = probe.scan(
        loaded.model,
        loaded.tokenizer,
        corpora.read(settings["data"]),
        max_length=settings["max_length"],
        limit=settings["documents"],
        bos=settings["bos"],
        progress=lambda done: context.progress(done, settings["documents"], "documents measured"),
    )
    result.save(context.folder)


def judge(folder: Path) -> Outcome:
    """Without a matched sigmoid model there is nothing to compare with: the rule allows no verdict but inconclusive."""
    metrics = read_json(folder / "results.json")["metrics"]
    heads = pd.read_parquet(folder / "heads.parquet")
    sink = metrics["sink_rate"]
    share = float((heads.first_key_share > 0.3).mean())
    entropy = metrics["normalized_entropy"]
    return Outcome(
        verdict="inconclusive",
        statistic=sink["value"],
        measure="sink rate of the softmax model (Gu et al., first key, threshold 0.3)",
        interval=(sink["low"], sink["high"]),
        notes=f"The softmax half is measured: {share:.0%} of the {len(heads)} heads give the first token more than 0.3 "
        f"of their weight, and the mean normalized entropy is {entropy['value']:.2f} (1 would be uniform attention). "
        "The claim compares softmax with sigmoid attention, and no sigmoid model of the same training is measured "
        "here, so there is no verdict on the comparison.",
        details={"share_of_heads_above_0.3": share, "normalized_entropy": entropy["value"], "heads": len(heads)},
    )


CLAIM = Claim(
    id="C11",
    claim="Pretrained language models with softmax attention are sparser and more prone to sinks than those with "
    "sigmoid attention.",
    plain="In real language models many softmax heads spend most of their attention on the very first token, whatever "
    "it says: an attention sink. The paper expects fewer sinks where attention is a sigmoid.",
    method="Every head of SmolLM2-135M-Instruct is measured on whole documents, cut to one length, in float32 with "
    "exact row statistics; intervals come from resampling documents. Only the softmax half is measured.",
    source="arXiv:2603.06248, Figure 7",
    rule="supported if the sink rate of the softmax model exceeds that of a matched sigmoid model with a 95 % interval "
    "of the difference above 0; inconclusive where no matched sigmoid model is measured",
    settings={
        "quick": {"model": "smollm2-135m", "data": "pydoc", "documents": 20, "max_length": 256, "bos": "auto"},
        "paper": {"model": "smollm2-135m", "data": "pydoc", "documents": 60, "max_length": 1024, "bos": "auto"},
    },
    experiment=experiment,
    judge=judge,
)
