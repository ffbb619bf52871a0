"""Corpora of mathematics: Proof-Pile-2, FineMath."""

from __future__ import annotations

from marin_assets.datasets.dataset import Corpus, HubFiles, by_name

proof_pile_2 = by_name(
    [
        Corpus(
            name=f"proof-pile-2/{subset}",
            files=HubFiles(
                id="EleutherAI/proof-pile-2",
                revision="901a9273a770e9d4138c5ddd91802f9c5c6cdc4b",
                globs=(f"{subset}/train/*.jsonl.zst",),
            ),
            licence=None,  # the card has none
            facts=(
                "marin experiments/pretraining_datasets/simple.py: id, revision",
                "page of the commit: folders, 51.1 GB for the whole repository, no licence",
            ),
        )
        for subset in ("algebraic-stack", "arxiv", "open-web-math")
    ],
    "proof-pile-2",
)
"""Proof-Pile-2 by subset, the split "train"."""

finemath = by_name(
    [
        Corpus(
            name=f"finemath/{subset}",
            files=HubFiles(id="HuggingFaceTB/finemath", revision="8f233cf", globs=(f"{subset}/**/*.parquet",)),
            licence="ODC-By-1.0",
            metadata=("url",),
            facts=(
                "marin experiments/midtraining_datasets.py: id, revision, globs",
                "card: licence, folders",
            ),
        )
        for subset in ("finemath-3plus", "finemath-4plus", "infiwebmath-3plus", "infiwebmath-4plus")
    ],
    "finemath",
)
"""FineMath by folder."""
