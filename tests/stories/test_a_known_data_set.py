"""A known data set, from its plan without a network to its documents and their page in Dagster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
from dagster_homes import new_home
from dataset_hub import dataset_hub
from known_rows import serve
from record_fields import fields_of_record

from marin_assets.datasets import dclm_baseline, fineweb_sample_10bt

SCRIPT = """
from marin_assets import executor_main
from marin_assets.datasets import dclm_baseline, fineweb_sample_10bt

if __name__ == "__main__":
    executor_main([fineweb_sample_10bt.documents(), dclm_baseline.documents()])
"""
SUM = "from 2 data sets: 7.2 TB and 1 of unknown size, under CC-BY-4.0 and ODC-By-1.0"


def marin(*words: str, cwd: Path, environment: dict[str, str]) -> str:
    command = [sys.executable, "-m", "marin_assets.cli", *words]
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.timeout(300)
@pytest.mark.long
def test_from_the_plan_to_the_page_of_the_documents(tmp_path: Path) -> None:
    (tmp_path / "known.py").write_text(SCRIPT)
    prefix, home = tmp_path / "outputs", new_home(tmp_path / "home")
    environment = {"MARIN_PREFIX": str(prefix), "DAGSTER_HOME": str(home), "HF_ENDPOINT": "http://127.0.0.1:1"}

    planned = marin("plan", "known.py", cwd=tmp_path, environment=environment)  # no hub can be reached
    assert f"4 to run; {SUM}" in planned
    assert (
        "mlfoundations/dclm-baseline-1.0: 7.2 TB, CC-BY-4.0, https://huggingface.co/datasets/mlfoundations" in planned
    )

    with dataset_hub() as hub:
        for dataset in (fineweb_sample_10bt, dclm_baseline):
            serve(dataset, hub)
        environment["HF_ENDPOINT"] = hub.url
        assert "4 computed, 0 reused, 0 failed" in marin("run", "known.py", cwd=tmp_path, environment=environment)

    (output,) = prefix.glob("documents/dclm_baseline-*")
    record = fields_of_record(str(output))
    assert record is not None
    assert record["origins"] == {"raw/dclm_baseline": dclm_baseline.origin.to_dict()}
    with dg.DagsterInstance.from_config(str(home)) as instance:
        event = instance.get_latest_materialization_event(dg.AssetKey(["dclm_baseline", "documents"]))
    assert event is not None
    assert event.asset_materialization is not None
    metadata = event.asset_materialization.metadata
    assert metadata["licences"].value == "CC-BY-4.0"
    assert metadata["raw_bytes"].value == 7_196_105_155_016
    assert "4 to reuse" in marin("plan", "known.py", cwd=tmp_path, environment=environment)
