"""Runs of recipes at their small scale, as a person starts them, and what they leave."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from marin_assets.documents import read_documents


def run_recipe(name: str, prefix: Path, package: str = "marin_assets.experiments.recipes") -> str:
    done = subprocess.run(
        [sys.executable, "-m", f"{package}.{name}", "--prefix", str(prefix)],
        cwd=prefix,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


def result_of(prefix: Path, pattern: str) -> Any:
    [record] = prefix.glob(f"{pattern}-??????/.executor_info")
    return json.loads(record.read_text())["result"]


def texts_of(prefix: Path, name: str) -> list[str]:
    shards = prefix.glob(f"{name}-??????/*.jsonl.zst")
    return [document.text for shard in shards for document in read_documents(str(shard))]
