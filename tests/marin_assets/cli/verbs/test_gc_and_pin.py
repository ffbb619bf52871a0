"""`marin gc` and `marin pin` from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from location import Location

from marin_assets.assets.runs.experiment_record import write_experiment
from marin_assets.catalog.experiments_folder import Experiments, load_experiments
from marin_resources.storage.collect.pins import list_pins
from marin_resources.storage.files import exists, read_bytes, write_bytes
from marin_resources.storage.output.notes.collection import list_collected
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join
from marin_resources.types.output import Output, identity_of

Marin = Callable[..., tuple[int, str, str]]
OLD = Output(name="toy/old", version="abc123", identity=identity_of({"name": "toy/old"}))


@pytest.fixture
def old(made: Location) -> str:
    """An output that no experiment has any more."""
    claim = made.store.claim(OLD, attempt=1, resumable=False, run_id=None)
    write_bytes(join(claim.path, "value.txt"), b"1234")
    made.store.publish(claim, {"name": OLD.name}, {})
    return claim.path


def done(store: Store) -> bool:
    return store.look([OLD])[OLD].done


def test_what_no_experiment_needs_is_listed_and_nothing_is_changed(made: Location, old: str, marin: Marin) -> None:
    code, out, _ = marin("gc", "--keep-days", "0")
    head, row, summary = out.splitlines()
    assert code == 0
    assert head.split() == ["size", "age", "last", "use", "cost", "to", "make", "output"]
    assert (row.split()[:2], row.split()[-1]) == (["4", "B"], "toy/old-abc123")
    assert summary == (f"1 output that nothing needs, 4 B; 3 kept (3 by definitions), at {made.store.prefix}")
    assert done(made.store)
    code, out, _ = marin("gc", "toy/data")
    assert code == 0
    assert out.splitlines()[0].endswith(": the step 'toy/data' of this code location")
    code, out, _ = marin("gc", "--keep-days", "0", "--json")
    [one] = json.loads(out)["proposed"]
    assert (one["output"], one["bytes"], one["device_hours"]) == ("toy/old-abc123", 4, 0.0)


def test_a_damaged_record_is_named_and_stops_no_other_output(made: Location, old: str, marin: Marin) -> None:
    record = join(made.path("toy/model"), ".executor_info")
    write_bytes(record, b"[")
    code, out, err = marin("gc", "--keep-days", "0")
    assert (code, "toy/old-abc123" in out, repr(record) in err, err.count("\n")) == (0, True, True, 1)
    write_bytes(join(made.path("toy/model"), ".marin/manifest.json"), b"[")
    code, _, err = marin("gc", "--keep-days", "0")
    assert (code, repr(record) in err, err.count("\n")) == (1, True, 1)


def test_what_an_experiment_keeps_is_in_the_json_with_its_time(made: Location, marin: Marin) -> None:
    write_experiment("a_run", made.graph, made.store, None)
    code, out, _ = marin("gc", "--json")
    assert code == 0
    reason = json.loads(out)["kept"][made.path("toy/data").removeprefix(f"{made.store.prefix}/")]
    assert reason["kind"] == "by experiments"
    assert datetime.fromisoformat(reason["since"]).tzinfo is not None


def test_what_was_collected_is_restored(made: Location, old: str, marin: Marin) -> None:
    code, out, _ = marin("gc", "--keep-days", "0", "--collect", "--yes", "--why", "the quota")
    assert code == 0
    assert out.startswith("collected: toy/old-abc123, 4 B, until ")
    assert not done(made.store)
    code, out, _ = marin("gc", "--collected")
    assert "the quota" in out.splitlines()[1]
    code, out, err = marin("gc", "--purge", "--yes", "toy/old")
    assert (code, "can be restored until" in err) == (1, True)
    assert read_bytes(join(old, "value.txt")) == b"1234"
    code, out, _ = marin("gc", "--restore", "toy/old", "--json")
    assert (code, json.loads(out)["restored"][0]["kept"]) == (0, None)
    assert done(made.store)


def test_what_is_past_its_grace_time_is_removed(
    made: Location, old: str, marin: Marin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("marin_assets.cli.verbs.gc.LEAST_GRACE", timedelta(0))
    marin("gc", "--keep-days", "0", "--collect", "--yes", "--grace-days", "0")
    code, out, _ = marin("gc")
    assert out.splitlines()[-1] == "1 output past the grace time, 4 B: marin gc --purge removes them."
    code, out, _ = marin("gc", "--purge", "--yes")
    assert (code, out.splitlines()[-1].startswith("1 removed, ")) == (0, True)
    assert not exists(old)
    code, _, err = marin("gc", "--restore", "toy/old")
    assert (code, "finds no collected output" in err) == (2, True)


def test_a_pinned_output_is_kept_and_comes_back(made: Location, old: str, marin: Marin) -> None:
    marin("gc", "--keep-days", "0", "--collect", "--yes")
    code, out, err = marin("pin", "toy/old", "--why", "the paper")
    assert (code, out) == (0, "pinned: toy/old-abc123\n")
    assert "toy/old-abc123: it was collected, and is complete again" in err
    assert done(made.store)
    code, out, _ = marin("gc", "--keep-days", "0")
    assert "0 outputs that nothing needs" in out
    code, out, _ = marin("pin", "--list")
    assert out.startswith("toy/old-abc123: the paper (")
    code, out, _ = marin("pin", "--remove", "toy/old", "--json")
    assert (code, json.loads(out)["pins"][0]["why"]) == (0, "the paper")
    assert list_pins(made.store.prefix) == []


def test_a_step_of_the_code_location_is_pinned_by_its_name(made: Location, marin: Marin) -> None:
    code, _, _ = marin("pin", "toy/model", "--why", "served", "--alone")
    assert code == 0
    [pin] = list_pins(made.store.prefix)
    assert (join(made.store.prefix, pin.output), pin.alone) == (made.path("toy/model"), True)


def test_an_experiment_that_does_not_load_stops_a_collection(
    made: Location, old: str, marin: Marin, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = Experiments(load_experiments().steps, {"broken": "Experiment 'broken' is left out: it fails"})
    monkeypatch.setattr("marin_assets.inspection.gc.survey.load_experiments", lambda: loaded)
    code, out, err = marin("gc", "--keep-days", "0")
    assert (code, "toy/old-abc123" in out) == (0, True)
    code, _, err = marin("gc", "--keep-days", "0", "--collect", "--yes")
    assert code == 1
    assert "What these experiments need is not known, so nothing is changed" in err
    assert list_collected(made.store.prefix) == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("gc", "--collect"), "nobody can be asked here whether to continue. Pass --yes"),
        (("gc", "--collect", "--restore"), "not allowed with argument"),
        (("gc", "--restore"), "got no output, expected at least one"),
        (("gc", "--restore", "nothing"), "'nothing' finds no collected output"),
        (("gc", "nothing"), "'nothing' finds no complete output"),
        (("gc", "("), "'(' is not a pattern"),
        (("gc", "--keep-days", "-1"), "got '-1', expected a number of days from 0"),
        (("gc", "--collect", "--yes", "--grace-days", "0.01"), "--grace-days is 0.01, expected at least an hour"),
        (("gc", "--yes"), "--yes is of --collect and --purge"),
        (("gc", "--why", "x"), "--grace-days and --why are of --collect"),
        (("pin",), "got no step, expected at least one, or --list"),
        (("pin", "toy/data"), "got no reason for toy/data, expected --why"),
        (("pin", "toy/data", "--why", " "), "got no reason for toy/data, expected --why"),
        (("pin", "nothing", "--why", "x"), "'nothing' is neither an output below"),
        (("pin", "toy/database", "--why", "x"), "which is not complete at"),
        (("pin", "--list", "toy/data"), "--list takes no step"),
        (("pin", "--remove"), "got no step to --remove"),
        (("pin", "--remove", "toy/data"), "'toy/data' is not pinned below"),
    ],
)
def test_wrong_words_are_one_sentence(
    words: tuple[str, ...], sentence: str, experiment: str, prefix: str, marin: Marin
) -> None:
    code, out, err = marin(*words)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1
