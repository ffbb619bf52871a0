"""The code location `marin`: the only file where assets, resources and sensors meet.

Every file in `experiments/` that has a function `steps()` is an experiment. One that does not import, or whose steps
clash with another's, is left out with a sentence in the log; the rest of the code location lives.
"""

from __future__ import annotations

from marin_assets.assets.assemble import assemble
from marin_assets.plan.experiments_folder import load_experiments
from marin_sensors import SENSORS

defs = assemble(load_experiments(), SENSORS)
