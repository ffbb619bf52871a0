"""A store that ignores the conditions of a write is refused before anything is written there."""

from __future__ import annotations

import object_stores
import pytest
from moto_s3 import CARELESS

from marin_resources.configuration.settings import SettingError
from marin_resources.storage.control import control
from marin_resources.storage.control.conditions import NOTE, require_conditions
from marin_resources.storage.control.protocol import ConflictError
from marin_resources.storage.files import sizes_below
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join
from marin_resources.types.output import Output

X = Output(name="raw/x", version="abc123", identity="a" * 64)


def test_a_store_that_ignores_conditions_is_refused_in_a_sentence() -> None:
    prefix = object_stores.s3_prefix(CARELESS)
    for _ in range(2):
        with pytest.raises(SettingError) as caught:
            Store(prefix).claim(X, attempt=1, resumable=False, run_id=None)
        assert str(caught.value).startswith(
            f"The store of {prefix!r} at {object_stores.S3_URL} ignores the condition of a write "
            "(If-None-Match and If-Match), so two runs could publish one output. Use a store"
        )
    assert sizes_below(prefix) == {}


def test_a_prefix_is_tested_once(any_prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        require_conditions.cache_clear()
        require_conditions(any_prefix)
        monkeypatch.setattr(control, "write", lambda *asked, **more: pytest.fail("it is tested again"))
    assert sizes_below(any_prefix).keys() == ({NOTE} if any_prefix.startswith("s3://") else set())


def test_a_note_of_another_endpoint_or_a_damaged_one_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = object_stores.s3_prefix(CARELESS)
    for note in (b'{"endpoint": "https://other"}', b"\xff", b"[]"):
        require_conditions.cache_clear()
        control.put(join(prefix, NOTE), note)
        with pytest.raises(SettingError, match="ignores the condition"):
            require_conditions(prefix)


def test_the_careless_store_of_the_tests_is_careless_indeed() -> None:
    for kind in (CARELESS, "test"):
        path = join(object_stores.s3_prefix(kind), "a")
        control.write(path, b"one", expected=None)
        if kind == "test":
            with pytest.raises(ConflictError):
                control.write(path, b"two", expected=None)
        else:
            control.write(path, b"two", expected=None)
