"""From real text to an evaluated model: the running Python's own documentation, curated; a nano Llama; a report.

python -m marin_assets.experiments.quickstart            about two minutes on two cores; a second run computes nothing
python -m marin_assets.experiments.quickstart --dry-run
python -m marin_assets.experiments.quickstart --scale tiny    the same steps on a few pages; about a minute
MARIN_CLUSTER=… python -m marin_assets.experiments.quickstart --tpu v4-16     the training on a slice of a TPU pod
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets import (
    Expectation,
    Step,
    executor_main,
    expect,
    output_path_of,
    step_group,
    this_output_path,
    versioned,
)
from marin_assets.defaults import default_eval, default_tokenize, default_train
from marin_assets.stages.consolidate.consolidate import Applied, ConsolidateConfig, consolidate
from marin_assets.stages.decontaminate.find_contamination import FindContaminationConfig, find_contamination
from marin_assets.stages.dedup.decide_near_duplicates import DecideNearDuplicatesConfig, decide_near_duplicates
from marin_assets.stages.dedup.exact_documents import ExactDuplicatesConfig, exact_duplicates
from marin_assets.stages.dedup.exact_paragraphs import DuplicateParagraphsConfig, duplicate_paragraphs
from marin_assets.stages.dedup.near_duplicates import FindNearDuplicatesConfig, find_near_duplicates
from marin_assets.stages.download.pydoc import PydocConfig, render_pydoc
from marin_assets.stages.evaluate.generate_text import GenerateTextConfig, generate_text
from marin_assets.stages.evaluate.held_out import HeldOutConfig, make_held_out_set
from marin_assets.stages.filter.filter_documents import FilterDocumentsConfig, filter_documents
from marin_assets.stages.filter.registry import named
from marin_assets.stages.quality.label_pydoc import LabelPydocConfig, label_pydoc
from marin_assets.stages.quality.score_quality import ScoreQualityConfig, score_quality
from marin_assets.stages.quality.train_fasttext import TrainFastTextConfig, train_fasttext
from marin_assets.stages.report.report import ReportConfig, write_report
from marin_assets.stages.tokenize.train_tokenizer import TrainTokenizerConfig, train_tokenizer
from marin_assets.stages.train.train_lm import LlamaSpec, TrainLmConfig
from marin_assets.stages.transform.html_to_markdown import HtmlToMarkdownConfig, html_to_markdown
from marin_resources.hardware.resources import ResourceError, Resources, tpu
from marin_resources.storage.files import exists
from marin_resources.storage.paths import join

VALIDATION_FRACTION = 0.08
"""Share of the pages. Their consolidated documents give more than 500 questions."""
AT_LEAST_PROSE = 0.7
"""Least probability that a document is prose and not a listing of names; see docs/reference/quality.md."""
PROMPTS = ("Return the ", "The following example shows ", "A function is ", "If the file does not exist, ")
"""Texts for the model to continue, in the words of its corpus."""
NOTHING_LOST = (
    expect("documents_unaccounted", at_least=0, at_most=0),
    expect("bytes_unaccounted", at_least=0, at_most=0),
)


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Sizes and bounds of the experiment. "tiny" has the same steps and takes seconds; tests share it."""

    modules: int | None
    vocab_size: int
    train_steps: int
    questions: int
    shards: int
    at_least_pages: int
    at_most_loss_ratio: float
    at_least_accuracy: float
    at_least_quality: float
    """Bound of the classifier's accuracy_lower95."""


FULL = Scale(
    modules=None,
    vocab_size=4096,
    train_steps=600,
    questions=500,
    shards=8,
    at_least_pages=500,
    at_most_loss_ratio=0.6,
    at_least_accuracy=0.35,
    at_least_quality=0.95,
)
TINY = Scale(
    modules=60,
    vocab_size=512,
    train_steps=20,
    questions=40,
    shards=2,
    at_least_pages=50,
    at_most_loss_ratio=0.95,
    at_least_accuracy=0.0,
    at_least_quality=0.9,
)
SCALES = {"full": FULL, "tiny": TINY}


def steps(scale: str = "full", *, train_on: Resources | None = None) -> list[Step]:
    """Return all steps at a scale, "full" or "tiny". `train_on`: resources of the training; a CPU if None."""
    size = SCALES[scale]
    name = "quickstart" if scale == "full" else f"quickstart-{scale}"
    with step_group("documents"):
        by_label = document_steps(name, size)
    with step_group("filters"):
        by_label |= filter_steps(name, by_label["documents"], by_label["tokenizer"], size)
    with step_group("decontamination"):
        by_label |= decontamination_steps(name, by_label["selected"], by_label["tokenizer"], size)
    with step_group("model"):
        held_out = by_label["held-out set"]
        by_label |= model_steps(name, by_label["clean"], by_label["tokenizer"], held_out, size, train_on)
        return [*by_label.values(), report(name, by_label)]


def document_steps(name: str, size: Scale) -> dict[str, Step]:
    """Return the steps of pages, documents and tokenizer. The tokenizer does not depend on the curation."""
    pages = Step(
        name=f"raw/{name}",
        fn=render_pydoc,
        config=PydocConfig(shards=versioned(size.shards), max_modules=versioned(size.modules)),
        resumable=True,
        expectations=[expect("pages", at_least=size.at_least_pages)],
    )
    documents = Step(
        name=f"documents/{name}",
        fn=html_to_markdown,
        config=HtmlToMarkdownConfig(pages_path=output_path_of(pages)),
        extras=("curate",),
        resumable=True,
        expectations=[expect("markup_left", at_most=0), expect("pages_unaccounted", at_least=0, at_most=0)],
    )
    tokenizer = Step(
        name=f"tokenizers/{name}",
        fn=train_tokenizer,
        config=TrainTokenizerConfig(
            documents_path=output_path_of(documents),
            vocab_size=versioned(size.vocab_size),
            validation_fraction=versioned(VALIDATION_FRACTION),
        ),
        extras=("curate",),
        expectations=[expect("roundtrip_failures", at_most=0)],
    )
    return {"pages": pages, "documents": documents, "tokenizer": tokenizer}


def filter_steps(name: str, documents: Step, tokenizer: Step, size: Scale) -> dict[str, Step]:
    """Return the steps that decide about documents, and the one that selects by all their decisions."""
    exact = attributes(name, "exact_duplicates", exact_duplicates, ExactDuplicatesConfig, documents)
    clusters = Step(
        name=f"clusters/{name}",
        fn=find_near_duplicates,
        config=FindNearDuplicatesConfig(documents_path=output_path_of(documents)),
        extras=("curate",),
        resumable=True,
    )
    near = attributes(
        name,
        "near_duplicates",
        decide_near_duplicates,
        DecideNearDuplicatesConfig,
        documents,
        clusters_path=output_path_of(clusters),
        keep=versioned("longest"),
    )
    repetition = attributes(
        name,
        "repetition",
        filter_documents,
        FilterDocumentsConfig,
        documents,
        filters=[named("gopher_repetition@reference")],
        words=versioned("fast"),  # its thresholds were set with these words
    )
    examples = Step(
        name=f"examples/{name}",
        fn=label_pydoc,
        config=LabelPydocConfig(documents_path=output_path_of(documents)),
        extras=("curate",),
        resumable=True,
    )
    classifier = Step(
        name=f"classifiers/{name}",
        fn=train_fasttext,
        config=TrainFastTextConfig(
            examples={label: output_path_of(examples, label) for label in ("positive", "negative")},
            validation_fraction=versioned(0.25),
        ),
        extras=("curate",),
        resumable=True,
        expectations=[expect("accuracy_lower95", at_least=size.at_least_quality)],
    )
    quality = attributes(
        name,
        "quality",
        score_quality,
        ScoreQualityConfig,
        documents,
        model_path=output_path_of(classifier),
        at_least=versioned(AT_LEAST_PROSE),
    )
    applied = {"exact_duplicates": exact, "near_duplicates": near, "repetition": repetition, "quality": quality}
    selected = consolidation(f"selected/{name}", documents, applied, tokenizer, [expect("kept_share", at_least=0.3)])
    return {
        "exact duplicates": exact,
        "clusters": clusters,
        "near duplicates": near,
        "repetition": repetition,
        "examples": examples,
        "classifier": classifier,
        "quality": quality,
        "selected": selected,
    }


def decontamination_steps(name: str, selected: Step, tokenizer: Step, size: Scale) -> dict[str, Step]:
    """Return the steps that hold questions out, and remove the training documents that have them.

    Duplicate paragraphs are those of the selected documents: else a paragraph is lost if the first document with it was
    rejected.
    """
    paragraphs = attributes(name, "duplicate_paragraphs", duplicate_paragraphs, DuplicateParagraphsConfig, selected)
    consolidated = consolidation(f"consolidated/{name}", selected, {"duplicate_paragraphs": paragraphs}, tokenizer)
    held_out = Step(
        name=f"held_out/{name}",
        fn=make_held_out_set,
        config=HeldOutConfig(
            documents_path=output_path_of(consolidated),
            validation_fraction=versioned(VALIDATION_FRACTION),
            questions=versioned(size.questions),
        ),
        resumable=True,
        expectations=[expect("questions", at_least=size.questions)],
    )
    contamination = find_questions(name, "contamination", consolidated, held_out, ignore_more_than=versioned(10))
    clean = consolidation(f"decontaminated/{name}", consolidated, {"contamination": contamination}, tokenizer)
    remaining = find_questions(
        name,
        "contamination_left",
        clean,
        held_out,
        ignored_path=output_path_of(contamination),
        expectations=[expect("questions_contaminated", at_most=0)],
    )
    return {
        "duplicate paragraphs": paragraphs,
        "consolidated": consolidated,
        "held-out set": held_out,
        "contamination": contamination,
        "clean": clean,
        "contamination left": remaining,
    }


def attributes(
    name: str, kind: str, fn: Any, config: Any, documents: Step, expectations: Sequence[Expectation] = (), **fields: Any
) -> Step:
    """Return a step that decides about documents."""
    return Step(
        name=f"attributes/{name}/{kind}",
        fn=fn,
        config=config(documents_path=output_path_of(documents), **fields),
        extras=("curate",),
        resumable=True,
        expectations=expectations,
    )


def consolidation(
    name: str,
    documents: Step,
    applied: Mapping[str, Step],
    tokenizer: Step,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return a step that applies attributes to documents, and counts kept and removed tokens with the tokenizer."""
    return Step(
        name=name,
        fn=consolidate,
        config=ConsolidateConfig(
            documents_path=output_path_of(documents),
            attributes=[Applied(name=kind, path=output_path_of(step)) for kind, step in applied.items()],
            tokenizer_path=output_path_of(tokenizer),
        ),
        extras=("curate",),
        resumable=True,
        expectations=[*NOTHING_LOST, *expectations],
    )


def find_questions(name: str, kind: str, documents: Step, held_out: Step, **fields: Any) -> Step:
    """Return a step that finds the training documents with a question of the evaluation."""
    return attributes(
        name,
        kind,
        find_contamination,
        FindContaminationConfig,
        documents,
        evaluations={"held_out": output_path_of(held_out, "questions.jsonl")},
        validation_fraction=versioned(VALIDATION_FRACTION),
        **fields,
    )


def model_steps(
    name: str, documents: Step, tokenizer: Step, held_out: Step, size: Scale, train_on: Resources | None
) -> dict[str, Step]:
    """Return the steps of tokens, model, scores and generated text."""
    tokens = default_tokenize(
        name,
        documents,
        tokenizer,
        validation_fraction=VALIDATION_FRACTION,
        expectations=[expect("split_overlap", at_most=0), expect("token_mismatches", at_most=0)],
    )
    model = default_train(
        name,
        {"pydoc": tokens},
        LlamaSpec(),
        TrainLmConfig(
            components={},
            tokenizer_path=output_path_of(tokenizer),
            num_train_steps=versioned(size.train_steps),
            steps_per_checkpoint=max(size.train_steps // 8, 1),
            steps_per_eval=max(size.train_steps // 4, 1),
        ),
        resources=train_on,
        expectations=[expect("loss_ratio", at_most=size.at_most_loss_ratio), expect("head_dim", at_least=32)],
    )
    scores = default_eval(
        model,
        held_out=held_out,
        expectations=[expect("acc_mutual_info_lower95", at_least=size.at_least_accuracy)],
    )
    generated = Step(
        name=f"generated/{name}",
        fn=generate_text,
        config=GenerateTextConfig(model_path=output_path_of(model, "hf"), prompts=versioned(PROMPTS)),
        extras=("train",),
        expectations=[expect("prompts", at_least=len(PROMPTS))],
    )
    return {"tokens": tokens, "model": model, "scores": scores, "generated text": generated}


def report(name: str, by_label: dict[str, Step]) -> Step:
    """Return the step that reports all others on one page."""
    expectations: dict[str, list[Expectation]] = {label: list(step.expectations) for label, step in by_label.items()}
    return Step(
        name=f"report/{name}",
        fn=write_report,
        config=ReportConfig(
            inputs={label: output_path_of(step) for label, step in by_label.items()},
            output_path=this_output_path(),
            title=versioned(f"{name}: real text to an evaluated model"),
            expectations=expectations,
        ),
        extras=("evaluate",),
        expectations=[expect("mismatches", at_most=0), expect("expectations_failed", at_most=0)],
    )


def take_options() -> list[Step]:
    """Take `--scale` and `--tpu` off the command line, and return the steps; the rest is that of executor_main."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--scale", choices=SCALES, default="full")
    parser.add_argument("--tpu", metavar="TYPE")
    options, sys.argv[1:] = parser.parse_known_args()
    try:
        return steps(options.scale, train_on=None if options.tpu is None else tpu(options.tpu))
    except ResourceError as error:
        parser.error(str(error))


if __name__ == "__main__":
    paths = executor_main(take_options())
    page = join(next((path for name, path in paths.items() if name.startswith("report/")), ""), "report.html")
    if exists(page):  # False with --dry-run or --run-only
        print(f"report: {page}")
