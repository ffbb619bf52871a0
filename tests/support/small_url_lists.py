"""Small lists in the forms of datatrove's package and of DCLM's repository."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path
from typing import Any

from marin_assets.documents import Document
from marin_assets.documents.attributes import Decision
from marin_assets.stages.filter.filter_documents import FilterDocumentsConfig, decision_rule_of
from marin_assets.stages.filter.registry import named
from marin_assets.step.values import unwrap_versioned_value

DATATROVE = {
    "domains": "bad.com\nworse.co.uk\n# nice.com\nblog.host.org\n\n1.2.3.4\ngithub.io\n",
    "urls": "http://fine.org/bad page\nfine.org/exact\n",
    "banned_words.txt": "slime\n#mud\nTar-Pit\r\n",
    "soft_banned_words.txt": "dirt\ndust\ngrime\n",
    "banned_subwords.txt": "goo\nooze\n",
}
DCLM = {
    "refinedweb_banned_domains_curated.txt": "bad.com\n.Worse.co.uk\n",
    "refinedweb_banned_words_strict_reverse_engineered.txt": "goo\nooze\ng-spot\n\U0001f595",
    "refinedweb_banned_words_hard_reverse_engineered.txt": "slime\n",
    "refinedweb_banned_words_soft_reverse_engineered.txt": "dirt\ndust\ngrime\ns&m\ndust&ash\nash",
}


def in_folder(folder: Path, lists: dict[str, str]) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in lists.items():
        (folder / name).write_text(text)
    return str(folder)


def tar_of(lists: dict[str, str]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in lists.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return packed.getvalue()


def wheel_of(path: Path, lists: dict[str, str] = DATATROVE) -> str:
    """A wheel as datatrove's: words as files, domains and addresses in an archive of their own."""
    packed = {name: lists[name] for name in ("urls", "domains") if name in lists}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("datatrove/assets/blacklists.tar.gz", tar_of(packed))
        for name in lists.keys() - packed.keys():
            archive.writestr(f"datatrove/assets/{name}", lists[name])
        archive.writestr("datatrove/__init__.py", "")
    return str(path)


class Filters:
    """Decides about addresses with the small lists."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.paths = {
            "url@refinedweb": in_folder(folder / "datatrove", DATATROVE),
            "url@dclm": in_folder(folder / "dclm", DCLM),
        }

    def config(self, name: str = "url@refinedweb", path: str | None = None, **changes: Any) -> FilterDocumentsConfig:
        config = FilterDocumentsConfig(
            documents_path=f"{self.folder}/documents",
            output_path=f"{self.folder}/out",
            filters=[named(name, **changes)],
            words="fast",
            url_lists_path=path or self.paths[name],
        )
        return unwrap_versioned_value(config)

    def decision(self, metadata: dict[str, Any], name: str = "url@refinedweb", **changes: Any) -> Decision:
        document = Document(id="doc-7", text="Some words.", metadata=metadata)
        return decision_rule_of(self.config(name, **changes))(document)

    def reason(self, url: str, name: str = "url@refinedweb", /, **changes: Any) -> str:
        return self.decision({"url": url}, name, **changes).reason
