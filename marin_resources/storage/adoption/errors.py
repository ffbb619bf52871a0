"""What an adoption is refused with."""


class AdoptionError(RuntimeError):
    """The data cannot be adopted, or an adoption cannot be undone: one sentence."""
