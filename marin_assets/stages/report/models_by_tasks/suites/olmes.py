"""OLMES (Gu et al. 2024, arXiv 2406.08446): ten tasks, each in a cloze and a multiple-choice form at five shots.

The cloze form scores the text of each choice by the normalization that OLMES selected for the task: by characters
(lm-eval's acc_norm), by the likelihood without the question (acc_mutual_info), or none (acc). The multiple-choice form
scores the letters of choices that the question lists. The better form is the score of the task.
"""

from __future__ import annotations

from marin_assets.stages.report.models_by_tasks.suites.suite import Form, Part, Suite

SHOTS = 5
CLOZE_METRICS = {
    "arc_challenge": "acc_mutual_info",
    "arc_easy": "acc_norm",
    "boolq": "acc",
    "csqa": "acc_mutual_info",
    "hellaswag": "acc_norm",
    "mmlu": "acc_norm",
    "openbookqa": "acc_mutual_info",
    "piqa": "acc_norm",
    "social_iqa": "acc_norm",
    "winogrande": "acc",
}
"""Task -> the metric of its cloze form."""

OLMES = Suite(
    name="OLMES_TASKS",
    parts=tuple(
        Part(
            name=task,
            forms=(
                Form(task=f"olmes_{task}_cloze", shots=SHOTS, metric=metric),
                Form(task=f"olmes_{task}_choice", shots=SHOTS),
            ),
        )
        for task, metric in CLOZE_METRICS.items()
    ),
)
