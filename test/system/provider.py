"""
A model's provider for tests: an HTTP server of our own, on loopback or a Unix socket,
that answers as OpenAI's chat completions or Anthropic's messages do, and plays whatever
script a test wrote: fragments, delays, errors, cut connections, garbage.

A script is a Reply: steps that are bytes of the body, or coroutines that do something
to the connection. A Gate is a step that waits for the test, so that nothing has to
sleep: `gate.arrived()` returns when the script is there, `gate.open()` lets it go on.

    with Provider() as p:
        gate = p.gate()
        p.play(OPENAI.reply(OPENAI.text("two "), OPENAI.text("words"), gate))

What was asked is in `p.asked`, in order; a history that the real providers refuse is
refused here too, whatever the script. Questions with GET (whether the provider is
there) are answered at once, are kept in `p.probes` and take no script.
"""
import asyncio
import contextlib
import json
import os
import threading

PATIENCE = 60.0


class Late(Exception):
    """What did not happen in time."""


# ---- what was asked ----


class Asked:
    """One request as it came."""

    def __init__(self, method, path, headers, body):
        self.method = method
        self.path = path
        self.headers = headers  # names in lower case
        self.body = body
        self.gone = threading.Event()   # the client left before the end
        self.ended = threading.Event()  # the script is over, one way or the other

    @property
    def json(self):
        return json.loads(self.body)

    def left(self, patience=PATIENCE):
        """Waits until the client has closed its connection."""
        if not self.gone.wait(patience):
            raise Late("the client is still there")


# ---- steps of a script ----


class Gate:
    """Scripts wait here until it is opened."""

    def __init__(self, provider):
        self.provider = provider
        self.opened = asyncio.Event()
        self.there = threading.Semaphore(0)

    async def __call__(self, line):
        await line.flush()
        self.there.release()
        await line.unless_gone(self.opened.wait())

    def arrived(self, n=1, patience=PATIENCE):
        for _ in range(n):
            if not self.there.acquire(timeout=patience):
                raise Late("no script has come to the gate")

    def open(self):
        self.provider.loop.call_soon_threadsafe(self.opened.set)


async def head(line):
    """The status and headers now; otherwise they go with the first byte."""
    await line.flush()


async def cut(line):
    """The connection is gone, without a word."""
    line.writer.transport.abort()
    raise Over


async def close(line):
    """What was sent arrives; then the connection ends, whatever the headers promised."""
    line.finished = True
    raise Over


async def silence(line):
    """Nothing more, until the client leaves."""
    await line.unless_gone(asyncio.Event().wait())


def pause(seconds):
    async def step(line):
        await line.unless_gone(asyncio.sleep(seconds))
    return step


def dribble(data, seconds, n=1):
    """n bytes at a time."""
    async def step(line):
        for at in range(0, len(data), n):
            await line.send(data[at:at + n])
            await line.unless_gone(asyncio.sleep(seconds))
    return step


def endless(data):
    """The same again and again, as fast as the client takes it."""
    async def step(line):
        while True:
            await line.send(data)
    return step


def raw(data):
    """Bytes as they are: neither headers before them nor chunks around them."""
    async def step(line):
        line.started = True
        line.framing = "raw"
        await line.send(data)
    return step


def shred(data, n):
    """Steps of n bytes each: cut in the middle of lines and of letters."""
    return [data[at:at + n] for at in range(0, len(data), n)]


def joined(steps):
    """One step of all that are bytes."""
    return b"".join(steps)


class Over(Exception):
    """The script is over, and so is its connection."""


class Gone(Exception):
    """The client has left."""


class Reply:
    """
    A status, headers, and what to do. framing: "chunked", "length" (the steps must be bytes)
    or "close" (until the connection ends).
    """

    def __init__(self, *steps, status=200, headers=(), kind="text/event-stream",
                 framing="chunked"):
        self.steps = steps
        self.status = status
        self.headers = headers
        self.kind = kind
        self.framing = framing

    def head(self):
        lines = ["HTTP/1.1 %d Scripted" % self.status, "Content-Type: " + self.kind]
        if self.framing == "chunked":
            lines.append("Transfer-Encoding: chunked")
        elif self.framing == "length":
            lines.append("Content-Length: %d" % len(joined(self.steps)))
        else:
            lines.append("Connection: close")
        lines += ["%s: %s" % pair for pair in self.headers]
        return "\r\n".join(lines).encode() + b"\r\n\r\n"


def plain(status, body, *headers, kind="application/json"):
    """An answer that is no stream."""
    if not isinstance(body, bytes):
        body = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return Reply(body, status=status, headers=headers, kind=kind, framing="length")


# ---- the two languages ----


def event(data, name=None, eol="\n"):
    """One server-sent event; data is JSON or a text, which may have several lines."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    lines = ["event: " + name] if name else []
    lines += ["data: " + part for part in text.split("\n")]
    return (eol.join(lines) + eol + eol).encode()


class OpenAI:
    """Chat completions."""
    kind = "openai"
    path = "/v1/chat/completions"
    key_header = "authorization"
    opening = b""
    done = b"data: [DONE]\n\n"

    @staticmethod
    def key(secret):
        return "Bearer " + secret

    @staticmethod
    def chunk(delta, finish=None, **more):
        return event(dict({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1,
                           "model": "scripted", "choices": [
                               {"index": 0, "delta": delta, "finish_reason": finish}]}, **more))

    def text(self, piece):
        return self.chunk({"content": piece})

    def tool_call(self, index, id, name, *fragments):
        """Its parts, as steps."""
        out = [self.chunk({"tool_calls": [{"index": index, "id": id, "type": "function",
                                           "function": {"name": name, "arguments": ""}}]})]
        return out + [self.chunk({"tool_calls": [{"index": index,
                                                  "function": {"arguments": part}}]})
                      for part in fragments]

    def finish(self, input=None, output=None, stop="stop"):
        reason = {"stop": "stop", "tools": "tool_calls", "length": "length"}[stop]
        out = [self.chunk({}, reason)]
        if input is not None:
            out.append(event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [],
                              "usage": {"prompt_tokens": input, "completion_tokens": output,
                                        "total_tokens": input + output}}))
        return joined(out)

    @staticmethod
    def failure(message, type="server_error"):
        return event({"error": {"message": message, "type": type, "code": None}})

    @staticmethod
    def refusal(message, type="invalid_request_error"):
        """The body of an answer that is no stream."""
        return {"error": {"message": message, "type": type, "param": None, "code": None}}

    def reply(self, *steps, **opts):
        return Reply(*steps, **opts)

    def answer(self, *pieces, input=None, output=None, stop="stop", **opts):
        """A whole answer, one event for each piece."""
        steps = [self.chunk({"role": "assistant", "content": ""})]
        steps += [self.text(p) for p in pieces]
        return Reply(*steps, self.finish(input, output, stop), self.done, **opts)

    @staticmethod
    def history(asked):
        """What was asked: the system prompt (or None), and (role, text) of each message."""
        system, out = None, []
        for m in asked.json["messages"]:
            if m["role"] == "system":
                system = m["content"]
            else:
                out.append((m["role"], m.get("content")))
        return system, out


class Anthropic:
    """Messages."""
    kind = "anthropic"
    path = "/v1/messages"
    key_header = "x-api-key"

    @staticmethod
    def key(secret):
        return secret

    @staticmethod
    def named(name, **data):
        return event(dict({"type": name}, **data), name)

    @property
    def done(self):
        return self.named("message_stop")

    def start(self, input=10, cache_read=0, cache_written=0):
        return self.named("message_start", message={
            "id": "msg_1", "type": "message", "role": "assistant", "model": "scripted",
            "content": [], "stop_reason": None,
            "usage": {"input_tokens": input, "output_tokens": 1,
                      "cache_read_input_tokens": cache_read,
                      "cache_creation_input_tokens": cache_written}})

    @property
    def opening(self):
        return self.start() + self.named("content_block_start", index=0,
                                         content_block={"type": "text", "text": ""})

    def text(self, piece):
        return self.named("content_block_delta", index=0,
                          delta={"type": "text_delta", "text": piece})

    def tool_call(self, index, id, name, *fragments):
        at = index + 1
        out = [self.named("content_block_start", index=at, content_block={
            "type": "tool_use", "id": id, "name": name, "input": {}})]
        out += [self.named("content_block_delta", index=at, delta={
            "type": "input_json_delta", "partial_json": part}) for part in fragments]
        return out + [self.named("content_block_stop", index=at)]

    def finish(self, input=None, output=None, stop="stop"):
        reason = {"stop": "end_turn", "tools": "tool_use", "length": "max_tokens"}[stop]
        usage = {"output_tokens": output if output is not None else 1}
        return self.named("content_block_stop", index=0) + self.named(
            "message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=usage)

    def failure(self, message, type="overloaded_error"):
        return self.named("error", error={"type": type, "message": message})

    @staticmethod
    def refusal(message, type="invalid_request_error"):
        return {"type": "error", "error": {"type": type, "message": message}}

    def reply(self, *steps, **opts):
        return Reply(*steps, **opts)

    def answer(self, *pieces, input=10, output=None, stop="stop", cache_read=0, cache_written=0,
               **opts):
        steps = [self.start(input, cache_read, cache_written), self.named("ping"),
                 self.named("content_block_start", index=0,
                            content_block={"type": "text", "text": ""})]
        steps += [self.text(p) for p in pieces]
        return Reply(*steps, self.finish(None, output, stop), self.done, **opts)

    @staticmethod
    def history(asked):
        def text_of(content):
            if isinstance(content, str):
                return content
            return "".join(b["text"] for b in content if b["type"] == "text")

        system = asked.json.get("system")
        if system is not None:
            system = text_of(system)
        return system, [(m["role"], text_of(m["content"])) for m in asked.json["messages"]]


# ---- what real providers refuse ----


def openai_complaint(body):
    """What OpenAI would answer 400 to in a history; None if it is sound."""
    waiting = []  # calls without their result
    for at, m in enumerate(body["messages"]):
        where = "messages[%d]" % at
        if m["role"] == "tool":
            if m.get("tool_call_id") not in waiting:
                return where + ": a tool message must follow the call that it answers"
            waiting.remove(m["tool_call_id"])
            continue
        if waiting:
            return where + ": no tool message for the calls %s" % waiting
        if m["role"] not in ("system", "user", "assistant"):
            return where + ": unknown role"
        waiting = [c["id"] for c in m.get("tool_calls", [])]
        if not isinstance(m.get("content"), str) and not waiting:
            return where + ": content must be a string"
    if waiting:
        return "no tool message for the calls %s" % waiting
    return None


def anthropic_complaint(body):
    """What Anthropic would answer 400 to."""
    waiting = []
    if not body["messages"]:
        return "messages: at least one message is required"
    if body["messages"][0]["role"] != "user":
        return "the first message must be the user's"
    if not body.get("max_tokens", 0) > 0:
        return "max_tokens: required"
    for at, m in enumerate(body["messages"]):
        where = "messages.%d" % at
        blocks = m["content"]
        if isinstance(blocks, str):
            blocks = [{"type": "text", "text": blocks}]
        if m["role"] not in ("user", "assistant") or not blocks:
            return where + ": a message must have a role and content"
        if any(b["type"] == "text" and not b["text"].strip() for b in blocks):
            return where + ": text content blocks must be non-empty"
        results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        if sorted(results) != sorted(waiting):
            return where + ": tool_result %s for tool_use %s" % (results, waiting)
        uses = [b for b in blocks if b["type"] == "tool_use"]
        if any(not isinstance(b["input"], dict) for b in uses):
            return where + ": tool_use.input must be an object"
        waiting = [b["id"] for b in uses]
    if waiting:
        return "tool_use ids were found without tool_result blocks: %s" % waiting
    if m["role"] == "assistant" and blocks[-1].get("text", "x")[-1:].isspace():
        return "final assistant content cannot end with trailing whitespace"
    return None


OPENAI = OpenAI()
ANTHROPIC = Anthropic()
LANGUAGES = (OPENAI, ANTHROPIC)


def complain(asked):
    """The refusal of a question that the real provider would not take, or None."""
    for language, complaint in ((OPENAI, openai_complaint), (ANTHROPIC, anthropic_complaint)):
        if asked.path == language.path:
            words = complaint(asked.json)
            if words:
                return plain(400, language.refusal(words))
    return None


# ---- the server ----


class Line:
    """One connection."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer
        self.got = bytearray()
        self.left = asyncio.Event()

    async def more(self):
        try:
            part = await self.reader.read(65536)
        except ConnectionError:
            part = b""
        self.got += part
        if not part:
            self.left.set()
        return bool(part)

    async def read_request(self):
        """The next one, or None at the end."""
        while b"\r\n\r\n" not in self.got:
            if not await self.more():
                return None
        text, _, rest = bytes(self.got).partition(b"\r\n\r\n")
        lines = text.decode("latin-1").split("\r\n")
        method, path, _ = lines[0].split(" ", 2)
        headers = {}
        for one in lines[1:]:
            name, _, value = one.partition(":")
            headers[name.lower()] = value.strip()
        self.got = bytearray(rest)
        if headers.get("expect", "").lower() == "100-continue":
            self.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        length = int(headers.get("content-length", 0))
        while len(self.got) < length:
            if not await self.more():
                return None
        body = bytes(self.got[:length])
        del self.got[:length]
        return Asked(method, path, headers, body)

    def begin(self, reply):
        self.reply = reply
        self.framing = reply.framing
        self.started = self.finished = False

    async def flush(self):
        if not self.started:
            self.started = True
            self.writer.write(self.reply.head())
        await self.drain()

    async def drain(self):
        try:
            await self.unless_gone(self.writer.drain())
        except ConnectionError:
            raise Gone from None

    async def send(self, data):
        if not data:
            return
        if not self.started:
            self.started = True
            self.writer.write(self.reply.head())
        if self.framing == "chunked":
            data = b"%x\r\n%s\r\n" % (len(data), data)
        self.writer.write(data)
        await self.drain()

    async def unless_gone(self, what):
        """Waits, but not longer than the client does."""
        task = asyncio.ensure_future(what)
        left = asyncio.ensure_future(self.left.wait())
        try:
            await asyncio.wait([task, left], return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise Gone
            return task.result()
        finally:
            for one in (task, left):
                one.cancel()
            await asyncio.gather(task, left, return_exceptions=True)

    async def perform(self, reply):
        """Plays a script; whether the connection can be used again."""
        self.begin(reply)
        for step in reply.steps:
            if isinstance(step, (bytes, bytearray)):
                await self.send(step)
            else:
                await step(self)
        await self.flush()
        if self.framing == "chunked":
            self.writer.write(b"0\r\n\r\n")
            await self.drain()
        return self.framing in ("chunked", "length")


class Provider:
    """
    For a `with`. Each POST takes the next script of those that `play` was given; when they
    are used up, `default` answers, a Reply or a function of what was asked.
    """

    def __init__(self, *replies, default=None, unix=None):
        self.replies = list(replies)
        self.default = default or plain(500, {"error": {"message": "no script is left"}})
        self.unix = unix
        self.asked = []
        self.probes = []
        self.lock = threading.Lock()
        self.arrival = threading.Condition(self.lock)
        self.connections = 0
        self.loop = asyncio.new_event_loop()
        self.faults = []

    def __enter__(self):
        started = threading.Event()
        self.thread = threading.Thread(target=self.run, args=(started,), daemon=True)
        self.thread.start()
        started.wait()
        return self

    def __exit__(self, kind, *exc):
        self.loop.call_soon_threadsafe(self.stopping.set)
        self.thread.join(PATIENCE)
        if self.unix:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.unix)
        if kind is None and self.faults:
            raise self.faults[0]

    def run(self, started):
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_until_complete(self.serve(started))
        finally:
            self.loop.close()

    async def serve(self, started):
        self.stopping = asyncio.Event()
        self.tasks = set()
        if self.unix:
            server = await asyncio.start_unix_server(self.accept, self.unix, backlog=1024)
        else:
            server = await asyncio.start_server(self.accept, "127.0.0.1", 0, backlog=1024)
            self.port = server.sockets[0].getsockname()[1]
        started.set()
        await self.stopping.wait()
        server.close()
        await server.wait_closed()
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    @property
    def url(self):
        return "unix:" + self.unix if self.unix else "http://127.0.0.1:%d" % self.port

    def play(self, *replies):
        with self.lock:
            self.replies += replies

    def gate(self):
        return Gate(self)

    def wait_asked(self, n, patience=PATIENCE):
        """The n-th request, counted from 1, once it has come."""
        with self.arrival:
            if not self.arrival.wait_for(lambda: len(self.asked) >= n, patience):
                raise Late("asked %d times, not %d" % (len(self.asked), n))
            return self.asked[n - 1]

    @property
    def last(self):
        with self.lock:
            return self.asked[-1]

    async def accept(self, reader, writer):
        task = asyncio.current_task()
        self.tasks.add(task)
        self.connections += 1
        line = Line(reader, writer)
        try:
            while await self.exchange(line):
                pass
        except asyncio.CancelledError:
            pass
        except Exception as fault:  # a script with a mistake must not look like silence
            self.faults.append(fault)
        finally:
            self.connections -= 1
            self.tasks.discard(task)
            writer.close()

    async def exchange(self, line):
        """One request and its answer; False when the connection has had its last."""
        asked = await line.read_request()
        if asked is None:
            return False
        reply = self.choose(asked)
        # Reads on meanwhile, which is how a client that leaves is noticed.
        watch = asyncio.ensure_future(self.watch(line))
        try:
            return await line.perform(reply)
        except Over:
            return False
        except Gone:
            return False
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
            if line.left.is_set():
                asked.gone.set()
            asked.ended.set()

    @staticmethod
    async def watch(line):
        while await line.more():
            pass

    def choose(self, asked):
        with self.arrival:
            if asked.method == "GET":
                self.probes.append(asked)
                return plain(200, {"object": "list", "data": [{"id": "scripted"}]})
            self.asked.append(asked)
            self.arrival.notify_all()
            refusal = complain(asked)
            if refusal:
                return refusal
            if self.replies:
                return self.replies.pop(0)
        return self.default(asked) if callable(self.default) else self.default


# ---- settings ----


def agent_flags(name, **keys):
    """koined's flags for one agent."""
    out = []
    for key, value in keys.items():
        out += ["--set", "agent.%s.%s=%s" % (name, key, value)]
    return out


def model_flags(provider, language=OPENAI, name="model", **keys):
    """The provider as an agent, and as the one that answers."""
    keys = dict({"kind": language.kind, "url": provider.url, "model": "scripted", "retries": 0},
                **keys)
    return ["--agent", name, *agent_flags(name, **keys)]
