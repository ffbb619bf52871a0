"""`python -m marin_resources.ray_tpu.job NOTE`: what a job on a cluster starts."""

from __future__ import annotations

import sys

from marin_resources.ray_tpu.job.entry import main

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"{' '.join(sys.argv[1:])!r} is not the path of one note. The cluster back end starts this, not you.")
    sys.exit(main(sys.argv[1]))
