"""The records of experiments below the prefixes that are shown, newest first, and the states of their steps.

In:  the places, a part of a name.   Out: records with their days, and the states of the steps of those on a page.

A record of thousands of steps has megabytes. So only its first bytes are read for its day, and a request has a limit on
the bytes of whole records and on the outputs whose files are read. Complete outputs are known by their markers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from marin_assets.browse.places import Place, Places
from marin_assets.experiment_page.page_steps import URGENT
from marin_assets.experiment_page.record_file import FOLDER, RecordedStep, parse_record_file, title_of
from marin_resources.storage.files import names_in, open_to_read
from marin_resources.storage.index.complete import CompleteOutputs
from marin_resources.storage.index.look import existing
from marin_resources.storage.output.state_summary import State, state_of
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import is_local, join
from marin_resources.types.errors import MarinError
from marin_resources.types.output import Output

SUFFIX = ".json"
HEAD_BYTES = 4096
CREATED = re.compile(rb'"created_date"\s*:\s*"([0-9T:.+ Z-]{10,40})"')
"""Our records and Marin's have it before their steps."""
MOST_RECORDS = 2_000
"""Records whose days are read."""
MOST_RECORD_BYTES = 16 * 1024**2
MOST_BYTES = 16 * 1024**2
"""Bytes of the whole records that one request parses."""
MOST_LOOKS = 400
"""Outputs whose files one request reads, because they have no marker."""
THREADS = 16


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A record of an experiment."""

    place: Place
    created: str
    """ISO 8601; "" if it is not recorded, or cannot be read."""

    @property
    def title(self) -> str:
        return title_of(self.place.path)


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The steps of an experiment by state."""

    commit: str = ""
    states: Mapping[State, int] = field(default_factory=dict)
    not_read: int = 0
    """Steps whose state is not known, because the request has reached its limit."""
    problem: str = ""
    """One sentence about a record that cannot be shown."""

    @property
    def steps(self) -> int:
        return sum(self.states.values()) + self.not_read


def list_experiments(places: Places, name: str) -> tuple[list[Experiment], int]:
    """The records whose names have this part, in any case, newest first; and how many more are not listed."""
    located = []
    for prefix in places.prefixes:
        folder = join(prefix, FOLDER)
        files = sorted(file for file in names_in(folder) if file.endswith(SUFFIX) and not file.startswith("."))
        texts = (places.text_of(join(folder, file)) for file in files if name.lower() in title_of(file).lower())
        located += [places.resolve(text) for text in texts if text is not None]
    listed = located[:MOST_RECORDS]
    if all(is_local(place.path) for place in listed):  # threads would take longer to start
        created = list(map(_created, listed))
    else:
        with ThreadPoolExecutor(THREADS) as pool:
            created = list(pool.map(_created, listed))
    records = [Experiment(place=place, created=day) for place, day in zip(listed, created, strict=True)]
    records.sort(key=lambda record: record.title)
    records.sort(key=lambda record: record.created, reverse=True)
    return records, len(located) - len(listed)


def _created(place: Place) -> str:
    try:
        with open_to_read(place.path, block_bytes=0) as file:
            match = CREATED.search(file.read(HEAD_BYTES))
    except OSError:  # the page of this record has the reason
        return ""
    return match[1].decode() if match else ""


class Summaries:
    """Summarizes records for one request."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._bytes, self._looks = MOST_BYTES, MOST_LOOKS
        self._complete: dict[str, CompleteOutputs] = {}
        self._states: dict[tuple[str, Output], State] = {}

    @property
    def is_spent(self) -> bool:
        """Whether the request has reached a limit."""
        return self._bytes <= 0 or self._looks <= 0

    def of(self, records: Sequence[Experiment]) -> list[Summary]:
        """The summaries of these records, by one listing of each folder that has their outputs."""
        return [self._of(record) for record in records]

    def _of(self, record: Experiment) -> Summary:
        if self._bytes <= 0:
            return Summary(problem="Not read: the records of this page are large. Open it.")
        try:
            with open_to_read(record.place.path) as stream:
                data = stream.read(MOST_RECORD_BYTES + 1)
            self._bytes -= len(data)
            if len(data) > MOST_RECORD_BYTES:
                return Summary(problem=f"The record has more than {MOST_RECORD_BYTES:,} bytes.")
            file = parse_record_file(data, record.place.path, record.place.prefix)
        except (MarinError, OSError) as error:
            return Summary(problem=str(error))
        states = self._states_of(Store(record.place.prefix), file.steps)
        counted = Counter(state for state in states if state is not None)
        return Summary(
            commit=file.commit[:12],
            states={state: counted[state] for state in State if counted[state]},
            not_read=len(states) - counted.total(),
        )

    def _states_of(self, store: Store, steps: Sequence[RecordedStep]) -> list[State | None]:
        """The state of each step; None if it was not read."""
        complete = self._complete.setdefault(store.prefix, CompleteOutputs(store.prefix, writes=False))
        whole = [step.output for step in steps if not step.is_partitioned and self._shows(store, step)]
        unknown = [output for output in whole if (store.prefix, output) not in self._states]
        folders = existing({store.locate(output) for output in unknown})
        for output in unknown:
            mark = complete.mark_of(output)
            if store.locate(output) not in folders:
                self._states[store.prefix, output] = State.MISSING
            elif mark is not None and mark.is_of(output):
                self._states[store.prefix, output] = State.COMPLETE
        self._look(store, [output for output in whole if (store.prefix, output) not in self._states])
        return [self._state(store, step) for step in steps]

    def _state(self, store: Store, step: RecordedStep) -> State | None:
        if not self._shows(store, step):
            return State.BLOCKED
        if not step.is_partitioned:
            return self._states.get((store.prefix, step.output))
        keys = store.partitions(step.output)
        done = store.done_partitions(step.output, keys)
        rest = [step.output.at(key) for key in keys if key not in done]
        self._look(store, rest)
        states = [*(State.COMPLETE for _ in done), *(self._states.get((store.prefix, output)) for output in rest)]
        if None in states:
            return None
        return min((state for state in states if state is not None), key=URGENT.index, default=State.MISSING)

    def _look(self, store: Store, outputs: Iterable[Output]) -> None:
        """Read the states of these outputs, as far as the limit allows."""
        looked = list(outputs)[: max(0, self._looks)]
        self._looks -= len(looked)
        for output, observed in store.look(looked).items():
            self._states[store.prefix, output] = state_of(observed)

    def _shows(self, store: Store, step: RecordedStep) -> bool:
        return step.is_plain and self._places.text_of(store.locate(step.output)) is not None
