"""Process trees of many shapes, as functions of steps leave them: `start_all(folder, token)`.

Each process that shall be gone later has the token in its command line, or its id in a file of the folder.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil

SLEEP = "import time; time.sleep(600)"
DEAF = "import signal; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; " + SLEEP
AGAIN = "import subprocess, sys; [subprocess.run([sys.executable, '-c', sys.argv[2], sys.argv[1]]) for _ in range(99)]"
MOVES = "import os, time\nwhile True:\n    if os.fork(): os._exit(0)\n    os.setsid()\n    time.sleep(0.05)"


def start_all(folder: str, token: str) -> int:
    """Start one tree of each shape; return their number when all processes run."""
    for shape in SHAPES.values():
        shape(Shape(Path(folder), token))
    return len(SHAPES)


def alive(folder: Path, token: str) -> list[str]:
    """The processes that are left, by their command lines or their files."""
    by_token = [
        " ".join(each.info["cmdline"])
        for each in psutil.process_iter(["cmdline", "status"])
        if token in (each.info["cmdline"] or []) and each.info["status"] != psutil.STATUS_ZOMBIE
    ]
    return by_token + [file.name for file in folder.glob("*.pid") if _runs(int(file.read_text()))]


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Shape:
    def __init__(self, folder: Path, token: str) -> None:
        self.folder, self.token = folder, token

    def command(self, code: str = SLEEP, *more: str) -> list[str]:
        return [sys.executable, "-c", code, self.token, *more]

    def popen(self, code: str = SLEEP, *more: str, **options: object) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self.command(code, *more), **options)  # type: ignore[call-overload,no-any-return]

    def fork(self, name: str, *generations: Callable[[], object]) -> None:
        """Fork once for each generation, which does this; all but the last end. The last one's id is in a file."""
        if (child := os.fork()) > 0:
            os.waitpid(child, 0) if len(generations) > 1 else None
            return
        generations[0]()
        if len(generations) > 1:
            self.fork(name, *generations[1:])
        else:
            (self.folder / f"{name}.tmp").write_text(str(os.getpid()))
            (self.folder / f"{name}.tmp").rename(self.folder / f"{name}.pid")
            time.sleep(600)
        os._exit(0)


def _close_all() -> None:
    os.chdir("/")
    os.closerange(0, 3)


def _nothing() -> None:
    return


def _from_a_thread(shape: Shape) -> None:
    thread = threading.Thread(target=shape.popen)
    thread.start()
    thread.join()


def _shell(line: str) -> Callable[[Shape], object]:
    return lambda shape: subprocess.run(["sh", "-c", line, "sh", *shape.command()], check=True)


def _chain(length: int) -> str:
    code = SLEEP
    for _ in range(length):
        code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}, sys.argv[1]])"
    return code


SHAPES: dict[str, Callable[[Shape], object]] = {
    "a child": lambda shape: shape.popen(),
    "a child in a session of its own": lambda shape: shape.popen(start_new_session=True),
    "a child in a group of its own": lambda shape: shape.popen(process_group=0),
    "a child that ignores signals": lambda shape: shape.popen(DEAF),
    "a child that is stopped": lambda shape: shape.popen().send_signal(signal.SIGSTOP),
    "a child without environment": lambda shape: shape.popen(env={}),
    "a child of a thread that has ended": _from_a_thread,
    "a chain": lambda shape: shape.popen(_chain(4)),
    "a child that starts it again": lambda shape: shape.popen(AGAIN, SLEEP),
    "a fan": lambda shape: [shape.popen() for _ in range(10)],
    "of a shell that has ended": _shell('"$@" &'),
    "of a shell, in a session of its own": _shell('setsid "$@" &'),
    "of a shell, without hangup": _shell('nohup "$@" >/dev/null 2>&1 &'),
    "of a shell of a shell": _shell('sh -c \'"$@" &\' sh "$@" &'),
    "forked": lambda shape: shape.fork("forked", _nothing),
    "forked twice": lambda shape: shape.fork("forked-twice", _nothing, _nothing),
    "a daemon": lambda shape: shape.fork("daemon", os.setsid, _nothing),
    "a daemon without files": lambda shape: shape.fork("closed", os.setsid, _close_all),
    "a daemon of a daemon": lambda shape: shape.fork("daemons", os.setsid, _nothing, os.setsid, _nothing),
    "one that forks and ends all the time": lambda shape: shape.popen(MOVES),
}
