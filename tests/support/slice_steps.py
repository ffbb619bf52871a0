"""Functions of steps that run on all hosts of a slice, and tell a test what they see. Each is a script of its own."""

STEPS = '''
import json, os, time
from pathlib import Path

from marin_resources.step_api.hosts import coordinator_address, host_count, host_index, slice_count, slice_index
from marin_resources.step_api.progress import checkpoint_requested, report_checkpoint, report_resumed, report_step


def place():
    return {
        "index": host_index(), "count": host_count(), "coordinator": coordinator_address(),
        "slice": os.environ["TPU_NAME"], "worker": int(os.environ["TPU_WORKER_ID"]), "pid": os.getpid(),
        "slices": slice_count(), "of": slice_index(),
        "megascale": {name: value for name, value in os.environ.items() if name.startswith("MEGASCALE_")},
    }


def say(config, name):
    """Tell the test that this host came to a point."""
    path = Path(config["told"]) / f"{name}-{host_index()}"
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(place()))
    beside.rename(path)


def wait_for(config, name):
    while not (Path(config["told"]) / name).exists():
        time.sleep(0.05)


def report(config):
    say(config, "here")
    print("host", host_index(), "is here", flush=True)
    for index in range(host_count()):  # all hosts at once, as a collective operation needs them
        wait_for(config, f"here-{index}")
    return place()


def work(config):
    """The first time, go on until something happens; the next time, return what was there."""
    folder = Path(config["output_path"])
    found = sorted(path.name for path in folder.glob("part-*"))
    (folder / f"part-{host_index()}").write_text("done")
    if (Path(config["told"]) / "again").exists():
        say(config, "second")
        return {"found": found, **place()}
    say(config, "first")
    while True:
        time.sleep(0.05)


def wake_late(config):
    """The first time, write and return only when the test says so; the next time, at once."""
    if (Path(config["told"]) / "again").exists():
        Path(config["output_path"], "part").write_text("in time")
        return place()
    say(config, "first")
    wait_for(config, "awake")
    say(config, "late")
    return {"late": True}


def fail_on(config):
    """Raise on one host, while the others work."""
    say(config, "here")
    if host_index() == config["host"]:
        raise {"ValueError": ValueError, "MemoryError": MemoryError, "RuntimeError": RuntimeError}[config["kind"]](
            config["text"]
        )
    while True:
        time.sleep(0.05)


def crash_on(config):
    """Do three steps, and let one host abort, while the others work."""
    for step in range(3):
        report_step(step)
    if host_index() == config["host"]:
        os.abort()
    while True:
        time.sleep(0.05)


def abort_with_peer(config):
    """Host 0 aborts when the test says so, in each try until the test lets a try end."""
    number = 1 + sum((Path(config["told"]) / f"try-{before}-{host_index()}").exists() for before in (1, 2))
    if (Path(config["told"]) / "again").exists():
        return place()
    say(config, f"try-{number}")
    wait_for(config, f"abort-{number}" if host_index() == 0 else "never")
    os.abort()


def hang_on(config):
    """The first time, one host does a step less than the others, and all of them wait for it."""
    report_resumed(None)
    report_step(1)
    if (Path(config["told"]) / "again").exists():
        return place()
    if host_index() != config["host"]:
        report_step(2)
    say(config, "first")
    wait_for(config, "never")


def save_when_asked(config):
    """Work step by step, and save when that is requested. The second time, return where it went on from."""
    saved = Path(config["output_path"], "saved")
    found = int(saved.read_text()) if saved.exists() else None
    report_resumed(found)
    step = found or 0
    while True:
        step += 1
        report_step(step)
        if found is not None:
            return {"found": found, **place()}
        if step == 2:
            say(config, "first")
        if host_index() == 0 and checkpoint_requested() and not saved.exists():
            beside = saved.with_suffix(".new")
            beside.write_text(str(step))
            beside.rename(saved)
            report_checkpoint(step)
        time.sleep(0.05)


def take_more(config):
    """Work step by step, with a checkpoint after the third and when one is asked for, until there are two slices."""
    saved = Path(config["output_path"], "saved")
    found = int(saved.read_text()) if saved.exists() else None
    report_resumed(found)
    if slice_count() == 2:
        return {"found": found, **place()}
    step, answered = found or 0, False
    while True:
        step += 1
        report_step(step)
        requested = checkpoint_requested()
        if host_index() == 0 and (step == 3 or (requested and not answered)):
            beside = saved.with_suffix(".new")
            beside.write_text(str(step))
            beside.rename(saved)
            report_checkpoint(step)
            answered = requested
            say(config, "saved")
        time.sleep(0.05)


def busy_on(config):
    """A slice whose devices are held by another process."""
    say(config, os.environ["TPU_NAME"])
    if os.environ["TPU_NAME"] == config["bad"] and host_index() == 1:
        raise RuntimeError("Unable to initialize backend 'tpu': ABORTED: The TPU is already in use by process 1.")
    return place()
'''
