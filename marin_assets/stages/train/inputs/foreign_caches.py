"""Caches that Levanter or Marin has written: their ledger names a tokenizer, or none, but has no digest of it.

The rows decide: some are decoded and encoded again, and most must come out as they are. Another tokenizer would give
other tokens.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from marin_assets.documents.token_cache import FIELD, SampledRow, sample_rows
from marin_assets.documents.tokens import read_tokenizer
from marin_assets.stages.train.errors import InputError
from marin_resources.storage.files import read_json
from marin_resources.storage.paths import join

if TYPE_CHECKING:
    from tokenizers import Tokenizer

ROWS, TOKENS = 16, 4096
"""Rows of a cache that are compared, and tokens of each: the time is that of one document."""
CUT_OFF = 8
"""The last tokens of a row that is cut are not compared: more text would follow."""

log = logging.getLogger(__name__)


def check_foreign_cache(name: str, path: str, ledger: Mapping[str, Any], tokenizer_path: str) -> None:
    """Raise InputError unless the cache of one split has documents with the tokens of this tokenizer."""
    metadata: Mapping[str, Any] = (ledger.get("metadata") or {}).get("preprocessor_metadata") or {}
    fields = sorted(ledger.get("field_counts") or {FIELD: 0})
    if fields != [FIELD] or "chat_template" in metadata or "chosen" in metadata:
        raise InputError(
            f"Component {name!r} at {path!r} was written by another program, with {', '.join(map(repr, fields))}, "
            "expected documents, which have 'input_ids' alone. Tokenize chats with tokenize_chats, and preferences "
            "with tokenize_preferences."
        )
    tokenizer = read_tokenizer(tokenizer_path, special_tokens=True)
    size = tokenizer.get_vocab_size()
    if metadata.get("vocab_size", size) != size:
        raise InputError(
            f"Component {name!r} at {path!r} was tokenized with a tokenizer of {metadata['vocab_size']} tokens, and "
            f"{tokenizer_path!r} has {size}. Pass the tokenizer of the cache as tokenizer_path."
        )
    ends = [_special_id(tokenizer, tokenizer_path, kind) for kind in ("bos_token", "eos_token")]
    rows = list(sample_rows(path, ledger, rows=ROWS, tokens=TOKENS))
    equal = sum(_is_encoded_by(tokenizer, row, *ends) for row in rows)
    if rows and equal * 2 <= len(rows):
        raise InputError(
            f"Component {name!r} at {path!r} was tokenized with another tokenizer than {tokenizer_path!r}: of "
            f"{len(rows)} rows only {equal} are the tokens that it gives their text, with its eos token at the end. "
            "Pass the tokenizer of the cache as tokenizer_path, or tokenize the documents again."
        )
    log.info("%s: of %d rows, %d are the tokens that %s gives their text", path, len(rows), equal, tokenizer_path)


def _is_encoded_by(tokenizer: Tokenizer, row: SampledRow, bos: int | None, eos: int | None) -> bool:
    """Whether a row is [bos, *tokens, eos], and its text has these tokens. A tokenizer may have no bos, or no eos."""
    if eos is not None and row.last != eos:
        return False
    body = row.tokens if row.is_cut or eos is None else row.tokens[:-1]
    body = body[1:] if bos is not None and body[:1] == [bos] else body
    again = tokenizer.encode(tokenizer.decode(body, skip_special_tokens=False), add_special_tokens=False).ids
    return again[: len(body) - CUT_OFF] == body[:-CUT_OFF] if row.is_cut else again == body


def _special_id(tokenizer: Tokenizer, tokenizer_path: str, kind: str) -> int | None:
    token = read_json(join(tokenizer_path, "tokenizer_config.json")).get(kind)
    content = token["content"] if isinstance(token, dict) else token
    return None if content is None else tokenizer.token_to_id(content)
