"""The contents of a store, in a SQLite file, so that they outlive its process: for a rehearsal, not for tests.

Each change is on disk before its request is answered. Uploads that are under way are not kept: their clients get
the answer that the upload does not exist, as Google may answer too, and begin again.
"""

from __future__ import annotations

import pickle
import sqlite3
from pathlib import Path

from fake_gcs.objects import Bucket, Store


class Kept:
    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, isolation_level=None)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("CREATE TABLE IF NOT EXISTS buckets (name TEXT PRIMARY KEY, fields BLOB)")
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS objects (bucket TEXT, name TEXT, object BLOB, PRIMARY KEY (bucket, name))"
        )

    def load(self, store: Store) -> None:
        for name, fields in self._database.execute("SELECT name, fields FROM buckets"):
            bucket = Bucket(name=name, **pickle.loads(fields))
            for (stored,) in self._database.execute("SELECT object FROM objects WHERE bucket = ?", [name]):
                bucket.put(pickle.loads(stored))
            bucket.changed = self.keep
            store.buckets[name] = bucket
        store.changed = self.keep

    def keep(self, bucket: Bucket, name: str | None) -> None:
        """Write down what has become of an object; of the bucket itself without a name."""
        if bucket.removed:
            self._database.execute("DELETE FROM buckets WHERE name = ?", [bucket.name])
        elif name is None:
            fields = pickle.dumps({"fields": bucket.fields, "metageneration": bucket.metageneration})
            self._database.execute("INSERT OR REPLACE INTO buckets VALUES (?, ?)", [bucket.name, fields])
        elif name in bucket.objects:
            stored = bucket.objects[name]
            stored.data = bytes(stored.data)
            row = [bucket.name, name, pickle.dumps(stored)]
            self._database.execute("INSERT OR REPLACE INTO objects VALUES (?, ?, ?)", row)
        else:
            self._database.execute("DELETE FROM objects WHERE bucket = ? AND name = ?", [bucket.name, name])
