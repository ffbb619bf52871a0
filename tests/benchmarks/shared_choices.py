"""Questions a second of our evaluation with choices of one letter (MMLU's form), against a row for each choice.

    JAX_PLATFORMS=cpu python tests/benchmarks/shared_choices.py

Both sides are one model, one list of requests and compiled programs; rounds alternate. Exits 1 below the limit.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

LIMIT = 1.5
ROUNDS, QUESTIONS, WINDOW = 5, 64, 256


def main() -> int:
    sys.path.append(str(Path(__file__).parents[1] / "support"))
    from random_llama import write_random_llama

    from marin_assets.inference import prefix_sharing
    from marin_assets.inference.jax_model import load_model
    from marin_assets.stages.evaluate.models import jax_lm
    from marin_assets.stages.evaluate.models.kept_answers import KeptAnswers

    with tempfile.TemporaryDirectory() as folder:
        model = load_model(write_random_llama(Path(folder), list(topics.values())[:50], WINDOW))
    lm = jax_lm.JaxLM(*model)
    texts = sorted(topics.values(), key=len)[-QUESTIONS:]
    contexts = [lm.tok_encode(text)[: WINDOW - 1 - (i % 100)] for i, text in enumerate(texts)]
    requests = [(None, context, [choice]) for context in contexts for choice in (5, 6, 7, 8)]

    def alone(texts: Any, counts: Any, room: Callable[[int], int]) -> list[prefix_sharing.SharedInputs]:
        return [prefix_sharing.SharedInputs(text[:-1], [i], counts[i]) for i, text in enumerate(texts)]

    jax_lm.longest_packed = lambda model: 0  # filled rows have a benchmark of their own
    sides = {"shared": prefix_sharing.share_inputs, "a row for each choice": alone}
    rates: dict[str, list[float]] = {name: [] for name in sides}
    answers = {}
    for number in range(ROUNDS + 1):
        for name, share in sides.items():
            jax_lm.share_inputs = share
            lm.kept_answers = KeptAnswers()  # an answer that exists is not computed
            began = time.monotonic()
            answers[name] = lm._loglikelihood_tokens(requests)
            if number:  # the first compiles
                rates[name].append(QUESTIONS / (time.monotonic() - began))
    apart = max(abs(a[0] - b[0]) for a, b in zip(*answers.values(), strict=True))
    for name, of in rates.items():
        print(f"{name:24}{statistics.median(of):8.1f} questions/s")
    ratio = statistics.median(a / b for a, b in zip(*rates.values(), strict=True))
    print(f"ratio {ratio:.2f}, limit {LIMIT}: {'ok' if ratio >= LIMIT else 'BELOW'}; answers at most {apart:.1e} apart")
    return 0 if ratio >= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
