"""A small hub on 127.0.0.1 for the tests: serves folders as repositories, badly where it is told to.

server.py ROOT: ROOT/ORG/NAME/... are the repositories, ROOT/behaviour.json says what goes wrong:
  {"token": "secret",             every request needs it (401 without, as huggingface.co)
   "commit": "40 hex digits",     of every repository [c0c0...]
   "answer": "text",              the list of files is this text
   "answer_size": 100,            the list of files is so many spaces
   "any_revision": true,          every revision is there
   "rules": [{"path": "part of a path", "times": 1, ...}]}  the first rule whose path fits and that has times left
     "status": 503, "headers": {"Retry-After": "1"}   answers so
     "cut": 1000                                      closes the connection after so many bytes of the body
     "ignore_range": true                             sends the whole file with 200
     "body": "text"                                   sends this in place of the file's content
     "content_range": "bytes 5-9/10"                  this header in place of the right one
     "wait": 30                                       sleeps after ten bytes of the body
     "no_length": true                                no Content-Length: the end of the connection ends the body
     "list_size": 12, "list_sha": "...", "list_name": "../x"   what the list of files says of a file
Files over 1000 bytes are large ones (LFS): their address redirects to a second port, the "CDN".
Prints both ports on one line, appends a line for each request to ROOT/requests.jsonl, and to ROOT/waiting how many
answers sleep each time that one begins to.
"""

import hashlib
import http.server
import json
import os
import re
import sys
import threading
import time
import urllib.parse

ROOT = sys.argv[1]
LARGE = 1000
used = {}
waiting = 0
lock = threading.Lock()


def behaviour():
    try:
        with open(os.path.join(ROOT, "behaviour.json"), encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def rule_for(path, take=True):
    told = behaviour()
    for rule in told.get("rules", []):
        key = json.dumps([told.get("serial"), rule], sort_keys=True)
        with lock:
            if rule["path"] in path and used.get(key, 0) < rule.get("times", 1 << 30):
                if take:
                    used[key] = used.get(key, 0) + 1
                return rule
    return {}


def sibling(path, name):
    with open(path, "rb") as file:
        content = file.read()
    rule = rule_for(name, take=False)
    size = rule.get("list_size", len(content))
    entry = {"rfilename": rule.get("list_name", name), "size": size,
             "blobId": hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()}
    if len(content) > LARGE:
        entry["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": size, "pointerSize": 134}
        if "list_sha" in rule:
            entry["lfs"]["sha256"] = rule["list_sha"]
    elif "list_sha" in rule:
        entry["blobId"] = rule["list_sha"]
    return entry


class Hub(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cdn_port = 0

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.close_connection = True
        with lock, open(os.path.join(ROOT, "requests.jsonl"), "a", encoding="utf-8") as file:
            file.write(json.dumps({"port": self.server.name, "path": self.path, "range": self.headers["Range"],
                                   "authorization": self.headers["Authorization"]}) + "\n")
        try:
            self.answer(urllib.parse.unquote(urllib.parse.urlsplit(self.path).path))
        except (BrokenPipeError, ConnectionResetError):
            pass

    def answer(self, path):
        told = behaviour()
        commit = told.get("commit", "c0" * 20)
        token = told.get("token")
        if self.server.name == "hub" and token and self.headers["Authorization"] != "Bearer " + token:
            message = "Invalid username or password."
            return self.plain(401, message.encode(), {"X-Error-Message": message})
        api = re.fullmatch(r"/api/models/([^/]+/[^/]+)/revision/(.+)", path)
        if api:
            return self.list_files(api[1], api[2], commit, path, told)
        file = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        if not file or not os.path.isfile(os.path.join(ROOT, file[1], file[3])):
            return self.plain(404, b"Entry not found", {"X-Error-Code": "EntryNotFound"})
        with open(os.path.join(ROOT, file[1], file[3]), "rb") as opened:
            content = opened.read()
        if self.server.name == "hub" and len(content) > LARGE:
            return self.plain(302, b"", {"Location": "http://127.0.0.1:%d%s?signed=1" % (Hub.cdn_port, self.path)})
        return self.send_content(content, rule_for(path))

    def list_files(self, repository, revision, commit, path, told):
        rule = rule_for(path)
        if "status" in rule:
            return self.plain(rule["status"], b"no", rule.get("headers", {}))
        folder = os.path.join(ROOT, repository)
        if not os.path.isdir(folder):
            return self.plain(404, b"no", {"X-Error-Code": "RepoNotFound"})
        if not told.get("any_revision") and revision not in ("main", "v1", "refs/pr/1", commit):
            return self.plain(404, b"no", {"X-Error-Code": "RevisionNotFound"})
        names = sorted(os.path.relpath(os.path.join(at, name), folder)
                       for at, _, names in os.walk(folder) for name in names)
        answer = {"id": repository, "sha": commit,
                  "siblings": [sibling(os.path.join(folder, name), name) for name in names]}
        text = " " * told.get("answer_size", 0) or told.get("answer", json.dumps(answer))
        return self.plain(200, text.encode(), {"Content-Type": "application/json"})

    def plain(self, status, body, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def send_content(self, content, rule):
        if "status" in rule:
            return self.plain(rule["status"], b"no", rule.get("headers", {}))
        body = rule["body"].encode() if "body" in rule else content
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers["Range"] or "")
        first = int(wanted[1]) if wanted and not rule.get("ignore_range") else None
        if first is not None and first >= len(body):
            return self.plain(416, b"", {"Content-Range": "bytes */%d" % len(body)})
        self.send_response(200 if first is None else 206)
        if first is not None:
            right = "bytes %d-%d/%d" % (first, len(body) - 1, len(body))
            self.send_header("Content-Range", rule.get("content_range", right))
            body = body[first:]
        if not rule.get("no_length"):
            self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.flush()
        if "cut" in rule:
            body = body[:rule["cut"]]
        if "wait" in rule:
            self.wfile.write(body[:10])
            self.wfile.flush()
            self.wait(rule["wait"])
            body = body[10:]
        self.wfile.write(body)
        self.wfile.flush()

    def wait(self, seconds):
        global waiting
        with lock, open(os.path.join(ROOT, "waiting"), "a", encoding="utf-8") as file:
            waiting += 1
            file.write("%d\n" % waiting)
        end = time.monotonic() + seconds
        serial = behaviour().get("serial")
        while time.monotonic() < end and behaviour().get("serial") == serial:  # else another test has begun
            time.sleep(0.02)
        with lock:
            waiting -= 1


def serve(name):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.daemon_threads = True
    server.name = name
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


Hub.cdn_port = serve("cdn")
print(serve("hub"), Hub.cdn_port, flush=True)
sys.stdin.read()  # until the test that started it is gone
