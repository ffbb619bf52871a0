"""A mirror folder with rows that nobody wrote, for every task of lm-eval that is in a suite: in the schema of its data
set, and in its splits. A maker takes the number of the row, and the settings of the task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 12
"""Rows of a split: ten solved examples at most, none of them the question itself."""
SPLITS = ("training_split", "validation_split", "test_split", "fewshot_split")
LETTERS = "ABCDE"

Settings = Mapping[str, Any]


def options(n: int, of: int = 4) -> list[str]:
    return [f"thing {n + k}" for k in range(of)]


def lettered(n: int, of: int = 4, key: str = "answerKey") -> dict[str, Any]:
    return {"choices": {"text": options(n, of), "label": list(LETTERS[:of])}, key: LETTERS[n % of]}


def math(n: int, _: Settings) -> dict[str, Any]:
    return {
        "problem": f"Add {n} and {n}.",
        "level": f"Level {5 - n % 2}",
        "type": "Algebra",
        "solution": f"It is $\\boxed{{{2 * n}}}$.",
    }


def big_bench(n: int, task: Settings) -> dict[str, Any]:
    choices = task.get("doc_to_choice", ["three"])
    return {"input": f"Which of {n} things? Options: {choices}", "target": choices[n % len(choices)]}


def instructed(n: int, _: Settings) -> dict[str, Any]:
    """Each row has other instructions; those of languages, sentences and capital words need data of packages."""
    kinds: tuple[tuple[str, dict[str, Any]], ...] = (
        ("language:response_language", {"language": "en"}),
        ("length_constraints:number_sentences", {"num_sentences": 3, "relation": "at least"}),
        ("change_case:capital_word_frequency", {"capital_frequency": 2, "capital_relation": "at least"}),
        ("change_case:english_capital", {}),
        ("punctuation:no_comma", {}),
    )
    names = {name for _, arguments in kinds for name in arguments}
    used = [kinds[n % 5], kinds[(n + 1) % 5]]
    return {
        "key": n,
        "prompt": f"Write about {n} things.",
        "instruction_id_list": [kind for kind, _ in used],
        "kwargs": [{name: arguments.get(name) for name in sorted(names)} for _, arguments in used],
    }


def drop(n: int, _: Settings) -> dict[str, Any]:
    no_date = {"day": "", "month": "", "year": ""}
    answers = (
        {"number": str(n), "date": no_date, "spans": []},
        {"number": "", "date": no_date, "spans": [f"thing {n}", "other"]},
        {"number": "", "date": {"day": "4", "month": "May", "year": str(1900 + n)}, "spans": []},
    )
    answer = answers[n % 3]
    return {
        "query_id": str(n),
        "passage": f"Of {n} things one was other.",
        "question": "How many?",
        "answer": {**answer, "hit_id": "", "worker_id": ""},
        "validated_answers": {key: [answer[key]] * 2 for key in answer},
    }


def program(n: int, _: Settings) -> dict[str, Any]:
    return {
        "task_id": f"HumanEval/{n}",
        "prompt": f'def add_{n}(x: int) -> int:\n    """Add {n}."""\n',
        "entry_point": f"add_{n}",
        "canonical_solution": f"    return x + {n}\n",
        "test": f"def check(candidate):\n    assert candidate(1) == {n + 1}\n",
    }


def super_glue(n: int, task: Settings) -> dict[str, Any]:
    return {
        "passage": f"Passage {n}.",
        "question": f"does it have {n} words",
        "label": n % 2,
        "idx": n,
        "premise": "The file was opened.",
        "choice1": f"It was read {n} times.",
        "choice2": "It was closed.",
        **({"question": ("cause", "effect")[n % 2]} if task["dataset_name"] == "copa" else {}),
    }


def murder(n: int, _: Settings) -> dict[str, Any]:
    answer = n % 2
    choices = [f"Ann {n}", f"Bob {n}"]
    return {
        "narrative": f"There were {n} of them.",
        "question": "Who did it?",
        "choices": repr(choices),
        "answer_index": answer,
        "answer_choice": choices[answer],
    }


def winograd(n: int, _: Settings) -> dict[str, Any]:
    text = f"The file did not fit into the {n} folders because it was too large."
    return {
        "text": text,
        "pronoun": "it",
        "pronoun_loc": text.index(" it ") + 1,
        "quote": "it",
        "quote_loc": 0,
        "options": ["The file", "The folders"],
        "label": n % 2,
        "source": "made",
    }


MAKERS: dict[str, Callable[[int, Settings], dict[str, Any]]] = {
    "hails/agieval-lsat-ar": lambda n, _: {"query": f"Q: {n}? A:", "choices": options(n, 5), "gold": [n % 5]},
    "allenai/ai2_arc": lambda n, _: {"id": str(n), "question": f"Which of {n}?", **lettered(n)},
    "aps/super_glue": super_glue,
    "tau/commonsense_qa": lambda n, _: {"id": str(n), "question": f"Which of {n}?", **lettered(n, 5)},
    "Rowan/hellaswag": lambda n, _: {
        "activity_label": "Reading",
        "ctx_a": f"A file of {n} lines is open.",
        "ctx_b": "a reader",
        "endings": [f"reads [x] {option}." for option in options(n)],
        "label": str(n % 4),
    },
    "EleutherAI/lambada_openai": lambda n, _: {"text": f"A reader of {n} files opened one more file"},
    "allenai/openbookqa": lambda n, _: {"id": str(n), "question_stem": f"A file of {n} lines", **lettered(n)},
    "lighteval/siqa": lambda n, _: {
        "context": f"Ann read {n} lines.",
        "question": "What will Ann do next?",
        **dict(zip(("answerA", "answerB", "answerC"), options(n, 3), strict=True)),
        "label": str(n % 3 + 1),
    },
    "baber/piqa": lambda n, _: {"goal": f"open {n}", "sol1": f"read {n}", "sol2": "close it", "label": n % 2},
    "lighteval/winograd_wsc": winograd,
    "allenai/winogrande": lambda n, _: {
        "sentence": f"The file had {n} lines, so _ was long.",
        "option1": "file",
        "option2": "line",
        "answer": str(n % 2 + 1),
    },
    "cais/mmlu": lambda n, task: {
        "question": f"Which of {n} in {task['dataset_name']}?",
        "subject": task["dataset_name"],
        "choices": options(n),
        "answer": n % 4,
    },
    "truthfulqa/truthful_qa": lambda n, _: {
        "question": f"What of {n}?",
        "mc1_targets": {"choices": options(n), "labels": [1, 0, 0, 0]},
        "mc2_targets": {"choices": options(n), "labels": [1, 1, 0, 0]},
    },
    "SaylorTwift/bbh": big_bench,
    "openai/gsm8k": lambda n, _: {"question": f"What is {n} + {n}?", "answer": f"It is {2 * n}.\n#### {2 * n}"},
    "google-research-datasets/nq_open": lambda n, _: {"question": f"what is {n}", "answer": [f"thing {n}", "it"]},
    "mandarjoshi/trivia_qa": lambda n, _: {
        "question": f"What is {n}?",
        "question_id": str(n),
        "answer": {"value": f"thing {n}", "aliases": options(n)},
    },
    "google/IFEval": instructed,
    "wis-k/instruction-following-eval": instructed,
    "EleutherAI/drop": drop,
    "openai/openai_humaneval": program,
    "google-research-datasets/mbpp": lambda n, _: {
        "task_id": n,
        "text": f"Write a function that adds {n}.",
        "code": f"def add(x):\n    return x + {n}",
        "test_list": [f"assert add({x}) == {n + x}" for x in range(3)],
    },
    "EleutherAI/hendrycks_math": math,
    "DigitalLearningGmbH/MATH-lighteval": math,
    "TIGER-Lab/MMLU-Pro": lambda n, _: {
        "question_id": n,
        "question": f"Which of {n}?",
        "options": options(n, 10 - n % 3),
        "answer": LETTERS[n % 5],
        "answer_index": n % 5,
        "category": "other",
    },
    "Idavidrein/gpqa": lambda n, _: {
        "Question": f"Which of {n}?",
        "Correct Answer": f"thing {n}",
        **{f"Incorrect Answer {k}": f"thing {n + k} [x]" for k in (1, 2, 3)},
    },
    "TAUR-Lab/MuSR": murder,
    "bigbio/pubmed_qa": lambda n, _: {
        "QUESTION": f"Is it {n}?",
        "CONTEXTS": [f"There were {n}.", "They were counted."],
        "final_decision": ("yes", "no", "maybe")[n % 3],
    },
    "openlifescienceai/medmcqa": lambda n, _: {
        "question": f"Which of {n}?",
        **dict(zip(("opa", "opb", "opc", "opd"), options(n), strict=True)),
        "cop": n % 4,
    },
    "EleutherAI/headqa": lambda n, _: {
        "qid": n,
        "qtext": f"Which of {n}?",
        "ra": n % 4 + 1,
        "answers": [{"aid": k + 1, "atext": text} for k, text in enumerate(options(n))],
    },
}


def write_suite_mirror(folder: Path, tasks: Iterable[Settings]) -> None:
    """Write the data sets of tasks, and those of nltk."""
    for task in sorted(tasks, key=lambda task: "doc_to_choice" in task):  # for the choices, where two tasks share data
        data_set = folder / task["dataset_path"] / (task.get("dataset_name") or "default")
        for split in dict.fromkeys(task[kind] for kind in SPLITS if task.get(kind)):
            rows = [MAKERS[task["dataset_path"]](n, task) for n in range(ROWS)]
            data_set.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.Table.from_pylist(rows), data_set / f"{split}.parquet")
    write_sentence_data(folder / "nltk_data")


def write_sentence_data(folder: Path) -> None:
    """Write nltk's data for the sentences of English, learned from Python's help."""
    from pydoc_data.topics import topics

    import nltk
    from nltk.tokenize.punkt import PunktTrainer, save_punkt_params

    trainer = PunktTrainer()
    trainer.train("\n".join(topics.values())[:200_000], finalize=True)
    (folder / "tokenizers/punkt_tab").mkdir(parents=True)
    paths = nltk.data.path
    nltk.data.path = [str(folder), *paths]  # nltk writes below these alone
    try:
        save_punkt_params(trainer.get_params(), str(folder / "tokenizers/punkt_tab/english"))
    finally:
        nltk.data.path = paths


def tasks_in(manager: Any, name: str) -> Iterator[dict[str, Any]]:
    """The settings of each task of a task, group or tag of lm-eval."""
    entry = manager.task_index[name]
    members = (entry.cfg or {}).get("task", sorted(entry.tags))
    if isinstance(members, list):
        for member in members:
            if isinstance(member, dict):  # of a group whose tasks differ in a few settings
                yield {**entry.cfg, **member, "task": f"{name}::{member['task']}"}
            else:
                yield from tasks_in(manager, member)
    else:
        yield entry.cfg
