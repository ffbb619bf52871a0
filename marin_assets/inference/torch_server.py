"""Serve a Hugging Face model on torch, by OpenAI's completions: a script for a Python of its own.

    python torch_server.py --model FOLDER --served-model-name nano --host 127.0.0.1 --port 8000

It needs torch and transformers, which do not share this project's environment, and of this project the file of the
fields alone. Prompts are tokens.
GET /health and /v1/models, POST /v1/completions with max_tokens, temperature, top_p, top_k, seed, stop,
stop_token_ids, logprobs, echo. Requests that wait are computed together.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import queue
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from completion_fields import FieldError, read_fields, shown  # type: ignore[import-not-found]  # the file beside this

log = logging.getLogger("torch_server")


class Job:
    """A prompt on its way through the worker."""

    def __init__(self, fields: Any, ids: list[int], number: int) -> None:
        """`fields` are CompletionFields."""
        self.ids = ids
        self.echo, self.logprobs, self.max_tokens = fields.echo, fields.logprobs, fields.max_tokens
        self.generates = fields.generates
        self.temperature, self.seed = fields.temperature, fields.seed + number
        self.sampling: dict[str, float] = dict(fields.sampling)
        self.stops, self.stop_ids = fields.stops, fields.stop_ids
        self.choice: dict[str, Any] = {}
        self.generated = 0
        self.done = threading.Event()


class Model:
    """A causal language model and its tokenizer. One thread computes."""

    def __init__(self, folder: str, dtype: str, rows: int, max_length: int | None) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.torch = torch
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        loaded = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype))
        self.model = loaded.to(self.device).eval()  # type: ignore[arg-type]
        stops = self.model.generation_config.eos_token_id  # of its generation_config.json: a number, or several
        self.stop_ids = {self.tokenizer.eos_token_id, *(stops if isinstance(stops, list) else [stops])}
        window = self.model.config.max_position_embeddings
        self.rows, self.max_length = rows, min(max_length or window, window)
        self.jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def check(self, job: Job) -> None:
        size = self.model.get_input_embeddings().weight.shape[0]
        if not job.ids or not all(type(token) is int and 0 <= token < size for token in job.ids):
            raise FieldError(f"prompt is {shown(job.ids)}, expected tokens from 0 to {size - 1}, or lists of them.")
        inputs = len(job.ids) + job.max_tokens - (not job.generates)  # the last token of a scored text is no input
        if inputs > self.max_length:
            raise FieldError(
                f"A prompt of {len(job.ids)} tokens and {job.max_tokens} to generate do not fit in the window of "
                f"{self.max_length}."
            )

    def _run(self) -> None:
        try:
            with self.torch.inference_mode():
                while True:
                    jobs = [self.jobs.get()]
                    while len(jobs) < self.rows and not self.jobs.empty():
                        jobs.append(self.jobs.get())
                    self._compute(jobs)
        except BaseException:  # whatever it is
            log.exception("the model cannot compute any more")
            os._exit(1)  # or the server would answer no request, and live on

    def _compute(self, jobs: Sequence[Job]) -> None:
        scored = [job for job in jobs if job.echo and job.logprobs]
        scores = dict(zip(map(id, scored), self._score([job.ids for job in scored]), strict=True)) if scored else {}
        for job in jobs:
            names = [name_of(token) for token in job.ids] if job.echo else []
            own, top = scores.get(id(job), ([], []))
            text = self._text(job.ids) if job.echo else ""
            finish = "length"
            if job.max_tokens and not (job.echo and job.max_tokens == 1):
                ids, logprobs, finish = self._generate(job)
                answer = self._text(ids)
                for stop in job.stops:
                    answer = answer.split(stop)[0]
                text += answer
                names, own = names + [name_of(token) for token in ids], own + logprobs
                top = top + [{name_of(token): lp} for token, lp in zip(ids, logprobs, strict=True)]
                job.generated = len(ids)
            tokens = {"tokens": names, "token_logprobs": own, "top_logprobs": top} if job.logprobs else None
            job.choice = {"text": text, "finish_reason": finish, "logprobs": tokens}
            job.done.set()

    def _score(self, texts: Sequence[list[int]]) -> list[tuple[list[Any], list[Any]]]:
        """Return, for each text, the log-probability of each token and of the likeliest in its place; none of the
        first."""
        torch = self.torch
        tokens = torch.zeros((len(texts), max(1, max(map(len, texts)) - 1)), dtype=torch.long)
        for place, ids in enumerate(texts):
            inputs = ids[:-1]
            tokens[place, : len(inputs)] = torch.tensor(inputs, dtype=torch.long)
        logits = self.model(tokens.to(self.device)).logits.float().log_softmax(-1)  # padding is on the right
        best, likeliest = logits.max(-1)
        scores = []
        for place, ids in enumerate(texts):
            own: list[Any] = [None]
            top: list[Any] = [None]
            for i, token in enumerate(ids[1:]):
                logprob = float(logits[place, i, token])
                own.append(logprob)
                top.append({name_of(token): logprob, name_of(int(likeliest[place, i])): float(best[place, i])})
            scores.append((own, top))
        return scores

    def _generate(self, job: Job) -> tuple[list[int], list[float], str]:
        torch = self.torch
        random = torch.Generator(device="cpu").manual_seed(job.seed)
        ends = {*self.stop_ids, *job.stop_ids}
        ids: list[int] = []
        logprobs: list[float] = []
        tokens, cache = torch.tensor([job.ids], device=self.device), None
        while len(ids) < job.max_tokens:
            out = self.model(tokens, past_key_values=cache, use_cache=True)
            cache, logits = out.past_key_values, out.logits[0, -1].float().cpu()
            if job.temperature:
                likelihoods = ((logits - logits.max()) / job.temperature).softmax(-1)
                token = int(torch.multinomial(self._kept(likelihoods, **job.sampling), 1, generator=random))
            else:
                token = int(logits.argmax())
            if token in ends:
                return ids, logprobs, "stop"
            ids.append(token)
            logprobs.append(float(logits.log_softmax(-1)[token]))
            if job.stops and any(stop in self._text(ids) for stop in job.stops):
                return ids, logprobs, "stop"
            tokens = torch.tensor([[token]], device=self.device)
        return ids, logprobs, "length"

    def _kept(self, likelihoods: Any, *, top_p: float = 1.0, top_k: float = 0) -> Any:
        """The likelihoods (vocabulary,) with 0 for tokens that `top_k` and `top_p` leave out, as in decoder.py."""
        if top_k <= 0 and top_p >= 1:
            return likelihoods
        ordered, order = likelihoods.sort(descending=True, stable=True)
        if top_k > 0:
            ordered[int(top_k) :] = 0
        ordered[ordered.cumsum(0) - ordered >= top_p * ordered.sum()] = 0
        return self.torch.zeros_like(likelihoods).scatter(0, order, ordered)

    def _text(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(ids, skip_special_tokens=True))


def name_of(token: int) -> str:
    return f"token_id:{token}"


def handler_of(model: Model, name: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path == "/health":
                self.answer(200, {})
            elif self.path == "/v1/models":
                self.answer(200, {"object": "list", "data": [{"id": name, "max_model_len": model.max_length}]})
            else:
                self.answer(404, {"error": {"message": f"{self.path} is not served"}})

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            try:
                if self.path != "/v1/completions":
                    raise FieldError(f"{self.path} is not served, expected /v1/completions")
                self.answer(200, self.complete(json.loads(content)))
            except (ValueError, TypeError, RecursionError) as error:  # of its JSON, its values or their types
                self.answer(400, {"error": {"message": str(error), "type": "BadRequestError", "code": 400}})

        def complete(self, body: dict[str, Any]) -> dict[str, Any]:
            fields = read_fields(body, name)
            prompt = body.get("prompt")
            many = prompt if isinstance(prompt, list) and prompt and isinstance(prompt[0], list) else [prompt or []]
            jobs = [Job(fields, ids, number) for number, ids in enumerate(many)]
            for job in jobs:
                model.check(job)
            for job in jobs:
                model.jobs.put(job)
            for job in jobs:
                job.done.wait()
            count, generated = sum(len(job.ids) for job in jobs), sum(job.generated for job in jobs)
            return {
                "object": "text_completion",
                "model": name,
                "choices": [{"index": i, **job.choice} for i, job in enumerate(jobs)],
                "usage": {"prompt_tokens": count, "completion_tokens": generated, "total_tokens": count + generated},
            }

        def answer(self, status: int, body: dict[str, Any]) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None: ...

    return Handler


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


def main() -> None:
    parser = argparse.ArgumentParser(prog="torch_server.py")
    parser.add_argument("--model", required=True)
    parser.add_argument("--served-model-name", default="model")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--max-model-len", type=int)
    parser.add_argument("--max-num-seqs", type=int, default=32)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    model = Model(options.model, options.dtype, options.max_num_seqs, options.max_model_len)
    Server((options.host, options.port), handler_of(model, options.served_model_name)).serve_forever()


if __name__ == "__main__":
    main()
