"""An output with its files, or a folder with what is in it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from marin_assets.browse.errors import NotThereError
from marin_assets.browse.links import StateLinks, links_of_state
from marin_assets.browse.pages.batch import is_training
from marin_assets.browse.pages.file import PART_BYTES
from marin_assets.browse.pages.scores import scores
from marin_assets.browse.places import Place
from marin_assets.browse.site import Asked, Shown
from marin_assets.browse.stored.answers.samples import SAMPLES
from marin_assets.browse.stored.checkpoint_scores import is_of_checkpoints
from marin_assets.browse.stored.files import files_at, shown_files
from marin_assets.browse.stored.reward_training import compared_trainings
from marin_assets.browse.stored.state import OutputState, inputs_of, state_at
from marin_assets.documents.formats import is_readable
from marin_resources.storage.completion.markers import marks_of
from marin_resources.storage.files import exists, folders_in, names_in
from marin_resources.types.partition_key import key_of

FILES = 200
FOLDERS = 200
VERSIONS = 10
"""Other versions of the output, to which it can be compared."""
NOTES = 20
"""Files that cannot be shown, which are named."""


def output(asked: Asked) -> Shown:
    place, start = asked.place(), asked.query.number("start")
    state = asked.owner(place)
    if state is None:
        return _folder(asked, place, start)
    return _output(asked, place, state, start)


def _output(asked: Asked, place: Place, state: OutputState, start: int) -> Shown:
    """The files of an output, or of a folder inside it."""
    is_whole = state.place.text == place.text
    data_path, data = state.data_path if is_whole else place.path, place
    if data_path != place.path:
        text = asked.places.text_of(data_path)
        if text is None:
            return Shown(template="output", facts={**_facts(asked, place, state), "elsewhere": data_path})
        data = asked.places.resolve(text)
    try:
        files, not_shown = files_at(asked.places, data)
    except FileNotFoundError:
        if not is_whole:
            raise NotThereError(f"Nothing exists at {place.text!r:.300}, in the output.") from None
        files, not_shown = [], []
    output_path = state.place.path if is_whole else data.path
    facts = {
        **_facts(asked, place, state),
        "files": shown_files(asked.places, output_path, data, files[start : start + FILES]),
        "not_shown": not_shown[:NOTES],
        "total": len(files),
        "total_bytes": sum(file.size_bytes for file in files),
        "has_rows": any(is_readable(file.name) for file in files),
        "has_answers": any(file.name == SAMPLES for file in files),
        "start": start,
        "step": FILES,
    }
    return Shown(template="output", facts=facts)


def _facts(asked: Asked, place: Place, state: OutputState) -> dict[str, Any]:
    record, is_whole = state.record, state.place.text == place.text
    inputs = [(path, asked.places.text_of(path)) for path in inputs_of(state)]
    return {
        "place": place,
        "state": state,
        "is_whole": is_whole,
        "links": links_of_state(asked.places, state) if is_whole else StateLinks(),
        "log_part": PART_BYTES,
        "name": record.name or state.place.text,
        "inputs": inputs,
        "versions": _versions(asked, state),
        "result": _scalars(record.result or {}),
        "finished": str(record.finished_at or "")[:16].replace("T", " "),
        "fn_name": record.fn_name,
        "is_training": is_training(state),
        "reward_trainings": compared_trainings(asked.places, state),
        "scores": scores(asked, state) if is_whole else None,
        "elsewhere": "",
        "files": [],
        "not_shown": [],
        "total": 0,
        "total_bytes": 0,
        "has_rows": False,
        "has_answers": False,
        "start": 0,
        "step": FILES,
    }


def _versions(asked: Asked, state: OutputState) -> list[dict[str, str]]:
    """The other complete versions of an output, the latest first."""
    if not state.record.name:
        return []
    versions = []
    for mark in marks_of(state.place.prefix, state.record.name):
        text = asked.places.text_of(f"{state.place.prefix}/{mark.name}-{mark.version}")
        if text is not None and text != state.place.text:
            finished = datetime.fromtimestamp(mark.finished_s, UTC).strftime("%Y-%m-%d %H:%M")
            versions.append({"version": mark.version, "text": text, "finished": finished})
    return versions[:VERSIONS]


def _scalars(result: Any) -> list[tuple[str, str]]:
    """The numbers and short texts of a result; tables of it are on Dagster's page."""
    pairs = ((str(key), value) for key, value in result.items() if isinstance(value, int | float | str))
    return [(key[:80], str(value)[:200]) for key, value in pairs][:60]


def _folder(asked: Asked, place: Place, start: int) -> Shown:
    """The outputs and folders in a folder that is in no output, and the partitions of a version."""
    names = sorted(name for name in folders_in(place.path) if not name.startswith("."))
    if not names and not exists(place.path):
        raise NotThereError(f"Nothing exists at {place.text!r:.300}. Open the first page, and a folder from there.")
    entries = []
    for name in names[start : start + FOLDERS]:
        text = f"{place.text}/{name}" if place.text else name
        state = state_at(asked.places.resolve(text)) if asked.places.text_of(text) is not None else None
        entries.append({"name": name, "key": key_of(name) or name, "text": text, "state": state})
    files = sorted(name for name in names_in(place.path) if name not in names and not name.startswith("."))
    facts = {
        "place": place,
        "entries": entries,
        "has_checkpoints": is_of_checkpoints(place) and any(entry["state"] is not None for entry in entries),
        "files": files[:FILES],
        "total": len(names),
        "start": start,
        "step": FOLDERS,
    }
    return Shown(template="folder", facts=facts)
