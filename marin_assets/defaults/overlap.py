"""Create the steps that find the questions of evaluations in corpora, and the page that compares the corpora."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from marin_assets.stages.decontaminate.find_contamination import FindContaminationConfig, find_contamination
from marin_assets.stages.report.overlap import OverlapConfig, report_overlap
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.step import Step
from marin_assets.step.values import InputName, output_path_of, versioned


@checks_arguments()
def default_overlap(
    name: str,
    corpora: Mapping[str, Step | InputName | str],
    evaluations: Mapping[str, Step | InputName | str],
    *,
    fields: Mapping[str, Sequence[str]] | None = None,
    ngram: int = 13,
    min_share: float = 0.0,
    examples: int = 10,
) -> Step:
    """Return the step "overlap/<name>": a page with the questions of evaluations that occur in corpora of documents.

    It reads a step "overlap/<name>/<corpus>" for each corpus, whose attributes also decontaminate it. A question occurs
    if a document has an n-gram of `ngram` words of it, and at least `min_share` of its n-grams. `corpora` are
    documents, `evaluations` rows of questions: steps or paths. `fields` are the text fields of questions that are not
    {"ctx", "choices", "gold"}.
    """
    paths = {label: output_path_of(of) if isinstance(of, Step) else of for label, of in evaluations.items()}
    searched = {
        corpus: Step(
            name=f"overlap/{name}/{corpus}",
            fn=find_contamination,
            config=FindContaminationConfig(
                documents_path=output_path_of(documents) if isinstance(documents, Step) else documents,
                evaluations=paths,
                fields=versioned({label: list(of) for label, of in (fields or {}).items()}),
                ngram=versioned(ngram),
                min_ngram=versioned(min(ngram, 8)),
                min_share=versioned(min_share),
            ),
            extras=("curate",),
            resumable=True,
        )
        for corpus, documents in corpora.items()
    }
    return Step(
        name=f"overlap/{name}",
        fn=report_overlap,
        config=OverlapConfig(
            contaminations={corpus: output_path_of(step) for corpus, step in searched.items()},
            examples=versioned(examples),
        ),
    )
