"""Tokens per CPU-second of the tokenize stage against bare `encode_batch_fast`, in one run, on the same text.

    python tests/benchmarks/tokenize_cache.py

The text is what the standard library says about itself: its docstrings and pydoc's topics, 2 MB, several times over
in other cuts. Bare means: texts in memory, tokens counted and dropped. The stage reads compressed shards, splits,
encodes, writes both caches and reads a sample back. CPU time is that of the process with all its threads; rounds are
interleaved and the median counts. Exits 1 below the limit.
"""

from __future__ import annotations

import ast
import statistics
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from pydoc_data.topics import topics

from marin_assets.documents import Document, read_documents, shard_name, write_documents
from marin_assets.stages.tokenize.tokenize import BATCH, TokenizeConfig, tokenize
from marin_assets.stages.tokenize.train_tokenizer import TrainTokenizerConfig, train_tokenizer
from marin_assets.step.values import unwrap_versioned_value

LIMIT = 0.85
ROUNDS = 3
SHARDS = 2
CUTS = range(1500, 3500, 100)
"""Characters a document: one pass over the text for each, 40 MB in all, about 9 CPU-seconds."""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        documents, tokenizer = f"{folder}/documents", f"{folder}/tokenizer"
        write_corpus(documents)
        train_tokenizer(unwrap_versioned_value(TrainTokenizerConfig(documents_path=documents, output_path=tokenizer)))
        texts = [d.text for i in range(SHARDS) for d in read_documents(f"{documents}/{shard_name(i, SHARDS)}")]
        tokens = encode_bare(tokenizer, texts)
        size = sum(len(text.encode()) for text in texts)
        print(f"{len(texts):,} documents, {size / 1e6:.1f} MB, {tokens / 1e6:.2f} M tokens, {ROUNDS} rounds each\n")
        run_stage(documents, tokenizer, f"{folder}/warm-up")
        bare, stage = [], []
        for round_number in range(ROUNDS):
            bare.append(measure(lambda: encode_bare(tokenizer, texts)))
            output = f"{folder}/cache-{round_number}"
            stage.append(measure(lambda output=output: run_stage(documents, tokenizer, output)))
    return report(tokens, bare, stage)


def write_corpus(path: str) -> None:
    text = "\n\n".join([*docstrings(), *(text for _, text in sorted(topics.items()))])
    documents = [
        Document(id=f"{cut}#{start}", text=text[start : start + cut])
        for cut in CUTS
        for start in range(0, len(text), cut)
    ]
    for i in range(SHARDS):
        write_documents(f"{path}/{shard_name(i, SHARDS)}", documents[i::SHARDS])


def docstrings() -> Iterator[str]:
    library = Path(sysconfig.get_path("stdlib"))
    for file in sorted([*library.glob("*.py"), *library.glob("*/*.py")]):
        if not {"site-packages", "test", "tests", "idlelib", "lib2to3"} & set(file.parts):
            for node in ast.walk(ast.parse(file.read_bytes())):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (doc := ast.get_docstring(node)):
                    yield doc


def encode_bare(tokenizer_path: str, texts: list[str]) -> int:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(f"{tokenizer_path}/tokenizer.json")
    batches = (texts[i : i + BATCH] for i in range(0, len(texts), BATCH))
    return sum(
        len(encoding) for batch in batches for encoding in tokenizer.encode_batch_fast(batch, add_special_tokens=False)
    )


def run_stage(documents: str, tokenizer: str, output: str) -> None:
    config = TokenizeConfig(documents_path=documents, tokenizer_path=tokenizer, output_path=output)
    result = tokenize(unwrap_versioned_value(config))
    assert result["token_mismatches"] == 0, result


def measure(work: Callable[[], object]) -> tuple[float, float]:
    """CPU and wall seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def report(tokens: int, bare: list[tuple[float, float]], stage: list[tuple[float, float]]) -> int:
    print(f"{'':28}{'CPU s':>8}{'wall s':>8}{'M tokens/CPU-s':>16}")
    for name, runs in (("bare encode_batch_fast", bare), ("tokenize stage", stage)):
        cpu, wall = (statistics.median(run[i] for run in runs) for i in (0, 1))
        print(f"{name:28}{cpu:8.2f}{wall:8.2f}{tokens / 1e6 / cpu:16.2f}")
    ratio = statistics.median(b[0] for b in bare) / statistics.median(s[0] for s in stage)
    rounds = ", ".join(f"{b[0] / s[0]:.3f}" for b, s in zip(bare, stage, strict=True))
    print(f"\nratio {ratio:.3f} (rounds {rounds}); limit {LIMIT}: {'ok' if ratio >= LIMIT else 'BELOW'}")
    return 0 if ratio >= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
