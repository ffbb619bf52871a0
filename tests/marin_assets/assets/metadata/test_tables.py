"""Tables on an asset's page: of results, and of configs."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest

from marin_assets.assets.metadata.tables import MAX_CHARACTERS, MAX_ROWS, config_table, tables_of


def rows(value: dg.MetadataValue) -> list[dict[str, Any]]:
    assert isinstance(value, dg.TableMetadataValue)
    return [dict(record.data) for record in value.records]


def types(value: dg.MetadataValue) -> dict[str, str]:
    assert isinstance(value, dg.TableMetadataValue)
    return {column.name: column.type for column in value.schema.columns}


def test_a_list_of_flat_rows_is_a_table_with_all_their_columns() -> None:
    found = tables_of({"texts": [{"prompt": "a", "n": 1}, {"prompt": "b", "share": 0.5}], "loss": 2.5})
    assert list(found) == ["texts"]
    assert rows(found["texts"]) == [{"prompt": "a", "n": 1, "share": ""}, {"prompt": "b", "n": "", "share": 0.5}]


def test_a_mapping_of_rows_has_the_names_last_and_a_wide_one_is_turned() -> None:
    by_reason = {f"filter/{i}": {"documents": i, "bytes": 10 * i} for i in range(3)}
    scores = {"held_out": {"acc": 0.5, "acc_stderr": 0.01, "instances": 500}, "texts": {"bits_per_byte": 2.123456789}}
    found = tables_of({"by_reason": by_reason, "scores": scores})
    assert rows(found["by_reason"])[1] == {"documents": 1, "bytes": 10, "name": "filter/1"}
    assert types(found["by_reason"]) == {"documents": "int", "bytes": "int", "name": "string"}
    assert rows(found["scores"]) == [
        {"name": "acc", "held_out": 0.5, "texts": ""},
        {"name": "acc_stderr", "held_out": 0.01, "texts": ""},
        {"name": "instances", "held_out": 500, "texts": ""},
        {"name": "bits_per_byte", "held_out": "", "texts": 2.12346},
    ]


def test_a_column_of_the_rows_is_not_hidden_by_their_names() -> None:
    found = tables_of({"narrow": {"a": {"name": "x"}, "b": {"name": "y"}}, "wide": {"name": {"acc": 1, "loss": 2}}})
    assert rows(found["narrow"])[0] == {"name": "x", "name_": "a"}
    assert rows(found["wide"])[0] == {"name_": "acc", "name": 1}


@pytest.mark.parametrize(
    "value",
    [1, "a", None, [], {}, [1, 2], ["a"], [{}], [{"a": {"b": 1}}], {"a": 1, "b": {"c": 2}}, {"a": {"b": [1]}}, [[1]]],
)
def test_what_is_no_table_is_left_to_the_results(value: object) -> None:
    assert tables_of({"x": value}) == {}


def test_a_long_table_and_a_long_text_are_cut_and_say_so() -> None:
    found = tables_of({"all": [{"n": i, "text": "x" * 5000} for i in range(1000)]})
    [(name, value)] = found.items()
    assert name == f"all (first {MAX_ROWS} of 1000)"
    assert len(rows(value)) == MAX_ROWS
    assert rows(value)[0]["text"] == "x" * MAX_CHARACTERS + " …"


def test_a_config_shows_each_field_and_whether_it_is_in_the_version() -> None:
    config = {
        "model": {"layers": 2, "rope": None},
        "seed": 0,
        "filters": [{"name": "c4"}],
        "path": "/data",
        "none": {},
    }
    found = config_table(config, ["model", "filters.[0].name", "path"])
    assert rows(found) == [
        {"field": "model.layers", "value": 2, "in the version": True},
        {"field": "model.rope", "value": "", "in the version": True},
        {"field": "seed", "value": 0, "in the version": False},
        {"field": "filters", "value": '[{"name": "c4"}]', "in the version": True},
        {"field": "path", "value": "/data", "in the version": True},
        {"field": "none", "value": "{}", "in the version": False},
    ]


@pytest.mark.parametrize("config", [{}, [1], "text", None])
def test_a_config_that_is_no_mapping_is_shown_as_it_is(config: object) -> None:
    assert isinstance(config_table(config, []), dg.JsonMetadataValue)
