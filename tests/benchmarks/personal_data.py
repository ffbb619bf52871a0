"""The speed of finding personal data, against FineWeb's two regular expressions in the same run.

    python tests/benchmarks/personal_data.py

Texts are Python's help. FineWeb's kinds: at least 10 MB a CPU second. The medians of five rounds count.
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable
from pydoc_data.topics import topics

from marin_assets.stages.personal_data.matches import FINEWEB, KINDS, find_matches

LEAST_MB = 10.0
ROUNDS, COPIES = 5, 4
EMAIL = re.compile(
    r"\b[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}\b"
)
IPV4 = re.compile(r"(?:(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]{1,2})\.){3}(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]{1,2})")
"""As simple as they are written most often."""


def main() -> int:
    texts = list(topics.values()) * COPIES
    size = sum(map(len, texts)) / 1e6
    expressions = size / cpu_s(lambda: [(EMAIL.findall(text), IPV4.findall(text)) for text in texts])
    print(f"two regular expressions {expressions:6.1f} MB/s")
    for name, kinds in {"email, ipv4": FINEWEB, **{kind: (kind,) for kind in KINDS}, "all": KINDS}.items():
        speed = size / cpu_s(lambda kinds=kinds: [find_matches(text, kinds) for text in texts])
        print(f"{name:23} {speed:6.1f} MB/s, {speed / expressions:.2f} of these")
        if kinds is FINEWEB:
            is_missed = speed < LEAST_MB
    print(f"missed: {LEAST_MB} MB/s for email, ipv4" if is_missed else "all limits held")
    return int(is_missed)


def cpu_s(work: Callable[[], object]) -> float:
    def once() -> float:
        began = time.process_time()
        work()
        return time.process_time() - began

    return statistics.median(once() for _ in range(ROUNDS))


if __name__ == "__main__":
    raise SystemExit(main())
