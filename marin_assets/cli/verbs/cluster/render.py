"""Render infra/<name>.yaml of each cluster in infra/clusters.toml, for Ray's cluster launcher, and infra/project.json.

With --check, write nothing and exit with 1 if a file is not as it would be rendered.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from marin_assets.run.output import print_line, print_stderr


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check", action="store_true", help="only say which files differ")
    parser.add_argument(
        "--folder",
        type=Path,
        metavar="FOLDER",
        help="with clusters.toml and the template (default: MARIN_CLUSTERS, infra)",
    )


def run(options: argparse.Namespace) -> int:
    # late, for their weight
    from marin_resources.clusters.catalogue import default_path, read_catalogue, templates
    from marin_resources.infra.render import out_of_date, render_all

    catalogue = options.folder / "clusters.toml" if options.folder is not None else default_path()
    folder = catalogue.parent
    rendered = render_all(read_catalogue(catalogue), folder, options.folder or templates())
    outdated = out_of_date(rendered, folder)
    if options.check:
        for path, difference in outdated:
            print_stderr(f"{path} {difference}")
        if outdated:
            print_stderr("Render them: marin cluster render")
        return 1 if outdated else 0
    for path, difference in outdated:
        if difference == "of no cluster":
            path.unlink()
        else:
            path.write_text(rendered[path], encoding="utf-8")
        print_line(f"{'removed' if difference == 'of no cluster' else 'wrote'} {path}")
    print_line(f"{len(rendered)} files, {len(outdated)} changed")
    return 0
