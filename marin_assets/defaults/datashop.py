"""Create the steps that filter a corpus by a model's scores of a sample (Marin's datashop)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from marin_assets.defaults.environment import curated, extras_on
from marin_assets.defaults.generation import default_generation
from marin_assets.inference.engine import Endpoint, Engine
from marin_assets.stages.consolidate.consolidate import Applied, ConsolidateConfig, consolidate
from marin_assets.stages.generate.label_by_answers import NEGATIVE, POSITIVE, LabelByAnswersConfig, label_by_answers
from marin_assets.stages.quality.score_quality import ScoreQualityConfig, score_quality
from marin_assets.stages.quality.train_fasttext import TrainFastTextConfig, train_fasttext
from marin_assets.stages.sample.sample_documents import SampleDocumentsConfig, sample_documents
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import expect
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, InputName, output_path_of, versioned
from marin_resources.hardware.resources import Resources, cpu


@dataclass(frozen=True, kw_only=True)
class Datashop:
    """The steps of a filter by a model's scores, in their order."""

    sample: Step
    """The documents that the model scores."""
    answers: Step
    labels: Step
    classifier: Step
    """The classifier; the result has its agreement with the model on held-out documents: precision, recall and
    accuracy, with bounds; `agreement.html` has documents to read."""
    scored: Step
    """Attributes of the whole corpus."""
    kept: Step
    """The documents of the corpus that the classifier keeps."""

    @property
    def steps(self) -> tuple[Step, ...]:
        return (self.sample, self.answers, self.labels, self.classifier, self.scored, self.kept)


@checks_arguments("engine")
def default_datashop(
    name: str,
    corpus: Step | InputName,
    model: Step | InputName | None,
    prompt: str,
    *,
    sample: int,
    keep_fraction: float | None = None,
    at_least: float | None = None,
    scores: tuple[int, int] = (0, 5),
    positive_from: int = 3,
    pattern: str | None = None,
    max_tokens: int = 16,
    validation_fraction: float = 0.2,
    precision_at_least: float | None = None,
    recall_at_least: float | None = None,
    epochs: int = 5,
    learning_rate: float = 0.1,
    encoder: Step | InputName | None = None,
    chat: bool = False,
    engine: Engine | Endpoint | None = None,
    resources: Resources | None = None,
) -> Datashop:
    """Return the steps that filter a corpus by a rubric: a model scores a sample of it, a classifier learns from that,
    and scores all of it.

    `prompt` is a template with {text} that requests a score between those of `scores`. A grammar finds it in the
    answer (`stages/generate/rating.py`), or the regular expression `pattern`. Documents with a score of at least
    `positive_from` are positive. Of the corpus, the documents with a probability of `at_least` are kept, or a share of
    `keep_fraction`: pass one of them. `precision_at_least` and `recall_at_least` are checks on the classifier's
    precision and recall of the rarer label on held-out documents, on the lower bounds of their 95 % intervals. `epochs`
    and `learning_rate` are those of fastText: a small sample wants more of both. With `encoder`, the folder of an
    encoder such as BERT, the classifier is a linear head on it, which has no use for the two; `resources` are also
    those of its training. Raises ConfigError.
    """
    if encoder is not None and (epochs, learning_rate) != (5, 0.1):
        raise ConfigError(
            f"default_datashop got epochs={epochs!r} and learning_rate={learning_rate!r} with an encoder, expected "
            "neither: they are those of fastText. Leave them out."
        )
    sampled = Step(
        name=f"samples/{name}",
        fn=sample_documents,
        config=SampleDocumentsConfig(documents_path=output_path_of(corpus), count=versioned(sample)),
        resumable=True,
    )
    answers = default_generation(
        name, sampled, model, prompt, max_tokens=max_tokens, chat=chat, engine=engine, resources=resources
    )
    labels = Step(
        name=f"labels/{name}",
        fn=label_by_answers,
        config=LabelByAnswersConfig(
            documents_path=output_path_of(sampled),
            answers_path=output_path_of(answers),
            pattern=versioned(pattern),
            lowest=versioned(scores[0]),
            highest=versioned(scores[1]),
            positive_from=versioned(positive_from),
        ),
        resumable=True,
    )
    examples: dict[str, Any] = {label: output_path_of(labels, label) for label in (POSITIVE, NEGATIVE)}
    fraction = versioned(validation_fraction)
    limits = {"rare_precision_lower95": precision_at_least, "rare_recall_lower95": recall_at_least}
    expectations = [expect(name, at_least=limit) for name, limit in limits.items() if limit is not None]
    scoring: dict[str, Any] = {
        "documents_path": output_path_of(corpus),
        "label": versioned(POSITIVE),
        "at_least": versioned(at_least),
        "keep_fraction": versioned(keep_fraction),
    }
    if encoder is None:
        classifier = curated(
            f"classifiers/{name}",
            train_fasttext,
            TrainFastTextConfig(
                examples=examples,
                validation_fraction=fraction,
                epochs=versioned(epochs),
                learning_rate=versioned(learning_rate),
            ),
            expectations=expectations,
        )
        scored = curated(
            f"attributes/{name}/datashop",
            score_quality,
            ScoreQualityConfig(model_path=output_path_of(classifier), **scoring),
        )
    else:
        # Late, as few datashops have an encoder.
        from marin_assets.stages.quality.score_by_encoder import ScoreByEncoderConfig, score_by_encoder
        from marin_assets.stages.quality.train_encoder import TrainEncoderConfig, train_encoder

        classifier = Step(
            name=f"classifiers/{name}",
            fn=train_encoder,
            config=TrainEncoderConfig(
                encoder_path=output_path_of(encoder), examples=examples, validation_fraction=fraction
            ),
            resources=resources or cpu(),
            extras=extras_on(resources, "curate", "train"),
            resumable=True,
            expectations=expectations,
        )
        scored = Step(
            name=f"attributes/{name}/datashop",
            fn=score_by_encoder,
            config=ScoreByEncoderConfig(model_path=output_path_of(classifier), **scoring),
            extras=("curate", "train"),
            resumable=True,
        )
    kept = curated(
        f"datashop/{name}",
        consolidate,
        ConsolidateConfig(
            documents_path=output_path_of(corpus),
            attributes=[Applied(name="datashop", path=output_path_of(scored))],
        ),
    )
    return Datashop(sample=sampled, answers=answers, labels=labels, classifier=classifier, scored=scored, kept=kept)
