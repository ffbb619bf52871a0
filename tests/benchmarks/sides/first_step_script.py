"""The training of first_step.py as a script of `marin run`."""

from __future__ import annotations

from first_step_training import training

from marin_assets import executor_main

if __name__ == "__main__":
    executor_main([training()])
