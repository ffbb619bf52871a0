"""The common kinds of steps: what an experiment gets without stating it."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

from marin_assets.defaults import (
    default_checkpoint_evals,
    default_checkpoint_perplexity,
    default_download,
    default_dpo,
    default_eval,
    default_rl,
    default_rl_eval,
    default_sft,
    default_text_files,
    default_tokenize_chats,
    default_tokenize_preferences,
    default_train,
)
from marin_assets.inference.engine import TORCH, EngineError
from marin_assets.stages.evaluate.suites import EvalTask
from marin_assets.stages.train.config import TrainDpoConfig
from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.formats import ChatSpec
from marin_assets.stages.train.rl.config import ReplayBuffer, TrainRlConfig
from marin_assets.stages.train.rl.curriculum.rules import Curriculum
from marin_assets.stages.train.rl.environments.digit_sums import DigitSums
from marin_assets.stages.train.rl.environments.math_answers import MathAnswers
from marin_assets.stages.train.rl.environments.reasoning_gym import ReasoningGym
from marin_assets.stages.train.rl.environments.target_word import TargetWord
from marin_assets.stages.train.rl.evaluation.config import RlEvalConfig
from marin_assets.stages.train.rl.lessons import Lesson, lesson_of
from marin_assets.stages.train.rl.train_rl import train_rl
from marin_assets.stages.train.specs.lora import LoraSpec
from marin_assets.stages.train.train_lm import LlamaSpec, TrainLmConfig
from marin_assets.step.graph import build_graph
from marin_assets.step.partitions.sets import dynamic
from marin_assets.step.resolve import resolve
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, InputName, output_path_of, unwrap_versioned_value, versioned
from marin_resources.hardware.resources import Resources, cpu, gpu, tpu


def steps(resources: Resources | None) -> list[Step]:
    model = default_train("a", {}, LlamaSpec(), TrainLmConfig(components={}, tokenizer_path=""), resources=resources)
    return [model, default_eval(model, resources=resources)]


@pytest.mark.parametrize(
    ("resources", "device"), [(None, ()), (cpu(4), ()), (gpu("H100"), ("gpu",)), (tpu("v5p-8"), ("tpu",))]
)
def test_a_device_comes_with_its_jax_and_changes_no_version(
    resources: Resources | None, device: tuple[str, ...]
) -> None:
    here, there = steps(None), steps(resources)
    assert [step.extras for step in there] == [("train", *device), ("train", "evaluate", *device)]
    assert [node.version.hash for node in build_graph(here)] == [node.version.hash for node in build_graph(there)]


def test_the_evaluation_of_checkpoints_reads_each_export_and_waits_for_no_training() -> None:
    config = TrainLmConfig(components={}, tokenizer_path="", steps_per_hf_export=100)
    model = default_train("a", {}, LlamaSpec(), config)
    scores = default_checkpoint_evals(model, dynamic("a_checkpoints"), ["mmlu"])
    graph = build_graph([scores])
    node = graph[scores].at("step-0000100")
    read = resolve(node, graph, lambda output: "/p/" + output.relative(), "/p")
    assert read.model_path == f"/p/{graph[model].output.relative()}/exports/step-0000100"
    assert node.dependencies == ()
    assert node.name == "checkpoint_evaluation/a"
    other = default_checkpoint_evals(default_train("a", {}, LlamaSpec(num_layers=3), config), dynamic("a_checkpoints"))
    assert build_graph([other])[other].version.hash != node.version.hash, "it covers that of the training"


def test_the_perplexity_of_each_checkpoint_reads_the_training_while_it_runs() -> None:
    config = TrainLmConfig(components={}, tokenizer_path="/t", steps_per_hf_export=10)
    model = default_train("a", {}, LlamaSpec(), config)
    step = default_checkpoint_perplexity(model, dynamic("a_checkpoints"), {"wiki": "/texts"}, max_texts=9)
    [node] = [node for node in build_graph([step]) if node.step is step]
    assert node.name == "checkpoint_perplexity/a"
    place = node.step.config.model_path
    assert (place.name, place.step is model, place.block_on_step) == ("exports/{partition}", True, False)
    assert step.partitions == dynamic("a_checkpoints")


def test_an_evaluation_takes_shots_a_mirror_and_an_engine_as_that_of_checkpoints_does() -> None:
    model, engine = default_train("a", {}, LlamaSpec(), train_config()), unwrap_versioned_value(TORCH)
    plain = default_eval(model, ["mmlu"])
    given: dict[str, Any] = {"mirror": "/hub", "num_fewshot": 5, "engine": engine}
    one = default_eval(model, ["mmlu"], **given)
    each = default_checkpoint_evals(model, dynamic("a_checkpoints"), [EvalTask("mmlu", 0), "piqa"], **given)
    assert (one.name, each.name) == ("evaluation/a/torch", "checkpoint_evaluation/a/torch")
    for step in (one, each):
        assert unwrap_versioned_value([step.config.mirror_path, step.config.num_fewshot]) == ["/hub", 5]
        assert step.config.engine == engine
    graph = build_graph([plain, one])
    assert graph[plain].version.hash != graph[one].version.hash
    with pytest.raises(EngineError, match="expected"):
        default_checkpoint_evals(model, dynamic("a_checkpoints"), engine="vllm")  # type: ignore[arg-type]


def chat_steps(*, template: str = "plain", adapter: str = "openai", lora: LoraSpec | None = None) -> dict[str, Step]:
    tokenizer, base = InputName(None, "tokenizer"), default_train("base", {}, LlamaSpec(), train_config())
    chats = default_tokenize_chats(
        "chats", default_download("chats", "s3://x"), tokenizer, max_seq_len=128, template=template, adapter=adapter
    )
    pairs = default_tokenize_preferences("pairs", default_download("pairs", "s3://y"), tokenizer, max_seq_len=128)
    tuned = default_sft("tuned", chats, base, LlamaSpec(), dataclasses.replace(train_config(), lora=lora))
    dpo = TrainDpoConfig(components={}, tokenizer_path="")
    return {
        "chats": chats,
        "tuned": tuned,
        "preferring": default_dpo("preferring", pairs, tuned, LlamaSpec(), dpo),
        "anchored": default_dpo("anchored", pairs, tuned, LlamaSpec(), dpo, reference=base),
    }


def train_config() -> TrainLmConfig:
    return TrainLmConfig(components={}, tokenizer_path="")


def test_a_model_is_tuned_from_the_export_of_the_one_before() -> None:
    steps = chat_steps()
    graph = build_graph(list(steps.values()))
    located = {
        name: resolve(graph[step], graph, lambda output: "/p/" + output.relative(), "/p")
        for name, step in steps.items()
    }
    paths = {step.name: f"/p/{graph[step].output.relative()}" for step in (node.step for node in graph)}
    assert located["tuned"].start.path == f"{paths['checkpoints/base']}/hf"
    assert located["tuned"].components == {"chats": paths["tokenized/chats"]}
    assert located["tuned"].chat == ChatSpec(chats_per_sequence=64)
    assert located["preferring"].start.path == f"{paths['checkpoints/tuned']}/hf"
    assert located["preferring"].components == {"preferences": paths["tokenized/pairs"]}
    assert located["preferring"].reference is None
    assert located["anchored"].reference.path == f"{paths['checkpoints/base']}/hf"


@pytest.mark.parametrize("change", [{"template": "tulu"}, {"adapter": "dolly"}, {"lora": LoraSpec()}])
def test_what_decides_a_tuned_model_is_in_its_version(change: dict[str, Any]) -> None:
    one, other = (build_graph(list(steps.values())) for steps in (chat_steps(), chat_steps(**change)))
    hashes = [{node.name: node.version.hash for node in graph} for graph in (one, other)]
    assert hashes[0]["checkpoints/tuned"] != hashes[1]["checkpoints/tuned"]
    assert hashes[0]["checkpoints/preferring"] != hashes[1]["checkpoints/preferring"]
    assert hashes[0]["checkpoints/base"] == hashes[1]["checkpoints/base"]


def test_files_of_text_are_copied_and_become_documents() -> None:
    documents = default_text_files("letters", "letters/**", split_at="---")
    graph = build_graph([documents])
    assert [node.name for node in graph] == ["raw/letters", "documents/letters"]
    config = resolve(graph[documents], graph, lambda output: "/p/" + output.relative(), "/p")
    raw = next(node for node in graph if node.name == "raw/letters")
    assert config.input_path == f"/p/{raw.output.relative()}"
    assert (config.source, config.split_at, config.split_before) == ("letters", "---", None)


@pytest.mark.parametrize("change", [{"split_at": "***"}, {"split_before": "# "}, {"max_bad_fraction": 0.5}])
def test_what_divides_files_of_text_is_in_their_version(change: dict[str, Any]) -> None:
    one, other = (build_graph([default_text_files("letters", "letters", **fields)]) for fields in ({}, change))
    hashes = [{node.name: node.version.hash for node in graph} for graph in (one, other)]
    assert hashes[0]["raw/letters"] == hashes[1]["raw/letters"]
    assert hashes[0]["documents/letters"] != hashes[1]["documents/letters"]


def rl_hash(environments: Any, **settings: Any) -> str:
    model = default_train("a", {}, LlamaSpec(), TrainLmConfig(components={}, tokenizer_path=""))
    step = default_rl("b", model, environments, TrainRlConfig(**settings))
    return build_graph([step])[step].version.hash


def test_reinforcement_learning_is_versioned_by_what_changes_its_result() -> None:
    plain = rl_hash({"the": TargetWord()})
    assert plain == rl_hash({"the": lesson_of(TargetWord())}, num_train_steps=100, samplers=3, keep_last_checkpoints=1)
    assert plain == rl_hash({"the": TargetWord()}, num_train_steps=versioned(100))
    assert plain == rl_hash({"the": TargetWord()}, order=versioned("scheduled"), most_extra_groups=None)
    free = {"order": "free", "samplers": 1, "staleness": 1}
    others = {
        rl_hash({"the": TargetWord(word=" a")}),
        rl_hash({"the": DigitSums()}),
        rl_hash({"the": lesson_of(TargetWord(), weight=2.0)}),
        rl_hash({"the": TargetWord()}, staleness=1),
        rl_hash({"the": TargetWord()}, num_train_steps=101),
        rl_hash({"the": TargetWord()}, most_extra_groups=8),
        rl_hash({"the": TargetWord()}, replay_of=InputName.hardcoded("a")),
        rl_hash({"the": TargetWord()}, **free),
        rl_hash({"the": TargetWord()}, **free, replay_buffer=ReplayBuffer()),
        rl_hash({"the": TargetWord()}, **free, replay_buffer=ReplayBuffer(most_uses=2)),
    }
    assert len({plain, *others}) == 11


def test_a_setting_of_reinforcement_learning_that_would_not_be_in_the_version_is_refused() -> None:
    config = TrainRlConfig(order="free", samplers=1)
    with pytest.raises(TrainError, match=r"Step 'checkpoints/b': order is 'free', expected versioned\('free'\)"):
        Step(name="checkpoints/b", fn=train_rl, config=config)


def test_a_curriculum_enters_the_version_and_without_one_it_is_as_before() -> None:
    lessons = {"easy": TargetWord(), "hard": DigitSums()}
    plain = rl_hash(lessons)
    assert plain == rl_hash(lessons, curriculum=None)
    opened = [Curriculum(), Curriculum(opens_after={"hard": ("easy",)}), Curriculum(smoothing=0.2)]
    assert len({plain, *(rl_hash(lessons, curriculum=curriculum) for curriculum in opened)}) == 4
    assert rl_hash(lessons, curriculum=Curriculum(smoothing=versioned(0.1))) == rl_hash(lessons, curriculum=opened[0])


def test_problems_of_a_step_are_an_input_and_an_environment_brings_its_extras() -> None:
    model = default_train("a", {}, LlamaSpec(), TrainLmConfig(components={}, tokenizer_path=""))
    problems = default_download("problems", "problems")
    environments = {"own": MathAnswers(problems=output_path_of(problems)), "sums": ReasoningGym(task="chain_sum")}
    step = default_rl("b", model, environments)
    graph = build_graph([step])
    config = resolve(graph[step], graph, lambda output: "/p/" + output.relative(), "/p")
    assert config.lessons["own"].paths == {"problems": f"/p/{graph[problems].output.relative()}"}
    assert "problems" not in config.lessons["own"].arguments
    assert step.extras == ("train", "rewards")
    assert default_rl("b", model, {"the": TargetWord()}).extras == ("train",)
    assert rl_hash({"own": MathAnswers(problems=[{"problem": "1?", "answer": "1"}])}) != rl_hash(
        {"own": MathAnswers(problems=[{"problem": "1?", "answer": "2"}])}
    )


def test_reinforcement_learning_begins_with_the_export_of_a_step_and_is_evaluated_as_a_model() -> None:
    model = default_train("a", {}, LlamaSpec(), TrainLmConfig(components={}, tokenizer_path=""))
    step = default_rl("b", model, {"mine": Lesson(environment="rl_environments:Plain", arguments={"word": "x"})})
    graph = build_graph([default_eval(step)])
    config = resolve(graph[step], graph, lambda output: "/p/" + output.relative(), "/p")
    assert config.start.path == config.tokenizer_path == f"/p/{graph[model].output.relative()}/hf"
    assert step.name == "checkpoints/b"
    assert step.resumable


@pytest.mark.parametrize(
    ("model", "environments", "settings", "says"),
    [
        ("checkpoints/a", {"the": TargetWord()}, TrainRlConfig(), "begins with 'checkpoints/a'"),
        (InputName.hardcoded("a"), TargetWord(), TrainRlConfig(), "expected them by name"),
        (InputName.hardcoded("a"), {"the": TargetWord}, TrainRlConfig(), "expected an object of a dataclass"),
        (InputName.hardcoded("a"), {}, TrainRlConfig(), "lessons is empty"),
        (InputName.hardcoded("a"), {"the": TargetWord()}, {"groups": 8}, "train_config of type dict"),
        (InputName.hardcoded("a"), {"the": TargetWord()}, TrainRlConfig(groups=3), "Step 'checkpoints/b': groups is 3"),
    ],
)
def test_a_mistake_in_reinforcement_learning_is_a_sentence(
    model: Any, environments: Any, settings: Any, says: str
) -> None:
    with pytest.raises((ConfigError, TrainError), match=re.escape(says)):
        default_rl("b", model, environments, settings)


def rl_eval_hash(environments: Any, **settings: Any) -> str:
    model = default_train("a", {}, LlamaSpec(), TrainLmConfig(components={}, tokenizer_path=""))
    step = default_rl_eval("b", model, environments, RlEvalConfig(**settings))
    assert (step.name, step.resumable) == ("evaluation/b", True)
    return build_graph([step])[step].version.hash


def test_an_evaluation_on_rewards_is_versioned_by_what_changes_its_scores() -> None:
    plain = rl_eval_hash({"the": TargetWord()})
    trained = lesson_of(TargetWord(), weight=2.0)
    assert plain == rl_eval_hash({"the": trained}, samples=8, method_timeout_s=60.0)
    others = {
        rl_eval_hash({"the": DigitSums()}),
        rl_eval_hash({"a": TargetWord()}),
        rl_eval_hash({"the": TargetWord()}, samples=4),
        rl_eval_hash({"the": TargetWord()}, passing_reward=0.5),
    }
    assert len({plain, *others}) == 5
