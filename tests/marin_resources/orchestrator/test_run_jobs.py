"""The jobs that a run waits for, as tags of the run."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import dagster as dg
import pytest
from dagster._core.storage.tags import TagType, get_tag_type
from dagster._core.test_utils import create_run_for_test

from marin_resources.orchestrator.run_jobs import MAX_VALUE_BYTES, RUN_TAG, TAG, RunJobs, jobs_of


@pytest.fixture
def run_id(instance: dg.DagsterInstance) -> str:
    return create_run_for_test(instance).run_id


@pytest.fixture
def jobs(instance: dg.DagsterInstance, run_id: str) -> RunJobs:
    return RunJobs(instance, run_id)


def seen(instance: dg.DagsterInstance, run_id: str) -> dict[str, str]:
    run = instance.get_run_by_id(run_id)
    assert run is not None
    return jobs_of(run)


def tags(instance: dg.DagsterInstance, run_id: str) -> dict[str, str]:
    run = instance.get_run_by_id(run_id)
    assert run is not None
    return dict(run.tags)


def test_a_job_is_seen_until_it_is_forgotten(instance: dg.DagsterInstance, run_id: str, jobs: RunJobs) -> None:
    assert seen(instance, run_id) == {}
    jobs.set("tokenized/a", "tokenized-a-1")
    jobs.set("tokenized/b", "tokenized-b-1")
    assert seen(instance, run_id) == {"tokenized/a": "tokenized-a-1", "tokenized/b": "tokenized-b-1"}
    jobs.set("tokenized/a", None)
    assert seen(instance, run_id) == {"tokenized/b": "tokenized-b-1"}
    jobs.set("tokenized/b", None)
    assert seen(instance, run_id) == {}


def test_the_next_attempt_takes_the_place_of_the_one_before(
    instance: dg.DagsterInstance, run_id: str, jobs: RunJobs
) -> None:
    jobs.set("a", "a-1-a1")
    jobs.set("a", "a-1-a2")
    assert seen(instance, run_id) == {"a": "a-1-a2"}
    jobs.set("a", None)
    assert seen(instance, run_id) == {}


def test_of_many_steps_that_wait_for_one_job_one_is_named(
    instance: dg.DagsterInstance, run_id: str, jobs: RunJobs
) -> None:
    for number in range(100):
        jobs.set(f"s{number}", "small-steps-1")
    assert seen(instance, run_id) == {"s0": "small-steps-1"}
    jobs.set("s0", None)
    jobs.set("s0", "small-steps-2")
    assert sorted(seen(instance, run_id).values()) == ["small-steps-1", "small-steps-2"]
    for number in range(1, 100):
        jobs.set(f"s{number}", None)
    assert list(seen(instance, run_id).values()) == ["small-steps-2"]
    jobs.set("s0", None)
    assert seen(instance, run_id) == {}


def test_to_forget_what_was_not_noted_changes_nothing(instance: dg.DagsterInstance, run_id: str, jobs: RunJobs) -> None:
    jobs.set("a", None)
    assert TAG not in tags(instance, run_id)


def test_the_runs_page_shows_the_jobs_and_keeps_its_other_tags(instance: dg.DagsterInstance) -> None:
    run_id = create_run_for_test(instance, tags={"team": "data"}).run_id
    RunJobs(instance, run_id).set("a", "a-1")
    assert tags(instance, run_id)["team"] == "data"
    assert tags(instance, run_id)[TAG] == '{"a": "a-1"}'
    assert get_tag_type(TAG) is not TagType.HIDDEN
    assert get_tag_type(RUN_TAG) is TagType.HIDDEN


def test_many_steps_at_once_lose_nothing(instance: dg.DagsterInstance, run_id: str, jobs: RunJobs) -> None:
    names = [f"step/{n}" for n in range(48)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda name: jobs.set(name, f"{name}-a1"), names))
        assert seen(instance, run_id) == {name: f"{name}-a1" for name in names}
        list(pool.map(lambda name: jobs.set(name, None), names[::2]))
        assert seen(instance, run_id) == {name: f"{name}-a1" for name in names[1::2]}


def test_hundreds_of_jobs_are_several_tags_that_every_database_takes(
    instance: dg.DagsterInstance, run_id: str, jobs: RunJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("marin_resources.orchestrator.run_jobs.MAX_VALUE_BYTES", 200)
    names = [f"tokenized/part-{n:03}" for n in range(30)]
    for name in names:
        jobs.set(name, f"{name.replace('/', '-')}-a1")
    pages = {key: value for key, value in tags(instance, run_id).items() if key.startswith(TAG)}
    assert len(pages) > 5
    assert max(map(len, pages.values())) <= 200 < MAX_VALUE_BYTES
    assert seen(instance, run_id).keys() == set(names)
    for name in names[1:]:
        jobs.set(name, None)
    assert seen(instance, run_id) == {names[0]: "tokenized-part-000-a1"}


def test_a_run_that_got_the_tags_of_another_waits_for_nothing(
    instance: dg.DagsterInstance, run_id: str, jobs: RunJobs
) -> None:
    jobs.set("a", "a-1")
    copied = tags(instance, run_id)
    again = create_run_for_test(instance, tags=copied).run_id
    from_the_ui = create_run_for_test(instance, tags={TAG: copied[TAG]}).run_id
    assert (seen(instance, again), seen(instance, from_the_ui)) == ({}, {})
    RunJobs(instance, again).set("b", "b-1")
    assert (seen(instance, again), seen(instance, run_id)) == ({"b": "b-1"}, {"a": "a-1"})


def test_what_another_process_wrote_over_comes_back_with_the_next_note(
    instance: dg.DagsterInstance, run_id: str, jobs: RunJobs
) -> None:
    jobs.set("a", "a-1")
    instance.add_run_tags(run_id, {TAG: "{}"})
    jobs.set("b", "b-1")
    assert seen(instance, run_id) == {"a": "a-1", "b": "b-1"}
