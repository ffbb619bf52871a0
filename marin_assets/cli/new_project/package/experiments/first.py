"""A folder of texts, and how often each word is in them.

marin run first
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from marin_assets import THIS_OUTPUT_PATH, Step, executor_main, expect, output_path_of, versioned
from marin_assets.defaults import default_download
from marin_resources.storage.files import list_files, read_bytes, write_json
from marin_resources.storage.paths import join


@dataclass(frozen=True, kw_only=True)
class CountConfig:
    texts_path: str
    """Folder of texts in UTF-8."""
    most: int = versioned(20)
    """The number of words that are written. A changed value is a new version, and the step runs again."""
    output_path: str = THIS_OUTPUT_PATH


def count_words(config: CountConfig) -> dict[str, int]:
    """In: a folder of texts. Out: words.json, the most frequent words with their counts."""
    counts: Counter[str] = Counter()
    for path in list_files(config.texts_path):
        counts.update(read_bytes(path).decode().lower().split())
    write_json(join(config.output_path, "words.json"), dict(counts.most_common(config.most)))
    return {"words": counts.total(), "different_words": len(counts)}


def steps() -> list[Step]:
    texts = default_download("first", "texts/*.txt")
    counted = Step(
        name="documents/first",
        fn=count_words,
        config=CountConfig(texts_path=output_path_of(texts)),
        expectations=[expect("words", at_least=10)],  # fails if the folder has fewer: is it the right one?
    )
    return [counted]


if __name__ == "__main__":
    executor_main(steps())
