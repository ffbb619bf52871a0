"""Count the tokens of texts with a tokenizer that is stored in a folder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from marin_resources.storage.files import read_bytes
from marin_resources.storage.paths import join


def token_counter(tokenizer_path: str) -> Callable[[list[str]], list[int]]:
    """Return a function from texts to their numbers of tokens.

    No special tokens are added, and a special token that is written in a text counts as ordinary text. Raises
    FileNotFoundError if the folder has no tokenizer.json.
    """
    from tokenizers import Tokenizer

    tokenizer: Any = Tokenizer.from_str(read_bytes(join(tokenizer_path, "tokenizer.json")).decode())
    tokenizer.encode_special_tokens = True

    def count(texts: list[str]) -> list[int]:
        return [len(encoding.ids) for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

    return count
