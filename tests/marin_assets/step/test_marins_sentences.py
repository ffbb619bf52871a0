"""A researcher who comes from Marin: names and arguments of Marin's get a sentence with ours."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import marin_assets
import marin_assets.defaults
from marin_assets import ConfigError, InputName, Resources, Step, cpu, gpu, tpu, versioned
from marin_assets.defaults import default_download, default_eval, default_sft, default_tokenize, default_train
from marin_assets.mixtures import lm_data_config, lm_mixture_data_config, simulated_epoching_train
from marin_assets.stages.train.simple import SimpleTrainConfig
from marin_assets.stages.train.specs.presets import PRESETS, llama_nano, model_preset
from marin_assets.step.graph import build_graph
from marin_assets.step.marins_names import ARGUMENTS, HOMES, IMPORTS
from marin_resources.hardware.resources import ResourceError

TOKENS = InputName.hardcoded("tokenized/web")
TRAINING = SimpleTrainConfig(train_batch_size=4, num_train_steps=100, learning_rate=6e-4, tokenizer_path="/t")


@dataclasses.dataclass(frozen=True)
class NoConfig:
    pass


def do_nothing(config: NoConfig) -> None: ...


def import_from(module: str, name: str) -> Any:
    namespace: dict[str, Any] = {}
    exec(f"from {module} import {name}", namespace)
    return namespace[name]


@pytest.mark.parametrize("module", ["marin_assets", "marin_assets.defaults"])
@pytest.mark.parametrize("name", sorted(IMPORTS))
def test_an_import_of_a_name_of_marins_is_a_sentence_with_ours(module: str, name: str) -> None:
    with pytest.raises(ImportError) as error:
        import_from(module, name)
    assert str(error.value) == f"{module} has no name {name!r}, which is Marin's. Here it is {IMPORTS[name]}."


def test_a_name_that_another_module_has_is_a_sentence_with_that_import() -> None:
    for home, names in HOMES.items():
        for name in names:
            assert import_from(home, name) is not None
    with pytest.raises(ImportError, match=r"Write `from marin_assets\.mixtures import lm_mixture_data_config`"):
        import_from("marin_assets", "lm_mixture_data_config")
    with pytest.raises(ImportError, match=r"from marin_assets\.stages\.train\.specs\.presets import llama_nano`"):
        import_from("marin_assets.defaults", "llama_nano")


@pytest.mark.parametrize(
    ("module", "name", "near"),
    [
        ("marin_assets", "Stpe", "'Step'"),
        ("marin_assets.defaults", "default_tokenise", "'default_tokenize'"),
        ("marin_assets.datasets", "finewebedu", "'fineweb_edu' or 'fineweb'"),
    ],
)
def test_a_name_that_is_like_one_of_the_package_is_a_sentence_with_it(module: str, name: str, near: str) -> None:
    with pytest.raises(ImportError) as error:
        import_from(module, name)
    assert str(error.value).startswith(f"{module} has no name {name!r}. Did you mean {near}")


@pytest.mark.parametrize("package", [marin_assets, marin_assets.defaults])
def test_what_looks_at_a_package_sees_that_it_lacks_the_name(package: Any) -> None:
    assert not hasattr(package, "ExecutorStep")
    assert getattr(package, "remote", None) is None
    with pytest.raises(AttributeError, match="Here it is Step"):
        package.ExecutorStep  # noqa: B018
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"{package.__name__}.ExecutorStep")
    with pytest.raises(ImportError, match="cannot import name 'zzz'"):
        import_from(package.__name__, "zzz")
    namespace: dict[str, Any] = {}
    exec(f"from {package.__name__} import *", namespace)
    assert set(package.__all__) <= set(namespace)
    assert "ExecutorStep" not in dict(inspect.getmembers(package))


def test_a_script_prints_its_line_and_the_sentence_and_the_table_is_not_loaded_before(tmp_path: Path) -> None:
    script = tmp_path / "experiment.py"
    script.write_text(
        "import sys\n"
        "import marin_assets.defaults\n"
        "print('marin_assets.step.marins_names' in sys.modules)\n"
        "from marin_assets import ExecutorStep\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "False\n")
    assert done.stderr == f"{script}:4: marin_assets has no name 'ExecutorStep', which is Marin's. Here it is " + (
        f"{IMPORTS['ExecutorStep']}.\n"
    )


def refused(function: Any, *arguments: Any, **named: Any) -> str:
    with pytest.raises(ConfigError) as error:
        function(*arguments, **named)
    return str(error.value)


def test_an_argument_of_marins_is_a_sentence_with_ours() -> None:
    step: dict[str, Any] = {"name": "a", "fn": do_nothing, "config": NoConfig()}
    assert "Here it is extras=('train',)" in refused(Step, **step, pip_dependency_groups=["cpu"])
    assert "Here it is env=('HF_TOKEN',)" in refused(Step, **step, env_vars={"HF_TOKEN": "x"})
    assert "'hf://datasets/<id>@<revision>/<glob>'" in refused(default_download, "a", hf_dataset_id="o/n", revision="1")
    assert "Here it is chats=" in refused(default_sft, "a", tokenized=TOKENS, sft_config=TRAINING)
    assert "default_eval(step, CORE_TASKS)" in refused(
        default_train, "a", TOKENS, llama_nano, TRAINING, eval_harness_tasks=["x"]
    )
    assert "steps_per_checkpoint=" in refused(SimpleTrainConfig, steps_per_export=10)
    assert "resources=tpu('v4-128', slices=2)" in refused(SimpleTrainConfig, node_count=2)
    assert "HarnessOptions" in refused(
        default_eval, default_train("a", TOKENS, llama_nano, TRAINING), apply_chat_template=True
    )
    assert "Subset(" in refused(lm_mixture_data_config, {"a": TOKENS}, {"a": 1.0}, max_train_batches={"a": 5})


def test_an_argument_of_marins_that_requests_what_happens_anyway_changes_nothing() -> None:
    plain = default_train("a", TOKENS, llama_nano, TRAINING)
    of_marins: Any = {"eval_harness_tasks": [], "use_default_validation": False, "wandb_name": None}
    passed = default_train("a", TOKENS, versioned(llama_nano), TRAINING, **of_marins)
    assert version(passed) == version(plain)
    assert Step(name="a", fn=do_nothing, config=NoConfig(), pip_dependency_groups=[]).extras == ()  # type: ignore[call-arg]


def test_a_name_that_is_neither_ours_nor_marins_stays_pythons_own_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'nmae'"):
        Step(nmae="a", fn=do_nothing, config=NoConfig())  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'tgas'"):
        default_train("a", TOKENS, llama_nano, TRAINING, tgas=["x"])  # type: ignore[call-arg]


def test_no_entry_of_the_table_is_an_argument_of_ours() -> None:
    from marin_assets import defaults, executor_main, mixtures

    ours = {"Step": Step, "SimpleTrainConfig": SimpleTrainConfig, "executor_main": executor_main}
    for name, arguments in ARGUMENTS.items():
        function: Any = ours.get(name) or getattr(defaults, name, None) or getattr(mixtures, name)
        assert not set(arguments) & set(inspect.signature(function).parameters), name


class TpuPodConfig:
    """Marin's, as its package has it."""


def test_resources_of_marins_are_refused_and_its_forms_are_ours() -> None:
    elsewhere: Any = TpuPodConfig()
    assert "expected cpu(4), gpu('H100', 8) or tpu(" in refused(
        default_train, "a", TOKENS, llama_nano, TRAINING, resources=elsewhere
    )
    assert "expected cpu(4)" in refused(
        default_train, "a", TOKENS, llama_nano, dataclasses.replace(TRAINING, resources=elsewhere)
    )
    assert Resources.with_cpu() == cpu()
    assert Resources.with_cpu(4, ram="16g") == cpu(4, memory_gib=16)
    assert Resources.with_gpu("H100", count=8) == gpu("H100", 8)
    assert Resources.with_gpu() == gpu()
    assert Resources.with_tpu("v4-128", slice_count=2, ram="512m") == tpu("v4-128", slices=2, memory_gib=0.5)
    with pytest.raises(ResourceError, match="'16 x', expected a number with m, g or t, such as '16g'"):
        Resources.with_cpu(ram="16 x")


def test_a_name_of_the_hub_is_refused_and_a_path_is_read() -> None:
    sentence = refused(default_tokenize, "stories", "roneneldan/TinyStories", "meta-llama/Llama-3.1-8B")
    assert "got dataset='roneneldan/TinyStories', expected a step, a URL or an absolute path" in sentence
    assert "default_download_hf('dataset', …)" in sentence
    assert "tokenizer='meta-llama/Llama-3.1-8B'" in refused(default_tokenize, "a", TOKENS, "meta-llama/Llama-3.1-8B")
    by_text = default_tokenize("a", "gs://bucket/web", "/tokenizers/llama3")
    by_name = default_tokenize("a", InputName.hardcoded("gs://bucket/web"), InputName.hardcoded("/tokenizers/llama3"))
    assert version(by_text) == version(by_name)


def test_a_sample_of_documents_is_a_step_of_its_own() -> None:
    whole, part = default_tokenize("a", TOKENS, "/t"), default_tokenize("a", TOKENS, "/t", sample_count=10)
    assert [node.name for node in build_graph([whole])] == ["tokenized/a"]
    assert [node.name for node in build_graph([part])] == ["samples/a", "tokenized/a"]
    assert version(default_tokenize("a", TOKENS, "/t", sample_count=versioned(10))) == version(part)
    assert version(default_tokenize("a", TOKENS, "/t", sample_count=11)) != version(part)


def test_a_preset_is_imported_by_its_name() -> None:
    assert llama_nano is model_preset("llama_nano") is PRESETS["llama_nano"]
    with pytest.raises(ImportError, match="cannot import name 'llama_9b'"):
        import_from("marin_assets.stages.train.specs.presets", "llama_9b")


def test_simulated_epochs_take_a_config_with_marins_names() -> None:
    step = simulated_epoching_train("a", lm_data_config(TOKENS), versioned(llama_nano), TRAINING, 10**9, tags=["x"])
    mixture = step.config.mixture
    assert mixture.experiment_budget_tokens == versioned(100 * 4 * 512)
    assert mixture.target_budget_tokens == versioned(10**9)


def version(step: Step) -> str:
    return build_graph([step])[step].version.path


def test_each_module_and_import_that_a_sentence_names_exists() -> None:
    sentences = [*IMPORTS.values(), *(argument.here for table in ARGUMENTS.values() for argument in table.values())]
    for sentence in sentences:
        for module in re.findall(r"marin_assets(?:\.\w+)+", sentence):
            importlib.import_module(module)
        for module, name in re.findall(r"`from ([\w.]+) import (\w+)", sentence):
            assert import_from(module, name) is not None
