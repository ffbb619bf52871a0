"""The check of a stage's config when its step is created: what the stage would refuse hours later is refused then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from marin_assets.step.function_check import require_types
from marin_assets.step.values import without_versions
from marin_resources.types.errors import MarinError

C = TypeVar("C")


def check_config(config: C, check: Callable[[C], Any], step: str) -> None:
    """Call `check`, which looks at values alone, with the config without versioned(). Paths in it may be placeholders.

    Raises ConfigError for a value of another type than its annotation, and the MarinError of `check` with the step's
    name.
    """
    require_types(config, step)
    try:
        check(without_versions(config))
    except MarinError as error:
        raise type(error)(f"Step {step!r}: {error}") from error
