"""Marin's core tasks with their baselines: accuracies by chance.

Baselines are those of DCLM's `eval/eval_meta_data.csv` of September 2025 ("version 2"), but for two tasks, of which
DCLM evaluates another copy: agieval_lsat_ar and commonsense_qa have five choices for each question in lm-eval, and the
baselines 0.25 and 0.403 in DCLM. Of BoolQ, 0.62 is the share of the commoner answer. The metric of a task is normalized
by length where lm-eval has that, as DCLM compares the mean log-likelihoods of tokens.
"""

from __future__ import annotations

from marin_assets.stages.report.models_by_tasks.suites.suite import Form, Part, Suite


def _part(task: str, shots: int, metric: str, baseline: float, name: str | None = None) -> Part:
    return Part(name=name or task, forms=(Form(task=task, shots=shots, metric=metric),), baseline=baseline)


CORE = Suite(
    name="CORE_TASKS",
    parts=(
        _part("agieval_lsat_ar", 3, "acc_norm", 0.2),
        _part("arc_easy", 10, "acc_norm", 0.25),
        _part("arc_challenge", 10, "acc_norm", 0.25),
        _part("boolq", 10, "acc", 0.62),
        _part("commonsense_qa", 10, "acc", 0.2),
        _part("copa", 0, "acc", 0.5),
        _part("hellaswag", 0, "acc_norm", 0.25, "hellaswag_0shot"),
        _part("hellaswag", 10, "acc_norm", 0.25, "hellaswag_10shot"),
        _part("lambada_openai", 0, "acc", 0.0),
        _part("openbookqa", 0, "acc_norm", 0.25),
        _part("piqa", 10, "acc_norm", 0.5),
        _part("wsc273", 0, "acc", 0.5),
        _part("winogrande", 0, "acc", 0.5),
    ),
    centered=True,
)
CORE_PLUS_MMLU = Suite(
    name="CORE_TASKS_PLUS_MMLU",
    parts=(
        *CORE.parts,
        _part("mmlu", 0, "acc", 0.25, "mmlu_0shot"),
        _part("mmlu", 5, "acc", 0.25, "mmlu_5shot"),
    ),
    centered=True,
)
