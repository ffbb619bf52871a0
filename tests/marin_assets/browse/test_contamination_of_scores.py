"""Where people look at a score, they see how many of its questions the training data hold, or why nobody knows."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from browser_server import Browser, browsing
from counted_reads import counted_reads
from stored_evaluations import choice_row, store_evaluation
from stored_outputs_for_browsing import store_output

from marin_assets.documents import Document, write_documents, write_rows
from marin_assets.stages.decontaminate.contaminated_scores import ContaminatedScoresConfig, score_contaminated
from marin_assets.stages.decontaminate.find_contamination import FindContaminationConfig, find_contamination
from marin_assets.stages.evaluate.scores import COLUMNS
from marin_assets.step.values import unwrap_versioned_value

TRAIN = "marin_assets.stages.train.train_lm:train_lm"
RNG = random.Random(0)
WORDS = sorted({"".join(RNG.choices("abcdefghijklmnop", k=6)) for _ in range(2000)})
TEXTS = [" ".join(RNG.sample(WORDS, 20)) for _ in range(10)]
"""Questions 0 to 5 are of the task "rivers", the others of "hills"."""
PLACES = [("rivers", number) for number in range(6)] + [("hills", number) for number in range(4)]
