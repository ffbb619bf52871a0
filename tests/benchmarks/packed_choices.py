"""Questions a second of an evaluation of the quickstart's size and form, choices of several tokens, against a row for
each text, padded to lengths that are powers of 2: the context is computed for each choice.

    JAX_PLATFORMS=cpu python tests/benchmarks/packed_choices.py

Both sides are one model and one list of requests, and compile what they need in each round, as an evaluation does;
rounds alternate. Exits 1 below the limit, or where answers differ.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

LIMIT, APART = 1.5, 1e-6
ROUNDS, QUESTIONS = 5, 500
WINDOW, HEAD_DIM, VOCABULARY = 128, 32, 4096
ROWS, SHORTEST = 32, 32


def main() -> int:
    sys.path.append(str(Path(__file__).parents[1] / "support"))
    from random_llama import write_random_llama

    from marin_assets.documents import Document
    from marin_assets.inference.jax_model import load_model
    from marin_assets.stages.evaluate.held_out import HeldOutConfig, make_questions
    from marin_assets.stages.evaluate.models.jax_lm import JaxLM
    from marin_assets.step.values import unwrap_versioned_value

    texts = {name: " ".join(text.split()) for name, text in topics.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = write_random_llama(Path(folder), [*texts.values()], WINDOW, head_dim=HEAD_DIM, vocab_size=VOCABULARY)
        model, tokenizer = load_model(path)
    documents = [Document(id=name, text=text) for name, text in texts.items()]
    config = unwrap_versioned_value(HeldOutConfig(documents_path="", output_path="", questions=QUESTIONS))
    encode = JaxLM(model, tokenizer)._encode_pair
    requests = [
        (None, *encode(context, " " + choice))
        for question in make_questions(documents, config)
        for choice in question["choices"]
        for context in (question["ctx"], "Answer:")  # and without the question, to compare with
    ]
    sides = {
        "rows of several texts": lambda: JaxLM(model, tokenizer, batch_size=ROWS)._loglikelihood_tokens(requests),
        "a row for each text": lambda: score_apart(model, requests),
    }
    rates: dict[str, list[float]] = {name: [] for name in sides}
    answers: dict[str, Any] = {}
    for number in range(ROUNDS + 1):
        for name, score in sides.items():
            began = time.monotonic()
            answers[name] = score()
            if number:  # the first sets jax up
                rates[name].append(QUESTIONS / (time.monotonic() - began))
    apart = max(abs(a[0] - b[0]) / abs(b[0]) for a, b in zip(*answers.values(), strict=True))
    lengths = [len(context) + len(choice) for _, context, choice in requests]
    print(f"{QUESTIONS} questions, texts of {statistics.mean(lengths):.0f} tokens, at most {max(lengths)}")
    for name, of in rates.items():
        print(f"{name:24}{statistics.median(of):8.1f} questions/s")
    ratio = statistics.median(a / b for a, b in zip(*rates.values(), strict=True))
    is_ok = ratio >= LIMIT and apart <= APART
    print(f"ratio {ratio:.2f}, limit {LIMIT}: {'ok' if is_ok else 'BELOW'}; answers {apart:.1e} apart at most")
    return 0 if is_ok else 1


def score_apart(model: Any, requests: Sequence[tuple[None, list[int], list[int]]]) -> list[tuple[float, bool]]:
    """The log-likelihood of each choice, and whether its tokens are the likeliest."""
    import numpy as np

    from marin_assets.inference.jax_model import bound, padded_length

    texts = [(context + choice)[-(WINDOW + 1) :] for _, context, choice in requests]
    counts = [len(choice) for *_, choice in requests]
    order = sorted(range(len(texts)), key=lambda i: (-padded_length(len(texts[i]) - 1, WINDOW), -counts[i]))
    score = bound(_scores, model)
    answers: dict[int, tuple[float, bool]] = {}
    for begin in range(0, len(order), ROWS):
        batch = order[begin : begin + ROWS]
        tokens = np.zeros((ROWS, padded_length(max(len(texts[i]) - 1 for i in batch), WINDOW)), np.int32)
        places, targets = np.zeros((2, ROWS, padded_length(max(counts[i] for i in batch), WINDOW)), np.int32)
        for row, i in enumerate(batch):
            tokens[row, : len(texts[i]) - 1] = texts[i][:-1]
            places[row, : counts[i]] = range(len(texts[i]) - 1 - counts[i], len(texts[i]) - 1)
            targets[row, : counts[i]] = texts[i][-counts[i] :]
        logprobs, greedy = (np.asarray(array) for array in score(tokens, places, targets))
        for row, i in enumerate(batch):
            of_text = row, slice(counts[i])
            answers[i] = float(logprobs[of_text].astype(np.float64).sum()), bool(greedy[of_text].all())
    return [answers[i] for i in range(len(texts))]


def _scores(model: Any, tokens: Any, places: Any, targets: Any) -> tuple[Any, Any]:
    import jax
    import jax.numpy as jnp

    from marin_assets.inference.jax_model import logits_at

    logits = logits_at(model, tokens, places)
    picked = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    return picked - jax.nn.logsumexp(logits, axis=-1), picked == logits.max(axis=-1)


if __name__ == "__main__":
    sys.exit(main())
