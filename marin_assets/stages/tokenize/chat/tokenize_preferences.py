"""Tokenize preferences into Levanter's caches for DPO: of each prompt a chosen and a rejected answer.

In:  rows of preferences in files that stages read (`preferences.py` has their shapes), and a tokenizer folder.
Out: `<output>/train/…` and `<output>/validation/…`, caches (`cache.py`) with the fields chosen_input_ids,
     chosen_assistant_masks, rejected_input_ids and rejected_assistant_masks, one shard for each file of rows.

A preference of which a side is longer than `max_seq_len` is rejected, and counted. The next attempt does not tokenize
finished shards again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from marin_assets.stages.tokenize.chat.tokenize_rows import check_rows, tokenize_rows
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources

KINDS = ("levanter",)


@dataclass(frozen=True, kw_only=True)
class TokenizePreferencesConfig:
    preferences_path: str
    """Rows of preferences, such as a raw output."""
    tokenizer_path: str
    """Folder of the tokenizer of the model that is trained."""
    chat_template: str
    """Text of the template that the model was trained with; named_template("plain") has that of a name, versioned."""
    max_seq_len: int
    """Tokens of a training sequence, versioned(): longer preferences are rejected."""
    output_path: str = THIS_OUTPUT_PATH
    adapter: str = versioned("chats")
    """Shape of the rows: "chats" or "answers"."""
    validation_fraction: float = versioned(0.05)
    """The share of preferences on the validation side; 0 writes no validation side."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, partial(check_rows, "preference"), name)


def tokenize_preferences(config: TokenizePreferencesConfig) -> dict[str, Any]:
    """Write the caches of all preferences, and check a sample of them.

    Returns the counts of `tokenize_rows`. Raises TokenizeError if a split is empty, TemplateError for a template that
    does not suit the tokenizer.
    """
    return tokenize_rows("preference", config.preferences_path, config)
