"""A repository of the hub: its name, its addresses, and a file of it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from marin_assets.stages.download.web.faults import DownloadError
from marin_resources.types.errors import InvalidInputError

HUB = "https://huggingface.co"
KINDS_OF_REPOSITORY = ("dataset", "model")
COMMIT = re.compile(r"[0-9a-f]{40}")
_ID = re.compile(r"(?:[A-Za-z0-9][\w.-]{0,95}/)?[A-Za-z0-9_][\w.-]{0,95}", re.ASCII)


class HubError(DownloadError):
    """Files of the hub that cannot be downloaded: one sentence."""


class MissingEntryError(HubError):
    """A file or folder that a commit does not have: one sentence."""


class HubConfigError(InvalidInputError):
    """A config of a download that cannot be used: one sentence."""


@dataclass(frozen=True, kw_only=True)
class HubFile:
    """A file as the hub lists it at a commit."""

    path: str
    size_bytes: int
    oid: str
    """SHA-1 of the object in git; for a large file the object is its pointer."""
    sha256: str | None
    """SHA-256 of the content of a large file. For another file None: `oid` is the SHA-1 of its content as a blob."""

    @property
    def state(self) -> str:
        """Changes with the content."""
        return self.oid


@dataclass(frozen=True, kw_only=True)
class Repository:
    id: str
    """ "owner/name"; a few old datasets have a name alone."""
    kind: str = "dataset"
    endpoint: str = HUB
    """Address of the hub."""
    mirror: str | None = None
    """Folder or bucket that is read in its place."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS_OF_REPOSITORY:
            raise HubConfigError(f"The repo_type is {self.kind!r}, expected 'dataset' or 'model'. Correct it.")
        if not isinstance(self.id, str) or not _ID.fullmatch(self.id):
            raise HubConfigError(f"The {self.kind} is {self.id!r}, expected 'owner/name' as on the hub. Correct it.")
        if self.mirror is not None and self.mirror.startswith(("http://", "https://")):
            raise HubConfigError(
                "The mirror is an address of the web, expected a folder or a bucket. Pass another hub as endpoint."
            )
        parts = urlsplit(self.endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise HubConfigError(
                "The address of the hub is not an 'https://…' without a password. Correct HF_ENDPOINT or endpoint."
            )

    def __str__(self) -> str:
        return f"the {self.kind} {self.id!r}"

    @property
    def page(self) -> str:
        """Address of its page for people."""
        return f"{self.endpoint}/{self._folder}{self.id}"

    def revision_path(self, revision: str) -> str:
        """The hub's path of a revision, which a mirror has too."""
        return f"api/{self.kind}s/{self.id}/revision/{quote(revision, safe='')}"

    def tree_path(self, commit: str) -> str:
        return f"api/{self.kind}s/{self.id}/tree/{commit}"

    def file_path(self, commit: str, path: str) -> str:
        """The hub's path of a file, not quoted."""
        return f"{self._folder}{self.id}/resolve/{commit}/{path}"

    @property
    def _folder(self) -> str:
        return "datasets/" if self.kind == "dataset" else ""


def endpoint_of(configured: str | None) -> str:
    """The address of the hub: the config's, else that of HF_ENDPOINT, else huggingface.co."""
    return (configured or os.environ.get("HF_ENDPOINT") or HUB).rstrip("/")
