"""The training by Levanter around the orders: `run` sets it up, `loop` makes its steps, and `loss` is the objective's."""
