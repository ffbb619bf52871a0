"""Runs of OLMo's ladder of models, at ten points each, and the finished 7B-4T and 13B-5T: `olmo_ladder.csv`.

From allenai/OLMo-ladder (Apache-2.0), src/scripts/paper/data/ladder-runs: means of five evaluations, with FLOPs by the
count of its configuration. Four of its tasks, models of 190M to 1.3B at 1, 2, 5 and 10 times 20 tokens a parameter.
"""

from __future__ import annotations

from pathlib import Path

TABLE = str(Path(__file__).with_suffix(".csv"))
TARGETS = ("7B-4T", "13B-5T")
PUBLISHED = {"mmlu": 0.18, "hellaswag_val": -1.17, "arc_challenge_test": 9.44, "arc_easy_test": 15.98}
"""Task -> error of the loss of 13B-5T in percent, as Bhagia et al. 2024 (arXiv:2412.04403) print it."""
SCORES = {"mmlu": (0.516, -3.2), "hellaswag_val": (0.832, 3.1), "arc_challenge_test": (0.638, -20.6),
          "arc_easy_test": (0.872, -12.5)}  # fmt: skip
"""Task -> accuracy of 13B-5T, and the error in percent of another program's forecast from the same table."""
