"""Regions: as the environment declares them, ordered by the price of reading from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from marin_resources.configuration.settings import SettingError
from marin_resources.storage.transfer.regions import Region, declared_regions, dollars_per_gb, read_declaration

THREE = "us-central2=gs://marin-us-central2/x,eu-west4=gs://marin-eu-west4/x,us-east1=gs://marin-us-east1/x"


def test_the_local_region_is_the_one_whose_prefix_is_marins() -> None:
    regions = read_declaration(THREE, "", "", own_prefix="gs://marin-eu-west4/x")
    assert regions.local.name == "eu-west4"
    assert {region.name for region in regions.others} == {"us-central2", "us-east1"}


def test_marin_region_names_the_local_region_whatever_the_prefix_is() -> None:
    assert read_declaration(THREE, "us-east1", "", own_prefix="/somewhere").local.prefix == "gs://marin-us-east1/x"


def test_without_a_declaration_the_prefix_is_the_only_region() -> None:
    regions = read_declaration("", "", "", own_prefix="/data/a")
    assert regions.all == (Region(name="local", prefix="/data/a"),)


def test_the_environment_declares_folders_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIN_MIRROR_PREFIXES", " a=/data/a/ , b=file:///data/b")
    monkeypatch.setenv("MARIN_PREFIX", "/data/b")
    regions = declared_regions()
    assert (regions.local, *regions.others) == (Region(name="b", prefix="/data/b"), Region(name="a", prefix="/data/a"))


def test_a_region_is_found_by_each_spelling_of_its_prefix(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "la").symlink_to(tmp_path / "a")
    declared = f"a={tmp_path}/a,b={tmp_path}/b"
    regions = read_declaration(declared, "", "", own_prefix=f"{tmp_path}/la")
    assert regions.local.name == "a"
    assert regions.holding(f"{tmp_path}/la/raw//x") == (regions.local, "raw/x")
    with pytest.raises(SettingError, match="one inside the other"):
        read_declaration(f"{declared},c={tmp_path}/la/c", "", "", own_prefix=f"{tmp_path}/b")


def test_the_cheapest_region_is_searched_first() -> None:
    regions = read_declaration(THREE, "us-central2", "", own_prefix="/somewhere")
    assert [region.name for region in regions.others] == ["us-east1", "eu-west4"]
    declared = "eu-west4>us-central2=0,us-east1>us-central2=1.5"
    regions = read_declaration(THREE, "us-central2", declared, own_prefix="/somewhere")
    assert [region.name for region in regions.others] == ["eu-west4", "us-east1"]
    assert regions.dollars(regions.others[1], 2 * 2**30) == 3.0


@pytest.mark.parametrize(
    ("source", "target", "price"),
    [
        ("us-east1", "us-east1", 0.0),
        ("us-east1", "us-west4", 0.02),
        ("us-east1", "northamerica-northeast1", 0.02),
        ("europe-west4", "eu-west4", 0.02),
        ("europe-west4", "us-east1", 0.05),
        ("asia-east1", "asia-northeast1", 0.08),
        ("asia-east1", "us-east1", 0.08),
        ("us-east1", "australia-southeast1", 0.10),
        ("southamerica-east1", "us-east1", 0.14),
        ("somewhere", "us-east1", 0.14),
    ],
)
def test_a_gb_costs_what_googles_table_gives(source: str, target: str, price: float) -> None:
    one, other = (Region(name=name, prefix=f"gs://{name}/x") for name in (source, target))
    assert dollars_per_gb(one, other) == price


def test_reading_from_a_folder_is_free() -> None:
    assert dollars_per_gb(Region(name="a", prefix="/a"), Region(name="us-east1", prefix="gs://b/x")) == 0


@pytest.mark.parametrize(
    ("prefixes", "region", "prices", "sentence"),
    [
        ("gs://b/x", "", "", "'gs://b/x' in it is not a region with its prefix. Write name=prefix"),
        ("a=/a,,b=/b", "", "", "'' in it is not a region with its prefix"),
        ("a=", "", "", "'a=' in it is not a region"),
        ("A B=/a", "", "", "'A B=/a' in it is not a region"),
        ("a=data/a", "", "", "Give an absolute path"),
        ("a=s3://b/x", "", "", "a mirror consists of folders and gs:// prefixes"),
        ("a=/a,a=/b", "", "", "has the region 'a' twice"),
        ("a=/a,b=/a/b", "", "", "one inside the other"),
        ("a=/a,b=/b", "c", "", "MARIN_REGION is 'c'"),
        ("a=/a,b=/b", "", "", "MARIN_PREFIX is '/own', which is none of the prefixes"),
        ("a=/a,b=/b", "a", "b>a=cheap", "expected from>to=dollars"),
        ("a=/a,b=/b", "a", "b>c=1", "with two of the regions a, b"),
    ],
)
def test_a_malformed_declaration_is_one_sentence(prefixes: str, region: str, prices: str, sentence: str) -> None:
    with pytest.raises(SettingError, match=sentence.replace("(", r"\(")) as raised:
        read_declaration(prefixes, region, prices, own_prefix="/own")
    assert "\n" not in str(raised.value)
