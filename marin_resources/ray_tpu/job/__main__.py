"""`python -m marin_resources.ray_tpu.job NOTE`: the command of a job on a cluster."""

from __future__ import annotations

import sys

from marin_resources.ray_tpu.job.entry import main

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"{' '.join(sys.argv[1:])!r} is not the path of one note. The cluster back end runs this command.")
    sys.exit(main(sys.argv[1]))
