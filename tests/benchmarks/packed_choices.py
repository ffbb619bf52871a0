"""Questions a second of our evaluation with choices of several tokens (the quickstart's form), against rows that are
not packed: the context computed anew for each choice.

    JAX_PLATFORMS=cpu python tests/benchmarks/packed_choices.py

Both sides are one model and one list of requests; rounds alternate. Exits 1 below the limit, or where answers differ.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

LIMIT, APART = 1.5, 1e-6
ROUNDS, QUESTIONS = 7, 256
WINDOW, HEAD_DIM = 256, 64


def main() -> int:
    sys.path.append(str(Path(__file__).parents[1] / "support"))
    from random_llama import write_random_llama

    from marin_assets.documents import Document
    from marin_assets.inference.jax_model import load_model
    from marin_assets.stages.evaluate.held_out import HeldOutConfig, make_questions
    from marin_assets.stages.evaluate.models import jax_lm
    from marin_assets.stages.evaluate.models.kept_answers import KeptAnswers
    from marin_assets.step.values import unwrap_versioned_value

    texts = {name: " ".join(text.split()) for name, text in topics.items()}
    with tempfile.TemporaryDirectory() as folder:
        lm = jax_lm.JaxLM(*load_model(write_random_llama(Path(folder), [*texts.values()], WINDOW, head_dim=HEAD_DIM)))
    documents = [Document(id=name, text=text) for name, text in texts.items()]
    config = unwrap_versioned_value(HeldOutConfig(documents_path="", output_path="", questions=QUESTIONS))
    requests = [
        (None, *lm._encode_pair(question["ctx"], " " + choice))
        for question in make_questions(documents, config)
        for choice in question["choices"]
    ]
    jax_lm.MANY_TEXTS = 0  # the questions here are fewer
    sides = {"packed": jax_lm.longest_packed, "not packed": lambda model: 0}
    rates: dict[str, list[float]] = {name: [] for name in sides}
    answers: dict[str, Any] = {}
    for number in range(ROUNDS + 1):
        for name, longest in sides.items():
            jax_lm.longest_packed = longest
            lm.kept_answers = KeptAnswers()  # an answer that exists is not computed
            began = time.monotonic()
            answers[name] = lm._loglikelihood_tokens(requests)
            if number:  # the first compiles
                rates[name].append(len(requests) / 4 / (time.monotonic() - began))
    apart = max(abs(a[0] - b[0]) / abs(b[0]) for a, b in zip(*answers.values(), strict=True))
    lengths = [len(context) + len(choice) for _, context, choice in requests]
    print(f"{len(requests) // 4} questions, texts of {statistics.mean(lengths):.0f} tokens, at most {max(lengths)}")
    for name, of in rates.items():
        print(f"{name:24}{statistics.median(of):8.1f} questions/s")
    ratio = statistics.median(a / b for a, b in zip(*rates.values(), strict=True))
    is_ok = ratio >= LIMIT and apart <= APART
    print(f"ratio {ratio:.2f}, limit {LIMIT}: {'ok' if is_ok else 'BELOW'}; answers {apart:.1e} apart at most")
    return 0 if is_ok else 1


if __name__ == "__main__":
    sys.exit(main())
