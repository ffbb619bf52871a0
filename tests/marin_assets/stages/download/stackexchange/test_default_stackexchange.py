"""The steps of a dump: what enters their versions, and that they run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from crawls import documents_of
from stack_dumps import answer, dump_of, question

from marin_assets.defaults import default_stackexchange
from marin_assets.stages.download.warc.record import CrawlError
from marin_assets.stages.transform.html.thread_content import ThreadContent, ThreadContentError
from marin_assets.step.graph import build_graph
from marin_assets.step.resolve import resolve
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, versioned

DUMP = "https://archive.org/download/stackexchange/dba.stackexchange.com.7z"


def version_of(step: Step) -> str:
    return build_graph([step])[step].version.hash


def test_the_version_has_the_source_and_the_choice_and_not_the_server() -> None:
    plain = version_of(default_stackexchange("dba", DUMP))
    assert version_of(default_stackexchange("dba", DUMP, base_url="s3://copy")) == plain
    others = [
        default_stackexchange("dba", "/data/dumps"),
        default_stackexchange("dba", DUMP, site="dba.example.org"),
        default_stackexchange("dba", DUMP, min_question_score=None),
        default_stackexchange("dba", DUMP, min_answer_score=1),
        default_stackexchange("dba", DUMP, min_answers=1),
        default_stackexchange("dba", DUMP, max_answers=3),
        default_stackexchange("dba", DUMP, order="date"),
        default_stackexchange("dba", DUMP, max_characters=6000),
        default_stackexchange("dba", DUMP, max_damaged_fraction=0.1),
        default_stackexchange("dba", DUMP, allow_cut_files=True),
        default_stackexchange("dba", DUMP, content=ThreadContent(tags_template=versioned(""))),
    ]
    assert len({plain, *map(version_of, others)}) == 1 + len(others)


def test_a_wrong_argument_is_refused_where_the_step_is_made() -> None:
    with pytest.raises(ConfigError, match="min_answers"):
        default_stackexchange("dba", DUMP, min_answers="1")  # type: ignore[arg-type]
    with pytest.raises(CrawlError, match="order is 'votes', expected one of"):
        default_stackexchange("dba", DUMP, order="votes")
    with pytest.raises(ThreadContentError, match=r"thread\.answer_template has \{anser\}, expected one of .*'answer'"):
        default_stackexchange("dba", DUMP, content=ThreadContent(answer_template=versioned("{anser}")))


def test_a_folder_of_dumps_becomes_documents_with_licences_and_formulas(tmp_path: Path) -> None:
    (tmp_path / "dumps").mkdir()
    body = (
        '<p>What is <span class="math-container">$x_1 &lt; \\frac{a}{b}$</span>?</p>\n<pre><code>a\n  b\n</code></pre>'
    )
    rows = [question(1, body=body), answer(2, 1, body="<p>" + "A fraction. " * 20), answer(3, 1, score=8)]
    (tmp_path / "dumps/math.stackexchange.com.7z").write_bytes(dump_of(rows))
    graph = build_graph([default_stackexchange("math", str(tmp_path / "dumps"))])
    nodes = {node.name: node for node in graph}
    assert list(nodes) == ["raw/math", "documents/math"]
    for node in nodes.values():
        config = resolve(node, graph, lambda output: str(tmp_path / output.relative()), "/p")
        assert node.step.fn(config)["pages"] == 1
    (document,) = documents_of(config.output_path)
    assert document.id == "math.stackexchange.com/1"
    assert document.source == "math"
    assert document.text == (
        "# Question\nTitle: Question 1\nWhat is $x_1 < \\frac{a}{b}$?\n\n```\na\n  b\n```\n\n"
        "# Answer\n> 8 votes\nIt is 3.\n\n"
        f"# Answer\n> 1 votes\n{('A fraction. ' * 20).strip()}\n\n---\nTags: sql, index\n---"
    )
    assert document.metadata["license"] == ["CC BY-SA 3.0", "CC BY-SA 4.0"]
    assert document.metadata["url"] == "https://math.stackexchange.com/q/1"


SCRIPT = """
from marin_assets import executor_main
from marin_assets.defaults import default_stackexchange

if __name__ == "__main__":
    executor_main([default_stackexchange("math", DUMPS, min_question_score=None)])
"""


@pytest.mark.long
def test_a_script_materializes_the_documents_of_two_sites_and_reuses_them(tmp_path: Path) -> None:
    (tmp_path / "dumps").mkdir()
    for site in ("math.stackexchange.com", "mathoverflow.net"):
        rows = [question(1, body="<p>" + "Why? " * 30), answer(2, 1), question(3, body="<p>" + "How? " * 30)]
        (tmp_path / f"dumps/{site}.7z").write_bytes(dump_of(rows))
    script = tmp_path / "threads.py"
    script.write_text(SCRIPT.replace("DUMPS", repr(str(tmp_path / "dumps"))))
    command = [sys.executable, str(script), "--prefix", str(tmp_path / "outputs")]
    for summary in ("2 computed, 0 reused, 0 failed", "0 computed, 2 reused, 0 failed"):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        assert summary in done.stderr
    [folder] = (tmp_path / "outputs/documents").glob("math-??????")
    ids = [document.id for document in documents_of(folder)]
    assert ids == [f"{site}/{id}" for site in ("math.stackexchange.com", "mathoverflow.net") for id in (1, 3)]
