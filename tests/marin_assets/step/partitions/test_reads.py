from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from marin_assets.step.graph import Node, build_graph
from marin_assets.step.partitions.products import product
from marin_assets.step.partitions.reads import partitions_of
from marin_assets.step.partitions.sets import Partitions, dynamic, static
from marin_assets.step.partitions.this_partition import value_of
from marin_assets.step.partitions.windows import daily, hourly, monthly, weekly
from marin_assets.step.resolve import resolve
from marin_assets.step.step import Step
from marin_assets.step.values import (
    THIS_OUTPUT_PATH,
    ConfigError,
    mirrored,
    output_path_of,
    this_partition,
    this_window,
    versioned,
)


@dataclass(frozen=True)
class Config:
    x: Any = None
    y: Any = None
    output_path: str = THIS_OUTPUT_PATH


def do_nothing(config: Any) -> None:
    """Never run."""


def step(name: str, partitions: Partitions | None = None, **fields: Any) -> Step:
    return Step(name=name, fn=do_nothing, config=Config(**fields), partitions=partitions)


def node_of(given: Step) -> Node:
    return build_graph([given])[given]


def read_at(reader: Step, key: str | None) -> tuple[Any, list[str]]:
    """The field x of the reader's config at a key, without versions; and the labels of its inputs."""
    graph = build_graph([reader])
    node = graph[reader] if key is None else graph[reader].at(key)
    versions = {f"-{other.version.hash}": "" for other in graph}
    config = resolve(node, graph, lambda output: "/p/" + output.relative(), "/p")
    return _without(config.x, versions), list(node.inputs)


def _without(value: Any, texts: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_without(item, texts) for item in value]
    for text in texts:
        value = value.replace(text, "") if isinstance(value, str) else value
    return value


LANGS, DELIVERIES = static("en", "de"), dynamic("deliveries")


@pytest.mark.parametrize("partitions", [LANGS, DELIVERIES, daily("2026-01-01")])
def test_a_reader_with_the_same_partitions_reads_its_own_key(partitions: Partitions) -> None:
    key = {LANGS: "de", DELIVERIES: "2026/01"}.get(partitions, "2026-01-02")
    raw = step("raw/web", partitions)
    segment = key.replace("/", "%2F")
    assert read_at(step("a", partitions, x=raw), key) == (f"/p/raw/web/{segment}", [f"raw/web[{key}]"])
    below = step("a", partitions, x=output_path_of(raw, "train"))
    assert read_at(below, key) == (f"/p/raw/web/{segment}/train", [f"raw/web[{key}]"])


def test_a_reader_of_some_of_the_keys_reads_its_own() -> None:
    assert read_at(step("a", static("de"), x=step("raw/web", LANGS)), "de")[1] == ["raw/web[de]"]


def test_named_partitions_are_read_by_any_step() -> None:
    raw = step("raw/web", LANGS)
    assert read_at(step("a", x=output_path_of(raw, partition="de")), None) == ("/p/raw/web/de", ["raw/web[de]"])
    assert read_at(step("a", DELIVERIES, x=output_path_of(raw / "b", partition="de")), "d")[0] == "/p/raw/web/de/b"
    several = ["/p/raw/web/de", "/p/raw/web/en"], ["raw/web[de]", "raw/web[en]"]
    assert read_at(step("a", x=partitions_of(raw, ["de", "en"])), None) == several
    assert read_at(step("a", x=partitions_of(raw)), None)[1] == ["raw/web[en]", "raw/web[de]"]
    assert read_at(step("a", x=partitions_of(raw, ["en"], "train")), None)[0] == ["/p/raw/web/en/train"]


def test_a_reader_with_longer_windows_reads_all_within_its_own() -> None:
    raw = step("raw/web", daily("2026-01-01"))
    paths, labels = read_at(step("a", monthly("2026-02-01"), x=raw), "2026-02-01")
    assert paths == [f"/p/raw/web/2026-02-{day:02}" for day in range(1, 29)]
    assert labels[-1] == "raw/web[2026-02-28]"
    assert len(read_at(step("a", weekly("2026-01-04"), x=raw), "2026-01-11")[0]) == 7
    assert len(read_at(step("a", daily("2026-01-01"), x=step("h", hourly("2026-01-01"))), "2026-01-01")[0]) == 24


def test_a_product_reads_an_input_of_one_dimension_at_that_dimensions_key() -> None:
    both = product(day=daily("2026-01-01"), lang=LANGS)
    assert read_at(step("a", both, x=step("raw/web", LANGS)), "2026-01-02|de")[1] == ["raw/web[de]"]
    assert read_at(step("a", both, x=step("raw/web", both)), "2026-01-02|de")[1] == ["raw/web[2026-01-02|de]"]


def test_an_input_without_partitions_is_one_for_all_keys() -> None:
    assert read_at(step("a", LANGS, x=step("raw/web")), "en") == ("/p/raw/web", ["raw/web"])


def test_the_key_of_the_reader_may_be_a_folder_below_an_input() -> None:
    training = step("checkpoints/nano")
    read = output_path_of(training, "exports/{partition}").nonblocking()
    assert read_at(step("a", DELIVERIES, x=read), "step-100") == ("/p/checkpoints/nano/exports/step-100", [])
    assert read_at(step("a", DELIVERIES, x=output_path_of(training, "{drop}/x")), "a@2")[0] == "/p/checkpoints/nano/a/x"
    assert read_at(step("a", DELIVERIES, x=read), "../b")[0] == "/p/checkpoints/nano/exports/%2E.%2Fb", "one folder"
    assert read_at(step("a", DELIVERIES, x=mirrored(read)), "c")[0] == "mirror://checkpoints/nano/exports/c"  # type: ignore[arg-type]
    graph = build_graph([step("a", DELIVERIES, x=read)])
    assert [node.name for node in graph] == ["checkpoints/nano", "a"], "its version is in that of the reader"


def test_a_mirrored_input_is_that_of_the_key() -> None:
    path, _ = read_at(step("a", LANGS, x=mirrored(output_path_of(step("raw/web", LANGS)))), "en")  # type: ignore[arg-type]
    assert path == "mirror://raw/web/en"


def test_the_config_has_the_key_and_its_window() -> None:
    assert read_at(step("a", LANGS, x=this_partition()), "de")[0] == "de"
    both = product(day=daily("2026-01-01"), lang=LANGS)
    assert read_at(step("a", both, x=this_partition("lang")), "2026-01-02|de")[0] == "de"
    assert read_at(step("a", both, x=this_partition()), "2026-01-02|de")[0] == "2026-01-02|de"
    form = this_partition(form="s3://crawls/{drop}/*.gz {partition}")
    assert read_at(step("a", DELIVERIES, x=form), "a")[0] == "s3://crawls/a/*.gz a"
    assert read_at(step("a", DELIVERIES, x=form), "a@2")[0] == "s3://crawls/a/*.gz a@2"
    window = ("2026-01-02T00:00:00+00:00", "2026-01-03T00:00:00+00:00")
    assert read_at(step("a", both, x=this_window("day")), "2026-01-02|de")[0] == window
    assert read_at(step("a", daily("2026-01-01"), x=this_window()), "2026-01-02")[0] == window


def test_a_form_may_be_a_place_under_the_prefix_which_is_in_no_version() -> None:
    form = this_partition(form="{prefix}/inbox/{drop}/{partition}-*.gz", is_glob=True)
    inbox = step("a", DELIVERIES, x=form)
    assert read_at(inbox, "a@2")[0] == "/p/inbox/a/a@2-*.gz"
    assert value_of(inbox.config.x, DELIVERIES, "[1]", "/data[2]/") == "/data[[]2]/inbox/[[]1]/[[]1]-*.gz"
    assert json.loads(node_of(inbox).version.text)["config"] == {
        "x": "PARTITION {prefix}/inbox/{drop}/{partition}-*.gz"
    }
    with pytest.raises(ConfigError, match=r"in another place than the beginning, expected '.prefix./inbox"):
        this_partition(form="gs://raw/{prefix}/{partition}")


@pytest.mark.parametrize("key", ["../b", "a/../../b", "./a"])
def test_a_key_that_would_leave_the_place_of_its_form_is_refused(key: str) -> None:
    assert read_at(step("a", DELIVERIES, x=this_partition()), key)[0] == key
    with pytest.raises(ConfigError, match="has a folder"):
        read_at(step("a", DELIVERIES, x=this_partition(form="deliveries/{partition}/*.gz")), key)


def test_the_wildcards_of_a_key_are_letters_where_the_text_is_a_glob() -> None:
    form = "deliveries/{drop}/{partition}-*.gz"
    assert read_at(step("a", DELIVERIES, x=this_partition(form=form)), "[1]*?")[0] == "deliveries/[1]*?/[1]*?-*.gz"
    escaped = "[[]1][*][?]"
    at_key = read_at(step("a", DELIVERIES, x=this_partition(form=form, is_glob=True)), "[1]*?@2")[0]
    assert at_key == f"deliveries/{escaped}/{escaped}@2-*.gz"


def test_a_delivery_that_is_called_as_a_placeholder_is_no_placeholder() -> None:
    form = this_partition(form="deliveries/{drop}/x")
    assert read_at(step("a", DELIVERIES, x=form), "{partition}@2")[0] == "deliveries/{partition}/x"


def test_a_version_is_one_for_all_keys_and_stays_when_keys_are_added() -> None:
    few, more = (step("a", static(*keys), x=this_partition()) for keys in (("en",), ("en", "de")))
    assert node_of(few).version == node_of(more).version == node_of(more).at("de").version
    assert node_of(step("a", DELIVERIES, x=this_partition())).version == node_of(few).version
    earlier, later = (step("a", daily(start)) for start in ("2025-01-01", "2026-01-01"))
    assert node_of(earlier).version == node_of(later).version


def test_whatever_decides_what_is_read_is_in_the_version() -> None:
    raw, days = step("raw/web", LANGS), step("raw/days", daily("2026-01-01"))
    both = product(day=daily("2026-01-01"), lang=LANGS)
    readers = [
        step("a"),
        step("a", LANGS),
        step("a", daily("2026-01-01")),
        step("a", monthly("2026-01-01")),
        step("a", both),
        step("a", x="PARTITION"),
        step("a", LANGS, x=this_partition()),
        step("a", LANGS, x=versioned("x")),
        step("a", LANGS, x=output_path_of(step("raw/web"), "{partition}")),
        step("a", LANGS, x=output_path_of(step("raw/web"), "{drop}")),
        step("a", LANGS, x=output_path_of(step("raw/web"), "en")),
        step("a", LANGS, x=raw),
        step("a", x=output_path_of(raw, partition="en")),
        step("a", x=output_path_of(raw, partition="de")),
        step("a", x=partitions_of(raw, ["en"])),
        step("a", x=partitions_of(raw, ["en", "de"])),
        step("a", x=partitions_of(raw, ["de", "en"])),
        step("a", both, x=raw),
        step("a", both, x=output_path_of(raw, partition="en")),
        step("a", both, x=this_partition("lang")),
        step("a", both, x=this_partition("day")),
        step("a", both, x=this_window("day")),
        step("a", daily("2026-01-01"), x=days),
        step("a", monthly("2026-01-01"), x=days),
        step("a", x=step("raw/web")),
    ]
    texts = [node_of(reader).version.text for reader in readers]
    same = [(i, texts.index(text)) for i, text in enumerate(texts) if texts.index(text) != i]
    assert same == [(5, 0)], "a plain field does not enter; all else does"


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: step("a", x=step("raw/web", LANGS)), "reads 'raw/web', which has partitions, and has none itself."),
        (
            lambda: step("a", x=step("raw/web", DELIVERIES)),
            "output_path_of(step, partition='…') or partitions_of(step, […])",
        ),
        (
            lambda: step("a", x=partitions_of(step("raw/web", DELIVERIES))),
            "and dynamic('deliveries') grows. What is read must",
        ),
        (lambda: step("a", x=partitions_of(step("raw/web", daily("2026-01-01")))), "default_snapshot()"),
        (lambda: step("a", x=partitions_of(step("raw/web", LANGS), [])), "names no key"),
        (lambda: step("a", x=partitions_of(step("raw/web", LANGS), "en")), "has the text 'en' for keys"),
        (lambda: step("a", x=partitions_of(step("raw/web"))), "needs a step with partitions="),
        (
            lambda: step("a", x=output_path_of(step("raw/web", LANGS), partition="fr")),
            "config.x: There is no partition",
        ),
        (lambda: step("a", x=output_path_of(step("raw/web"), partition="en")), "'raw/web', which has no partitions="),
        (lambda: step("a", static("en", "fr"), x=step("raw/web", LANGS)), "at its own keys, and that lacks 'fr'."),
        (
            lambda: step("a", DELIVERIES, x=step("raw/web", LANGS)),
            "which are those of dynamic('deliveries'), and that has static",
        ),
        (lambda: step("a", DELIVERIES, x=step("raw/web", dynamic("dumps"))), "and that has dynamic('dumps')"),
        (
            lambda: step("a", daily("2026-01-01"), x=step("raw/web", daily("2026-01-02"))),
            "from '2026-01-01' on, and that begins with '2026-01-02'",
        ),
        (
            lambda: step("a", monthly("2026-01-01"), x=step("raw/web", daily("2026-01-02"))),
            "from '2026-01-01' on, and that begins with '2026-01-02'",
        ),
        (
            lambda: step("a", monthly("2026-02-01"), x=step("raw/web", weekly("2026-01-04"))),
            "which do not consist of windows of weekly('2026-01-04')",
        ),
        (
            lambda: step("a", daily("2026-02-01"), x=step("raw/web", monthly("2026-01-01"))),
            "which do not consist of windows of monthly('2026-01-01')",
        ),
        (
            lambda: step("a", product(a=LANGS, b=static("en")), x=step("raw/web", LANGS)),
            "both of the dimensions of product(a=static('en', 'de'), b=static('en')) fit static('en', 'de')",
        ),
        (
            lambda: step("a", product(a=LANGS, b=DELIVERIES), x=step("r", daily("2026-01-01"))),
            "and neither of the dimensions",
        ),
        (lambda: step("a", x=this_partition()), "config.x is this_partition(), and the step has no partitions."),
        (
            lambda: step("a", x=output_path_of(step("raw/web"), "exports/{partition}")),
            "config.x reads 'exports/{partition}', and the step has no partitions. Pass partitions= to the step.",
        ),
        (lambda: step("a", LANGS, x=this_window()), "and static('en', 'de') has no windows of time."),
        (lambda: step("a", LANGS, x=this_partition("lang")), "and static('en', 'de') has no dimensions."),
        (
            lambda: step("a", product(a=LANGS, b=DELIVERIES), x=this_partition("c")),
            "has the dimensions a and b. Correct the name",
        ),
        (lambda: step("a", ["en"]), "has partitions=['en'], expected static()"),  # type: ignore[arg-type]
        (lambda: step("a", x=versioned(this_partition())), "Pass it without versioned()"),
    ],
)
def test_a_read_that_is_not_fixed_is_refused_in_one_sentence(make: Callable[[], Step], sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        node_of(make())
    assert sentence in str(refused.value)


def test_a_key_that_a_step_cannot_have_is_refused_with_its_name() -> None:
    with pytest.raises(ConfigError, match="Step 'raw/web': There is no partition 'fr'"):
        node_of(step("raw/web", LANGS)).at("fr")
    with pytest.raises(ConfigError, match="Step 'raw/web' has no partitions"):
        node_of(step("raw/web")).at("fr")


def test_two_steps_of_one_version_with_other_keys_are_refused() -> None:
    one, other = step("raw/web", LANGS), step("raw/web", static("en"))
    with pytest.raises(ConfigError, match="have one version and different partitions, static"):
        build_graph([one, other])
