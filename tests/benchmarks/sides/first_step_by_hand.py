"""Levanter's train_lm on the config in the first argument, with its trainer's log in the second."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

from marin_resources.wire.config_json import decode


def main() -> None:
    trainer = logging.getLogger("levanter.trainer")  # Levanter replaces the handlers of the root
    trainer.setLevel(logging.INFO)
    trainer.addHandler(logging.FileHandler(sys.argv[2]))

    from train_step import train_by_hand

    train_by_hand(decode(json.loads(Path(sys.argv[1]).read_text())))


if __name__ == "__main__":
    main()
