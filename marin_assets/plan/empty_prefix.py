"""A prefix below which no output is stored: the reason why all of a plan is to run may be a typo."""

from __future__ import annotations

from collections.abc import Sequence

from marin_assets.plan.plan import Planned
from marin_resources.configuration.settings import is_default_prefix
from marin_resources.storage.files import names_in

NO_OUTPUTS = frozenset({".marin", "experiments"})
"""Folders below a prefix that hold no output. A run writes there before it plans."""


def describe_empty_prefix(planned: Sequence[Planned], prefix: str) -> str:
    """A sentence if nothing is stored below the prefix; "" otherwise, and for the default prefix, which nobody typed.

    Raises UnavailableError.
    """
    if is_default_prefix(prefix) or any(item.observed.status is not None for item in planned):
        return ""
    if not NO_OUTPUTS.issuperset(names_in(prefix)):
        return ""
    return (
        f"No output is stored below the prefix {prefix!r} yet. If outputs are expected there, check --prefix and "
        "MARIN_PREFIX."
    )
