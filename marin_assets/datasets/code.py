"""Corpora of code: StarCoderData."""

from __future__ import annotations

from marin_assets.datasets.dataset import Corpus, HubFiles

starcoderdata = Corpus(
    name="starcoderdata",
    files=HubFiles(
        id="bigcode/starcoderdata",
        revision="9fc30b578cedaec69e47302df72cf00feed7c8c4",
        globs=("**/*.parquet",),
        gated=True,
    ),
    licence="BigCode terms of use; each file has its own",
    text="content",
    facts=(
        "marin experiments/pretraining_datasets/simple.py: id, revision, column",
        "card: licence (other), gated; public users' pins: the 40 digits",
    ),
)
