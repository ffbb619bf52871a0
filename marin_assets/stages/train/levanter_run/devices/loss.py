"""The loss by XLA on every device, so that a training begins soon and its numbers do not depend on time.

On a GPU, Levanter tries a kernel of its own before XLA's. When the training is compiled, it chooses the block of the
vocabulary by the time that each takes to compile: the order of the sums, and so the weights, would depend on the clock.
In bfloat16 only a block of 64 tokens fits, and each block is a part of the program: 2,004 with the vocabulary of
Llama 3. To compile that loss on a CPU took 9.7 CPU-seconds with 4,096 tokens, 18.7 with 8,192, and with 32,000 it did
not end in 2 minutes; XLA's took 0.5 with 128,256.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from levanter.kernels.pallas.fused_cross_entropy_loss.api import IMPLEMENTATIONS

OF_A_GPU = "pallas_gpu"


@contextmanager
def loss_by_xla() -> Iterator[None]:
    """Leave Levanter the choice between XLA's loss and that of a TPU, while the block runs."""
    kernel = IMPLEMENTATIONS.pop(OF_A_GPU, None)
    try:
        yield
    finally:
        if kernel is not None:
            IMPLEMENTATIONS[OF_A_GPU] = kernel
