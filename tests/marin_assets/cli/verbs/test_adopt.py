"""`marin adopt`: what it prints, what it refuses, and what other commands say afterwards."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
from dagster_homes import new_home
from location import Location

from marin_resources.storage.files import remove, sizes_below, write_bytes
from marin_resources.storage.output.attempts import latest_attempt
from marin_resources.storage.paths import join

Marin = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _no_dagster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "no-dagster"))


@pytest.fixture
def mine(location: Location) -> str:
    path = join(location.store.prefix, "mine")
    write_bytes(join(path, "value.txt"), b"1")
    return path


def test_an_adopted_output_is_complete_and_every_command_says_from_where(
    location: Location, mine: str, marin: Marin
) -> None:
    code, out, err = marin("adopt", "toy/data", "--from", "mine", "--why", "computed by hand")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"adopted: toy/data is {mine} now, 1 file, 1 B, as the new manifest says",
        "    $ marin sync 'key:\"toy/data\"'    shows it to Dagster",
    ]
    assert f"adopted from {mine!r}: computed by hand" in marin("status", "toy/data")[1]
    [shown] = json.loads(marin("status", "toy/data", "--json")[1])["outputs"]
    assert (shown["data_path"], shown["adopted"]["why"]) == (mine, "computed by hand")
    _, planned, _ = marin("materialize", "toy/data", "toy/tokens", "--dry-run")
    assert f"complete, adopted from {mine!r}: computed by hand" in planned
    assert f"no output of this version yet; made from 'toy/data', adopted from {mine!r}: computed by hand" in planned
    assert marin("verify", "toy/data")[0] == 0
    code, out, _ = marin("adopt", "toy/data", "--from", "mine", "--why", "again")
    assert (code, out.splitlines()[0]) == (0, "toy/data is adopted from there already")


def test_what_is_taken_back_is_missing_and_names_what_was_made_from_it(
    location: Location, mine: str, marin: Marin
) -> None:
    marin("adopt", "toy/data", "--from", mine, "--why", "computed by hand")
    [data, tokens] = [node for node in location.graph if node.name in ("toy/data", "toy/tokens")]
    claim = location.store.claim(tokens.output, attempt=1, resumable=False, run_id=None)
    facts = {"adopted_inputs": {"toy/data": {"from": mine, "why": "computed by hand"}}}
    location.store.publish(claim, facts, {})
    remove(join(mine, "value.txt"))
    code, out, err = marin("adopt", "toy/data", "--undo")
    assert (code, err) == (0, "")
    assert out.splitlines()[:3] == [
        f"taken back: toy/data is missing now; the data at {mine} are as they were",
        "    $ marin materialize 'key:\"toy/data\"'",
        "made from it: toy/tokens",
    ]
    assert marin("status", "toy/data")[1].startswith("missing")
    assert latest_attempt(location.store.locate(data.output)) == 2
    code, _, err = marin("adopt", "toy/data", "--undo")
    assert code == 1
    assert err.startswith("'toy/data' is not adopted")


def test_a_lost_file_of_adopted_data_is_found_with_the_way_back(location: Location, mine: str, marin: Marin) -> None:
    marin("adopt", "toy/data", "--from", mine, "--why", "computed by hand")
    remove(join(mine, "value.txt"))
    code, out, _ = marin("verify", "toy/data")
    assert code == 1
    assert f"    $ marin adopt --prefix {location.store.prefix} 'key:\"toy/data\"' --undo" in out.splitlines()


def test_each_command_that_is_shown_for_a_step_of_a_script_can_be_run(
    disk_prefix: str, marin: Marin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In another folder, and with another prefix in the environment."""
    write_bytes(join(disk_prefix, "mine/value.txt"), b"1")
    (tmp_path / "my script.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    of_it = ("--script", "my script.py", "--prefix", disk_prefix)

    def shown(out: str, words: tuple[str, ...]) -> tuple[str, ...]:
        lines = [line.removeprefix("    $ ") for line in out.splitlines() if line.startswith("    $ marin ")]
        found = [shlex.split(line.partition("    shows")[0])[1:] for line in lines]
        return tuple(next(each for each in found if set(words) <= set(each)))

    _, out, _ = marin("adopt", "part", *of_it, "--partition", "a", "--from", "mine", "--why", "by hand")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setenv("MARIN_PREFIX", str(tmp_path / "other"))
    code, out, err = marin(*shown(out, ("run", "--partition")), "--dry-run")
    assert (code, out.splitlines()[-1]) == (0, "1 to reuse, 1 B reused"), err
    remove(join(disk_prefix, "mine/value.txt"))
    monkeypatch.chdir(tmp_path)
    code, out, _ = marin("verify", *of_it)
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert code == 1
    code, _, err = marin(*shown(out, ("run",)), "--dry-run")
    assert code == 0, err
    code, out, err = marin(*shown(out, ("adopt", "--undo")))
    assert code == 0, err
    code, out, err = marin(*shown(out, ("run",)), "--dry-run")
    assert (code, out.splitlines()[-1]) == (0, "1 to run"), err
    code, _, err = marin("logs", "part", "--script", str(tmp_path / "my script.py"), "--prefix", disk_prefix)
    assert code != 0
    code, out, err = marin(*shlex.split(err.partition("See them: ")[2])[1:])
    assert code == 0, err


SCRIPT = """
from dataclasses import dataclass
from marin_assets import THIS_OUTPUT_PATH, Step, executor_main, static, this_partition

@dataclass(frozen=True)
class Config:
    key: str = this_partition()
    output_path: str = THIS_OUTPUT_PATH

def make(config):
    return {}

if __name__ == "__main__":
    executor_main([Step(name="raw/part", fn=make, config=Config(), partitions=static("a", "b"))])
"""


WRONG = [
    (["toy/data"], 2, "marin adopt: got no --from"),
    (["toy/data", "--from", "mine"], 2, "marin adopt: got None as --why, expected a reason"),
    (["toy/data", "--from", "mine", "--why", " "], 2, "marin adopt: got ' ' as --why"),
    (["toy/data", "--undo", "--from", "mine"], 2, "marin adopt: got --undo and --from, expected --undo alone."),
    (["toy", "--from", "mine", "--why", "w"], 2, "marin adopt takes one step, and 'toy' selects 'toy/data', "),
    (["toy/date", "--from", "mine", "--why", "w"], 2, "The selection 'toy/date' finds none of the steps"),
    (["toy/data", "--from", "mine", "--why", "w", "--partition", "a"], 2, "Step 'toy/data' has no partitions."),
    (["toy/data", "--from", "mime", "--why", "w"], 1, "Nothing exists at"),
    (["toy/model", "--from", "mine", "--why", "w"], 1, "'toy/model' is complete at"),
]


@pytest.mark.parametrize(("arguments", "code", "sentence"), WRONG, ids=lambda value: str(value)[:40])
def test_a_mistake_is_one_sentence_and_changes_nothing(
    made: Location, mine: str, marin: Marin, arguments: list[str], code: int, sentence: str
) -> None:
    remove(join(made.path("toy/data"), ".executor_status"))
    remove(join(made.path("toy/data"), ".marin/manifest.json"))
    before = sizes_below(made.path("toy/data"))
    found, out, err = marin("adopt", *arguments)
    assert (found, out, err.count("\n")) == (code, "", 1)
    assert err.startswith(sentence)
    assert sizes_below(made.path("toy/data")) == before


def test_dagster_shows_it_at_once(
    location: Location, mine: str, marin: Marin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(new_home(tmp_path / "home")))
    _, out, _ = marin("adopt", "toy/data", "--from", mine, "--why", "computed by hand")
    assert out.splitlines()[-1] == "Dagster shows toy/data as adopted"
    with dg.DagsterInstance.get() as instance:
        event = instance.get_latest_materialization_event(dg.AssetKey(["toy", "data"]))
    assert event is not None
    assert event.asset_materialization is not None
    metadata = event.asset_materialization.metadata
    assert str(metadata["adopted"].value).startswith(f"from {mine}: computed by hand (")
    assert metadata["path"].value == mine
    assert "log" not in metadata
    assert "made_by" not in metadata
    assert "Dagster knows 0 outputs more" in marin("sync", "toy/data")[1]
