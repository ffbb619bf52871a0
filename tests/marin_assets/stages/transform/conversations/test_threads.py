"""Messages of trees, as OpenAssistant's, become threads."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from converted import contents, convert, converted, reasons, write

from marin_assets.stages.transform.conversations.conversations import ConversationsConfig
from marin_assets.stages.transform.conversations.fields import ConversationError
from marin_assets.stages.transform.conversations.threads import ThreadsConfig


def message(id: str, parent: str | None, text: str, *, rank: int | None = None, tree: str = "t", **more: Any) -> Any:
    depth = 0 if parent is None else parent.count(".") + 1
    role = ("prompter", "assistant")[depth % 2]
    return {
        "message_id": id, "parent_id": parent, "message_tree_id": tree, "role": role, "text": text, "rank": rank,
        "lang": "en", "deleted": False, **more,
    }  # fmt: skip


TREE = [
    message("q", None, "Two and two?"),
    message("q.a", "q", "Five.", rank=1),
    message("q.b", "q", "Four.", rank=0),
    message("q.b.c", "q.b", "Sure?"),
    message("q.b.d", "q.b", "And three?"),
    message("q.b.d.e", "q.b.d", "Six.", rank=0),
    message("q.b.d.e.f", "q.b.d.e", "Thanks."),
]


def texts(row: dict[str, Any]) -> list[str]:
    return [turn["content"] for turn in row["messages"]]


def test_the_best_path_takes_the_lowest_rank_and_ends_with_an_answer(tmp_path: Path) -> None:
    result, [thread] = converted(ThreadsConfig, tmp_path, TREE)
    assert texts(thread) == ["Two and two?", "Four.", "And three?", "Six."]
    assert [turn["role"] for turn in thread["messages"]] == ["user", "assistant"] * 2
    assert (thread["id"], thread["tree"], thread["language"]) == ("q.b.d.e", "t", "en")
    assert (result["messages"], result["in_threads"], result["messages_unaccounted"]) == (7, 4, 0)
    assert reasons(result) == {"not_chosen": 3}


def test_all_paths_are_those_of_last_answers(tmp_path: Path) -> None:
    result, threads = converted(ThreadsConfig, tmp_path, TREE, paths="all")
    assert sorted(map(texts, threads)) == [
        ["Two and two?", "Five."],
        ["Two and two?", "Four.", "And three?", "Six."],
    ]
    assert (result["threads"], result["in_threads"], reasons(result)) == (2, 5, {"not_chosen": 2})


def test_what_reviewers_refused_is_left_out_with_what_is_below_it_if_a_column_is_named(tmp_path: Path) -> None:
    rows = [dict(row, review_result={"q.b": False, "q.a": None}.get(row["message_id"], True)) for row in TREE]
    result, [thread] = converted(ThreadsConfig, tmp_path, rows, review_column="review_result")
    assert texts(thread) == ["Two and two?", "Five."]
    assert reasons(result) == {"refused": 1, "orphan": 4}
    result, [thread] = converted(ThreadsConfig, tmp_path, rows)
    assert len(texts(thread)) == 4


def test_messages_that_are_in_no_thread_have_a_reason(tmp_path: Path) -> None:
    rows = [
        *TREE,
        message("u.x", "u", "Whose?", tree="u"),
        message("q.b", "q", "Four!", rank=0),
        message("v", None, "Deux et deux ?", tree="v", lang="fr"),
        message("v.w", "v", "Quatre.", tree="v", lang="fr"),
        {**message("w", None, "x"), "message_tree_id": None},
        {**message("w", None, "x"), "message_id": None},
        message("w", None, "x", role="robot"),
        message("w", None, " "),
        message("q.z", "q", "x", deleted=True),
        message("q.y", "q", "x", rank="first"),  # type: ignore[arg-type]
        message("c.d", "c.e", "Round", tree="c"),
        message("c.e", "c.d", "and round.", tree="c"),
    ]
    result, threads = converted(ThreadsConfig, tmp_path, rows, languages=("en",))
    assert len(threads) == 1
    assert reasons(result) == {
        "not_chosen": 3, "orphan": 3, "repeated_id": 1, "other_language": 2, "no_tree": 1, "no_id": 1,
        "unknown_role": 1, "empty_message": 1, "deleted": 1, "bad_rank": 1,
    }  # fmt: skip
    assert result["messages"] == result["in_threads"] + result["rejected"] == len(rows)


def test_the_order_of_rows_and_the_number_of_files_change_no_byte(tmp_path: Path) -> None:
    drawn = random.Random(3)
    rows = [row for tree in range(30) for row in grown(f"t{tree}", drawn)]
    made = []
    for trial in range(3):
        drawn.shuffle(rows)
        for part in range(trial + 1):
            write(tmp_path / f"{trial}/rows/{part}.jsonl", rows[part :: trial + 1])
        result, _ = convert(ThreadsConfig, tmp_path / str(trial), paths="all", partitions=4)
        made.append((result, contents(f"{tmp_path}/{trial}/out")))
        assert len(made[-1][1]) == 4
    assert made[0] == made[1] == made[2]


def grown(tree: str, drawn: random.Random) -> Iterator[Any]:
    """A tree of drawn answers and questions."""
    grown = [message(tree, None, f"root {tree}", tree=tree)]
    for i in range(drawn.randrange(2, 25)):
        parent = drawn.choice(grown)["message_id"]
        grown.append(message(f"{parent}.{i}", parent, f"{tree} {i}", rank=drawn.choice([None, 0, 1, 2]), tree=tree))
    return iter(grown)


def test_a_thread_of_many_messages_needs_no_deep_stack(tmp_path: Path) -> None:
    rows, parent = [], None
    for i in range(5000):
        rows.append({**message(f"{i:05}", None, str(i)), "parent_id": parent, "role": ("user", "assistant")[i % 2]})
        parent = f"{i:05}"
    for paths in ("best", "all"):
        _, [thread] = converted(ThreadsConfig, tmp_path / paths, rows, paths=paths, partitions=1)
        assert texts(thread) == [str(i) for i in range(5000)]


def test_threads_become_conversations(tmp_path: Path) -> None:
    converted(ThreadsConfig, tmp_path, TREE, paths="all", partitions=2)
    result, documents = convert(
        ConversationsConfig,
        tmp_path / "c",
        rows_path=f"{tmp_path}/out",
        id_column="id",
        metadata_columns=("tree", "language"),
    )
    assert (result["conversations"], result["rejected"]) == (2, 0)
    assert sorted(document["id"] for document in documents) == ["q.a", "q.b.d.e"]
    assert all(document["metadata"] == {"tree": "t", "language": "en"} for document in documents)


def test_a_killed_join_resumes_with_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from marin_assets.stages.transform.conversations import threads as stage

    drawn = random.Random(5)
    for part in range(3):
        write(tmp_path / f"rows/{part}.jsonl", [row for tree in range(5) for row in grown(f"{part}-{tree}", drawn)])
    calm = convert(ThreadsConfig, tmp_path, output_path=f"{tmp_path}/calm", partitions=3)
    real = stage.write_rows
    for last in (5, 10, 11):
        calls = [0]

        def dies(*arguments: Any, calls: list[int] = calls, last: int = last, **named: Any) -> Any:
            calls[0] += 1
            if calls[0] == last:
                raise KeyboardInterrupt
            return real(*arguments, **named)

        with monkeypatch.context() as patch:
            patch.setattr(stage, "write_rows", dies)
            with pytest.raises(KeyboardInterrupt):
                convert(ThreadsConfig, tmp_path, output_path=f"{tmp_path}/{last}", partitions=3)
        assert convert(ThreadsConfig, tmp_path, output_path=f"{tmp_path}/{last}", partitions=3) == calm
        assert contents(f"{tmp_path}/{last}") == contents(f"{tmp_path}/calm")


@pytest.mark.parametrize(
    ("rows", "changes", "sentence"),
    [
        (TREE, {"paths": "bst"}, "paths is 'bst', expected one of 'best', 'all'"),
        (TREE, {"partitions": 0}, "partitions is 0, expected a number from 1 to 512"),
        ([], {}, "have no rows"),
        (TREE, {"tree_column": "tree"}, r"have no thread that ends with an answer \(7 no_tree\)"),
        (TREE[:1], {}, "have no thread that ends with an answer"),
        (["{"], {}, r"1 of the 1 lines of .* are no rows \(1 invalid_json\)"),
    ],
)
def test_a_mistake_is_a_sentence(rows: list[Any], changes: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ConversationError, match=sentence):
        converted(ThreadsConfig, tmp_path, rows, **changes)
