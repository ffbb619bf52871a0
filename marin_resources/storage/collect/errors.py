"""Why an output is not collected, or its data are not removed."""


class KeptError(RuntimeError):
    """The output stays as it is. The message is one phrase, the reason."""
