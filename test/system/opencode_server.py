"""
A server as opencode has it, for tests: requests for permission, questions, and one stream of
events about all folders. It keeps to the contract of opencode 1.18: lists and replies are
about one folder, which a query names; a reply that nothing waits for is a 404; with a
password, everything wants it.

A test asks (`ask`, `ask_question`), answers by itself (`answer`), and looks at what it was sent
(`replies`, `asked`). `broken` says how it misbehaves from now on: see `Handler`.
"""
import base64
import contextlib
import http.server
import json
import os
import queue
import threading
import time
import urllib.parse

PATIENCE = 60.0


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    @property
    def fake(self):
        return self.server.fake

    def parse(self):
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query)
        return url.path, query.get("directory", [self.fake.folder])[0]

    def answer(self, status, value, headers=()):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, text in headers:
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def allowed(self):
        password = self.fake.password
        if not password:
            return True
        want = "Basic " + base64.b64encode(("opencode:" + password).encode()).decode()
        return self.headers.get("Authorization") == want

    def handle_one_request(self):
        with contextlib.suppress(OSError):
            super().handle_one_request()

    def do_GET(self):
        path, folder = self.parse()
        fake = self.fake
        fake.asked.append((path, folder, self.headers.get("Authorization")))
        if not self.allowed():
            self.answer(401, b"", [("WWW-Authenticate", 'Basic realm="Secure Area"')])
        elif fake.broken == "redirect":
            self.answer(302, b"", [("Location", fake.lure)])
        elif fake.broken == "elsewhere":
            self.answer(404, {"error": "Not Found"})
        elif path == "/global/health":
            self.answer(200, {"healthy": True, "version": "1.18.33"})
        elif path == "/global/event":
            self.stream()
        elif path == "/path":
            self.answer(200, b"[1]" if fake.broken == "path" else {"directory": fake.folder})
        elif path in ("/permission", "/question"):
            self.list(path, folder)
        else:
            self.answer(404, {"error": "Not Found"})

    def list(self, path, folder):
        fake = self.fake
        if fake.broken == "list":
            self.answer(200, b'{"not": "a list"}')
            return
        if fake.broken == "huge list":
            self.answer(200, b"[" + b" " * (9 << 20) + b"]")
            return
        with fake.lock:
            rows = [dict(r) for r in fake.open.values()
                    if r["directory"] == folder and ("questions" in r) == (path == "/question")]
        for row in rows:
            row.pop("directory")
        self.answer(200, rows)

    def stream(self):
        fake = self.fake
        events = queue.Queue()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        if fake.broken == "endless head":
            self.flush_headers()
            with contextlib.suppress(OSError):
                while True:
                    self.wfile.write(b"X-More: " + b"x" * 4000 + b"\r\n")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        if fake.broken == "silent":
            fake.closing.wait(PATIENCE)
            return
        events.put(fake.event_text("server.connected", {}, None))
        with fake.lock:
            fake.streams.append(events)
        with contextlib.suppress(OSError):
            while (text := events.get()) is not None:
                self.wfile.write(text)
                self.wfile.flush()
        with fake.lock, contextlib.suppress(ValueError):
            fake.streams.remove(events)

    def do_POST(self):
        path, folder = self.parse()
        fake = self.fake
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.allowed():
            self.answer(401, b"")
            return
        _, what, id, verb = path.split("/")
        if fake.broken == "reply":
            self.answer(503, {"error": "busy"})
            return
        with fake.lock:
            row = fake.open.get(id)
            found = row and row["directory"] == folder and ("questions" in row) == (what == "question")
            if found:
                del fake.open[id]
        if not found:
            self.answer(404, {"_tag": "NotFoundError", "requestID": id})
            return
        fake.say_answered(row, what, verb, body)
        self.answer(200, True)
        fake.replies.put((id, body))


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    allow_reuse_address = True


class Opencode:
    """For a `with`; `stop` and `start` again at the same port make it go away and come back."""

    def __init__(self, folder="/src/app", password=None):
        self.folder = folder
        self.password = password
        self.broken = None
        self.lure = "http://127.0.0.1:9/"
        self.lock = threading.Lock()
        self.open = {}
        self.replies = queue.Queue()
        self.asked = []
        self.streams = []
        self.n = 0
        self.own = os.urandom(4).hex()  # no two servers give the same id
        self.port = 0
        self.http = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.stop()

    def start(self):
        self.closing = threading.Event()
        self.http = Server(("127.0.0.1", self.port), Handler)
        self.http.fake = self
        self.port = self.http.server_address[1]
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def stop(self):
        """Whatever it was asked for stays, unless the test forgets it: `open.clear()`."""
        if not self.http:
            return
        self.closing.set()
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()
        self.cut()
        self.http = None

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.port

    # ---- what it tells ----

    def event_text(self, kind, properties, folder):
        self.n += 1
        event = {"payload": {"id": "evt_%08d" % self.n, "type": kind, "properties": properties}}
        if folder:
            event = {"directory": folder, "project": "global", **event}
        return b"data: " + json.dumps(event).encode() + b"\n\n"

    def send(self, text):
        with self.lock:
            for stream in self.streams:
                stream.put(text)

    def tell(self, kind, properties, folder=None):
        self.send(self.event_text(kind, properties, folder or self.folder))

    def cut(self):
        """Ends all streams."""
        self.send(None)

    def say_answered(self, row, what, verb, body):
        told = {"sessionID": row["sessionID"], "requestID": row["id"]}
        if what == "permission":
            self.tell("permission.replied", {**told, "reply": body["reply"]}, row["directory"])
        elif verb == "reply":
            self.tell("question.replied", {**told, "answers": body["answers"]}, row["directory"])
        else:
            self.tell("question.rejected", told, row["directory"])

    # ---- what a test does ----

    def ask(self, command="touch it", folder=None, session="ses_1", permission="bash", tell=True, **more):
        """A request for permission; returns its id."""
        self.n += 1
        row = {"id": "per_%08d%s" % (self.n, self.own), "sessionID": session, "permission": permission,
               "patterns": [command], "metadata": {"command": command}, "always": ["touch *"],
               "tool": {"messageID": "msg_1", "callID": "call_%d" % self.n}, **more}
        return self.put("permission.asked", row, folder, tell)

    def ask_question(self, *questions, folder=None, session="ses_1"):
        self.n += 1
        row = {"id": "que_%08d%s" % (self.n, self.own), "sessionID": session, "questions": list(questions),
               "tool": {"messageID": "msg_1", "callID": "call_%d" % self.n}}
        return self.put("question.asked", row, folder, True)

    def put(self, kind, row, folder, tell):
        folder = folder or self.folder
        with self.lock:
            self.open[row["id"]] = {**row, "directory": folder}
        if tell:
            self.tell(kind, row, folder)
        return row["id"]

    def answer(self, id, reply="once"):
        """Somebody answers in opencode's own dialog."""
        with self.lock:
            row = self.open.pop(id)
        self.say_answered(row, "permission", "reply", {"reply": reply})

    def reply(self, patience=PATIENCE):
        """The next reply that came: (id, body)."""
        return self.replies.get(timeout=patience)

    def wait_streams(self, n=1, patience=PATIENCE):
        end = time.monotonic() + patience
        while len(self.streams) < n:
            if time.monotonic() > end:
                raise AssertionError("nobody listens to the events")
            time.sleep(0.005)
