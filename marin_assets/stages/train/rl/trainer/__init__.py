"""The training by Levanter: `run` sets it up, `loop` makes its steps, and `loss` is the objective's."""
