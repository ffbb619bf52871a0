"""Groups of steps: Dagster's lineage shows a group as one box, until it is opened."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from marin_assets.step.values import ConfigError

_GROUP = re.compile(r"\w+(/\w+)*", re.ASCII)
_CURRENT: ContextVar[str | None] = ContextVar("step_group", default=None)


@contextmanager
def step_group(name: str) -> Iterator[None]:
    """Steps that are created within the block are in the group `<subject>/<name>`.

        with step_group("filters"):
            quality = Step(name="attributes/fineweb/quality", …)    # group fineweb/filters

    A group within a group is `<outer>/<inner>`. Raises ConfigError for another name than letters, digits and "_".
    """
    require_group(name, "step_group()")
    outer = _CURRENT.get()
    token = _CURRENT.set(f"{outer}/{name}" if outer else name)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_group() -> str | None:
    """The group of a step that is created now; None outside of `step_group`."""
    return _CURRENT.get()


def require_group(name: object, place: str) -> None:
    """Raise ConfigError for what Dagster takes as no group's name."""
    if not isinstance(name, str) or not _GROUP.fullmatch(name):
        raise ConfigError(f"{place} has the group {name!r:.100}, expected letters, digits and '_', such as 'filters'.")
