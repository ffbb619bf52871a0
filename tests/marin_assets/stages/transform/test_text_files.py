"""Files of text become documents: a file each, or divided at a mark; the rest is counted by its reason."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pytest

from marin_assets.documents import Document, list_shards, read_documents
from marin_assets.stages.transform import text_files
from marin_assets.stages.transform.text_files import REASONS, TextFilesConfig, TextFilesError, ingest_text_files
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.files import read_bytes, write_bytes
from marin_resources.storage.paths import join


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray may be up in this process for other tests."""
    monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)


def put(folder: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = folder / "raw" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def run(folder: Path | str, **fields: Any) -> tuple[dict[str, Any], list[Document]]:
    config = TextFilesConfig(input_path=join(str(folder), "raw"), output_path=join(str(folder), "documents"), **fields)
    counts = ingest_text_files(unwrap_versioned_value(config))
    rejected = {name: count for name, count in counts.items() if name.startswith("rejected_")}
    assert counts["files"] == counts["files_kept"] + counts["rejected"]
    assert counts["rejected"] == sum(rejected.values())
    assert counts["files_unaccounted"] == 0
    return counts, [d for shard in list_shards(join(str(folder), "documents")) for d in read_documents(shard)]


def reasons(counts: dict[str, Any]) -> dict[str, int]:
    return {reason: counts[f"rejected_{reason}"] for reason in REASONS if counts[f"rejected_{reason}"]}


PAGE = "<html><head><title>t</title></head><body><h1>Owls</h1><p>Owls are <b>birds</b>.</p></body></html>"


def test_each_file_is_a_document_with_its_path_as_id(tmp_path: Path) -> None:
    texts = {
        "a.txt": "A letter.\n",
        "deep/er/b.MD": "# Title\n\n*text*\n",
        "c.rst": "Title\n=====\n",
        "d.pod": "=head1 NAME\n",
        "e.tex": "\\section{One}\n",
    }
    put(tmp_path, {**texts, "f.html": PAGE, "g.htm": PAGE})
    counts, documents = run(tmp_path, source="mine")
    assert [document.id for document in documents] == [
        "a.txt", "c.rst", "d.pod", "deep/er/b.MD", "e.tex", "f.html", "g.htm",
    ]  # fmt: skip
    by_id = {document.id: document for document in documents}
    assert {name: by_id[name].text for name in texts} == texts, "text is taken as it is"
    assert by_id["f.html"].text == by_id["g.htm"].text == "# Owls\n\nOwls are birds."
    assert by_id["deep/er/b.MD"].metadata == {"file": "deep/er/b.MD"}
    assert {document.source for document in documents} == {"mine"}
    assert (counts["files"], counts["files_kept"], counts["documents"], counts["archives"]) == (7, 7, 7, 0)
    assert counts["bytes"] == sum(len(document.text.encode()) for document in documents)


def test_a_file_is_divided_at_a_line(tmp_path: Path) -> None:
    put(tmp_path, {"poems.txt": "one\n---\r\n\ntwo\na --- b\n  ---  \n\n---\nthree\n", "alone.txt": "four\n"})
    counts, documents = run(tmp_path, split_at="---")
    assert [(d.id, d.text) for d in documents] == [
        ("alone.txt", "four\n"),
        ("poems.txt#0", "one"),
        ("poems.txt#1", "two\na --- b"),
        ("poems.txt#2", "three"),
    ]
    assert {d.metadata["file"] for d in documents} == {"alone.txt", "poems.txt"}
    assert (counts["files"], counts["files_split"], counts["documents"], counts["empty_parts"]) == (2, 1, 4, 1)


def test_a_file_is_divided_before_its_headings(tmp_path: Path) -> None:
    put(tmp_path, {"book.txt": "Preface\n\nCHAPTER I\nIt rains.\nCHAPTER II\nThe CHAPTER ends.\n"})
    _, documents = run(tmp_path, split_before="CHAPTER [IVX]+$")
    assert [d.text for d in documents] == ["Preface", "CHAPTER I\nIt rains.", "CHAPTER II\nThe CHAPTER ends."]


def test_a_heading_of_a_page_divides_its_text(tmp_path: Path) -> None:
    put(tmp_path, {"a.html": "<body>" + "".join(f"<h1>{name}</h1><p>On {name}." for name in ("owls", "ravens"))})
    _, documents = run(tmp_path, split_before="# ")
    assert [d.text for d in documents] == ["# owls\n\nOn owls.", "# ravens\n\nOn ravens."]


@pytest.mark.parametrize("fields", [{"split_at": "***"}, {"split_before": "Kapitel"}])
def test_a_mark_that_no_file_has_is_a_wrong_one(tmp_path: Path, fields: dict[str, str]) -> None:
    put(tmp_path, {"a.txt": "one\n---\ntwo"})
    [(field, mark)] = fields.items()
    with pytest.raises(TextFilesError, match="divides none of the 1 files") as raised:
        run(tmp_path, **fields)
    assert str(raised.value).startswith(f"{field} is {mark!r}, ")


TEXT = "Füße, 一 and 🦉\nnext line\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le with mark", "utf-16-be with mark"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_utf_8_and_utf_16_are_read(tmp_path: Path, encoding: str, line_end: str) -> None:
    name, _, marked = encoding.partition(" ")
    put(tmp_path, {"a.txt": (("\ufeff" if marked else "") + TEXT.replace("\n", line_end)).encode(name)})
    _, [document] = run(tmp_path)
    assert document.text == TEXT


BAD = {
    "latin-1": (TEXT.replace("一", "").replace("🦉", "").encode("latin-1"), "unknown_encoding"),
    "half a letter": (TEXT.encode()[:2], "unknown_encoding"),
    "UTF-16 without a mark": (TEXT.encode("utf-16-le"), "binary"),
    "UTF-16 of odd length": ("text".encode("utf-16")[:-1], "unknown_encoding"),
    "UTF-16 with half a pair": (b"\xff\xfe" + b"\x00\xd8" + b"a\0", "unknown_encoding"),
    "UTF-16 with NUL": ("a\0b".encode("utf-16"), "binary"),
    "UTF-32": (TEXT.encode("utf-32"), "unknown_encoding"),
    "NUL": (b"text\0text", "binary"),
    "PNG": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "binary"),
    "no byte": (b"", "empty"),
    "a byte order mark": (b"\xef\xbb\xbf", "empty"),
    "blanks": (b" \n\t\r\n", "empty"),
    "one long text": (b"x" * 10_000_001, "too_long"),
    "larger than a file may be": (b"x\n" * 7_500_001, "too_large"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_file_that_is_no_text_is_counted_by_its_reason(tmp_path: Path, case: str) -> None:
    content, reason = BAD[case]
    put(tmp_path, {"bad.txt": content, "good.txt": "good"})
    counts, documents = run(tmp_path, max_bad_fraction=0.5, max_file_bytes=15_000_000)
    assert [d.text for d in documents] == ["good"]
    assert reasons(counts) == {reason: 1}


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ("<html><body><script>f()</script></body></html>", "no_text"),
        ("<ul>" * 1000 + "x", "too_deep"),
        ("<p " + " ".join(f"a{i}" for i in range(20_000)) + ">x", "too_many_attributes"),
    ],
)
def test_a_page_that_is_not_parsed_is_counted_by_its_reason(tmp_path: Path, page: str, reason: str) -> None:
    put(tmp_path, {"a.html": page, "b.html": PAGE})
    counts, documents = run(tmp_path, max_bad_fraction=0.5)
    assert [d.id for d in documents] == ["b.html"]
    assert reasons(counts) == {reason: 1}


def test_other_files_are_counted_by_their_suffix(tmp_path: Path) -> None:
    others = ["a.pdf", "b.PDF", "README", "data.json", "notes.txt.gz", "x.very_long_suffix", "__MACOSX/a.txt"]
    put(tmp_path, {**dict.fromkeys(others, b"\0"), "a.txt": "good", "checksums.json": "{}", ".hidden.txt": "secret"})
    counts, documents = run(tmp_path)
    assert [d.id for d in documents] == ["a.txt"]
    assert reasons(counts) == {"unknown_suffix": 6, "hidden": 1}
    assert {name: number for name, number in counts.items() if name.startswith("unknown_suffix_")} == {
        "unknown_suffix_pdf": 2,
        "unknown_suffix_none": 1,
        "unknown_suffix_json": 1,
        "unknown_suffix_gz": 1,
        "unknown_suffix_other": 1,
    }


def test_a_thousand_suffixes_are_few_counts(tmp_path: Path) -> None:
    put(tmp_path, {**{f"a.s{i}": "" for i in range(100)}, "b.s7": "", "a.txt": "good"})
    counts, _ = run(tmp_path)
    named = {name: number for name, number in counts.items() if name.startswith("unknown_suffix_")}
    assert len(named) == 21
    assert named["unknown_suffix_s7"] == 2
    assert sum(named.values()) == counts["rejected_unknown_suffix"] == 101


def test_the_log_names_rejected_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    put(tmp_path, {**{f"{i}.txt": b"\xff" for i in range(7)}, "a.pdf": "", "a.txt": "good"})
    caplog.set_level(logging.WARNING)
    run(tmp_path, max_bad_fraction=1.0)
    assert "7 files of" in caplog.text
    assert "as unknown_encoding: '0.txt', '1.txt', '2.txt', '3.txt', '4.txt', …" in caplog.text
    assert "as unknown_suffix: 'a.pdf'" in caplog.text


def test_too_many_bad_files_fail_the_stage_with_their_reasons(tmp_path: Path) -> None:
    put(tmp_path, {"a.txt": b"\xff", "b.txt": b"\0", "c.txt": b"", "d.pdf": b"", "e.txt": "good"})
    with pytest.raises(
        TextFilesError, match=r"2 of the 3 files of text of .*raw' are rejected \(1 binary, 1 unknown_enc"
    ):
        run(tmp_path, max_bad_fraction=0.5)
    assert run(tmp_path, max_bad_fraction=0.7)[0]["documents"] == 1


def test_a_folder_without_text_is_a_sentence(tmp_path: Path) -> None:
    put(tmp_path, {"a.pdf": "", "b.txt/c.png": ""})
    with pytest.raises(
        TextFilesError, match=r"No file of text exists below .*, only 'a.pdf', 'b.txt/c.png'\. Expected"
    ):
        run(tmp_path)
    put(tmp_path, {"a.txt": " "})
    with pytest.raises(TextFilesError, match=r"The 3 files of .* have no text \(1 are empty, 2 of an unknown suffix\)"):
        run(tmp_path)
    with pytest.raises(FileNotFoundError, match="Nothing exists at"):
        run(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"max_file_bytes": 0}, "max_file_bytes is 0, expected 1 or more"),
        ({"max_bad_fraction": 2}, "max_bad_fraction is 2, expected a fraction from 0 to 1"),
        ({"split_at": "-", "split_before": "#"}, "split_at is '-' and split_before '#', expected one of them"),
        ({"split_at": " "}, "split_at is ' ', expected one line"),
        ({"split_at": "a\nb"}, r"split_at is 'a\\nb', expected one line"),
        ({"split_before": "("}, r"split_before is '\(', which is no regular expression"),
        ({"split_before": "#*"}, r"split_before is '#\*', which matches an empty line"),
        ({"extractor": "lynx"}, "The extractor is 'lynx'"),
        ({"output_format": ".txt"}, "output_format is '.txt'"),
    ],
)
def test_an_invalid_config_is_a_sentence(tmp_path: Path, fields: dict[str, Any], sentence: str) -> None:
    put(tmp_path, {"a.txt": "good"})
    with pytest.raises(ValueError, match=sentence):
        run(tmp_path, **fields)


def test_one_file_is_read_by_its_path(tmp_path: Path) -> None:
    put(tmp_path, {"a.txt": "good"})
    config = TextFilesConfig(input_path=str(tmp_path / "raw/a.txt"), output_path=str(tmp_path / "out"))
    assert ingest_text_files(unwrap_versioned_value(config))["documents"] == 1
    [shard] = list_shards(str(tmp_path / "out"))
    assert [d.id for d in read_documents(shard)] == ["a.txt"]


def test_a_loop_of_links_adds_nothing(tmp_path: Path) -> None:
    put(tmp_path, {"a/b.txt": "good", "elsewhere/c.txt": "linked"})
    (tmp_path / "raw/a/up").symlink_to(tmp_path / "raw")
    (tmp_path / "raw/elsewhere").rename(tmp_path / "elsewhere")
    (tmp_path / "raw/link").symlink_to(tmp_path / "elsewhere")
    counts, documents = run(tmp_path)
    assert [d.id for d in documents] == ["a/b.txt", "link/c.txt"]
    assert counts["files"] == 2


@pytest.mark.parametrize("target", ["nowhere", "itself.txt"])
def test_a_link_to_nothing_or_itself_is_a_sentence(tmp_path: Path, target: str) -> None:
    put(tmp_path, {"a.txt": "good"})
    (tmp_path / "raw/itself.txt").symlink_to(target)
    with pytest.raises(OSError, match=r"raw/itself\.txt"):
        run(tmp_path)


def test_a_name_that_is_not_utf_8_is_escaped(tmp_path: Path) -> None:
    put(tmp_path, {"a.txt": "good"})
    os.rename(os.fsencode(tmp_path) + b"/raw/a.txt", os.fsencode(tmp_path) + b"/raw/\xe9.txt")
    _, [document] = run(tmp_path)
    assert document.id == "\\xe9.txt"


def test_the_bytes_do_not_depend_on_the_order_of_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "SHARD_BYTES", 100)
    names = [f"{i % 3}/{i}.txt" for i in range(20)]
    outputs = []
    for folder, ordered in (("a", names), ("b", names[::-1])):
        put(tmp_path / folder, {name: f"text of {name}" * 2 for name in ordered})
        run(tmp_path / folder)
        outputs.append(
            {Path(shard).name: read_bytes(shard) for shard in list_shards(str(tmp_path / folder / "documents"))}
        )
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) > 3
    assert min(outputs[0]) == f"part-00000-of-{len(outputs[0]):05d}.jsonl.zst"


def test_after_a_kill_the_finished_shards_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "SHARD_BYTES", 5)
    put(tmp_path, {"a.txt": "first", "b.txt": "second", "c.tar": "x"})
    with pytest.raises(Exception, match=r"c\.tar' is damaged"):
        run(tmp_path)
    first = tmp_path / "documents/part-00000-of-00003.jsonl.zst"
    written = first.stat().st_mtime_ns
    config = TextFilesConfig(input_path=str(tmp_path / "raw"), output_path=str(tmp_path / "documents"))
    with pytest.raises(Exception, match=r"c\.tar' is damaged"):
        ingest_text_files(unwrap_versioned_value(config))
    assert first.stat().st_mtime_ns == written


def test_an_archive_and_a_folder_of_one_name_are_a_sentence(gcs_prefix: str) -> None:
    write_bytes(join(gcs_prefix, "raw/a.zip"), b"PK")
    write_bytes(join(gcs_prefix, "raw/a.zip/b.txt"), b"text")
    with pytest.raises(TextFilesError, match=r"'a\.zip' is an archive and a folder with 'a\.zip/b\.txt'"):
        run(gcs_prefix)


def test_a_bucket_gives_what_a_folder_gives(any_prefix: str) -> None:
    write_bytes(join(any_prefix, "raw/a.txt"), TEXT.encode())
    write_bytes(join(any_prefix, "raw/sub/b.html"), PAGE.encode())
    write_bytes(join(any_prefix, "raw/sub/c.pdf"), b"%PDF")
    counts, documents = run(any_prefix)
    assert [(d.id, d.text) for d in documents] == [("a.txt", TEXT), ("sub/b.html", "# Owls\n\nOwls are birds.")]
    assert reasons(counts) == {"unknown_suffix": 1}


@pytest.mark.long
def test_on_ray_and_in_process_the_documents_are_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(text_files, "SHARD_BYTES", 100)
    put(
        tmp_path,
        {**{f"{i}.txt": f"text {i}" * 10 for i in range(9)}, "a.html": PAGE * 2, "b.txt": b"\xff", "c.pdf": b""},
    )
    results = []
    for name in ("here", "ray"):
        if name == "ray":
            request.getfixturevalue("shared_ray")
            monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: True)
        config = TextFilesConfig(input_path=str(tmp_path / "raw"), output_path=str(tmp_path / name), split_before="# ")
        counts = ingest_text_files(unwrap_versioned_value(config))
        results.append((counts, [Path(shard).read_bytes() for shard in list_shards(str(tmp_path / name))]))
    assert results[0] == results[1]
    assert len(results[0][1]) > 3
