"""The digests of a row: of its id, its text, its verdict and all else, by which rows of two outputs are compared.

Equal values are equal digests whatever the format and the order of keys. An id's digest has 12 bytes: of a billion ids,
two have the same with a probability of 1 to 10**10. Others have 8: a change has the digest of before with 1 to 10**19.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

ID_BYTES, DIGEST_BYTES = 12, 8
ID, TEXT = "id", "text"
VERDICT = ("keep", "reason")
"""The keys of an attribute's decision."""
ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=repr)


def digests_of(row: Mapping[str, Any]) -> bytes | None:
    """The digests of the id, the text, the verdict and the other values, one after another; None without an id.

    Raises RecursionError for a row that is nested too deeply.
    """
    id, text = row.get(ID), row.get(TEXT)
    if id is None:
        return None
    name = id if isinstance(id, str) else f"\0{ENCODER.encode(id)}"
    others = {key: value for key, value in row.items() if key not in (ID, TEXT) and key not in VERDICT}
    return b"".join(
        (
            _digest(name, ID_BYTES),
            _digest(text if isinstance(text, str) else f"\0{ENCODER.encode(text)}" if TEXT in row else "\0"),
            _digest(ENCODER.encode([row.get(key) for key in VERDICT])),
            _digest(ENCODER.encode(others)),
        )
    )


def _digest(text: str, size: int = DIGEST_BYTES) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()[:size]
