"""The query of an address, whose values are texts of strangers: each is parsed, or refused in a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from urllib.parse import quote_plus

from marin_assets.browse.errors import NotThereError

MOST = 2**53


class Query:
    """The values of an address by name."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def text(self, name: str, default: str = "") -> str:
        return self._values.get(name, default)

    def texts(self, name: str) -> list[str]:
        """The values of a name that an address may have several times, without empty ones."""
        from starlette.datastructures import ImmutableMultiDict  # 0.3 s, which no other verb has to wait for

        values = self._values
        several = values.getlist(name) if isinstance(values, ImmutableMultiDict) else [self.text(name)]
        return [value for value in several if value]

    def has(self, name: str) -> bool:
        return bool(self._values.get(name))

    def number(self, name: str, default: int = 0, *, most: int = MOST) -> int:
        """A number from 0 to `most`. Raises NotThereError."""
        text = self._values.get(name, "").strip()
        if not text:
            return default
        if not (text.isascii() and text.isdecimal() and len(text) <= 16) or int(text) > most:
            raise NotThereError(f"{name} is {text!r:.60}, expected a number from 0 to {most:,}. Correct the address.")
        return int(text)

    def decimal(self, name: str) -> float | None:
        """A finite number; None without one. Raises NotThereError."""
        text = self._values.get(name, "").strip()
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise NotThereError(f"{name} is {text!r:.60}, expected a number such as 0.5. Correct the address.")
        return value


def address(page: str, /, **values: object) -> str:
    """The address of a page of this server, with the values that are not empty; a list is a name several times."""
    kept = {name: value for name, value in values.items() if value not in (None, "")}
    pairs = "&".join(f"{name}={_quoted(str(item))}" for name, value in kept.items() for item in _values(value))
    return f"/{page}?{pairs}" if pairs else f"/{page}"


def _values(value: object) -> Iterable[object]:
    return value if isinstance(value, list | tuple) else (value,)


@lru_cache(2048)
def _quoted(text: str) -> str:
    """A value of an address. A page of rows has the same path 100 times."""
    return quote_plus(text, errors="replace")
