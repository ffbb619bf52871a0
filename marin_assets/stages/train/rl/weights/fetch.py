"""The weights that a sampler takes: by file or by Flight, and none but those with the digest of the publication."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.rl.weights.content import verified_digest
from marin_resources.storage.files import read_bytes


@dataclass(frozen=True, kw_only=True)
class Source:
    """The place from which a sampler gets the weights of a unit. It goes to samplers alone: it may have a token."""

    weights_step: int
    digest: str
    """That of the arrays (`content.py`)."""
    size: int
    """Bytes."""
    path: str
    """The file. With a server, it may be written later."""
    url: str = ""
    """URL of the Flight server; empty: the file is read."""
    token: str = ""


class Fetcher:
    """Fetches, over one connection as long as the server is the same."""

    def __init__(self) -> None:
        self._url = ""
        self._client: Any = None

    def fetch(self, source: Source) -> bytes | bytearray:
        """Return the content. Raises TrainError if it is not what was published, or cannot be had."""
        content = self._by_flight(source) if source.url else _by_file(source)
        place = source.url or repr(source.path)
        if (digest := verified_digest(content, place)) != source.digest:
            raise TrainError(
                f"The weights from {place} after {source.weights_step} updates have the digest {digest[:12]}, expected "
                f"{source.digest[:12]}: they are others than the training has published. Compute the step again."
            )
        return content

    def _by_flight(self, source: Source) -> bytearray:
        from pyarrow import ArrowException
        from pyarrow.flight import FlightError  # late: a training with files never needs it

        from marin_assets.stages.train.rl.weights.flight import WeightsClient

        try:
            if self._client is None or self._url != source.url:
                self._client, self._url = WeightsClient(source.url, source.token), source.url
            content: bytearray = self._client.get(source.weights_step, source.size)
            return content
        except (FlightError, ArrowException, OSError, ValueError) as error:
            raise TrainError(
                f"The weights after {source.weights_step} updates cannot be had from {source.url} "
                f"({type(error).__name__}: {' '.join(str(error).split()):.200}). Let hosts that sample reach that "
                "of the training, or set weights_by='file'."
            ) from error


def _by_file(source: Source) -> bytes:
    try:
        return read_bytes(source.path)
    except FileNotFoundError as error:
        raise TrainError(
            f"The weights at {source.path!r} are missing. Compute the step again from its beginning."
        ) from error
