"""Write questions about facts that are hidden in long contexts, at given lengths and depths, as tasks of lm-eval.

In:  documents, whose texts are the haystack; a tokenizer, by which contexts have their lengths.
Out: a folder that `include_path` of an evaluation reads: for each form and length `needle_<form>_<length>.yaml` and
     `.jsonl`, and `needles.yaml`, the group of all.

Forms are those of RULER (`forms.py`). A context, the token before it and the room for the answer have `length` tokens
at most, and as many as whole pieces of text allow. The same documents, tokenizer and config give the same questions.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from marin_assets.documents.caches.tokens import token_counter
from marin_assets.stages.evaluate.jsonl import write_jsonl
from marin_assets.stages.evaluate.tasks.needles.forms import ANSWER_TOKENS, COMMON, COMMON_WORDS, FORMS
from marin_assets.stages.evaluate.tasks.needles.haystack import NeedleError, read_haystack
from marin_assets.stages.evaluate.tasks.needles.questions import Writer
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join
from marin_resources.types.near_names import expected_one_of

KINDS = ("jsonl",)

GROUP = "needles"
LEAST_LENGTH = 64
"""Tokens: less has no room for the shortest question."""
TASK = """task: {task}
dataset_path: json
dataset_kwargs: {{data_files: {{test: $HERE/{task}.jsonl}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{prompt}}}}"
doc_to_target: "{{{{answers | join(', ')}}}}"
process_results: !function marin_assets.stages.evaluate.tasks.needles.scoring.share_of_answers
generation_kwargs: {{max_gen_toks: {answer_tokens}, until: ["\\n\\n"], do_sample: false}}
num_fewshot: 0
metric_list:
  - {{metric: acc, aggregation: mean, higher_is_better: true}}
metadata: {{version: 1.0}}
"""
ALL = """group: {group}
task: {tasks}
aggregate_metric_list:
  - {{metric: acc, aggregation: mean, weight_by_size: true}}
"""


@dataclass(frozen=True, kw_only=True)
class NeedlesConfig:
    documents_path: str
    tokenizer_path: str
    """A folder with the `tokenizer.json` of the models that will be evaluated."""
    output_path: str = THIS_OUTPUT_PATH
    lengths: tuple[int, ...] = versioned((1024, 2048, 4096))
    """Lengths of contexts in tokens, with the room for the answer."""
    depths: tuple[float, ...] = versioned((0.0, 0.25, 0.5, 0.75, 1.0))
    """Places of the requested needle in the haystack, from 0 (in front) to 1 (at the end)."""
    forms: tuple[str, ...] = versioned(FORMS)
    questions: int = versioned(10)
    """Questions of each form, length and depth. A form without a depth has as many as one with all depths."""
    seed: int = versioned(0)

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def write_needles(config: NeedlesConfig) -> dict[str, Any]:
    """Write the questions.

    Returns questions, tasks, documents, duplicates (documents with the text of an earlier one, left out) and tokens (by
    length: of the shortest and the longest question). Raises NeedleError for a setting that cannot be, too few
    documents, and a length with too little room for a form.
    """
    _check(config)
    count_tokens = token_counter(config.tokenizer_path)
    haystack = read_haystack(config.documents_path, count_tokens, longest=max(config.lengths))
    words = tuple(haystack.words) if COMMON in config.forms else ()
    if COMMON in config.forms and len(words) < 2 * COMMON_WORDS:
        raise NeedleError(
            f"The documents have {len(words)} different words of 3 to 10 lower-case letters, expected "
            f"{2 * COMMON_WORDS} at least. Pass more documents, or leave the form 'common' out."
        )
    writer = Writer(haystack=haystack, words=words, count_tokens=count_tokens, seed=config.seed)
    tasks: list[str] = []
    tokens: dict[str, list[int]] = {str(length): [] for length in config.lengths}
    for form in config.forms:
        for length in config.lengths:
            task = f"needle_{form}_{length}"
            rows = list(writer.questions(form, length, config.depths, config.questions))
            write_jsonl(join(config.output_path, f"{task}.jsonl"), rows)
            yaml = TASK.format(task=task, answer_tokens=ANSWER_TOKENS[form])
            write_bytes(join(config.output_path, f"{task}.yaml"), yaml.encode())
            tokens[str(length)] += [row["tokens"] + ANSWER_TOKENS[form] for row in rows]
            tasks.append(task)
    write_bytes(join(config.output_path, f"{GROUP}.yaml"), ALL.format(group=GROUP, tasks=json.dumps(tasks)).encode())
    return {
        "questions": sum(map(len, tokens.values())),
        "tasks": len(tasks),
        "documents": haystack.documents,
        "duplicates": haystack.duplicates,
        "tokens": {length: {"least": min(of), "most": max(of)} for length, of in tokens.items()},
    }


def _check(config: NeedlesConfig) -> None:
    for name in ("lengths", "depths", "forms"):
        values = getattr(config, name)
        if not values or len(set(values)) < len(values):
            raise NeedleError(f"Needles have the {name} {tuple(values)}, expected one at least, and each once.")
    for form in config.forms:
        if form not in FORMS:
            raise NeedleError(f"Needles have the form {form!r}, {expected_one_of(form, FORMS)}")
    for length in config.lengths:
        if type(length) is not int or length < LEAST_LENGTH:
            raise NeedleError(f"Needles have the length {length!r}, expected {LEAST_LENGTH} tokens or more.")
    for depth in config.depths:
        if not (math.isfinite(depth) and 0 <= depth <= 1):
            raise NeedleError(
                f"Needles have the depth {depth!r}, expected a share from 0 (in front) to 1 (at the end)."
            )
    if config.questions < 1:
        raise NeedleError(f"Needles have {config.questions} questions of each depth, expected 1 at least.")
