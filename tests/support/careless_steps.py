"""Steps that tell their secret wherever they can."""

from __future__ import annotations

import os
import subprocess
import sys
from urllib.parse import quote

from toy_steps import ToyConfig, write_value


def tell_all(config: ToyConfig) -> dict[str, object]:
    """In the log, from a child process, in the result."""
    key = os.environ["API_KEY"]
    print(f"the key is {key}", flush=True)
    sys.stderr.write(f"GET https://example.com/?key={quote(key, safe='')}\n")
    subprocess.run([sys.executable, "-c", "import os; print(os.environ['API_KEY'])"], check=True)
    return {**write_value(config), "used": key}


def fail_with_all(config: ToyConfig) -> None:
    """In an error, and the error that it comes from."""
    key = os.environ["API_KEY"]
    try:
        raise ConnectionError(f"401 for https://example.com/?key={key}")
    except ConnectionError as error:
        raise RuntimeError(f"the service refused {key}") from error
