"""Every exception class of the product is a MarinError, or is listed here with the reason why it is not."""

from __future__ import annotations

import ast
import builtins
import pickle
from pathlib import Path

import pytest

from marin_resources.configuration.settings import SettingError
from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.types.errors import InvalidInputError, MarinError
from marin_resources.types.versioned_json import ControlFileError

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("marin_assets", "marin_resources", "marin_sensors")
BASES = {"marin_resources.types.errors.MarinError", "marin_resources.types.errors.InvalidInputError"}
CONTROL_FLOW = "it directs the flow of control, and its catcher shows no text of it"
PHRASE = "its text is a phrase, which the sentence of its catcher takes in"
NO_SENTENCES = {
    "marin_assets.documents.frames.layout.DamagedIndexError": PHRASE,
    "marin_assets.documents.xml.parse.BadXmlError": PHRASE,
    "marin_assets.inference.completion_fields.FieldError": "a script of an environment without this project raises it",
    "marin_assets.run.output.ReaderGoneError": CONTROL_FLOW,
    "marin_assets.catalog.script._Reached": CONTROL_FLOW,
    "marin_assets.stages.download.crawl.damage.CutError": PHRASE,
    "marin_assets.stages.download.stackexchange.posts.RowError": PHRASE,
    "marin_assets.stages.download.web.transfer.WrongChecksumError": PHRASE,
    "marin_assets.stages.download.fetch.guard.FetchFailure": PHRASE,
    "marin_assets.stages.download.warc.http_message.BodyTooLargeError": CONTROL_FLOW,
    "marin_assets.stages.download.warc.http_message.EncodingError": CONTROL_FLOW,
    "marin_assets.stages.download.web.faults.Fault": PHRASE,
    "marin_assets.stages.download.wiki.xml_head._AtFirstPage": CONTROL_FLOW,
    "marin_assets.stages.evaluate.lm_eval_tasks.task_requests._Built": CONTROL_FLOW,
    "marin_assets.stages.filter.words.spacy_chunks.TooManyAffixes": CONTROL_FLOW,
    "marin_assets.documents.chats.not_a_chat.NotAChat": "its text is the name by which the row is counted",
    "marin_assets.stages.train.rl.sampling.environment_process.EnvironmentFault": "its text is the counted reason",
    "marin_resources.host.http_request.OtherOriginError": "its text is the origin alone",
    "marin_resources.host.http_request.TooSlowError": PHRASE,
    "marin_resources.ray_tpu.backend.SubmissionLeftError": PHRASE,
    "marin_resources.ray_tpu.cluster.local.fake_slices._HostTimedOutError": CONTROL_FLOW,
    "marin_resources.ray_tpu.local.start._DaemonEndedError": PHRASE,
    "marin_resources.ray_tpu.shards.replicas._SilentNodeError": PHRASE,
    "marin_resources.ray_tpu.slices.host_exit.CodeGoneError": PHRASE,
    "marin_resources.ray_tpu.slices.host_exit.SilentHostError": PHRASE,
    "marin_resources.ray_tpu.slices.retries.TriesFailedError": "it carries the error of a step's function",
    "marin_resources.ray_tpu.worker.result._TooDeepError": CONTROL_FLOW,
    "marin_resources.ray_tpu.worker.run_task.ReportedError": "it carries the error of a step's function",
    "marin_resources.ray_tpu.worker.stop_signal.Stopped": CONTROL_FLOW,
    "marin_resources.storage.collect.errors.KeptError": PHRASE,
    "marin_resources.storage.output.late_writes.LateWriteError": PHRASE,
    "marin_resources.storage.output.restore.InputGoneError": PHRASE,
    "marin_resources.storage.transfer.locations.BucketUnreadableError": "its text is that of a library",
    "marin_sensors.deliveries.checksums.ChangedError": PHRASE,
}


def test_every_exception_class_derives_from_the_base_or_is_listed_with_its_reason() -> None:
    classes = _classes()
    exceptions = {name for name in classes if _ancestors(name, classes) & _BUILTIN or _is_foreign(name, classes)}
    others = {name for name in exceptions if not _ancestors(name, classes) & BASES} - BASES
    assert len(exceptions) > 100
    assert others == set(NO_SENTENCES)


@pytest.mark.parametrize("kind", [SettingError, ControlFileError])
def test_an_error_about_the_input_is_a_value_error_too(kind: type[MarinError]) -> None:
    assert issubclass(kind, InvalidInputError)
    assert issubclass(kind, ValueError)


def test_an_error_with_a_second_base_crosses_to_another_process() -> None:
    error = pickle.loads(pickle.dumps(UnavailableError("The store did not respond. Run again.")))
    assert isinstance(error, MarinError)
    assert isinstance(error, OSError)
    assert str(error) == "The store did not respond. Run again."


_BUILTIN = {name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)}


def _classes() -> dict[str, list[str]]:
    """Full name of each class of the packages -> full names of its bases, as the source has them."""
    classes: dict[str, list[str]] = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            tree = ast.parse(path.read_text())
            names = {
                alias.asname or alias.name: f"{node.module}.{alias.name}"
                for node in ast.walk(tree)
                if isinstance(node, ast.ImportFrom)
                for alias in node.names
            }
            defined = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
            names |= {node.name: f"{module}.{node.name}" for node in defined}
            for node in defined:
                bases = [ast.unparse(base) for base in node.bases]
                classes[f"{module}.{node.name}"] = [names.get(base, base) for base in bases]
    return classes


def _ancestors(name: str, classes: dict[str, list[str]]) -> set[str]:
    bases = classes.get(name, [])
    return set(bases).union(*(_ancestors(base, classes) for base in bases if base != name))


def _is_foreign(name: str, classes: dict[str, list[str]]) -> bool:
    """Whether it derives from an exception of a library, by its name."""
    return any(base.endswith(("Error", "Exception", "Interrupt")) for base in _ancestors(name, classes))
