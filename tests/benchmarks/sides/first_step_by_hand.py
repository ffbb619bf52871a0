"""Levanter's train_lm on the config in the first argument; touches the second when the first step is logged."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from marin_resources.wire.config_json import decode


def main() -> None:
    import levanter.tracker
    from train_step import train_by_hand

    log = levanter.tracker.log

    def log_and_say(metrics: Mapping[str, Any], **arguments: Any) -> None:
        log(metrics, **arguments)
        if "train/loss" in metrics:
            Path(sys.argv[2]).touch()

    levanter.tracker.log = log_and_say
    train_by_hand(decode(json.loads(Path(sys.argv[1]).read_text())))


if __name__ == "__main__":
    main()
