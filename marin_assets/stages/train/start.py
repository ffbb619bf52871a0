"""Where the parameters of a training begin."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class StartFromHf:
    """With those of a Hugging Face folder. The optimizer, the schedule and the order of the data are the new run's."""

    path: str
    """Such as output_path_of(pretrained, "hf")."""
