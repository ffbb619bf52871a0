"""The files `experiments/*.json` below a prefix: which outputs an experiment named, and when it last ran.

Each run writes its own over the earlier one of the same steps. Marin writes them too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from marin_resources.storage.control import control
from marin_resources.storage.files import names_in
from marin_resources.storage.paths import join
from marin_resources.types.places import relative_to
from marin_resources.types.versioned_json import ControlFileError, Required, VersionedJson
from marin_resources.wire.config_json import texts_in

FOLDER = "experiments"
SUFFIX = ".json"
THREADS = 32


class ExperimentFileError(ControlFileError):
    """A file of an experiment that cannot be read: one sentence with its path."""


FORMAT = VersionedJson(
    kind="file of an experiment",
    newest=1,
    error=ExperimentFileError,
    default=0,
    shape={"prefix": str, "created_date": str, "steps": Required([{"output_path": str, "dependencies": [str]}])},
    if_damaged="Without it nobody knows what it needs. Look at the file; move it aside if it is damaged.",
)


@dataclass(frozen=True, kw_only=True)
class ExperimentFile:
    """An experiment, as its last run has written it."""

    name: str
    """Name of the file, without its suffix."""
    last_ran: datetime | None
    """None if the file does not have it."""
    outputs: tuple[str, ...]
    """Paths of its steps' outputs, below the prefix."""
    texts: tuple[str, ...]
    """Every text in its steps: paths that they read may be among them."""


def experiment_files(prefix: str) -> list[ExperimentFile]:
    """All files of the prefix, by one listing and a read of each. Raises ExperimentFileError and UnavailableError."""
    names = sorted(name for name in names_in(join(prefix, FOLDER)) if name.endswith(SUFFIX))
    with ThreadPoolExecutor(THREADS) as pool:
        files = pool.map(lambda name: _read(prefix, name), names)
        return [file for file in files if file is not None]


def _read(prefix: str, name: str) -> ExperimentFile | None:
    path = join(prefix, FOLDER, name)
    content = control.read(path)
    if content is None:
        return None  # it was removed in between
    fields = FORMAT.parse(content.data, path)
    prefixes = [base for base in (fields.get("prefix"), prefix) if base]
    return ExperimentFile(
        name=name.removesuffix(SUFFIX),
        last_ran=_time_of(fields.get("created_date")),
        outputs=tuple(relative_to(output, prefixes) or output for output in _output_paths(fields)),
        texts=tuple(sorted({relative_to(text, prefixes) or text for text in texts_in(fields["steps"])})),
    )


def _output_paths(fields: Mapping[str, Any]) -> Iterator[str]:
    for step in fields["steps"]:
        if step.get("output_path"):
            yield step["output_path"].rstrip("/")


def _time_of(text: str | None) -> datetime | None:
    """Marin writes a time without a zone."""
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
