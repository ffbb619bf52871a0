"""Serve a Hugging Face export on JAX, by OpenAI's API.

    python -m marin_assets.inference.jax_server --model FOLDER --served-model-name nano --host 127.0.0.1 --port 8000

GET /health and /v1/models, POST /v1/completions and /v1/chat/completions, as vLLM has them: prompts as text or tokens,
one or many; max_tokens, temperature, seed, stop, stop_token_ids, logprobs, echo. Other fields are refused, but for
those with a value that changes nothing. Without a seed each sample differs. It stops with SIGTERM.
"""

from __future__ import annotations

import argparse
import logging

from aiohttp import web

from marin_assets.inference.jax_model import load_model
from marin_assets.inference.jax_server.app import make_app
from marin_assets.inference.jax_server.worker import Worker


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m marin_assets.inference.jax_server")
    parser.add_argument("--model", required=True, help="a local folder: config.json, model.safetensors, tokenizer.json")
    parser.add_argument("--served-model-name", default="model")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--max-model-len", type=int, help="tokens of prompt and answer; the model's window by default")
    parser.add_argument("--max-num-seqs", type=int, default=32, help="texts of a batch")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")

    model, tokenizer = load_model(options.model)
    worker = Worker(model, tokenizer, rows=options.max_num_seqs, max_length=options.max_model_len)
    worker.start()
    app = make_app(worker, options.served_model_name)
    web.run_app(app, host=options.host, port=options.port, print=None, access_log=None)


if __name__ == "__main__":
    main()
