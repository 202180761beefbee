"""A Hub on the loopback, for tests: enough of its HTTP to create, commit, tag, list and read repositories.

Contents lie in memory by sha256; a commit is a tree of paths, so that every revision stays readable. Faults
are planted with ``Hub.plant`` and met by the next requests that match. Standard library alone.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from hub_store import LARGE, Repo, Store

TOKEN = "hf_LoopbackWriteToken0123456789abcdef"
READ_ONLY = "hf_LoopbackReadToken0123456789abcdefg"
EXPIRED = "hf_LoopbackExpiredToken0123456789abcd"
MADE = "2026-01-01T00:00:00.000Z"


class Hub(Store):
    """A store with a server thread before it; a context manager."""

    def __init__(self) -> None:
        super().__init__()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.hub = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> Hub:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    hub: Hub

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that hang up: tests kill them."""


class _Refused(Exception):
    def __init__(self, status: int, code: str, message: str = "", **more: str) -> None:
        super().__init__(message or code)
        self.status, self.code, self.more = status, code, more


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None:
        """Keep the tests' output clean."""

    def _handle(self) -> None:
        self.hub = self.server.hub
        parts = urlsplit(self.path)
        self.options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        size = int(self.headers.get("Content-Length") or 0)
        if self.headers.get("Transfer-Encoding") == "chunked":
            self.data = self._chunks()
        else:
            self.data = self.rfile.read(size)
            if len(self.data) < size:
                return  # the client died while it sent
        self.muted = False
        fault = self.hub.met(f"{self.command} {parts.path}")
        if fault and fault.act:
            fault.act()
        if fault and fault.cut == "before":
            return self._hang_up()
        if fault and fault.status:
            message = fault.message.replace("{auth}", self.headers.get("Authorization") or "")
            return self._refuse(fault.status, "Planted", message, fault.headers)
        self.muted = bool(fault and fault.cut == "after")
        try:
            self._route(self.command, parts.path)
        except _Refused as refused:
            self._refuse(refused.status, refused.code, str(refused), **refused.more)
        if self.muted:
            self._hang_up()

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _handle

    def _chunks(self) -> bytes:
        data = b""
        while size := int(self.rfile.readline(), 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    # --- answers -----------------------------------------------------------------------------------

    def _send(self, body: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        if self.muted:
            return
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {"Content-Type": "application/json", "Content-Length": str(len(data))} | (headers or {})
        self.send_response(status)
        for name, value in named.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _refuse(
        self, status: int, code: str, message: str, headers: dict[str, str] | None = None, **more: str
    ) -> None:
        named = {"X-Error-Code": code, "X-Error-Message": message or code} | (headers or {})
        self._send({"error": message or code} | more, status, named)

    # --- who may what ------------------------------------------------------------------------------

    def _token(self) -> str | None:
        header = self.headers.get("Authorization")
        token = header.removeprefix("Bearer ") if header else None
        if token is not None and token not in (TOKEN, READ_ONLY):
            raise _Refused(401, "Unauthorized", "Invalid credentials in Authorization header")
        return token

    def _require_write(self) -> None:
        token = self._token()
        if token is None:
            raise _Refused(401, "Unauthorized", "Log in first")
        if token != TOKEN:
            raise _Refused(403, "Forbidden", "You have read access only")

    def _repo(self, kind: str, name: str) -> Repo:
        token = self._token()
        repo = self.hub.repos.get((kind, name))
        if repo is None or (repo.private and token is None):
            raise _Refused(404 if token else 401, "RepoNotFound", "Repository not found")
        return repo

    def _commit(self, repo: Repo, revision: str) -> str:
        found = repo.resolve(revision)
        if found is None:
            raise _Refused(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return found

    # --- routes ------------------------------------------------------------------------------------

    def _route(self, method: str, path: str) -> None:
        if path == "/api/whoami-v2":
            if self._token() is None:
                raise _Refused(401, "Unauthorized", "Log in first")
            return self._send({"type": "user", "name": "owner", "orgs": [], "auth": {"type": "access_token"}})
        if path == "/api/validate-yaml":
            return self._send({"errors": [], "warnings": []})
        if path == "/api/repos/create":
            return self._create()
        if found := re.fullmatch(r"/lfs/([0-9a-f]{64})", path):
            return self._upload(found[1])
        if found := re.fullmatch(r"/(?:(datasets)/)?([^/]+/[^/]+)\.git/info/lfs/objects/batch", path):
            return self._batch()
        if found := re.fullmatch(r"/api/(datasets|models)/([^/]+/[^/]+)(?:/([^/]+)(?:/(.*))?)?", path):
            return self._api(found[1], found[2], found[3] or "revision", found[4] or "main")
        if found := re.fullmatch(r"/(?:(datasets)/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            return self._resolve(found[1] or "models", found[2], found[3], unquote(found[4]))
        raise _Refused(404, "NotFound", f"{method} {path}")

    def _create(self) -> None:
        self._require_write()
        asked = json.loads(self.data)
        kind = asked.get("type", "model") + "s"
        name = f"{asked.get('organization') or 'owner'}/{asked['name']}"
        if name.split("/")[0] != "owner":
            raise _Refused(403, "Forbidden", "You don't have the rights to create a repository there")
        with self.hub.lock:
            if (kind, name) in self.hub.repos:
                url = f"{self.hub.url}/{kind}/{name}"
                raise _Refused(409, "RepoAlreadyExists", "You already created this repo", url=url)
            self.hub.create(name, kind, asked.get("visibility") == "private" or asked.get("private", False))
        self._send({"url": f"{self.hub.url}/{kind}/{name}", "name": name, "id": "1"})

    def _upload(self, sha256: str) -> None:
        if hashlib.sha256(self.data).hexdigest() != sha256:
            raise _Refused(400, "BadDigest", "the bytes have another hash")
        with self.hub.lock:
            self.hub.blobs[sha256] = self.data
            self.hub.sent.append(sha256)
        self._send(b"")

    def _batch(self) -> None:
        self._require_write()
        objects = [{"oid": each["oid"], "size": each["size"]} for each in json.loads(self.data)["objects"]]
        for each in objects:
            if each["oid"] not in self.hub.blobs:
                each["actions"] = {"upload": {"href": f"{self.hub.url}/lfs/{each['oid']}"}}
        self._send({"transfer": "basic", "objects": objects})

    def _api(self, kind: str, name: str, what: str, rest: str) -> None:
        repo = self._repo(kind, name)
        known = {
            "revision": self._info,
            "refs": self._refs,
            "tag": self._tag,
            "preupload": self._preupload,
            "commit": self._make_commit,
            "tree": self._tree,
            "paths-info": self._paths,
        }
        if what not in known:
            raise _Refused(404, "NotFound", what)
        known[what](repo, name, rest)

    def _info(self, repo: Repo, name: str, revision: str) -> None:
        commit = self._commit(repo, revision)
        siblings = [{"rfilename": path} for path in sorted(repo.commits[commit].tree)]
        self._send({
            "_id": "1", "id": name, "author": name.split("/")[0], "sha": commit, "lastModified": MADE,
            "createdAt": MADE, "private": repo.private, "gated": False, "disabled": False, "tags": [],
            "downloads": 0, "likes": 0, "siblings": siblings,
        })  # fmt: skip

    def _refs(self, repo: Repo, name: str, rest: str) -> None:
        def listed(refs: dict[str, str], kind: str) -> list[dict[str, str]]:
            return [{"name": n, "ref": f"refs/{kind}/{n}", "targetCommit": c} for n, c in refs.items()]

        tags = listed(repo.tags, "tags")
        self._send({"branches": listed(repo.branches, "heads"), "tags": tags, "converts": []})

    def _tag(self, repo: Repo, name: str, revision: str) -> None:
        self._require_write()
        tag = json.loads(self.data)["tag"]
        with self.hub.lock:
            commit = self._commit(repo, revision)
            if tag in repo.tags:
                raise _Refused(409, "RefAlreadyExists", f"Reference already exists: refs/tags/{tag}")
            repo.tags[tag] = commit
        self._send({})

    def _preupload(self, repo: Repo, name: str, revision: str) -> None:
        self._require_write()
        tree = repo.commits[self._commit(repo, revision)].tree
        files = []
        for each in json.loads(self.data)["files"]:
            path, there = each["path"], tree.get(each["path"])
            mode = "lfs" if path.endswith(LARGE) else "regular"
            found = {"path": path, "uploadMode": mode, "shouldIgnore": False}
            if there:
                found["oid"] = there.sha256 if there.large else there.oid
            files.append(found)
        self._send({"files": files, "commitOid": repo.branches["main"]})

    def _make_commit(self, repo: Repo, name: str, branch: str) -> None:
        self._require_write()
        lines = [json.loads(line) for line in self.data.splitlines() if line.strip()]
        with self.hub.lock:
            head = repo.branches["main"]
            tree, title = dict(repo.commits[head].tree), ""
            for line in lines:
                value = line["value"]
                if line["key"] == "header":
                    title = value["summary"]
                    if value.get("parentCommit") not in (None, head):
                        raise _Refused(412, "PreconditionFailed", "A commit has happened since")
                elif line["key"] == "file":
                    tree[value["path"]] = self.hub.store(value["path"], base64.b64decode(value["content"]))
                elif line["key"] == "lfsFile":
                    if value["oid"] not in self.hub.blobs:
                        raise _Refused(400, "BadRequest", f"{value['path']} was never uploaded")
                    tree[value["path"]] = self.hub.file(value["path"], value["oid"])
                elif line["key"] == "deletedFile":
                    del tree[value["path"]]
            oid = repo.add(title, tree)
        self._send({"success": True, "commitOid": oid, "commitUrl": f"{self.hub.url}/{name}/commit/{oid}"})

    def _tree(self, repo: Repo, name: str, rest: str) -> None:
        revision, _, below = rest.partition("/")
        tree = repo.commits[self._commit(repo, revision)].tree
        prefix = unquote(below).strip("/")
        start = f"{prefix}/" if prefix else ""
        if prefix and not any(path.startswith(start) for path in tree):
            raise _Refused(404, "EntryNotFound", f"{prefix} does not exist")
        deep = self.options.get("recursive", "").lower() in ("true", "1")
        inside = {path: file for path, file in tree.items() if path.startswith(start)}
        folders = {path[:end] for path in inside for end in _slashes(path) if end > len(start)}
        entries = [_folder(path) for path in folders if deep or "/" not in path[len(start) :]]
        entries += [f.entry(path) for path, f in inside.items() if deep or "/" not in path[len(start) :]]
        entries = self._expanded(entries, self._commit(repo, revision), self.options.get("expand", ""))
        self._page(sorted(entries, key=lambda entry: entry["path"]))

    def _expanded(self, entries: list[dict[str, Any]], commit: str, asked: str) -> list[dict[str, Any]]:
        """Say which commit touched an entry last, where that is asked for."""
        if "true" not in asked.lower() and asked != "1":
            return entries
        return [entry | {"lastCommit": {"id": commit, "title": "", "date": MADE}} for entry in entries]

    def _page(self, entries: list[dict[str, Any]]) -> None:
        """Answer in pages, as the Hub does; small ones, so that tests meet the second."""
        start, size = int(self.options.get("cursor", 0)), 20
        headers = {}
        if start + size < len(entries):
            options = {**self.options, "cursor": str(start + size)}
            query = "&".join(f"{name}={value}" for name, value in options.items())
            headers["Link"] = f'<{self.hub.url}{urlsplit(self.path).path}?{query}>; rel="next"'
        self._send(entries[start : start + size], headers=headers)

    def _paths(self, repo: Repo, name: str, revision: str) -> None:
        tree = repo.commits[self._commit(repo, revision)].tree
        asked = parse_qs(self.data.decode())
        if (self.headers.get("Content-Type") or "").startswith("application/json"):
            asked = json.loads(self.data)
        paths = asked.get("paths", [])
        folders = {path[:end] for path in tree for end in _slashes(path)}
        found = [tree[p].entry(p) if p in tree else _folder(p) for p in paths if p in tree or p in folders]
        self._send(self._expanded(found, revision, str(asked.get("expand"))))

    def _resolve(self, kind: str, name: str, revision: str, path: str) -> None:
        repo = self._repo(kind, name)
        commit = self._commit(repo, revision)
        file = repo.commits[commit].tree.get(path)
        if file is None:
            raise _Refused(404, "EntryNotFound", "Entry not found")
        data = self.hub.blobs[file.sha256]
        etag = file.sha256 if file.large else file.oid
        headers = {"X-Repo-Commit": commit, "ETag": f'"{etag}"', "Accept-Ranges": "bytes"}
        if file.large:
            headers |= {"X-Linked-Etag": f'"{etag}"', "X-Linked-Size": str(file.size)}
        status, asked = 200, re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range") or "")
        if asked:
            first = int(asked[1]) if asked[1] else max(0, len(data) - int(asked[2]))
            last = min(len(data) - 1, int(asked[2])) if asked[1] and asked[2] else len(data) - 1
            if first >= len(data):
                return self._send(b"", 416, {"Content-Range": f"bytes */{len(data)}"})
            headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
            data, status = data[first : last + 1], 206
        self._send(data, status, headers | {"Content-Type": "application/octet-stream"})


def _slashes(path: str) -> list[int]:
    return [index for index, letter in enumerate(path) if letter == "/"]


def _folder(path: str) -> dict[str, Any]:
    return {"type": "directory", "path": path, "oid": hashlib.sha1(path.encode()).hexdigest(), "size": 0}
