"""The four ways to make an output: the command line, the UI, a Dagster job, a script of one's own."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from dagster_dev import dagster_dev
from running import ROOT, logged, wait_until, write_location

DAGSTER = str(Path(sys.executable).with_name("dagster"))


@pytest.fixture
def env(prefix: Path, dagster_home: Path) -> dict[str, str]:
    return {"MARIN_PREFIX": str(prefix), "DAGSTER_HOME": str(dagster_home)}


def command(env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, env={**os.environ, **env}, cwd=ROOT, capture_output=True, text=True, timeout=480, check=False
    )


def stats(prefix: Path) -> str:
    [path] = prefix.glob("two_steps/stats-*/stats.json")
    return path.read_text()


@pytest.mark.long
def test_dagster_asset_materialize(prefix: Path, env: dict[str, str]) -> None:
    done = command(
        env,
        DAGSTER,
        "asset",
        "materialize",
        "-m",
        "marin_assets.definitions",
        "--select",
        "two_steps/data,two_steps/stats",
    )
    assert done.returncode == 0, done.stderr
    assert '"sum": 4950' in stats(prefix)


@pytest.mark.long
def test_a_step_whose_input_is_not_there_says_what_to_do(prefix: Path, env: dict[str, str]) -> None:
    done = command(
        env, DAGSTER, "asset", "materialize", "-m", "marin_assets.definitions", "--select", "two_steps/stats"
    )
    assert done.returncode == 1
    assert "Step 'two_steps/stats' needs 'two_steps/data'" in done.stderr
    assert "Materialize what it reads first" in done.stderr


@pytest.mark.long
def test_a_selection_without_an_asset_is_no_run_of_all(prefix: Path, env: dict[str, str]) -> None:
    """Dagster takes an empty selection for all assets."""
    done = command(
        env, DAGSTER, "asset", "materialize", "-m", "marin_assets.definitions", "--select", '+key:"two_stps/stats"'
    )
    assert done.returncode == 1
    assert "selects no asset" in done.stderr
    assert not list(prefix.glob("*/*-??????"))


@pytest.mark.long
def test_a_dagster_job(prefix: Path, env: dict[str, str]) -> None:
    done = command(env, DAGSTER, "job", "execute", "-m", "marin_assets.definitions", "-j", "two_steps")
    assert done.returncode == 0, done.stderr
    assert '"sum": 4950' in stats(prefix)


@pytest.mark.long
def test_a_script_whose_functions_are_its_own(prefix: Path, env: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "my experiment.py"
    source = (ROOT / "marin_assets/experiments/two_steps.py").read_text()
    (tmp_path / "beside.py").write_text("FACTOR = 2\n")
    source = source.replace("from marin_assets import", "from beside import FACTOR\nfrom marin_assets import", 1)
    script.write_text(source.replace("sum(numbers)", "FACTOR * sum(numbers)"))
    done = command(env, sys.executable, str(script))
    assert done.returncode == 0, done.stderr
    assert '"sum": 9900' in stats(prefix)
    assert list(prefix.glob("experiments/my_experiment-*.json"))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--prefix", "nope://x"], "The prefix 'nope://x' has the unknown scheme 'nope'"),
        (["--prefix", "/proc/nowhere"], "The prefix '/proc/nowhere' cannot be written"),
        (["--prefix", "memory://x"], "The prefix 'memory://x' is on a store without conditional writes"),
        (["--prefix", "gs://no-such-bucket/x"], "The prefix 'gs://no-such-bucket/x' cannot be written"),
        (["--run-only", "nothing"], "--run-only 'nothing' finds none of the steps"),
        (["--run-only", "("], "--run-only '(' is not a pattern"),
        (["--max-concurrent", "0"], "--max-concurrent/--max_concurrent: got '0', expected a whole number of 1 or more"),
        (["--max-concurrent", "two"], "got 'two', expected a whole number of 1 or more"),
        (["--nonsense"], "unrecognized arguments: --nonsense"),
    ],
)
def test_wrong_words_end_in_a_sentence(
    prefix: Path,
    dagster_home: Path,
    words: list[str],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = ROOT / "marin_assets/experiments/two_steps.py"
    monkeypatch.setattr(sys, "argv", [str(script), *words])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(script), run_name="__main__")
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err


def test_a_dry_run_says_what_would_run_and_why_and_writes_nothing(prefix: Path, env: dict[str, str]) -> None:
    done = command(env, sys.executable, "-m", "marin_assets.experiments.two_steps", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert f"run      {prefix}/two_steps/data-" in done.stdout
    assert "2 to run" in done.stdout
    assert not prefix.exists()


@pytest.mark.long
def test_the_ui_materializes_shows_what_is_unsynced_and_terminates(
    prefix: Path, env: dict[str, str], tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    workspace = write_location(tmp_path, gate=gate)
    with dagster_dev(workspace, tmp_path / "dev.log", env) as dev:
        assert set(dev.unsynced().values()) == {"MISSING"}
        quick = dev.launch("toy/quick")
        wait_until(lambda: dev.status(quick) == "SUCCESS", "the quick step", timeout_s=300)
        assert dev.unsynced() == {"toy/quick": "FRESH", "toy/slow": "MISSING", "toy/after": "MISSING"}

        slow = dev.launch("toy/slow", "toy/after")
        text = wait_until(logged(prefix, "toy/slow", "waiting in process"), "the slow step", timeout_s=300)
        dev.terminate(slow)
        pids = [int(word) for word in text.split() if word.isdigit()]
        wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "the compute to stop", timeout_s=5)
        wait_until(lambda: dev.status(slow) == "CANCELED", "the run to be canceled", timeout_s=10)
        assert any("Terminated on request: the compute of toy/slow" in message for message in dev.messages(slow))

        write_location(tmp_path, gate=gate, value=2)
        dev.ask('mutation { reloadRepositoryLocation(repositoryLocationName: "marin") { __typename } }')
        assert dev.unsynced()["toy/quick"] == "STALE"
    terminal = (tmp_path / "dev.log").read_text()
    assert "toy/quick: computing" in terminal
    assert "Traceback" not in terminal
