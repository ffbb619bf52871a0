"""New code is rolled out while ten steps run: the code server is killed, as `systemctl restart marin-code` does, and
comes back with an edited file and five changed configs.

The run under way goes on with the code that it was launched with. The new run attaches to the five jobs whose version
is the same, and computes the other five, with its own code. What reads them reads versions of one side alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_runs import env_for
from dagster_processes import CODE, DagsterProcesses, dagster_processes
from postgres_server import postgres
from ray_cluster import Cluster
from record_fields import fields_of_record
from running import ROOT, wait_until

from marin_resources.storage.output.attempts import latest_attempt

STEPS = 10
CHANGED = 5
"""The first of those whose config the new code changes."""
RECIPE = """
import json, os, time
from dataclasses import dataclass, field
from pathlib import Path
from marin_assets import THIS_OUTPUT_PATH, versioned

CODE = {code!r}


@dataclass(frozen=True, kw_only=True)
class Config:
    n: int = versioned(0)
    gate: str = ""
    inputs: list = field(default_factory=list)
    output_path: str = THIS_OUTPUT_PATH


def make(config):
    Path(config.output_path, f"begun-{{CODE}}").touch()
    while os.path.exists(config.gate):
        time.sleep(0.1)
    read = [json.loads(Path(path, "made.json").read_text()) for path in config.inputs]
    Path(config.output_path, "made.json").write_text(json.dumps([CODE, config.n]))
    return {{"code": CODE, "n": config.n, "read": read}}
"""
LOCATION = """
import sys
sys.path[:0] = [{folder!r}, {tests!r}]
import recipe
from marin_assets import Step, cpu, output_path_of, versioned
from running import definitions_of

made = [
    Step(
        name=f"ten/{{i}}", fn=recipe.make, config=recipe.Config(n=versioned(n), gate={gate!r}), resources=cpu(0.1)
    )
    for i, n in enumerate([*range({changed}), *range({code} * 100 + {changed}, {code} * 100 + {steps})])
]
read = recipe.Config(inputs=[output_path_of(step) for step in made])
defs = definitions_of([Step(name="ten/read", fn=recipe.make, config=read)])
"""


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that is deployed."""
    folder = tmp_path / "code"
    folder.mkdir()
    monkeypatch.setenv("MARIN_CLUSTER_WORKING_DIR", str(folder))
    return folder


@pytest.fixture
def home(dagster_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """With the settings of a team's deployment, but for the login before it."""
    settings = (ROOT / "deploy/vm/dagster.yaml").read_text()
    assert "requires_user: true" in settings
    (dagster_home / "dagster.yaml").write_text(settings.replace("requires_user: true", "requires_user: false"))
    with postgres() as server:
        monkeypatch.setenv("MARIN_POSTGRES_URL", server.create("marin"))
        yield dagster_home


def deploy(folder: Path, code: int, gate: Path) -> None:
    """Put code into the folder; `code` is its number."""
    (folder / "recipe.py").write_text(RECIPE.format(code=code))
    tests = str(ROOT / "tests/support")
    told = {"folder": str(folder), "tests": tests, "code": code, "gate": str(gate), "steps": STEPS, "changed": CHANGED}
    (folder / "location.py").write_text(LOCATION.format(**told))


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_ten_steps_go_on_and_the_new_code_attaches(
    code: Path, gate: Path, home: Path, prefix: Path, cluster: Cluster, tmp_path: Path
) -> None:
    names = [f"ten/{i}" for i in range(STEPS)]
    deploy(code, 1, gate)
    with dagster_processes(code / "location.py", tmp_path, env_for(prefix, home, cluster)) as deployed:
        old = deployed.ui.launch(*names, "ten/read")
        await_begun(deployed, prefix, 1, STEPS)
        shown = version_of(deployed, "ten/read")
        deploy(code, 2, gate)
        deployed.kill(CODE)
        deployed.start(CODE)
        wait_until(
            lambda: version_of(deployed, "ten/read") not in (shown, ""), "the new code in the webserver", timeout_s=120
        )
        new = deployed.ui.launch(*names, "ten/read")
        await_begun(deployed, prefix, 2, STEPS - CHANGED)
        gate.unlink()
        for run in (old, new):
            ended = lambda: deployed.ui.status(run) in ("SUCCESS", "FAILURE", "CANCELED")  # noqa: E731, B023
            wait_until(ended, "the end of a run", timeout_s=600)
            assert deployed.ui.status(run) == "SUCCESS", deployed.ui.messages(run)

    found = {name: records(prefix, name) for name in [*names, "ten/read"]}
    same, changed = names[:CHANGED], names[CHANGED:]
    for i, name in enumerate(same):
        [record] = found[name]
        assert record["result"] == {"code": 1, "n": i, "read": []}, "computed once, by the code that was there first"
    for i, name in enumerate(changed, start=CHANGED):
        before, after = found[name]
        assert before["result"] == {"code": 1, "n": 100 + i, "read": []}
        assert after["result"] == {"code": 2, "n": 200 + i, "read": []}
    digests = [{str(record["source_digest"]) for record in found[name]} for name in changed]
    assert all(len(each) == 2 for each in digests), "each says which code made it"
    packages = {
        (record["result"]["code"], str(record["job"]["code"]["package"])) for name in names for record in found[name]
    }
    assert len(packages) == 2, "all of one side ran the code that was shipped at its launch"
    before, after = (record["result"]["read"] for record in found["ten/read"])
    of_both = [[1, i] for i in range(CHANGED)]
    assert before == of_both + [[1, 100 + i] for i in range(CHANGED, STEPS)]
    assert after == of_both + [[2, 200 + i] for i in range(CHANGED, STEPS)]


def version_of(deployed: DagsterProcesses, asset: str) -> str:
    """The code version that the UI shows; empty while it waits for the code server, when it shows no asset."""
    nodes = deployed.ui.ask("{ assetNodes { assetKey { path } opVersion } }")["assetNodes"]
    return "".join(node["opVersion"] for node in nodes if "/".join(node["assetKey"]["path"]) == asset)


def await_begun(deployed: DagsterProcesses, prefix: Path, code: int, count: int) -> None:
    begun = lambda: len(list(prefix.glob(f"ten/*-*/begun-{code}"))) == count  # noqa: E731
    wait_until(begun, f"{count} steps of code {code}", timeout_s=300)


def records(prefix: Path, name: str) -> list[dict[str, Any]]:
    """Of all versions of a step, by the code that made them. Each was made by one attempt."""
    found = []
    for path in prefix.glob(f"{name}-*"):
        record = fields_of_record(str(path))
        assert record is not None, path
        assert latest_attempt(str(path)) == 1, path
        found.append(record)
    return sorted(found, key=lambda record: record["result"]["code"])
