"""Rows of a token cache, read with tensorstore alone, and their ids as pieces of text.

The arrays of a cache have the shape 2**54, of which the ledger and the offsets define the part in use: reading one
whole ends the process. So a read has bounds that were compared with the ledger, and a chunk has a limit, before
anything is decompressed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from marin_assets.browse.errors import NotShownError, NotThereError, UnreadableError
from marin_assets.browse.places import Place, Places
from marin_assets.browse.stored.files import inside
from marin_assets.documents.caches.token_cache import FIELD, LEDGER, CacheError, open_array
from marin_assets.documents.caches.tokens import read_tokenizer
from marin_resources.storage.files import folders_in, read_bytes, stored_file, stored_files
from marin_resources.storage.paths import is_local, join

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MASK = "assistant_masks"
NAMES = "names.json"
MOST_CHUNK_ELEMENTS = 1 << 24
"""64 times those of a chunk of our caches."""
MOST_TOKENIZER_BYTES = 128 * 1024**2
MOST_ROWS = 1 << 48
MOST_ENDS = 10_000_000
ERRORS = (ValueError, RuntimeError, IndexError, TypeError, OverflowError, KeyError, NotImplementedError, OSError)
"""Errors of tensorstore, and of a ledger with other fields."""


@dataclass(frozen=True, kw_only=True)
class TokenRow:
    """A window of one row of a cache."""

    field: str
    ids: list[int]
    learnt: list[bool] | None
    """Whether the loss of each token counts; None without a mask."""
    start: int
    total: int
    """Tokens of the whole row."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """The folder of arrays that has a row."""

    path: str
    index: int
    """The number of the row in it."""
    rows: int
    """Rows of all parts."""
    ledger: Mapping[str, Any]


def part_of(places: Places, place: Place, row: int) -> Part:
    """The part of a split, or of a shard, with a row. Raises BrowseError."""
    ledger = ledger_of(place.path)
    try:
        total = _count(ledger["total_num_rows"])
        if row >= total:
            raise NotThereError(f"{place.text!r:.300} has no row {row:,}, counted from 0. It has {total:,} rows.")
        if ledger.get("layout") != "sharded":
            return Part(path=place.path, index=row, rows=total, ledger=ledger)
        first = 0
        for name in ledger["finished_shards"]:
            rows = _count(ledger["shard_rows"][name])
            if row < first + rows:
                part = places.resolve(join(place.text, str(name)))
                return Part(path=part.path, index=row - first, rows=total, ledger=ledger_of(part.path))
            first += rows
    except ERRORS as error:
        raise unreadable(place.path, error) from error
    raise unreadable(place.path, ValueError("its shards have fewer rows than it"))


def parts_of(places: Places, place: Place) -> list[Part]:
    """The parts of a split, or the one of a shard, in order, each with its own rows. Raises BrowseError."""
    ledger = ledger_of(place.path)
    try:
        if ledger.get("layout") != "sharded":
            return [Part(path=place.path, index=0, rows=_count(ledger["total_num_rows"]), ledger=ledger)]
        rows = {str(name): _count(ledger["shard_rows"][name]) for name in ledger["finished_shards"]}
    except ERRORS as error:
        raise unreadable(place.path, error) from error
    paths = {name: places.resolve(join(place.text, name)).path for name in rows}
    return [Part(path=paths[name], index=0, rows=count, ledger={}) for name, count in rows.items()]


def check_cache(places: Places, path: str) -> None:
    """Check the arrays of documents or chats of a split before a library reads all of it. Raises BrowseError."""
    ledger = ledger_of(path)
    try:
        is_sharded = ledger.get("layout") == "sharded"
        folders = [join(path, str(name)) for name in ledger["finished_shards"]] if is_sharded else [path]
        for folder in folders:
            if places.text_of(folder) is None:
                raise NotShownError(f"{folder!r:.300} is outside of what is shown.")
            for field in folders_in(folder):
                for array in folders_in(join(folder, field)):
                    check_array(places, join(folder, field, array))
    except ERRORS as error:
        raise unreadable(path, error) from error


def fields_of(part: Part) -> list[str]:
    """The fields of ids, `input_ids` first."""
    names = [name for name in folders_in(part.path) if name.endswith(FIELD)]
    if not names:
        raise NotThereError(f"{part.path!r:.300} has no tokens. Open a split of a token cache, or a shard of one.")
    return sorted(names, key=lambda name: (name != FIELD, name))


def read_tokens(places: Places, part: Part, field: str, *, start: int, count: int) -> TokenRow:
    """At most `count` tokens of a row from the token `start` on, with its mask. Raises UnreadableError."""
    try:
        ids, total = _values(places, part, field, start, count)
        mask_field = f"{field.removesuffix(FIELD)}{MASK}"
        learnt = None
        if mask_field in folders_in(part.path):
            mask, mask_total = _values(places, part, mask_field, start, count)
            if mask_total != total:
                raise ValueError(f"the row has {total} tokens and {mask_total} marks of the loss")
            learnt = [bool(value) for value in mask]
    except ERRORS as error:
        raise unreadable(part.path, error) from error
    return TokenRow(field=field, ids=ids, learnt=learnt, start=start, total=total)


def name_of(part: Part) -> str:
    """The id of the row's document; empty if the cache has no names."""
    names = names_of(part.path)
    return names[part.index] if part.index < len(names) else ""


def names_of(path: str) -> list[str]:
    """The ids of the documents of a shard; empty if it has no names."""
    try:
        return [str(name) for name in json.loads(read_bytes(join(path, NAMES)))["ids"]]
    except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
        return []


def ledger_of(path: str) -> Mapping[str, Any]:
    """The ledger of a split or a shard. Raises NotThereError without one, UnreadableError for a damaged one."""
    try:
        ledger = json.loads(read_bytes(join(path, LEDGER)))
    except FileNotFoundError:
        raise NotThereError(f"{path!r:.300} has no {LEDGER}: it is no token cache, or it is still written.") from None
    except (ValueError, RecursionError) as error:
        raise unreadable(path, error) from None
    if not isinstance(ledger, dict):
        raise unreadable(path, ValueError("its ledger is no object"))
    return ledger


def ends_of(places: Places, path: str) -> list[int]:
    """The end of each row in the tokens of a shard. Raises one of ERRORS for a damaged array."""
    folder = join(path, FIELD)
    check_array(places, join(folder, "offsets"))
    offsets = open_array(join(folder, "offsets"))
    rows = _count(int(offsets[0].read().result()))
    if rows > MOST_ENDS:
        raise ValueError(f"its shard has {rows:,} rows, and at most {MOST_ENDS:,} are shown")
    return [int(end) for end in offsets[1 : rows + 1].read().result()]


def _values(places: Places, part: Part, field: str, start: int, count: int) -> tuple[list[int], int]:
    """Values of the row from `start` on, and how many it has."""
    folder = join(part.path, field)
    for array in ("offsets", "data"):
        check_array(places, join(folder, array))
    offsets = open_array(join(folder, "offsets"))
    rows = _count(int(offsets[0].read().result()))
    if part.index >= rows:
        raise ValueError(f"{field} has {rows} rows, and the ledger more")
    begin, end = (int(value) for value in offsets[part.index : part.index + 2].read().result())
    begin = begin if part.index else 0  # the first offset is the number of rows
    used = (part.ledger.get("field_counts") or {}).get(field, MOST_ROWS)
    if not 0 <= begin <= end <= used:
        raise ValueError(f"the row of {field} is from {begin} to {end}, of {used} values")
    first = min(begin + start, end)
    data = open_array(join(folder, "data"))[first : min(end, first + count)].read().result()
    return [int(value) for value in data], end - begin


def check_array(places: Places, path: str) -> None:
    """Raise ValueError for an array whose chunks are too large to be read, NotShownError for one behind a link."""
    if is_local(path) and inside(places, stored_files(path))[1]:
        raise NotShownError(f"{path!r:.300} has a link that leads out of what is shown.")
    metadata = json.loads(read_bytes(join(path, "zarr.json")))
    chunk = metadata["chunk_grid"]["configuration"]["chunk_shape"]
    for codec in metadata["codecs"]:
        if codec["name"] == "sharding_indexed":
            chunks_in_file, chunk = chunk, codec["configuration"]["chunk_shape"]
            if _count(chunks_in_file[0]) > MOST_CHUNK_ELEMENTS * _count(chunk[0]):
                raise ValueError(f"a file of it has {chunks_in_file[0]} values, in chunks of {chunk[0]}")
    if len(chunk) != 1 or not 0 < _count(chunk[0]) <= MOST_CHUNK_ELEMENTS:
        raise ValueError(f"its chunks have the shape {chunk}, expected at most {MOST_CHUNK_ELEMENTS}")


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_ROWS:
        raise ValueError(f"{value!r:.60} is no count")
    return value


def unreadable(path: str, error: BaseException) -> UnreadableError:
    """The error of a cache for its page."""
    return UnreadableError(
        f"The token cache {path!r:.300} cannot be read ({type(error).__name__}: {str(error)[:300]}). Compute it again."
    )


@dataclass(frozen=True, slots=True)
class Piece:
    """The text of one token."""

    text: str
    is_special: bool


def pieces_of(tokenizer: Tokenizer, ids: Sequence[int]) -> list[Piece]:
    """The pieces of text of tokens. Bytes that are no whole character are in hexadecimal digits."""
    special = {id: token for id, token in tokenizer.get_added_tokens_decoder().items()}
    is_byte_level = "ByteLevel" in str(tokenizer.decoder)
    pieces = []
    for id in ids:
        token = tokenizer.id_to_token(id)
        if id in special:
            pieces.append(Piece(special[id].content, special[id].special))
        elif token is None:
            pieces.append(Piece("⟨no such token⟩", False))
        else:
            pieces.append(Piece(_text_of(token) if is_byte_level else token.replace("▁", " "), False))
    return pieces


def tokenizer_at(path: str) -> Tokenizer:
    """The tokenizer in a folder. Raises MarinError and FileNotFoundError."""
    file = stored_file(join(path, "tokenizer.json"))
    if file.size_bytes > MOST_TOKENIZER_BYTES:
        raise CacheError(f"{file.path!r} has {file.size_bytes:,} bytes, expected at most {MOST_TOKENIZER_BYTES:,}.")
    return _tokenizer(path, file.stamp)


@lru_cache(4)
def _tokenizer(path: str, stamp: str) -> Tokenizer:
    return read_tokenizer(path)


def _text_of(token: str) -> str:
    """The text of a token of bytes; bytes that are no text in hexadecimal digits."""
    bytes_ = _bytes_by_character()
    if not all(character in bytes_ for character in token):
        return token
    data = bytes(bytes_[character] for character in token)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "".join(f"⟨{byte:02X}⟩" for byte in data)


@lru_cache(1)
def _bytes_by_character() -> dict[str, int]:
    """The characters by which byte-level tokenizers write bytes (Radford et al. 2019): printable ones are themselves,
    the others follow from U+0100 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + index): byte for index, byte in enumerate(others)}
