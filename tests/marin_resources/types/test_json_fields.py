"""A JSON object has a typed attribute for each field that its class declares, and keeps the fields that it does not."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import pytest

from marin_resources.types.json_fields import (
    JsonObject,
    integer,
    mapping,
    optional_part,
    part,
    parts_by_name,
    required_text,
    text,
    texts,
    unchecked,
)
from marin_resources.types.versioned_json import ANY, Required


class Place(JsonObject):
    path = required_text("from")


class Visit(Place):
    at = text()


class Trip(JsonObject):
    name = text()
    stops = texts()
    days = integer()
    last = optional_part(Visit)
    home = part(Visit)
    by_day = parts_by_name(Place)
    notes = mapping()
    weather = unchecked()


FIELDS = {"name": "north", "days": 2, "last": {"from": "a", "at": "noon"}, "by_day": {"1": {"from": "b"}}, "later": 1}


def test_a_declared_field_is_an_attribute() -> None:
    trip = Trip.from_dict(FIELDS)
    assert (trip.name, trip.days, trip.by_day["1"].path) == ("north", 2, "b")
    assert trip.last is not None
    assert (trip.last.path, trip.last.at) == ("a", "noon")


@pytest.mark.parametrize("fields", [{}, dict.fromkeys(Trip.shape)])
def test_a_field_that_is_missing_or_null_is_none_or_empty(fields: dict[str, object]) -> None:
    trip = Trip.from_dict(fields)
    assert (trip.name, trip.days, trip.last, trip.weather) == (None, None, None, None)
    assert (list(trip.stops), dict(trip.by_day), dict(trip.notes)) == ([], {}, {})
    assert (trip.home.at, bool(trip.home)) == (None, False)


def test_the_shape_has_the_checked_fields_in_their_order_and_those_of_the_class_above() -> None:
    assert Visit.shape == {"from": Required(str), "at": str}
    assert list(Trip.shape) == ["name", "stops", "days", "last", "home", "by_day", "notes"]
    assert Trip.shape["by_day"] == {ANY: {"from": Required(str)}}
    assert Place.shape == {"from": Required(str)}


def test_every_field_comes_back_in_its_order_also_one_that_is_not_declared() -> None:
    assert list(Trip.from_dict(FIELDS).to_dict().items()) == list(FIELDS.items())


def test_an_object_is_equal_by_its_fields_false_without_one_and_frozen() -> None:
    trip = Trip.from_dict(FIELDS)
    assert trip == Trip.from_dict(dict(FIELDS)) == pickle.loads(pickle.dumps(trip))
    assert trip != Trip()
    assert not Trip()
    with pytest.raises(FrozenInstanceError):
        trip.name = "south"  # type: ignore[misc, assignment]
