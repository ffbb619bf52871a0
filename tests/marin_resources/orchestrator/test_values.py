from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from marin_resources.orchestrator.io_manager import UnstorableValueError, encode_value, read_value, write_value
from marin_resources.storage.files import read_from, sizes_below
from marin_resources.storage.paths import join

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@given(json_values | st.binary())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_json_bytes_and_text_come_back_as_they_were(disk_or_gcs_prefix: str, value: Any) -> None:
    form = write_value(disk_or_gcs_prefix, value)
    read = read_value(disk_or_gcs_prefix, form)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("value", "form", "name"),
    [({"a": 1}, "json", "value.json"), (b"\x00", "bytes", "value.bin"), ("ü", "text", "value.txt")],
)
def test_a_value_has_a_form_and_a_file(disk_or_gcs_prefix: str, value: Any, form: str, name: str) -> None:
    assert write_value(disk_or_gcs_prefix, value) == form
    assert list(sizes_below(disk_or_gcs_prefix)) == [name]
    assert read_from(join(disk_or_gcs_prefix, name), 0) == encode_value(value)


def test_an_arrow_table_comes_back_with_its_types(disk_or_gcs_prefix: str) -> None:
    import pyarrow as pa

    columns = {"a": pa.array([1, None], pa.int32()), "b": ["x", "ü"], "c": [[1.5], []]}
    table = pa.table(columns).replace_schema_metadata({"source": "test"})
    assert write_value(disk_or_gcs_prefix, table) == "arrow"
    read = read_value(disk_or_gcs_prefix, "arrow")
    assert read.equals(table, check_metadata=True)
    assert encode_value(read) == encode_value(table)


def test_a_pandas_table_comes_back_with_index_and_types(disk_or_gcs_prefix: str) -> None:
    import pandas as pd

    frame = pd.DataFrame(
        {"when": pd.to_datetime(["2024-01-01", "2024-02-02"]), "kind": pd.Categorical(["a", "b"]), "n": [1.5, None]},
        index=pd.Index(["x", "y"], name="key"),
    )
    assert write_value(disk_or_gcs_prefix, frame) == "pandas"
    read = read_value(disk_or_gcs_prefix, "pandas")
    pd.testing.assert_frame_equal(read, frame)
    assert encode_value(read) == encode_value(frame)


class Opaque:
    pass


@pytest.mark.parametrize("value", [Opaque(), {1, 2}, float("nan"), {"a": [float("inf")]}, lambda: 1])
def test_a_value_without_a_file_form_is_refused_by_its_type(disk_or_gcs_prefix: str, value: Any) -> None:
    with pytest.raises(UnstorableValueError, match="Return JSON, bytes, text, an Arrow or a pandas table"):
        write_value(disk_or_gcs_prefix, value)
    assert sizes_below(disk_or_gcs_prefix) == {}


@pytest.mark.parametrize("value", [(1, 2), {"a": (1,)}, {1: "a"}], ids=repr)
def test_a_value_that_json_would_change_is_refused(value: Any) -> None:
    with pytest.raises(UnstorableValueError, match="would come back from JSON as something else"):
        encode_value(value)


def test_the_same_dict_is_the_same_bytes_in_any_order() -> None:
    assert encode_value({"a": 1, "b": 2}) == encode_value(dict(reversed([("a", 1), ("b", 2)])))
    assert json.loads(encode_value({"b": 1})) == {"b": 1}


def test_a_value_that_is_not_there_is_a_file_not_found(disk_or_gcs_prefix: str) -> None:
    with pytest.raises(FileNotFoundError):
        read_value(disk_or_gcs_prefix, "json")
