"""The lists of the family `url`: where they are read from, and what a config or a list lacks."""

import random
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_url_lists import DATATROVE, DCLM, Filters, in_folder, tar_of, wheel_of

from marin_assets import Step
from marin_assets.defaults import default_download
from marin_assets.documents import Document, write_documents
from marin_assets.documents.attributes import read_attributes
from marin_assets.stages.filter.filter_documents import FilterDocumentsConfig, decision_rule_of, filter_documents
from marin_assets.stages.filter.registry import fineweb_filters, named
from marin_assets.stages.filter.url import filter_url
from marin_assets.stages.filter.url.errors import UrlFilterError
from marin_assets.stages.filter.url.hashed_set import HashedSet
from marin_assets.step.graph import build_graph
from marin_assets.step.values import output_path_of, unwrap_versioned_value
from marin_resources.storage.files import write_bytes
from marin_resources.types.errors import MarinError

URLS = ["http://bad.com/", "http://fine.org/", "http://x.org/slime", "http://x.org/dust/dirt", "http://x.org/goo"]
REASONS = ["url_domain", "", "url_hard_words", "url_soft_words", "url_subwords"]


def reasons(config: FilterDocumentsConfig) -> list[str]:
    decide = decision_rule_of(config)
    return [decide(Document(id=url, text="", metadata={"url": url})).reason for url in URLS]


def test_lists_are_read_from_a_folder_a_wheel_an_archive_and_a_folder_with_one(
    filters: Filters, tmp_path: Path
) -> None:
    (tmp_path / "downloaded").mkdir()
    (tmp_path / "downloaded" / "checksums.json").write_text("{}")
    mixed = {name: text for name, text in DATATROVE.items() if name.endswith(".txt")}
    in_folder(tmp_path / "mixed" / "assets", mixed)
    packed = {name: text for name, text in DATATROVE.items() if name not in mixed}
    (tmp_path / "mixed" / "assets" / "lists.tar.gz").write_bytes(tar_of(packed))
    (tmp_path / "all.tgz").write_bytes(tar_of({f"a/b/{name}": text for name, text in DATATROVE.items()}))
    places = [
        in_folder(tmp_path / "plain", DATATROVE),
        wheel_of(tmp_path / "datatrove-0.0.1-py3-none-any.whl"),
        wheel_of(tmp_path / "downloaded" / "datatrove-0.0.1-py3-none-any.whl").rpartition("/")[0],
        str(tmp_path / "mixed"),
        str(tmp_path / "all.tgz"),
    ]
    for path in places:
        assert reasons(filters.config(path=path)) == REASONS, path
    assert reasons(filters.config("url@dclm")) == REASONS


@pytest.mark.long
def test_lists_are_read_from_a_bucket(filters: Filters, any_prefix: str, tmp_path: Path) -> None:
    for name, text in DATATROVE.items():
        write_bytes(f"{any_prefix}/lists/{name}", text.encode())
    write_bytes(f"{any_prefix}/raw/a.whl", Path(wheel_of(tmp_path / "a.whl")).read_bytes())
    for path in (f"{any_prefix}/lists", f"{any_prefix}/raw", f"{any_prefix}/raw/a.whl"):
        assert reasons(filters.config(path=path)) == REASONS


def test_lists_are_read_once_a_process_and_again_after_a_change(
    tmp_path: Path, filters: Filters, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []
    read = filter_url.read_lists
    monkeypatch.setattr(filter_url, "read_lists", lambda *given: reads.append(given) or read(*given))
    path = in_folder(tmp_path / "lists", DATATROVE)
    for _ in range(3):
        assert reasons(filters.config(path=path)) == REASONS
    assert len(reads) == 1
    in_folder(tmp_path / "lists", {"domains": "fine.org\n"})
    assert reasons(filters.config(path=path))[:2] == ["", "url_domain"]
    assert len(reads) == 2


def test_a_rule_that_is_disabled_needs_no_list(tmp_path: Path, filters: Filters) -> None:
    path = in_folder(tmp_path / "lists", {"domains": DATATROVE["domains"]})
    disabled = {"url": False, "hard_words": False, "soft_words": None, "subwords": False}
    assert reasons(filters.config(path=path, **disabled)) == ["url_domain", "", "", "", ""]
    for name in ("domain", "subdomain"):
        left = "url_subdomain" if name == "domain" else "url_domain"
        assert reasons(filters.config(path=path, **disabled, **{name: False}))[0] == left
    assert reasons(filters.config(path=path, **disabled, domain=False, subdomain=False)) == [""] * 5


def damaged(folder: Path, case: str) -> str:
    path = folder / "lists"
    if case == "nothing":
        return str(path)
    in_folder(path, {} if case == "empty folder" else DATATROVE)
    if case == "no domains":
        (path / "domains").unlink()
    elif case == "empty list":
        (path / "domains").write_text("# nothing\n\n")
    elif case == "two":
        in_folder(path / "b", {"domains": "x.org"})
    elif case == "not UTF-8":
        (path / "banned_words.txt").write_bytes(b"sl\xffme\n")
    elif case == "one line":
        (path / "domains").write_bytes(b"x" * (3 * 1024**2))
    elif case == "truncated wheel":
        path = Path(wheel_of(folder / "a.whl"))
        path.write_bytes(path.read_bytes()[:-30])
    elif case == "flipped wheel":
        path = Path(wheel_of(folder / "a.whl"))
        content = bytearray(path.read_bytes())
        at = content.index(b"blacklists.tar.gz") + 60
        content[at : at + 8] = bytes(8)
        path.write_bytes(content)
    elif case == "truncated archive":
        path = folder / "a.tar.gz"
        noise = random.Random(0)
        domains = "\n".join(f"{noise.random()}.com" for _ in range(20_000))
        path.write_bytes(tar_of({**DATATROVE, "domains": domains})[:-50_000])
    elif case == "no archive":
        path = folder / "a.zip"
        path.write_text("<html>Not found</html>")
    elif case == "many archives":
        for i in range(17):
            with zipfile.ZipFile(path / f"{i}.zip", "w"):
                pass
    return str(path)


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ("nothing", "url_lists_path is '.*lists', where nothing exists, expected the folder or archive"),
        ("empty folder", "which has no list 'domains', 'banned_words.txt', 'soft_banned_words.txt', .* Add what"),
        ("no domains", "which has no list 'domains', neither .* or disable the rules by domains"),
        ("empty list", "'.*domains' has no entry, expected one a line"),
        ("two", "has two lists 'domains', '.*domains' and '.*domains', expected one"),
        ("not UTF-8", r"'.*banned_words.txt' has the entry b'sl\\xffme', which is not UTF-8"),
        ("one line", "'.*domains' has a line of over 1,048,576 bytes"),
        ("truncated wheel", r"'.*a.whl' cannot be read as an archive \(.+\). Download it again"),
        ("flipped wheel", r"'.*a.whl' cannot be read as an archive \(.+\). Download it again"),
        ("truncated archive", r"'.*a.tar.gz' cannot be read as an archive \(.+\). Download it again"),
        ("no archive", r"'.*a.zip' cannot be read as an archive \(.+\). Download it again"),
        ("many archives", "a folder with 17 archives, expected at most 16"),
    ],
)
def test_a_list_that_cannot_be_used_is_one_sentence_before_any_shard(
    case: str, sentence: str, tmp_path: Path, filters: Filters
) -> None:
    with pytest.raises(UrlFilterError, match=sentence):
        filter_documents(filters.config(path=damaged(tmp_path, case)))
    assert not (filters.folder / "out").exists()


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"filters": [named("url@refinedweb")]}, "has a filter url and no url_lists_path, expected the folder"),
        ({"url_lists_path": "/lists"}, "url_lists_path is '/lists' and the config has no filter url"),
        ({"filters": [named("url@refinedweb", missing="kep")]}, "'missing' of a filter url is 'kep'.*'keep'"),
        ({"filters": [named("url@refinedweb", matching="dolma")]}, "'matching' of a filter url is 'dolma'"),
        ({"filters": [named("url@refinedweb", key="")]}, "'key' of a filter url is '', expected a key"),
        ({"filters": [named("url@refinedweb", soft_words=0)]}, "'soft_words' of a filter url is 0, expected a number"),
        ({"filters": [named("url@refinedweb", soft_words=True)]}, "'soft_words' of a filter url is True"),
        ({"filters": [named("url@dclm", subdomain=True)]}, "'subdomain' of a filter url is True, a rule that"),
    ],
)
def test_a_config_that_cannot_work_is_one_sentence_when_its_step_is_created(
    config: dict[str, Any], sentence: str
) -> None:
    lists = {} if "no url_lists_path" in sentence or "url_lists_path" in config else {"url_lists_path": "/lists"}
    with pytest.raises(UrlFilterError, match=f"Step 'attributes/x': .*{sentence}"):
        Step(
            name="attributes/x",
            fn=filter_documents,
            config=FilterDocumentsConfig(documents_path="/d", **config, **lists),
        )


def test_lists_of_a_step_are_in_the_version_and_their_absence_is_not() -> None:
    def version_of(**changes: Any) -> str:
        config = FilterDocumentsConfig(documents_path="/d", **changes)
        step = Step(name="attributes/x", fn=filter_documents, config=config)
        return build_graph([step])[step].version.text

    lists = default_download("url-lists", "https://files.example.org/datatrove-0.10.1-py3-none-any.whl")
    filters = [named("url@refinedweb"), *fineweb_filters()]
    version = version_of(filters=filters, url_lists_path=output_path_of(lists))
    assert "raw/url-lists" in version
    assert '"soft_words": 2' in version
    assert "url_lists_path" not in version_of()
    changed = [named("url@refinedweb", soft_words=3), *fineweb_filters()]
    assert version_of(filters=changed, url_lists_path=output_path_of(lists)) != version


def test_addresses_and_texts_are_filtered_in_one_pass(tmp_path: Path, filters: Filters) -> None:
    sentence, menu = "A good sentence is here. " * 4, "- item\n" * 30
    texts = {"a": ("http://fine.org/", sentence), "b": ("http://fine.org/", menu), "c": ("http://bad.com/", sentence)}
    documents = [Document(id=id, text=text, metadata={"url": url}) for id, (url, text) in texts.items()]
    path = in_folder(tmp_path / "both", {**DATATROVE, **DCLM})
    specs = [named("url@refinedweb"), named("c4@fineweb"), named("url@dclm")]  # the text is cut before the last
    decide = decision_rule_of(replace(filters.config(path=path), filters=unwrap_versioned_value(specs)))
    decisions = [decide(document) for document in documents]
    assert [decision.reason for decision in decisions] == ["c4_min_sentences", "c4_min_sentences", "url_domain"]
    long = decide(Document(id="d", text=f"{sentence}\nHome\n{sentence}", metadata={"url": "http://fine.org/"}))
    assert long.keep
    assert long.cut


def test_work_that_stopped_begins_again_when_a_list_has_changed(tmp_path: Path, filters: Filters) -> None:
    config = replace(
        filters.config(path=in_folder(tmp_path / "lists", DATATROVE)),
        documents_path=f"{tmp_path}/documents",
        output_path=f"{tmp_path}/out",
    )
    address: dict[str, Any] = {"url": "http://fine.org/"}
    write_documents(f"{tmp_path}/documents/a.jsonl.zst", [Document(id="a", text="", metadata=address)])
    write_documents(f"{tmp_path}/documents/b.jsonl.zst", [Document(id="b", text="")])
    with pytest.raises(MarinError, match="The document 'b' has no address in metadata 'url'"):
        filter_documents(config)
    assert decisions_in(tmp_path / "out/a.jsonl.zst") == [("a", "")]
    write_documents(f"{tmp_path}/documents/b.jsonl.zst", [Document(id="b", text="", metadata=address)])
    in_folder(tmp_path / "lists", {"domains": "fine.org"})
    assert filter_documents(config)["rejected_url_domain"] == 2
    assert decisions_in(tmp_path / "out/a.jsonl.zst") == [("a", "url_domain")]


def decisions_in(path: Path) -> list[tuple[str, str]]:
    return [(id, decision.reason) for id, decision in read_attributes(str(path))]


def test_a_hashed_set_has_its_entries_and_no_others() -> None:
    dice = random.Random(1)
    entries = [f"{dice.getrandbits(64):x}.org" for _ in range(20_000)]
    hashed = HashedSet([[entry.encode() for entry in entries[:7]], [], [entry.encode() for entry in entries[7:]]])
    assert len(hashed) == 20_000
    assert all(entry in hashed for entry in entries)
    assert not any(f"{dice.getrandbits(64):x}.com" in hashed for _ in range(20_000))
    assert "" not in hashed
    assert "a" not in HashedSet([])


def test_dclm_lists_and_those_of_datatrove_may_share_a_folder(tmp_path: Path, filters: Filters) -> None:
    path = in_folder(tmp_path / "both", {**DATATROVE, **DCLM})
    for name in ("url@refinedweb", "url@dclm"):
        assert reasons(filters.config(name, path=path)) == REASONS
