"""This machine's clock, compared with others."""

from __future__ import annotations

import os

import pytest

from marin_resources.doctor.clock import assess, look
from marin_resources.doctor.finding import State


@pytest.mark.parametrize(("skew_s", "state"), [(0, State.OK), (-59, State.OK), (61, State.WRONG), (-400, State.WRONG)])
def test_clocks(skew_s: float, state: State) -> None:
    assert assess("the store", skew_s).state is state


def test_each_kind_of_store_tells_its_time(any_prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIN_PREFIX", any_prefix)
    monkeypatch.delenv("MARIN_CLUSTER", raising=False)
    if "://" not in any_prefix:
        assert list(look()) == []
        os.mkdir(any_prefix)
    [finding] = look()
    assert finding.state is State.OK
    assert "the store's differs from this machine's by less than" in finding.sentence
