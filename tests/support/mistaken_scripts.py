"""A hundred mistakes in an experiment's file, each a change of a script that works.

A mistake is one statement, or some. Its line is the one with "# here", else its first. `says` are parts of the
sentence: the wrong value or name, and what was expected.
"""

from __future__ import annotations

from dataclasses import dataclass

BEGINNING = '''
"""An experiment that works, up to the mistake."""
import dataclasses, datetime, enum, functools, math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import marin_assets
from marin_assets import *
from marin_assets.defaults import *
from marin_assets.mixtures import *
from marin_assets.stages.consolidate.consolidate import Applied, ConsolidateConfig, consolidate
from marin_assets.stages.dedup.keep_policy import KeepPolicy
from marin_assets.stages.evaluate.lm_eval import HarnessOptions, LmEvalConfig, evaluate_with_lm_eval
from marin_assets.stages.filter.registry import named
from marin_assets.stages.sample.sample_documents import SampleDocumentsConfig, sample_documents
from marin_assets.stages.train.config import LlamaSpec, OptimizerSpec, TrainLmConfig
from marin_assets.stages.train.rl.config import TrainRlConfig
from marin_assets.stages.train.rl.environments.digit_sums import DigitSums
from marin_assets.stages.train.rl.evaluation.config import RlEvalConfig
from marin_assets.stages.train.rl.lessons import Lesson, lesson_of
from marin_assets.stages.train.rl.objective import Objective
from marin_assets.stages.train.simple import SimpleTrainConfig
from marin_assets.stages.train.specs.presets import model_preset
from marin_assets.stages.transform.ingest import IngestConfig, ingest

sums = {"sums": DigitSums()}


class Mode(enum.Enum):
    FAST = "fast"


@dataclass(frozen=True, kw_only=True)
class Inner:
    rate: float = 0.1
    layers: list[int] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Config:
    input_path: str = ""
    inputs: dict[str, str] = field(default_factory=dict)
    count: int = versioned(1)
    names: list[str] = field(default_factory=list)
    weights: Mapping[str, float] = field(default_factory=dict)
    size: tuple[int, int] = (1, 1)
    share: float | None = None
    mode: Literal["fast", "exact"] = "fast"
    kind: Mode = Mode.FAST
    folder: Path = Path("x")
    inner: Inner = Inner()
    inners: Sequence[Inner] = ()
    anything: object = None
    output_path: str = THIS_OUTPUT_PATH


@dataclass(frozen=True, kw_only=True)
class Plain:
    value: object = None
    output_path: str = THIS_OUTPUT_PATH


def make(config): ...
def make_exactly(config: Config) -> None: ...
def make_more(config: Config, more: int) -> None: ...
def make_nothing() -> None: ...


a = Step(name="raw/a", fn=make, config=Config())
days = Step(name="raw/days", fn=make, config=Plain(), partitions=daily("2026-01-01"))
langs = Step(name="raw/langs", fn=make, config=Plain(), partitions=static("en", "de"))
tokens = default_tokenize("t", a, a)
shape = LlamaSpec()
simple = SimpleTrainConfig(train_batch_size=8, num_train_steps=100, learning_rate=1e-3)
'''
WATCHDOG = 'if __name__ == "__main__":\n    '


@dataclass(frozen=True)
class Mistake:
    name: str
    statement: str
    says: tuple[str, ...]
    end: str = "executor_main([b])"

    def script(self) -> str:
        return f"{BEGINNING.strip()}\n\n{self.statement}\n\n{WATCHDOG}{self.end}\n"

    @property
    def line(self) -> int:
        lines = self.script().splitlines()
        marked = [number for number, line in enumerate(lines, 1) if line.endswith("# here")]
        return marked[0] if marked else lines.index(self.statement.splitlines()[0]) + 1


def of(statement: str, *says: str, name: str = "") -> Mistake:
    return Mistake(name or statement.partition("\n")[0].removeprefix("b = ")[:70], statement, says)


def of_step(arguments: str, *says: str) -> Mistake:
    """A mistake in one argument of a step that is right but for it."""
    given = {"name": '"raw/b"', "fn": "make", "config": "Config()"}
    given = {key: value for key, value in given.items() if f"{key}=" not in arguments.split("(")[0]}
    rest = "".join(f"{key}={value}, " for key, value in given.items())
    return of(f"b = Step({rest}{arguments})", *says, name=arguments)


def of_config(arguments: str, *says: str) -> Mistake:
    return of(f'b = Step(name="raw/b", fn=make, config=Config({arguments}))', *says, name=f"Config({arguments})")


def of_plain(value: str, *says: str) -> Mistake:
    return of(f'b = Step(name="raw/b", fn=make, config=Plain(value={value}))', *says, name=f"Plain({value})")


def of_end(end: str, *says: str, statement: str = "") -> Mistake:
    return Mistake(end, statement, says, end=f"{end}  # here")


STEPS = [
    of('b = Step("raw/b", make, Config())', "Step got 3 arguments without a name", "Step(name=…, fn=…, config=…, …)"),
    of('b = Step(nmae="raw/b", fn=make, config=Config())', "Step has no argument 'nmae'", "Did you mean name"),
    of('b = Step(name="raw/b", fn=make)', "Step lacks 'config'", "Step(name=…, fn=…, config=…, …)"),
    of('b = Step(name="raw/b", fn=make, config=Config(), resource=cpu())', "'resource'", "Did you mean resources"),
    of_step("name=5", "the name 5", "expected a text"),
    of_step('name=""', "the name ''", "expected a text"),
    of_step('name="raw/my step"', "'my step'", "without spaces"),
    of_step('name="/raw/b"', "'/raw/b'", "Expected segments"),
    of_step('name="raw/../b"', "'..'", "Expected segments"),
    of_step("name='raw/' + 'ü' * 150", "300 bytes", "at most 200"),
    of_step("fn='make'", "fn='make'", "expected a function"),
    of_step("fn=make(Config())", "fn=None", "expected a function"),
    of_step("fn=Config", "Config", "expected"),
    of_step("fn=lambda config: None", "a lambda, which no worker can"),
    of_step("fn=functools.partial(make, count=1)", "a partial of make"),
    of_step("fn=__import__('ray').remote(make)", "a remote function of Ray, expected"),
    of_step("fn=make_nothing", "the function make_nothing()", "expected one"),
    of_step("fn=make_more", "the function make_more(config"),
    of(
        "def outer():\n    def inner(config): ...\n    return inner\n"
        'b = Step(name="raw/b", fn=outer(), config=Config())  # here',
        "outer.<locals>.inner",
        "top level",
        name="a function inside a function",
    ),
    of_step("config=Config", "expected an instance of a dataclass"),
    of_step("config={'count': 1}", "config={'count': 1}", "expected an instance of a dataclass"),
    of_step("config=None", "config=None", "expected an instance of a dataclass"),
    of_step("fn=make_exactly, config=Plain()", "a config of Plain", "takes Config"),
    of_step("resources=4", "resources=4", "expected cpu(), gpu() or tpu()"),
    of_step("resources='v5p-8'", "resources='v5p-8'", "expected cpu(), gpu() or tpu()"),
    of_step("resources=tpu('v5p-9')", "'v5p-9'", "v5p-8"),
    of_step("resources=gpu('H10')", "'H10'", "H100"),
    of_step("resources=cpu(-1)", "cpus=-1", "expected a positive number"),
    of_step("resources=cpu(memory_gib='4')", "memory_gib='4'", "expected a positive number"),
    of_step("extras='train'", "extras", "'train'", "('train',)"),
    of_step("extras=(1,)", "extras", "1", "expected"),
    of_step("packages=['lxml >=> 5']", "'lxml >=> 5'", "expected a requirement"),
    of_step("env={'HF_TOKEN': 'x'}", "env=", "expected a tuple of texts"),
    of_step("env=('HF TOKEN',)", "'HF TOKEN'", "expected"),
    of_step("timeout_s='60'", "timeout_s='60'", "expected seconds above 0"),
    of_step("timeout_s=0", "timeout_s=0", "expected seconds above 0"),
    of_step("progress_timeout_s=datetime.timedelta(minutes=1)", "progress_timeout_s=", "expected seconds above 0"),
    of_step("max_partitions_per_run=0", "max_partitions_per_run=0", "expected 1 or more"),
    of_step("own_job='yes'", "own_job='yes'", "expected True, False or None"),
    of_step("resumable='no'", "resumable='no'", "expected True or False"),
    of_step("description=5", "description=5", "expected a text"),
    of_step("key='a/b'", "key='a/b'", "expected a tuple"),
    of_step("key=()", "key=()", "expected"),
    of_step("key=('a', 5)", "key=('a', 5)", "expected"),
    of_step("tags='nano'", "tags='nano'", "expected a dict of texts"),
    of_step("tags={'a b': 'x'}", "'a b'", "expected at most 63 letters"),
    of_step("tags={'lr': 0.1}", "0.1", "expected a text"),
    of_step("owners='me@example.org'", "owners='me@example.org'", "expected a tuple"),
    of_step("owners=('me',)", "'me'", "expected an address"),
    of_step("kinds='python'", "kinds='python'", "expected a tuple"),
    of_step("override_output_path=''", "override_output_path=''", "expected a path"),
    of_step("override_output_path='../x'", "'../x'", "'..' leaves its folder"),
    of_step("override_output_path=Path('x')", "override_output_path=PosixPath('x')", "expected a path"),
    of_step("expectations=expect('n', at_least=1)", "expectations=", "expected a list of expect()"),
    of_step("expectations=['n > 5']", "'n > 5'", "expected a list of expect()"),
    of_step("expectations=[expect('n')]", "expect('n') has no bound", "at_least="),
    of_step("expectations=[expect(5, at_least=1)]", "5", "expected the name of a number"),
    of_step("expectations=[expect('n', at_least='1')]", "at_least='1'", "expected a number"),
    of_step("expectations=[expect('n', at_least=2, at_most=1)]", "at_least=2", "at_most=1"),
    of_step("expectations=[expect('n', minimum=1)]", "expect has no argument 'minimum'", "at_least"),
    of_step("expectations=[expect('n', at_least=1), expect('n', at_most=5)]", "'n'", "expected each once"),
]
CONFIGS = [
    of_config("cuont=5", "Config has no argument 'cuont'", "Did you mean count"),
    of_config("count='5'", "config.count is '5', a str", "expected int"),
    of_config("count=output_path_of(a)", "config.count is InputName('raw/a', None)", "expected int"),
    of_config("count=versioned(2.5)", "config.count is 2.5", "expected int"),
    of_config("count=versioned(versioned(2))", "is versioned already", "Wrap the value once"),
    of_config("count=versioned(a)", "Step('raw/a')", "Pass it without versioned()"),
    of_config("names='abc'", "config.names is 'abc', a str", "expected list[str]"),
    of_config("names=['a', 5]", "config.names[1] is 5, a int", "expected str"),
    of_config("weights={'a': '0.5'}", "config.weights['a'] is '0.5'", "expected float"),
    of_config("weights=[0.5]", "config.weights is [0.5]", "expected Mapping[str, float]"),
    of_config("size=(1, 2, 3)", "config.size is (1, 2, 3)", "of 2 items"),
    of_config("share='half'", "config.share is 'half'", "expected float | None"),
    of_config("mode='fats'", "config.mode is 'fats'", "expected one of 'fast', 'exact'", "Did you mean 'fast'"),
    of_config("kind='fast'", "config.kind is 'fast'", "expected Mode"),
    of_config("folder=5", "config.folder is 5", "expected Path"),
    of_config("inner={'rate': 0.1}", "config.inner is {'rate': 0.1}", "expected Inner"),
    of_config("inner=Inner(rate='x')", "config.inner.rate is 'x'", "expected float", "Inner"),
    of_config("inners=[Inner(layers=[1, 'b'])]", "config.inners[0].layers[1] is 'b'", "expected int"),
    of_config("input_path=f'{a}/x'", "Step('raw/a') is formatted into a text"),
    of_config("inputs={'a': f'{output_path_of(a)}/x'}", "InputName('raw/a', None)", "output_path_of(step, 'x')"),
    of_config("input_path=output_path_of('raw/a')", "output_path_of('raw/a')", "needs a Step"),
    of_config("input_path=output_path_of(a, '/x')", "'/x'", "expected a path below"),
    of_config("input_path=output_path_of(a, '../x')", "'../x'", "'..' leaves its folder"),
    of_config("input_path=output_path_of(a, 5)", "5", "expected a path below"),
    of_config("input_path=a / 5", "5", "expected a path below"),
    of_config("input_path=output_path_of(a, nmae='x')", "output_path_of has no argument 'nmae'", "name"),
    of_config("input_path=output_path_of(days)", "reads 'raw/days', which has partitions", "output_path_of(step, part"),
    of_config("input_path=output_path_of(langs, partition='fr')", "no partition 'fr'", "'en', 'de'"),
    of_config("input_path=output_path_of(a, partition='en')", "the partition 'en'", "which has no partitions="),
    of_config("input_path=this_partition()", "this_partition()", "Pass partitions= to the step"),
    of_config("input_path=this_partition(form='x')", "form='x'", "{partition}"),
    of_config("input_path=InputName.hardcoded('../x')", "'../x'", "'..' leaves its folder"),
    of_config("input_path=InputName.hardcoded(5)", "hardcoded(5) has no path", "expected a text"),
    of_config("input_path=this_output_path('/x')", "'/x'", "expected a path below"),
    of_config("input_path=mirrored('raw/x', budget_gb='10')", "budget_gb='10'", "expected a number of GB"),
    of_config("inputs=partitions_of(a)", "Step('raw/a')", "needs a step with partitions="),
    of_plain("{1, 2}", "config.value is a set", "sorted tuple"),
    of_plain("math.nan", "nan", "finite number or None"),
    of_plain("versioned(math.inf)", "inf", "finite"),
    of_plain("b'abc'", "b'abc' of type bytes", "Use None, bool, int"),
    of_plain("lambda: 1", "function", "Use None, bool, int"),
    of_plain("datetime.date(2026, 1, 1)", "datetime.date(2026, 1, 1)", "Use None, bool, int"),
    of_plain("versioned(datetime.datetime(2026, 1, 1))", "datetime.datetime(2026, 1, 1", "Use None, bool, int"),
    of_plain("__import__('numpy').arange(3)", "array([0, 1, 2])", "Use None, bool, int"),
    of_plain("__import__('numpy').int64(3)", "of type int64", "Use None, bool, int"),
    of_plain("{1: 'a'}", "the key 1", "Use texts as keys"),
    of_plain("versioned({1: 'a', 'b': 2})", "the keys [1, 'b']", "Use texts"),
    of_plain("Inner", "Inner", "Use None, bool, int"),
    of_plain("range(3)", "range(0, 3)", "Use None, bool, int"),
    of_plain("list(range(20_000)) + [object()]", "value[20000]", "Use None, bool, int"),
    of(
        "deep = []\nfor _ in range(200):\n    deep = [deep]\n"
        'b = Step(name="raw/b", fn=make, config=Plain(value=deep))  # here',
        "nested more than 100 levels deep",
        "Write deep values to a file",
        name="a config that is too deep",
    ),
    of(
        "@dataclass(frozen=True)\nclass Link:\n    next: 'Link | None' = None\n"
        "link = None\nfor _ in range(5000):\n    link = Link(link)\n"
        'b = Step(name="raw/b", fn=make, config=Plain(value=link))  # here',
        "nested more than 100 levels deep",
        "Write deep values to a file",
        name="dataclasses that are too deep",
    ),
]
