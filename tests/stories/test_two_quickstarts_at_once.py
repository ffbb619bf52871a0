"""Two deployments start the quickstart on one prefix at the same moment: each step is made once, and both end well."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from running import ROOT, start_script

from marin_assets.experiments.quickstart import steps
from marin_assets.step.graph import build_graph
from marin_resources.storage.manifest.manifest import read_manifest, take_manifest
from marin_resources.storage.output.attempts import latest_attempt, read_attempt
from marin_resources.storage.paths import join

SCRIPT = """
from marin_assets import executor_main
from marin_assets.experiments.quickstart import steps
executor_main(steps("tiny"))
"""


def start(prefix: str, folder: Path) -> subprocess.Popen[str]:
    """A deployment of its own: another Dagster, another Ray."""
    folder.mkdir()
    (folder / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    script = folder / "quickstart.py"
    script.write_text(SCRIPT)
    return start_script(script, env={"MARIN_PREFIX": prefix, "DAGSTER_HOME": str(folder), "PYTHONPATH": str(ROOT)})


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("store", ["gcs", "disk"])
def test_each_step_is_made_once_and_both_end_well(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    prefix = request.getfixturevalue(f"{store}_prefix")
    runs = [start(prefix, tmp_path / name) for name in ("one", "other")]
    computed = []
    for run in runs:
        said, _ = run.communicate(timeout=1500)
        counted = re.search(r"(\d+) computed, (\d+) reused, 0 failed", said)
        assert run.returncode == 0 and counted, said[-5000:]  # noqa: PT018
        assert int(counted[1]) + int(counted[2]) == 22
        computed.append(int(counted[1]))
    assert sum(computed) == 22
    for node in build_graph(steps("tiny")):
        path = join(prefix, node.version.path)
        assert latest_attempt(path) == 1, path
        assert read_attempt(path, 1)["outcome"] == "success"
        assert read_manifest(path) == take_manifest(path)
