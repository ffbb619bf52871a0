"""`make pictures`: the pictures in docs/images, of a real UI and data browser that show what a real run has made.

    python tests/pictures [NAME ...]      all, or those that are named

The experiments are those of the documentation: the quickstart, the deliveries, the small model that is evaluated while
it trains. They run in a copy of the checkout, so that an edit of one does what a reader's edit does. Some ten minutes.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from dagster_dev import BACKFILL, DagsterDev, dagster_dev
from pages import ROOT, Checkout, blocks
from playwright.sync_api import Page, sync_playwright
from running import wait_until

IMAGES = ROOT / "docs/images"
DELIVERIES = [f"2026-{month:02}" for month in range(1, 7)]
LATE = "2026-05"
"""It never arrives."""
BACKFILL_ENDED = ("COMPLETED_SUCCESS", "COMPLETED_FAILED", "FAILED", "CANCELED")
CHANGE = "sed -i 's/LlamaSpec()/LlamaSpec(hidden_dim=versioned(128))/' marin_assets/experiments/quickstart.py"
ADD = """mutation($key: String!) { addDynamicPartition(partitionsDefName: "articles", partitionKey: $key,
  repositorySelector: {repositoryLocationName: "marin", repositoryName: "__repository__"}) { __typename } }"""
RUNS = "query($f: RunsFilter!) { runsOrError(filter: $f) { ... on Runs { results { runId } } } }"
RELOAD = 'mutation { reloadRepositoryLocation(repositoryLocationName: "marin") { __typename } }'


@dataclass
class Scene:
    """What has been made, and the browser to look at it."""

    checkout: Checkout
    url: str
    """The address of the UI, or of the data browser."""
    page: Page
    dev: DagsterDev | None = None
    backfill: str = ""
    failed_run: str = ""
    clip: Any = None
    """The part of the window that is the picture; all of it by default."""

    def open(self, path: str, *texts: str, width: int = 1400, height: int = 900) -> None:
        """A page of the UI, when all these texts are there."""
        self.clip = None
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.goto(f"{self.url}{path}")
        for text in texts:
            self.page.get_by_text(text).first.wait_for(timeout=60_000)
        self.page.wait_for_load_state("networkidle")
        self.page.wait_for_timeout(1_500)  # what moves comes to rest


def lineage(scene: Scene) -> None:
    left, top, width, height = 240, 110, 1200, 860  # without the navigation and the header
    scene.open("/asset-groups/", "quickstart", "width_sweep", width=left + width, height=top + height)
    scene.page.get_by_text("fetching statuses").first.wait_for(state="hidden", timeout=60_000)
    scene.clip = {"x": left, "y": top, "width": width, "height": height}


def asset(scene: Scene) -> None:
    scene.open("/assets/quickstart/checkpoints", "loss_curve", height=960)


def partitions(scene: Scene) -> None:
    scene.open(f"/assets/articles/raw?view=partitions&partition={LATE}", DELIVERIES[0], height=620)
    scene.page.wait_for_timeout(3_000)


def backfill(scene: Scene) -> None:
    scene.open(f"/runs/b/{scene.backfill}", "articles / raw", height=560)


def failure(scene: Scene) -> None:
    scene.open(f"/runs/{scene.failed_run}", "RUN_FAILURE", height=800)


def sensors(scene: Scene) -> None:
    scene.open("/automation", "watched_scores", height=700)


def scores(scene: Scene) -> None:
    scene.open("/assets/watched/checkpoint_evaluation", "step-0000", height=840)
    scene.page.get_by_role("button", name="Plots").click()
    scene.page.wait_for_timeout(3_000)


def waterfall(scene: Scene) -> None:
    """The figure of the report, which is a page of its own."""
    scene.page.set_viewport_size({"width": 1200, "height": 900})
    [report] = scene.checkout.folder.glob("outputs/report/quickstart-*/report.html")
    scene.page.goto(report.as_uri())
    height = scene.page.evaluate("document.documentElement.scrollHeight")
    scene.page.set_viewport_size({"width": 1200, "height": height})
    scene.clip = scene.page.locator("svg.waterfall").bounding_box()


def unsynced(scene: Scene) -> None:
    done = scene.checkout.shell(CHANGE)
    assert done.returncode == 0, done.stdout
    assert scene.dev is not None
    scene.dev.ask(RELOAD)
    scene.open("/assets/quickstart/checkpoints", "Unsynced", height=620)


def verdicts(scene: Scene) -> None:
    """Documents with what attributes decide about each."""
    documents, outputs = _output(scene, "documents/quickstart"), scene.checkout.folder / "outputs"
    [shard, *_] = sorted(path.name for path in (outputs / documents).glob("*.jsonl.zst"))
    scene.open(f"/beside?path={documents}/{shard}", "Beside the rows")
    scene.page.get_by_role("button", name="Show").click()
    scene.page.get_by_text("rejected: ").first.wait_for(timeout=60_000)
    rejected = scene.page.locator("tr:has(td.bad) th").first.inner_text()
    scene.page.goto(scene.page.url.replace("start=0", f"start={rejected}"))


def way(scene: Scene) -> None:
    """The way of the first document of the sample of the rejected."""
    selected, outputs = _output(scene, "selected/quickstart"), scene.checkout.folder / "outputs"
    [sample, *_] = sorted(path.name for path in (outputs / selected / ".marin/rejected").iterdir())
    scene.open(f"/row?path={selected}/.marin/rejected/{sample}&row=0", "The way of this document", height=720)
    scene.page.get_by_text("The way of this document").click()
    scene.page.get_by_text("rejected by ").first.wait_for(timeout=60_000)


def histogram(scene: Scene) -> None:
    scene.open(f"/histogram?path={_output(scene, 'attributes/quickstart/quality')}&of=/value", "threshold", height=800)


def rewards(scene: Scene) -> None:
    scene.open(f"/rewards?path={_output(scene, 'checkpoints/words_rewarded')}", "Mean reward", height=1000)


def _output(scene: Scene, name: str) -> str:
    outputs = scene.checkout.folder / "outputs"
    [path] = outputs.glob(f"{name}-*")
    return path.relative_to(outputs).as_posix()


ARRIVAL, DATA = (lineage,), (verdicts, way, histogram, rewards)
"""Pictures of the outputs of the quickstart in Dagster; of these and of a training on rewards in the data browser."""
PICTURES: dict[str, Callable[[Scene], None]] = {
    scene.__name__: scene
    for scene in (*ARRIVAL, *DATA, asset, partitions, backfill, failure, sensors, scores, waterfall, unsynced)
}
"""In this order: the last one changes what the others show."""


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in PICTURES]
    if unknown:
        print(f"There is no picture {unknown[0]!r}; there are {', '.join(PICTURES)}.", file=sys.stderr)
        return 2
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        print("Chromium is not installed: apt install chromium", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="pictures-") as folder:
        checkout = Checkout(Path(folder))
        make_quickstart(checkout)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            chosen = [name for name in PICTURES if not names or name in names]
            arrival, data = ([scene.__name__ for scene in scenes] for scenes in (ARRIVAL, DATA))
            if arrival := [name for name in chosen if name in arrival]:
                with ui(checkout) as dev:
                    _take(arrival, Scene(checkout, dev.url, browser.new_page(), dev))
            if data := [name for name in chosen if name in data]:
                if rewards.__name__ in data:
                    make_words(checkout)
                with data_browser(checkout) as url:
                    _take(data, Scene(checkout, url, browser.new_page()))
            if later := [name for name in chosen if name not in (*arrival, *data)]:
                make_deliveries(checkout)
                make_watched(checkout)
                with ui(checkout) as dev:
                    _take(later, Scene(checkout, dev.url, browser.new_page(), dev, *backfill_deliveries(dev)))
            browser.close()
    return 0


def _take(names: list[str], scene: Scene) -> None:
    for name in names:
        PICTURES[name](scene)
        scene.page.screenshot(path=IMAGES / f"{name}.png", clip=scene.clip)
        print(f"{IMAGES / name}.png", flush=True)


def make_quickstart(checkout: Checkout) -> None:
    """What `make quickstart` makes."""
    _do(checkout, "python -m marin_assets.experiments.quickstart")
    _do(checkout, "python -m marin_assets.experiments.text_deliveries --example")


def make_deliveries(checkout: Checkout) -> None:
    """The experiment of the page, and six deliveries of which one is late."""
    _save(checkout, "docs/how-to/curate-data-in-deliveries.md")
    articles = sorted(topics.items())
    for number, delivery in enumerate(DELIVERIES):
        if delivery != LATE:
            (checkout.folder / "articles" / delivery).mkdir(parents=True)
            with gzip.open(checkout.folder / "articles" / delivery / "articles.jsonl.gz", "wt") as file:
                for title, body in articles[number % 2 :: 2]:
                    file.write(json.dumps({"title": title, "body": body}) + "\n")
    _do(checkout, f"python -m marin_assets.experiments.articles --select +tokenized --partition {DELIVERIES[0]}")


def make_words(checkout: Checkout) -> None:
    """The small model of the page that trains on rewards."""
    _save_and_prepare(checkout, "docs/how-to/train-on-rewards.md")
    _do(checkout, "python -m marin_assets.experiments.words")


def make_watched(checkout: Checkout) -> None:
    _save_and_prepare(checkout, "docs/how-to/evaluate-every-checkpoint.md")
    _do(checkout, "python -m marin_assets.experiments.watched")
    exports = sorted(path.name for path in checkout.folder.glob("outputs/checkpoints/watched-*/exports/step-*"))
    assert exports, "the training has exported no model"
    for export in exports:
        _do(checkout, f"python -m marin_assets.experiments.watched --partition {export}")


def _save_and_prepare(checkout: Checkout, page: str) -> None:
    """The files that a page shows, and its data, which its first program without a file writes."""
    _save(checkout, page)
    data = next(block.text for block in blocks(ROOT / page) if block.kind == "python" and block.path is None)
    with contextlib.chdir(checkout.folder):
        exec(compile(data, page, "exec", dont_inherit=True), {})


def _save(checkout: Checkout, page: str) -> None:
    """The files that a page shows, where it says."""
    for block in blocks(ROOT / page):
        if block.path is not None:
            checkout.save(block)


def _do(checkout: Checkout, command: str) -> None:
    print(f"$ {command}", flush=True)
    done = checkout.shell(command)
    assert done.returncode == 0, done.stdout[-3000:]


@contextlib.contextmanager
def ui(checkout: Checkout) -> Iterator[DagsterDev]:
    """`marin dev` of the copy."""
    home, prefix = checkout.folder / ".dagster", checkout.folder / "outputs"
    variables = {"DAGSTER_HOME": str(home), "MARIN_PREFIX": str(prefix), "PYTHONPATH": str(checkout.folder)}
    workspace, log = checkout.folder / "workspace.yaml", checkout.folder / "dev.log"
    with contextlib.chdir(checkout.folder), dagster_dev(workspace, log, variables) as dev:  # it looks there first
        yield dev


@contextlib.contextmanager
def data_browser(checkout: Checkout) -> Iterator[str]:
    """`marin browse` of the copy's outputs; its address."""
    command = [sys.executable, "-m", "marin_assets.cli", "browse", "--no-browser", "--prefix", "outputs"]
    with subprocess.Popen(command, cwd=checkout.folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[0].rstrip("/")
        finally:
            process.terminate()


def backfill_deliveries(dev: DagsterDev) -> tuple[str, str]:
    """A backfill of all deliveries, through the daemon; it, and a run of it that failed."""
    for delivery in DELIVERIES[1:]:
        dev.ask(ADD, key=delivery)
    chain = [
        "articles/raw",
        "articles/documents",
        "articles/attributes/repetition",
        "articles/consolidated",
        "articles/tokenized",
    ]
    params: dict[str, Any] = {
        "assetSelection": [{"path": name.split("/")} for name in chain],
        "partitionNames": DELIVERIES,
    }
    launched = dev.ask(BACKFILL, p=params)["launchPartitionBackfill"]
    assert launched["__typename"] == "LaunchBackfillSuccess", launched
    made = launched["backfillId"]
    wait_until(lambda: dev.backfill_status(made) in BACKFILL_ENDED, "the backfill", timeout_s=1200)
    runs = dev.ask(RUNS, f={"tags": [{"key": "dagster/backfill", "value": made}], "statuses": ["FAILURE"]})
    return made, runs["runsOrError"]["results"][0]["runId"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
