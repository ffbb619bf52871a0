"""The source of a repository's files: the hub over HTTP, or a mirror."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, Protocol

from marin_assets.stages.download.hub.budget import Budget
from marin_assets.stages.download.hub.mirror import Mirror
from marin_assets.stages.download.hub.online import OnlineHub
from marin_assets.stages.download.hub.repository import HubFile, Repository
from marin_assets.stages.download.web.tally import Tally


class Source(Protocol):
    repository: Repository

    def commit_of(self, revision: str) -> tuple[str, str]:
        """The commit of a revision, and the repository's name now. Raises HubError."""

    def entries(self, commit: str, folder: str, *, recursive: bool) -> Iterator[Any]:
        """The rows of the listing below a folder, as the hub has them. Raises HubError."""

    def blocks(self, commit: str, file: HubFile, start: int, end: int, *, whole: bool) -> Iterator[bytes]:
        """The bytes of a file from `start` to `end`, the file's end if `whole`. Raises Fault and HubError."""

    def forget(self, file: HubFile) -> None:
        """Forget all that is kept of a file."""

    def close(self) -> None:
        """Close connections, and return unused requests to the budget."""


def source_of(
    repository: Repository,
    *,
    tally: Tally,
    budget_path: str,
    most_requests: int,
    stop: threading.Event,
    connections: int,
) -> Source:
    """The source of the repository: its mirror if it has one."""
    if repository.mirror is not None:
        return Mirror(repository)
    budget = Budget(budget_path, most_requests, stop)
    return OnlineHub(repository, tally=tally, budget=budget, stop=stop, connections=connections)
