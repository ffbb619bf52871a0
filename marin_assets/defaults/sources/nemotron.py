"""Create the steps of Nemotron-CC, pages of Common Crawl by quality, and texts that rephrase them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from marin_assets.defaults.downloads import default_download_listed, downloaded_list
from marin_assets.defaults.environment import curated
from marin_assets.stages.transform.ingest import ALL, IngestConfig, ingest
from marin_assets.stages.transform.path_keys import PathKeys
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation
from marin_assets.step.origin import Origin
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, output_path_of, versioned
from marin_resources.types.near_names import expected_one_of

SERVER = "https://data.commoncrawl.org/"
FOLDER = "contrib/Nemotron/Nemotron-CC/data-jsonl"
"""The names of its list begin with this."""
LIST = "data-jsonl.paths.gz"
LIST_STEP = "nemotron_cc-paths"
LICENCE = "Common Crawl terms of use"
ID = "warc_record_id"
PATH_KEYS = PathKeys(
    names=versioned(("quality", "kind", "kind2")), id_key=versioned("kind2"), metadata_prefix=versioned("nemotron_")
)
"""A text that rephrases another one has the same warc_record_id, so an id begins with the kind of the text."""


@dataclass(frozen=True, kw_only=True)
class NemotronSplit:
    """A split, as Marin has it."""

    folders: str
    tebibytes: float
    """Size of Marin's copy, which are its weights in mixtures."""

    @property
    def include(self) -> tuple[str, ...]:
        """The globs of its files."""
        return (f"{FOLDER}/{self.folders}/**/*.jsonl.zstd",)

    @property
    def bytes(self) -> int:
        return round(self.tebibytes * 2**40)


NEMOTRON_SPLITS: Mapping[str, NemotronSplit] = {
    "hq_actual": NemotronSplit(folders="quality=high/kind=actual", tebibytes=0.91351),
    "hq_synth": NemotronSplit(folders="quality=high/kind=synthetic", tebibytes=2.72),
    "medium_high": NemotronSplit(folders="quality=medium-high", tebibytes=0.82471),
    "medium": NemotronSplit(folders="quality=medium", tebibytes=3.38),
    "medium_low": NemotronSplit(folders="quality=medium-low", tebibytes=1.54),
    "low_actual": NemotronSplit(folders="quality=low/kind=actual", tebibytes=0.70123),
    "low_synth": NemotronSplit(folders="quality=low/kind=synthetic", tebibytes=0.62771),
}


@checks_arguments("splits")
def default_nemotron_cc(
    splits: Sequence[str] = tuple(NEMOTRON_SPLITS),
    *,
    max_files: int | None = None,
    base_url: str = SERVER,
    expectations: Sequence[Expectation] = (),
) -> dict[str, Step]:
    """Return the step "documents/nemotron_cc/<split>" by split, each from "raw/nemotron_cc/<split>".

    Splits are Marin's: hq_actual, hq_synth, medium_high, medium, medium_low, low_actual, low_synth. An id is
    "<kind2>/<warc_record_id>"; metadata has the other columns and the folders of the path, as nemotron_<name>. Each
    file of the server becomes one shard. `max_files` takes as many of each split, by the hash of their names. All enter
    the version. Raises ConfigError for an unknown split, with the nearest one.
    """
    if isinstance(splits, str) or not splits:
        raise ConfigError(
            f"default_nemotron_cc got splits={splits!r}, expected a list of {', '.join(map(repr, NEMOTRON_SPLITS))}."
        )
    for split in splits:
        if split not in NEMOTRON_SPLITS:
            raise ConfigError(f"Nemotron-CC has no split {split!r}, {expected_one_of(split, NEMOTRON_SPLITS)}")
    return {split: _documents(split, max_files, base_url, expectations) for split in splits}


def _documents(split: str, max_files: int | None, base_url: str, expectations: Sequence[Expectation]) -> Step:
    name = f"nemotron_cc/{split}"
    base = f"{base_url.rstrip('/')}/"
    raw = default_download_listed(
        name,
        base,
        include=NEMOTRON_SPLITS[split].include,
        list_path=downloaded_list(LIST_STEP, f"{base}{FOLDER}.paths.gz", LIST),
        sample_files=max_files,
        origin=Origin(
            name=name,
            licence=LICENCE,
            bytes=NEMOTRON_SPLITS[split].bytes if max_files is None else None,
            homepage=f"{base}contrib/Nemotron/Nemotron-CC/index.html",
        ),
    )
    return curated(
        f"documents/{name}",
        ingest,
        IngestConfig(
            input_path=output_path_of(raw),
            text_column=versioned("text"),
            id_column=versioned(ID),
            source=versioned(name),
            metadata_columns=versioned(ALL),
            bad_rows=versioned("reject"),
            path_keys=PATH_KEYS,
        ),
        expectations=expectations,
    )
