"""The IO manager: it confirms the outputs of steps, and stores the values of hand-written assets.

The value of a step's asset is the state of its output that the run observed after the worker published it; the IO
manager confirms that it is the asset's output, and complete. The value of a hand-written asset is stored at
`<prefix>/<key>-<version>`, where the version covers the key, the `code_version` and the versions of its inputs.
A reader gets the path of a step's output, or the value of a hand-written asset.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
import traceback
from collections.abc import Sequence
from typing import Any

import dagster as dg

from marin_resources.orchestrator.store_resource import StoreResource
from marin_resources.storage.files import read_bytes, write_bytes
from marin_resources.storage.lease.protocol import LeaseHeldError
from marin_resources.storage.lease.watch import LeaseWatch
from marin_resources.storage.output.attempts import latest_attempt
from marin_resources.storage.output.store import AlreadyDoneError, Claim, Store
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError
from marin_resources.types.output import Observed, Output, identity_of
from marin_resources.types.versioned_json import ControlFileError

WAIT_POLL_S = 0.5
NAME, VERSION, IDENTITY, OVERRIDE = "marin/name", "marin/version", "marin/identity", "marin/override"
"""Definition metadata that names the output of a step's asset."""


class MarinIOManager(dg.ConfigurableIOManager):
    """Stores every asset's output below the store's prefix."""

    store: StoreResource

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        output, store = output_of_asset(context.step_context.job_def.asset_layer, context.asset_key), self.store.store()
        if NAME in context.asset_spec.metadata:
            for key in context.asset_partition_keys if context.has_asset_partitions else [None]:
                _confirm(store, output if key is None else output.at(key), obj.get(key))
            return
        if context.has_asset_partitions:
            output = output.at(_only_key(context.asset_partition_keys, output))
        try:
            self._store_value(store, output, obj, context)
        except ControlFileError as error:
            raise dg.Failure(f"Asset {output.label!r}: {error}", allow_retries=False) from None
        context.add_output_metadata({"path": dg.MetadataValue.path(store.locate(output))})

    def load_input(self, context: dg.InputContext) -> Any:
        layer, key = context.step_context.job_def.asset_layer, context.asset_key
        output, is_step = output_of_asset(layer, key), NAME in layer.get(key).metadata
        if not context.has_asset_partitions:
            return self._load(output, is_step)
        values = {key: self._load(output.at(key), is_step) for key in context.asset_partition_keys}
        return values if len(values) != 1 else next(iter(values.values()))

    def _load(self, output: Output, is_step: bool) -> Any:
        observed = _look(self.store.store(), output)
        if not observed.done:
            raise dg.Failure(
                f"Asset {output.label!r} is read and {observed.path!r} is not complete. Materialize it first.",
                allow_retries=False,
            )
        return observed.data_path if is_step else _stored_value(observed)

    def _store_value(self, store: Store, output: Output, value: Any, context: dg.OutputContext) -> None:
        path, run_id = store.locate(output), context.run_id
        claim = self._claim(store, output, run_id)
        if claim is None:
            self._refuse_another_value(store, output, value)
            return
        layer = context.step_context.job_def.asset_layer
        version, _ = _version_of(layer, context.asset_key, {})
        facts = {"name": output.name, "version": version, "output_path": path, "dagster_run_id": run_id}
        try:
            store.publish(claim, facts, {"format": write_value(claim.path, value)})
        except Exception as error:  # any error is recorded, and the lease released
            store.fail(claim, facts, f"{type(error).__name__}: {error}", traceback.format_exc())
            raise

    def _claim(self, store: Store, output: Output, run_id: str) -> Claim | None:
        """Claim the output, after any other writer; None if that one has completed it."""
        watch, stale = LeaseWatch(), None
        while not _look(store, output).done:
            attempt, looked_at_s = latest_attempt(store.locate(output)) + 1, watch.begin()
            try:
                return store.claim(output, attempt=attempt, resumable=False, run_id=run_id, stale_lease=stale)
            except AlreadyDoneError:
                continue
            except LeaseHeldError as held:
                stale = held.holder.generation if watch.is_stale(held.holder, looked_at_s) else None
                time.sleep(WAIT_POLL_S)
        return None

    def _refuse_another_value(self, store: Store, output: Output, value: Any) -> None:
        observed = _look(store, output)
        if encode_value(value) != encode_value(_stored_value(observed)):
            raise dg.Failure(
                f"Asset {output.label!r} gave another value than the one stored at {observed.path!r} for the same "
                "code_version. Give it a new code_version.",
                allow_retries=False,
            )


def _look(store: Store, output: Output) -> Observed:
    """The state of an output. Raises dg.Failure if one of its control files is damaged."""
    observed = store.look([output])[output]
    if observed.damage:
        raise dg.Failure(f"Asset {output.label!r}: {observed.damage}", allow_retries=False)
    return observed


def _stored_value(observed: Observed) -> Any:
    """The value of a hand-written asset. Raises UnstorableValueError if its record lacks the format."""
    return read_value(observed.path, str(observed.result.get("format")))


def _only_key(keys: Sequence[str], output: Output) -> str:
    """The key of a hand-written asset's partition. Raises dg.Failure for several, which one value cannot be."""
    if len(keys) != 1:
        raise dg.Failure(
            f"Asset {output.name!r} got one value for {len(keys)} partitions. Give it "
            "backfill_policy=dg.BackfillPolicy.multi_run(), so that each has a run and a value of its own.",
            allow_retries=False,
        )
    return str(keys[0])


def _confirm(store: Store, output: Output, observed: Any) -> None:
    """Raise dg.Failure unless the step's body returned its own output, complete."""
    path = store.locate(output)
    if not isinstance(observed, Observed) or observed.path not in store.places(output) or not observed.done:
        raise dg.Failure(
            f"Step {output.label!r} returned {observed!r:.300}, expected its complete output at {path!r}. Run again.",
            allow_retries=False,
        )


def output_of_asset(asset_layer: Any, key: dg.AssetKey) -> Output:
    """The output of an asset, by its definition alone. Raises dg.Failure if the asset has no version."""
    metadata = asset_layer.get(key).metadata
    if NAME in metadata:
        return Output(
            name=metadata[NAME],
            version=metadata[VERSION],
            identity=metadata[IDENTITY],
            override=metadata.get(OVERRIDE),
        )
    version, digest = _version_of(asset_layer, key, {})
    return Output(name="/".join(key.path), version=digest, identity=identity_of(version))


def _version_of(asset_layer: Any, key: dg.AssetKey, versions: dict[Any, Any]) -> tuple[dict[str, Any], str]:
    """A hand-written asset's version in the form of a step's version, and its six hex digits."""
    if key in versions:
        return versions[key]
    node = asset_layer.get(key)
    if not node.code_version:
        raise dg.Failure(
            f"Asset {key.to_user_string()!r} has no code_version, so its value has no path. "
            "Give it one: @dg.asset(code_version='1').",
            allow_retries=False,
        )
    parents = [_dependency(asset_layer, parent, versions) for parent in sorted(node.parent_keys)]
    version = {"name": "/".join(key.path), "config": {"code_version": node.code_version}, "dependencies": parents}
    versions[key] = (version, hashlib.md5(json.dumps(version, sort_keys=True).encode()).hexdigest()[:6])
    return versions[key]


def _dependency(asset_layer: Any, key: dg.AssetKey, versions: dict[Any, Any]) -> str:
    metadata = asset_layer.get(key).metadata
    if NAME in metadata:
        return f"{metadata[NAME]}-{metadata[VERSION]}"
    return f"{'/'.join(key.path)}-{_version_of(asset_layer, key, versions)[1]}"


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
