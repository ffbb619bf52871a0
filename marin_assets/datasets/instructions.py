"""Chats and instructions, by Marin's names: the hub's id, with a split behind it where a set has several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from marin_assets.datasets.conversational import Chats, MessageTrees
from marin_assets.datasets.dataset import Family, HubFiles

_SOURCE = "marin experiments/posttrain/instruction_datasets.py: id, revision, columns, configs, splits"
_CARD = "licence: as it is commonly given; the card was not read"
_PAGE = "page of the repository: its licence as the card has it, files with their rounded sizes"


def _chats(
    name: str,
    revision: str,
    adapter: str,
    licence: str | None,
    *,
    id: str | None = None,
    gated: bool = False,
    split: str | None = "train",
    config_name: str | None = None,
    globs: Iterable[str] = ("**",),
    licence_from: str = _CARD,
    **fields: Any,
) -> Chats:
    return Chats(
        name=name,
        files=HubFiles(
            id=id or name, revision=revision, globs=tuple(globs), config_name=config_name, split=split, gated=gated
        ),
        licence=licence,
        adapter=adapter,
        facts=(_SOURCE, *([licence_from] if licence or licence_from != _CARD else [])),
        **fields,
    )


_SMOLTALK2_SPLITS = (
    "LongAlign_64k_Qwen3_32B_yarn_131k_think",
    "OpenThoughts3_1.2M_think",
    "aya_dataset_Qwen3_32B_think",
    "multi_turn_reasoning_if_think",
    "s1k_1.1_think",
    "smolagents_toolcalling_traces_think",
    "smoltalk_everyday_convs_reasoning_Qwen3_32B_think",
    "smoltalk_multilingual8_Qwen3_32B_think",
    "smoltalk_systemchats_Qwen3_32B_think",
    "table_gpt_Qwen3_32B_think",
    "LongAlign_64k_context_lang_annotated_lang_6_no_think",
    "Mixture_of_Thoughts_science_no_think",
    "OpenHermes_2.5_no_think",
    "OpenThoughts3_1.2M_no_think_no_think",
    "hermes_function_calling_v1_no_think",
    "smoltalk_multilingual_8languages_lang_5_no_think",
    "smoltalk_smollm3_everyday_conversations_no_think",
    "smoltalk_smollm3_explore_instruct_rewriting_no_think",
    "smoltalk_smollm3_smol_magpie_ultra_no_think",
    "smoltalk_smollm3_smol_rewrite_no_think",
    "smoltalk_smollm3_smol_summarize_no_think",
    "smoltalk_smollm3_systemchats_30k_no_think",
    "table_gpt_no_think",
    "tulu_3_sft_personas_instruction_following_no_think",
    "xlam_traces_no_think",
)
_NEMOTRON_V1_SPLITS = ("chat", "code", "math", "stem", "tool_calling")
_NEMOTRON_V2_SPLITS = (
    *("stem", "chat", "math", "code"),
    *("multilingual_ja", "multilingual_de", "multilingual_it", "multilingual_es", "multilingual_fr"),
)


def _splits(id: str, revision: str, adapter: str, licence: str | None, splits: Iterable[str], **fields: Any) -> Any:
    """A set for each split, with the split behind the id."""
    return [_chats(f"{id}/{split}", revision, adapter, licence, id=id, split=split, **fields) for split in splits]


_OASST_FACTS = (
    "public users' pins: the 40 digits, names of the files, the size of the split train",
    "card: licence, columns; messages of trees that were finished",
)


def _oasst(version: int, revision: str, size_bytes: int) -> tuple[MessageTrees, MessageTrees]:
    """OpenAssistant's conversations by split: a tree is in one of them."""
    id = f"OpenAssistant/oasst{version}"
    train, validation = (
        MessageTrees(
            name=name,
            files=HubFiles(id=id, revision=revision, split=split),
            licence="Apache-2.0",
            bytes=size,
            facts=_OASST_FACTS,
        )
        for name, split, size in ((id, "train", size_bytes), (f"{id}/validation", "validation", None))
    )
    return train, validation


_ALL: tuple[Chats, ...] = (
    _chats(
        "meta-math/MetaMathQA",
        "aa4f34d",
        "query/response",
        "MIT",
        split=None,
        globs=["*.json"],
        is_json_lists=True,
        bytes=396_000_000,
        licence_from=_PAGE,
    ),
    _chats("allenai/tulu-v2-sft-mixture", "6248b17", "openai", "ODC-By-1.0"),
    _chats("openbmb/UltraInteract_sft", "2b102e4", "dolly", "MIT"),
    _chats(
        "teknium/OpenHermes-2.5",
        "b820378",
        "sharegpt",
        None,  # the card has none: a proposal to add one is open
        split=None,
        globs=["*.json"],
        is_json_lists=True,
        bytes=1_940_000_000,
        licence_from=_PAGE,
    ),
    _chats(
        "allenai/tulu-v2-sft-mixture-olmo-4096",
        "7a7c388",
        "openai",
        "ODC-By-1.0",
        bytes=1_420_000_000,
        licence_from=_PAGE,
    ),
    _chats("allenai/tulu-3-sft-mixture", "55e9fd6", "openai", "ODC-By-1.0", bytes=1_412_954_868),
    _chats("TIGER-Lab/AceCode-89K", "13216309a9f6cb40b60cb1a9750071efeac414ad", "question/inferences", "MIT"),
    _chats(
        "cognitivecomputations/dolphin-r1-nonreasoning",
        "f6ac651",
        "openai",
        "Apache-2.0",
        id="cognitivecomputations/dolphin-r1",
        config_name="nonreasoning",
    ),
    *(
        _chats(
            f"cognitivecomputations/dolphin-r1-{config}",
            "f6ac651",
            "messages/answer",
            "Apache-2.0",
            id="cognitivecomputations/dolphin-r1",
            config_name=config,
        )
        for config in ("reasoning-deepseek", "reasoning-flash")
    ),
    _chats("open-r1/OpenThoughts-114k-math", "2db609d", "openai", None),
    _chats("bespokelabs/Bespoke-Stratos-17k", "9e9adba", "conversations", "Apache-2.0"),
    _chats(
        "HuggingFaceTB/smoltalk",
        "2c849df",
        "openai",
        "Apache-2.0 (its new parts; the others have their own)",
        config_name="all",  # 4.2 GB with the parts, which "all" has again; its own size is not published
        licence_from="card, as public users cite it: licence",
    ),
    _chats("HuggingFaceH4/no_robots", "e6f9a4a", "openai", "CC-BY-NC-4.0"),
    _chats(
        "PrimeIntellect/verifiable-math-problems",
        "2ad7c92",
        "prompt/gold_standard_solution",
        None,  # the card has none
        bytes=546_000_000,
        licence_from=_PAGE,
    ),
    _chats("PrimeIntellect/SYNTHETIC-2-SFT-verified", "fce247fe48af8ff9624fb51d1de63aa1b2332cef", "openai", None),
    _chats("lm-provers/FineProofs-SFT", "73661e6", "openai", None),
    _chats("lm-provers/FineProofs-SFT/proof-only", "73661e6", "problem/proof", None, id="lm-provers/FineProofs-SFT"),
    _chats("sherryy/tulu-3-sft-personas-instruction-following-expanded", "79ab2c4", "openai", None),
    _chats(
        "facebook/natural_reasoning",
        "99eea5d",
        "question/responses",
        "CC-BY-NC-4.0",
        bytes=4_200_000_000,
        licence_from=_PAGE,
    ),
    *(
        _chats(
            f"GeneralReasoning/GeneralThought-195K-{column.replace('_', '')}",
            "64f7cb8",
            f"question/{column}",
            "MIT",
            id="GeneralReasoning/GeneralThought-195K",
            licence_from=_PAGE,
        )
        for column in ("model_answer", "model_reasoning")
    ),
    _chats("open-thoughts/OpenThoughts3-1.2M", "61bcf9d", "sharegpt", "Apache-2.0"),
    *_splits(
        "nvidia/OpenMathReasoning",
        "d3d0866",
        "problem/generated_solution",
        "CC-BY-4.0",
        ("cot", "tir", "genselect"),
    ),
    *_splits("HuggingFaceTB/smoltalk2", "fc6cc21", "openai", None, _SMOLTALK2_SPLITS, config_name="SFT"),
    *_splits(
        "nvidia/Nemotron-Post-Training-Dataset-v1",
        "74e23eb",
        "openai",
        "CC-BY-4.0",
        _NEMOTRON_V1_SPLITS,  # 203 GB together; the page has no sizes of splits
        licence_from=_PAGE,
    ),
    *_splits(
        "nvidia/Nemotron-Post-Training-Dataset-v2", "5c89e01", "openai", "CC-BY-4.0", _NEMOTRON_V2_SPLITS, gated=True
    ),
    *_oasst(1, "fdf72ae0827c1cda404aff25b6603abec9e3399b", 39_516_251),
    *_oasst(2, "179dd21fc55192153d94adb0e0ce8f69e222bf75", 63_494_018),
)

chats: Family[Chats] = Family({entry.name: entry for entry in _ALL})
"""Chats by Marin's names."""
