"""The outputs along the lineage of an output: all that it was made from, and all that was made from it, by the records.

In:  an output.   Out: outputs in the order of the data.   Written: nothing, also no packs of records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from marin_assets.browse.places import Places
from marin_assets.browse.stored.state import OutputState, complete_at, inputs_of, state_at
from marin_resources.storage.completion import partition_markers
from marin_resources.storage.completion.markers import list_marks
from marin_resources.storage.completion.packs import names_of_packs, read_packs
from marin_resources.storage.paths import join
from marin_resources.types.output import Status
from marin_resources.types.record import Record

THREADS = 16
MOST_OUTPUTS = 5000
"""Complete outputs of a prefix whose records are read one by one; packs have any number."""
WORTH_PACKS = 64

States = dict[str, OutputState]
"""Text of the address -> the output there."""


class Lineage:
    """The complete outputs of a prefix, and which of them reads which."""

    def __init__(self, places: Places, start: OutputState) -> None:
        self._places = places
        without = start.place.text
        self._states: States = {without: start, **complete_outputs(places, start.place.prefix, without)}
        self._inputs: dict[str, list[str]] = {}

    def along(self, start: OutputState) -> list[OutputState]:
        """The inputs of `start` and theirs, itself, its readers and theirs with what else those read; inputs first."""
        above = self._reach([start.place.text], self.inputs)
        readers: dict[str, list[str]] = {}
        for text in list(self._states):
            for source in self.inputs(text):
                readers.setdefault(source, []).append(text)
        below = self._reach([start.place.text], lambda text: readers.get(text, []))
        beside = {source for text in below for source in self.inputs(text)}
        chosen = {*above, *below, *beside}
        return [self._states[text] for text in self._sorted(chosen) if text in self._states]

    def readers_of(self, start: OutputState) -> list[OutputState]:
        """The complete outputs that read an output."""
        return [self._states[text] for text in list(self._states) if start.place.text in self.inputs(text)]

    def inputs(self, text: str) -> list[str]:
        """The addresses of the inputs of an output that are shown."""
        if text not in self._inputs:
            state = self._state(text)
            paths = [] if state is None else map(self._places.text_of, inputs_of(state))
            self._inputs[text] = [path for path in paths if path is not None]
        return self._inputs[text]

    def _state(self, text: str) -> OutputState | None:
        """The state of an output: of one without a marker, as of Marin's, by its files."""
        if text not in self._states:
            state = state_at(self._places.resolve(text))
            if state is None:
                return None
            self._states[text] = state
        return self._states[text]

    def _reach(self, texts: Iterable[str], edges: Callable[[str], list[str]]) -> set[str]:
        reached, edge = set(texts), list(texts)
        while edge:
            edge = [text for source in edge for text in edges(source) if text not in reached]
            reached.update(edge)
        return reached

    def _sorted(self, chosen: set[str]) -> list[str]:
        """Inputs before their readers; by name where that leaves a choice."""
        depth: dict[str, int] = {}

        def depth_of(text: str, above: frozenset[str]) -> int:
            if text not in depth:
                inputs = [source for source in self.inputs(text) if source in chosen and source not in above]
                depth[text] = 1 + max((depth_of(source, above | {text}) for source in inputs), default=0)
            return depth[text]

        return sorted(chosen, key=lambda text: (depth_of(text, frozenset()), text))


def complete_outputs(places: Places, prefix: str, without: str = "") -> States:
    """The complete outputs below a prefix with their records: by packs where they are many, the others one by one.

    `without` is the address of an output that is left out.
    """
    markers = {join(prefix, f"{mark.name}-{mark.version}"): mark.file for mark in list_marks(prefix)}
    for file in partition_markers.list_files(prefix):
        markers[join(prefix, partition_markers.output_path_in(file))] = file
    packed: Mapping[str, Record] = {}
    if len(markers) > WORTH_PACKS:
        packed = read_packs(prefix, names_of_packs(prefix))
    states: States = {}
    unread = []
    for path, file in markers.items():
        text = places.text_of(path)
        if text == without:
            continue
        if text is not None and file in packed:
            states[text] = OutputState(place=places.resolve(text), status=Status.SUCCESS, record=packed[file])
        elif text is not None:
            unread.append(places.resolve(text))
    with ThreadPoolExecutor(THREADS) as pool:
        read = [state for state in pool.map(complete_at, unread[:MOST_OUTPUTS]) if state is not None]
    return {**states, **{state.place.text: state for state in read}}
