"""Judges whose verdict follows from a rule: a real server on loopback, in the place of the engine torch's.

In:  the name of a rule.   Out: a Python for MARIN_TORCH_PYTHON that serves it, and a folder with the judge's tokenizer.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from random_llama import write_tokenizer

WINDOW = 4096
TEMPLATE = (
    "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)

SERVER = '''#!{python}
import json, re, sys
if sys.argv[1] == "-c":
    raise SystemExit(0)
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from tokenizers import Tokenizer

options = dict(zip(sys.argv[2::2], sys.argv[3::2]))
tokenizer = Tokenizer.from_file(options["--model"] + "/tokenizer.json")
name, requests, rule = options["--served-model-name"], {requests!r}, {rule!r}


def share(text):
    """How much the first answer is preferred."""
    parts = r"### Instruction\\n(.*?)\\n\\n### Answer A\\n(.*?)\\n\\n### Answer B\\n(.*?)\\n\\n### Task"
    instruction, first, second = re.search(parts, text, re.S).groups()
    right = str(sum(map(int, re.findall(r"\\d+", instruction))))
    if rule == "length":
        return 0.99 if len(first) > len(second) else 0.01 if len(first) < len(second) else 0.5
    if rule == "first":
        return 0.8
    if rule == "correct":
        return 0.5 + 0.45 * ((right in first) - (right in second))
    return None  # of a judge that does not answer


def words(text):
    """The judge's text."""
    if rule == "count":
        return "answer %d" % text.count("user: ")
    if "### Conversation" not in text:
        first = share(text)
        return "I cannot decide." if first is None else "[[C]]" if first == 0.5 else "[[A]]" if first > 0.5 else "[[B]]"
    conversation = text.partition("### Conversation")[2].partition("### Task")[0].partition("### Right answers")
    last = conversation[0].rpartition("Assistant: ")[2].strip()
    if rule == "silent" or "mute" in last:
        return "It is 7 of 10, or 8."
    if conversation[2]:
        return "Reason. [[10]]" if last == conversation[2].strip().split("\\n")[-1] else "Wrong. [[1]]"
    return "[[%d]]" % max(1, min(10, len(last)))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer({{"data": [{{"id": name}}]}})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/v1/chat/completions":  # by the same template
            turns = "".join("%s: %s\\n" % (turn["role"], turn["content"]) for turn in body["messages"])
            message = {{"role": "assistant", "content": words(turns + "assistant:")}}
            self.answer({{"choices": [{{"message": message, "finish_reason": "stop"}}], "usage": {{}}}})
            return
        with open(requests, "a") as file:
            file.write(json.dumps(tokenizer.decode(body["prompt"])) + "\\n")
        choice = {{"text": "", "finish_reason": "stop", "logprobs": None}}
        if body.get("echo"):
            import math
            text, letter = tokenizer.decode(body["prompt"][:-1]), tokenizer.decode(body["prompt"][-1:])
            first = share(text)
            p = 1e-4 if first is None or letter.startswith(" ") else first if letter == "A" else 1 - first
            numbers = [None] + [-1.0] * (len(body["prompt"]) - 2) + [math.log(p), -1.0]
            choice["logprobs"] = {{"token_logprobs": numbers, "top_logprobs": [{{"x": number}} for number in numbers]}}
        else:
            choice["text"] = words(tokenizer.decode(body["prompt"]))
        self.answer({{"choices": [choice], "usage": {{"completion_tokens": 3}}}})

    def answer(self, body):
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads, request_queue_size = True, 256


Server(("127.0.0.1", int(options["--port"])), Handler).serve_forever()
'''


def write_judge_folder(folder: Path, *, chat_template: str | None = TEMPLATE, window: int = WINDOW) -> str:
    """Write what a judge's folder has beside its weights. Returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_tokenizer(folder, ["Which answer is better, A or B? " * 20])
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    if chat_template is not None:
        settings["chat_template"] = chat_template
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", "max_position_embeddings": window}))
    return str(folder)


def write_rule_python(folder: Path, rule: str) -> tuple[Path, Path]:
    """Write a Python that serves the rule: "length", "first", "correct", "silent", "grade", or "count", which answers
    with the number of turns. Returns it, and the file to which each request adds a line."""
    folder.mkdir(parents=True, exist_ok=True)
    python, requests = folder / f"python-{rule}", folder / f"requests-{rule}"
    requests.touch()
    python.write_text(SERVER.format(python=sys.executable, requests=str(requests), rule=rule))
    python.chmod(0o755)
    return python, requests
