"""Run a command on the cluster, with the code of this working directory: `marin cluster submit -- python x.py --n 3`.

Its output is shown until it has ended, and its exit code becomes this command's. Ctrl-C leaves it running.

--env names a variable of the node: its value is read there and is not part of the submission. --set gives a value,
which all users of the cluster can read.
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
import shlex
from typing import TYPE_CHECKING, Any

from marin_assets.cli.verbs.cluster.support.connection import add_cluster, call_cluster, settings_from, user_at_host
from marin_assets.run.options import OptionError, OptionParser
from marin_assets.run.output import print_line, print_stderr

if TYPE_CHECKING:
    from marin_resources.ray_tpu.cluster.api.jobs_api import JobInfo, JobsApi
    from marin_resources.ray_tpu.cluster.code.code import Code

SECRET = re.compile(r"(TOKEN|SECRET|PASSWORD|PASSWD|API_KEY|ACCESS_KEY|PRIVATE_KEY|CREDENTIALS?)$", re.IGNORECASE)
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")


def add_options(parser: OptionParser) -> None:
    parser.takes_command = True
    parser.usage = "marin cluster submit [options] -- COMMAND …"
    add_cluster(parser)
    parser.add_argument("--name", metavar="N", help="the job's id begins with it (default: the command's name)")
    parser.add_argument("--cpus", type=float, default=1.0, metavar="N", help="CPUs to reserve on a node (default: 1)")
    parser.add_argument("--memory", type=float, metavar="GB", help="memory to reserve (default: none)")
    parser.add_argument("--extra", action="append", default=[], metavar="E", help="an extra of its Python")
    parser.add_argument("--env", action="append", default=[], metavar="NAME", help="a variable of the node")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a variable that all users can read"
    )
    parser.add_argument("--no-wait", action="store_true", help="print the job's id and exit")


def run(options: argparse.Namespace) -> int:
    from marin_resources.ray_tpu.cluster.code.python import python_for
    from marin_resources.ray_tpu.environment.extras import MissingRequirementError

    variables = _check(options)
    settings = settings_from(options)
    try:
        python = python_for("The command", options.extra, settings)
    except MissingRequirementError as error:
        raise OptionError(str(error)) from None
    job = f"{options.name or _name_of(options.command[0])}-{secrets.token_hex(4)}"
    submitted: list[str] = []

    async def submit(api: JobsApi) -> int:
        from marin_assets.cli.verbs.cluster.support.job_output import follow
        from marin_resources.ray_tpu.cluster.code.code import ship

        code = await ship(settings, api, (), None)
        await api.submit(**_request(job, code, python, variables, options))
        submitted.append(job)
        if options.no_wait:
            print_line(job)
            return 0
        print_stderr(f"job {job} on {settings.address}")
        return _exit_code(await follow(api, settings, job))

    try:
        return call_cluster(settings, submit)
    except KeyboardInterrupt:
        if submitted:
            print_stderr(_detached_sentence(job, options.cluster))
        return 130


def _request(
    job: str, code: Code, python: str, variables: dict[str, str], options: argparse.Namespace
) -> dict[str, Any]:
    names = ["--env", *options.env] if options.env else []
    command = code.command(python, "marin_resources.ray_tpu.job.command", *names, "--", *options.command)
    env_vars = {"env_vars": variables} if variables else {}
    memory_bytes = None if options.memory is None else int(options.memory * 1e9)
    return {
        "submission_id": job,
        "entrypoint": _with_tools_of(python) + command,
        "runtime_env": {**code.runtime_env(), **env_vars},
        "metadata": {"marin/user": user_at_host()},
        "num_cpus": options.cpus,
        "memory_bytes": memory_bytes,
    }


def _with_tools_of(python: str) -> str:
    """Put the environment's `python` first in the command's PATH."""
    folder = os.path.dirname(python)
    return f'export PATH={shlex.quote(folder)}:"$PATH" && ' if folder else ""


def _check(options: argparse.Namespace) -> dict[str, str]:
    """Return the variables of --set. Raise OptionError if the options cannot be submitted."""
    verb = "marin cluster submit"
    if not options.command or not options.command[0]:
        raise OptionError(f"{verb}: no command is given. Put it after --: {verb} -- python my_script.py")
    if not 0 <= options.cpus < float("inf"):
        raise OptionError(f"{verb}: --cpus is {options.cpus:g}, expected 0 or more.")
    if options.memory is not None and not 0 < options.memory < float("inf"):
        raise OptionError(f"{verb}: --memory is {options.memory:g}, expected GB above 0.")
    if options.name is not None and not NAME.fullmatch(options.name):
        raise OptionError(f"{verb}: --name is {options.name!r}, expected letters, digits, '-' and '_', 80 at most.")
    for name in options.env:
        if not VARIABLE.fullmatch(name):
            raise OptionError(f"{verb}: --env is not the name of a variable, expected letters, digits and '_' alone.")
    return dict(_variable(given) for given in options.set)


def _variable(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not equals or not VARIABLE.fullmatch(name):
        raise OptionError(f"marin cluster submit: --set has {name!r} for a name, expected NAME=VALUE.")
    if SECRET.search(name):
        raise OptionError(
            f"marin cluster submit: --set {name} would show its value to all users of the cluster. Set it on the "
            f"node, and pass --env {name}."
        )
    return name, value


def _name_of(command: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]+", "-", os.path.basename(command)).strip("-")[:40] or "command"


def _detached_sentence(job: str, cluster: str | None) -> str:
    where = f" --cluster {shlex.quote(cluster)}" if cluster else ""
    return (
        f"Job {job} keeps running. Watch it: marin cluster logs {job} --follow{where}. "
        f"End it: marin cluster stop-job {job}{where}"
    )


def _exit_code(info: JobInfo) -> int:
    from marin_resources.ray_tpu.cluster.api.jobs_api import JobStatus

    if info.status is JobStatus.SUCCEEDED:
        return 0
    why = f"exit code {info.exit_code}" if info.exit_code is not None else info.message.strip().partition("\n")[0]
    print_stderr(f"job {info.submission_id} has ended: {info.status}{f' ({why})' if why else ''}")
    code = info.exit_code or 1
    return code if code > 0 else 128 - code
