"""Real text to an evaluated model: the running Python's own documentation, a nano Llama, a report.

python -m marin_assets.experiments.quickstart            about two minutes on two cores; again, nothing is computed
python -m marin_assets.experiments.quickstart --dry-run
"""

from __future__ import annotations

from dataclasses import dataclass

from marin_assets import Expectation, Step, executor_main, expect, output_path_of, this_output_path, versioned
from marin_assets.defaults import default_eval, default_tokenize, default_train
from marin_assets.download.pydoc import PydocConfig, render_pydoc
from marin_assets.evaluate.held_out import HeldOutConfig, make_held_out_set
from marin_assets.report.report import ReportConfig, write_report
from marin_assets.tokenize.train_tokenizer import TrainTokenizerConfig, train_tokenizer
from marin_assets.train.train_lm import LlamaSpec, TrainLmConfig
from marin_assets.transform.html_to_markdown import HtmlToMarkdownConfig, html_to_markdown
from marin_resources.storage.files import exists, join

VALIDATION_FRACTION = 0.08
"""Of the pages. 0.05 leaves 33 pages for the questions, 0.08 leaves 54."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How much of everything. "tiny" is what tests share: the same way, in seconds."""

    modules: int | None
    vocab_size: int
    train_steps: int
    questions: int
    shards: int
    at_least_pages: int
    at_most_loss_ratio: float
    at_least_accuracy: float


FULL = Scale(
    modules=None,
    vocab_size=4096,
    train_steps=400,
    questions=500,
    shards=8,
    at_least_pages=500,
    at_most_loss_ratio=0.6,
    at_least_accuracy=0.35,
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
)
SCALES = {"full": FULL, "tiny": TINY}


def steps(scale: str = "full") -> list[Step]:
    """The whole way at a scale, "full" or "tiny"."""
    size = SCALES[scale]
    name = "quickstart" if scale == "full" else f"quickstart-{scale}"
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
        expectations=[expect("loss_ratio", at_most=size.at_most_loss_ratio), expect("head_dim", at_least=32)],
    )
    held_out = Step(
        name=f"held_out/{name}",
        fn=make_held_out_set,
        config=HeldOutConfig(
            documents_path=output_path_of(documents),
            validation_fraction=versioned(VALIDATION_FRACTION),
            questions=versioned(size.questions),
        ),
        resumable=True,
        expectations=[expect("questions", at_least=size.questions)],
    )
    scores = default_eval(
        model,
        held_out=held_out,
        expectations=[expect("acc_mutual_info_lower95", at_least=size.at_least_accuracy)],
    )
    made = {
        "pages": pages,
        "documents": documents,
        "tokenizer": tokenizer,
        "tokens": tokens,
        "model": model,
        "held-out set": held_out,
        "scores": scores,
    }
    return [*made.values(), report(name, made)]


def report(name: str, made: dict[str, Step]) -> Step:
    """One page about all of it."""
    expectations: dict[str, list[Expectation]] = {label: list(step.expectations) for label, step in made.items()}
    return Step(
        name=f"report/{name}",
        fn=write_report,
        config=ReportConfig(
            inputs={label: output_path_of(step) for label, step in made.items()},
            output_path=this_output_path(),
            title=versioned(f"{name}: real text to an evaluated model"),
            expectations=expectations,
        ),
        extras=("evaluate",),
        expectations=[expect("mismatches", at_most=0), expect("expectations_failed", at_most=0)],
    )


if __name__ == "__main__":
    page = join(executor_main(steps()).get("report/quickstart", ""), "report.html")
    if exists(page):  # not with --dry-run, --run-only
        print(f"report: {page}")
