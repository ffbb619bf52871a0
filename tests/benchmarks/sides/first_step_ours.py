"""The training of first_step.py as an asset: the config is in the file that FIRST_STEP_CONFIG names."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

from marin_assets import THIS_OUTPUT_PATH, Step
from marin_assets.assets.assemble import assemble
from marin_assets.plan.experiments_folder import Experiments
from marin_assets.stages.train.train_lm import train_lm
from marin_resources.wire.config_json import decode

given = decode(json.loads(Path(os.environ["FIRST_STEP_CONFIG"]).read_text()))
config = dataclasses.replace(given, output_path=THIS_OUTPUT_PATH)
step = Step(name=f"checkpoints/{os.environ['FIRST_STEP_NAME']}", fn=train_lm, config=config, extras=("train",))
defs = assemble(Experiments({"first_step": (step,)}, {}))
