"""A document's way: the rows of its id in all outputs along the lineage, with what each decides about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from marin_assets.browse.cells.short_text import ShortText, short_text, visible
from marin_assets.browse.errors import LimitError, NotThereError
from marin_assets.browse.limits import ReaderGoneError
from marin_assets.browse.query import address
from marin_assets.browse.site import Asked, Shown
from marin_assets.browse.stored.lineage import Lineage
from marin_assets.browse.stored.rows_of_id import Hint, RowOfId, id_table, rejected_sample, rows_of_id
from marin_assets.browse.stored.state import OutputState, inputs_of, state_at
from marin_assets.browse.stored.verdicts import (
    attribute_paths,
    decision_in,
    documents_path,
    fate_in,
    is_consolidation,
    verdict,
)
from marin_assets.documents.document import DocumentError
from marin_assets.documents.formats import is_readable, without_format
from marin_assets.documents.frames.id_table import IdTable
from marin_assets.stages.consolidate.attribute_spec import ConsolidateError

ID_CHARACTERS = 4000
TEXT_CHARACTERS = 300


@dataclass(frozen=True, kw_only=True)
class Station:
    """An output on the way."""

    name: str
    text: str
    link: str = ""
    """The address of the row; empty if the output does not have the document."""
    number: int = 0
    state: str = ""
    """The fate of the document here, as a phrase."""
    preview: ShortText = ShortText("")


def way(asked: Asked) -> Shown:
    id = asked.query.text("id")
    if not id or len(id) > ID_CHARACTERS:
        raise NotThereError(
            f"The id has {len(id):,} characters, expected 1 to {ID_CHARACTERS:,}. Give the id of a row."
        )
    place = asked.place()
    start = asked.owner(place)
    if start is None:
        raise NotThereError(f"{place.text!r:.300} is in no output, so it has no lineage. Open an output.")
    walk = Way(asked, id)
    limit = ""
    try:
        walk.walk(start)
    except ReaderGoneError:
        raise
    except LimitError as error:
        limit = str(error)
    if not walk.rows and not limit:
        raise NotThereError(
            f"No row of {start.place.text!r:.300}, and of the {walk.outputs} outputs along its lineage, has the id "
            f"{id!r:.300}. Look at the ids of its rows."
        )
    facts: dict[str, Any] = {
        "place": place,
        "id": visible(id[:TEXT_CHARACTERS]),
        "start": start,
        "stations": walk.seen,
        "limit": limit,
        "page_id": walk.page_id if walk.page_id != id else "",
        "chunk": walk.chunk,
    }
    return Shown(template="way", facts=facts)


class Way:
    """The rows of one document, output by output."""

    def __init__(self, asked: Asked, id: str) -> None:
        self._asked, self._id = asked, id
        self.page_id = id.rpartition("#")[0] or id  # chunks are named page#n; their metadata have the page, too
        self.chunk = ""
        """The id of the first part of a page; empty unless the id is that of a page."""
        self.rows: dict[str, RowOfId] = {}
        """Path of the output's data -> its row."""
        self.seen: list[Station] = []
        self.outputs = 0
        """Outputs that were read."""
        self._hint: Hint | None = None
        self._hints: dict[str, Hint] = {}
        """Address of an output -> the place of the document there."""
        self._tables: dict[str, IdTable | None] = {}
        self._damaged: dict[str, DocumentError] = {}
        """Path of the output's data -> what is wrong with its table of ids."""

    def walk(self, start: OutputState) -> None:
        """See all stations, in the order of the data. The start is read first, or an output with a table of ids if
        the start has none: it has the shard and the page."""
        states = Lineage(self._asked.places, start).along(start)
        for state in self._begin_with(start, states):
            with suppress(DocumentError, OSError):  # its station names the damage
                for row in self._rows(state):
                    self._learn(state, row)
        for state in states:
            self.outputs += 1
            self.seen.extend(self._stations(state))

    def _begin_with(self, start: OutputState, states: Sequence[OutputState]) -> Iterator[OutputState]:
        """The outputs with a table, until one has the document; then the start."""
        for state in sorted(states, key=lambda state: state is not start):
            if self._hint is None and self._table(state) is not None:
                yield state
        if self._hint is None:
            yield start

    def _table(self, state: OutputState) -> IdTable | None:
        """The table of ids of an output, read once; None if it has none, or a damaged one, which its station names."""
        path = state.data_path
        if path not in self._tables:
            self._tables[path] = None
            if self._asked.places.text_of(path) is not None:
                try:
                    self._tables[path] = id_table(state)
                except DocumentError as error:
                    self._damaged[path] = error
        return self._tables[path]

    def _learn(self, state: OutputState, row: RowOfId) -> None:
        metadata = row.row.get("metadata")
        page = metadata.get("page") if isinstance(metadata, Mapping) else None
        if isinstance(page, str) and page and row.id == self._id:
            self.page_id = page
        name = row.text.removeprefix(f"{state.place.text}/")
        if not row.is_tokens and is_readable(name):
            hint = Hint(shard=without_format(name), number=row.number)
            self._hints.setdefault(state.place.text, hint)
            self._hint = self._hint or hint

    def _hint_for(self, state: OutputState) -> Hint | None:
        """The place of the document in the first input that has it: attributes have it at the same; else in any."""
        texts = map(self._asked.places.text_of, inputs_of(state))
        hints = (self._hints[text] for text in texts if text is not None and text in self._hints)
        return next(hints, self._hint)

    def _rows(self, state: OutputState) -> list[RowOfId]:
        if state.data_path in self.rows:
            return [self.rows[state.data_path]]
        ids = list(dict.fromkeys([self._id, self.page_id]))
        rows = self._search(state, ids)
        if rows and not rows[0].is_tokens:
            self.rows[state.data_path] = rows[0]
        elif rows:
            self.rows.setdefault(state.data_path, rows[0])
        return rows

    def _search(self, state: OutputState, ids: Sequence[str]) -> list[RowOfId]:
        table = self._table(state)
        if state.data_path in self._damaged:
            raise self._damaged[state.data_path]
        return rows_of_id(self._asked.places, state, ids, self._hint_for(state), table)

    def _stations(self, state: OutputState) -> Iterator[Station]:
        name, text = state.record.name or state.place.text, state.place.text
        if self._asked.places.text_of(state.data_path) is None:
            return
        try:
            rows = self._rows(state)
            for row in rows:
                self._learn(state, row)
                yield self._station(state, name, row)
            if not rows and is_consolidation(state):
                yield from self._rejected(state, name)
            elif not rows and self._has_parts(state):
                yield Station(name=name, text=text, state="has the page in parts, named with # and a number")
        except (DocumentError, ConsolidateError, OSError) as error:
            yield Station(name=name, text=text, state=f"cannot be read: {error}")

    def _station(self, state: OutputState, name: str, row: RowOfId) -> Station:
        phrase = "tokens" if row.is_tokens else self._phrase(state, row)
        page, parameters = ("tokens", {"row": row.number}) if row.is_tokens else ("row", {"row": row.number})
        return Station(
            name=name,
            text=state.place.text,
            link=address(page, path=row.text, **parameters),
            number=row.number,
            state=phrase,
            preview=short_text(row.row.get("text", ""), TEXT_CHARACTERS),
        )

    def _phrase(self, state: OutputState, row: RowOfId) -> str:
        if row.id != self._id:
            return "its page"
        if is_consolidation(state):
            return self._verdict(state)[1] or "kept"
        return fate_in(row.row) or "a row"

    def _verdict(self, state: OutputState) -> tuple[bool | None, str]:
        """Whether a consolidation keeps the document, and by what; None if that cannot be computed from the rows."""
        document = self._row_at(documents_path(state))
        if document is None or document.id != self._id:
            return None, ""
        decisions = []
        for applied, path in attribute_paths(state):
            row = self._row_at(path)
            decisions.append((applied, None if row is None else decision_in(row.row)))
        return verdict(document.row, decisions)

    def _row_at(self, path: str) -> RowOfId | None:
        """The document's row in the output at a path."""
        text = self._asked.places.text_of(path) if path else None
        state = state_at(self._asked.places.resolve(text)) if text is not None else None
        rows = self._rows(state) if state is not None else []
        return rows[0] if rows and not rows[0].is_tokens else None

    def _rejected(self, state: OutputState, name: str) -> Iterator[Station]:
        """The station of a consolidation without the document: by what it was rejected. None if it never had it."""
        keeps, phrase = self._verdict(state)
        sample = rejected_sample(self._asked.places, state, self._id, self._hint_for(state))
        if keeps is None and sample is None:
            return
        if keeps:
            phrase = "not in its rows, although its attributes keep it"
        elif sample is not None and keeps is None:
            attribute, reason = (short_text(sample.row.get(key), 80).text for key in ("attribute", "reason"))
            phrase = f"rejected by {attribute}: {reason}"
        if sample is None:
            yield Station(name=name, text=state.place.text, state=phrase)
            return
        link = address("row", path=sample.text, row=sample.number)
        phrase += ", in the sample of the rejected"
        yield Station(name=name, text=state.place.text, link=link, number=sample.number, state=phrase)

    def _has_parts(self, state: OutputState) -> bool:
        """Whether the output has the first part of this page: then the way of that part is proposed."""
        part = f"{self._id}#0"
        if "#" in self._id:
            return False
        rows = self._search(state, [part])
        if rows:
            self.chunk = part
        return bool(rows)
