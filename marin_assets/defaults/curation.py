"""Create the steps that judge documents: attributes "attributes/<name>/<kind>", and the documents that are left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from marin_assets.defaults.environment import curated
from marin_assets.stages.consolidate.attribute_spec import Applied
from marin_assets.stages.consolidate.consolidate import ConsolidateConfig, consolidate
from marin_assets.stages.dedup.decide_near_duplicates import DecideNearDuplicatesConfig, decide_near_duplicates
from marin_assets.stages.dedup.minhash import FINEWEB, MinHash
from marin_assets.stages.dedup.near_duplicates import FindNearDuplicatesConfig, find_near_duplicates
from marin_assets.stages.filter.filter_documents import FilterDocumentsConfig, filter_documents
from marin_assets.stages.filter.registry import FilterSpec
from marin_assets.stages.language.identify_language import IdentifyLanguageConfig, identify_language
from marin_assets.stages.personal_data.matches import FINEWEB as FINEWEB_KINDS
from marin_assets.stages.personal_data.replace_personal_data import ReplacePersonalDataConfig, replace_personal_data
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation, expect
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, InputName, output_path_of, versioned

ALL_COUNTED = (expect("documents_unaccounted", at_least=0, at_most=0),)


@checks_arguments("documents")
def default_filters(
    name: str,
    documents: Step | InputName,
    filters: Sequence[FilterSpec],
    *,
    words: str = "spacy",
    language: str = "english",
    url_lists: Step | InputName | str | None = None,
) -> Step:
    """Return the step "attributes/<name>/filters": each document kept, or rejected by the first filter that does.

    `filters` are built by `named`, or all of a corpus: fineweb_filters(), dclm_filters(), fineweb2_filters("deu_Latn").
    `words` splits words: "spacy" as datatrove does, "fast" or "script". `url_lists` has the lists of filters "url".
    """
    lists = {} if url_lists is None else {"url_lists_path": _path(url_lists)}
    config = FilterDocumentsConfig(
        documents_path=output_path_of(documents),
        filters=list(filters),
        words=versioned(words),
        language=versioned(language),
        **lists,
    )
    return curated(f"attributes/{name}/filters", filter_documents, config)


@checks_arguments("documents")
def default_languages(
    name: str,
    documents: Step | InputName,
    languages: Sequence[str] = (),
    *,
    at_least: float = 0.65,
    thresholds: Mapping[str, float] | None = None,
) -> Step:
    """Return the step "attributes/<name>/language": documents in these languages, with at least this score, are kept.

    Without `languages`, all are kept that have the score. `thresholds` are scores of single languages.
    """
    config = IdentifyLanguageConfig(
        documents_path=output_path_of(documents),
        languages=versioned(tuple(languages)),
        at_least=versioned(at_least),
        thresholds=versioned(dict(thresholds or {})),
    )
    return curated(f"attributes/{name}/language", identify_language, config, extras=("curate", "language"))


@checks_arguments("documents")
def default_near_duplicates(
    name: str, documents: Step | InputName, *, minhash: MinHash = FINEWEB, keep: str = "first"
) -> Step:
    """Return the step "attributes/<name>/near_duplicates", which keeps one document of each of "clusters/<name>".

    `keep` chooses it: "first", "longest" or "highest".
    """
    clusters = curated(
        f"clusters/{name}",
        find_near_duplicates,
        FindNearDuplicatesConfig(documents_path=output_path_of(documents), minhash=versioned(minhash)),
    )
    config = DecideNearDuplicatesConfig(
        documents_path=output_path_of(documents), clusters_path=output_path_of(clusters), keep=versioned(keep)
    )
    return curated(f"attributes/{name}/near_duplicates", decide_near_duplicates, config)


@checks_arguments("documents")
def default_consolidate(
    name: str,
    documents: Step | InputName,
    attributes: Mapping[str, Step | InputName] | Sequence[Applied],
    *,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step `name`: the documents that all attributes keep, without what these cut.

    `attributes` are steps by the name that reasons and counts have, or Applied(…), which has thresholds; they apply in
    this order. The step fails if a document is neither kept nor rejected for a reason.
    """
    applied = (
        [Applied(name=kind, path=output_path_of(step)) for kind, step in attributes.items()]
        if isinstance(attributes, Mapping)
        else list(attributes)
    )
    for attribute in applied:
        if not isinstance(attribute, Applied):
            raise ConfigError(
                f"default_consolidate got {attribute!r:.80} in its attributes, expected Applied(name=…, path=…). Pass "
                'steps by name: {"filters": step}.'
            )
    config = ConsolidateConfig(documents_path=output_path_of(documents), attributes=applied)
    return curated(name, consolidate, config, expectations=(*ALL_COUNTED, *expectations))


@checks_arguments("documents")
def default_personal_data(name: str, documents: Step | InputName, *, kinds: Sequence[str] = FINEWEB_KINDS) -> Step:
    """Return the step "documents/<name>/clean": the documents with a replacement for each match of these kinds.

    Kinds are "email", "ipv4", "ipv6", "phone", "card", "iban" and "secret"; by default FineWeb's.
    """
    config = ReplacePersonalDataConfig(documents_path=output_path_of(documents), kinds=versioned(tuple(kinds)))
    return curated(f"documents/{name}/clean", replace_personal_data, config)


def _path(source: Step | InputName | str) -> Any:
    return versioned(source) if isinstance(source, str) else output_path_of(source)
