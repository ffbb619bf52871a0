"""Minimal in-memory GCS for tests: JSON API + the XML verbs object_store uses.

Prototype written for curation.md (own code, no emulator source copied). One asyncio thread, so every
request is atomic. Enforces generation preconditions on insert / get / delete / patch / rewrite / compose.
Usage:  python fake_gcs.py --port 0          -> prints "listening http://127.0.0.1:PORT"
        server = FakeGCS(); url = server.start_in_thread()
Fault injection: POST /_fault {"method":"POST","match":"substr","status":503,"times":2,"after":true}
  after=true applies the mutation, then returns the error (the lost-response case).
"""

import argparse, asyncio, base64, bisect, datetime, hashlib, json, re, threading, urllib.parse as up
from aiohttp import web
import google_crc32c

b64 = lambda b: base64.b64encode(b).decode()


class Err(Exception):
    def __init__(self, code, reason, msg=""):
        self.code, self.reason, self.msg = code, reason, msg


class FakeGCS:
    def __init__(self, locations=None):
        self.buckets, self.uploads, self.faults, self.log = {}, {}, [], []
        self.gen, self.locations = 1_000_000, locations or {}

    # ---- store -------------------------------------------------------------
    def bucket(self, b):
        if b not in self.buckets:
            raise Err(404, "notFound", f"bucket {b}")
        return self.buckets[b]

    def obj(self, b, o, q=None):
        m = self.bucket(b)["objects"].get(o)
        if m is None:
            raise Err(404, "notFound", f"No such object: {b}/{o}")
        if q and q.get("generation") and q["generation"] != m["generation"]:
            raise Err(404, "notFound", "generation")
        return m

    def check(self, b, o, q, pfx="if"):
        m = self.bucket(b)["objects"].get(o)
        cur = int(m["generation"]) if m else 0
        meta = int(m["metageneration"]) if m else 0
        for key, want_eq, have in (
            (f"{pfx}GenerationMatch", True, cur),
            (f"{pfx}GenerationNotMatch", False, cur),
            (f"{pfx}MetagenerationMatch", True, meta),
            (f"{pfx}MetagenerationNotMatch", False, meta),
        ):
            if key in q and (int(q[key]) == have) != want_eq:
                if not want_eq and pfx == "if" and q.get("_read"):
                    raise Err(304, "notModified", key)
                raise Err(
                    412, "conditionNotMet", f"At least one of the pre-conditions you specified did not hold. {key}"
                )

    def put(self, b, o, data, ctype, q, meta=None):
        bk = self.bucket(b)
        self.check(b, o, q)
        md5, crc = b64(hashlib.md5(data).digest()), b64(google_crc32c.Checksum(data).digest())
        for k, v in (("md5Hash", md5), ("crc32c", crc)):
            if meta and meta.get(k) and meta[k] != v:
                raise Err(400, "invalid", f"{k} mismatch")
        self.gen += 1
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        m = {
            "kind": "storage#object",
            "id": f"{b}/{o}/{self.gen}",
            "name": o,
            "bucket": b,
            "generation": str(self.gen),
            "metageneration": "1",
            "contentType": ctype,
            "timeCreated": now,
            "updated": now,
            "storageClass": "STANDARD",
            "size": str(len(data)),
            "md5Hash": md5,
            "crc32c": crc,
            "etag": f"E{self.gen}",
            "_data": data,
            "selfLink": f"/storage/v1/b/{b}/o/{up.quote(o, safe='')}",
        }
        for k in ("metadata", "cacheControl", "contentEncoding", "contentLanguage", "contentDisposition", "customTime"):
            if meta and meta.get(k) is not None:
                m[k] = meta[k]
        if o not in bk["objects"]:
            bisect.insort(bk["names"], o)
        bk["objects"][o] = m
        return m

    def delete(self, b, o, q):
        self.obj(b, o, q)
        self.check(b, o, q)
        bk = self.bucket(b)
        del bk["objects"][o]
        bk["names"].pop(bisect.bisect_left(bk["names"], o))

    def list(self, b, q):
        bk = self.bucket(b)
        pre, delim = q.get("prefix", ""), q.get("delimiter")
        n = int(q.get("maxResults", 1000))
        start = max(q.get("pageToken", ""), q.get("startOffset", ""), pre)
        i = bisect.bisect_left(bk["names"], start)
        items, prefixes, tok = [], [], None
        end = q.get("endOffset")
        while i < len(bk["names"]):
            name = bk["names"][i]
            if not name.startswith(pre) or (end and name >= end):
                break
            if len(items) + len(prefixes) >= min(n, 1000):
                tok = name
                break
            j = name.find(delim, len(pre)) if delim else -1
            if j >= 0:
                p = name[: j + len(delim)]
                prefixes.append(p)
                if q.get("includeTrailingDelimiter") == "true" and p in bk["objects"]:
                    items.append(bk["objects"][p])
                i = bisect.bisect_left(bk["names"], p + "\U0010ffff")
                continue
            items.append(bk["objects"][name])
            i += 1
        return items, prefixes, tok

    # ---- http --------------------------------------------------------------
    pub = staticmethod(lambda m: {k: v for k, v in m.items() if k != "_data"})

    def media(self, m, req):
        d, h, st = (
            m["_data"],
            {
                "Content-Type": m["contentType"] or "application/octet-stream",
                "ETag": f'"{m["etag"]}"',
                "x-goog-generation": m["generation"],
                "x-goog-metageneration": m["metageneration"],
                "Accept-Ranges": "bytes",
                "Last-Modified": datetime.datetime.now(datetime.timezone.utc).strftime("%a, %d %b %Y %H:%M:%S GMT"),
                "x-goog-hash": f"crc32c={m['crc32c']},md5={m['md5Hash']}",
                "x-goog-stored-content-length": m["size"],
            },
            200,
        )
        r = re.fullmatch(r"bytes=(\d*)-(\d*)", req.headers.get("Range", ""))
        if r:
            n = len(d)
            a, z = r.groups()
            lo, hi = (max(0, n - int(z)), n) if not a else (int(a), min(n, int(z) + 1) if z else n)
            if lo >= n:
                return web.Response(status=416, headers={"Content-Range": f"bytes */{n}"})
            h["Content-Range"] = f"bytes {lo}-{hi - 1}/{n}"
            d, st = d[lo:hi], 206
        return web.Response(status=st, body=d, headers=h)

    async def handle(self, req):
        path, q = (
            up.urlsplit(req.raw_path).path,
            {k: v[-1] for k, v in up.parse_qs(req.query_string, keep_blank_values=True).items()},
        )
        body = await req.read()
        self.log.append((req.method, path))
        f = next(
            (x for x in self.faults if x["times"] > 0 and x["method"] == req.method and x["match"] in req.raw_path),
            None,
        )
        if f:
            f["times"] -= 1
        if f and not f.get("after"):
            return web.json_response({"error": {"code": f["status"], "message": "injected"}}, status=f["status"])
        try:
            resp = self.route(req, path, q, body)
        except Err as e:
            if e.code == 304:
                return web.Response(status=304)
            resp = web.json_response(
                {
                    "error": {
                        "code": e.code,
                        "message": e.msg,
                        "errors": [{"domain": "global", "reason": e.reason, "message": e.msg}],
                    }
                },
                status=e.code,
            )
        if f:
            return web.json_response({"error": {"code": f["status"], "message": "injected after"}}, status=f["status"])
        return resp

    def route(self, req, path, q, body):
        m, un = req.method, up.unquote
        J = lambda x, **k: web.json_response(x, **k)
        if path == "/_fault":
            self.faults.append({"times": 1, **json.loads(body)})
            return J({})
        if path == "/_reset":
            self.__init__(self.locations)
            return J({})
        if path == "/":
            return web.Response(text="OK")
        if path.startswith("/batch/storage/v1"):
            return self.batch(req, body)
        r = re.fullmatch(r"(?:/storage/v1)?/b", path)
        if r and m == "GET":
            return J({"kind": "storage#buckets", "items": [b["meta"] for b in self.buckets.values()]})
        if r and m == "POST":
            j = json.loads(body)
            n = j["name"]
            if n in self.buckets:
                raise Err(409, "conflict", "bucket exists")
            loc = j.get("location") or self.locations.get(n, "US")
            self.buckets[n] = {
                "objects": {},
                "names": [],
                "meta": {
                    "kind": "storage#bucket",
                    "id": n,
                    "name": n,
                    "location": loc,
                    "storageClass": "STANDARD",
                    "metageneration": "1",
                },
            }
            return J(self.buckets[n]["meta"])
        r = re.fullmatch(r"/upload/storage/v1/b/([^/]+)/o", path)
        if r:
            return self.upload(req, un(r[1]), q, body)
        r = re.fullmatch(r"(?:/storage/v1)?/b/([^/]+)", path)
        if r:
            bk = self.bucket(un(r[1]))
            if m == "DELETE":
                if bk["objects"]:
                    raise Err(409, "conflict", "not empty")
                del self.buckets[un(r[1])]
                return web.Response(status=204)
            return J(bk["meta"])
        r = re.fullmatch(r"(?:/storage/v1)?/b/([^/]+)/o", path)
        if r:
            it, pr, tok = self.list(un(r[1]), q)
            out = {"kind": "storage#objects", "items": [self.pub(x) for x in it], "prefixes": pr}
            return J(out | ({"nextPageToken": tok} if tok else {}))
        r = re.fullmatch(r"(?:/storage/v1)?/b/([^/]+)/o/([^/]+)/(rewriteTo|copyTo)/b/([^/]+)/o/([^/]+)", path)
        if r:
            b, o, verb, b2, o2 = map(un, r.groups())
            src = self.obj(b, o)
            self.check(b, o, q, "ifSource")
            meta = {**src, **(json.loads(body) if body else {})}
            meta.pop("md5Hash", None)
            meta.pop("crc32c", None)
            d = self.put(b2, o2, src["_data"], src["contentType"], q, meta)
            return J(
                self.pub(d)
                if verb == "copyTo"
                else {
                    "kind": "storage#rewriteResponse",
                    "done": True,
                    "totalBytesRewritten": d["size"],
                    "objectSize": d["size"],
                    "resource": self.pub(d),
                }
            )
        r = re.fullmatch(r"(?:/storage/v1)?/b/([^/]+)/o/([^/]+)/moveTo/o/([^/]+)", path)  # gcsfs >= 2026
        if r:
            b, o, o2 = map(un, r.groups())
            src = self.obj(b, o)
            self.check(b, o, q, "ifSource")
            d = self.put(b, o2, src["_data"], src["contentType"], q, src)
            self.delete(b, o, {})
            return J(self.pub(d))
        r = re.fullmatch(r"(?:/storage/v1)?/b/([^/]+)/o/([^/]+)/compose", path)
        if r:
            b, o = map(un, r.groups())
            j = json.loads(body)
            data = b"".join(self.obj(b, s["name"])["_data"] for s in j["sourceObjects"])
            return J(
                self.pub(
                    self.put(
                        b,
                        o,
                        data,
                        j.get("destination", {}).get("contentType", "application/octet-stream"),
                        q,
                        j.get("destination"),
                    )
                )
            )
        r = re.fullmatch(r"(?:/download)?(?:/storage/v1)?/b/([^/]+)/o/([^/]+)", path)
        if r:
            b, o = map(un, r.groups())
            if m == "DELETE":
                self.delete(b, o, q)
                return web.Response(status=204)
            ob = self.obj(b, o, q)
            self.check(b, o, q | ({"_read": "1"} if m == "GET" else {}))
            if m in ("PATCH", "PUT"):
                for k, v in json.loads(body).items():
                    if k == "metadata" and v is not None:
                        ob["metadata"] = {a: c for a, c in {**ob.get("metadata", {}), **v}.items() if c is not None}
                    else:
                        ob[k] = v
                ob["metageneration"] = str(int(ob["metageneration"]) + 1)
                return J(self.pub(ob))
            return self.media(ob, req) if q.get("alt") == "media" or path.startswith("/download") else J(self.pub(ob))
        r = re.fullmatch(r"/([^/]+)/(.+)", path)  # XML API (object_store crate)
        if r:
            b, o = un(r[1]), un(r[2])
            h = req.headers
            if "x-goog-if-generation-match" in h:
                q["ifGenerationMatch"] = h["x-goog-if-generation-match"]
            if m == "PUT":
                src = h.get("x-goog-copy-source")
                if src:
                    sb, so = un(src).strip("/").split("/", 1)
                    body = self.obj(sb, so)["_data"]
                d = self.put(b, o, body, h.get("Content-Type", "application/octet-stream"), q)
                return web.Response(headers={"ETag": f'"{d["etag"]}"', "x-goog-generation": d["generation"]})
            if m == "DELETE":
                self.delete(b, o, q)
                return web.Response(status=204)
            ob = self.obj(b, o)
            return self.media(ob, req)
        raise Err(501, "notImplemented", f"{m} {path}")

    def upload(self, req, b, q, body):
        uid = q.get("upload_id")
        J = web.json_response
        if uid:
            if req.method == "DELETE":
                self.uploads.pop(uid, None)
                return web.Response(status=499)
            if uid not in self.uploads:
                raise Err(404, "notFound", "upload")
            u = self.uploads[uid]
            cr = req.headers.get("Content-Range", "")
            r = re.fullmatch(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)", cr)
            if r and r[1] is not None:
                if int(r[1]) > len(u["buf"]):
                    raise Err(400, "invalid", "gap in upload")
                u["buf"][int(r[1]) :] = body
            elif not r:
                u["buf"] += body
            if r and (r[3] == "*" or len(u["buf"]) < int(r[3])):
                n = len(u["buf"])
                return web.Response(status=308, headers={"Range": f"bytes=0-{n - 1}"} if n else {})
            out = self.put(u["b"], u["o"], bytes(u["buf"]), u["ct"], u["q"], u["meta"])
            del self.uploads[uid]
            return J(self.pub(out))
        t = q.get("uploadType")
        if t == "media":
            return J(self.pub(self.put(b, q["name"], body, req.headers.get("Content-Type", ""), q)))
        if t == "multipart":
            bd = re.search(r'boundary="?([^";]+)"?', req.headers["Content-Type"])[1].encode()
            a = body.split(b"--" + bd, 2)
            meta = json.loads(re.split(rb"\r?\n\r?\n", a[1], maxsplit=1)[1])
            hdr, data = re.split(rb"\r?\n\r?\n", a[2], maxsplit=1)
            data = data[: data.rindex(b"--" + bd + b"--")]
            data = data[:-2] if data.endswith(b"\r\n") and b"\r\n" in hdr else data[:-1]
            ct = re.search(rb"(?i)content-type:\s*([^\r\n]+)", hdr)
            return J(self.pub(self.put(b, q.get("name") or meta["name"], data, ct[1].decode() if ct else "", q, meta)))
        if t == "resumable":
            self.bucket(b)
            meta = json.loads(body) if body else {}
            o = q.get("name") or meta["name"]
            self.check(b, o, q)
            self.gen += 1
            uid = f"u{self.gen}"
            self.uploads[uid] = {
                "b": b,
                "o": o,
                "q": q,
                "meta": meta,
                "buf": bytearray(),
                "ct": req.headers.get("X-Upload-Content-Type", meta.get("contentType", "application/octet-stream")),
            }
            return web.Response(
                headers={
                    "Location": f"http://{req.host}/upload/storage/v1/b/{b}/o?uploadType=resumable&upload_id={uid}"
                }
            )
        raise Err(400, "invalid", "uploadType")

    def batch(self, req, body):
        bd = re.search(r'boundary="?([^";]+)"?', req.headers["Content-Type"])[1]
        out = []
        for part in body.decode().split("--" + bd)[1:-1]:
            r = re.search(
                r"(DELETE|GET|PATCH) (?:https?://[^/\s]+)?(?:/storage/v1)?/b/([^/\s]+)/o/([^\s?]+)(?:\?(\S*))? ?", part
            )
            cid = re.search(r"(?i)content-id:\s*(\S+)", part)
            st, txt = "204 No Content", ""
            try:
                self.delete(up.unquote(r[2]), up.unquote(r[3]), {k: v[-1] for k, v in up.parse_qs(r[4] or "").items()})
            except Err as e:
                st, txt = f"{e.code} Error", json.dumps({"error": {"code": e.code, "message": e.msg}})
            out.append(
                f"--{bd}\r\nContent-Type: application/http\r\n"
                + (f"Content-ID: <response-{cid[1].strip('<>')}>\r\n" if cid else "")
                + f"\r\nHTTP/1.1 {st}\r\nContent-Type: application/json\r\nContent-Length: {len(txt)}\r\n\r\n{txt}\r\n"
            )
        return web.Response(
            body=("".join(out) + f"--{bd}--").encode(), headers={"Content-Type": f"multipart/mixed; boundary={bd}"}
        )

    async def serve(self, host="127.0.0.1", port=0):
        app = web.Application(client_max_size=4 << 30)
        app.router.add_route("*", "/{tail:.*}", self.handle)
        r = web.AppRunner(app, access_log=None)
        await r.setup()
        s = web.TCPSite(r, host, port)
        await s.start()
        return f"http://{host}:{s._server.sockets[0].getsockname()[1]}"

    def start_in_thread(self):
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        return asyncio.run_coroutine_threadsafe(self.serve(), loop).result(10)
