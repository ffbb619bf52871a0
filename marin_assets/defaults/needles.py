"""Create the steps that hide facts in long contexts, and map how a model finds them."""

from __future__ import annotations

from collections.abc import Sequence

from marin_assets.stages.evaluate.tasks.needles.forms import FORMS
from marin_assets.stages.evaluate.tasks.needles.map_needles import MapNeedlesConfig, map_needles
from marin_assets.stages.evaluate.tasks.needles.write_needles import NeedlesConfig, write_needles
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation
from marin_assets.step.step import Step
from marin_assets.step.values import InputName, output_path_of, versioned


@checks_arguments()
def default_needles(
    name: str,
    documents: Step | InputName,
    tokenizer: Step | InputName,
    *,
    lengths: Sequence[int] = (1024, 2048, 4096),
    depths: Sequence[float] = (0.0, 0.25, 0.5, 0.75, 1.0),
    forms: Sequence[str] = FORMS,
    questions: int = 10,
    seed: int = 0,
) -> Step:
    """Return the step "questions/<name>/needles": questions about facts hidden in `documents`, as tasks of lm-eval.

    It is the `include_path` of `default_eval(model, ["needles"], include_path=…)`. A context has at most `lengths`
    tokens of `tokenizer`, a folder with a tokenizer.json; `depths` are places of the fact from 0 (in front) to 1 (at
    the end). `forms` are "single", "multikey", "multivalue", "multiquery", "tracking" and "common"; `questions` those
    of each form, length and depth.
    """
    return Step(
        name=f"questions/{name}/needles",
        fn=write_needles,
        config=NeedlesConfig(
            documents_path=output_path_of(documents),
            tokenizer_path=output_path_of(tokenizer),
            lengths=versioned(tuple(lengths)),
            depths=versioned(tuple(float(depth) for depth in depths)),
            forms=versioned(tuple(forms)),
            questions=versioned(questions),
            seed=versioned(seed),
        ),
        extras=("curate",),
    )


@checks_arguments()
def default_needle_map(name: str, needles: Step, evaluation: Step, *, expectations: Sequence[Expectation] = ()) -> Step:
    """Return the step "report/<name>/needles": the accuracy of an evaluation on `needles` by length and depth."""
    return Step(
        name=f"report/{name}/needles",
        fn=map_needles,
        config=MapNeedlesConfig(evaluation_path=output_path_of(evaluation), needles_path=output_path_of(needles)),
        extras=("evaluate",),
        expectations=expectations,
    )
