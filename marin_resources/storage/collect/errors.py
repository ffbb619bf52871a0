"""The error for an output that is not collected, or whose data are not removed."""


class KeptError(RuntimeError):
    """The output stays as it is. The message is one phrase, the reason."""
