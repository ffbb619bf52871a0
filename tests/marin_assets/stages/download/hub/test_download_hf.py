"""Files of a commit are downloaded with their names and checksums, page by page and range by range."""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from dataset_hub import DatasetHub, git_oid
from hub_downloads import FILES, NAME, download, files_of

from marin_assets.stages.download.hub.repository import HubConfigError, HubError

SIZE = sum(map(len, FILES.values()))


def test_all_files_of_a_commit_are_downloaded_with_size_checksum_and_commit(hub: DatasetHub, output: Path) -> None:
    result = download(output)
    assert files_of(output) == FILES
    listing = json.loads((output / "checksums.json").read_text())
    assert listing["format_version"] == 1
    for row, (name, content) in zip(listing["files"], sorted(FILES.items()), strict=True):
        assert row["name"] == name
        assert row["size"] == len(content)
        assert row["sha256"] == hashlib.sha256(content).hexdigest()
    assert next(row["oid"] for row in listing["files"] if row["name"] == "README.md") == git_oid(FILES["README.md"])
    lines = "".join(f"{row['sha256']}  {row['name']}\n" for row in listing["files"])
    assert result["sha256"] == hashlib.sha256(lines.encode()).hexdigest()
    assert (result["files"], result["bytes"], result["bytes_fetched"]) == (len(FILES), SIZE, SIZE)
    assert (result["commit"], result["dataset"]) == (hub.repos[f"datasets/{NAME}"].branches["main"], NAME)
    assert (result["requests"], result["retries"]) == (len(hub.requests), 0)


def test_a_file_comes_by_ranges_several_at_a_time(hub: DatasetHub, output: Path) -> None:
    hub.add(NAME, {"a.bin": FILES["data/a.bin"]})
    download(output, range_bytes=50_000)
    ranges = {wanted for server, _, wanted in hub.requests if server == "storage"}
    assert ranges == {f"bytes={at}-{min(at + 50_000, 307_200) - 1}" for at in range(0, 307_200, 50_000)}
    assert files_of(output) == {"a.bin": FILES["data/a.bin"]}
    assert hub.count("hub", "/resolve/") == 1


def test_no_part_of_a_file_is_left(hub: DatasetHub, output: Path) -> None:
    (output / ".hub/parts/of another commit").mkdir(parents=True)
    download(output)
    assert sorted(file.name for file in (output / ".hub").iterdir()) == ["budget.json", "commit.json"]


@pytest.mark.parametrize("shard", [{"max_shard_files": 1}, {"max_shard_files": 2}, {"max_shard_bytes": 60_000}])
def test_the_output_does_not_depend_on_shards_ranges_or_order(
    hub: DatasetHub, tmp_path: Path, shard: dict[str, Any]
) -> None:
    whole = download(tmp_path / "one")
    split = download(tmp_path / "two", range_bytes=1000, ranges_in_flight=3, **shard)
    assert files_of(tmp_path / "two") == files_of(tmp_path / "one") == FILES
    same = (tmp_path / "one/checksums.json").read_bytes()
    assert (tmp_path / "two/checksums.json").read_bytes() == same
    assert split["sha256"] == whole["sha256"]
    assert len(list((tmp_path / "two/.marin/shards/fetch_shard").iterdir())) > 1


def test_a_listing_of_many_pages_is_read_to_its_end(hub: DatasetHub, output: Path) -> None:
    files = {f"data/{i:03}.txt": b"%d" % i for i in range(57)}
    hub.add(NAME, files)
    hub.page_rows = 10
    assert download(output)["files"] == 57
    assert hub.count("hub", "/tree/") == 6
    assert files_of(output) == files


def test_globs_choose_files_and_list_their_folders_alone(hub: DatasetHub, output: Path) -> None:
    result = download(output, include=("data/*.bin", "README.md"), exclude=("**/b.*",))
    assert set(files_of(output)) == {"data/a.bin", "README.md"}
    assert result["left_out_excluded"] == 1
    trees = [path.partition("/tree/")[2].partition("/")[2] for _, path, _ in hub.requests if "/tree/" in path]
    assert [tree.partition("?")[0] for tree in trees] == ["data", ""]
    assert all("recursive=False" in path for _, path, _ in hub.requests if "/tree/" in path)


def test_a_glob_in_a_folder_that_does_not_exist_matches_nothing(hub: DatasetHub, output: Path) -> None:
    assert download(output, include=("data/a.bin", "nowhere/*.bin"))["files"] == 1
    with pytest.raises(HubError, match=r"No file of the dataset 'lab/texts' is chosen by the globs \['nowhere/\*'\]"):
        download(output, include=("nowhere/*",))


def test_an_empty_choice_names_files_that_exist(hub: DatasetHub, output: Path) -> None:
    with pytest.raises(HubError, match=r"it has 'README\.md', 'data/a\.bin', 'data/b\.bin'\. Correct the globs"):
        download(output, include=("**/*.zip", "**"), exclude=("**",))


def test_hidden_files_are_left_out_and_counted(hub: DatasetHub, output: Path) -> None:
    hub.add(NAME, {"a.txt": b"a", ".gitattributes": b"x", ".git/config": b"x"})
    result = download(output)
    assert (result["files"], result["left_out_hidden"]) == (1, 2)
    assert set(files_of(output)) == {"a.txt"}


def test_a_commit_is_downloaded_by_its_digits_and_by_its_first_digits(hub: DatasetHub, tmp_path: Path) -> None:
    old = hub.repos[f"datasets/{NAME}"].branches["main"]
    hub.add(NAME, {"new.txt": b"new"})
    for revision in (old, old[:7]):
        result = download(tmp_path / revision, revision=revision)
        assert result["commit"] == old
        assert files_of(tmp_path / revision) == FILES


def test_a_branch_with_a_slash_is_downloaded(hub: DatasetHub, output: Path) -> None:
    hub.add(NAME, {"dev.txt": b"dev"}, branch="dev/v2")
    download(output, revision="dev/v2")
    assert files_of(output) == {"dev.txt": b"dev"}


def test_a_branch_is_resolved_once_also_if_it_moves_before_the_next_attempt(hub: DatasetHub, output: Path) -> None:
    commit = hub.repos[f"datasets/{NAME}"].branches["main"]
    hub.fault("data/b.bin", *["server_error"] * 8)
    with pytest.raises(Exception, match="failed 8 times in a row"):
        download(output, ranges_in_flight=1)
    hub.add(NAME, {"data/b.bin": b"moved"})
    assert download(output)["commit"] == commit
    assert files_of(output) == FILES
    assert hub.count("hub", "/revision/main") == 1


def test_another_revision_in_the_same_folder_is_resolved_again(hub: DatasetHub, output: Path) -> None:
    download(output)
    commit = hub.add(NAME, {"README.md": b"# Other\n"}, branch="dev")
    assert download(output, revision="dev")["commit"] == commit
    assert files_of(output)["README.md"] == b"# Other\n"


def test_files_that_are_complete_are_not_fetched_again(hub: DatasetHub, output: Path) -> None:
    hub.fault("odd names/50% #1 é+&.bin", *["server_error"] * 8)
    with pytest.raises(Exception, match="failed 8 times in a row, the last time because of 'server_error'"):
        download(output, ranges_in_flight=1)
    hub.sent_bytes.clear()
    result = download(output, max_shard_files=2)  # with other shards too
    assert files_of(output) == FILES
    assert set(hub.sent_bytes) == {"odd names/50% #1 é+&.bin"}
    assert (result["files"], result["bytes"]) == (len(FILES), SIZE)


def test_a_model_is_downloaded(hub: DatasetHub, output: Path) -> None:
    hub.add("lab/model", {"config.json": b"{}", "weights.bin": b"w" * 9000}, kind="models")
    download(output, dataset="lab/model", repo_type="model")
    assert files_of(output) == {"config.json": b"{}", "weights.bin": b"w" * 9000}


def test_a_dataset_that_moved_is_downloaded_and_its_new_name_is_recorded(hub: DatasetHub, output: Path) -> None:
    hub.moved["old/name"] = NAME
    assert download(output, dataset="old/name")["dataset"] == NAME
    assert files_of(output) == FILES


def test_progress_is_logged_with_rate_and_time_left(
    hub: DatasetHub, output: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        download(output)
    assert "6 files, 0.4 MB" in caplog.text
    assert "lab/texts, shard 1 of 1: 6 of 6 files, 0.4 of 0.4 MB" in caplog.text
    assert "MB/s, 0 s left" in caplog.text


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"dataset": "../lab"}, "The dataset is '../lab', expected 'owner/name' as on the hub"),
        ({"dataset": "a/b/c"}, "The dataset is 'a/b/c', expected 'owner/name'"),
        ({"repo_type": "space"}, "The repo_type is 'space', expected 'dataset' or 'model'"),
        ({"revision": ".."}, r"The revision is '\.\.', expected a branch, a tag or a commit"),
        ({"revision": None}, "The revision is None, expected a branch, a tag or a commit"),
        ({"range_bytes": 0}, "range_bytes is 0, expected a number above 0"),
        ({"endpoint": "ftp://hub"}, "The address of the hub is not an 'https://…'"),
        ({"endpoint": "https://me:secret@hub"}, "The address of the hub is not an 'https://…' without a password"),
        ({"mirror": "https://host/hub"}, "The mirror is an address of the web, expected a folder or a bucket"),
        ({"include": ("a**b",)}, r"One of the globs \['a\*\*b'\] is not a glob"),
        ({"parquet_export": True, "revision": "v1"}, "The revision is 'v1', and the hub exports 'main' alone"),
    ],
)
def test_a_config_that_cannot_be_used_is_refused(
    hub: DatasetHub, output: Path, fields: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(HubConfigError, match=sentence) as refused:
        download(output, **fields)
    assert "secret" not in str(refused.value)
