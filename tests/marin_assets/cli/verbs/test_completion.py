"""`marin completion`, in the shells themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from running import ROOT

from marin_assets.cli.verbs.completion import SHELLS

Marin = Callable[..., tuple[int, str, str]]
Shell = Callable[[str, str], str]
BASH = """
eval "$(<{script})"
complete -p marin
complete_words() {{
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
    _shtab_marin marin "${{COMP_WORDS[-1]}}" "${{COMP_WORDS[-2]}}"
    echo "$*: ${{COMPREPLY[*]}}"
}}
complete_words marin mat
complete_words marin cluster j
complete_words marin list --ex
complete_words marin list two_steps/data two_steps/s
complete_words marin list --script {folder}/comp
complete_words marin partitions --state f
"""
FISH = """
source {script}
complete -C "marin mat"
complete -C "marin cluster j"
complete -C "marin list --ex"
complete -C "marin list two_steps/s"
"""
ZSH = """
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'autoload -Uz compinit; compinit -u -d {folder}/dump; eval "$(<{script})"'
zpty -w shell 'show() {{ zle -I; print -r -- "<$BUFFER>"; BUFFER=; }}; zle -N show; bindkey "^T" show'
for words in 'marin mat' 'marin cluster j' 'marin list --ex' 'marin list two_steps/s'; do
    zpty -w -n shell "$words"$'\\t\\C-t'
    zpty -r shell seen '*<marin*>*'
    print -r -- "${{${{seen##*<}}%%>*}}"
done
zpty -d shell
"""


@pytest.fixture
def shell(marin: Marin, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Run lines in a shell that has the completion's script; they have {script} and {folder}. Return their output."""
    command = tmp_path / "bin" / "marin"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m marin_assets.cli "$@"\n')
    command.chmod(0o755)

    def run(name: str, lines: str) -> str:
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed")
        script = tmp_path / f"completion.{name}"
        script.write_text(marin("completion", name)[1])
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{command.parent}:{os.environ['PATH']}"}
        environ |= {"HOME": str(tmp_path), "TERM": "xterm"}
        shown = lines.format(script=script, folder=tmp_path)
        ended = subprocess.run([name, "-c", shown], env=environ, capture_output=True, text=True, check=True, timeout=60)
        assert ended.stderr == ""
        return ended.stdout

    return run


def test_bash_completes_verbs_options_names_of_steps_and_files(shell: Shell, tmp_path: Path) -> None:
    assert shell("bash", BASH).splitlines() == [
        "complete -o bashdefault -F _shtab_marin marin",
        "marin mat: materialize",
        "marin cluster j: jobs",
        "marin list --ex: --experiment",
        "marin list two_steps/data two_steps/s: two_steps/stats",
        f"marin list --script {tmp_path}/comp: {tmp_path}/completion.bash",
        "marin partitions --state f: failed",
    ]


@pytest.mark.long
def test_fish_completes_them_too(shell: Shell) -> None:
    words = [line.split("\t")[0] for line in shell("fish", FISH).splitlines()]
    assert words == ["materialize", "jobs", "--experiment", "two_steps/stats"]


@pytest.mark.long
def test_zsh_completes_them_too(shell: Shell) -> None:
    words = [line.split()[-1] for line in shell("zsh", ZSH).splitlines()]
    assert words == ["materialize", "jobs", "--experiment", "two_steps/stats"]


def test_another_shell_is_one_sentence(marin: Marin) -> None:
    code, out, err = marin("completion", "tcsh")
    assert (code, out) == (2, "")
    assert all(repr(shell) in err for shell in SHELLS)
