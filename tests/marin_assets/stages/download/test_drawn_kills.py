"""Every stage that reads a source is killed at ten drawn moments of its writes, and ends with the same bytes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from crawl_server import crawl_server
from dataset_hub import dataset_hub
from drawn_kills import StageRuns, require_same_bytes_after_kills, stage_runs
from known_rows import chats_of, tree_of
from latexml_papers import papers, write_archive
from pubmed_files import ABSTRACT, archive_of, citation, deleted, pubmed_of
from pubmed_files import article as pmc_article
from stack_dumps import drawn_rows
from stack_dumps import dump_of as stack_dump_of
from warc_files import cdx_lines, conversion, crawl_records, index_files, info_record, members
from wiki_dumps import article, dump_of
from wiki_xml import INDEX, NAME, drawn_pages, multistream

from marin_assets.documents import Document, write_documents

DOWNLOAD, TRANSFORM = "marin_assets.stages.download", "marin_assets.stages.transform"
WARC = "crawl-data/{}.warc.gz"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A stage, and what makes its input."""

    stage: str
    config: str
    make: Callable[[Path], Mapping[str, Any]]
    """Writes an input into a folder, and returns the fields of the config."""
    request: Mapping[str, Any] = field(default_factory=dict)


@pytest.fixture(scope="module")
def runs() -> Iterator[StageRuns]:
    with stage_runs() as runs:
        yield runs


def put(folder: Path, files: Mapping[str, bytes]) -> str:
    for name, content in files.items():
        path = folder / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return str(folder / "in")


def lines_of(rows: Any) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def wiki_html(folder: Path) -> dict[str, Any]:
    draw, dumps = random.Random(8), {}
    for name in "abc":
        rows = [article(draw.randrange(300), version=draw.randrange(9), body="<p>owl</p>" * 90) for _ in range(200)]
        dumps[f"{name}.tar.gz"] = dump_of(rows)
    return {"input_path": put(folder, dumps), "source": "wiki", "shard_bytes": 20_000}


def wiki_text(folder: Path) -> dict[str, Any]:
    content, index, _ = multistream(drawn_pages(1500), a_stream=20)
    return {"input_path": put(folder, {NAME: content, INDEX: index}), "source": "wiki", "shard_bytes": 60_000}


def stackexchange(folder: Path) -> dict[str, Any]:
    archives = {f"{name}/dba.stackexchange.com.7z": stack_dump_of(drawn_rows(n, 700)) for n, name in enumerate("abc")}
    return {"input_path": put(folder, archives), "source": "stack", "shard_bytes": 40_000}


def pubmed(folder: Path) -> dict[str, Any]:
    draw, files = random.Random(8), {}
    for n in range(4):
        parts = [citation(draw.randrange(1, 300), title=str(draw.random()), abstract=ABSTRACT * 9) for _ in range(300)]
        files[f"pubmed25n000{n}.xml.gz"] = pubmed_of(*parts, deleted(*range(n * 9 + 1, n * 9 + 20)))
    return {"input_path": put(folder, files), "shard_bytes": 30_000}


def pmc(folder: Path) -> dict[str, Any]:
    draw, files = random.Random(8), {}
    for k in range(3):
        texts: dict[str, str | bytes] = {}
        for n in range(80):
            number = draw.randrange(1, 150)
            texts[f"{n}/PMC{number}.xml"] = pmc_article(number, title=str(draw.random()), body="<p>owl</p>" * 90)
        files[f"oa_comm_xml.incr.2024-06-1{k}.tar.gz"] = archive_of(texts)
    return {"input_path": put(folder, files), "shard_bytes": 20_000}


def ar5iv(folder: Path) -> dict[str, Any]:
    for number, name in enumerate(("ar5iv-a-error.zip", "ar5iv-b-no-problem.zip")):
        write_archive(folder / "in" / name, papers(150, seed=number, size=3000))
    return {"input_path": str(folder / "in"), "source": "ar5iv", "shard_bytes": 60_000}


def warc(folder: Path) -> dict[str, Any]:
    files = {f"{number}.warc.gz": members(crawl_records(copies=6)) for number in range(3)}
    return {"input_path": put(folder, files), "source": "crawl", "shard_bytes": 100_000}


def wet(folder: Path) -> dict[str, Any]:
    draw = random.Random(2)
    files = {}
    for number in range(3):
        texts = [conversion(f"https://a.org/{n}", draw.randbytes(900).hex()) for n in range(200)]
        files[f"{number}.warc.wet.gz"] = members([info_record(), *texts])
    return {"input_path": put(folder, files), "source": "crawl", "shard_bytes": 30_000}


def crawl(folder: Path) -> dict[str, bytes]:
    """WARC files, and their index."""
    files = {WARC.format(number): members(crawl_records(copies=3)) for number in range(4)}
    lines = [line for name, content in files.items() for line in cdx_lines(name, content)]
    return files | {f"index/{name}": content for name, content in index_files(lines).items()}


def index(folder: Path) -> dict[str, Any]:
    return {"index_path": f"{put(folder, crawl(folder))}/index"}


def captures(folder: Path) -> dict[str, Any]:
    from marin_assets.stages.download.crawl.select_captures import SelectCapturesConfig, select_captures
    from marin_assets.step.values import unwrap_versioned_value

    base = put(folder, crawl(folder))
    config = SelectCapturesConfig(index_path=f"{base}/index", output_path=str(folder / "rows"))
    select_captures(unwrap_versioned_value(config))
    return {"input_path": str(folder / "rows"), "base_url": base, "source": "crawl"}


def outlinks(folder: Path) -> dict[str, Any]:
    draw = random.Random(7)
    for shard in range(4):
        pages = []
        for number in range(60):
            links = (f"<p><a href='http://h{draw.randrange(90)}.com/p{draw.randrange(9)}'>x</a></p>" for _ in range(20))
            metadata = {"url": f"https://s{shard}-{number}.example.org/a"}
            pages.append(Document(id=f"{shard}-{number}", text="".join(links), metadata=metadata))
        write_documents(f"{folder}/in/{shard}.jsonl.zst", pages)
    return {"pages_path": f"{folder}/in"}


def chats(folder: Path) -> dict[str, Any]:
    rows = chats_of("openai")
    return {"rows_path": put(folder, {f"{n}.jsonl": lines_of(rows[n % 4 :] * 20) for n in range(6)}), "source": "chats"}


def pairs(folder: Path) -> dict[str, Any]:
    rows = [
        {"prompt": f"{n % 50} + 1?", "chosen": f"{n % 50 + 1}, I think.", "rejected": "No."} for n in range(400)
    ]  # fmt: skip
    files = {f"{n}.jsonl": lines_of(rows[n * 40 : n * 40 + 80]) for n in range(6)}
    return {"rows_path": put(folder, files), "adapter": "answers"}


def trees(folder: Path) -> dict[str, Any]:
    messages = [message for number in range(200) for message in tree_of(number)]
    random.Random(5).shuffle(messages)
    return {"rows_path": put(folder, {f"{n}.jsonl": lines_of(messages[n::5]) for n in range(5)}), "partitions": 6}


CASES = {
    "wiki html": Case(
        stage=f"{DOWNLOAD}.wiki.read_wiki_html:read_wiki_html", config="ReadWikiHtmlConfig", make=wiki_html
    ),
    "wiki xml": Case(stage=f"{DOWNLOAD}.wiki.read_wiki_xml:read_wiki_xml", config="ReadWikiXmlConfig", make=wiki_text),
    "stackexchange": Case(
        stage=f"{DOWNLOAD}.stackexchange.read_stackexchange:read_stackexchange",
        config="ReadStackexchangeConfig",
        make=stackexchange,
        request={"patches": {f"{DOWNLOAD}.stackexchange.runs:RUN_BYTES": 100_000}},
    ),
    "pubmed": Case(stage=f"{DOWNLOAD}.pubmed.read_pubmed:read_pubmed", config="ReadPubmedConfig", make=pubmed),
    "pmc": Case(stage=f"{DOWNLOAD}.pubmed.read_pmc:read_pmc", config="ReadPmcConfig", make=pmc),
    "ar5iv": Case(stage=f"{DOWNLOAD}.ar5iv.read_ar5iv:read_ar5iv", config="ReadAr5ivConfig", make=ar5iv),
    "warc": Case(stage=f"{DOWNLOAD}.crawl.read_warc:read_warc", config="ReadWarcConfig", make=warc),
    "wet": Case(stage=f"{DOWNLOAD}.crawl.read_wet:read_wet", config="ReadWetConfig", make=wet),
    "index": Case(stage=f"{DOWNLOAD}.crawl.select_captures:select_captures", config="SelectCapturesConfig", make=index),
    "captures": Case(
        stage=f"{DOWNLOAD}.crawl.fetch_captures:fetch_captures", config="FetchCapturesConfig", make=captures
    ),
    "links": Case(
        stage=f"{DOWNLOAD}.links.extract_outlinks:extract_outlinks", config="ExtractOutlinksConfig", make=outlinks
    ),
    "conversations": Case(
        stage=f"{TRANSFORM}.conversations.conversations:conversations", config="ConversationsConfig", make=chats
    ),
    "preferences": Case(
        stage=f"{TRANSFORM}.conversations.preferences:preferences", config="PreferencesConfig", make=pairs
    ),
    "threads": Case(stage=f"{TRANSFORM}.conversations.threads:join_threads", config="ThreadsConfig", make=trees),
}


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", CASES)
def test_a_stage_that_is_killed_ten_times_ends_with_the_same_bytes(runs: StageRuns, name: str, tmp_path: Path) -> None:
    case = CASES[name]
    require_same_bytes_after_kills(runs, case.stage, case.config, case.make(tmp_path), tmp_path, **case.request)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_download_of_the_hub_that_is_killed_ten_times_ends_with_the_same_bytes(
    runs: StageRuns, tmp_path: Path
) -> None:
    draw = random.Random(3)
    with dataset_hub() as hub:
        hub.add("lab/texts", {f"data/{n}.bin": draw.randbytes(30_000) for n in range(20)})
        require_same_bytes_after_kills(
            runs,
            f"{DOWNLOAD}.hub.download_hf:download_hf",
            "DownloadHfConfig",
            {"dataset": "lab/texts", "range_bytes": 10_000, "max_shard_files": 4},
            tmp_path,
            same_counts=False,
            env={"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home")},
        )


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_download_of_a_list_that_is_killed_ten_times_ends_with_the_same_bytes(
    runs: StageRuns, tmp_path: Path
) -> None:
    draw = random.Random(3)
    with crawl_server() as server:
        server.files |= {f"data/{n}.bin": draw.randbytes(30_000) for n in range(20)}
        require_same_bytes_after_kills(
            runs,
            f"{DOWNLOAD}.file_lists:download_listed",
            "DownloadListedConfig",
            {"base": server.url, "names": list(server.files)},
            tmp_path,
            same_counts=False,
        )
