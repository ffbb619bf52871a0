"""The training of first_step.py as a code location."""

from __future__ import annotations

from first_step_training import training

from marin_assets.assets.assemble import assemble
from marin_assets.catalog.experiments_folder import Experiments

defs = assemble(Experiments({"first_step": (training(),)}, {}))
