"""While a step runs, its asset shows how far it is."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from paced_steps import PacedConfig, step_until_seen

from marin_assets import Step
from marin_assets.assets.body.materialize import observation_of
from marin_assets.assets.runs.run import run_graph
from marin_assets.step.graph import build_graph
from marin_resources.orchestrator import progress_reporter as watched_pace
from marin_resources.storage.output.notes.progress import Progress

pytestmark = pytest.mark.usefixtures("shared_ray")

KEY = dg.AssetKey(["toy", "paced"])


def test_the_page_of_an_asset_shows_how_far_its_step_is(
    prefix: Path, dagster_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_pace, "FIRST_S", 0.2)
    step = Step(name="toy/paced", fn=step_until_seen, config=PacedConfig(seen=str(tmp_path / "seen")))
    seen: list[Any] = []

    def look_until_shown() -> None:
        with dg.DagsterInstance.get() as instance:
            while not seen:
                seen.extend(instance.fetch_observations(KEY, limit=1).records)
                ended.wait(0.05)
        (tmp_path / "seen").touch()

    ended = threading.Event()
    looking = threading.Thread(target=look_until_shown)
    looking.start()
    graph = build_graph([step])
    result = run_graph("mine", graph, list(graph))
    looking.join()
    assert (result.computed, result.failures) == (1, ())
    shown = seen[0].asset_observation
    assert shown.metadata["loss"].value == 2.5
    assert shown.metadata["steps"].value == 100_000
    assert 0 < shown.metadata["step"].value < 100_000
    assert seen[0].run_id == result.run_id


def test_an_observation_says_in_a_line_what_its_numbers_are() -> None:
    pace = Progress(step=120, at="2026-01-01", steps_per_s=4.0, of=600, numbers={"loss": 3.2104})
    shown = observation_of(KEY, "2026-01", pace)
    assert (shown.description, shown.partition) == ("step 120 of 600, loss 3.21, 2 min 0 s left", "2026-01")
    assert shown.metadata["left_s"].value == 120.0


def test_a_function_that_reports_steps_alone_is_shown_by_them() -> None:
    shown = observation_of(KEY, None, Progress(step=7, at="2026-01-01"))
    assert (shown.description, list(shown.metadata)) == ("step 7", ["step"])


@pytest.mark.parametrize(("seconds", "most"), [(24 * 3600, 160), (30 * 24 * 3600, 230)])
def test_the_events_of_a_long_step_are_few(seconds: int, most: int) -> None:
    at_s, events = 0.0, 0
    while at_s < seconds:
        at_s += watched_pace.wait_s(at_s)
        events += 1
    assert events <= most
