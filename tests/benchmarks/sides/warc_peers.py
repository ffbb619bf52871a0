"""One library's reading of a WARC file: prints its seconds of CPU, and the number of pages.

python warc_peers.py warcio|datatrove WARC
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def cpu_seconds() -> float:
    """Seconds of this process and of its children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def warcio(path: str) -> int:
    from warcio.archiveiterator import ArchiveIterator

    pages = 0
    with open(path, "rb") as file:
        for record in ArchiveIterator(file):
            if record.rec_type == "response":
                pages += len(record.content_stream().read()) > 0
    return pages


def datatrove(path: str) -> int:
    from datatrove.pipeline.extractors import Trafilatura
    from datatrove.pipeline.readers import WarcReader

    file = Path(path)
    reader = WarcReader(str(file.parent), glob_pattern=file.name)
    return sum(1 for _ in Trafilatura(timeout=60, favour_precision=True).run(reader.run()))


if __name__ == "__main__":
    read = {"warcio": warcio, "datatrove": datatrove}[sys.argv[1]]
    began_s = cpu_seconds()
    count = read(sys.argv[2])
    print(cpu_seconds() - began_s, count)
