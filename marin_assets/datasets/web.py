"""Corpora of web pages: FineWeb, FineWeb-Edu, DCLM, Dolma 1.7, Nemotron-CC."""

from __future__ import annotations

from marin_assets.datasets.dataset import Corpus, HubFiles, ListedFiles, by_name
from marin_assets.defaults.sources import nemotron

SIMPLE = "marin experiments/pretraining_datasets/simple.py: id, revision"

_CARD = "card: licence, columns, folders"


def _fineweb(name: str, folder: str, *facts: str, size_bytes: int | None = None) -> Corpus:
    return Corpus(
        name=name,
        files=HubFiles(id="HuggingFaceFW/fineweb", revision="cd85054", globs=(f"{folder}/*.parquet",)),
        licence="ODC-By-1.0",
        bytes=size_bytes,
        id="id",
        metadata=("url", "dump"),
        facts=(SIMPLE, _CARD, *facts),
    )


def _fineweb_edu(name: str, folder: str) -> Corpus:
    return Corpus(
        name=name,
        files=HubFiles(
            id="HuggingFaceFW/fineweb-edu",
            revision="3c452cb1c31a957685cf2699bfd051afacd37422",
            globs=(f"{folder}/*.parquet",),
        ),
        licence="ODC-By-1.0",
        id="id",
        metadata=("url", "dump"),
        facts=(SIMPLE, "page of the commit: its 40 digits", _CARD),
    )


fineweb = _fineweb(
    "fineweb", "data/**", "the authors' report (FineWeb: decanting the web): 44 TB", size_bytes=44_000_000_000_000
)
fineweb_sample_10bt = _fineweb("fineweb-sample-10BT", "sample/10BT")
fineweb_edu = _fineweb_edu("fineweb-edu", "data/**")
fineweb_edu_sample_10bt = _fineweb_edu("fineweb-edu-sample-10BT", "sample/10BT")
dclm_baseline = Corpus(
    name="dclm_baseline",
    files=HubFiles(
        id="mlfoundations/dclm-baseline-1.0",
        revision="a3b142c183aebe5af344955ae20836eb34dcf69b",
        globs=("**/*.jsonl.zst",),
    ),
    licence="CC-BY-4.0",
    bytes=7_196_105_155_016,
    metadata=("url",),
    facts=(SIMPLE, "card: licence", "listing of the commit, as public users count it: 27,838 files, their bytes"),
)

DOLMA = HubFiles(id="allenai/dolma", revision="7f48140530a023e9ea4c5cfb141160922727d4d3", globs=("urls/v1_7.txt",))
"""The repository has addresses of files, and no data."""
_DOLMA_GLOBS = {
    "algebraic-stack": ("**/algebraic-stack-train-*.json.gz",),
    "arxiv": ("**/arxiv-*.json.gz",),
    "c4": ("**/c4-*.json.gz",),
    "cc": ("**/cc_en_head-*.json.gz", "**/cc_en_middle-*.json.gz", "**/cc_en_tail-*.json.gz"),
    "cc-news": ("**/cc_news_head-*.json.gz", "**/cc_news_middle-*.json.gz", "**/cc_news_tail-*.json.gz"),
    "falcon": ("**/falcon-*.json.gz",),
    "flan": ("**/tulu_flan-*.json.gz",),
    "gutenberg": ("**/books-*.json.gz",),
    "megawika": ("**/megawika-*.json.gz",),
    "open-web-math": ("**/open-web-math-train-*.json.gz",),
    "pes2o": ("**/pes2o-*.json.gz",),
    "reddit": ("**/reddit-*.json.gz",),
    "stackexchange": ("**/stackexchange-*.json.gz",),
    "starcoder": ("**/starcoder-*.json.gz",),
    "wiki": ("**/wiki-*.json.gz",),
}
dolma = by_name(
    [
        Corpus(
            name=f"dolma/{subset}",
            files=ListedFiles(
                base="https://olmo-data.org/dolma-v1_7/",
                include=globs,
                names_at=DOLMA,
                names_file="urls/v1_7.txt",
                names_step="dolma-v1_7-urls",
                homepage=DOLMA.homepage,
            ),
            licence="ODC-By-1.0",
            id="id",
            facts=(
                "marin lib/marin/src/marin/datakit/download/dolma.py: id, revision, names of the files of a subset",
                "card: licence, 4.5 TB for all subsets together; repository: the list and the address of the files",
            ),
        )
        for subset, globs in _DOLMA_GLOBS.items()
    ],
    "dolma",
)
"""Dolma 1.7 by subset."""

nemotron_cc = by_name(
    [
        Corpus(
            name=f"nemotron_cc/{name}",
            files=ListedFiles(
                base=nemotron.SERVER,
                include=split.include,
                names_at=f"{nemotron.SERVER}{nemotron.FOLDER}.paths.gz",
                names_file=nemotron.LIST,
                names_step=nemotron.LIST_STEP,
                homepage=f"{nemotron.SERVER}contrib/Nemotron/Nemotron-CC/index.html",
            ),
            licence=nemotron.LICENCE,
            bytes=split.bytes,
            id=nemotron.ID,
            metadata="all",
            path_keys=nemotron.PATH_KEYS,
            facts=(
                "marin experiments/pretraining_datasets/nemotron.py: globs; sizes, of its own copy",
                "marin lib/marin/src/marin/datakit/download/nemotron_cc.py: list, columns, names of metadata",
                "public descriptions of its release: licence",
            ),
        )
        for name, split in nemotron.NEMOTRON_SPLITS.items()
    ],
    "nemotron_cc",
)
"""Nemotron-CC by split of quality and kind, from Common Crawl's server. Its list has no revision. The steps are
those of `default_nemotron_cc`."""

_NEMOTRON_V2 = {
    "nemotron_cc_v2": (
        "nvidia/Nemotron-CC-v2",
        "229a2e7",
        {
            "diverse_qa": "Diverse-QA",
            "high_quality": "High-Quality",
            "high_quality_synthetic": "High-Quality-Synthetic",
            "medium_high_quality": "Medium-High-Quality",
            "medium_quality": "Medium-Quality",
            "translated_diverse_qa": "Translated-Diverse-QA",
        },
    ),
    "nemotron_cc_v2_1": (
        "nvidia/Nemotron-CC-v2.1",
        "ba6f2aa",
        {
            "high_quality": "High-Quality",
            "high_quality_dqa": "High-Quality-DQA",
            "high_quality_synthetic": "High-Quality-Synthetic",
            "high_quality_translated": "High-Quality-Translated-To-English",
            "high_quality_translated_synthetic": "High-Quality-Translated-To-English-Synthetic",
            "medium_high_quality": "Medium-High-Quality",
            "medium_high_quality_synthetic": "Medium-High-Quality-Synthetic",
            "medium_high_quality_translated": "Medium-High-Quality-Translated-To-English",
            "medium_quality": "Medium-Quality",
        },
    ),
}


def _of_v2(family: str) -> dict[str, Corpus]:
    hub_id, revision, folders = _NEMOTRON_V2[family]
    corpora = [
        Corpus(
            name=f"{family}/{subset}",
            files=HubFiles(id=hub_id, revision=revision, globs=(f"{folder}/**/*.parquet",), gated=True),
            licence="NVIDIA Data Agreement for Model Training",
            facts=(
                "marin experiments/pretraining_datasets/nemotron_v2.py: id, revision, globs, column, gated",
                "public users who accepted it: licence; it allows training, and no copies for others",
            ),
        )
        for subset, folder in folders.items()
    ]
    return by_name(corpora, family)


nemotron_cc_v2 = _of_v2("nemotron_cc_v2")
nemotron_cc_v2_1 = _of_v2("nemotron_cc_v2_1")
