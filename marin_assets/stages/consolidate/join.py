"""Join attributes to documents: by the name of the shard, then by id, row by row in the documents' order.

Memory holds one row of each attribute. A mismatch is an error; both shards are then read again to find out which of
the two is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from marin_assets.documents import SUFFIX, document_files, read_documents
from marin_assets.documents.attributes import Decision, read_attributes
from marin_assets.documents.shards import output_name
from marin_assets.stages.consolidate.attribute_spec import ERROR, VALUE, Applied, ConsolidateError, decide
from marin_resources.storage.files import StoredFile
from marin_resources.storage.paths import join

Row = tuple[str, Decision]


def attribute_files(applied: Applied, documents: Sequence[StoredFile]) -> list[StoredFile | None]:
    """Return the attribute's file for each shard of documents, None where it may be missing.

    Names must match; formats may differ. Raises ConsolidateError for a file without a counterpart on either side,
    FileNotFoundError if the attribute has no files.
    """
    by_name = {output_name(file, ""): file for file in document_files(applied.path, allow_none=True).shards}
    names = [output_name(file, "") for file in documents]
    lacking = [name for name in names if name not in by_name]
    if lacking and (applied.missing == ERROR or len(lacking) == len(names)):
        raise ConsolidateError(
            f"Attribute {applied.name!r} has no file {join(applied.path, lacking[0] + SUFFIX)!r} for the documents "
            f"{documents[names.index(lacking[0])].path!r} ({len(lacking)} of {len(names)} shards lack theirs). Compute "
            "it from these documents."
        )
    if extra := sorted(by_name.keys() - set(names)):
        raise ConsolidateError(
            f"Attribute {applied.name!r} has {by_name[extra[0]].path!r}, which matches no shard of documents "
            f"({len(extra)} such files). Compute it from these documents."
        )
    return [by_name.get(name) for name in names]


class AttributeRows:
    """The rows of one attribute's shard, read in parallel with the documents."""

    def __init__(self, applied: Applied, path: str | None, documents_path: str) -> None:
        self.name = applied.name
        self._applied, self._path, self._documents_path = applied, path, documents_path
        keys = () if applied.key == VALUE else (applied.key,)
        self._rows: Iterator[Row] = read_attributes(path, keys) if path else iter(())
        self._next = next(self._rows, None)

    def decide(self, id: str) -> tuple[Decision, bool]:
        """Return the decision to apply to the next document, and whether it had a row. Raises ConsolidateError."""
        row = self._next
        if row is not None and row[0] == id:
            self._next = next(self._rows, None)
            try:
                return decide(self._applied, row[1]), True
            except ConsolidateError as error:
                raise ConsolidateError(f"Attribute {self.name!r} of {id!r} in {self._path!r} {error}") from None
        if self._applied.missing == ERROR:
            raise self._misfit(id)
        return decide(self._applied, None), False

    def finish(self) -> None:
        """Raise ConsolidateError if a row is left after the last document."""
        if self._next is not None:
            raise self._misfit(None)

    def _misfit(self, id: str | None) -> ConsolidateError:
        """Return the error for document `id` (None: the end) not matching the next row."""
        here, row = f"Attribute {self.name!r} in {self._path!r}", self._next
        if id is not None and not any(name == id for name, _ in read_attributes(self._path or "")):
            return ConsolidateError(
                f"{here} has no row for document {id!r} of {self._documents_path!r}. Compute it from these documents, "
                "or pass missing='keep' or 'reject'."
            )
        if row is None:
            return ConsolidateError(
                f"{here} ends before document {id!r} of {self._documents_path!r}. Compute it from these documents."
            )
        if not any(document.id == row[0] for document in read_documents(self._documents_path)):
            return ConsolidateError(
                f"{here} has a row for {row[0]!r}, which is no document of {self._documents_path!r}. Compute it from "
                "these documents."
            )
        place = "after the last document" if id is None else f"where document {id!r} was expected"
        return ConsolidateError(
            f"{here} has the row of {row[0]!r} {place} of {self._documents_path!r}: it is in another order, or a row "
            "occurs twice. Compute it from these documents."
        )
