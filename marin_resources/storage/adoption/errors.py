"""The error of a refused adoption."""

from marin_resources.types.errors import MarinError


class AdoptionError(MarinError):
    """The data cannot be adopted, or an adoption cannot be undone: one sentence."""
