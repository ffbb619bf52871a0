"""Continue texts with an exported model, to read what it has learned.

In:  the folder of a Hugging Face export (config.json, model.safetensors, tokenizer.json, tokenizer_config.json).
Out: `generated.jsonl`, one {"prompt", "text"} a line, in the order of the prompts: the prompt, and its continuation.

Tokens are sampled one by one (`sample_text.py`) with a seed of the prompt's own, so the same model gives the same texts
on the same hardware.
"""

from __future__ import annotations

import logging
import tempfile
from dataclasses import dataclass
from typing import Any

from marin_assets.inference.local_copy import copy_to_local
from marin_assets.stages.evaluate.jsonl import write_jsonl
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

KINDS = ("jax",)

GENERATED = "generated.jsonl"
SHOWN = 10
"""Texts in the result, which the asset's page and the report show; the file has all of them."""

log = logging.getLogger(__name__)


class PromptError(MarinError, ValueError):
    """The config has no text to continue. The message names the fields to set."""


@dataclass(frozen=True, kw_only=True)
class GenerateTextConfig:
    model_path: str
    """Folder of a Hugging Face export."""
    prompts: tuple[str, ...]
    """Texts to continue; versioned()."""
    output_path: str = THIS_OUTPUT_PATH
    max_tokens: int = versioned(60)
    """Most tokens of a continuation; it ends earlier where the model ends the text."""
    temperature: float = versioned(0.8)
    """Divides the logits; at 0 the likeliest token is taken."""
    seed: int = versioned(0)
    """Seed of the first prompt; that of each further one is greater by 1."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def generate_text(config: GenerateTextConfig) -> dict[str, Any]:
    """Continue each prompt.

    Returns prompts, characters (of all continuations) and generated: the first ten, as {prompt, text}. Raises
    PromptError without prompts, FileNotFoundError for an empty folder, ModelError for one without a model or for an
    invalid temperature.
    """
    from marin_assets.inference.jax_model import load_model
    from marin_assets.stages.evaluate.sample_text import sample_text

    _check(config)
    with tempfile.TemporaryDirectory(prefix="generate-") as folder:
        model, tokenizer = load_model(copy_to_local(config.model_path, folder))
    rows = []
    for i, prompt in enumerate(config.prompts):
        pieces = sample_text(
            model,
            tokenizer,
            prompt,
            max_tokens=config.max_tokens,
            temperature=config.temperature,
            seed=config.seed + i,
        )
        rows.append({"prompt": prompt, "text": "".join(pieces)})
        log.info("text %d of %d: %s", i + 1, len(config.prompts), rows[-1]["text"][:60].replace("\n", " "))
    write_jsonl(join(config.output_path, GENERATED), rows)
    return {
        "prompts": len(rows),
        "characters": sum(len(row["text"]) for row in rows),
        "generated": rows[:SHOWN],
    }


def _check(config: GenerateTextConfig) -> None:
    if isinstance(config.prompts, str) or not all(isinstance(prompt, str) for prompt in config.prompts):
        raise PromptError(f"GenerateTextConfig has prompts={config.prompts!r}, expected texts. Pass prompts=(…,).")
    if not config.prompts:
        raise PromptError("GenerateTextConfig has no prompts, expected at least one text. Pass prompts=(…,).")
