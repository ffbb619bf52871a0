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

from marin_assets.stages.tokenize.chat.tokenize_rows import TokenizeRowsConfig, check_rows, tokenize_rows
from marin_assets.step.config_check import check_config
from marin_assets.step.values import versioned
from marin_resources.hardware.resources import Resources

KINDS = ("levanter",)


@dataclass(frozen=True, kw_only=True)
class TokenizePreferencesConfig(TokenizeRowsConfig):
    preferences_path: str
    """Rows of preferences, such as a raw output."""
    adapter: str = versioned("chats")
    """Shape of the rows: "chats" or "answers"."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, partial(check_rows, "preference"), name)


def tokenize_preferences(config: TokenizePreferencesConfig) -> dict[str, Any]:
    """Write the caches of all preferences, and check a sample of them.

    Returns the counts of `tokenize_rows`. Raises TokenizeError if a split is empty, TemplateError for a template that
    does not suit the tokenizer.
    """
    return tokenize_rows("preference", config.preferences_path, config)
