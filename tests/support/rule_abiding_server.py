"""A stand-in for vLLM's server, for a model that abides by its rubric: it scores what it is asked about by a rule.

A text about classes or methods gets 4, another 1; one in nine answers is no score. It reads the prompt's tokens with
the model's tokenizer, as vLLM does. Run it as vLLM's Python is run: python -m vllm.entrypoints.openai.api_server …
"""

from __future__ import annotations

import argparse
import json
import sys
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def score_of(text: str) -> str:
    if zlib.crc32(text.encode()) % 9 == 0:
        return "I would rather not say."
    return "Score: 4" if "class" in text or "method" in text else "Score: 1"


def main(arguments: list[str]) -> None:
    from tokenizers import Tokenizer

    parser = argparse.ArgumentParser()
    for name in ("--model", "--served-model-name", "--host", "--dtype", "--max-model-len"):
        parser.add_argument(name)
    parser.add_argument("--port", type=int)
    options, _ = parser.parse_known_args(arguments)
    tokenizer = Tokenizer.from_file(f"{options.model}/tokenizer.json")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.answer({"data": [{"id": options.served_model_name}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            prompt = tokenizer.decode(body["prompt"])
            asked = prompt.partition("Text:")[2].rpartition("Score:")[0].rstrip("\n")
            choice = {"index": 0, "text": score_of(asked), "finish_reason": "stop"}
            self.answer({"choices": [choice], "usage": {"completion_tokens": 4, "prompt_tokens": len(body["prompt"])}})

        def answer(self, body: dict[str, Any]) -> None:
            content = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None: ...

    ThreadingHTTPServer((options.host, options.port), Handler).serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
