"""A model of an export with lm-eval's interface, whatever computes it: its texts as tokens, its windows.

Subclasses of lm-eval's class import lm-eval at the top: import these modules inside functions.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from array import array
from collections.abc import Collection, Sequence
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.model import TemplateLM
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window

from marin_assets.inference.decoder import Prompt
from marin_assets.inference.jax_model import ModelError
from marin_assets.inference.tokenizer import ModelTokenizer
from marin_assets.stages.evaluate.models.generation_settings import GenerationSettings, name_of, seeds_of, settings_of
from marin_assets.stages.evaluate.models.kept_answers import ANSWER, Answers, KeptAnswers

DEFAULT_GENERATED_TOKENS = 256
"""lm-eval's default; at most half a window is generated."""

MUST_FIT = "must_fit"
"""Field of a task's question whose context may not be truncated."""

log = logging.getLogger(__name__)


class TokenLM(TemplateLM):
    """Log-likelihoods and generation by tokens. Texts beyond `max_length` are truncated on the left."""

    engine: str
    """The engine in an error."""
    sampling: Collection[str]
    """The settings of the draw that the engine has, beside the temperature."""

    def __init__(self, tokenizer: ModelTokenizer, max_length: int) -> None:
        super().__init__()
        self._tokenizer, self._max_length = tokenizer, max_length
        self._has_chats = False
        self._marked: dict[str, str] = {}
        """Conversation -> the same with marks, of those in which special tokens are written."""
        self.kept_answers = KeptAnswers()
        """The store of the answers until all exist."""
        self.seed = 0
        """The seed of the evaluation, from which those of sampled answers are made."""
        self._cut: set[tuple[str, ...]] = set()
        """Arguments of requests whose contexts were truncated."""
        self.shortened = 0
        """Texts of which a server took fewer tokens than the window and their last."""

    @abstractmethod
    def _score_rows(self, rows: Sequence[Sequence[int]], counts: Sequence[int], answers: Answers) -> None:
        """For each row of ids that has no answer, add the log-likelihood of its last `count` in nats, and whether they
        are the likeliest.
        """

    @abstractmethod
    def _complete(self, prompts: Sequence[Prompt], answers: Answers) -> None:
        """For each prompt that has no answer, add its continuation."""

    def check(self, request: Instance) -> None:
        """Raise ModelError for a request that cannot be answered. The model is not run."""
        if request.request_type == "generate_until":
            settings = self._settings(request.args[1])
            if request.doc.get(MUST_FIT):
                self._check_context(request.args[0], settings.max_tokens)
        elif request.request_type == "loglikelihood":
            self._check_continuation(*request.args)
        elif request.request_type != "loglikelihood_rolling":
            raise ModelError(f"A task has requests of type {request.request_type!r}, which no model here answers.")

    def _check_context(self, context: str, count: int) -> None:
        if (tokens := len(self.tok_encode(context))) + count > self._max_length:
            raise ModelError(
                f"A question has {tokens} tokens and {count} for its answer, expected at most the window of "
                f"{self._max_length}: its beginning would be cut. Evaluate shorter contexts."
            )

    def _check_continuation(self, context: str, continuation: str) -> None:
        spaces = len(context) - len(context.rstrip())  # lm-eval moves them to the continuation
        if len(continuation.encode()) + spaces < self._max_length:  # a token has at least one byte
            return
        if context:
            self._fit(*self._encode_pair(context, continuation))
        else:
            self._fit([], self.tok_encode(continuation, add_special_tokens=False))

    def is_cut(self, arguments: Sequence[Any]) -> bool:
        """Whether the context of an answered request was longer than the window, and truncated."""
        return tuple(map(str, arguments)) in self._cut

    @property
    def eot_token_id(self) -> int | None:
        return self._tokenizer.eos_token_id

    @property
    def prefix_token_id(self) -> int:
        """The token before a text without context: BOS, as in training documents, or EOS if the model has no BOS."""
        return self._tokenizer.first_token_id

    @property
    def tokenizer_name(self) -> str:
        return self._tokenizer.name_or_path

    @property
    def max_length(self) -> int:
        return self._max_length

    @property
    def max_gen_toks(self) -> int:
        return min(DEFAULT_GENERATED_TOKENS, self._max_length // 2)

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **kwargs: Any) -> list[int]:
        """Return token ids, with one BOS in front unless `add_special_tokens` is False or the model has no BOS.

        A text is read as in training: a special token that is written in it is text. Where the evaluation has a chat
        template, the text is a conversation, whose special tokens are those of the template.
        """
        encode = self._tokenizer.encode_rendered if self._has_chats else self._tokenizer.encode
        ids = encode(self._with_marks(string))
        bos = self._tokenizer.bos_token_id
        return ids if add_special_tokens is False or bos is None or ids[:1] == [bos] else [bos, *ids]

    def tok_decode(self, tokens: Sequence[int]) -> str:
        return self._tokenizer.decode(tokens, skip_special_tokens=True)

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        """The text of a conversation, by the tokenizer's template. Raises ModelError for a tokenizer without one."""
        if not self.chat_template():
            raise ModelError("The model's tokenizer has no chat template. Evaluate it without apply_chat_template.")
        marked = self._tokenizer.render_chat(chat_history, add_generation_prompt=add_generation_prompt)
        text = self._tokenizer.unmark(marked)
        self._has_chats = True
        if text != marked:
            self._marked[text.rstrip()] = marked.rstrip()  # lm-eval moves spaces at its end to the answer
        return text

    def _with_marks(self, string: str) -> str:
        """A text that begins with a conversation in which special tokens are written, with marks on these."""
        for length in sorted({len(text) for text in self._marked}, reverse=True):
            if (marked := self._marked.get(string[:length])) is not None:
                return marked + string[length:]
        return string

    def _encode_pair(self, context: str, continuation: str) -> tuple[list[int], list[int]]:
        after: str = self._tokenizer.mark(continuation) if self._has_chats else continuation
        pair: tuple[list[int], list[int]] = super()._encode_pair(context, after)
        return pair

    def chat_template(self, chat_template: bool | str = False) -> str:
        """The tokenizer's template, which lm-eval records; empty if it has none."""
        return self._tokenizer.chat_template or ""

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        return super().loglikelihood(requests, disable_tqdm=True)  # the engines log their progress

    def _loglikelihood_tokens(
        self, requests: list[tuple[Any, list[int], list[int]]], disable_tqdm: bool = False, **kwargs: Any
    ) -> list[tuple[float, bool]]:
        """Return, for each (key, context, continuation), its log-likelihood in nats and whether it is greedy."""
        rows = [self._fit(context, continuation) for _, context, continuation in requests]
        counts = [len(continuation) for *_, continuation in requests]
        for (key, context, continuation), row in zip(requests, rows, strict=True):
            if key is not None and len(row) < len(context) + len(continuation):
                self._cut.add(key)
        named = (array("q", [count, *row]).tobytes() for count, row in zip(counts, rows, strict=True))
        with self.kept_answers.of("log-likelihoods", named) as answers:
            self._score_rows(rows, counts, answers)
        likelihoods = (answers.rows[i][ANSWER] for i in range(len(rows)))
        return [(total, is_greedy) for total, is_greedy in likelihoods]

    def _fit(self, context: list[int], continuation: list[int]) -> list[int]:
        """Concatenate context and continuation, truncated on the left to `max_length` inputs and the last target."""
        if len(continuation) > self._max_length:
            raise ModelError(
                f"A continuation has {len(continuation)} tokens, expected at most the window of {self._max_length}. "
                "Shorten it, or score the text with a loglikelihood_rolling task."
            )
        return [*context, *continuation][-(self._max_length + 1) :]

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        """Return the log-likelihood of each whole text in nats, in adjacent windows: each token is predicted once."""
        windows: list[tuple[Any, list[int], list[int]]] = []
        owners: list[int] = []
        for owner, request in enumerate(requests):
            ids = self._tokenizer.encode(request.args[0])
            for window in get_rolling_token_windows(ids, self.prefix_token_id, self._max_length, context_len=1):
                windows.append((None, *make_disjoint_window(window)))
                owners.append(owner)
        totals = [0.0] * len(requests)
        for owner, (logprob, _) in zip(owners, self._loglikelihood_tokens(windows), strict=True):
            totals[owner] += logprob
        return totals

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """Return continuations, each truncated at its first stop text. A sampled one is drawn with a seed of its own,
        also where a request is repeated."""
        seeds = seeds_of(requests, self.seed)
        prompts = [self._prompt(request, seed) for request, seed in zip(requests, seeds, strict=True)]
        with self.kept_answers.of("generations", map(name_of, prompts)) as answers:
            self._complete(prompts, answers)
        return [answers.rows[i][ANSWER] for i in range(len(prompts))]

    def _prompt(self, request: Instance, seed: int) -> Prompt:
        """Return the context's token ids, truncated to fit, with the settings of the answer."""
        context, given = request.args
        settings = self._settings(given)
        ids = self.tok_encode(context)
        room = self._max_length - settings.max_tokens
        if len(ids) > room:
            self._cut.add((context, str(given)))
        return Prompt(
            ids=tuple(ids[-room:]),
            max_tokens=settings.max_tokens,
            stops=settings.stops,
            temperature=settings.temperature,
            seed=seed if settings.temperature else 0,
            sampling=settings.sampling,
        )

    def _settings(self, given: dict[str, Any]) -> GenerationSettings:
        """Read the settings of a task. Raises ModelError for what cannot be generated."""
        settings = settings_of(given, self.max_gen_toks, self.engine, self.sampling)
        if settings.max_tokens >= self._max_length:
            raise ModelError(
                f"A task generates {settings.max_tokens} tokens, expected fewer than the window of {self._max_length}. "
                "Lower max_gen_toks."
            )
        return settings
