"""What a function reports reaches the process of its step, while that listens."""

from __future__ import annotations

from collections.abc import Mapping

from marin_resources.step_api import progress


class Heard:
    def __init__(self) -> None:
        self.all: list[tuple[str, int | None]] = []

    def resumed(self, step: int | None) -> None:
        self.all.append(("resumed", step))

    def stepped(self, step: int) -> None:
        self.all.append(("step", step))

    def numbers(self, numbers: Mapping[str, float], of: int | None) -> None:
        self.all.append((f"{dict(numbers)}", of))

    def saved(self, step: int) -> None:
        self.all.append(("saved", step))

    def save_requested(self) -> bool:
        return True


def test_reports_reach_the_listener_and_nobody_afterwards() -> None:
    heard = Heard()
    with progress.reports_to(heard):
        progress.report_resumed(None)
        progress.report_step(1)
        progress.report_numbers({"loss": 2.5}, of=9)
        progress.report_checkpoint(1)
        assert progress.checkpoint_requested()
    progress.report_step(2)
    assert heard.all == [("resumed", None), ("step", 1), ("{'loss': 2.5}", 9), ("saved", 1)]
    assert not progress.checkpoint_requested()


def test_each_step_renews_a_limit_and_a_checkpoint_alone_does_not() -> None:
    renewed: list[int] = []
    with progress.reports_to(progress.Renewing(lambda: renewed.append(1))):
        progress.report_resumed(3)
        progress.report_step(4)
        progress.report_checkpoint(4)
    assert len(renewed) == 2
