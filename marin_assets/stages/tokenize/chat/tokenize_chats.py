"""Tokenize chats into Levanter's caches of chats: the assistant's messages are learnt, the rest is read.

In:  rows of chats in files that stages read (`adapters.py` has their shapes), and a tokenizer folder.
Out: `<output>/train/…` and `<output>/validation/…`, caches (`cache.py`) with the fields input_ids and assistant_masks,
     one shard for each file of rows. Their ledgers have the text of the chat template.

A chat that is longer than `max_seq_len` is cut on the right, and counted. The next attempt does not tokenize finished
shards again.
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
class TokenizeChatsConfig(TokenizeRowsConfig):
    chats_path: str
    """Rows of chats, such as a raw output."""
    adapter: str = versioned("openai")
    """Shape of the rows: "openai", "sharegpt" or "dolly"."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, partial(check_rows, "chat"), name)


def tokenize_chats(config: TokenizeChatsConfig) -> dict[str, Any]:
    """Write the caches of all chats, and check a sample of them.

    Returns the counts of `tokenize_rows`. Raises TokenizeError if a split is empty, TemplateError for a template that
    does not suit the tokenizer.
    """
    return tokenize_rows("chat", config.chats_path, config)
