"""Suites of tasks as data, with the number of solved examples (shots) of each, by Marin's names.

Tasks and shots are those of Marin's experiments/evals/task_configs.py; the core tasks are a part of those on page 43 of
the DCLM paper (Li et al. 2024, arXiv 2406.11794), the generation tasks are set as for OLMo 2.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EvalTask:
    """A task or group of lm-eval."""

    name: str
    num_fewshot: int | None = None
    """Solved examples before each question; None: the task's own number."""
    alias: str | None = None
    """Label of its scores; None: its name. A task at two numbers of shots needs one."""

    @property
    def label(self) -> str:
        return self.alias or self.name


def runs_programs(name: str) -> bool:
    """Whether a task of these suites runs the programs that the model writes. Of other tasks lm-eval's index knows."""
    return name.startswith(("humaneval", "mbpp"))


def splits_answers(name: str) -> bool:
    """Whether a task of these suites splits answers into sentences and words, by nltk."""
    return name in ("ifeval", "leaderboard_ifeval")


def _shots(shots: int, *names: str) -> tuple[EvalTask, ...]:
    return tuple(EvalTask(name, shots) for name in names)


CORE_TASKS = (
    EvalTask("agieval_lsat_ar", 3),
    *_shots(10, "arc_easy", "arc_challenge", "boolq", "commonsense_qa"),
    EvalTask("copa", 0),
    EvalTask("hellaswag", 0, "hellaswag_0shot"),
    EvalTask("hellaswag", 10, "hellaswag_10shot"),
    *_shots(0, "lambada_openai", "openbookqa"),
    EvalTask("piqa", 10),
    *_shots(0, "wsc273", "winogrande"),
)
MMLU_TASKS = (EvalTask("mmlu", 0, "mmlu_0shot"), EvalTask("mmlu", 5, "mmlu_5shot"))
CORE_TASKS_PLUS_MMLU = CORE_TASKS + MMLU_TASKS
KEY_MULTIPLE_CHOICE_TASKS = (*MMLU_TASKS, EvalTask("truthfulqa_mc2", 6, "truthqa"))
BASE_GENERATION_TASKS = (EvalTask("bbh_cot_fewshot", 3), EvalTask("gsm8k_cot", 8), *_shots(0, "nq_open", "triviaqa"))
KEY_GENERATION_TASKS = (
    EvalTask("ifeval", 0),
    EvalTask("gsm8k_cot", 8),
    EvalTask("drop", 0),
    EvalTask("humaneval", 10),
    EvalTask("bbh_cot_fewshot", 3, "bbh"),
    EvalTask("minerva_math", 4, "math_4shot"),
)
"""Tasks for models after SFT, too."""
OPEN_LM_LEADERBOARD_MCQ = (
    EvalTask("leaderboard_bbh", 3, "lb_bbh_3shot"),
    EvalTask("leaderboard_mmlu_pro", 5, "lb_mmlu_pro_5shot"),
    EvalTask("leaderboard_gpqa", 0, "lb_gpqa_0shot"),
    EvalTask("leaderboard_musr", 0, "lb_musr_0shot"),
)
OPEN_LM_LEADERBOARD_GEN = (
    EvalTask("leaderboard_ifeval", 0, "lb_ifeval_0shot"),
    EvalTask("leaderboard_math_hard", 4, "lb_math_4shot"),
)
OLMES_TASKS = _shots(
    5,
    *(
        f"olmes_{task}_{form}"
        for task in (
            *("arc_challenge", "arc_easy", "boolq", "csqa", "hellaswag"),
            *("mmlu", "openbookqa", "piqa", "social_iqa", "winogrande"),
        )
        for form in ("cloze", "choice")
    ),
)
"""Ten tasks, each in two forms of which the better counts (Gu et al. 2024, arXiv 2406.08446): `tasks/olmes`."""
MEDICAL_TASKS = tuple(EvalTask(name, 0, f"{name}_0shot") for name in ("pubmedqa", "medmcqa", "headqa_en"))
