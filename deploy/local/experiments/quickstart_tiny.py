"""The quickstart on a few pages: all of its steps, in a minute or two."""

from __future__ import annotations

from marin_assets.experiments import quickstart
from marin_assets.step.step import Step


def steps() -> list[Step]:
    return quickstart.steps("tiny")
