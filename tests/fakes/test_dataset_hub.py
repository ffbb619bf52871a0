"""The hub on loopback answers the hub's own client as the hub does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from dataset_hub import DatasetHub, dataset_hub
from hub_downloads import FILES, NAME

pytestmark = pytest.mark.long
huggingface_hub = pytest.importorskip("huggingface_hub")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[DatasetHub]:
    import huggingface_hub.constants
    import huggingface_hub.utils._http as hub_http

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)  # tests are offline; loopback is not
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)
    hub_http.reset_sessions()
    with dataset_hub() as hub:
        hub.add(NAME, FILES)
        yield hub
    hub_http.reset_sessions()


def test_the_clients_listing_has_paths_sizes_and_checksums(hub: DatasetHub) -> None:
    hub.page_rows = 2
    api = huggingface_hub.HfApi(endpoint=hub.url, token=False)
    rows = list(api.list_repo_tree(NAME, repo_type="dataset", recursive=True))
    files = {row.path: row for row in rows if hasattr(row, "size")}
    assert {row.path for row in rows} - set(files) == {"data", "data/sub", "odd names"}
    assert {path: file.size for path, file in files.items()} == {path: len(content) for path, content in FILES.items()}
    assert len(files["data/a.bin"].lfs.sha256) == 64
    assert files["README.md"].lfs is None
    assert api.dataset_info(NAME, revision="main").sha == hub.repos[f"datasets/{NAME}"].branches["main"]


@pytest.mark.parametrize("name", [name for name in FILES if FILES[name]])
def test_the_client_downloads_files(hub: DatasetHub, tmp_path: Path, name: str) -> None:
    place = huggingface_hub.hf_hub_download(
        NAME, name, repo_type="dataset", endpoint=hub.url, token=False, local_dir=tmp_path
    )
    assert Path(place).read_bytes() == FILES[name]


def test_the_client_reads_refusals_as_its_own_errors(hub: DatasetHub, tmp_path: Path) -> None:
    from huggingface_hub import errors

    def download(name: str = NAME, file: str = "data/a.bin", revision: str = "main", token: str | bool = False) -> str:
        return huggingface_hub.hf_hub_download(
            name, file, repo_type="dataset", revision=revision, endpoint=hub.url, token=token, cache_dir=tmp_path
        )

    with pytest.raises(errors.EntryNotFoundError):
        download(file="none.bin")
    with pytest.raises(errors.RepositoryNotFoundError):
        download(name="lab/none")
    with pytest.raises(errors.RevisionNotFoundError):
        huggingface_hub.HfApi(endpoint=hub.url, token=False).dataset_info(NAME, revision="none")
    hub.repos[f"datasets/{NAME}"].is_gated = True
    with pytest.raises(errors.GatedRepoError):
        download()
    assert Path(download(token="hf_reads")).read_bytes() == FILES["data/a.bin"]
    assert hub.tokens["storage"] == {None}
