"""The libraries' side of `html_markdown.py` and `main_content.py`: a name, pages as JSON lines; prints the seconds of
their conversion."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


def main() -> None:
    name, path = sys.argv[1:]
    if name == "markdownify":
        from markdownify import markdownify as convert
    elif name == "trafilatura":
        from functools import partial

        from trafilatura import extract

        convert = partial(extract, fast=True, include_comments=False)
    else:
        from html_to_markdown import convert
    pages = [json.loads(line) for line in Path(path).read_text().splitlines()]
    convert(pages[0])
    began = time.process_time()
    for page in pages:
        convert(page)
    print(time.process_time() - began)


if __name__ == "__main__":
    main()
