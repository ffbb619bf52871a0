"""Differences between a record and now, and their sentences."""

from __future__ import annotations

from typing import Any

import pytest

from marin_resources.drift.drift import Drift, Kind, describe, find_drift, not_recorded, without_plumbing
from marin_resources.types.record import Record

SOURCE = {"function": "m:f", "digest": "d", "files_digest": "b", "modules": {"m": "1", "n": "2"}}
ENVIRONMENT = {"lock_digest": "aa", "python": "3.11.7", "platform": "Linux"}
RECORD: dict[str, Any] = {
    "format_version": 1,
    "name": "toy/x",
    "prefix": "/old",
    "output_path": "/old/toy/x-abc123",
    "dependencies": ["/old/toy/in-123abc"],
    "config": {"out": "/old/toy/x-abc123", "in": "/old/toy/in-123abc/a.txt", "raw": "/old/raw", "n": [1, {"k": None}]},
    "inputs": {"toy/in": "i1"},
    "source_digest": SOURCE,
    "environment": ENVIRONMENT,
}


def changed(record: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """The record with other fields; `config={…}` and similar arguments replace the named entries."""
    return {k: {**record[k], **v} if isinstance(v, dict) else v for k, v in {**record, **fields}.items()}


def of(fields: dict[str, Any]) -> Record:
    return Record.from_dict(fields)


def drift(record: dict[str, Any] | None = RECORD, inputs: dict[str, str | None] | None = None, **now: Any) -> list[str]:
    known = {"toy/in": "i1"} | (inputs or {})
    return [d.sentence() for d in find_drift(of(record or {}), of(changed(RECORD, **now)), known)]


def test_the_same_facts_are_no_drift() -> None:
    assert drift() == []
    assert drift(None) == []


def test_config_is_compared_field_by_field() -> None:
    assert drift(config={"raw": "/other", "n": [2, {"k": True}], "new": 0.5}) == [
        "The unversioned field 'n.[0]' was 1 and is 2 now.",
        "The unversioned field 'n.[1].k' was None and is True now.",
        "The unversioned field 'new' was None and is 0.5 now.",
        "The unversioned field 'raw' was '<prefix>/raw' and is '/other' now.",
    ]


@pytest.mark.parametrize("recorded", [RECORD, {k: v for k, v in RECORD.items() if k != "prefix"}])
def test_a_prefix_that_was_moved_is_no_drift(recorded: dict[str, Any]) -> None:
    now = {
        "prefix": "gs://b/p",
        "output_path": "gs://b/p/toy/x-abc123",
        "dependencies": ["gs://b/p/toy/in-123abc"],
        "config": {"out": "gs://b/p/toy/x-abc123", "in": "gs://b/p/toy/in-123abc/a.txt", "raw": "gs://b/p/raw"},
    }
    assert drift(recorded, **now) == []


def test_an_input_at_an_overridden_path_is_no_drift() -> None:
    assert drift(dependencies=["/kept"], config={"in": "/kept/a.txt"}) == []


def test_a_mirrored_path_is_compared_below_its_prefix_too() -> None:
    record = changed(RECORD, config={"raw": "mirror:///old/raw"})
    assert drift(record, prefix="/new", config={"raw": "mirror:///new/raw", "out": "/new/out"}) == [
        "The unversioned field 'out' was '<output>' and is '<prefix>/out' now."
    ]


def test_source_is_compared_by_module() -> None:
    assert drift(source_digest={"digest": "x", "modules": {"m": "1", "n": "9", "o": "3"}}) == [
        "The source of 'n' changed.",
        "The module 'o' is new in what its function imports.",
    ]


def test_a_module_that_only_moved_is_no_drift() -> None:
    assert drift(source_digest={"digest": "x", "modules": {"m": "1", "p.n": "2"}}) == []


def test_another_function_is_drift_of_its_own_kind() -> None:
    assert drift(source_digest={"function": "o:g", "digest": "x", "modules": {"o": "7", "n": "2"}}) == [
        "The function of 'toy/x' was 'm:f' and is 'o:g' now."
    ]


def test_the_plumbing_is_one_sentence_and_no_line_in_a_log() -> None:
    plumbing = {"marin_resources.storage.files": "5", "marin_resources.configuration.settings": "6"}
    now = changed(RECORD, source_digest={"modules": {**SOURCE["modules"], **plumbing}})  # type: ignore[dict-item]
    found = find_drift(of(RECORD), of(now), {})
    assert [d.sentence() for d in found] == [
        "The plumbing changed: 'marin_resources.configuration.settings' and 'marin_resources.storage.files'."
    ]
    assert (without_plumbing(found), describe(found)) == ((), "")


def test_an_input_of_other_content_is_drift_and_one_that_is_gone_is_not() -> None:
    assert drift(inputs={"toy/in": "i2"}) == [
        "The input 'toy/in' was computed again, and its content differs from the one read."
    ]
    assert drift(inputs={"toy/in": None}) == []


def test_lock_and_python_are_the_environment_and_a_patch_release_is_not() -> None:
    assert drift(environment={"lock_digest": "bb", "python": "3.12.1", "platform": "Darwin"}) == [
        "The environment's 'Python' was '3.11' and is '3.12' now.",
        "The environment's 'uv.lock' changed.",
    ]
    assert drift(environment={"python": "3.11.9"}) == []


def test_a_record_of_marins_has_no_drift_and_lists_what_it_lacks() -> None:
    marins = {"name": "toy/x", "config": {"out": "/elsewhere"}, "output_path": "/old/toy/x-abc123"}
    assert drift(marins, config={"raw": "/other"}) == []
    assert not_recorded(of(marins), of(RECORD)) == (Kind.CONFIG, Kind.SOURCE, Kind.INPUT, Kind.ENVIRONMENT)
    assert not_recorded(of(RECORD), of(RECORD)) == ()


def test_a_step_without_inputs_lacks_none() -> None:
    record = {k: v for k, v in RECORD.items() if k != "inputs"}
    assert not_recorded(of(record), of({**RECORD, "dependencies": []})) == ()


def test_a_line_names_a_few_of_each_kind_in_a_stable_order() -> None:
    fields = [Drift(kind=Kind.CONFIG, what=f"f{i}", was=i, now="x" * 200) for i in range(2)]
    modules = [Drift(kind=Kind.SOURCE, what=f"m{i}", was="1", now="2") for i in range(7)]
    plumbing = Drift(kind=Kind.PLUMBING, what="…", was="1", now="2")
    assert describe([plumbing, *modules, *fields]) == (
        f"since it was computed, the unversioned fields 'f0' (0, now '{'x' * 76}…) and 'f1' (1, now '{'x' * 76}…), "
        "the source of 'm0', 'm1', 'm2', 'm3' and 3 more and the plumbing changed"
    )
