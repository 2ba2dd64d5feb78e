"""
Clients of the nexus dialect.

NexusClient has the wire habits of the client that people use: the headers and their
order, compact bodies with their keys in its order, integers in cancel, and what it
demands of an answer. It runs on asyncio's streams, with keep-alive or without. Nexus
is a plain one for tests that care about conversations, on http.client.
"""
import asyncio
import http.client
import json
import threading
from concurrent.futures import Future

from harness import PATIENCE, Client, Failure, check, same, wait_until


class ClientError(Exception):
    """What the real client raises for a refusal or a lost connection."""


class ParseError(Exception):
    """An answer that the real client would not take."""


def parse_response(text):
    """The result or the error of an answer, checked as the real client does."""
    try:
        answer = json.loads(text)
    except ValueError as why:
        raise ParseError("Invalid JSON: %s" % why) from None
    if not isinstance(answer, dict) or answer.get("jsonrpc") != "2.0":
        raise ParseError("jsonrpc must be '2.0', got: %r" % (answer,))
    if "id" not in answer or ("result" in answer) == ("error" in answer):
        raise ParseError("not a response: %r" % answer)
    if set(answer) - {"jsonrpc", "id", "result", "error"}:  # the newest one looks at this too
        raise ParseError("extra keys: %r" % answer)
    error = answer.get("error")
    if "error" in answer and not (isinstance(error, dict) and "code" in error and
                                  "message" in error):
        raise ParseError("not an error: %r" % answer)
    return answer


class NexusClient:
    """For an `async with`."""

    def __init__(self, url="http://127.0.0.1:8765", timeout=60.0, keep_alive=True, token=None,
                 path="/"):
        self.host = url[len("http://"):]
        self.timeout = timeout
        self.keep_alive = keep_alive
        self.token = token
        self.path = path
        self.next_id = 0
        self.connections = 0
        self.stream = None

    async def __aenter__(self):
        return self

    async def __aexit__(self, *exc):
        await self.disconnect()

    async def connect(self):
        host, _, port = self.host.rpartition(":")
        try:
            self.stream = await asyncio.open_connection(host, int(port))
        except OSError as why:
            raise ClientError("Connection failed: %s" % why) from None
        self.connections += 1

    async def disconnect(self):
        if self.stream:
            self.stream[1].close()
            self.stream = None

    def head(self, body):
        lines = ["POST %s HTTP/1.1" % self.path, "Host: " + self.host, "Accept: */*",
                 "Accept-Encoding: gzip, deflate",
                 "Connection: " + ("keep-alive" if self.keep_alive else "close"),
                 "User-Agent: python-httpx/0.27.0"]
        if self.token:
            lines.append("Authorization: Bearer " + self.token)
        lines += ["Content-Length: %d" % len(body), "Content-Type: application/json"]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    async def post(self, body):
        """The body of the answer; its status does not matter to this client."""
        if not self.stream:
            await self.connect()
        reader, writer = self.stream
        try:
            writer.write(self.head(body) + body)
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = int(head.partition("content-length:")[2].partition("\r\n")[0])
            out = await reader.readexactly(length)
        except (OSError, asyncio.IncompleteReadError) as why:
            await self.disconnect()
            raise ClientError("Connection failed: %s" % why) from None
        if "connection: close" in head:
            check(await reader.read() == b"", "more than one answer")
            await self.disconnect()
        else:
            check(self.keep_alive, "the connection should be closed: %r", head)
        return out

    async def call(self, method, params=None):
        self.next_id += 1
        request = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            request["params"] = params
        request["id"] = self.next_id
        body = json.dumps(request, separators=(",", ":")).encode()
        try:
            answer = parse_response(await asyncio.wait_for(self.post(body), self.timeout))
        except asyncio.TimeoutError:
            raise ClientError("Request timed out") from None
        # What is refused before it was read has no id.
        check(answer["id"] == self.next_id or (answer["id"] is None and "error" in answer),
              "another id: %r", answer)
        if "error" in answer:
            raise ClientError("RPC error %d: %s" % (answer["error"]["code"],
                                                    answer["error"]["message"]))
        return answer["result"]

    async def send(self, content, request_id=None):
        params = {"content": content}
        if request_id is not None:
            params["request_id"] = request_id
        return await self.call("send", params)

    async def cancel(self, request_id=None):
        return await self.call("cancel", {"request_id": request_id} if request_id else None)

    async def get_tokens(self):
        return await self.call("get_tokens")

    async def get_context(self):
        return await self.call("get_context")

    async def shutdown(self):
        return await self.call("shutdown")


# ---- for tests of conversations ----


class Refused(Exception):
    """A JSON-RPC error."""

    def __init__(self, error, status):
        super().__init__("%d %s" % (error["code"], error["message"]))
        self.code = error["code"]
        self.message = error["message"]
        self.status = status


class Nexus:
    """One connection for each call, so that it can be used by several threads."""

    def __init__(self, daemon, path="/"):
        self.port = int(nexus_address(daemon).rpartition(":")[2])
        self.path = path

    def agent(self, id):
        out = Nexus.__new__(Nexus)
        out.port, out.path = self.port, "/agent/" + id
        return out

    def post(self, body, headers=(), path=None):
        """Status, headers and body of one request."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            c.request("POST", path or self.path, body, dict(headers))
            r = c.getresponse()
            return r.status, dict((k.lower(), v) for k, v in r.getheaders()), r.read()
        finally:
            c.close()

    def call(self, method, params=None, id=1):
        body = {"jsonrpc": "2.0", "method": method, "id": id}
        if params is not None:
            body["params"] = params
        status, _, text = self.post(json.dumps(body))
        answer = parse_response(text)
        same(answer["id"], id, "id")
        if "error" in answer:
            raise Refused(answer["error"], status)
        same(status, 200, "status")
        return answer["result"]

    def send(self, content, request_id=None):
        return self.call("send", {"content": content} if request_id is None else
                         {"content": content, "request_id": request_id})

    def says(self, content):
        return self.send(content)["content"]

    def cancel(self, request_id):
        return self.call("cancel", {"request_id": request_id})

    def tokens(self):
        return self.call("get_tokens")

    def context(self):
        return self.call("get_context")

    def count(self):
        return self.context()["message_count"]

    def messages(self, **params):
        return self.call("get_messages", params)["messages"]

    def said(self):
        """(role, content) of every message."""
        return [(m["role"], m["content"]) for m in self.messages()]

    def refused(self, method, params=None):
        """The error that a call must end with."""
        try:
            result = self.call(method, params)
        except Refused as error:
            return error
        raise Failure("%s was not refused: %.300r" % (method, result))


def nexus_address(daemon):
    for dialect, address in daemon.addresses:
        if dialect == "nexus":
            return address
    raise Failure("nexus does not listen: %r" % daemon.addresses)


def later(function, *args):
    """Runs beside the test; `result()` waits for it and raises what it raised."""
    out = Future()

    def run():
        try:
            out.set_result(function(*args))
        except BaseException as why:  # whoever asks for the result gets it
            out.set_exception(why)

    threading.Thread(target=run, daemon=True).start()
    return out


def begun(daemon, function, *args):
    """As later, once the daemon has read the call."""
    before = daemon.calls()
    out = later(function, *args)
    wait_until(lambda: daemon.calls() > before, "the call to begin")
    return out


def result(future):
    return future.result(PATIENCE)


class Stream:
    """A chat.stream on a connection of its own."""

    def __init__(self, daemon, content, id=1, **params):
        self.client = Client(daemon.address("unix"))
        self.id = id
        self.pieces = []
        self.request_id = self.conversation = None
        self.client.send(json.dumps({"jsonrpc": "2.0", "method": "chat.stream", "id": id,
                                     "params": dict(params, content=content)}).encode() + b"\n")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.client.close()

    def step(self):
        """The next line: None for more text, else the answer."""
        line = json.loads(self.client.read_line())
        if "id" in line:
            same(line["id"], self.id, "id")
            return line
        same(line["method"], "chat.text", "notification")
        params = line["params"]
        same(params["offset"], len(self.text.encode()), "offset")
        self.request_id, self.conversation = params["request_id"], params["conversation"]
        self.pieces.append(params["text"])
        return None

    @property
    def text(self):
        return "".join(self.pieces)

    def until(self, text):
        """Reads until at least this has come."""
        while not self.text.startswith(text):
            answer = self.step()
            check(answer is None, "answered before %r came: %r", text, answer)

    def answer(self):
        """Everything that still comes, and the answer's result."""
        while True:
            line = self.step()
            if line:
                break
        if "error" in line:
            raise Refused(line["error"], None)
        return line["result"]
