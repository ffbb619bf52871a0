"""Tokens a second of generate_from_documents against its engine driven by hand, in one run.

    JAX_PLATFORMS=cpu python tests/benchmarks/generation.py

By hand: the same prompts, tokenized before the clock starts, go straight into the decoder of the JAX model. Ours
besides: reads shards, fills the template, tokenizes, journals, writes documents. Rounds alternate and swap their order;
what counts is the ratio of the quickest of each side. Exits 1 below the limit.
"""

from __future__ import annotations

import logging
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from pydoc_data.topics import topics

LIMIT = 0.9
ROUNDS = 5
DOCUMENTS, WINDOW, TOKENS = 400, 128, 24
TEMPLATE = "Summarize.\n{text}\nSummary:"

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))


def main() -> int:
    from random_llama import write_random_llama

    from marin_assets.documents import Document, shard_name, write_documents
    from marin_assets.inference.generator import JaxGenerator
    from marin_assets.inference.jax_model import load_model
    from marin_assets.stages.generate import generate_from_documents as stage
    from marin_assets.step.values import unwrap_versioned_value

    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        model_path, documents_path = Path(folder, "hf"), Path(folder, "documents")
        model_path.mkdir()
        write_random_llama(model_path, list(topics.values())[:50], WINDOW, head_dim=32)
        texts = [topic[:300] for topic in topics.values() for _ in range(DOCUMENTS // len(topics) + 1)][:DOCUMENTS]
        documents = [Document(id=str(i), text=text) for i, text in enumerate(texts)]
        for i in range(8):
            write_documents(str(documents_path / shard_name(i, 8)), documents[i::8])
        generator = JaxGenerator(*load_model(str(model_path)))
        config = unwrap_versioned_value(
            stage.GenerateConfig(
                model_path=str(model_path),
                documents_path=str(documents_path),
                template=TEMPLATE,
                max_tokens=TOKENS,
                output_path="",
            )
        )
        template = stage.Template(TEMPLATE)
        by_hand_run = stage._Run(config, template, generator)
        prompts = [by_hand_run._prompt(document, i)[0] for i, document in enumerate(documents)]

        def by_hand(_: str) -> float:
            tokens, began_s = [], time.perf_counter()
            generator.run(iter(prompts), lambda _, completion: tokens.append(completion.tokens))
            return sum(tokens) / (time.perf_counter() - began_s)

        def ours(output: str) -> float:
            own = replace(config, output_path=output)
            files = {Path(path).name: path for path in map(str, sorted(documents_path.iterdir()))}
            return stage._Run(own, template, generator).generate(files)

        sides = {"by hand": by_hand, "ours": ours}
        rates: dict[str, list[float]] = {name: [] for name in sides}
        for number in range(ROUNDS + 1):  # the first compiles
            for name in sides if number % 2 == 0 else reversed(sides):
                rate = sides[name](f"{folder}/out-{number}")
                if number:
                    rates[name].append(rate)
    for name, of in rates.items():
        print(f"{name:10}{max(of):8.0f} tokens/s    rounds {' '.join(f'{one:.0f}' for one in of)}")
    ratio = max(rates["ours"]) / max(rates["by hand"])
    print(f"\nratio {ratio:.3f}, limit {LIMIT}: {'ok' if ratio >= LIMIT else 'BELOW'}")
    return 0 if ratio >= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
