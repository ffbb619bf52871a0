"""Values that the path of a file states by folders of the form "key=value", as Hive and Spark write partitions.

data-jsonl/quality=high/kind=synthetic/kind2=wrap_medium/part-0.jsonl.zstd
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from marin_assets.step.values import versioned
from marin_resources.types.errors import MarinError


class PathKeysError(MarinError, ValueError):
    """Keys that cannot be used, or that a path does not have: one sentence."""


@dataclass(frozen=True, kw_only=True)
class PathKeys:
    """Keep the values of folders as metadata of the documents of a file."""

    names: tuple[str, ...] = versioned(())
    """Keys that the path of each file has."""
    id_key: str | None = versioned(None)
    """The key whose value is put before the id, as "<value>/<id>": for ids that are unique below one folder alone."""
    metadata_prefix: str = versioned("")
    """Beginning of the names of all metadata, of columns and of keys."""


def check_path_keys(fields: PathKeys) -> None:
    """Raise PathKeysError for no keys, a key that no folder can have, and an id_key that is none of them."""
    wrong = [name for name in fields.names if not name or "=" in name or "/" in name]
    if not fields.names or wrong:
        raise PathKeysError(f"path_keys.names is {fields.names!r}, expected names of keys, such as ('quality',).")
    if fields.id_key is not None and fields.id_key not in fields.names:
        raise PathKeysError(f"path_keys.id_key is {fields.id_key!r}, expected one of names {fields.names!r}, or None.")


def values_in(path: str, fields: PathKeys) -> Mapping[str, str]:
    """Return the value of each key in the path of a file, the last one of several. Raises PathKeysError without one."""
    pairs = [folder.partition("=") for folder in path.split("/")[:-1]]
    values = {key: unquote(value) for key, equals, value in pairs if equals and value}
    missing = next((name for name in fields.names if name not in values), None)
    if missing is not None:
        raise PathKeysError(
            f"The path {path!r} has no folder '{missing}=…', expected one for each of path_keys.names "
            f"{fields.names!r}. Correct the names, or input_path."
        )
    return {name: values[name] for name in fields.names}
