"""A report as one HTML page, which needs nothing else: no script, no font, no network."""

from __future__ import annotations

from html import escape

from marin_sensors.weekly.report import Report
from marin_sensors.weekly.tables import Table, summary_of, tables_of, title_of

STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid #8884; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
"""


def draw(report: Report, name: str, ui: str = "") -> str:
    """The page. `ui` is the address of Dagster's UI, for links; without it the page has none."""
    title, summary = f"{name}: {title_of(report)}", summary_of(report).partition("\n\n")[2]
    unknown = "".join(f"<p>{escape(sentence)}</p>" for sentence in report.unknown)
    tables = "".join(_table(table, ui.rstrip("/")) for table in tables_of(report))
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style>"
    )
    return (
        f'<!doctype html>\n<html lang="en">{head}\n'
        f"<h1>{escape(title)}</h1>\n<p>{escape(summary)}</p>\n{unknown}{tables}</html>\n"
    )


def _table(table: Table, ui: str) -> str:
    numeric = [all(isinstance(row[place], int | float) for row in table.rows) for place in range(len(table.columns))]
    kinds = [' class="number"' if is_numeric else "" for is_numeric in numeric]
    head = "".join(f"<th{kind}>{escape(column)}" for column, kind in zip(table.columns, kinds, strict=True))
    body = ""
    for number, row in enumerate(table.rows):
        cells = [f"{value:,}" if isinstance(value, int | float) else escape(value) for value in row]
        if ui and table.links:
            place = table.columns.index("run") if "run" in table.columns else 0
            cells[place] = f'<a href="{escape(ui)}/{escape(table.links[number])}">{cells[place]}</a>'
        body += "<tr>" + "".join(f"<td{kind}>{cell}" for cell, kind in zip(cells, kinds, strict=True)) + "\n"
    return f"<h2>{escape(table.title.capitalize())}</h2>\n<table>\n<tr>{head}\n{body}</table>\n"
