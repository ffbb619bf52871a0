"""The catalogue of clusters: what a mistake in it says, and what the committed one has."""

from __future__ import annotations

from pathlib import Path

import pytest

from marin_resources.clusters.catalogue import default_path, find_cluster, read_catalogue
from marin_resources.clusters.cluster import CatalogueError

LINE = 'generation = "v4"'


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """A copy of the committed catalogue with one cluster, for a test to change."""
    text = default_path().read_text()
    first, second = "[clusters.us-central2]", "[clusters.us-central1]"
    assert text.index(first) < text.index(second)
    path = tmp_path / "clusters.toml"
    path.write_text(text.partition(second)[0])
    return path


def test_the_committed_clusters_have_all_generations_and_a_region_of_their_own() -> None:
    clusters = read_catalogue()
    assert {cluster.generation for cluster in clusters.values()} == {"v4", "v5e", "v5p", "v6e"}
    for name, cluster in clusters.items():
        assert name.startswith(cluster.region)
        assert cluster.image_url.startswith(f"{cluster.region}-docker.pkg.dev/")
        assert cluster.prefix == f"gs://marin-{cluster.region}"
    assert {each.capacity for cluster in clusters.values() for each in cluster.slices} == {
        "spot",
        "on-demand",
        "reserved",
    }


def test_an_unknown_cluster_is_named_with_the_nearest() -> None:
    with pytest.raises(CatalogueError, match=r"No cluster 'us-centrl2' in .* Did you mean 'us-central2'\?"):
        find_cluster("us-centrl2")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('zone = "us-central2-b"', "", "zone is missing"),
        ('zone = "us-central2-b"', 'zone = "us-central2"', "zone is 'us-central2', expected one such as"),
        ('zone = "us-central2-b"', 'zone = "us-east1-d"', "zone is 'us-east1-d', which has no v4-8"),
        ('prefix = "gs', 'prefix = "s3', "prefix is 's3://marin-us-central2', expected one such as 'gs://"),
        ('"gs://marin-us-central2"', '"gs://"', "prefix: The prefix 'gs://' names no bucket"),
        (LINE, f"{LINE}\nhead_machien = 'x'", "'head_machien' is no key. Did you mean 'head_machine'?"),
        (LINE, f"{LINE}\nhead_disk_gb = '200'", "head_disk_gb is '200', expected a whole number above 0"),
        (LINE, f"{LINE}\nhead_disk_gb = 0", "head_disk_gb is 0, expected a whole number above 0"),
        (LINE, f"{LINE}\ncpu_spot = 1", "cpu_spot is 1, expected true or false"),
        (LINE, f"{LINE}\ntag = ' '", "tag is ' ', expected a text that is not empty"),
        (LINE, f"{LINE}\nmemory_threshold = 1.5", "memory_threshold is 1.5, expected a share between 0 and 1"),
        (LINE, f"{LINE}\nproject = 'X'", "project is 'X', expected the id of a Google Cloud project"),
        (LINE, f"{LINE}\nimage = 'x/{{zone}}'", "image is 'x/{zone}', expected an address in which"),
        ('"10.10.0.10"', '"head"', "head_ip is 'head', expected an address of the subnetwork"),
        ('"10.10.0.10"', '"8.8.8.8"', "head_ip is '8.8.8.8', expected an address of the subnetwork"),
        (LINE, 'generation = "v4x"', "generation is 'v4x', expected one such as 'v5p'"),
        (LINE, 'generation = "v5p"', "slices has v4-8, and generation is 'v5p'. A cluster has one"),
        ('"v4-8", count = 8', '"v4-9", count = 8', "type is 'v4-9', which is no type of slice. Did you mean 'v4-8'"),
        ('"v4-8", count = 8', '"v4-8", count = 8.5', "count is 8.5, expected a whole number above 0"),
        ('"v4-8", count = 8', '"v4-8"', "count is missing"),
        ('"v4-64", count = 1', '"v4-4096", count = 9', "its slices have 4616 hosts, and max_workers is 1024"),
        ("slices = [", "slices = [1,", "slices: got 1, expected a table such as"),
        ('"spot"', '"preemptible"', "capacity of v4-8 is 'preemptible', expected one of spot, on-demand, reserved"),
        (', reservation = "marin-v4"', "", "reservation of v4-64 is '', and its capacity 'reserved'. Name the"),
        ('count = 8, capacity = "spot"', 'count = 8, reservation = "x"', "reservation of v4-8 is 'x', and its"),
        ("slices = [", 'slices = [{ type = "v4-8", count = 1 },', "slices has v4-8, spot twice. Add up their counts"),
        ("[clusters.us-central2]", "[clusters.US]", "got the name 'US', expected up to 40 small letters"),
        ("[clusters.us-central2]", "[cluster.us-central2]", "no cluster. Add a table [clusters.NAME]"),
        (LINE, LINE[:-1], "is no TOML"),
    ],
)
def test_a_mistake_is_one_sentence(changed: Path, old: str, new: str, said: str) -> None:
    text = changed.read_text()
    assert old in text
    changed.write_text(text.replace(old, new, 1))
    with pytest.raises(CatalogueError) as error:
        read_catalogue(changed)
    assert said in str(error.value)
    assert str(changed) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_prefix_has_no_slash_at_its_end(changed: Path) -> None:
    changed.write_text(changed.read_text().replace('"gs://marin-us-central2"', '"gs://marin-us-central2/"'))
    assert find_cluster("us-central2", changed).bad_slices == "gs://marin-us-central2/.marin/clusters/us-central2-bad"


def test_two_heads_of_one_address(tmp_path: Path) -> None:
    path = tmp_path / "clusters.toml"
    path.write_text(default_path().read_text().replace("10.11.0.10", "10.10.0.10"))
    with pytest.raises(CatalogueError, match=r"head_ip of 'us-central2' and 'us-central1' is 10\.10\.0\.10"):
        read_catalogue(path)


def test_a_catalogue_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match=r"cannot be read \(No such file or directory\)"):
        read_catalogue(tmp_path / "clusters.toml")
