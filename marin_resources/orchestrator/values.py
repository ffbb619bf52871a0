"""Values of hand-written assets as files: JSON, bytes, text, Arrow and pandas tables."""

from __future__ import annotations

import json
import sys
from typing import Any

from marin_resources.storage.files import read_bytes, write_bytes
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError


class UnstorableValueError(MarinError, TypeError):
    """A value that cannot be stored as a file: one sentence."""


def write_value(folder: str, value: Any) -> str:
    """Write the value below `folder`; returns its format, which `read_value` takes."""
    form, name, data = _encode(value)
    write_bytes(join(folder, name), data)
    return form


def read_value(folder: str, form: str) -> Any:
    """Read a written value. Raises FileNotFoundError, and UnstorableValueError for an unknown format."""
    if form not in _FORMS:
        raise UnstorableValueError(
            f"The value in {folder!r} has the format {form!r}, expected one of {', '.join(_FORMS)}. Move the output "
            "aside and materialize its asset again."
        )
    name, decode = _FORMS[form]
    return decode(read_bytes(join(folder, name)))


def encode_value(value: Any) -> bytes:
    """The value as bytes."""
    return _encode(value)[2]


def _encode(value: Any) -> tuple[str, str, bytes]:
    if isinstance(value, bytes):
        return "bytes", _FORMS["bytes"][0], value
    if isinstance(value, str):
        return "text", _FORMS["text"][0], value.encode()
    if _is_a(value, "pandas", "DataFrame"):
        import pyarrow

        return "pandas", _FORMS["pandas"][0], _table_bytes(pyarrow.Table.from_pandas(value))
    if _is_a(value, "pyarrow", "Table"):
        return "arrow", _FORMS["arrow"][0], _table_bytes(value)
    try:
        text = json.dumps(value, allow_nan=False, sort_keys=True, indent=2)
        same = json.loads(text) == value
    except (TypeError, ValueError, RecursionError) as error:
        raise UnstorableValueError(
            f"A value of type {type(value).__name__} cannot be stored ({error}). "
            "Return JSON, bytes, text, an Arrow or a pandas table."
        ) from error
    if not same:
        raise UnstorableValueError(
            f"{str(value)[:200]!r} would come back from JSON as something else. Use lists and dicts with text keys."
        )
    return "json", _FORMS["json"][0], text.encode()


def _is_a(value: Any, module: str, name: str) -> bool:
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(value, getattr(loaded, name))


def _table_bytes(table: Any) -> bytes:
    import io

    import pyarrow.parquet

    sink = io.BytesIO()
    # with Parquet's own names for list items, a table would not equal the one written
    pyarrow.parquet.write_table(table, sink, use_compliant_nested_type=False, write_page_checksum=True)
    return sink.getvalue()


def _read_table(data: bytes) -> Any:
    import io

    import pyarrow.parquet

    return pyarrow.parquet.read_table(io.BytesIO(data), page_checksum_verification=True)


_FORMS: dict[str, tuple[str, Any]] = {
    "json": ("value.json", json.loads),
    "bytes": ("value.bin", bytes),
    "text": ("value.txt", bytes.decode),
    "arrow": ("value.parquet", _read_table),
    "pandas": ("value.parquet", lambda data: _read_table(data).to_pandas()),
}
