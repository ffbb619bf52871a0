"""A model's card, from the record of its training: what it is, what it was trained on, how it scored, how to make it.

The front matter is that of the Hugging Face hub (huggingface.co/docs/hub/model-cards).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from marin_resources.types.record import Record

NUMBERS = {
    "parameters": "parameters",
    "steps": "steps",
    "tokens_seen": "tokens seen",
    "flops": "FLOPs",
    "loss_end": "validation loss, nats a token",
}
"""Key of a training's result -> its text in the card."""
OF_THE_WEIGHTS = "validation loss of the weights that were averaged, nats a token"
"""Text of `loss_end` in the record of an earlier release, whose model is an average of the weights."""


def model_card(record: Record, *, license: str | None, description: str | None) -> str:
    """The card as Markdown, with YAML before it."""
    result, version = record.result, record.version
    git: Mapping[str, Any] = record.git or {}
    name = (record.name or "model").removeprefix("checkpoints/")
    front = [
        "---",
        "library_name: transformers",
        "tags:",
        "- marin",
        *([f"license: {license}"] if license else []),
        "---",
    ]
    averaged = (version.get("config") or {}).get("loop.ema_beta") is not None
    shown = {**NUMBERS, "loss_end": OF_THE_WEIGHTS} if averaged and "loss_end_unaveraged" not in result else NUMBERS
    numbers = [f"| {text} | {_shown(result[key])} |" for key, text in shown.items() if result.get(key) is not None]
    made = [
        f"* step: `{record.name}`, output `{(record.identity or '')[:6]}`",
        *([f"* commit: `{git['commit']}`{' with changes' if git.get('dirty') else ''}"] if git.get("commit") else []),
        *[f"* input: `{dependency}`" for dependency in record.dependencies],
    ]
    config = json.dumps(version.get("config") or {}, indent=2, sort_keys=True, ensure_ascii=False)
    return "\n".join(
        [
            *front,
            "",
            f"# {name}",
            "",
            *([description, ""] if description else []),
            "| | |",
            "|---|---|",
            *numbers,
            "",
            "## How it was made",
            "",
            *made,
            "",
            "What is in the version of its training:",
            "",
            "```json",
            config,
            "```",
            "",
        ]
    )


def _shown(number: Any) -> str:
    if isinstance(number, float):
        return f"{number:.4g}"
    return f"{number:,}" if isinstance(number, int) else str(number)
