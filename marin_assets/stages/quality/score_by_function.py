"""Score documents by a function of one's own: attributes with its number, and "low_score" below a threshold.

In:  documents, and a model of any kind, if the function needs one.
Out: attributes, shard for shard; value is the number that the function returned. More keys of a row are as returned.

The function is named, as "module:function". It is called once for each group of shards, with the model's path and the
settings, and returns the scorer: a function of a list of texts that returns a number for each, or a mapping with
"value" and other keys. A scorer whose number depends on the other texts of its list makes scores that depend on the
shards.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from marin_assets.documents import Document, document_files, document_shards, read_documents
from marin_assets.documents.attributes import Decision, write_decisions
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import FileShard, folder_state
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards
from marin_resources.types.errors import MarinError
from marin_resources.wire.reference import UnimportableError, load

RESERVED = ("id", "keep", "reason", "cut")
"""Keys of a row that the stage writes."""
Scorer = Callable[[list[str]], Sequence[float | Mapping[str, Any]]]


class ScorerError(MarinError, ValueError):
    """A function that cannot be used, or did not return a number for each text."""


@dataclass(frozen=True, kw_only=True)
class ScoreByFunctionConfig:
    documents_path: str
    function: str
    """The function that returns the scorer, as "module:function"; versioned(). Its code is not in the version."""
    model_path: str | None = None
    """Anything that the function reads, such as a folder with a model; passed to it as `model_path`."""
    settings: Mapping[str, Any] = versioned({})
    """More arguments of the function, by name."""
    output_path: str = THIS_OUTPUT_PATH
    batch: int = 64
    """Texts that the scorer gets at once."""
    at_least: float | None = versioned(None)
    """Keep documents with at least this number. None: keep all, and choose a threshold in `consolidate`."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def score_by_function(config: ScoreByFunctionConfig) -> dict[str, int | float]:
    """Score every document.

    Returns documents, kept, rejected, and rejected_low_score with a threshold. Raises ScorerError if the function
    cannot be imported; for what it returns, as a ShardError.
    """
    _check(config)
    function_named(config.function)
    documents = document_files(config.documents_path)
    model = [] if config.model_path is None else [folder_state(config.model_path)]
    shards = document_shards(documents, config.output_path, config, also_read=model)
    counts = map_shards(score_shard, shards, output_path=config.output_path)
    low = {} if config.at_least is None else {"rejected_low_score": 0}
    return {**low, **counts, **documents.counts}


def _check(config: ScoreByFunctionConfig) -> None:
    module, _, name = config.function.rpartition(":") if isinstance(config.function, str) else ("", "", "")
    if not module or not name:
        raise ScorerError(f"function is {config.function!r:.80}, expected 'module:function', such as 'scorers:length'.")
    if type(config.batch) is not int or config.batch < 1:
        raise ScorerError(f"batch is {config.batch!r:.80}, expected a whole number above 0.")
    if config.at_least is not None and not _is_number(config.at_least):
        raise ScorerError(f"at_least is {config.at_least!r:.80}, expected a number, or None to keep all.")
    if "model_path" in config.settings:
        raise ScorerError("settings has 'model_path', which the function gets from the config. Pass it as model_path.")


def function_named(reference: str) -> Callable[..., Scorer]:
    """Return the function of "module:function". Raises ScorerError if it cannot be imported."""
    try:
        function = load(reference)
    except (ImportError, UnimportableError, ValueError) as error:
        raise ScorerError(
            f"function is {reference!r}, which cannot be imported ({error}). Name a function at the top level of a "
            "module that workers have."
        ) from error
    if not callable(function):
        raise ScorerError(f"function is {reference!r}, which is no function but {function!r:.60}. Name a function.")
    return function


def score_shard(shard: FileShard) -> Counts:
    """Write the attributes of each file of documents."""
    config: ScoreByFunctionConfig = shard.config
    scorer = function_named(config.function)(model_path=config.model_path, **config.settings)
    if not callable(scorer):
        raise ScorerError(
            f"{config.function!r} returned {scorer!r:.60}, expected a function of a list of texts that returns their "
            "numbers."
        )
    counts: Counter[str] = Counter(documents=0, kept=0, rejected=0)
    for file, target in zip(shard.inputs, shard.outputs, strict=True):
        write_decisions(target, _decisions(read_documents(file.path), scorer, config), counts)
    return dict(counts)


def _decisions(
    documents: Iterator[Document], scorer: Scorer, config: ScoreByFunctionConfig
) -> Iterator[tuple[str, Decision]]:
    while batch := list(islice(documents, config.batch)):
        scores = list(scorer([document.text for document in batch]))
        if len(scores) != len(batch):
            raise ScorerError(
                f"{config.function!r} returned {len(scores)} numbers for {len(batch)} texts, expected one for each."
            )
        for document, score in zip(batch, scores, strict=True):
            yield document.id, _decision(score, document.id, config)


def _decision(score: float | Mapping[str, Any], id: str, config: ScoreByFunctionConfig) -> Decision:
    fields = {key: value for key, value in score.items() if key != "value"} if isinstance(score, Mapping) else None
    value = score.get("value") if isinstance(score, Mapping) else score
    if not _is_number(value):
        raise ScorerError(
            f"{config.function!r} returned {score!r:.80} for document {id!r}, expected a finite number, or a mapping "
            "with one as 'value'."
        )
    assert value is not None  # it is a number
    if fields and (reserved := [key for key in RESERVED if key in fields]):
        raise ScorerError(f"{config.function!r} returned the key {reserved[0]!r} for document {id!r}. Rename it.")
    number = float(value)  # of numpy, too
    keep = config.at_least is None or number >= config.at_least
    return Decision(keep=keep, reason="" if keep else "low_score", value=number, fields=fields)


def _is_number(value: Any) -> bool:
    """Whether this is a finite number, of Python or numpy."""
    return not isinstance(value, bool) and hasattr(value, "__float__") and math.isfinite(value)
