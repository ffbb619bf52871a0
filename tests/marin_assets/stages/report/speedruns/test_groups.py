"""The front, tracks, and what is more than noise."""

from __future__ import annotations

import pytest
from scipy import stats
from speedrun_entries import entry

from marin_assets.stages.report.speedruns.entry import Entry, without_equals
from marin_assets.stages.report.speedruns.groups import Finish, front_of, grouped, p_better, track_of


def seeds(recipe: str, flops: float, values: list[float], day: int = 1) -> list[Entry]:
    when = f"2026-01-{day:02} 00:00:00 UTC"
    return [
        entry(f"{recipe}/seed={number}", flops, value, run_completion_timestamp=when)
        for number, value in enumerate(values)
    ]


def verdicts(finishes: list[Finish]) -> dict[str, str]:
    return {finish.group.label: finish.verdict for finish in finishes}


def test_the_front_is_strictly_better_than_all_that_is_cheaper() -> None:
    runs = [
        entry("a", 1e18, 1.5),
        entry("b", 2e18, 1.5),  # as good as a cheaper one
        entry("c", 3e18, 1.3),
        entry("d", 3e18, 1.25),  # as cheap, and better
        entry("e", 4e18, 1.4),
        entry("f", 9e18, 1.0),
    ]
    assert [run.name for run in front_of(runs)] == ["a", "d", "f"]


def test_the_front_over_hardware_flops_is_another_one_and_leaves_out_what_has_none() -> None:
    cheap = entry("cheap", 1e18, 1.5, hardware_flops=9e18)
    full = entry("full", 2e18, 1.4, hardware_flops=4e18)
    unknown = Entry(name="cpu", info={**full.info, "training_hardware_flops": None, "eval/paloma/c4_en/bpb": 0.5})
    assert [run.name for run in front_of([cheap, full, unknown], "hardware_flops")] == ["full"]
    assert [run.name for run in front_of([cheap, full])] == ["cheap", "full"]


def test_a_metric_of_which_more_is_better_turns_the_front() -> None:
    runs = [entry("a", 1e18, 0.3, goal="max"), entry("b", 2e18, 0.2, goal="max"), entry("c", 3e18, 0.4, goal="max")]
    assert [run.name for run in front_of(runs)] == ["a", "c"]


def test_a_run_under_two_names_is_one() -> None:
    first, other = entry("splash", 1e18, 1.5), entry("splash/default", 1e18, 1.5)
    [merged, third] = without_equals([first, other, entry("third", 1e18, 1.5001)])
    assert (merged.name, merged.also, third.also) == ("splash", ("splash/default",), ())


def test_seeds_are_runs_of_a_label_with_as_many_flops() -> None:
    runs = [*seeds("adam", 1e18, [1.5, 1.51]), *seeds("adam", 2e18, [1.4]), *seeds("muon", 1.001e18, [1.3])]
    groups = grouped(runs)
    assert [(group.label, len(group.entries)) for group in groups] == [("adam", 2), ("adam", 1), ("muon", 1)]
    assert groups[0].half_width == pytest.approx(12.706 * 0.005, rel=1e-3)
    assert groups[1].half_width is None


def test_the_test_is_students_one_sided_one() -> None:
    values = [3.27, 3.275, 3.271, 3.279]
    expected = stats.ttest_1samp(values, 3.28, alternative="less").pvalue
    assert p_better(values, 3.28) == pytest.approx(expected, rel=1e-9)
    assert p_better([-value for value in values], -3.28, "max") == pytest.approx(expected, rel=1e-9)
    assert p_better([3.27], 3.28) is None
    assert p_better([3.27, 3.27, 3.27], 3.28) is None


def test_faster_needs_three_seeds_and_a_small_p() -> None:
    runs = [
        *seeds("single", 1e18, [1.0]),
        *seeds("pair", 2e18, [1.0, 1.001]),
        *seeds("noisy", 3e18, [1.0, 1.2, 1.05]),
        *seeds("shown", 4e18, [1.0, 1.001, 1.002], day=2),
        *seeds("slower", 6e18, [1.0, 1.001, 1.002], day=3),
        *seeds("earlier", 5e18, [1.0, 1.001, 1.002], day=1),
        *seeds("above", 5e18, [1.2, 1.21, 1.22]),
        *seeds("copied", 7e18, [1.0, 1.0, 1.0]),
    ]
    finishes = track_of(grouped(runs), 1.1)
    assert [finish.group.label for finish in finishes][:3] == ["single", "pair", "noisy"]
    shown = verdicts(finishes)
    assert shown.pop("noisy").startswith("p = 0.4")
    assert shown == {
        "single": "single run",
        "pair": "2 runs of 3",
        "shown": "faster",
        "earlier": "first",
        "slower": "not faster than the best",
        "copied": "equal runs",
    }


def test_a_recipe_is_on_a_track_at_its_smallest_size_and_at_the_smallest_that_a_test_shows() -> None:
    runs = [
        *seeds("adam", 1e18, [1.0]),
        *seeds("adam", 2e18, [0.95, 0.951]),
        *seeds("adam", 4e18, [0.9, 0.901, 0.902]),
        *seeds("adam", 8e18, [0.8, 0.801, 0.802]),
    ]
    finishes = track_of(grouped(runs), 1.1)
    assert [(finish.group.flops, finish.verdict) for finish in finishes] == [(1e18, "single run"), (4e18, "first")]
