"""As many names of a list, chosen by their hash: a list in another order, or with more names, has nearly the same."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def sample_names(names: Sequence[str], most: int | None) -> list[str]:
    """Return `most` of the names, sorted; all in their order if they are no more, or `most` is None."""
    if most is None or len(names) <= most:
        return list(names)
    chosen = sorted(names, key=lambda name: hashlib.sha256(name.encode(errors="surrogatepass")).digest())[:most]
    return sorted(chosen)
