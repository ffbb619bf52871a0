"""Names that cannot be stored as they are are refused before a file is fetched, unless they are left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from dataset_hub import DatasetHub, entry
from hub_downloads import FILES, NAME, download, files_of

from marin_assets.stages.download.hub.repository import HubError


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../x.txt", "it leads out of the folder"),
        ("a/../../x.txt", "it leads out of the folder"),
        ("/etc/x.txt", "it leads out of the folder"),
        ("a//x.txt", "it leads out of the folder"),
        ("a/./x.txt", "it leads out of the folder"),
        ("nul\0.txt", "it has a character that is no letter"),
        ("line\n.txt", "it has a character that is no letter"),
        ("half \ud800.txt", "it has a character that is no letter"),
        ("l" * 300 + ".txt", "it is longer than 220 bytes a name or 900 a path"),
        ("é" * 120 + ".txt", "it is longer than 220 bytes a name"),
        ("/".join(["deep"] * 300) + ".txt", "it is longer than 220 bytes a name or 900 a path"),
        ("readme.md", "it is also there as .*which differs in case alone"),
        ("data/A.bin", "it is also there as 'data/.*which differs in case alone"),
        ("data", "it is both a file and a folder"),
        ("checksums.json", "it is a name reserved for the output"),
    ],
)
def test_a_hostile_name_is_refused_and_can_be_left_out(
    hub: DatasetHub, output: Path, tmp_path: Path, name: str, reason: str
) -> None:
    hub.repos[f"datasets/{NAME}"].rows.append(entry(name, b"x"))
    with pytest.raises(HubError, match=f"cannot be stored under its name: {reason}.*Leave it out with exclude"):
        download(output)
    assert files_of(output) == {}
    assert not hub.sent_bytes
    download(tmp_path / "without", exclude=(name,))
    assert files_of(tmp_path / "without") == FILES


def test_a_path_that_is_listed_twice_is_refused(hub: DatasetHub, output: Path) -> None:
    hub.repos[f"datasets/{NAME}"].rows.append(entry("README.md", b"another"))
    with pytest.raises(HubError, match=r"has 'README\.md' twice, expected each path once"):
        download(output)
