"""
Push servers for tests: a real HTTP server on loopback that keeps ntfy's and Telegram's contracts,
both directions, and refuses what the real ones refuse. A test holds the phone: it sees what
arrived, presses buttons as the phone's program would, and replies.

`trouble` has answers for the next requests of a kind ("send", "read"), instead of the right one.
"""
import http.server
import itertools
import json
import re
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from harness import PATIENCE, Failure, wait_until

IDS = itertools.count(1)

# Of ntfy's "publish as JSON". Since 2.16 a message with the sequence_id of an earlier one takes its
# place in the app; an older server does not know the field, and the message is another one.
FIELDS = {"topic", "message", "title", "tags", "priority", "actions", "click", "attach", "markdown",
          "icon", "filename", "delay", "email", "call", "sequence_id"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Each piece of a stream is a write of its own.
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def do_GET(self):
        self.server.play(self, b"")

    def do_POST(self):
        self.server.play(self, self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def answer(self, status, value, headers=()):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in headers:
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.changed = threading.Condition()
        self.closing = False
        self.wrong = []  # what the real server would not have taken
        self.trouble = {"send": [], "read": []}
        self.asked = []  # (kind, path, headers, body)
        self.messages = []

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.server_address[1]

    def __enter__(self):
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05},
                         daemon=True).start()
        return self

    def __exit__(self, kind, *exc):
        with self.changed:
            self.closing = True
            self.changed.notify_all()
        self.shutdown()
        self.server_close()
        if kind is None and self.wrong:
            raise Failure("the server was asked wrongly: %r" % self.wrong)

    def handle_error(self, request, address):
        pass  # the client has left

    def note(self, kind, handler, body):
        """Remembers it; an answer that the test wants instead of the right one, or None."""
        with self.changed:
            self.asked.append((kind, handler.path, dict(handler.headers), body))
            self.changed.notify_all()
            if self.trouble[kind]:
                return self.trouble[kind].pop(0)
        return None

    def count(self, kind):
        return sum(a[0] == kind for a in self.asked)

    def misplay(self, handler, trouble):
        if callable(trouble):
            trouble(handler)
        else:
            handler.answer(*trouble)

    def wait_for(self, condition, what):
        return wait_until(condition, what)

    def arrived(self, n):
        """The nth message, once it is there."""
        self.wait_for(lambda: len(self.messages) >= n, "message %d" % n)
        return self.messages[n - 1]


class Ntfy(Server):
    """POST / with JSON, POST /TOPIC, GET /TOPIC/json?since=."""

    def __init__(self, topic="koine-secret-topic", key=None, version=(2, 16)):
        super().__init__()
        self.version = version
        self.topic = topic
        self.key = key
        self.topics = {}  # name to messages, oldest first
        self.sequences = {}

    def publish(self, topic, body, **more):
        with self.changed:
            now = int(time.time())
            m = {"id": "m%011d" % next(IDS), "time": now, "expires": now + 43200,
                 "event": "message", "topic": topic, "message": body, **more}
            self.topics.setdefault(topic, []).append(m)
            self.changed.notify_all()
        return m

    def play(self, h, body):
        url = urllib.parse.urlparse(h.path)
        parts = url.path.strip("/").split("/")
        if h.command == "GET" and len(parts) == 2 and parts[1] == "json":
            self.stream(h, parts[0], urllib.parse.parse_qs(url.query))
        elif h.command == "POST" and parts == [""]:
            self.take(h, body)
        elif h.command == "POST" and len(parts) == 1:
            h.answer(200, self.publish(parts[0], body.decode()))
        else:
            h.answer(404, {"code": 40401, "http": 404, "error": "page not found"})

    def may(self, h):
        if self.key is None or h.headers.get("Authorization") == "Bearer " + self.key:
            return True
        h.answer(401, {"code": 40101, "http": 401, "error": "unauthorized"})
        return False

    def check(self, m):
        if len(m["message"].encode()) > 4096:
            self.wrong.append("message of %d bytes" % len(m["message"].encode()))
        if len(m.get("actions", [])) > 3:
            self.wrong.append("%d actions" % len(m["actions"]))
        for a in m.get("actions", []):
            if a["action"] != "http" or not a["label"] or not a["url"].startswith("http"):
                self.wrong.append("action %r" % a)
        if not 1 <= m.get("priority", 3) <= 5:
            self.wrong.append("priority %r" % m["priority"])
        unknown = set(m) - FIELDS
        if unknown:
            self.wrong.append("fields %r" % unknown)

    def take(self, h, body):
        trouble = self.note("send", h, body)
        if trouble:
            self.misplay(h, trouble)
            return
        if not self.may(h):
            return
        m = json.loads(body)
        self.check(m)
        sequence = m.get("sequence_id")
        if sequence is not None and not re.fullmatch("[-_A-Za-z0-9]{1,64}", sequence):
            h.answer(400, {"http": 400, "error": "invalid request: sequence ID invalid"})
            self.wrong.append("sequence_id %r" % sequence)
            return
        told = {k: m[k] for k in ("title", "priority", "click", "actions") if k in m}
        if sequence and self.version >= (2, 16):
            told["sequence_id"] = sequence
        sent = self.publish(m["topic"], m["message"], **told)
        h.answer(200, sent)
        with self.changed:
            m["id"] = sent["id"]
            if m["topic"] != self.topic:
                self.wrong.append("topic %r" % m["topic"])
            sequence = sent.get("sequence_id", sent["id"])
            first = self.sequences.get(sequence)
            if first is None:
                m["changes"] = []
                self.sequences[sequence] = m
                self.messages.append(m)
            else:
                first["changes"].append(m)

    def since(self, topic, query):
        """The index of the first message to be told."""
        have = self.topics.setdefault(topic, [])
        since = query.get("since", [""])[0]
        for i, m in enumerate(have):
            if m["id"] == since:
                return i + 1
        if since.isdigit():
            return next((i for i, m in enumerate(have) if m["time"] >= int(since)), len(have))
        if since:
            self.wrong.append("since=%s" % since)
        return len(have)

    def stream(self, h, topic, query):
        trouble = self.note("read", h, b"")
        if trouble:
            self.misplay(h, trouble)
            return
        if not self.may(h):
            return
        h.send_response(200)
        h.send_header("Content-Type", "application/x-ndjson; charset=utf-8")
        h.send_header("Transfer-Encoding", "chunked")
        h.end_headers()
        at = self.since(topic, query)
        self.tell(h, {"id": "o%011d" % next(IDS), "time": int(time.time()), "event": "open",
                      "topic": topic})
        while not self.closing:
            with self.changed:
                self.changed.wait_for(lambda: self.closing or len(self.topics[topic]) > at, 1)
                new = self.topics[topic][at:]
            at += len(new)
            for m in new:
                self.tell(h, m)
            if not new:
                self.tell(h, {"id": "k%011d" % next(IDS), "time": int(time.time()),
                              "event": "keepalive", "topic": topic})
        h.wfile.write(b"0\r\n\r\n")

    def tell(self, h, value):
        line = json.dumps(value).encode() + b"\n"
        h.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        h.wfile.flush()

    # ---- the phone ----

    def button(self, message, label):
        return next(a for a in message["actions"] if a["label"] == label)

    def press(self, message, label):
        """What the phone's program does."""
        a = self.button(message, label)
        with urllib.request.urlopen(urllib.request.Request(
                a["url"], data=a["body"].encode(), method=a["method"]), timeout=PATIENCE) as r:
            r.read()


class Telegram(Server):
    """/botKEY/METHOD, with getUpdates held until there is something."""

    KEY = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"

    def __init__(self, chat=-100123, user=777):
        super().__init__()
        self.chat = chat
        self.user = user
        self.updates = []
        self.presses = {}  # id to the words of its acknowledgement, None before
        self.reading = 0
        self.told = []  # all updates
        self.repeats = False  # each answer has them all
        self.trouble["edited"] = []

    def play(self, h, body):
        parts = h.path.strip("/").split("/")
        if len(parts) != 2 or parts[0] != "bot" + self.KEY:
            h.answer(401, {"ok": False, "error_code": 401, "description": "Unauthorized"})
            return
        asked = json.loads(body)
        kind = "read" if parts[1] == "getUpdates" else "send"
        trouble = self.note(kind, h, body) if parts[1] != "answerCallbackQuery" else None
        if trouble:
            self.misplay(h, trouble)
            return
        play = {"sendMessage": self.send, "editMessageText": self.edit,
                "answerCallbackQuery": self.acknowledge, "getUpdates": self.get_updates}
        if parts[1] not in play:
            h.answer(404, {"ok": False, "error_code": 404, "description": "Not Found"})
            return
        play[parts[1]](h, asked)

    def refuse(self, h, words):
        h.answer(400, {"ok": False, "error_code": 400, "description": "Bad Request: " + words})

    def check(self, m):
        if not 1 <= len(m["text"].encode("utf-16-le")) // 2 <= 4096:
            self.wrong.append("text of %d" % len(m["text"]))
        if "parse_mode" in m:
            self.wrong.append("parse_mode")
        if m.get("link_preview_options") != {"is_disabled": True} or "disable_web_page_preview" in m:
            self.wrong.append("link previews, as since 7.0")
        for row in m.get("reply_markup", {}).get("inline_keyboard", []):
            for b in row:
                if not 1 <= len(b["callback_data"].encode()) <= 64:
                    self.wrong.append("callback_data %r" % b)

    def send(self, h, m):
        self.check(m)
        if m["chat_id"] != self.chat:
            self.refuse(h, "chat not found")
            return
        with self.changed:
            m["message_id"] = next(IDS)
            m["changes"] = []
            h.answer(200, {"ok": True, "result": {"message_id": m["message_id"],
                                                 "chat": {"id": self.chat}, "text": m["text"]}})
            self.messages.append(m)

    def edit(self, h, m):
        self.check(m)
        with self.changed:
            first = next((s for s in self.messages if s["message_id"] == m["message_id"]), None)
            if first is None:
                self.refuse(h, "message to edit not found")
                return
            shown = (first["changes"] or [first])[-1]
            if all(m.get(k) == shown.get(k) for k in ("text", "reply_markup")):
                self.refuse(h, "message is not modified: specified new message content and reply "
                               "markup are exactly the same as a current content and reply markup "
                               "of the message")
                return
            trouble = self.trouble["edited"].pop(0) if self.trouble["edited"] else None
            if trouble:  # it is changed, but the answer is another one
                first["changes"].append(m)
                self.misplay(h, trouble)
                return
            h.answer(200, {"ok": True, "result": {"message_id": m["message_id"]}})
            first["changes"].append(m)

    def acknowledge(self, h, m):
        with self.changed:
            if m["callback_query_id"] not in self.presses:
                self.refuse(h, "query is too old and response timeout expired or query ID is invalid")
                return
            if len(m.get("text", "")) > 200:
                self.wrong.append("acknowledged with %d characters" % len(m["text"]))
            self.presses[m["callback_query_id"]] = m.get("text", "")
            h.answer(200, {"ok": True, "result": True})

    def get_updates(self, h, m):
        with self.changed:
            if m.get("allowed_updates") != ["callback_query", "message"]:
                self.wrong.append("allowed_updates %r" % m.get("allowed_updates"))
            # The newest question ends an older one.
            self.reading += 1
            mine = self.reading
            self.changed.notify_all()
            offset = m.get("offset", 0)
            self.updates[:] = [u for u in self.updates if u["update_id"] >= offset]
            self.changed.wait_for(lambda: self.closing or self.updates or self.reading != mine,
                                  m.get("timeout", 0))
            found = (self.told if self.repeats else []) + self.updates
            self.told += [u for u in self.updates if u not in self.told]
            if self.reading != mine:
                h.answer(409, {"ok": False, "error_code": 409, "description":
                               "Conflict: terminated by other getUpdates request; make sure that "
                               "only one bot instance is running"})
                return
        h.answer(200, {"ok": True, "result": found})

    def update(self, **what):
        with self.changed:
            self.updates.append({"update_id": 5000 + next(IDS), **what})
            self.changed.notify_all()

    # ---- the phone ----

    def button(self, message, label):
        return next(b for row in message["reply_markup"]["inline_keyboard"] for b in row
                    if b["text"] == label)

    def press_data(self, message_id, data, user=None, chat=None):
        id = "q%d" % next(IDS)
        self.presses[id] = None
        self.update(callback_query={
            "id": id, "from": {"id": user or self.user, "is_bot": False, "username": "anna"},
            "message": {"message_id": message_id, "chat": {"id": chat or self.chat}}, "data": data})
        return id

    def press(self, message, label, **who):
        return self.press_data(message["message_id"], self.button(message, label)["callback_data"],
                               **who)

    def acknowledged(self, id):
        return wait_until(lambda: self.presses[id], "an acknowledgement")

    def reply(self, message, text, user=None, chat=None):
        self.update(message={
            "message_id": next(IDS), "from": {"id": user or self.user, "username": "anna"},
            "chat": {"id": chat or self.chat}, "text": text,
            "reply_to_message": {"message_id": message["message_id"]}})
