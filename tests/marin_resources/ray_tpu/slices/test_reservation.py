from __future__ import annotations

from typing import Any

import pytest

from marin_resources.hardware.resources import tpu
from marin_resources.ray_tpu.slices import reservation
from marin_resources.ray_tpu.slices.bundles import NODE, Group


def test_a_step_that_waits_takes_a_bad_host_when_that_is_no_longer_avoided(monkeypatch: pytest.MonkeyPatch) -> None:
    """The only other slice may be taken away meanwhile, the half an hour may end, or a person may lift it."""
    bad, requested, held, polls = {"a1"}, list[str](), list[Any](), list[None]()

    def request(group: Group, count: int, name: str) -> list[Any]:
        requested.append(group.selectors[0].get(NODE, "any"))
        return [group]

    def poll() -> None:
        polls.append(None)
        if len(polls) == 3:
            bad.clear()

    monkeypatch.setattr(reservation, "request", request)
    monkeypatch.setattr(reservation, "is_there", lambda group: NODE not in group.selectors[0])
    monkeypatch.setattr(reservation, "release", list.clear)
    monkeypatch.setattr(reservation, "POLL_S", 0.01)
    monkeypatch.setattr(reservation, "AVOID_EVERY_S", 0.0)
    reservation._acquire(tpu("v4-16"), lambda: frozenset(bad), poll, held, "job-1")
    assert requested == ["!in(a1)", "any"]
    assert len(held) == 1
