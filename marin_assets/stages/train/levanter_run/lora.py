"""Levanter's LoRA: the factors are trained, and exported twice, merged into the model and as PEFT reads them."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from levanter.adaptor import AdaptorConfig, LoraAdaptorConfig
from levanter.adaptor.lora import filter_lora_params, merge_lora_modules, save_peft_pretrained
from levanter.dpo import DpoModel
from levanter.utils.jax_utils import parameter_count

from marin_assets.stages.train.config import TrainLmConfig
from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.levanter_run.adaptor import add_hooks, evaluate_first
from marin_assets.stages.train.levanter_run.export import Export
from marin_assets.stages.train.levanter_run.initial_weights import first_model
from marin_assets.stages.train.specs.lora import LoraSpec
from marin_assets.stages.train.specs.start import FromHuggingFace
from marin_resources.step_api.hosts import host_index
from marin_resources.storage.files import read_bytes, write_bytes
from marin_resources.storage.paths import join

PEFT = "peft"


@AdaptorConfig.register_subclass("marin_lora")
class TrainFactors(LoraAdaptorConfig):
    """Adapt the model with factors, and add hooks for checkpoints, exports and the first evaluation.

    `config` is Levanter's, of `train_lm` or `train_dpo`. `main_evaluates`: that one evaluates the untrained model.
    """

    def __init__(
        self, config: Any, own: TrainLmConfig, *, resumed_at: int | None, main_evaluates: bool = False
    ) -> None:
        lora: LoraSpec = own.lora  # type: ignore[assignment]  # the caller has looked
        super().__init__(
            target_modules=list(lora.target_modules) if lora.target_modules is not None else None,
            r=lora.rank,
            alpha=lora.alpha,
            dropout=lora.dropout,
            zero_init_b=lora.zero_factor == "b",
            a_init_mode="zero" if lora.zero_factor == "a" else "random",
        )
        self.config, self.own, self.resumed_at, self.main_evaluates = config, own, resumed_at, main_evaluates
        self.trained_parameters = 0

    def trainable_filter(self, policy_model: Any) -> Any:
        self.trained_parameters = parameter_count(filter_lora_params(policy_model))
        if not self.trained_parameters:
            raise TrainError(
                f"No linear layer of the model has a name that ends with one of {self.target_modules!r}, so LoRA would "
                "train nothing. Pass names such as 'q_proj', or None for all layers."
            )
        return super().trainable_filter(policy_model)

    def install_export_hooks(self, *, trainer: Any, converter: Any, tokenizer: Any, export: Any) -> None:
        if self.resumed_at is None and not self.main_evaluates:
            first = first_model(self.config, trainer, converter)
            averaged = first if trainer.config.model_averaging else None
            evaluate_first(self.config, trainer, tokenizer, first, averaged)

        folder = Export(self.own, converter, tokenizer)

        def save(info: Any, path: str) -> None:
            folder.save(merge_lora_modules(policy_of(info.eval_model)), path)

        def save_factors(info: Any, force: bool = False) -> None:
            if force:
                self._save_factors(policy_of(info.eval_model), tokenizer)

        add_hooks(trainer, self.config, self.own, save, resumed_at=self.resumed_at)
        trainer.add_hook(save_factors, every=trainer.num_train_steps + 1)

    def _save_factors(self, model: Any, tokenizer: Any) -> None:
        """Write PEFT's folder. Levanter writes it to a disk only, so it is copied from there."""
        start = self.own.start.path if isinstance(self.own.start, FromHuggingFace) else None
        with tempfile.TemporaryDirectory(prefix="marin-peft-") as folder:
            save_peft_pretrained(model, self, start, folder, tokenizer)  # on all hosts, which have parts of the factors
            if host_index() == 0:
                for name in sorted(os.listdir(folder)):
                    write_bytes(join(self.own.output_path, PEFT, name), read_bytes(join(folder, name)))


def policy_of(model: Any) -> Any:
    """The model that is trained: with DPO it may be beside its reference."""
    return model.policy if isinstance(model, DpoModel) else model
