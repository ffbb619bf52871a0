from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marin_resources.types.output import Output
from marin_resources.types.partition_key import (
    PartitionKeyError,
    key_of,
    key_of_revision,
    require_distinct,
    revision_of,
    segment_of,
)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_a_key_comes_back_from_its_segment(key: str) -> None:
    if key in (".", ".."):
        return
    segment = segment_of(key)
    assert key_of(segment) == key
    assert "/" not in segment
    assert not segment.startswith(".")


@given(st.text(max_size=20))
def test_a_segment_that_is_no_keys_segment_has_no_key(segment: str) -> None:
    key = key_of(segment)
    assert key is None or segment_of(key) == segment


@pytest.mark.parametrize("key", ["2026-01-01", "2026-01-01-13:00", "en", "CC-MAIN-2024-10", "step_1000", "a+b@c=d.e"])
def test_usual_keys_are_readable_in_a_path(key: str) -> None:
    assert segment_of(key) == key


@pytest.mark.parametrize(
    ("key", "named"),
    [("", "''"), (".", "'.'"), ("..", "'..'"), ("x" * 201, "201 bytes"), ("é" * 40, "240 bytes"), ("\ud800", "UTF-8")],
)
def test_a_key_that_cannot_be_a_folder_is_refused(key: str, named: str) -> None:
    with pytest.raises(PartitionKeyError, match="partition key") as refused:
        segment_of(key)
    assert named in str(refused.value)


def test_keys_that_differ_in_case_are_refused() -> None:
    with pytest.raises(PartitionKeyError, match="static\\(\\) has the keys 'en' and 'EN', which are one folder"):
        require_distinct(["de", "en", "EN"], "static()")
    require_distinct(["de", "en", "de"], "static()")


def test_each_partition_is_a_folder_and_an_identity_of_its_own() -> None:
    whole = Output(name="tokenized/web", version="abcdef", identity="1" * 64)
    one, other = whole.at("2026/01"), whole.at("2026/02")
    assert one.relative() == "tokenized/web-abcdef/2026%2F01"
    assert one.label == "tokenized/web[2026/01]"
    assert len({whole.identity, one.identity, other.identity}) == 3
    assert one == whole.at("2026/01")
    assert Output(name="x", version="abcdef", identity="1", override="kept/x/").at("a").relative() == "kept/x/a"


@pytest.mark.parametrize(
    ("key", "delivery", "revision"),
    [("2026-01", "2026-01", 1), ("2026-01@2", "2026-01", 2), ("a@b@13", "a@b", 13), ("a@1", "a@1", 1), ("@2", "@2", 1)],
)
def test_a_key_names_a_delivery_and_its_revision(key: str, delivery: str, revision: int) -> None:
    assert revision_of(key) == (delivery, revision)
    assert key_of_revision(delivery, revision) == key
