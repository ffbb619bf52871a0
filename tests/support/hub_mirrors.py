"""A folder or bucket with the hub's paths, as a mirror has them."""

from __future__ import annotations

import json
from urllib.parse import quote

from dataset_hub import entry

from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join

COMMIT = "c0ffee" + "0" * 34


def write_mirror(folder: str, name: str, files: dict[str, bytes], *, commit: str = COMMIT, branch: str = "main") -> str:
    """Write one commit of a dataset. Returns the folder."""
    api = join(folder, "api/datasets", name)
    revision = {"id": name, "sha": commit}
    write_bytes(join(api, "revision", quote(branch, safe="")), json.dumps(revision).encode())
    rows = [entry(path, content) for path, content in files.items()]
    write_bytes(join(api, "tree", commit), json.dumps(rows).encode())
    for path, content in files.items():
        write_bytes(join(folder, "datasets", name, "resolve", commit, path), content)
    return folder
