"""One row of a token cache: its pieces with their bounds, ids, and whether the loss of each counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from marin_assets.browse.cells.short_text import short_text, visible
from marin_assets.browse.site import Asked, Shown
from marin_assets.browse.stored.state import OutputState, inputs_of
from marin_assets.browse.stored.token_rows import (
    Part,
    TokenRow,
    fields_of,
    name_of,
    part_of,
    pieces_of,
    read_tokens,
    tokenizer_at,
)
from marin_assets.documents.caches.token_cache import CacheError
from marin_assets.documents.caches.tokens import FILE, TokenizerFileError
from marin_resources.storage.files import exists
from marin_resources.storage.paths import join

COUNT = 2000
"""Tokens on a page."""
PIECE_CHARACTERS = 150


def tokens(asked: Asked) -> Shown:
    place, row, start = asked.place(), asked.query.number("row"), asked.query.number("start")
    owner = asked.owner(place)
    part = part_of(asked.places, place, row)
    tokenizer_path, note = _tokenizer_path(asked, owner), ""
    tokenizer = None
    if tokenizer_path:
        try:
            tokenizer = tokenizer_at(tokenizer_path)
        except (TokenizerFileError, CacheError) as error:
            note = str(error)
    fields = []
    for field in fields_of(part):
        read = read_tokens(asked.places, part, field, start=start, count=COUNT)
        fields.append({"row": read, "tokens": _shown(read, tokenizer), "learnt": sum(read.learnt or ())})
    longest = max(entry["row"].total for entry in fields)  # type: ignore[attr-defined]
    name = name_of(part)
    facts: dict[str, Any] = {
        "place": place,
        "owner": owner,
        "number": row,
        "part": part,
        "name": name,
        "short_name": short_text(name, 200).text,
        "fields": fields,
        "has_tokenizer": tokenizer is not None,
        "note": note,
        "start": start,
        "end": min(start + COUNT, longest),
        "longest": longest,
        "step": COUNT,
        "marks": _marks(part),
    }
    return Shown(template="tokens", facts=facts)


def _shown(read: TokenRow, tokenizer: Any) -> list[dict[str, Any]]:
    return shown_tokens(read.ids, read.learnt, tokenizer)


def shown_tokens(ids: Sequence[int], learnt: Sequence[bool] | None, tokenizer: Any) -> list[dict[str, Any]]:
    """The id, the text and the marks of each token; without a tokenizer its id is its text."""
    pieces = pieces_of(tokenizer, ids) if tokenizer is not None else None
    return [
        {
            "id": id,
            "text": _text(pieces[index].text) if pieces else str(id),
            "is_special": pieces is not None and pieces[index].is_special,
            "is_learnt": learnt is not None and learnt[index],
        }
        for index, id in enumerate(ids)
    ]


def _text(piece: str) -> str:
    """A piece with marks for line feeds and for what cannot be seen; of a very long one the beginning and its size."""
    cut = f"… of {len(piece):,} characters" if len(piece) > PIECE_CHARACTERS else ""
    return visible(piece[:PIECE_CHARACTERS]).replace("\n", "↵\n") + cut


def _marks(part: Part) -> list[str]:
    """The tokens with which rows begin and end, as the ledger has it."""
    metadata = part.ledger.get("metadata")
    settings = metadata.get("preprocessor_metadata") if isinstance(metadata, Mapping) else None
    if not isinstance(settings, Mapping):
        return []
    names = {"append_bos": "a token at the beginning (bos)", "append_eos": "a token at the end (eos)"}
    return [phrase for name, phrase in names.items() if settings.get(name) is True]


def _tokenizer_path(asked: Asked, owner: OutputState | None) -> str:
    """The folder of the tokenizer among the inputs of the cache; empty without one."""
    for path in inputs_of(owner) if owner is not None else []:
        text = asked.places.text_of(path)
        if text is not None and exists(join(asked.places.resolve(text).path, FILE)):
            return asked.places.resolve(text).path
    return ""
