"""A stage with faults that a kill shows: it writes files in place, and takes what exists for complete."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class CarelessConfig:
    output_path: str
    is_careful: bool


def careless(config: CarelessConfig) -> dict[str, Any]:
    os.makedirs(config.output_path, exist_ok=True)
    for number in range(30):
        path = f"{config.output_path}/part-{number}"
        if os.path.exists(path):
            continue
        written = f"{config.output_path}/.{number}.tmp" if config.is_careful else path
        with open(written, "w") as file:
            file.write(f"{number}\n" * 20_000)
            file.flush()
            os.makedirs(f"{config.output_path}/.{number}", exist_ok=True)  # a moment within a file
            os.rmdir(f"{config.output_path}/.{number}")
            file.write("end\n")
        if config.is_careful:
            os.replace(written, path)
    return {"files": 30}
