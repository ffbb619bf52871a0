"""`marin doctor` names each mistake in one sentence, with what to do, and finds nothing wrong where nothing is."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import object_stores
import pytest
from bucket_for_tests import BucketForTests
from dagster_homes import laptop_home
from moto_s3 import CARELESS
from stub_dashboard import StubDashboard, stub_dashboard
from webhooks import SECRET, webhook_on_loopback

from marin_assets.cli.main import main
from marin_resources.configuration.settings import project_root


@dataclass
class Machine:
    """A machine whose settings are right, until a mistake is made."""

    env: Callable[[str, str], None]
    folder: Path
    home: Path
    bucket: BucketForTests
    dashboard: StubDashboard

    def use_bucket(self) -> None:
        self.env("MARIN_PREFIX", self.bucket.prefix)

    def use_dashboard(self) -> None:
        self.env("MARIN_CLUSTER", self.dashboard.url)

    def file(self, name: str, text: str, mode: int = 0o644) -> str:
        path = self.folder / name
        path.write_text(text)
        path.chmod(mode)
        return str(path)


@pytest.fixture
def machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gcs_bucket: BucketForTests, experiment: str
) -> Iterator[Machine]:
    home = laptop_home(tmp_path / "dagster")
    code = tmp_path / "code"
    code.mkdir()
    (code / "mine.py").write_text("")
    monkeypatch.setenv("MARIN_PREFIX", str(tmp_path / "outputs"))
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    monkeypatch.setenv("MARIN_CLUSTER_WORKING_DIR", str(code))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path.parent))  # the process that loads the code location finds it there too
    monkeypatch.setenv("MARIN_EXPERIMENTS", f"{tmp_path.name}.experiments")
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    with stub_dashboard() as dashboard:
        yield Machine(monkeypatch.setenv, tmp_path, home, gcs_bucket, dashboard)


def a_typo(machine: Machine) -> None:
    machine.env("MARIN_PREFX", "gs://bucket/x")


def a_file_as_prefix(machine: Machine) -> None:
    machine.env("MARIN_PREFIX", machine.file("notes.txt", "x"))


def an_unknown_scheme(machine: Machine) -> None:
    machine.env("MARIN_PREFIX", "gss://bucket/x")


def a_store_without_conditions(machine: Machine) -> None:
    machine.env("MARIN_PREFIX", "memory://x")


def a_folder_that_cannot_be_made(machine: Machine) -> None:
    machine.env("MARIN_PREFIX", "/proc/1/nowhere/outputs")


def a_bucket_that_is_not_there(machine: Machine) -> None:
    machine.env("MARIN_PREFIX", f"gs://{machine.bucket.name}-not/x")


def no_right_to_write(machine: Machine) -> None:
    machine.use_bucket()
    machine.bucket.fail(method="POST", status=403, times=None)


def no_right_to_remove(machine: Machine) -> None:
    machine.use_bucket()
    machine.bucket.fail(method="DELETE", status=403, times=None)


def a_rule_that_deletes(machine: Machine) -> None:
    machine.use_bucket()
    machine.bucket.change(lifecycle={"rule": [{"action": {"type": "Delete"}, "condition": {"age": 30}}]})


def a_retention_policy(machine: Machine) -> None:
    machine.use_bucket()
    machine.bucket.change(retentionPolicy={"retentionPeriod": "86400"})


def a_store_that_ignores_conditions(machine: Machine) -> None:
    machine.env("MARIN_PREFIX", object_stores.s3_prefix(CARELESS))


def a_region_that_is_not_mounted(machine: Machine) -> None:
    own, other = machine.folder / "outputs", machine.folder / "not-mounted"
    machine.env("MARIN_MIRROR_PREFIXES", f"us-central2={own},eu-west4={other}")


def a_cluster_without_scheme(machine: Machine) -> None:
    machine.env("MARIN_CLUSTER", "10.0.0.5:8265")


def a_cluster_that_is_away(machine: Machine) -> None:
    machine.use_dashboard()
    machine.dashboard.server.shutdown()
    machine.dashboard.server.server_close()


def no_local_cluster(machine: Machine) -> None:
    machine.env("MARIN_CLUSTER", "local")
    machine.env("MARIN_STATE_DIR", str(machine.folder / "state"))


def a_token_that_all_may_read(machine: Machine) -> None:
    machine.use_dashboard()
    machine.env("RAY_AUTH_TOKEN_PATH", machine.file("token", "abc123", mode=0o644))


def a_wrong_token(machine: Machine) -> None:
    machine.use_dashboard()
    machine.dashboard.token = "the-right-one"
    machine.env("RAY_AUTH_TOKEN_PATH", machine.file("token", "the-wrong-one", mode=0o600))


def an_old_ray(machine: Machine) -> None:
    machine.use_dashboard()
    machine.dashboard.ray_version = "2.9.3"


def a_cluster_without_workers(machine: Machine) -> None:
    machine.use_dashboard()
    machine.dashboard.nodes = [{"memory": 1e9}]


def code_that_is_too_large(machine: Machine) -> None:
    machine.use_dashboard()
    with open(machine.folder / "code" / "checkpoint.bin", "wb") as file:
        file.truncate(200 * 2**20)


def a_clock_that_is_wrong(machine: Machine) -> None:
    machine.use_dashboard()
    machine.dashboard.ahead_s = 600


def a_dagster_yaml_that_is_no_yaml(machine: Machine) -> None:
    (machine.home / "dagster.yaml").write_text("storage: [postgres\n")


def a_database_that_is_not_installed(machine: Machine) -> None:
    (machine.home / "dagster.yaml").write_text(
        "run_storage: {module: no_such_database, class: PostgresRunStorage, config: {}}\n"
    )


def a_damaged_database(machine: Machine) -> None:
    with open(machine.home / "history/runs.db", "r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 40_000)


def tables_of_another_release(machine: Machine) -> None:
    with closing(sqlite3.connect(machine.home / "history/runs.db")) as database, database:
        database.execute("UPDATE alembic_version SET version_num = '6d366a41b4be'")


def a_queue_without_daemon(machine: Machine) -> None:
    with dg.DagsterInstance.from_config(str(machine.home)) as instance:
        instance.add_run(dg.DagsterRun("someone's", run_id="r" * 8))
    with closing(sqlite3.connect(machine.home / "history/runs.db")) as database, database:
        database.execute("UPDATE runs SET status = 'QUEUED'")


def a_home_that_is_a_file(machine: Machine) -> None:
    machine.env("DAGSTER_HOME", machine.file("home", "x"))


def a_webhook_that_is_no_url(machine: Machine) -> None:
    machine.env("MARIN_WEBHOOK_URL", f"hooks.example.org/{SECRET}")


def a_webhook_that_is_away(machine: Machine) -> None:
    with webhook_on_loopback() as hook:
        machine.env("MARIN_WEBHOOK_URL", hook.url)


def no_time_for_a_lease(machine: Machine) -> None:
    machine.env("MARIN_LEASE_TTL_S", "0")


def a_price_without_day(machine: Machine) -> None:
    machine.env("MARIN_DEVICE_PRICES", "v5p=4.2")


def a_negative_budget(machine: Machine) -> None:
    machine.env("MARIN_MIRROR_BUDGET_GB", "-1")


def a_ui_without_scheme(machine: Machine) -> None:
    machine.env("MARIN_UI_URL", "dagster.example.org")


def a_module_in_the_environment(machine: Machine) -> None:
    machine.env("DAGSTER_MODULE_NAME", "marin_assets.definitions")


def an_experiment_that_does_not_import(machine: Machine) -> None:
    (machine.folder / "experiments" / "mine.py").write_text("import lxlm\n")


def an_experiment_that_ends_the_process(machine: Machine) -> None:
    (machine.folder / "experiments" / "mine.py").write_text("import os\nos._exit(3)\n")


def an_experiment_that_dagster_refuses(machine: Machine) -> None:
    (machine.folder / "experiments" / "mine.py").write_text(
        "from toy_steps import toy\n\ndef steps():\n    step = toy('mine')\n"
        "    object.__setattr__(step, 'owners', ('nobody',))\n    return [step]\n"
    )


def a_file_of_sensors_that_does_not_import(machine: Machine) -> None:
    (machine.folder / "sensors").mkdir()
    (machine.folder / "sensors" / "mine.py").write_text("import lxlm\n")
    machine.env("MARIN_SENSORS", f"{machine.folder.name}.sensors")


def one_slash(machine: Machine) -> None:
    machine.env("MARIN_PREFIX", "gs:/bucket/x")


def a_variable_in_the_prefix(machine: Machine) -> None:
    machine.env("MARIN_PREFIX", "gs://${BUCKET}/x")


def a_bucket_that_no_store_has(machine: Machine) -> None:
    machine.env("MARIN_PREFIX", "gs://My Bucket/x")


def a_prefix_below_a_file(machine: Machine) -> None:
    machine.env("MARIN_PREFIX", machine.file("notes.txt", "x") + "/outputs")


def a_prefix_behind_a_link_to_nothing(machine: Machine) -> None:
    (machine.folder / "link").symlink_to("gone")
    machine.env("MARIN_PREFIX", str(machine.folder / "link"))


def no_folder_for_temporary_files(machine: Machine) -> None:
    machine.env("TMPDIR", "/no/such/folder")


def a_file_for_temporary_files(machine: Machine) -> None:
    machine.env("TMPDIR", machine.file("tmp", "x"))


def a_proxy_that_is_away(machine: Machine) -> None:
    machine.env("HTTPS_PROXY", f"http://me:{SECRET}@127.0.0.1:1")


def a_proxy_that_is_no_address(machine: Machine) -> None:
    machine.env("http_proxy", f"http://me:{SECRET}@proxy:port")


def a_home_that_cannot_be_made(machine: Machine) -> None:
    machine.env("DAGSTER_HOME", "/proc/1/nowhere/dagster")


def a_key_that_is_no_file(machine: Machine) -> None:
    of_google(machine)
    machine.env("GOOGLE_APPLICATION_CREDENTIALS", "/no/key.json")


def a_key_that_is_damaged(machine: Machine) -> None:
    of_google(machine)
    machine.env("GOOGLE_APPLICATION_CREDENTIALS", machine.file("key.json", "{"))


def a_key_of_something_else(machine: Machine) -> None:
    of_google(machine)
    machine.env("GOOGLE_APPLICATION_CREDENTIALS", machine.file("key.json", "{}"))


def of_google(machine: Machine) -> None:
    machine.env("STORAGE_EMULATOR_HOST", "")
    machine.env("MARIN_PREFIX", "gs://bucket/x")


def an_endpoint_without_scheme(machine: Machine) -> None:
    machine.env("MARIN_PREFIX", "s3://bucket/x")
    machine.env("AWS_ENDPOINT_URL", "127.0.0.1:1")


def an_endpoint_that_is_away(machine: Machine) -> None:
    machine.env("MARIN_PREFIX", "s3://bucket/x")
    machine.env("AWS_ENDPOINT_URL", "http://127.0.0.1:1")


def no_folder_of_secrets(machine: Machine) -> None:
    machine.env("MARIN_SECRETS_DIR", "/no/secrets")


def a_file_of_packages(machine: Machine) -> None:
    machine.env("MARIN_PACKAGES_DIR", machine.file("packages", "x"))


def a_python_that_is_none(machine: Machine) -> None:
    machine.env("MARIN_TORCH_PYTHON", "/no/bin/python")


def a_team(machine: Machine, url: str) -> None:
    (machine.home / "dagster.yaml").write_text((project_root() / "deploy/vm/dagster.yaml").read_text())
    machine.env("MARIN_POSTGRES_URL", url)


def no_address_of_the_database(machine: Machine) -> None:
    a_team(machine, "")


def a_database_that_is_down(machine: Machine) -> None:
    a_team(machine, f"postgresql://marin:{SECRET}@127.0.0.1:1/marin")


def a_database_on_an_unknown_host(machine: Machine) -> None:
    a_team(machine, f"postgresql://marin:{SECRET}@nohost.invalid/marin")


def a_password_with_letters_of_an_address(machine: Machine) -> None:
    a_team(machine, f"postgresql://marin:p@{SECRET}/w@127.0.0.1:5432/marin")


def a_port_of_the_database_that_is_none(machine: Machine) -> None:
    a_team(machine, f"postgresql://marin:{SECRET}@127.0.0.1:{SECRET}/marin")


def dagster(text: str) -> Callable[[Machine], None]:
    return lambda machine: (machine.home / "dagster.yaml").write_text(text) and None


def a_list_as_dagster_yaml(machine: Machine) -> None:
    dagster("- telemetry\n")(machine)


def a_tab_in_dagster_yaml(machine: Machine) -> None:
    dagster("telemetry:\n\tenabled: false\n")(machine)


def an_unknown_key_of_dagster(machine: Machine) -> None:
    dagster("telemetri: {enabled: false}\n")(machine)


def a_wrong_value_of_dagster(machine: Machine) -> None:
    dagster("run_monitoring: {enabled: maybe}\n")(machine)


def a_class_that_does_not_exist(machine: Machine) -> None:
    dagster("run_launcher: {module: marin_resources.dagster_fixes.run_launcher, class: LocalLauncher}\n")(machine)


def a_variable_of_dagster_that_is_not_set(machine: Machine) -> None:
    manager = "module: marin_resources.dagster_fixes.compute_logs.manager, class: StoredComputeLogManager"
    dagster(f"compute_logs: {{{manager}, config: {{prefix: {{env: MY_LOGS}}}}}}\n")(machine)


MISTAKES = {
    one_slash: (
        "prefix",
        "The prefix 'gs:/bucket/x' is no URL, which has '://' after its scheme. Use 'gs://bucket/x'.",
    ),
    a_variable_in_the_prefix: ("prefix", "has '${BUCKET}', which nothing replaces by the value of that variable."),
    a_bucket_that_no_store_has: ("prefix", "names the bucket 'My Bucket', which is no name of one"),
    a_prefix_below_a_file: ("prefix", "notes.txt' is a file. Set MARIN_PREFIX to a folder of yours."),
    a_prefix_behind_a_link_to_nothing: ("prefix", "is a link to 'gone', which does not exist. Set MARIN_PREFIX"),
    no_folder_for_temporary_files: ("disks", "TMPDIR is '/no/such/folder', and '/no/such/folder' does not exist"),
    a_file_for_temporary_files: ("disks", "tmp' is a file: what a step starts has no place for temporary files."),
    a_proxy_that_is_away: ("proxy", "HTTPS_PROXY names the proxy '127.0.0.1:1', which cannot be connected to ("),
    a_proxy_that_is_no_address: ("proxy", "http_proxy is no address of a proxy (its value may hold a password)"),
    a_key_that_is_no_file: (
        "prefix",
        "GOOGLE_APPLICATION_CREDENTIALS is '/no/key.json', which cannot be read (No such",
    ),
    a_key_that_is_damaged: ("prefix", "key.json', which is no JSON. Name the JSON file of a key"),
    a_key_of_something_else: ("prefix", "key.json', which holds no credentials of Google."),
    an_endpoint_without_scheme: ("prefix", "AWS_ENDPOINT_URL is '127.0.0.1:1', expected an address that begins with"),
    an_endpoint_that_is_away: ("prefix", "AWS_ENDPOINT_URL is 'http://127.0.0.1:1', which cannot be connected to ("),
    no_folder_of_secrets: ("variables", "MARIN_SECRETS_DIR is '/no/secrets', which is no folder."),
    a_file_of_packages: ("variables", "packages' is a file. Choose another folder, or unset it."),
    a_python_that_is_none: ("variables", "MARIN_TORCH_PYTHON is '/no/bin/python', which is no program."),
    a_home_that_cannot_be_made: ("dagster", "'/proc/1' cannot be written by this user. Set it to a folder of yours."),
    no_address_of_the_database: ("dagster", "reads the variable MARIN_POSTGRES_URL, which is not set. Set it"),
    a_database_that_is_down: ("dagster", "Start the server, or correct host and port in MARIN_POSTGRES_URL."),
    a_database_on_an_unknown_host: ("dagster", "Correct the host in MARIN_POSTGRES_URL."),
    a_password_with_letters_of_an_address: ("dagster", "Write the letters @ / : of a password as %40 %2F %3A."),
    a_port_of_the_database_that_is_none: ("dagster", "MARIN_POSTGRES_URL is no address of a database (it is not shown"),
    a_list_as_dagster_yaml: ("dagster", "dagster.yaml' holds a list, expected a table of settings."),
    a_tab_in_dagster_yaml: ("dagster", "dagster.yaml' cannot be read (line 2, column 1: found character"),
    an_unknown_key_of_dagster: ("dagster", "has the key 'telemetri', which Dagster does not know. Did you mean 'tele"),
    a_wrong_value_of_dagster: ("dagster", "has run_monitoring.enabled = 'maybe', expected a value of the type Bool."),
    a_class_that_does_not_exist: ("dagster", "The run_launcher of "),
    a_variable_of_dagster_that_is_not_set: ("dagster", "reads the variable MY_LOGS, which is not set."),
    a_typo: ("variables", "MARIN_PREFX is set, and nothing reads it. Did you mean MARIN_PREFIX?"),
    a_file_as_prefix: ("prefix", "is a file. Set MARIN_PREFIX to a folder or a URL."),
    an_unknown_scheme: ("prefix", "has the unknown scheme 'gss'. Use a folder, or a URL"),
    a_store_without_conditions: ("prefix", "is on a store without conditional writes"),
    a_folder_that_cannot_be_made: ("prefix", "cannot be created: '/proc/1' cannot be written by this user."),
    a_bucket_that_is_not_there: ("prefix", "does not exist. Create it, or correct MARIN_PREFIX."),
    no_right_to_write: ("prefix", "Files of the prefix cannot be written with the account of this machine"),
    no_right_to_remove: ("prefix", "Files of the prefix cannot be removed with the account of this machine"),
    a_rule_that_deletes: ("bucket", "deletes all objects (age 30): outputs, and what they were made of, vanish."),
    a_retention_policy: (
        "bucket",
        "retains each object for 86400 s (retentionPolicy): leases and statuses",
    ),
    a_store_that_ignores_conditions: ("prefix", "ignores the condition of a write"),
    a_region_that_is_not_mounted: ("regions", "eu-west4 is"),
    a_cluster_without_scheme: ("cluster", "MARIN_CLUSTER is '10.0.0.5:8265', expected 'local' or the dashboard's URL"),
    a_cluster_that_is_away: ("cluster", "cannot be connected to"),
    no_local_cluster: ("cluster", "No local cluster is up on this machine. Start it: marin cluster local up"),
    a_token_that_all_may_read: ("cluster", "is open to every user of this machine (mode 0644): chmod 600 it"),
    a_wrong_token: ("cluster", "token"),
    an_old_ray: ("cluster", "runs Ray '2.9.3', expected 2.60 or newer."),
    a_cluster_without_workers: ("cluster", "none of its 1 nodes has a CPU for a step. Start workers"),
    code_that_is_too_large: ("cluster", "checkpoint.bin"),
    a_clock_that_is_wrong: ("clocks", "s behind that of the cluster: times in records and logs are wrong"),
    a_dagster_yaml_that_is_no_yaml: ("dagster", "dagster.yaml' cannot be read (line 2, column 1: expected ',' or ']'"),
    a_database_that_is_not_installed: ("dagster", "no_such_database"),
    a_damaged_database: ("dagster", "runs.db' is damaged"),
    tables_of_another_release: (
        "dagster",
        "The tables of runs are those of an older release of Dagster (revision",
    ),
    a_queue_without_daemon: ("dagster", "1 queued runs and 0 backfills wait for a daemon, and none runs."),
    a_home_that_is_a_file: ("dagster", "and there is a file. Set it to a folder."),
    a_webhook_that_is_no_url: ("webhook", "The webhook's address is no URL. Expected https://…"),
    a_webhook_that_is_away: ("webhook", "The webhook at '127.0.0.1' does not answer ("),
    no_time_for_a_lease: ("variables", "MARIN_LEASE_TTL_S is '0', expected seconds above 0."),
    a_price_without_day: ("variables", "MARIN_DEVICE_PRICES has 'v5p=4.2', expected device=dollars@day"),
    a_negative_budget: ("regions", "MARIN_MIRROR_BUDGET_GB is '-1', expected a number of GB"),
    a_ui_without_scheme: (
        "variables",
        "MARIN_UI_URL is 'dagster.example.org', expected an address that begins with http:// or",
    ),
    a_module_in_the_environment: ("variables", "DAGSTER_MODULE_NAME is set, so `dagster dev` does not start."),
    an_experiment_that_does_not_import: (
        "experiments",
        "Experiment 'mine' is left out: ModuleNotFoundError: No module named",
    ),
    an_experiment_that_ends_the_process: ("experiments", "loads the code location ended with code 3: "),
    an_experiment_that_dagster_refuses: (
        "experiments",
        "Experiment 'mine' takes the code location down: DagsterInvalidDefinitionError: Invalid owner 'nobody'",
    ),
    a_file_of_sensors_that_does_not_import: ("experiments", "sensors.mine is left out: ModuleNotFoundError"),
}


def findings(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[dict[str, str]]]:
    code = main(["doctor", "--json", *arguments])
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_a_mistake_is_named(machine: Machine, mistake: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    subject, sentence = MISTAKES[mistake]
    mistake(machine)
    code, found = findings(capsys, subject)
    assert code == 1
    wrong = [one["sentence"] for one in found if one["state"] == "wrong"]
    assert any(sentence in one for one in wrong), found
    assert all("\n" not in one and not one.endswith("…") for one in wrong)
    assert SECRET not in str(found)


def test_nothing_is_wrong(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.use_bucket()
    machine.use_dashboard()
    with webhook_on_loopback() as hook:
        machine.env("MARIN_WEBHOOK_URL", hook.url)
        code, found = findings(capsys)
        assert hook.texts == []
    assert [one for one in found if one["state"] != "ok"] == []
    assert code == 0


def test_it_leaves_nothing_in_the_prefix(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    prefix = machine.folder / "outputs"
    findings(capsys, "prefix", "clocks")
    assert not prefix.exists()
    prefix.mkdir()
    findings(capsys, "prefix", "clocks")
    assert [path for path in prefix.rglob("*") if path.is_file()] == []


def test_a_test_message_is_sent_if_it_is_asked_for(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    with webhook_on_loopback() as hook:
        machine.env("MARIN_WEBHOOK_URL", hook.url)
        assert findings(capsys, "webhook", "--message")[0] == 0
        assert hook.texts == ["marin doctor: this is a test. Nothing is broken."]
        hook.status = 404
        code, found = findings(capsys, "webhook", "--message")
    assert code == 1
    assert "The webhook at '127.0.0.1' answered 404. Correct MARIN_WEBHOOK_URL." in str(found)


def test_people_read_a_table(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    a_typo(machine)
    assert main(["doctor", "variables"]) == 1
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first.split(maxsplit=2) == ["wrong", *MISTAKES[a_typo]]
    assert last == "1 wrong, 0 warnings, 2 ok"


def test_one_mistake_that_stops_several_looks_is_said_once(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    one_slash(machine)
    code, found = findings(capsys)
    assert (code, [one["subject"] for one in found if one["state"] != "ok"]) == (1, ["prefix"])


def test_an_unknown_subject_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "clock"]) == 2
    assert "got the subject 'clock', expected some of variables, packages, proxy, prefix," in capsys.readouterr().err
