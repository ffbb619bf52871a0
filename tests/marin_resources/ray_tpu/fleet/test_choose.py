"""Which cluster of a fleet a step goes to: its resources, then its inputs, then the price."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import object_stores
import pytest
from fleets import use, write_catalogue

from marin_resources.hardware.resources import Resources, cpu, gpu, tpu
from marin_resources.ray_tpu.fleet.choose import choose_site
from marin_resources.ray_tpu.fleet.fleet import Fleet, fleet_from_env
from marin_resources.ray_tpu.site import NoSiteError, PlacementRequest, ReaderNeeds

GB = 10**9


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    return declared(tmp_path, monkeypatch)


def declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str = "gs://central", **keys: str) -> Fleet:
    use(write_catalogue(tmp_path, **keys), monkeypatch)
    found = fleet_from_env(None, home)
    assert found is not None
    return found


def needs(
    resources: Resources | None = None, budget_gb: float = 10_000, earlier: str | None = None, **inputs: tuple[str, int]
) -> PlacementRequest:
    return PlacementRequest(
        step="tokenized/web",
        resources=resources or cpu(),
        places={name: place for name, (place, _) in inputs.items()},
        size_of=lambda name: inputs[name][1],
        earlier=earlier,
        budget_bytes=round(budget_gb * GB),
    )


def test_a_step_goes_where_its_slices_are(fleet: Fleet) -> None:
    site = choose_site(needs(tpu("v5p-64", slices=2), raw=("gs://central/raw/web", 100 * GB)), fleet)
    assert (site.cluster, site.region, site.prefix) == ("east", "us-east5", "gs://east/data")
    assert site.describe() == ("on east, the only cluster with TPU v5p-64; moves 100.0 GB from us-central2 ($1.86)")


def test_of_clusters_that_could_it_goes_where_its_inputs_are(fleet: Fleet) -> None:
    inputs = {"big": ("gs://west/raw/big", 500 * GB), "small": ("gs://east/data/raw/small", 3 * GB)}
    site = choose_site(needs(**inputs), fleet)
    assert (site.cluster, site.bytes, [move.what for move in site.moves]) == ("west", 3 * GB, ["small"])
    assert site.why == "where its inputs cost least to move"
    assert choose_site(needs(small=inputs["small"]), fleet).describe() == "on east, where its inputs are"


def test_less_than_a_cent_is_nothing_and_the_order_decides(fleet: Fleet) -> None:
    site = choose_site(needs(tiny=("gs://west/raw/tiny", 1000)), fleet)
    assert (site.cluster, site.why) == ("central", "the first of central, east, west")


def test_with_inputs_everywhere_alike_it_goes_where_the_chips_cost_least(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = declared(tmp_path, monkeypatch, of_central="cpu_dollars = 0.05", of_west="cpu_dollars = 0.03")
    site = choose_site(needs(cpu(16)), fleet)
    assert (site.cluster, site.why) == ("west", "where it costs least ($0.48 an hour)")


def read_by(*resources: Resources, of: PlacementRequest | None = None, urls: tuple[str, ...] = ()) -> PlacementRequest:
    return replace(of or needs(cpu(16)), readers=tuple(ReaderNeeds(resources=each, urls=urls) for each in resources))


def test_an_input_is_not_put_where_its_reader_cannot_run_to_save_a_cent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = declared(tmp_path, monkeypatch, of_east="cpu_dollars = 0.031", of_west="cpu_dollars = 0.03")
    site = choose_site(read_by(tpu("v5p-64")), fleet)
    assert (site.cluster, site.why) == ("east", "where its readers can run")
    assert choose_site(read_by(tpu("v6e-4")), fleet).why == "where it costs least ($0.48 an hour)"
    a_cent = needs(cpu(16), raw=("gs://west/raw/x", GB))
    assert choose_site(read_by(tpu("v5p-64"), of=a_cent), fleet).cluster == "east"
    many_dollars = needs(cpu(16), raw=("gs://west/raw/x", 500 * GB))
    assert choose_site(read_by(tpu("v5p-64"), of=many_dollars), fleet).cluster == "west"


def test_of_readers_that_run_nowhere_together_the_first_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = declared(tmp_path, monkeypatch, of_west="cpu_dollars = 0.03")
    assert choose_site(read_by(tpu("v5p-64"), tpu("v4-8")), fleet).cluster == "east"
    assert choose_site(read_by(cpu(), tpu("v4-8"), tpu("v5p-64")), fleet).cluster == "central"
    assert choose_site(read_by(cpu(96), tpu("v4-8")), fleet).cluster == "central"  # the first can run nowhere
    assert choose_site(read_by(gpu("H100", 8)), fleet).cluster == "west"


def test_a_reader_does_not_make_a_step_exceed_its_budget_or_leave_its_files(fleet: Fleet) -> None:
    little = needs(cpu(), budget_gb=1, raw=("gs://west/raw/x", 2 * GB))
    assert choose_site(read_by(tpu("v5p-64"), of=little), fleet).cluster == "west"
    begun = needs(cpu(), earlier="gs://west/tokenized/web-abc")
    assert choose_site(read_by(tpu("v5p-64"), of=begun), fleet).cluster == "west"


def test_a_large_machine_is_only_where_it_is(fleet: Fleet) -> None:
    assert choose_site(needs(cpu(48)), fleet).cluster == "west"
    assert choose_site(needs(cpu(8, memory_gib=200)), fleet).cluster == "west"


def test_what_has_begun_goes_on_where_its_files_are(fleet: Fleet) -> None:
    raw = ("gs://west/raw/big", 500 * GB)
    site = choose_site(needs(earlier="gs://east/data/tokenized/web-abc", raw=raw), fleet)
    assert (site.cluster, site.why) == ("east", "where an attempt before has left its files")


def test_unless_no_cluster_there_can_hold_it_any_more(fleet: Fleet) -> None:
    site = choose_site(needs(tpu("v4-8"), earlier="gs://east/data/tokenized/web-abc"), fleet)
    assert site.cluster == "central"


def test_a_job_that_is_submitted_already_stays_where_it_is(fleet: Fleet) -> None:
    site = choose_site(needs(raw=("gs://west/raw/big", 500 * GB)), fleet, "east")
    assert (site.cluster, site.why) == ("east", "where its job is")


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        (gpu("H100", 8), "Step 'tokenized/web' requests 1 CPU, 8 H100 GPU, which no cluster of MARIN_CLUSTER has: "),
        (tpu("v5p-8", slices=1), None),
        (tpu("v4-64", slices=2), "which no cluster of MARIN_CLUSTER has: central has 8 of v4-8, 1 of v4-64, 32 CPUs"),
        (tpu("v5e-256"), "Request what one of them has, add slices to its entry in the catalogue"),
        (cpu(96), "requests 96 CPU, which no cluster of MARIN_CLUSTER has"),
    ],
)
def test_what_nobody_has_is_a_sentence(fleet: Fleet, resources: Resources, expected: str | None) -> None:
    """Slices of a size that the catalogue does not list may have been added by hand."""
    if expected is None:
        assert choose_site(needs(resources), fleet).cluster == "east"
        return
    with pytest.raises(NoSiteError) as error:
        choose_site(needs(resources), fleet)
    assert expected in str(error.value)


def test_more_than_the_budget_is_refused_with_sizes(fleet: Fleet) -> None:
    inputs = {"dclm": ("gs://central/raw/dclm", 2100 * GB), "code": ("gs://west/raw/code", 30 * GB)}
    with pytest.raises(NoSiteError) as error:
        choose_site(needs(tpu("v5p-64"), budget_gb=10, **inputs), fleet)
    assert str(error.value) == (
        "Step 'tokenized/web' would go to east in us-east5 and needs 'dclm' (2.1 TB, in us-central2), 'code' (30.0 GB, "
        "in us-east1): 2.1 TB ($39.67), and its mirror budget is 10.0 GB. Read an input by "
        "mirrored(…, budget_gb=2130), or give the cluster of the inputs' region what the step requests."
    )


def test_what_is_in_no_region_moves_nothing(fleet: Fleet) -> None:
    assert choose_site(needs(mine=("gs://somewhere/else", 500 * GB)), fleet).moves == ()


def test_a_home_that_no_cluster_is_in_is_a_region_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = declared(tmp_path, monkeypatch, home="gs://home/marin")
    assert fleet.region_of("gs://home/marin/x") == "home"
    site = choose_site(needs(raw=("gs://home/marin/raw/x", 10 * GB)), fleet)
    assert (site.cluster, [move.source for move in site.moves]) == ("central", ["home"])


def test_a_folder_is_no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="which those machines do not see"):
        declared(tmp_path, monkeypatch, home=str(tmp_path))


def test_a_home_inside_a_clusters_prefix_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="which is inside 'gs://central', the prefix of the cluster 'central'"):
        declared(tmp_path, monkeypatch, home="gs://central/team")


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        ("central,eats", r"No cluster 'eats' in .*clusters\.toml, expected one of central, east, west\. Did you mean"),
        ("central,central", "expected names of clusters between commas, each once"),
        ("central,", "expected names of clusters between commas, each once"),
    ],
)
def test_a_wrong_name_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: str, expected: str
) -> None:
    use(write_catalogue(tmp_path), monkeypatch, cluster)
    with pytest.raises(ValueError, match=expected):
        fleet_from_env(None, "gs://central")


def test_an_address_is_no_fleet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIN_CLUSTER", "http://10.0.0.5:8265")
    assert fleet_from_env(None, "gs://central") is None


def test_a_job_knows_its_region_and_the_others(fleet: Fleet) -> None:
    for member in fleet.members:
        assert member.settings.variables == {
            "MARIN_MIRROR_PREFIXES": "us-central2=gs://central,us-east5=gs://east/data,us-east1=gs://west",
            "MARIN_REGION": member.cluster.region,
        }


@pytest.fixture
def their_bucket() -> Iterator[str]:
    bucket = object_stores.gcs_bucket("US-EAST1")
    yield bucket.name
    bucket.forget()


def test_a_url_in_the_config_takes_the_step_to_its_bucket(fleet: Fleet, their_bucket: str) -> None:
    reads = replace(needs(), urls=(f"gs://{their_bucket}/raw",))
    assert choose_site(reads, fleet).cluster == "west"


def test_where_that_cannot_be_it_is_refused_unless_the_bucket_is_allowed(
    fleet: Fleet, their_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = replace(needs(tpu("v5p-64")), urls=(f"gs://{their_bucket}/raw", f"gs://{their_bucket}/more"))
    with pytest.raises(NoSiteError) as error:
        choose_site(reads, fleet)
    assert str(error.value) == (
        f"Step 'tokenized/web' would run on east in us-east5 and its config has 'gs://{their_bucket}/raw', which is in "
        f"us-east1, 'gs://{their_bucket}/more', which is in us-east1. Give a path below the prefix, which comes "
        "through the mirror on the step's budget, run it where the bucket is, or allow the bucket by name: "
        f"MARIN_FOREIGN_BUCKETS={their_bucket}."
    )
    monkeypatch.setenv("MARIN_FOREIGN_BUCKETS", their_bucket)
    assert choose_site(reads, fleet).cluster == "east"
