"""A folder or bucket in place of the hub, with the hub's own paths.

    api/datasets/<id>/revision/<revision>    the hub's answer: {"sha": "<commit>"}; "/" in a revision is "%2F"
    api/datasets/<id>/tree/<commit>          the hub's answer, all pages in one list
    datasets/<id>/resolve/<commit>/<path>    the files

Of a model "api/models/…" and "<id>/resolve/…". A commit of 40 digits needs no file of a revision.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from marin_assets.stages.download.hub.repository import COMMIT, HubError, HubFile, Repository
from marin_assets.stages.download.web.faults import Fault
from marin_resources.storage.files import read_json
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.paths import join

BLOCK_BYTES = 2**20


class Mirror:
    """A source of one repository. It has the methods of `online.OnlineHub`."""

    def __init__(self, repository: Repository) -> None:
        assert repository.mirror is not None
        self.repository, self._root = repository, repository.mirror

    def commit_of(self, revision: str) -> tuple[str, str]:
        """The commit and the repository's name. Raises HubError."""
        if COMMIT.fullmatch(revision):
            return revision, self.repository.id
        answer = self._json(self.repository.revision_path(revision), f"revision {revision!r}")
        commit = answer.get("sha") if isinstance(answer, dict) else None
        if not isinstance(commit, str) or not COMMIT.fullmatch(commit):
            raise HubError(
                f"The mirror {self._root!r} has the commit {commit!r:.80} for {revision!r} of {self.repository}, "
                "expected 40 hexadecimal digits."
            )
        return commit, self.repository.id

    def entries(self, commit: str, folder: str, *, recursive: bool) -> Iterator[Any]:
        """The rows of the listing below a folder, as the hub has them. Raises HubError."""
        rows = self._json(self.repository.tree_path(commit), f"listing of the commit {commit}")
        if not isinstance(rows, list):
            raise HubError(f"The mirror {self._root!r} has a listing that is no list for the commit {commit}.")
        before = f"{folder}/" if folder else ""
        for row in rows:
            path = row.get("path") if isinstance(row, dict) else None
            is_within = not isinstance(path, str) or path.startswith(before)
            if is_within and (recursive or not isinstance(path, str) or "/" not in path[len(before) :]):
                yield row

    def blocks(self, commit: str, file: HubFile, start: int, end: int, *, whole: bool) -> Iterator[bytes]:
        """The bytes from `start` to `end`. Raises Fault and HubError."""
        place = join(self._root, self.repository.file_path(commit, file.path))
        fs, path = filesystem_of(place)
        try:
            size_bytes = fs.size(path)
            if size_bytes is not None and size_bytes != file.size_bytes:
                raise HubError(
                    f"{place!r} has {size_bytes} bytes, expected {file.size_bytes} by the mirror's listing. Copy it "
                    "again."
                )
            with fs.open(path, "rb") as stored:
                stored.seek(start)
                while start < end and (block := stored.read(min(BLOCK_BYTES, end - start))):
                    start += len(block)
                    yield block
        except FileNotFoundError:
            raise HubError(f"{place!r} does not exist, and the mirror's listing has it. Copy it again.") from None
        except OSError as error:
            raise Fault("connection", f"{place!r} cannot be read ({type(error).__name__})") from error

    def forget(self, file: HubFile) -> None:
        """Nothing is kept of a file."""

    def close(self) -> None:
        """Nothing is open."""

    def _json(self, name: str, subject: str) -> Any:
        try:
            return read_json(join(self._root, name))
        except FileNotFoundError:
            raise HubError(
                f"The mirror {self._root!r} has no {subject} of {self.repository}: {name!r} does not exist. Copy the "
                "hub's answer there."
            ) from None
