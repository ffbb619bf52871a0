"""The thread that computes: it takes requests from a queue, and keeps a batch of texts under way."""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from marin_assets.inference.decoder import Completion, Decoder, Prompt
from marin_assets.inference.jax_model import replicate
from marin_assets.inference.scorer import Scorer, TokenScores
from marin_assets.inference.tokenizer import ModelTokenizer

LOG_EVERY_S = 10.0

log = logging.getLogger(__name__)

Generation = tuple[Prompt, "Future[Completion]"]
Scoring = tuple[tuple[int, ...], "Future[TokenScores]"]


class Worker:
    """Computes completions and scores of one model. Its methods may be called from any thread."""

    def __init__(self, model: Any, tokenizer: ModelTokenizer, *, rows: int = 32, max_length: int | None = None) -> None:
        import jax

        self.tokenizer = tokenizer
        model = replicate(model, jax.local_devices())  # once for both
        self.decoder = Decoder(model, tokenizer, rows=rows, max_length=max_length)
        self._scorer = Scorer(model, rows=rows, max_length=max_length)
        self._arrived: queue.SimpleQueue[Generation | Scoring] = queue.SimpleQueue()
        self._waiting: deque[Generation] = deque()
        self._running: dict[int, Future[Completion]] = {}
        self._numbers = 0
        self._tokens, self._logged_s = 0, time.monotonic()

    @property
    def max_length(self) -> int:
        return self.decoder.max_length

    def start(self) -> None:
        threading.Thread(target=self._run, name="computes", daemon=True).start()

    def check(self, prompt: Prompt) -> None:
        """Raise ModelError for a prompt that cannot be continued."""
        self.decoder.check(prompt)

    def check_text(self, ids: Sequence[int]) -> None:
        """Raise ModelError for a text that cannot be scored."""
        self._scorer.check(ids)

    def generate(self, prompt: Prompt) -> Future[Completion]:
        """Raises ModelError for a prompt that does not fit."""
        self.check(prompt)
        future: Future[Completion] = Future()
        self._arrived.put((prompt, future))
        return future

    def score(self, ids: Sequence[int]) -> Future[TokenScores]:
        """Raises ModelError for a text that does not fit."""
        self.check_text(ids)
        future: Future[TokenScores] = Future()
        self._arrived.put((tuple(ids), future))
        return future

    def _run(self) -> None:
        try:
            while True:
                self._take_arrived()
                while self._waiting and self.decoder.has_room:
                    self._admit(*self._waiting.popleft())
                if not self.decoder.is_idle:
                    for number, completion in self.decoder.step():
                        self._tokens += len(completion.ids)
                        _answer(self._running.pop(number), completion)
                self._log_rate()
        except BaseException:  # whatever it is
            log.exception("the model cannot compute any more")
            os._exit(1)  # or the server would answer no request, and live on

    def _take_arrived(self) -> None:
        """Compute all requested scores, and queue the texts. Blocks until a request arrives if none is under way."""
        arrived: list[Generation | Scoring] = []
        if self.decoder.is_idle and not self._waiting:
            arrived.append(self._arrived.get())
        while not self._arrived.empty():
            arrived.append(self._arrived.get())
        scorings: list[Scoring] = []
        for item, future in arrived:
            if isinstance(item, Prompt):
                self._waiting.append((item, future))  # type: ignore[arg-type]  # a prompt comes with its future
            else:
                scorings.append((item, future))  # type: ignore[arg-type]
        if scorings:
            results = self._scorer.score([ids for ids, _ in scorings])
            for (_, scored), scores in zip(scorings, results, strict=True):
                _answer(scored, scores)

    def _admit(self, prompt: Prompt, future: Future[Completion]) -> None:
        self._numbers += 1
        self._running[self._numbers] = future
        self.decoder.admit(self._numbers, prompt)

    def _log_rate(self) -> None:
        now = time.monotonic()
        if now - self._logged_s > LOG_EVERY_S and self._tokens:
            rate = self._tokens / (now - self._logged_s)
            log.info("%.0f tokens/s, %d texts under way, %d wait", rate, len(self._running), len(self._waiting))
            self._tokens, self._logged_s = 0, now


def _answer(future: Future[Any], result: Any) -> None:
    """Give a result to who waits for it, unless nobody does any more: a client that has gone cancels its future."""
    if future.set_running_or_notify_cancel():
        future.set_result(result)
