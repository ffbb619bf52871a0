"""The process's own log handlers stay as they are during a run of Levanter's."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from rigging.log_setup import configure_logging

LOG_LEVELS = {
    # It warns that a cache does not name the tokenizer's path. Ours name its digest, which check_inputs compares.
    "levanter.store.cache": logging.ERROR,
    "fray.device_flops": logging.ERROR,  # it warns that it knows no speed of a CPU
    "tqdm_loggable.tqdm_logging": logging.ERROR,  # progress bars as log lines; `Progress` logs the progress
    "jax.experimental.array_serialization.serialization": logging.WARNING,  # six lines a checkpoint
    "jax._src.xla_bridge": logging.WARNING,  # the devices that it looked for and did not find
}
REPEATED = {
    "levanter.tensorstore_serialization": "Unknown leaf type <class 'NoneType'>",  # one for each None of the state
    "levanter.checkpoint": "Saving checkpoint",  # three lines before "Saved checkpoint"
}
"""Logger -> the beginning of messages that come many times and tell nothing. Its other messages stay."""


class _WithoutMessage(logging.Filter):
    """Leaves out the messages that begin with a text."""

    def __init__(self, begin: str) -> None:
        super().__init__()
        self._begin = begin

    def filter(self, record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith(self._begin)


@contextmanager
def logging_preserved() -> Iterator[None]:
    """Keep the process's log handlers: Levanter's set-up removes them at first, and adds a file handler each time."""
    root = logging.getLogger()
    loggers = (root, *map(logging.getLogger, LOG_LEVELS))
    handlers, levels = root.handlers[:], {logger: logger.level for logger in loggers}
    configure_logging(root.level)
    root.handlers[:] = handlers
    for name, level in LOG_LEVELS.items():
        logging.getLogger(name).setLevel(level)
    filters = {logging.getLogger(name): _WithoutMessage(begin) for name, begin in REPEATED.items()}
    for logger, repeated in filters.items():
        logger.addFilter(repeated)
    try:
        yield
    finally:
        for logger, repeated in filters.items():
            logger.removeFilter(repeated)
        for added in [handler for handler in root.handlers if handler not in handlers]:
            root.removeHandler(added)
            added.close()
        for logger, level in levels.items():
            logger.setLevel(level)
