"""The error of a table or a fit that cannot be used."""

from __future__ import annotations

from marin_resources.types.errors import MarinError


class ScalingError(MarinError, ValueError):
    """Runs that no law can be fitted to, or a fit that cannot be read: one sentence."""
