"""The error of an encoder that cannot be used."""

from __future__ import annotations

from marin_resources.types.errors import MarinError


class EncoderError(MarinError, ValueError):
    """The encoder cannot be loaded, or `max_tokens` is beyond what it reads."""
