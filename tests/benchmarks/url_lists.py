"""Our URL filter against datatrove's and DCLM's: the same verdict and reason of every address, and more a second.

    python tests/benchmarks/url_lists.py [--urls 40000] [--rounds 3] [--texts FILE …] [--dclm FOLDER]

The addresses are those in the texts of this machine (its Python, packages and manuals; `--texts` adds files, such as a
.warc.wat.gz), and as many made ones around the lists: subdomains, ports, users, IDN, capitals, words in paths and
queries, broken ones (`sides/url_texts.py`). datatrove 0.10.1, with its own lists, and retrie, the library of DCLM's
rules, run in an environment of their own. `--dclm` is a folder with the four lists of DCLM's repository; without it
they are made of datatrove's.

    verdicts       all equal, with the reason
    speed          the rule of `filter_documents` against datatrove's filter on 8,000 of the addresses of texts and
                   2,000 made ones, one process and one core each, turn by turn, from document to decision; medians
                   count. Loading the lists is not in it, and is printed.
    memory         the lists of datatrove in a process, by its growth at its most

Limits: all verdicts equal, datatrove's speed, 150 MB. Exits 1 if one is missed. Takes three minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "sides"))

import tldextract
from filters import run
from url_texts import made_urls, real_urls

from marin_assets.documents import Document
from marin_assets.stages.filter.filter_documents import FilterDocumentsConfig, decision_rule_of
from marin_assets.stages.filter.registry import named
from marin_assets.stages.filter.url.list_files import entries_in, list_files, members
from marin_assets.stages.filter.url.lists import NAMES
from marin_assets.step.values import unwrap_versioned_value

PACKAGES = ("datatrove[processing]==0.10.1", f"tldextract=={tldextract.__version__}", "retrie==0.3.1")
SIDES = Path(__file__).resolve().parent / "sides"
MAX_MB = 150.0
LEAST_RATIO = 1.0


def main() -> int:
    options = parse()
    with tempfile.TemporaryDirectory() as folder:
        assets, lists_of_dclm = f"{folder}/assets", options.dclm or f"{folder}/dclm"
        Path(assets).mkdir()
        run_theirs(folder, "assets", assets)
        lists = entries_of(assets)
        if options.dclm is None:
            write_as_dclm(lists_of_dclm, lists)
        real = real_urls(options.texts)
        random.Random(0).shuffle(real)
        real = real[: options.urls]
        urls = real + list(made_urls(len(real), real, lists))
        print(f"{len(real)} addresses of texts, {len(urls) - len(real)} made ones")
        path = f"{folder}/urls.jsonl"
        write_urls(path, urls)
        run_theirs(folder, "verdicts", path, f"{folder}/verdicts")
        missed = compare(urls, f"{folder}/verdicts", "url@refinedweb", assets)
        run_theirs(folder, "dclm", path, lists_of_dclm, f"{folder}/dclm_verdicts")
        missed += compare(urls, f"{folder}/dclm_verdicts", "url@dclm", lists_of_dclm)
        timed = f"{folder}/timed.jsonl"
        write_urls(timed, [url for url in [*real[:8000], *urls[-2000:]] if len(url) < 10_000])
        missed += compare_speed(timed, assets, options.rounds, folder)
    print("missed: " + ", ".join(missed) if missed else "all limits held")
    return 1 if missed else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--urls", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--texts", nargs="*", default=[])
    parser.add_argument("--dclm")
    return parser.parse_args()


def entries_of(folder: str) -> dict[str, list[str]]:
    """The lists of datatrove; every 40th of the domains."""
    kinds = {name: kind for kind, name in NAMES["datatrove"].items()}
    lists: dict[str, list[str]] = {}
    for file in list_files(folder, kinds):
        for name, place, stream in members(file, kinds):
            entries = (entry.decode() for part in entries_in(stream, place) for entry in part)
            lists[kinds[name]] = [entry for i, entry in enumerate(entries) if name != "domains" or i % 40 == 0]
    return lists


def write_as_dclm(folder: str, lists: dict[str, list[str]]) -> None:
    Path(folder).mkdir()
    hosts = [entry for domain in lists["domains"] for entry in (domain, f".{domain}")]  # of "www.…" a dot is left
    for kind, name in NAMES["dclm"].items():
        entries = hosts if kind == "domains" else [*lists[kind], "s&m", "g-spot", "\U0001f595"]
        Path(folder, name).write_text("\n".join(entries) + "\n")


def write_urls(path: str, urls: list[str]) -> None:
    Path(path).write_text("".join(json.dumps(url) + "\n" for url in urls))


def compare(urls: list[str], verdicts: str, set_name: str, lists: str) -> list[str]:
    theirs = [json.loads(line) for line in Path(verdicts).read_text().splitlines()]
    decide = rule(set_name, lists)
    ours = [decide(document_of(url)).reason.removeprefix("url_") for url in urls]
    different = [(url, a, b) for url, a, b in zip(urls, ours, theirs, strict=True) if a != b]
    print(f"{set_name:15} {len(urls)} verdicts, {len(different)} differ; {dict(Counter(ours).most_common())}")
    for url, a, b in different[:20]:
        print(f"    {url!r:.100}: {a or 'kept'} here, {b or 'kept'} there")
    return [f"verdicts of {set_name}"] if different else []


def rule(set_name: str, lists: str) -> Any:
    config = FilterDocumentsConfig(
        documents_path="", output_path="", filters=[named(set_name)], words="fast", url_lists_path=lists
    )
    return decision_rule_of(unwrap_versioned_value(config))


def document_of(url: str) -> Document:
    return Document(id="0", text="", metadata={"url": url})


def compare_speed(path: str, lists: str, rounds: int, folder: str) -> list[str]:
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(json.loads(run([sys.executable, __file__, "--seconds", path, lists], our_environment())))
        theirs.append(run_theirs(folder, "seconds", path))
    count = len(Path(path).read_text().splitlines())
    medians = [{key: statistics.median(row[key] for row in rows) for key in rows[0]} for rows in (ours, theirs)]
    for name, row in zip(("ours", "datatrove"), medians, strict=True):
        speed = count / row["seconds"]
        print(f"{name:15} {speed:8.0f} a second; lists loaded in {row['load']:.1f} s; {row['memory_mb']:.0f} MB")
    ratio = medians[1]["seconds"] / medians[0]["seconds"]
    print(f"speed           {ratio:.1f} times datatrove's (limit {LEAST_RATIO:g})")
    growth = medians[0]["lists_mb"]
    print(f"memory          {growth:.0f} MB for the lists, at their most (limit {MAX_MB:g})")
    missed = ["speed"] if ratio < LEAST_RATIO else []
    return [*missed, "memory"] if growth > MAX_MB else missed


def our_seconds(path: str, lists: str) -> dict[str, float]:
    """Of a process of its own, as `datatrove` has one."""
    import numpy  # noqa: F401  # its memory is not that of the lists

    urls = [json.loads(line) for line in Path(path).read_text().splitlines()]
    before = most_kb()
    began = time.process_time()
    decide = rule("url@refinedweb", lists)
    decide(document_of("http://example.org/"))
    loaded = time.process_time()
    most = most_kb()
    documents = [document_of(url) for url in urls]
    first = time.process_time()
    for document in documents:
        decide(document)
    seconds = time.process_time() - first
    memory = most_kb()
    return {"seconds": seconds, "load": loaded - began, "memory_mb": memory / 1024, "lists_mb": (most - before) / 1024}


def most_kb() -> int:
    """The most memory of this process so far; ru_maxrss has that of its parent in it."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def our_environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}


def run_theirs(folder: str, *arguments: str) -> Any:
    uv = Path(__file__).resolve().parents[2] / ".tools/bin/uv"
    uv_path = str(uv) if uv.exists() else shutil.which("uv")
    if uv_path is None:
        raise RuntimeError(f"uv is not at {str(uv)!r} and not on the path. Run `make init` first.")
    packages = [word for name in PACKAGES for word in ("--with", name)]
    command = [uv_path, "run", "--isolated", "--no-project", "--python", sys.executable, *packages, "python"]
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MARIN_", "DAGSTER_", "PYTHON", "RAY_"))}
    clean |= {"HF_ASSETS_CACHE": f"{folder}/extracted", "HF_HOME": f"{folder}/hub"}
    return json.loads(run([*command, str(SIDES / "url_lists_datatrove.py"), *arguments], clean))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--seconds"]:
        print(json.dumps(our_seconds(sys.argv[2], sys.argv[3])))
        sys.exit(0)
    sys.exit(main())
