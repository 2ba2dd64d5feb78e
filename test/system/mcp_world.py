"""A running examples/mcp-everything.c, and clients that speak to it byte by byte."""
import http.client
import json
import os
import re
import select
import socket
import subprocess

from harness import PATIENCE, SANITIZER, SOURCE, check, same

EVERYTHING = os.environ.get("KOINE_EVERYTHING",
                            os.path.join(SOURCE, "build", "examples", "mcp-everything"))
MODERN = "2026-07-28"
PROTOCOL = "io.modelcontextprotocol/"


class Everything:
    """At a port of its own, or with a path at a socket."""

    def __init__(self, path=None, program="mcp-everything"):
        args = ["0"] if program == "mcp-tasks" else ["--unix", path] if path else ["--http", "0"]
        program = os.path.join(os.path.dirname(EVERYTHING), program)
        self.process = subprocess.Popen([program, *args], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = self.process.stdout.readline().decode()
        check(line.startswith("ready "), "mcp-everything said %r", line)
        self.address = line.split()[1]
        self.pid = self.process.pid
        self.host = self.address[len("http:"):]
        self.url = "http://%s/mcp" % self.host

    def __enter__(self):
        return self

    def __exit__(self, *_):
        alive = self.process.poll() is None
        self.process.kill()
        out, err = self.process.communicate()
        check(alive, "mcp-everything ended: %s", err.decode(errors="replace")[-3000:])
        check(not SANITIZER.search(err), "%s", err.decode(errors="replace")[-3000:])


def meta(capabilities=None, **more):
    out = {PROTOCOL + "protocolVersion": MODERN,
           PROTOCOL + "clientCapabilities": capabilities or {},
           PROTOCOL + "clientInfo": {"name": "claude-code", "version": "2"}}
    out.update(more)
    return out


def message(method, params=None, id=1):
    out = {"jsonrpc": "2.0", "method": method}
    if id is not None:
        out["id"] = id
    if params is not None:
        out["params"] = params
    return out


def modern(method, params=None, id=1, capabilities=None):
    return message(method, dict(params or {}, _meta=meta(capabilities)), id)


TYPES = {"string", "number", "integer", "boolean", "object", "array", "null"}


def schema_faults(schema, where="", top=True):
    """What OpenAI's models (functions that are not strict) and VS Code refuse in a tool's schema:
    every schema has a type, every array items, the outermost one is an object with properties and
    without a choice; names are short and plain; enums are not empty and of their type."""
    types = schema.get("type")
    types = types if isinstance(types, list) else [types]
    if not set(types) <= TYPES or not types:
        return ["%s: type %r" % (where, schema.get("type"))]
    out = []
    if top and types != ["object"]:
        out.append("%s: no object" % where)
    if top and {"oneOf", "anyOf", "allOf", "enum", "not"} & set(schema):
        out.append("%s: a choice" % where)
    if top and not isinstance(schema.get("properties"), dict):
        out.append("%s: no properties" % where)
    if "array" in types:
        items = schema.get("items")
        out += ["%s: no items" % where] if not isinstance(items, dict) else schema_faults(
            items, where + "[]", False)
    if "enum" in schema and not (schema["enum"] and all(
            isinstance(word, str) for word in schema["enum"]) and types == ["string"]):
        out.append("%s: enum" % where)
    for name, one in schema.get("properties", {}).items():
        if not re.fullmatch("[a-zA-Z0-9_.-]{1,64}", name):
            out.append("%s: the name %r" % (where, name))
        out += schema_faults(one, where + "." + name, False)
    if not set(schema.get("required", [])) <= set(schema.get("properties", {})):
        out.append("%s: required, and not there" % where)
    return out


def tool_faults(tools):
    out = []
    for t in tools:
        if not re.fullmatch("[a-zA-Z0-9_-]{1,64}", t["name"]) or not t.get("description"):
            out.append(t["name"])
        out += schema_faults(t["inputSchema"], t["name"])
        if "outputSchema" in t:
            out += schema_faults(t["outputSchema"], t["name"] + " >")
    return out


def headers_for(body):
    """What a modern client sends with it."""
    params = body.get("params") or {}
    out = {"MCP-Protocol-Version": MODERN, "Mcp-Method": body["method"]}
    name = params.get("name", params.get("uri"))
    if name is not None and body["method"] in ("tools/call", "prompts/get", "resources/read"):
        out["Mcp-Name"] = name
    return out


class Http:
    """One connection for each request."""

    def __init__(self, server):
        self.host = server.host
        self.session = None

    def open(self, method, body=None, headers=None):
        c = http.client.HTTPConnection(self.host, timeout=PATIENCE)
        sent = {"Content-Type": "application/json",
                "Accept": "application/json, text/event-stream"}
        if self.session:
            sent["Mcp-Session-Id"] = self.session
        sent.update(headers or {})
        text = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
        c.request(method, "/mcp", text, {k: v for k, v in sent.items() if v is not None})
        return c, c.getresponse()

    def post(self, body, headers=None):
        """Status, and the answer; of a stream, the last message."""
        c, r = self.open("POST", body, headers)
        text = r.read()
        c.close()
        if (r.getheader("content-type") or "").startswith("text/event-stream"):
            return r.status, messages(text)[-1]
        return r.status, json.loads(text) if text else None

    def modern(self, method, params=None, id=1, capabilities=None, headers=None):
        body = modern(method, params, id, capabilities)
        return self.post(body, dict(headers_for(body), **(headers or {})))

    def initialize(self, capabilities=None, version="2025-11-25"):
        c, r = self.open("POST", message("initialize", {
            "protocolVersion": version, "capabilities": capabilities or {},
            "clientInfo": {"name": "test", "version": "1"}}))
        answer = json.loads(r.read())
        c.close()
        self.session = r.getheader("mcp-session-id")
        same(r.status, 200, "initialize")
        same(self.post(message("notifications/initialized", id=None)), (202, None))
        return answer["result"]


def messages(text):
    """The messages of a stream's events."""
    return [json.loads(line[6:]) for line in text.decode().split("\n")
            if line.startswith("data: ") and line != "data: "]


class Lines:
    """A client that has started the program."""

    def __init__(self, program="mcp-everything"):
        path = os.path.join(os.path.dirname(EVERYTHING), program)
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.pid = self.process.pid
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.process.stdin.close()
        if kind:
            self.process.kill()
        err = self.process.stderr.read()
        same(self.process.wait(PATIENCE) if not kind else 0, 0, "exit status (%r)" % err[-2000:])
        check(not SANITIZER.search(err), "%s", err.decode(errors="replace")[-3000:])
        self.process.stdout.close()
        self.process.stderr.close()

    def send(self, *bodies):
        text = b"".join((b if isinstance(b, bytes) else json.dumps(b).encode()) + b"\n"
                        for b in bodies)
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def read(self):
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
            check(ready, "no answer")
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            check(more, "the program ended: %r", self.rest)
            self.rest += more
        line, self.rest = self.rest.split(b"\n", 1)
        return json.loads(line)

    def call(self, body):
        self.send(body)
        return self.read()

    def initialize(self, capabilities=None, version="2025-11-25"):
        answer = self.call(message("initialize", {
            "protocolVersion": version, "capabilities": capabilities or {},
            "clientInfo": {"name": "test", "version": "1"}}, id="init"))
        self.send(message("notifications/initialized", id=None))
        return answer["result"]


def dial(path):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(PATIENCE)
    s.connect(path)
    return s
