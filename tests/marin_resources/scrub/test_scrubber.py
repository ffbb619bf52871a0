"""Texts, JSON and pages without what is private; all else stays."""

from __future__ import annotations

import pytest
from png_pictures import picture_with_text

from marin_resources.scrub.png import without_texts
from marin_resources.scrub.private_values import private_values
from marin_resources.scrub.scrubber import Scrubber


@pytest.mark.parametrize(
    "text",
    [
        "optimizer.lr: 0.003 -> 0.001",
        "'raw/root'/train: 1 -> 2",
        "4.2 steps/s, loss 2.31",
        "2026-11-28 06:20:14 UTC",
        "max_tokens: 100, eos_token: <eos>, tokenizer: gpt2",
        "marin_assets.stages.report.report:write_report",
        "commit 0123456789abcdef0123456789abcdef01234567",
        "https://huggingface.co/lab/model",
        "home/page-1[2026-01]",
        "1.13.27",
        "recall@10, pass@1, lab/model@main",
        "the user and the host of the ratio 3:AA",
        "a/b/root/x",
    ],
)
def test_what_is_not_private_stays(text: str) -> None:
    assert Scrubber(private_values(["/data/prefix"])).text(text) == text


def test_a_path_keeps_what_is_below_the_prefix_and_the_name_of_a_file() -> None:
    scrub = Scrubber(private_values(["/data/prefix", "gs://bucket/marin"]))
    assert scrub.text("/data/prefix/toy/a-123456/x") == "<prefix>/toy/a-123456/x"
    assert scrub.text("gs://bucket/marin/toy") == "<prefix>/toy"
    assert scrub.text('File "/home/me/code/stage.py", line 3') == 'File "<path>/stage.py", line 3'
    assert scrub.text("/data/prefixes/x") == "<path>"
    assert scrub.text('{"path": "/mnt/our files/rows of ada"}') == '{"path": "<path>"}'
    assert scrub.text("ssh -i key ada@gpu7 ls") == "ssh -i key <address> ls"
    assert scrub.text("/usr/lib/python3.11/site-packages/jax/core.py") == "jax/core.py"


def test_a_common_name_of_an_account_does_not_blank_the_page_and_a_persons_name_is_whole_words() -> None:
    scrub = Scrubber(private_values([], users=["root", "data", "percy"], hosts=["localhost", "worker-3.lab.edu"]))
    assert scrub.text("root data percy's percy_run on worker-3 persevere") == (
        "root data <user>'s <user>_run on <host> persevere"
    )


def test_markup_is_no_text_and_texts_do_not_run_together() -> None:
    scrub = Scrubber(private_values([], users=["card"], environ={"MY_SECRET": "password12"}))
    picture = '<img src="data:image/png;base64,/home/x+card">'
    html = f'<p class="card" title="card">card &lt;b&gt; pass</p><p>word12</p>{picture}'
    assert scrub.page(html) == (
        f'<p class="card" title="&lt;user&gt;">&lt;user&gt; &lt;b&gt; pass</p><p>word12</p>{picture}'
    )


def test_a_long_text_without_spaces_takes_little_time() -> None:
    scrub = Scrubber(private_values(["/data/prefix"]))
    for part in ("a", "a/", "a.", "a-", "1.", "a:", "/", "@", "token=", "-----BEGIN ", "A+"):
        scrub.text(part * (60_000 // len(part)))  # quadratic time would be minutes


def test_a_picture_keeps_its_pixels_and_a_damaged_one_is_refused() -> None:
    picture = picture_with_text("by percy")
    clean = without_texts(picture)
    assert (b"percy" in picture, b"percy" in clean) == (True, False)
    assert clean == picture_with_text("")
    for damaged in (b"GIF89a", picture[:-5], picture[:20]):
        with pytest.raises(ValueError, match="it "):
            without_texts(damaged)
