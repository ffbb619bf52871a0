from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lm_eval.api.instance import Instance
from tokenizer_settings import change_json, with_settings, with_token

from marin_assets.inference.jax_model import ModelError, load_model
from marin_assets.inference.tokenizer import ModelTokenizer
from marin_assets.stages.evaluate.models.jax_lm import JaxLM

WINDOW = 64
pytestmark = pytest.mark.long  # imports and compiling: 10 s of CPU. The quickstart evaluates in `make test`


@pytest.fixture(scope="module")
def lm(model_path: str) -> JaxLM:
    return JaxLM(*load_model(model_path), batch_size=4)


@pytest.fixture(scope="module")
def reference(model_path: str) -> NumpyLlama:
    return NumpyLlama(model_path)


class NumpyLlama:
    """Llama (Touvron et al. 2023) in numpy, in float64, from the exported files only."""

    def __init__(self, folder: str) -> None:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        self.config = json.loads(Path(folder, "config.json").read_text())
        self.weights = {k: v.astype(np.float64) for k, v in load_file(f"{folder}/model.safetensors").items()}
        self.tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def logprobs(self, ids: list[int]) -> np.ndarray:
        """(position, vocabulary): log-probabilities of the next token."""
        c, w = self.config, self.weights
        x = w["model.embed_tokens.weight"][ids]
        for layer in range(c["num_hidden_layers"]):
            at = f"model.layers.{layer}"
            h = self.norm(x, w[f"{at}.input_layernorm.weight"])
            x = x + self.attention(h, f"{at}.self_attn") @ w[f"{at}.self_attn.o_proj.weight"].T
            h = self.norm(x, w[f"{at}.post_attention_layernorm.weight"])
            gate = h @ w[f"{at}.mlp.gate_proj.weight"].T
            gated = gate / (1 + np.exp(-gate)) * (h @ w[f"{at}.mlp.up_proj.weight"].T)
            x = x + gated @ w[f"{at}.mlp.down_proj.weight"].T
        logits = self.norm(x, w["model.norm.weight"]) @ w["model.embed_tokens.weight"].T
        return logits - np.log(np.exp(logits).sum(-1, keepdims=True))

    def norm(self, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + self.config["rms_norm_eps"]) * weight

    def attention(self, h: np.ndarray, at: str) -> np.ndarray:
        c, w, n = self.config, self.weights, len(h)
        heads, shared = c["num_attention_heads"], c["num_attention_heads"] // c["num_key_value_heads"]
        q, k, v = ((h @ w[f"{at}.{name}_proj.weight"].T).reshape(n, -1, c["hidden_size"] // heads) for name in "qkv")
        q, k = self.rotate(q), self.rotate(k).repeat(shared, axis=1)
        scores = np.einsum("qhd,khd->hqk", q, k) / math.sqrt(q.shape[-1])
        scores = np.where(np.tril(np.ones((n, n), bool)), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return np.einsum("hqk,khd->qhd", weights, v.repeat(shared, axis=1)).reshape(n, -1)

    def rotate(self, x: np.ndarray) -> np.ndarray:
        half = x.shape[-1] // 2
        angles = np.arange(len(x))[:, None] * self.config["rope_theta"] ** (-np.arange(half) / half)
        cos, sin = (np.tile(f(angles), 2)[:, None] for f in (np.cos, np.sin))
        return x * cos + np.concatenate([-x[..., half:], x[..., :half]], -1) * sin

    def score(self, ids: list[int], count: int) -> tuple[float, bool]:
        """Return the log-likelihood of the last `count` ids, and whether each is the likeliest."""
        rows = self.logprobs(ids[:-1])[-count:]
        targets = ids[-count:]
        return float(rows[range(count), targets].sum()), bool((rows.argmax(-1) == targets).all())


def ask(kind: str, *arguments: Any) -> Instance:
    return Instance(request_type=kind, doc={}, arguments=arguments, idx=0)


def test_loglikelihoods_are_those_of_an_independent_computation(lm: JaxLM, reference: NumpyLlama) -> None:
    pairs = [
        ("The class has", " a method"),
        ("x", " = 1 and then some more words follow"),
        ("", "Return the value"),
        ("if", " a"),
    ]
    pairs += [("Files are opened for reading " * 3, " by default, as text.")]
    answers = lm.loglikelihood([ask("loglikelihood", *pair) for pair in pairs])
    for (context, continuation), (logprob, greedy) in zip(pairs, answers, strict=True):
        ids = [0, *reference.encode(context + continuation)]
        expected, likeliest = reference.score(ids, len(ids) - 1 - len(reference.encode(context.rstrip())))
        assert logprob == pytest.approx(expected, abs=2e-4)
        assert greedy == likeliest


def test_choices_that_share_a_row_have_the_likelihoods_of_rows_of_their_own(lm: JaxLM, reference: NumpyLlama) -> None:
    context = [0, *reference.encode("The class has")]
    asked = [(context, [choice]) for choice in (5, 6, 7, 8)]
    asked += [([*context, 5], [6, 7]), (context[:2], context[2:]), ([*context, 9, 9], [9] * 3)]
    found = lm._loglikelihood_tokens([(None, *one) for one in asked])
    for (before, after), (logprob, greedy) in zip(asked, found, strict=True):
        expected = reference.score([*before, *after], len(after))
        assert logprob == pytest.approx(expected[0], abs=1e-4)
        assert greedy == expected[1]


def test_a_greedy_continuation_is_recognised(lm: JaxLM, reference: NumpyLlama) -> None:
    context = [0, *reference.encode("The class has")]
    likeliest = int(reference.logprobs(context)[-1].argmax())
    requests = [(None, context, [likeliest]), (None, context, [(likeliest + 1) % 512])]
    assert [greedy for _, greedy in lm._loglikelihood_tokens(requests)] == [True, False]


def test_a_long_context_is_truncated_on_the_left(lm: JaxLM, reference: NumpyLlama) -> None:
    context, continuation = "A statement is executed in order. " * 40, " The end."
    [(logprob, _)] = lm.loglikelihood([ask("loglikelihood", context, continuation)])
    ids = [0, *reference.encode(context + continuation)]
    count = len(ids) - 1 - len(reference.encode(context.rstrip()))
    assert len(ids) > 2 * WINDOW
    assert logprob == pytest.approx(reference.score(ids[-(WINDOW + 1) :], count)[0], abs=2e-4)


def test_a_continuation_longer_than_the_window_is_an_error(lm: JaxLM) -> None:
    with pytest.raises(ModelError, match=r"A continuation has \d+ tokens, expected at most the window of 64"):
        lm.loglikelihood([ask("loglikelihood", "a", " word" * 200)])


def test_rolling_windows_predict_every_token_once(lm: JaxLM, reference: NumpyLlama) -> None:
    texts = ["Short.", "An expression is evaluated from left to right, and names are looked up. " * 12, ""]
    totals = lm.loglikelihood_rolling([ask("loglikelihood_rolling", text) for text in texts])
    for text, total in zip(texts, totals, strict=True):
        ids = [0, *reference.encode(text)]
        expected = 0.0
        for begin in range(1, len(ids), WINDOW):  # each window is full of input, and scores what the last one did not
            end = min(begin + WINDOW, len(ids))
            expected += reference.score(ids[max(0, end - 1 - WINDOW) : end], end - begin)[0]
        assert total == pytest.approx(expected, abs=1e-3)
    assert totals[2] == 0.0


def test_answers_are_in_the_order_of_the_requests_for_any_batch_size(lm: JaxLM, model_path: str) -> None:
    requests = [ask("loglikelihood", "word " * (7 * i % 11 + 1), "next" * (5 * i % 7 + 1)) for i in range(13)]
    together = [logprob for logprob, _ in lm.loglikelihood(requests)]
    alone = [lm.loglikelihood([request])[0][0] for request in requests]
    assert together == pytest.approx(alone, abs=2e-4)


def test_greedy_generation_takes_the_likeliest_token_each_time(lm: JaxLM, reference: NumpyLlama) -> None:
    contexts = ["The class has", "An object of this kind is iterated over by the for statement"]
    counts = [9, 5]
    asked = [
        ask("generate_until", context, {"max_gen_toks": count, "until": []})
        for context, count in zip(contexts, counts, strict=True)
    ]
    for context, count, text in zip(contexts, counts, lm.generate_until(asked), strict=True):
        ids = [0, *reference.encode(context)]
        for _ in range(count):
            token = int(reference.logprobs(ids)[-1].argmax())
            if token == lm.eot_token_id:
                break
            ids.append(token)
        assert text == reference.tokenizer.decode(ids[1 + len(reference.encode(context)) :])


def test_generation_stops_before_its_stop_text(lm: JaxLM) -> None:
    [whole] = lm.generate_until([ask("generate_until", "The class has", {"max_gen_toks": 9, "until": []})])
    stop = whole[len(whole) // 2 :][:2]
    [cut] = lm.generate_until([ask("generate_until", "The class has", {"max_gen_toks": 9, "until": [stop]})])
    assert cut == whole.split(stop)[0]


def test_unsupported_generation_is_an_error(lm: JaxLM) -> None:
    with pytest.raises(ModelError, match=r"generates with min_p=0\.1, which JAX does not have"):
        lm.generate_until([ask("generate_until", "a", {"do_sample": True, "temperature": 0.7, "min_p": 0.1})])
    with pytest.raises(ModelError, match="A task generates 64 tokens, expected fewer than the window of 64"):
        lm.generate_until([ask("generate_until", "a", {"max_gen_toks": 64})])


TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ message['content'] }}{{ eos_token }}\n{% endfor %}"
    "{% if add_generation_prompt %}Answer:\n{% endif %}"
)


def test_a_special_token_written_in_a_text_is_text_as_in_training(lm: JaxLM, reference: NumpyLlama) -> None:
    plain = reference.tokenizer
    plain.encode_special_tokens = True
    written = "One <|eos|> and <|bos|> two."
    ids = plain.encode(written, add_special_tokens=False).ids
    assert 1 not in ids
    assert lm.tok_encode(written) == [0, *ids]
    [total] = lm.loglikelihood_rolling([ask("loglikelihood_rolling", written)])
    assert total == pytest.approx(reference.score([0, *ids], len(ids))[0], abs=2e-4)
    [(choice, _)] = lm.loglikelihood([ask("loglikelihood", "One", " <|eos|>")])
    both = plain.encode("One <|eos|>", add_special_tokens=False).ids
    count = len(both) - len(plain.encode("One", add_special_tokens=False).ids)
    assert choice == pytest.approx(reference.score([0, *both], count)[0], abs=2e-4)
    plain.encode_special_tokens = False


def test_of_a_conversation_the_templates_special_tokens_alone_are_tokens(model_path: str, tmp_path: Path) -> None:
    shutil.copytree(model_path, tmp_path / "chat")
    change_json(tmp_path / "chat/tokenizer_config.json", lambda found: found.update(chat_template=TEMPLATE))
    lm = JaxLM(*load_model(str(tmp_path / "chat")), batch_size=1)
    plain = ModelTokenizer(model_path).encode
    questions = ["What ends a text?", "Does <|eos|> end <|bos|>?", "What ends a text?"]
    contexts = [lm.apply_chat_template([{"role": "user", "content": each}]) for each in questions]
    assert contexts[1] == f"<|bos|>{questions[1]}<|eos|>\nAnswer:\n"
    for question, context in zip(questions, contexts, strict=True):
        before, after = lm._encode_pair(context, "<|eos|> does")
        assert before == [0, *plain(question), 1, *plain("\nAnswer:")]
        assert after == plain("\nAnswer:\n<|eos|> does")[len(plain("\nAnswer:")) :]
        assert lm.tok_encode(context) == [0, *plain(question), 1, *plain("\nAnswer:\n")]
    expected = JaxLM(*load_model(model_path), batch_size=1)
    text = [ask("loglikelihood_rolling", "A text with <|eos|> in it.")]
    assert lm.loglikelihood_rolling(text) == expected.loglikelihood_rolling(text), "a whole text is no conversation"


def test_a_text_has_one_bos_in_front(lm: JaxLM) -> None:
    assert lm.tok_encode("a") == [0, *lm.tok_encode("a", add_special_tokens=False)]


def test_a_folder_that_is_not_an_export_is_an_error(tmp_path: Path, model_path: str) -> None:
    with pytest.raises(ModelError, match=r"has no 'config.json', expected the folder"):
        load_model(str(tmp_path))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes(Path(model_path, name).read_bytes())
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(ModelError, match=r"has a model of type 'bert', expected one that Levanter has: .*'llama'"):
        load_model(str(tmp_path))


def test_a_token_that_the_model_has_no_row_for_is_an_error(model_path: str, tmp_path: Path) -> None:
    lm = JaxLM(*load_model(with_token(model_path, tmp_path / "more", "MORE", 5000)), batch_size=1)
    assert lm.loglikelihood([ask("loglikelihood", "a", " b")])
    with pytest.raises(ModelError, match="A token is 5000, expected one of the model's, from 0 to 511"):
        lm.loglikelihood([ask("loglikelihood", "a MORE", " b")])


def test_an_exports_own_truncation_is_off(model_path: str, lm: JaxLM, tmp_path: Path) -> None:
    cut = JaxLM(*load_model(with_settings(model_path, tmp_path / "cut")), batch_size=4)
    text = [ask("loglikelihood_rolling", "An expression is evaluated from left to right. " * 12)]
    assert cut.loglikelihood_rolling(text) == lm.loglikelihood_rolling(text)


def test_an_answer_ends_at_the_models_own_stop_tokens(model_path: str, reference: NumpyLlama, tmp_path: Path) -> None:
    """Those of generation_config.json, as in vLLM and transformers."""
    shutil.copytree(model_path, tmp_path / "stops")
    context = [0, *reference.encode("The class has")]
    likeliest = int(reference.logprobs(context)[-1].argmax())
    (tmp_path / "stops/generation_config.json").write_text(json.dumps({"eos_token_id": [1, likeliest]}))
    settings = {"until": [], "max_gen_toks": 4}
    request = [ask("generate_until", "The class has", settings)]
    assert JaxLM(*load_model(model_path), batch_size=1).generate_until(request) != [""]
    assert JaxLM(*load_model(str(tmp_path / "stops")), batch_size=1).generate_until(request) == [""]
