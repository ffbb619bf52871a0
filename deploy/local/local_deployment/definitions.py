"""The code location of the rehearsal: the project's experiments, and those of the folder that it was given."""

from __future__ import annotations

import os

import marin_assets.experiments
from local_deployment.layout import EXPERIMENTS_VARIABLE

marin_assets.experiments.__path__.append(os.environ[EXPERIMENTS_VARIABLE])

from marin_assets.definitions import defs  # noqa: E402

__all__ = ["defs"]
