"""A Python for MARIN_INSPECT_PYTHON where Inspect is not installed: it asks the model, and answers with kept logs.

In:  a folder.   Out: the program, and the model behind an address whose requests are kept.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

LOGS = Path(__file__).with_name("inspect_logs.json")
"""Parts of two logs of Inspect 0.3.285, as `inspect_program.py` keeps them: of the task `sums`, with three scores, two
epochs and two reducers, and of the task `letters`, with choices."""

PROGRAM = """#!{python}
import json, os, sys, urllib.error, urllib.request
if sys.argv[1] == "-c":
    raise SystemExit(0)
request = json.load(open(sys.argv[2]))
logs = json.load(open({logs!r}))
problem, answer = {problem!r}, []
for place, log in enumerate(logs):
    for sample in log["samples"][:2]:
        message = {{"role": "user", "content": str(sample["id"])}}
        body = {{"model": "model", "messages": [message], **request["generation"]}}
        headers = {{"Authorization": "Bearer " + os.environ["MARIN_API_KEY"], "Content-Type": "application/json"}}
        url = request["url"] + "/chat/completions"
        try:
            urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)).read()
        except urllib.error.HTTPError as error:
            problem = problem or "Task 'sums.py@sums' failed: " + json.loads(error.read())["error"]["message"] + "."
    os.makedirs(f"{{request['logs']}}/{{place}}", exist_ok=True)
    file = f"{{request['logs']}}/{{place}}/x.eval"
    open(file, "w").write("a log")
    json.dump(log, open(file + ".json", "w"))
    answer.append([{{"label": log["eval"]["task"], "file": file, "rows": file + ".json"}}])
if problem == "crash":
    print("Killed by a rule", flush=True)
    sys.exit(3)
json.dump({{"error": problem}} if problem else {{"logs": answer, "inspect_ai": "0.3.285"}}, open(sys.argv[3], "w"))
"""


def write_stand_in(folder: Path, problem: str = "") -> str:
    """Write the program, which ends with this problem. Returns its path."""
    python = folder / "python"
    python.write_text(PROGRAM.format(python=sys.executable, logs=str(LOGS), problem=problem))
    python.chmod(0o755)
    return str(python)


@contextmanager
def chat_model(status: int = 200, pause_s: float = 0.0) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The address of a model that answers every conversation with "4", and the requests with their keys. An answer
    takes `pause_s`."""
    asked: list[dict[str, Any]] = []
    paused = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.reply(200, {"data": [{"id": "theirs"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append({"path": self.path, "key": self.headers.get("Authorization"), **body})
            paused.wait(pause_s)
            choice = {"message": {"role": "assistant", "content": "4"}, "text": "4", "finish_reason": "stop"}
            error = {"error": {"message": "the prompt is too long"}}
            self.reply(status, {"choices": [choice], "usage": {}} if status == 200 else error)

        def reply(self, status: int, body: dict[str, Any]) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        server.shutdown()
        server.server_close()
