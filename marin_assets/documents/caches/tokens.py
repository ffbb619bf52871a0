"""Tokens of texts, by the tokenizer that is stored in a folder. Every program here reads texts with this loader."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from marin_resources.storage.files import read_bytes
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

FILE = "tokenizer.json"


class TokenizerFileError(MarinError, ValueError):
    """A tokenizer.json cannot be read: one sentence."""


def read_tokenizer(path: str, *, special_tokens: bool = False) -> Tokenizer:
    """Load the tokenizer of a folder so that a text becomes all of its tokens, and always the same ones.

    The file may have settings of the program that wrote it: truncation, padding, and the dropout of a training. They
    are off. A special token that is written in a text is text; with `special_tokens` it is that
    token, as a chat template means it. Raises FileNotFoundError, TokenizerFileError.
    """
    from tokenizers import Tokenizer

    file = join(path, FILE)
    content = read_bytes(file)
    try:
        tokenizer = Tokenizer.from_str(content.decode())
    except Exception as error:  # the library raises Exception itself
        raise TokenizerFileError(
            f"{file!r} is no tokenizer of Hugging Face's library ({error}), expected one. Download or save it again."
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    if getattr(tokenizer.model, "dropout", None):
        tokenizer.model.dropout = None
    tokenizer.encode_special_tokens = not special_tokens
    return tokenizer


def without_settings(content: bytes) -> bytes:
    """Return a tokenizer.json without the settings that `read_tokenizer` has off, for programs that obey them."""
    settings = json.loads(content)
    model = settings.get("model") or {}
    if not (settings.get("truncation") or settings.get("padding") or model.get("dropout")):
        return content
    settings |= {"truncation": None, "padding": None}
    if "dropout" in model:
        model["dropout"] = None
    return json.dumps(settings, ensure_ascii=False, indent=2).encode()


def token_counter(tokenizer_path: str) -> Callable[[list[str]], list[int]]:
    """Return a function from texts to their numbers of tokens, without special tokens.

    Raises FileNotFoundError if the folder has no tokenizer.json.
    """
    tokenizer = read_tokenizer(tokenizer_path)

    def count(texts: list[str]) -> list[int]:
        return [len(encoding.ids) for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

    return count
