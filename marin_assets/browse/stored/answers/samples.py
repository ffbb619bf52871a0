"""An evaluation and the file of its answers, `samples.jsonl`, by the text of an address; what has none is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from marin_assets.browse.errors import NotComparableError, NotThereError
from marin_assets.browse.places import Place, Places
from marin_assets.browse.stored.state import OutputState, owner_of
from marin_resources.storage.files import StoredFile, exists, stored_file
from marin_resources.storage.paths import join

SAMPLES = "samples.jsonl"
FEWEST, MOST = 2, 8
"""Evaluations side by side."""
WITHOUT_ANSWERS = {
    "measure_perplexity": "it measures the loss of texts, in which nothing is right or wrong",
    "generate_text": "it continues texts, for which no answer is expected",
    "generate_from_documents": "it generates texts, for which no answer is expected",
    "make_held_out_set": "it has questions, and no model has answered them",
    "compare_models": "it compares evaluations: name those",
}
"""Functions of steps that look like evaluations -> why their outputs have no answers to questions."""


@dataclass(frozen=True, kw_only=True)
class Samples:
    """The answers of one evaluation."""

    place: Place
    """The place of the address: the output, or the file."""
    file: StoredFile
    file_text: str
    """The address of the file."""
    owner: OutputState | None

    @property
    def name(self) -> str:
        """The name of the step; the path of an output without one."""
        return (self.owner.record.name if self.owner is not None else "") or self.place.text or self.place.name


def samples_at(places: Places, text: str) -> Samples:
    """The answers of the evaluation at a place: an output, a folder of one, or the file itself.

    Raises BrowseError with one sentence for anything else, OSError.
    """
    place = places.resolve(text)
    owner = owner_of(places, place)
    if place.name == SAMPLES:
        path = place.path
    else:
        is_whole = owner is not None and owner.place.text == place.text
        path = join(owner.data_path if owner is not None and is_whole else place.path, SAMPLES)
    file_place = places.resolve(path)
    try:
        file = stored_file(file_place.path)
    except (FileNotFoundError, NotADirectoryError):
        raise _without_answers(place, owner) from None
    return Samples(place=place, file=file, file_text=file_place.text, owner=owner)


def require_several(texts: Sequence[str]) -> None:
    """Raise NotComparableError for one evaluation, the same twice, or too many."""
    if not FEWEST <= len(texts) <= MOST:
        raise NotComparableError(
            f"{len(texts)} evaluation{'s were' if len(texts) != 1 else ' was'} named, expected {FEWEST} to {MOST}. "
            "Name the outputs of evaluations on the same questions."
        )


def require_different(samples: Sequence[Samples]) -> None:
    """Raise NotComparableError if two of them are the same file."""
    paths: dict[str, str] = {}
    for of in samples:
        if of.file.path in paths:
            raise NotComparableError(
                f"{of.place.text!r:.300} is the same evaluation as {paths[of.file.path]!r:.300}. Name another one."
            )
        paths[of.file.path] = of.place.text


def _without_answers(place: Place, owner: OutputState | None) -> NotThereError | NotComparableError:
    shown = f"{place.text!r:.300}"
    if owner is None:
        lack = "is in no output" if exists(place.path) else "does not exist"
        return NotThereError(f"{shown} {lack}. Name the output of an evaluation, which has {SAMPLES}.")
    function = (owner.record.fn_name or "").rpartition(":")[2]
    if function in WITHOUT_ANSWERS:
        return NotComparableError(
            f"{shown} has no answers to questions ({WITHOUT_ANSWERS[function]}). Name the output of an evaluation."
        )
    if owner.status is not None and not owner.is_complete:
        return NotThereError(
            f"{shown} has no {SAMPLES}: the output is {owner.status.value}, and an evaluation writes its answers last. "
            "Wait until it is complete, or compute it again."
        )
    return NotComparableError(
        f"{shown} has no answers to questions: no file {SAMPLES} is in it. Name the output of an evaluation."
    )
