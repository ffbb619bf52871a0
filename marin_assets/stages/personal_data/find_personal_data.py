"""Find personal data and secrets in documents: attributes with their spans, for audits and to reject documents.

In:  documents.
Out: attributes, shard for shard; value is the number of matches.

    {"id": "…", "keep": true, "reason": "", "value": 2, "spans": [["email", 17, 35], ["ipv4", 80, 88]]}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from marin_assets.documents import document_files, document_shards, read_documents
from marin_assets.documents.attributes import Decision, write_decisions
from marin_assets.stages.personal_data.matches import FINEWEB, PersonalDataError, check_kinds, find_matches
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import map_shards


@dataclass(frozen=True, kw_only=True)
class FindPersonalDataConfig:
    documents_path: str
    """Documents to search."""
    output_path: str = THIS_OUTPUT_PATH
    kinds: Sequence[str] = versioned(FINEWEB)
    """Some of "email", "ipv4", "ipv6", "phone", "card", "iban", "secret"."""
    phone_regions: Sequence[str] = versioned(())
    """Countries whose phone numbers are found without a country code, such as "US". Empty: those with one alone."""
    at_most: int | None = versioned(None)
    """Reject documents with more matches. None: keep all, and count."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def find_personal_data(config: FindPersonalDataConfig) -> dict[str, int | float]:
    """Find the matches of each document.

    Returns documents, kept, rejected, rejected_personal_data, documents_with_matches, and matches_<kind> of each kind.
    Raises PersonalDataError.
    """
    _check(config)
    documents = document_files(config.documents_path)
    shards = document_shards(documents, config.output_path, config)
    counts = map_shards(find_in_shard, shards, output_path=config.output_path)
    return {**counts, **documents.counts}


def _check(config: FindPersonalDataConfig) -> None:
    check_kinds(config.kinds, config.phone_regions)
    if config.at_most is not None and (type(config.at_most) is not int or config.at_most < 0):
        raise PersonalDataError(f"at_most is {config.at_most!r:.80}, expected a whole number from 0, or None to count.")


def find_in_shard(shard: FileShard) -> Mapping[str, int | float]:
    """Write the attributes of each file of documents."""
    config: FindPersonalDataConfig = shard.config
    counts: Counter[str] = Counter(documents=0, kept=0, rejected=0, documents_with_matches=0)
    counts.update({f"matches_{kind}": 0 for kind in config.kinds})
    for file, target in zip(shard.inputs, shard.outputs, strict=True):
        write_decisions(target, _decisions(file.path, config, counts), counts)
    return dict(counts)


def _decisions(path: str, config: FindPersonalDataConfig, counts: Counter[str]) -> Iterator[tuple[str, Decision]]:
    for document in read_documents(path):
        matches = find_matches(document.text, config.kinds, config.phone_regions)
        counts["documents_with_matches"] += bool(matches)
        counts.update(f"matches_{match.kind}" for match in matches)
        keep = config.at_most is None or len(matches) <= config.at_most
        spans = [[match.kind, match.start, match.end] for match in matches]
        fields = {"spans": spans} if spans else None
        yield document.id, Decision(keep, "" if keep else "personal_data", len(matches), fields=fields)
