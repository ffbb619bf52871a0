"""The jobs of a code location: one for each experiment, and one for each stage."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
from partition_steps import part

from marin_assets.assets.assemble import assemble
from marin_assets.catalog.experiments_folder import Experiments
from marin_assets.defaults import default_download
from marin_assets.step.partitions.sets import dynamic, static
from marin_assets.step.values import this_partition


def test_a_stage_has_a_job_of_all_that_it_makes(tmp_path: Path) -> None:
    download = default_download("web", "https://example.org/*.gz")
    deliveries = default_download(
        "deliveries", this_partition(form="/deliveries/{drop}"), partitions=dynamic("deliveries")
    )
    langs = default_download("langs", this_partition(form="/langs/{drop}"), partitions=static("en"))
    own = part("own", None, tmp_path / "calls")
    titles = {"two": "Two sets of files."}
    definitions = assemble(Experiments({"one": (download, own), "two": (download, deliveries, langs)}, {}, titles))
    dg.Definitions.validate_loadable(definitions)
    jobs = {job.name: job for job in definitions.get_repository_def().get_all_jobs() if not job.name.startswith("__")}
    assets = {
        name: sorted(key.to_user_string() for key in job.asset_layer.executable_asset_keys)
        for name, job in jobs.items()
    }
    assert assets == {
        "one": ["parts/own", "web/raw"],
        "two": ["web/raw"],
        "two__deliveries": ["deliveries/raw"],
        "two__keys": ["langs/raw"],
        "stage_download": ["web/raw"],
        "stage_download__deliveries": ["deliveries/raw"],
        "stage_download__keys": ["langs/raw"],
        "plan": [],
    }
    assert jobs["stage_download"].description == "Everything that the stage download makes."
    assert jobs["one"].description == "Everything in one."
    assert jobs["two"].description == "Two sets of files."
    assert jobs["two__deliveries"].description == "Two sets of files. The steps with the partitions of deliveries."


def test_an_experiment_of_a_job_of_a_stage_keeps_its_name(tmp_path: Path) -> None:
    download = default_download("web", "https://example.org/*.gz")
    own = part("own", None, tmp_path / "calls")
    definitions = assemble(Experiments({"stage_download": (own,), "one": (download,)}, {}))
    job = definitions.get_repository_def().get_job("stage_download")
    assert [key.to_user_string() for key in job.asset_layer.executable_asset_keys] == ["parts/own"]
