"""The fake GCS behaves like GCS: generations, conditions, listings, ranges, errors.

With TEST_GCS_PREFIX the same is asked of a real bucket.
"""

from __future__ import annotations

import base64
import hashlib

import google_crc32c
import pytest
from json_api import JsonApi, reason

FAR = "1"
"""A generation that no object has."""


def base64_of(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


def generation_of(api: JsonApi, name: str, data: bytes = b"one") -> str:
    return str(api.write(name, data).json()["generation"])


def test_an_object_has_its_metadata(api: JsonApi) -> None:
    written = api.write("a/b", b"hello", headers={"Content-Type": "text/plain"}).json()
    assert written == api.look("a/b").json()
    assert (written["name"], written["size"], written["metageneration"]) == (api.full("a/b"), "5", "1")
    assert written["contentType"] == "text/plain"
    assert written["md5Hash"] == base64_of(hashlib.md5(b"hello").digest())
    assert written["crc32c"] == base64_of(google_crc32c.Checksum(b"hello").digest())


def test_content_comes_with_its_generation_and_checksums(api: JsonApi) -> None:
    written = api.write("a", b"hello").json()
    answer = api.read("a")
    assert answer.content == b"hello"
    assert answer.headers["x-goog-generation"] == written["generation"]
    assert set(answer.headers["x-goog-hash"].replace(" ", "").split(",")) == {
        f"crc32c={written['crc32c']}",
        f"md5={written['md5Hash']}",
    }


def test_every_write_is_a_new_and_higher_generation(api: JsonApi) -> None:
    generations = [int(generation_of(api, "a", b"same")) for _ in range(20)]
    assert generations == sorted(set(generations))


def test_a_deleted_object_that_comes_back_has_another_generation(api: JsonApi) -> None:
    first = generation_of(api, "a")
    assert api.delete("a").status_code == 204
    assert generation_of(api, "a") != first


def test_generation_zero_means_that_nothing_may_be_there(api: JsonApi) -> None:
    assert api.write("a", b"one", ifGenerationMatch="0").status_code == 200
    refused = api.write("a", b"two", ifGenerationMatch="0")
    assert (refused.status_code, reason(refused)) == (412, "conditionNotMet")
    assert api.read("a").content == b"one"
    api.delete("a")
    assert api.write("a", b"two", ifGenerationMatch="0").status_code == 200


def test_a_write_is_refused_unless_the_generation_is_the_one_that_it_names(api: JsonApi) -> None:
    first = generation_of(api, "a")
    second = api.write("a", b"two", ifGenerationMatch=first)
    assert second.status_code == 200
    assert api.write("a", b"three", ifGenerationMatch=first).status_code == 412
    assert api.write("not there", b"three", ifGenerationMatch=first).status_code == 412
    assert api.read("a").content == b"two"


def test_a_write_requires_another_generation(api: JsonApi) -> None:
    first = generation_of(api, "a")
    assert api.write("a", b"two", ifGenerationNotMatch=first).status_code == 304
    assert api.write("a", b"two", ifGenerationNotMatch=FAR).status_code == 200


def test_a_read_requires_a_generation(api: JsonApi) -> None:
    now = generation_of(api, "a")
    assert api.read("a", ifGenerationMatch=now).content == b"one"
    assert api.read("a", ifGenerationMatch=FAR).status_code == 412
    assert api.read("a", ifGenerationNotMatch=FAR).content == b"one"
    unchanged = api.read("a", ifGenerationNotMatch=now)
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert api.read("a", generation=now).content == b"one"
    assert api.read("a", generation=FAR).status_code == 404


def test_a_condition_on_an_object_that_does_not_exist(api: JsonApi) -> None:
    assert api.read("a", ifGenerationMatch=FAR).status_code == 412
    assert api.read("a", ifGenerationNotMatch=FAR).status_code == 404
    assert api.delete("a", ifGenerationMatch=FAR).status_code in (404, 412)


def test_a_delete_requires_a_generation(api: JsonApi) -> None:
    now = generation_of(api, "a")
    assert api.delete("a", ifGenerationMatch=FAR).status_code == 412
    assert api.delete("a", generation=FAR).status_code == 404
    assert api.read("a").status_code == 200
    assert api.delete("a", ifGenerationMatch=now).status_code == 204
    assert api.read("a").status_code == 404


def test_changed_fields_are_a_new_metageneration_of_the_same_generation(api: JsonApi) -> None:
    before = api.write("a", b"one").json()
    after = api.patch("a", {"metadata": {"x": "1", "y": "2"}, "contentType": "text/plain"}).json()
    assert (after["generation"], after["metageneration"]) == (before["generation"], "2")
    assert after["etag"] != before["etag"]
    assert api.patch("a", {"metadata": {"x": None}}).json()["metadata"] == {"y": "2"}
    assert "metadata" not in api.patch("a", {"metadata": None}).json()
    assert api.look("a").json()["contentType"] == "text/plain"


def test_fields_are_changed_under_conditions(api: JsonApi) -> None:
    now = generation_of(api, "a")
    assert api.patch("a", {"contentType": "x/y"}, ifMetagenerationMatch="2").status_code == 412
    assert api.patch("a", {"contentType": "x/y"}, ifGenerationMatch=FAR).status_code == 412
    assert api.patch("a", {"contentType": "x/y"}, ifGenerationMatch=now, ifMetagenerationMatch="1").status_code == 200
    assert api.patch("a", {"contentType": "x/z"}, ifMetagenerationNotMatch="2").status_code == 304
    assert api.look("a").json()["contentType"] == "x/y"


def test_a_copy_is_made_under_conditions_on_both_ends(api: JsonApi) -> None:
    source = generation_of(api, "a")
    assert api.rewrite("a", "b", ifSourceGenerationMatch=FAR).status_code == 412
    assert api.rewrite("a", "b", ifGenerationMatch=FAR).status_code == 412
    assert api.rewrite("a", "b", sourceGeneration=FAR).status_code == 404
    assert api.rewrite("not there", "b").status_code == 404
    done = api.rewrite("a", "b", ifGenerationMatch="0", ifSourceGenerationMatch=source).json()
    assert (done["done"], done["objectSize"], done["resource"]["name"]) == (True, "3", api.full("b"))
    assert api.rewrite("a", "b", ifGenerationMatch="0").status_code == 412
    assert api.read("b").content == b"one"


def test_a_composed_object_has_its_parts_and_no_md5(api: JsonApi) -> None:
    first = generation_of(api, "a", b"one ")
    generation_of(api, "b", b"two")
    parts = [{"name": "a", "generation": first}, {"name": "b"}]
    made = api.compose("c", parts, ifGenerationMatch="0").json()
    assert (made["componentCount"], made["size"], "md5Hash" in made) == (2, "7", False)
    assert made["crc32c"] == base64_of(google_crc32c.Checksum(b"one two").digest())
    assert api.read("c").content == b"one two"
    assert "md5=" not in api.read("c").headers["x-goog-hash"]
    assert api.compose("d", [{"name": "c"}, {"name": "a"}]).json()["componentCount"] == 3


def test_an_object_is_composed_under_conditions(api: JsonApi) -> None:
    generation_of(api, "a")
    generation_of(api, "c")
    assert api.compose("c", [{"name": "a"}], ifGenerationMatch="0").status_code == 412
    assert api.compose("c", [{"name": "not there"}]).status_code == 404
    wrong = {"name": "a", "objectPreconditions": {"ifGenerationMatch": FAR}}
    assert api.compose("c", [wrong]).status_code == 412
    assert api.compose("c", [{"name": "a"}] * 33).status_code == 400


@pytest.mark.parametrize(
    ("span", "content", "answer"),
    [
        ("0-3", b"0123", "bytes 0-3/10"),
        ("4-", b"456789", "bytes 4-9/10"),
        ("8-100", b"89", "bytes 8-9/10"),
        ("-3", b"789", "bytes 7-9/10"),
        ("-100", b"0123456789", "bytes 0-9/10"),
    ],
)
def test_a_range_of_an_object_is_read(api: JsonApi, span: str, content: bytes, answer: str) -> None:
    api.write("a", b"0123456789")
    part = api.read("a", span)
    assert (part.status_code, part.content, part.headers["Content-Range"]) == (206, content, answer)


def test_a_range_behind_the_end_cannot_be_read(api: JsonApi) -> None:
    api.write("a", b"0123456789")
    api.write("empty", b"")
    assert api.read("a", "10-12").status_code == 416
    assert api.read("empty", "0-").status_code == 416
    assert api.read("empty").content == b""


def test_errors_are_json_and_plain_text_where_content_was_requested(api: JsonApi) -> None:
    missing = api.look("a")
    assert (missing.status_code, reason(missing)) == (404, "notFound")
    assert missing.json()["error"]["message"] == f"No such object: {api.bucket}/{api.full('a')}"
    assert api.read("a").text == f"No such object: {api.bucket}/{api.full('a')}"
    bad = api.write("a", b"x", ifGenerationMatch="x")
    assert (bad.status_code, reason(bad)) == (400, "invalid")


@pytest.mark.parametrize("name", ["line\nbreak", "return\rhere", "x" * 1100])
def test_a_bad_name_is_refused(api: JsonApi, name: str) -> None:
    assert api.write(name, b"x").status_code == 400


@pytest.mark.parametrize("name", ["a b", "a+b", "a%2Fb", "ä/ö", "a?b#c", "a//b", "…/日本", "a&b=c", "[x]*"])
def test_a_name_may_have_any_other_letters(api: JsonApi, name: str) -> None:
    assert api.write(name, name.encode()).json()["name"] == api.full(name)
    assert api.read(name).content == name.encode()
    assert [item["name"] for item in api.objects().json()["items"]] == [api.full(name)]


def test_pages_of_a_listing_together_are_all_of_it_in_order(api: JsonApi) -> None:
    names = [f"n{number:02}" for number in range(25)]
    for name in reversed(names):
        api.write(name, b"")
    found, token, pages = [], None, 0
    while pages == 0 or token:
        page = api.objects(maxResults=10, **({"pageToken": token} if token else {})).json()
        found += [item["name"] for item in page["items"]]
        token, pages = page.get("nextPageToken"), pages + 1
    assert (found, pages) == ([api.full(name) for name in names], 3)


def test_a_page_continues_after_a_name_that_was_deleted_meanwhile(api: JsonApi) -> None:
    for name in "abcdef":
        api.write(name, b"")
    first = api.objects(maxResults=2).json()
    api.delete("c")
    rest = api.objects(maxResults=10, pageToken=first["nextPageToken"]).json()
    assert [item["name"] for item in rest["items"]] == [api.full(name) for name in "def"]


def test_a_delimiter_gathers_folders(api: JsonApi) -> None:
    for name in ("a", "b/1", "b/2", "b/c/3", "d/", "d/4", "e"):
        api.write(name, b"")
    page = api.objects(delimiter="/").json()
    assert [item["name"] for item in page["items"]] == [api.full("a"), api.full("e")]
    assert page["prefixes"] == [api.full("b/"), api.full("d/")]
    page = api.objects(delimiter="/", includeTrailingDelimiter="true").json()
    assert [item["name"] for item in page["items"]] == [api.full(name) for name in ("a", "d/", "e")]
    first = api.objects(delimiter="/", maxResults=2).json()
    assert ([item["name"] for item in first["items"]], first["prefixes"]) == ([api.full("a")], [api.full("b/")])
    rest = api.objects(delimiter="/", maxResults=2, pageToken=first["nextPageToken"]).json()
    assert ([item["name"] for item in rest["items"]], rest["prefixes"]) == ([api.full("e")], [api.full("d/")])


def test_a_listing_begins_and_ends_where_requested(api: JsonApi) -> None:
    for name in "abcde":
        api.write(name, b"")
    page = api.objects(startOffset=api.full("b"), endOffset=api.full("d"), fields="items(name)").json()
    assert [item["name"] for item in page["items"]] == [api.full("b"), api.full("c")]
    assert "kind" not in page


def test_a_listing_of_nothing_has_no_items(api: JsonApi) -> None:
    assert api.objects().json() == {"kind": "storage#objects"}


def test_each_call_in_a_batch_has_its_own_response(api: JsonApi) -> None:
    for name in ("a", "b"):
        api.write(name, b"")
    calls = [f"DELETE {api.path(name)}" for name in ("a", "not there", "b")]
    parts = "".join(f"--x\nContent-Type: application/http\nContent-ID: <{n}>\n\n{c}\n\n" for n, c in enumerate(calls))
    headers = {"Content-Type": "multipart/mixed; boundary=x"}
    answer = api.send("POST", "/batch/storage/v1", data=f"{parts}--x--", headers=headers)
    lines = [line for line in answer.text.splitlines() if line.startswith(("HTTP/", "Content-ID"))]
    assert [line.split()[1] for line in lines] == ["<response-0>", "204", "<response-1>", "404", "<response-2>", "204"]
    assert api.objects().json() == {"kind": "storage#objects"}
