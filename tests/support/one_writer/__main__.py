"""`python -m one_writer PREFIX SECONDS SEED PROCESSES`: compete, and print the verdict as JSON."""

from __future__ import annotations

import json
import sys
import tempfile

from marin_resources.storage.paths import StoreKind, kind_of
from one_writer.parent import Arena, Parent
from one_writer.verdict import judge

if __name__ == "__main__":
    prefix, seconds, seed, processes = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/journal"
        arena = Arena(
            prefix=prefix,
            journal_path=path,
            seconds=seconds,
            seed=seed,
            processes=processes,
            lose_answers=kind_of(prefix) is not StoreKind.GCS,
        )
        ended = Parent(arena).run()
        print(json.dumps(judge(prefix, path, ended).to_json()))
