"""Preferences, by the hub's id, with a folder or a split behind it where a set has several."""

from __future__ import annotations

from marin_assets.datasets.conversational import Preferences
from marin_assets.datasets.dataset import Family, HubFiles

_MARIN = "marin experiments/posttrain/preference_datasets.py: id, revision, columns, splits"
_PINS = "public users' pins: the 40 digits"

_ULTRAFEEDBACK = tuple(
    Preferences(
        name=f"HuggingFaceH4/ultrafeedback_binarized/{split}",
        files=HubFiles(
            id="HuggingFaceH4/ultrafeedback_binarized",
            revision="3949bf5f8c17c394422ccfab0c31ea9c20bdeb85",
            split=split,
        ),
        licence="MIT",
        bytes=None,  # 649,980,296 for all six splits, as public users count them
        facts=(_MARIN, _PINS, "card, as public users cite it: licence"),
    )
    for split in ("train_prefs", "test_prefs")
)

_HH_BYTES = {
    # helpful-online and helpful-rejection-sampled: no page that was read has theirs
    "harmless-base/train": 13_200_000,
    "harmless-base/test": 743_000,
    "helpful-base/train": 16_200_000,
    "helpful-base/test": 875_000,
}
_HH_RLHF = tuple(
    Preferences(
        name=f"Anthropic/hh-rlhf/{folder}/{split}",
        files=HubFiles(
            id="Anthropic/hh-rlhf",
            revision="09be8c5bbc57cb3887f3a9732ad6aa7ec602a1fa",
            globs=(f"{folder}/{split}.jsonl.gz",),
        ),
        licence="MIT",
        bytes=_HH_BYTES.get(f"{folder}/{split}"),
        adapter="transcripts",
        facts=(
            "marin experiments/post_training/task_curation/datasets: id, revision, names of the files of train",
            _PINS,
            "page of the repository: licence, folders; page of a copy: rounded sizes",
        ),
    )
    for folder in ("harmless-base", "helpful-base", "helpful-online", "helpful-rejection-sampled")
    for split in ("train", "test")
)

_MIXTURES = (
    Preferences(
        name="allenai/olmo-2-1124-7b-preference-mix",
        files=HubFiles(id="allenai/olmo-2-1124-7b-preference-mix", revision="316c96f", split="train"),
        licence="ODC-By-1.0",
        bytes=1_456_000_000,
        facts=(_MARIN, "page of the commit: licence, six files with their rounded sizes"),
    ),
    Preferences(
        name="allenai/olmo-2-0425-1b-preference-mix",
        files=HubFiles(
            id="allenai/olmo-2-0425-1b-preference-mix",
            revision="c6454f3d364622718a8ecd3d307e524febbba569",
            split="train",
        ),
        licence="ODC-By-1.0 (some parts are not for commercial use)",
        facts=("public users' pins: id, the 40 digits, files; their citation of the card: licence",),
    ),
    Preferences(
        name="allenai/llama-3.1-tulu-3-8b-preference-mixture",
        files=HubFiles(
            id="allenai/llama-3.1-tulu-3-8b-preference-mixture",
            revision="33eb5d0dbd5ef1e7a56a0a0afe2e90e8393e2c12",
            split="train",
        ),
        licence="ODC-By-1.0 (some parts have terms of their own)",
        bytes=892_000_000,
        facts=("page of the commit: its 40 digits, licence, four files with their rounded sizes",),
    ),
)

preferences: Family[Preferences] = Family({entry.name: entry for entry in (*_ULTRAFEEDBACK, *_HH_RLHF, *_MIXTURES)})
"""Preferences by name."""
