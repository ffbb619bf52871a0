"""datatrove's side of `url_lists.py`, run by datatrove's Python; DCLM's rules with its library retrie.

assets FOLDER            copy the lists of the package into the folder
verdicts URLS OUT        write the reason of each address, "" if it is kept
seconds URLS             print the seconds of all addresses, those of loading the lists, and the memory in MB
dclm URLS FOLDER OUT     write the reason of each address by DCLM's rules with the lists of the folder
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

REASONS = {"hard_blacklisted": "hard_words", "soft_blacklisted": "soft_words", "blacklisted_subword": "subwords"}


def main() -> None:
    task, path = sys.argv[1], sys.argv[2]
    if task == "assets":
        from datatrove.utils._import_utils import ASSETS_PATH

        for file in Path(ASSETS_PATH).iterdir():
            if file.name.endswith(("words.txt", ".tar.gz")):
                shutil.copy(file, path)
        print("null")
        return
    urls = [json.loads(line) for line in Path(path).read_text().splitlines()]
    if task == "seconds":
        print(json.dumps(seconds(urls)))
        return
    reason_of = of_datatrove() if task == "verdicts" else of_dclm(Path(sys.argv[3]))
    with Path(sys.argv[-1]).open("w") as out:
        for url in urls:
            out.write(json.dumps(reason_of(url)) + "\n")
    print(json.dumps(len(urls)))


def url_filter() -> Any:
    from datatrove.pipeline.filters import URLFilter
    from tldextract import TLDExtract

    made = URLFilter()
    made.tldextractor = TLDExtract(suffix_list_urls=(), cache_dir=None)  # its package's list, not that of today
    made.download_data()
    return made


def of_datatrove() -> Any:
    from datatrove.data import Document

    made = url_filter()

    def reason_of(url: str) -> str:
        result = made.filter(Document(text="", id="", metadata={"url": url}))
        return "" if result is True else REASONS.get(result[1], result[1])

    return reason_of


def seconds(urls: list[str]) -> dict[str, float]:
    from datatrove.data import Document

    began = time.process_time()
    made = url_filter()
    made.filter(Document(text="", id="", metadata={"url": "http://example.org/"}))
    loaded = time.process_time()
    documents = [Document(text="", id="", metadata={"url": url}) for url in urls]
    first = time.process_time()
    for document in documents:
        made.filter(document)
    took = time.process_time() - first
    status = Path("/proc/self/status").read_text()
    most_kb = int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))
    return {"seconds": took, "load": loaded - began, "memory_mb": most_kb / 1024}


def of_dclm(folder: Path) -> Any:
    """The four steps of DCLM's pipeline, with the pattern that its library builds of a list."""
    from retrie.retrie import Blacklist

    def lines(name: str) -> list[str]:
        return [line.lower() for line in (folder / f"refinedweb_banned_{name}.txt").read_text().splitlines()]

    def pattern(name: str, inside: bool) -> re.Pattern[str]:
        listed = lines(f"words_{name}_reverse_engineered")
        return Blacklist(listed, match_substrings=inside, re_flags=re.IGNORECASE).compiled

    domains = set(lines("domains_curated"))
    strict, hard, soft = pattern("strict", True), pattern("hard", False), pattern("soft", False)

    def reason_of(url: str) -> str:
        try:
            host = urlparse(url).netloc.lower().replace("www", "")
        except ValueError:  # ends DCLM's own program
            host = ""
        lower = url.lower()
        if host in domains:
            return "domain"
        if strict.search(lower.replace("-", "").replace(".", "")):
            return "subwords"
        if hard.search(lower):
            return "hard_words"
        return "soft_words" if len(set(soft.findall(lower))) >= 2 else ""

    return reason_of


if __name__ == "__main__":
    main()
