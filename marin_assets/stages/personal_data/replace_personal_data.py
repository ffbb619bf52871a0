"""Replace personal data and secrets in the texts of documents.

In:  documents.
Out: documents, shard for shard, with the same ids and metadata; `matches.py` has the replacements.

`find_personal_data` finds the same matches, with their spans in the texts before.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from marin_assets.documents import Document, document_files, document_shards, read_documents, write_documents
from marin_assets.stages.personal_data.matches import FINEWEB, check_kinds, find_matches, replaced
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import map_shards


@dataclass(frozen=True, kw_only=True)
class ReplacePersonalDataConfig:
    documents_path: str
    """Documents to rewrite."""
    output_path: str = THIS_OUTPUT_PATH
    kinds: Sequence[str] = versioned(FINEWEB)
    """Some of "email", "ipv4", "ipv6", "phone", "card", "iban", "secret"."""
    phone_regions: Sequence[str] = versioned(())
    """Countries whose phone numbers are found without a country code, such as "US". Empty: those with one alone."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def replace_personal_data(config: ReplacePersonalDataConfig) -> dict[str, int | float]:
    """Write the documents with a replacement for each match.

    Returns documents, documents_changed, characters_in, characters_out, and matches_<kind> of each kind. Raises
    PersonalDataError.
    """
    _check(config)
    documents = document_files(config.documents_path)
    shards = document_shards(documents, config.output_path, config)
    counts = map_shards(replace_in_shard, shards, output_path=config.output_path)
    return {**counts, **documents.counts}


def _check(config: ReplacePersonalDataConfig) -> None:
    check_kinds(config.kinds, config.phone_regions)


def replace_in_shard(shard: FileShard) -> Mapping[str, int | float]:
    """Write each file of documents with replacements."""
    config: ReplacePersonalDataConfig = shard.config
    counts: Counter[str] = Counter(documents=0, documents_changed=0, characters_in=0, characters_out=0)
    counts.update({f"matches_{kind}": 0 for kind in config.kinds})
    for file, target in zip(shard.inputs, shard.outputs, strict=True):
        write_documents(target, _documents(file.path, config, counts), replace=False)
    return dict(counts)


def _documents(path: str, config: ReplacePersonalDataConfig, counts: Counter[str]) -> Iterator[Document]:
    for document in read_documents(path):
        matches = find_matches(document.text, config.kinds, config.phone_regions)
        text = replaced(document.text, matches)
        counts.update(documents=1, documents_changed=bool(matches))
        counts.update(characters_in=len(document.text), characters_out=len(text))
        counts.update(f"matches_{match.kind}" for match in matches)
        yield dataclasses.replace(document, text=text) if matches else document
