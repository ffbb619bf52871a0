"""Create the steps that find the questions of an evaluation in the documents that its model was trained on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from marin_assets.stages.decontaminate.contaminated_scores import (
    EVALUATION,
    QUESTIONS,
    ContaminatedScoresConfig,
    score_contaminated,
)
from marin_assets.stages.decontaminate.find_contamination import FindContaminationConfig, find_contamination
from marin_assets.stages.evaluate.lm_eval_config import LmEvalConfig
from marin_assets.stages.evaluate.suites import EvalTask
from marin_assets.stages.evaluate.task_questions import TaskQuestionsConfig, write_task_questions
from marin_assets.stages.tokenize.tokenize import TokenizeConfig
from marin_assets.stages.train.config import TrainLmConfig
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation
from marin_assets.step.step import Step
from marin_assets.step.values import (
    ConfigError,
    InputName,
    InputPartitions,
    output_path_of,
    unwrap_versioned_value,
    versioned,
)


@checks_arguments()
def default_questions(
    name: str,
    evals: Sequence[str | EvalTask],
    *,
    held_out: Step | InputName | None = None,
    include_path: Step | InputName | str | None = None,
    mirror: Step | InputName | str | None = None,
) -> Step:
    """Return the step "questions/<name>": the questions of tasks of lm-eval as text, to find them in documents.

    The arguments are those of `default_eval`. `find_contamination` reads its `questions.jsonl` with the field "text",
    so the tasks can be removed from documents before a model exists.
    """
    config = TaskQuestionsConfig(
        tasks=versioned(tuple(evals)),
        held_out_path=None if held_out is None else output_path_of(held_out),
        include_path=include_path if include_path is None else _path(include_path),
        mirror_path=mirror if mirror is None or isinstance(mirror, str) else output_path_of(mirror),
    )
    return _questions(name, config)


@checks_arguments()
def default_contamination(
    evaluation: Step,
    *,
    training_documents: Mapping[str, Step | InputName | str] | None = None,
    validation_fraction: float | None = None,
    questions: Step | None = None,
    ngram: int = 13,
    min_share: float = 0.0,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "contamination/<name of the evaluation>": which questions of a `default_eval` the training data
    hold, and the scores with and without them.

    The documents are those that were tokenized for the evaluated model and for the models it continues, each searched
    by a step "searched/<questions>/<set>"; documents held out from training are not searched. `training_documents` are
    others in their place, by name, of which the side `validation_fraction` was held out. `questions`, of
    `default_questions`, are shared by the evaluations of several models, so each set is searched once for all of them.
    `ngram` and `min_share` are the rule of `find_contamination`. Raises ConfigError for what is no evaluation, and for
    a model whose training data are not on record.
    """
    config = evaluation.config
    if not isinstance(config, LmEvalConfig) or evaluation.partitions is not None:
        raise ConfigError(
            f"default_contamination got the step {evaluation.name!r}, expected one of default_eval, without partitions."
        )
    subject = evaluation.name.removeprefix("evaluation/")
    if questions is None:
        same = ("tasks", "held_out_path", "include_path", "use_hub", "mirror_path", "num_fewshot")
        questions = _questions(subject, TaskQuestionsConfig(**{name: getattr(config, name) for name in same}))
    if training_documents is None:
        data = training_data_of(evaluation)
    else:
        fraction = versioned(validation_fraction)
        data = TrainingData(documents={name: (_path(of), fraction) for name, of in training_documents.items()})
    searched = {
        name: Step(
            name=f"searched/{questions.name.removeprefix('questions/')}/{_segment(name)}",
            fn=find_contamination,
            config=FindContaminationConfig(
                documents_path=documents,
                evaluations={EVALUATION: output_path_of(questions, QUESTIONS)},
                fields=versioned({EVALUATION: ["text"]}),
                validation_fraction=held_out,
                ngram=versioned(ngram),
                min_ngram=versioned(min(ngram, 8)),
                min_share=versioned(min_share),
            ),
            extras=("curate",),
            resumable=True,
        )
        for name, (documents, held_out) in data.documents.items()
    }
    return Step(
        name=f"contamination/{subject}",
        fn=score_contaminated,
        config=ContaminatedScoresConfig(
            evaluation_path=output_path_of(evaluation),
            questions_path=output_path_of(questions),
            searched={name: output_path_of(step) for name, step in searched.items()},
            not_searched=versioned(tuple(dict.fromkeys(data.not_searched))),
        ),
        extras=("curate",),
        expectations=expectations,
    )


def _questions(name: str, config: TaskQuestionsConfig) -> Step:
    return Step(name=f"questions/{name}", fn=write_task_questions, config=config, extras=("evaluate",))


def _path(of: Step | InputName | str) -> Any:
    return of if isinstance(of, str) else output_path_of(of)


def _segment(name: str) -> str:
    """The name of a set as a part of the name of a step."""
    return re.sub(r"[^A-Za-z0-9._=,+@/-]", "_", name)


@dataclass(kw_only=True)
class TrainingData:
    """The data that a model was trained on, by the recipe."""

    documents: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    """Name of the tokenized set -> path of its documents, and the fraction of them that is held out."""
    not_searched: list[str] = field(default_factory=list)
    """The data that cannot be searched: sets that are no documents, and models from elsewhere."""


def is_from_elsewhere(evaluation: Step) -> bool:
    """Whether the evaluated model is of no training here, so that its training data are not on record."""
    config = evaluation.config
    model = _step_of(getattr(config, "model_path", None))
    return hasattr(config, "model_path") and not (model is not None and isinstance(model.config, TrainLmConfig))


def training_data_of(evaluation: Step) -> TrainingData:
    """Return the documents that the evaluated model was trained on. Raises ConfigError if they are not on record."""
    model = _step_of(evaluation.config.model_path)
    if model is None or not isinstance(model.config, TrainLmConfig):
        raise ConfigError(
            f"The model of {evaluation.name!r} is no output of a training here, so its training data are not on "
            "record. Pass training_documents={name: documents}, if you have them."
        )
    data = TrainingData()
    trainings, seen = [model], {model}
    while trainings:
        training = trainings.pop()
        for step in _trained_on(training.config):
            _add_sets(step, data)
        start = training.config.start
        place = getattr(start, "checkpoints_path", None) or getattr(start, "path", None)
        if place is None:
            continue
        before = _step_of(place)
        if before is None or not isinstance(before.config, TrainLmConfig):
            data.not_searched.append(f"the training data of {_name_of(place)}, which are not on record")
        elif before not in seen:
            seen.add(before)
            trainings.append(before)
    if not data.documents:
        raise ConfigError(
            f"The model of {evaluation.name!r} was trained on no documents of default_tokenize, but on "
            f"{'; '.join(data.not_searched) or 'paths'}. Pass training_documents={{name: documents}}."
        )
    return data


def _step_of(path: Any) -> Step | None:
    step = path.step if isinstance(path, InputName | InputPartitions) else None
    return step if isinstance(step, Step) else None


def _name_of(path: Any) -> str:
    step = _step_of(path)
    return step.name if step is not None else str(getattr(path, "name", path))


def _trained_on(config: TrainLmConfig) -> Iterator[Any]:
    """The sets that have a weight: others are validated on."""
    if config.mixture is not None:
        plain = unwrap_versioned_value(config.mixture.weights)
        phases = [plain] if isinstance(plain, Mapping) else [weights for _, weights in plain]
        drawn = {name for weights in phases for name, weight in weights.items() if weight}
        for name, member in config.mixture.components.items():
            if name in drawn:
                yield from member.values() if isinstance(member, Mapping) else (member,)
        return
    weights = unwrap_versioned_value(config.train_weights)
    yield from (path for name, path in config.components.items() if weights is None or weights.get(name))


def _add_sets(path: Any, data: TrainingData) -> None:
    """Add the documents of a tokenized set; of a snapshot or of partitions the name alone."""
    step = _step_of(path)
    if step is not None and isinstance(step.config, TokenizeConfig) and step.partitions is None:
        held_out = unwrap_versioned_value(step.config.validation_fraction) or None
        data.documents[step.name.removeprefix("tokenized/")] = (step.config.documents_path, versioned(held_out))
    else:
        data.not_searched.append(_name_of(path))
