"""The training of first_step.py, for a code location: the config is in the file that FIRST_STEP_CONFIG names."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

from marin_assets import THIS_OUTPUT_PATH, Step
from marin_assets.stages.train.train_lm import train_lm
from marin_resources.wire.config_json import decode


def training() -> Step:
    given = decode(json.loads(Path(os.environ["FIRST_STEP_CONFIG"]).read_text()))
    config = dataclasses.replace(given, output_path=THIS_OUTPUT_PATH)
    return Step(name=f"checkpoints/{os.environ['FIRST_STEP_NAME']}", fn=train_lm, config=config, extras=("train",))
