"""Render rejected.html: the waterfall, then the sampled documents of each reason. The page needs no other file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #222; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .2em .6em; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; } tr { border-bottom: 1px solid #ddd; }
summary { cursor: pointer; padding: .3em 0; } .dim { color: #777; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #f6f6f4; padding: 1em; margin: 0 0 1em; }
"""


def render_rejected(waterfall: Mapping[str, Any], rejected: Mapping[str, Any]) -> str:
    """Return the page as HTML; all text is escaped."""
    return "\n".join(_lines(waterfall, rejected)) + "\n"


def _lines(waterfall: Mapping[str, Any], rejected: Mapping[str, Any]) -> Iterator[str]:
    documents, kept = waterfall["documents"], waterfall["kept"]["documents"]
    yield '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Rejected documents</title>'
    yield f"<style>{STYLE}</style></head><body><h1>Rejected documents</h1>"
    yield f"<p>{kept:,} of {documents:,} documents are kept ({_share(kept, documents)}), "
    yield f"{waterfall['kept']['bytes']:,} of {waterfall['bytes']:,} bytes "
    yield f"({_share(waterfall['kept']['bytes'], waterfall['bytes'])}). A document counts for the first attribute that "
    yield "rejects it.</p>"
    yield '<table><tr><th>attribute</th><th>reason</th><th class="n">documents</th><th class="n">bytes</th>'
    yield '<th class="n">documents left</th><th class="n">bytes left</th></tr>'
    for step in waterfall["steps"]:
        yield _waterfall_row(step, documents)
    yield "</table>"
    keys = {attribute["name"]: attribute.get("key", "value") for attribute in waterfall["attributes"]}
    for number, group in enumerate(rejected["rejected"]):
        yield f'<h2 id="r{number}">{escape(group["attribute"])}/{escape(group["reason"])}</h2>'
        shown = f"{len(group['samples']):,} of {group['documents']:,} documents, by a hash of their ids."
        yield f'<p class="dim">{shown}</p>'
        for sample in group["samples"]:
            yield _sample(sample, keys[group["attribute"]])
    yield "</body></html>"


def _waterfall_row(step: Mapping[str, Any], documents: int) -> str:
    numbers = [step["documents"], step["bytes"], step["documents_left"], step["bytes_left"]]
    if step["kind"] == "cut":
        reason = f"cut out of {step['documents_cut']:,} documents that are kept"
    else:
        reason = f"{step['reason']} ({_share(step['documents'], documents)})"
    cells = "".join(f'<td class="n">{number:,}</td>' for number in numbers)
    return f"<tr><td>{escape(step['attribute'])}</td><td>{escape(reason)}</td>{cells}</tr>"


def _sample(sample: Mapping[str, Any], key: str) -> str:
    value = "" if sample["value"] is None else f" · {key} {sample['value']:g}"
    about = f"{sample['source']}{value} · {sample['characters']:,} characters"
    more = "\n…" if len(sample["text"]) < sample["characters"] else ""
    return (
        f"<details open><summary><b>{escape(sample['id'])}</b> "
        f'<span class="dim">{escape(about)}</span></summary><pre>{escape(sample["text"] + more)}</pre></details>'
    )


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "none"
