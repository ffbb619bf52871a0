"""A known data set: where its files are, in which columns its texts are, its licence and its size; and its steps.

An entry is data. `raw()`, `documents()` and `tokenized()` return steps, with the names "raw/<name>", "documents/<name>"
and "tokenized/<name>", and compute nothing.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from marin_assets.defaults.data import default_tokenize
from marin_assets.defaults.downloads import default_download_listed, downloaded_list
from marin_assets.defaults.sources.hub import default_download_hf
from marin_assets.stages.transform.ingest import IngestConfig, ingest
from marin_assets.stages.transform.json_lists import JsonListsConfig, rows_of_json_lists
from marin_assets.stages.transform.path_keys import PathKeys
from marin_assets.step.origin import Origin
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, InputName, output_path_of, versioned
from marin_resources.types.near_names import expected_one_of

D = TypeVar("D")
HUB = "https://huggingface.co/datasets"
COMMIT = re.compile(r"[0-9a-f]{7}|[0-9a-f]{40}")
"""40 digits, or the 7 that Marin writes, which the hub resolves to the same commit."""


@dataclass(frozen=True, kw_only=True)
class HubFiles:
    """Files of the Hugging Face hub at one commit, chosen by globs, or by a config and a split."""

    id: str
    revision: str
    """40 digits, or Marin's 7; "main" for a data set of which no commit is known."""
    globs: tuple[str, ...] = ("**",)
    config_name: str | None = None
    split: str | None = None
    gated: bool = False
    """Whether its conditions must be accepted on its page, so that the download needs HF_TOKEN."""

    @property
    def homepage(self) -> str:
        return f"{HUB}/{self.id}"

    @property
    def pinned(self) -> bool:
        return COMMIT.fullmatch(self.revision) is not None

    def download(self, name: str, origin: Origin | None) -> Step:
        """The step "raw/<name>"."""
        step = default_download_hf(
            name,
            self.id,
            self.revision,
            globs=self.globs,
            config_name=self.config_name,
            split=self.split,
            env=("HF_TOKEN",) if self.gated else (),
        )
        return dataclasses.replace(step, origin=origin)


@dataclass(frozen=True, kw_only=True)
class ListedFiles:
    """Files of a server that lists nothing: by names, or by a file of names that is downloaded first."""

    base: str
    """The address in front of every name."""
    include: tuple[str, ...] = ("**",)
    """Globs of names."""
    names: tuple[str, ...] = ()
    names_at: HubFiles | str | None = None
    """The file of names: one of the hub, or a URL."""
    names_file: str = ""
    """The name of that file in the output of its download."""
    names_step: str = ""
    """Name of the step that downloads it, without "raw/"."""
    homepage: str = ""
    gated: bool = False

    @property
    def pinned(self) -> bool:
        """Whether the names are fixed: in the entry, by a commit of the hub, or by one in the address."""
        at = self.names_at
        return at.pinned if isinstance(at, HubFiles) else bool(self.names)

    @property
    def revision(self) -> str:
        """The commit of the list, or of the address; "" if the server has none."""
        if isinstance(self.names_at, HubFiles):
            return self.names_at.revision
        commit = re.search(r"/([0-9a-f]{40})/", self.base)
        return commit[1] if commit else ""

    def download(self, name: str, origin: Origin | None) -> Step:
        """The step "raw/<name>", and the step of its list before it."""
        at = self.names_at
        listed: InputName | None = None
        if isinstance(at, HubFiles):
            listed = output_path_of(at.download(self.names_step, None), self.names_file)  # a list is no data set
        elif at is not None:
            listed = downloaded_list(self.names_step, at, self.names_file)
        return default_download_listed(
            name, self.base, include=self.include, names=self.names, list_path=listed, origin=origin
        )


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A data set whose files, licence and size are known. What is not known for certain is None."""

    name: str
    """The name of its steps after "raw/", "documents/" and "tokenized/"."""
    files: HubFiles | ListedFiles
    licence: str | None
    """By the identifier of SPDX, if it has one."""
    bytes: int | None = None
    """Size of the files that are downloaded, as published."""
    facts: tuple[str, ...] = ()
    """The source of each fact: a page, or a file of Marin's repository."""
    is_json_lists: bool = False
    """Whether each file is one JSON list, which becomes lines first: the step "rows/<name>"."""

    @cached_property
    def origin(self) -> Origin:
        """The facts that plans and pages show."""
        published = self.files.id if isinstance(self.files, HubFiles) else self.name
        return Origin(name=published, licence=self.licence, bytes=self.bytes, homepage=self.files.homepage or None)

    def raw(self) -> Step:
        """Return the step "raw/<name>", which downloads its files."""
        return self.files.download(self.name, self.origin)

    def rows(self) -> Step:
        """Return the step whose output has its rows: "raw/<name>", or "rows/<name>" for files that are JSON lists."""
        if not self.is_json_lists:
            return self.raw()
        return Step(
            name=f"rows/{self.name}",
            fn=rows_of_json_lists,
            config=JsonListsConfig(input_path=output_path_of(self.raw())),
            extras=("curate",),
            resumable=True,
        )


@dataclass(frozen=True, kw_only=True)
class Corpus(Dataset):
    """A data set of texts."""

    text: str = "text"
    """The column of the text."""
    id: str | None = None
    """The column of ids; None derives them from the texts, where ids are missing or not unique."""
    metadata: tuple[str, ...] | str = ()
    """Columns that are kept, or "all" others."""
    path_keys: PathKeys | None = None
    """Folders such as "quality=high" whose values are kept."""

    def documents(self) -> Step:
        """Return the step "documents/<name>", its texts as documents with the source <name>.

        Rows without a text are rejected and counted; more than 1 % of them fail the step.
        """
        return Step(
            name=f"documents/{self.name}",
            fn=ingest,
            config=IngestConfig(
                input_path=output_path_of(self.rows()),
                text_column=versioned(self.text),
                id_column=versioned(self.id),
                source=versioned(self.name),
                metadata_columns=versioned(self.metadata),
                bad_rows=versioned("reject"),
                path_keys=self.path_keys,
            ),
            extras=("curate",),
            resumable=True,
        )

    def tokenized(self, tokenizer: Step | InputName | str, *, validation_fraction: float | None = None) -> Step:
        """Return the step "tokenized/<name>": caches of its documents, as `default_tokenize` makes them."""
        return default_tokenize(self.name, self.documents(), tokenizer, validation_fraction=validation_fraction)


class Family(dict[str, D]):
    """Data sets of one family by name. Raises ConfigError for an unknown name, with the nearest ones."""

    def __missing__(self, name: object) -> D:
        raise ConfigError(f"No known data set is called {name!r}, {expected_one_of(name, self)}")


def by_name(datasets: Sequence[Corpus], family: str) -> Family[Corpus]:
    """The corpora of a family by the rest of their names: "wiki" of "dolma/wiki"."""
    return Family({corpus.name.removeprefix(f"{family}/"): corpus for corpus in datasets})
