"""The error of the family `url`."""

from __future__ import annotations

from marin_resources.types.errors import MarinError


class UrlFilterError(MarinError, ValueError):
    """Lists that are missing or damaged, thresholds that cannot be used, or a document without an address."""
