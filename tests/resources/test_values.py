from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from marin_resources.values import UnstorableValueError, encode_value, read_value, write_value

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@given(json_values | st.binary())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_json_bytes_and_text_come_back_as_they_were(tmp_path: Path, value: Any) -> None:
    form = write_value(str(tmp_path), value)
    read = read_value(str(tmp_path), form)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("value", "form", "name"),
    [({"a": 1}, "json", "value.json"), (b"\x00", "bytes", "value.bin"), ("ü", "text", "value.txt")],
)
def test_a_value_has_a_form_and_a_file(tmp_path: Path, value: Any, form: str, name: str) -> None:
    assert write_value(str(tmp_path), value) == form
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == encode_value(value)


def test_an_arrow_table_comes_back_with_its_types(tmp_path: Path) -> None:
    import pyarrow as pa

    columns = {"a": pa.array([1, None], pa.int32()), "b": ["x", "ü"], "c": [[1.5], []]}
    table = pa.table(columns).replace_schema_metadata({"source": "test"})
    assert write_value(str(tmp_path), table) == "arrow"
    read = read_value(str(tmp_path), "arrow")
    assert read.equals(table, check_metadata=True)
    assert encode_value(read) == encode_value(table)


def test_a_pandas_table_comes_back_with_index_and_types(tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame(
        {"when": pd.to_datetime(["2024-01-01", "2024-02-02"]), "kind": pd.Categorical(["a", "b"]), "n": [1.5, None]},
        index=pd.Index(["x", "y"], name="key"),
    )
    assert write_value(str(tmp_path), frame) == "pandas"
    read = read_value(str(tmp_path), "pandas")
    pd.testing.assert_frame_equal(read, frame)
    assert encode_value(read) == encode_value(frame)


class Opaque:
    pass


@pytest.mark.parametrize("value", [Opaque(), {1, 2}, float("nan"), {"a": [float("inf")]}, lambda: 1], ids=repr)
def test_a_value_without_a_file_form_is_refused_by_its_type(tmp_path: Path, value: Any) -> None:
    with pytest.raises(UnstorableValueError, match="Return JSON, bytes, text, an Arrow or a pandas table"):
        write_value(str(tmp_path), value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [(1, 2), {"a": (1,)}, {1: "a"}], ids=repr)
def test_a_value_that_json_would_change_is_refused(value: Any) -> None:
    with pytest.raises(UnstorableValueError, match="would come back from JSON as something else"):
        encode_value(value)


def test_the_same_dict_is_the_same_bytes_in_any_order() -> None:
    assert encode_value({"a": 1, "b": 2}) == encode_value(dict(reversed([("a", 1), ("b", 2)])))
    assert json.loads(encode_value({"b": 1})) == {"b": 1}


def test_a_value_that_is_not_there_is_a_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_value(str(tmp_path), "json")
