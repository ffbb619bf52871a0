"""What the tries of a step cost, and how much of their work is in its output."""

from __future__ import annotations

import pytest

from marin_resources.ray_tpu.slices.host_progress import HostProgress
from marin_resources.ray_tpu.slices.retries import Try
from marin_resources.storage.output.notes.ledger import MOST_TRIES, facts_of, ledger_of

NOT_REPORTED = HostProgress()


def ended(noted: HostProgress, *, succeeded: bool, ran_s: float = 100.0, called_s: float = 10.0) -> Try:
    one = Try(
        attempt=1,
        number=1,
        slices=["a"],
        hosts=["10.0.0.1"],
        devices=9,
        waited_s=5,
        started_at="2026-01-01T00:00:00+00:00",
    )
    one.end(ran_s, called_s, noted, succeeded=succeeded)
    return one


@pytest.mark.parametrize(
    ("noted", "succeeded", "expected"),
    [
        # began after 10 + 20 s, the last checkpoint has the state after 10 + 50 s
        (HostProgress(began_s=20, saved_step=7, saved_s=50), False, (30, 30, 40)),
        (HostProgress(began_s=20, saved_step=7, saved_s=50), True, (30, 70, 0)),
        (HostProgress(began_s=20), False, (30, 0, 70)),
        (HostProgress(began_s=20), True, (30, 70, 0)),
        (NOT_REPORTED, True, (0, 100, 0)),
        (NOT_REPORTED, False, (0, 0, 100)),
        # a host's clock runs a little longer than the job's
        (HostProgress(began_s=95, saved_step=7, saved_s=99), False, (100, 0, 0)),
    ],
)
def test_the_time_of_a_try_is_startup_kept_or_lost(
    noted: HostProgress, succeeded: bool, expected: tuple[float, float, float]
) -> None:
    one = ended(noted, succeeded=succeeded)
    assert (one.startup_s, one.kept_s, one.lost_s) == expected
    assert sum(expected) == one.ran_s == 100


def test_the_ledger_sums_the_tries_and_one_that_was_lost_with_its_job_has_its_waiting_alone() -> None:
    lost = ended(HostProgress(began_s=20, saved_step=7, saved_s=50), succeeded=False).to_dict()
    last = ended(HostProgress(began_s=20, resumed_from=7), succeeded=True).to_dict()
    unknown = {"attempt": 1, "number": 2, "waited_s": 3.0, "ran_s": None, "kept_s": None}
    assert ledger_of([lost, unknown, last]) == {
        "tries": 3,
        "waited_s": 13.0,
        "startup_s": 60.0,
        "kept_s": 100.0,
        "lost_s": 40.0,
        "goodput": round(100 / 213, 4),
        "device_hours": 0.5,
    }
    assert (lost["saved_step"], last["resumed_from"]) == (7, 7)


def test_without_tries_the_ledger_is_empty() -> None:
    assert ledger_of([])["goodput"] is None


def test_of_many_tries_the_last_are_held_and_all_are_counted() -> None:
    one = ended(HostProgress(began_s=20, saved_step=7, saved_s=50), succeeded=False).to_dict()
    many = [{**one, "number": number} for number in range(1, 301)]
    mark = facts_of(many)
    assert [each["number"] for each in mark["tries"]] == list(range(301 - MOST_TRIES, 301))
    record = facts_of([{**one, "attempt": 2}], [mark])
    assert len(record["tries"]) == MOST_TRIES
    assert record["tries"][-1]["attempt"] == 2
    assert (record["ledger"]["tries"], record["ledger"]["kept_s"]) == (301, 301 * 30.0)
    assert record["ledger"]["goodput"] == ledger_of(many)["goodput"]


def test_a_mark_without_a_ledger_counts_by_its_tries() -> None:
    one = ended(HostProgress(began_s=20), succeeded=True).to_dict()
    assert facts_of([one], [{"tries": [one]}])["ledger"] == ledger_of([one, one])
