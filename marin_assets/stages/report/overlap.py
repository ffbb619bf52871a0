"""The overlap of corpora with evaluations: how many questions of each evaluation occur in each corpus, and examples.

In:  outputs of `find_contamination`, one a corpus, with the same evaluations and rule.
Out: overlap.html, a table of evaluations by corpora, and for each pair questions with the text that contains them;
     overlap.json, {"format_version", "rule", "corpora", "evaluations": {evaluation: {corpus: {"questions",
     "questions_contaminated", "contaminated_share"}}}}.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.storage.files import exists, read_json, write_bytes, write_json
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

KINDS = ("html",)

REPORT, JSON, PAGE = "contamination.json", "overlap.json", "overlap.html"
FORMAT_VERSION = 1
NUMBERS = ("questions", "questions_contaminated", "contaminated_share")
STYLE = """
:root { color-scheme: light dark; --line: #ccc; --quiet: #666; --mark: #ffe08a; --soft: #8881; }
@media (prefers-color-scheme: dark) { :root { --line: #555; --quiet: #aaa; --mark: #7a5c00; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 65em; margin: 2em auto; padding: 0 1em; }
.wide { overflow-x: auto; } table { border-collapse: collapse; } tr { border-bottom: 1px solid var(--line); }
th, td { text-align: left; padding: .2em .8em .2em 0; } td.n, th.n { text-align: right; white-space: nowrap; }
.quiet { color: var(--quiet); } mark { background: var(--mark); color: inherit; } h3 { margin-bottom: .2em; }
p, blockquote { overflow-wrap: anywhere; }
blockquote { background: var(--soft); margin: .3em 0 1em; padding: .5em 1em; }
"""


class OverlapError(MarinError, ValueError):
    """Outputs that cannot be in one report: one sentence."""


@dataclass(frozen=True, kw_only=True)
class OverlapConfig:
    contaminations: dict[str, str]
    """Corpus -> output of `find_contamination`."""
    output_path: str = THIS_OUTPUT_PATH
    examples: int = versioned(10)
    """Questions on the page for each evaluation and corpus, those with the largest shares."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def report_overlap(config: OverlapConfig) -> dict[str, Any]:
    """Write the page and its numbers.

    Returns corpora, evaluations, questions, and for each corpus questions_contaminated_<corpus> and
    contaminated_share_<corpus>. Raises OverlapError.
    """
    _check(config)
    reports = {corpus: _read(corpus, path) for corpus, path in config.contaminations.items()}
    first = next(iter(reports.values()))
    for corpus, report in reports.items():
        _require_alike(next(iter(reports)), first, corpus, report)
    evaluations = {
        name: {corpus: {key: report["evaluations"][name][key] for key in NUMBERS} for corpus, report in reports.items()}
        for name in first["evaluations"]
    }
    content = {"format_version": FORMAT_VERSION, "rule": first["rule"], "corpora": list(reports)}
    write_json(join(config.output_path, JSON), {**content, "evaluations": evaluations})
    page = "\n".join(_page(reports, evaluations, config.examples)) + "\n"
    write_bytes(join(config.output_path, PAGE), page.encode("utf-8", "backslashreplace"))
    result = {"corpora": len(reports), "evaluations": len(evaluations), "questions": first["questions"]}
    for corpus, report in reports.items():
        result |= {f"{key}_{corpus}": report[key] for key in NUMBERS[1:]}
    return result


def _check(config: OverlapConfig) -> None:
    if not config.contaminations:
        raise OverlapError("contaminations is empty, expected {corpus: output of find_contamination}. Pass one.")
    if type(config.examples) is not int or config.examples < 0:
        raise OverlapError(f"examples is {config.examples!r:.80}, expected a whole number from 0, such as 10.")


def _read(corpus: str, path: str) -> dict[str, Any]:
    file = join(path, REPORT)
    if not exists(file):
        raise OverlapError(f"{file!r} does not exist, for the corpus {corpus!r}. Pass an output of find_contamination.")
    report: dict[str, Any] = read_json(file)
    return report


def _require_alike(first: str, expected: Mapping[str, Any], corpus: str, report: Mapping[str, Any]) -> None:
    if report["rule"] != expected["rule"]:
        raise OverlapError(
            f"The corpus {corpus!r} was searched with {report['rule']}, and {first!r} with {expected['rule']}. Search "
            "both with one rule."
        )
    sizes, others = ({n: e["questions"] for n, e in r["evaluations"].items()} for r in (expected, report))
    if sizes != others:
        raise OverlapError(
            f"The corpus {corpus!r} was searched for {others}, and {first!r} for {sizes} (evaluation: questions). "
            "Search both for the same evaluations."
        )


def _page(reports: Mapping[str, Any], evaluations: Mapping[str, Any], examples: int) -> Iterator[str]:
    rule = next(iter(reports.values()))["rule"]
    yield '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width"><title>Overlap with evaluations</title>'
    yield f"<style>{STYLE}</style></head><body><h1>Overlap with evaluations</h1>"
    share = f", and at least {rule['min_share']:.0%} of them" if rule["min_share"] else ""
    ngrams = f"{rule['min_matches']} or more n-grams of {rule['ngram']} words"
    yield f"<p>Questions of which a document has {ngrams}{share}.</p>"
    heads = "".join(f'<th scope="col" class="n">{escape(corpus)}</th>' for corpus in reports)
    yield '<div class="wide"><table><tr><th scope="col">evaluation</th><th scope="col" class="n">questions</th>'
    yield f"{heads}</tr>"
    for number, (name, corpora) in enumerate(evaluations.items()):
        cells = "".join(
            f'<td class="n"><a href="#e{number}-{index}">{of["contaminated_share"]:.2%}</a> '
            f'<span class="quiet">{of["questions_contaminated"]:,}</span></td>'
            for index, of in enumerate(corpora.values())
        )
        questions = next(iter(corpora.values()))["questions"]
        yield f'<tr><th scope="row">{escape(name)}</th><td class="n">{questions:,}</td>{cells}</tr>'
    yield "</table></div>"
    for number, name in enumerate(evaluations):
        yield f"<h2>{escape(name)}</h2>"
        for index, (corpus, report) in enumerate(reports.items()):
            questions = [question for question in report["questions_found"] if question["evaluation"] == name]
            yield f'<h3 id="e{number}-{index}">in {escape(corpus)}: {_count(len(questions), "question")}</h3>'
            questions.sort(key=lambda question: (-question["example"]["share"], question["id"]))
            yield from map(_question, questions[:examples])
    yield "</body></html>"


def _question(question: Mapping[str, Any]) -> str:
    example = question["example"]
    before, words, after = (escape(example.get(key, "")) for key in ("before", "words", "after"))
    documents = _count(question["documents"], "document")
    about = f"{example['share']:.0%} of its n-grams in {example['document']}; in {documents}"
    return (
        f'<p><b>{escape(question["id"])}</b> <span class="quiet">{escape(about)}</span><br>'
        f"{escape(question.get('text', ''))}</p><blockquote>… {before} <mark>{words}</mark> {after} …</blockquote>"
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
