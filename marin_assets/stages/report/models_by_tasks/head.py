"""The beginning of a page of tables by models: its title and its style."""

from __future__ import annotations

HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 14px/1.4 system-ui, sans-serif; margin: 24px; color: #222 }}
table {{ border-collapse: separate; border-spacing: 0 }}
th, td {{ padding: 4px 10px; text-align: right; white-space: nowrap; background: #fff }}
td, tbody th {{ border-bottom: 1px solid #e3e3e3 }}
thead th {{ position: sticky; top: 0; vertical-align: bottom; border-bottom: 2px solid #999; z-index: 1 }}
th.task {{ position: sticky; left: 0; text-align: left; font-weight: normal; z-index: 1 }}
thead th.task {{ z-index: 2 }} thead span {{ writing-mode: vertical-rl; transform: rotate(180deg); max-height: 220px;
 overflow-wrap: anywhere; white-space: normal; text-align: left }}
td a {{ color: inherit; text-decoration-color: #999 }}
small {{ color: #777 }} td.better {{ background: #d5f0da }} td.worse {{ background: #fbd9d6 }}
td.held {{ background: #fdf0c4 }}
tr.mean td, tr.mean th {{ border-bottom: 2px solid #999 }} .muted {{ color: #666; max-width: 60em }}
tbody tr:hover td, tbody tr:hover th {{ box-shadow: inset 0 -2px #888 }}
</style></head><body>
"""
