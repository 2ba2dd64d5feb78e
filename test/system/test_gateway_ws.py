#!/usr/bin/env python3
"""The gateway's WebSocket, by a raw client, well and badly behaved."""
import json
import signal
import socket

from harness import MIB, Client, Daemon, check, main, post, rss, same, wait_until
from provider import OPENAI, Provider, model_flags
from websocket_client import BINARY, CLOSE, PING, PONG, TEXT, WebSocket, ask, frame

TOKEN = "a secret"
QUERY = "/ws/chat?token=a+secret"
ON = ("--set", "listen.gateway=on")


def daemon(*args, **opts):
    return Daemon(*ON, *args, env={"OPENCLAW_UI_TOKEN": TOKEN}, **opts)


def place(d):
    return d.address("http", "gateway")


def connect(d, path=QUERY):
    w = WebSocket(place(d), path)
    d.clients.append(w.client)
    return w


def chat(text, **more):
    return {"type": "chat", "content": dict({"model": "x", "messages": [
        {"role": "user", "content": text}]}, **more)}


def reply(*steps):
    return OPENAI.reply(*steps, OPENAI.finish(), OPENAI.done)


def failed(w, words):
    got = w.hear()
    same((got["type"], got["content"]["finish"]), ("error", True), "%r" % got)
    check(words in got["content"]["error"], "%r", got)
    return got


# ---- how it begins ----


def test_upgrade_needs_the_token_and_no_foreign_page():
    with daemon() as d:
        for path, headers, status in (
                ("/ws/chat", "", 401), ("/ws/chat?token=wrong", "", 401),
                ("/ws/chat?token=", "", 401),
                (QUERY, "Origin: http://evil.example\r\n", 403),
                (QUERY, "Origin: null\r\n", 403),
                (QUERY, "Sec-Fetch-Site: cross-site\r\n", 403),
                (QUERY, "Origin: http://localhost:3000\r\n", 403),
                (QUERY, "Origin: http://localhost\r\n", 101),
                ("/ws/chat", "Authorization: Bearer %s\r\n" % TOKEN, 101),
                ("/ws/chat", "X-OCG-UI-Token: %s\r\n" % TOKEN, 101)):
            c, got, head, _ = ask(place(d), path, headers)
            same(got, status, "status of %s %r" % (path, headers))
            c.close()
        c, got, _, _ = ask(place(d), QUERY, host="evil.example")
        check(got in (403, 421), "a foreign host: %d", got)
        c.close()


def test_upgrade_of_another_kind_is_refused():
    with daemon() as d:
        c, got, head, _ = ask(place(d), QUERY, version="8")
        same(got, 426, "version 8")
        check("Sec-WebSocket-Version: 13\r\n" in head, "%s", head)
        c.close()
        for key in ("", "short", "dGhlIHNhbXBsZSBub25jZQ== x", "dGhlIHNhbXBsZSBub25jZXh4"):
            c, got, _, _ = ask(place(d), QUERY, key=key)
            same(got, 400, "key %r" % key)
            c.close()
        with Client(place(d)) as c:
            same(post(c, b"", QUERY, method="GET").status, 426, "a plain GET")


# ---- chats ----


def test_a_chat_is_answered_in_the_original_shape():
    with Provider() as p, daemon(*model_flags(p)) as d:
        w = connect(d)
        p.play(reply(OPENAI.text("four")))
        w.say(chat("two and two?"))
        got = w.hear()
        same((got["type"], list(got["content"])), ("done", ["content", "finish", "totalTokens"]), "%r" % got)
        same((got["content"]["content"], got["content"]["finish"]), ("four", True))
        check(got["content"]["totalTokens"] > 0, "%r", got)
        # Pages send the request as text.
        p.play(reply(OPENAI.text("five")))
        request = chat("and one?")
        request["content"] = json.dumps(request["content"])
        w.say(request)
        same(w.hear()["content"]["content"], "five")
        same(p.asked[-1].json["messages"][-1]["content"], "and one?", "what was asked")
        w.send(CLOSE, b"\x03\xe8bye")
        w.closed(1000)


def test_pieces_come_where_they_are_asked_for():
    with Provider() as p, daemon(*model_flags(p)) as d:
        w = connect(d)
        gate = p.gate()
        p.play(reply(OPENAI.text("one "), gate, OPENAI.text("two")))
        w.say(chat("count", stream=True))
        same(w.hear(), {"type": "chunk", "content": "one "})
        gate.open()
        same(w.hear(), {"type": "chunk", "content": "two"})
        same(w.hear()["content"]["content"], "one two")


def test_one_chat_after_another_and_pings_in_between():
    with Provider() as p, daemon(*model_flags(p)) as d:
        w = connect(d)
        gate = p.gate()
        p.play(reply(gate, OPENAI.text("first")), reply(OPENAI.text("second")))
        w.say(chat("a"))
        w.say(chat("b"))
        gate.arrived()
        w.say({"type": "ping"})
        same(w.hear(), {"type": "pong"})
        w.send(PING, b"there?")
        same(w.frame(), (PONG, b"there?"))
        same(len(p.asked), 1, "asked at once")
        gate.open()
        same(w.hear()["content"]["content"], "first")
        same(w.hear()["content"]["content"], "second")


def test_too_many_chats_at_once_are_refused():
    with Provider() as p, daemon(*model_flags(p)) as d:
        w = connect(d)
        gate = p.gate()
        p.play(reply(gate, OPENAI.text("x")))
        p.default = reply(OPENAI.text("y"))
        w.say(chat("first"))
        gate.arrived()
        for _ in range(20):
            w.say(chat("more"))
        for _ in range(4):
            failed(w, "too many")
        gate.open()
        for _ in range(17):
            got = w.hear()
            same(got["type"], "done", "%r" % got)


def test_chats_that_wait_are_bounded_over_all_connections():
    with Provider() as p, daemon(*model_flags(p)) as d:
        gate = p.gate()
        p.default = reply(gate, OPENAI.text("x"))
        refused = 0
        for _ in range(40):
            w = connect(d)
            w.say(chat("first"))
            for _ in range(2):
                w.say(chat("x" * (4 * MIB - 200)))
            w.say({"type": "ping"})
            got = w.hear()
            while got["type"] != "pong":
                check("too many" in got["content"]["error"], "%.200r", got)
                refused += 1
                got = w.hear()
        check(10 <= refused <= 30, "%d were refused", refused)
        gate.open()


def test_what_is_no_request_is_told_and_the_connection_lives():
    with daemon() as d:
        w = connect(d)
        for said, words in ((b"{", "invalid message: expected a JSON object"), (b"[]", "invalid message: expected a JSON object"),
                            (b"", "invalid message: expected a JSON object"),
                            (b'{"type":"shout"}', "unknown message type: shout"),
                            (b'{"content":{}}', "unknown message type"),
                            (b'{"type":"chat"}', "invalid request"),
                            (b'{"type":"chat","content":[]}', "invalid request"),
                            (b'{"type":"chat","content":"{"}', "invalid request content"),
                            (b'{"type":"chat","content":"\\"x\\""}', "invalid request"),
                            (b'{"type":"chat","content":{}}', "messages"),
                            (b'{"type":"chat","content":{"messages":[]}}', "messages"),
                            (b'{"type":"chat","content":{"messages":[{"role":"x"}]}}', "role"),
                            (b"[" * 100000, "invalid message: expected a JSON object")):
            w.send(TEXT, said)
            failed(w, words)
        w.say({"type": "ping"})
        same(w.hear(), {"type": "pong"})


def test_an_agent_that_fails_is_told():
    with Provider() as p, daemon(*model_flags(p)) as d:
        w = connect(d)
        w.say(chat("x"))
        failed(w, "no script is left")
    with daemon("--agent", "none") as d:
        w = connect(d)
        w.say(chat("x"))
        failed(w, "agent not initialized")


def leave_by(w, how):
    if how == "close":
        w.send(CLOSE, b"\x03\xe8")
        w.closed(1000)
    elif how == "reset":
        w.client.reset()
    elif how == "end":
        w.client.close()
    else:
        w.client.half_close()


def test_whoever_leaves_in_the_middle_keeps_what_came():
    with Provider() as p, daemon(*model_flags(p)) as d, Client(d.address("unix", "koine")) as c:
        for n, how in enumerate(("close", "reset", "end", "half")):
            w = connect(d)
            p.play(reply(OPENAI.text("so far"), p.gate(), OPENAI.text("lost")))
            w.say(chat("question", stream=True))
            same(w.hear()["content"], "so far")
            w.say(chat("never asked"))
            leave_by(w, how)
            p.asked[n].left()
            at = {"agent_id": "gateway-%d" % (n + 1)}
            found = wait_until(lambda: [m for m in c.call("get_messages", at)["messages"]
                                        if m["role"] == "assistant"], "what came")
            same(found[0]["content"], "so far", how)
            same(len(p.asked), n + 1, "asked after " + how)


def test_a_stop_says_goodbye():
    with Provider() as p, daemon(*model_flags(p)) as d:
        idle, busy = connect(d), connect(d)
        gate = p.gate()
        p.play(reply(gate, OPENAI.text("x")))
        busy.say(chat("x"))
        gate.arrived()
        d.signal(signal.SIGTERM)
        idle.closed(1001)
        busy.closed(1001)
        same(d.wait_exit(), 0, "exit status")


# ---- hostile ----


def test_bad_frames_close_with_their_code():
    with daemon() as d:
        for bad, code in ((frame(TEXT, b"{}", mask=False), 1002),
                          (frame(TEXT, b"{}", bits=0x40), 1002),
                          (frame(3, b"{}"), 1002), (frame(11, b""), 1002),
                          (frame(0, b"{}"), 1002),
                          (frame(TEXT, b"{", fin=False) + frame(TEXT, b"}"), 1002),
                          (frame(PING, b"x" * 126), 1002), (frame(PING, b"x", fin=False), 1002),
                          (frame(CLOSE, b"\x03"), 1002), (frame(CLOSE, b"\x03\xee"), 1002),
                          (frame(TEXT, b"\xff\xfe"), 1007), (frame(TEXT, b"\xed\xa0\x80"), 1007),
                          (frame(BINARY, b"{}"), 1003),
                          (frame(TEXT, b"x", length=1 << 62), 1009),
                          (frame(TEXT, b"", length=(4 << 20) + 1)[:10], 1009),
                          (frame(TEXT, b"x", length=(4 << 20) + 1), 1009)):
            w = connect(d)
            w.client.send_all_it_takes(bad)
            w.closed(code)
        d.alive()


def test_fragments_without_end_cost_no_memory():
    with daemon() as d:
        w = connect(d)
        w.say({"type": "ping"})
        w.hear()
        before = rss(d.pid)
        w.send(TEXT, b"x", fin=False)
        pieces = frame(0, b"y", fin=False) * 10000 + frame(0, b"", fin=False) * 1000
        for _ in range(20):
            w.client.send(pieces)
        w.send(PING, b"still")
        same(w.frame(), (PONG, b"still"))
        check(rss(d.pid) - before < 16 * MIB, "%d more", rss(d.pid) - before)
        w.send(0, b"z" * (4 << 20), fin=False)
        w.closed(1009)


def test_a_flood_of_pings_costs_little():
    with daemon() as d:
        w = connect(d)
        before = rss(d.pid)
        # Nothing of what comes back is read meanwhile.
        flood = frame(PING, b"p" * 100) * 5000
        w.client.socket.settimeout(0.5)
        try:
            for _ in range(20):
                w.client.send(flood)
        except socket.timeout:
            pass
        check(rss(d.pid) - before < 16 * MIB, "%d more", rss(d.pid) - before)
        with connect(d) as other:
            other.say({"type": "ping"})
            same(other.hear(), {"type": "pong"})


def test_a_client_that_never_reads_is_held_back():
    with Provider() as p, daemon(*model_flags(p)) as d:
        big = "x" * 500000
        p.default = lambda asked: reply(OPENAI.text(big))
        w = connect(d)
        w.client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        w.say({"type": "ping"})
        w.hear()
        before = rss(d.pid)
        sent = 0
        w.client.socket.settimeout(0.5)
        try:
            while sent < 2000:
                w.say(chat("again", stream=True))
                sent += 1
        except socket.timeout:
            pass
        check(rss(d.pid) - before < 64 * MIB, "%d more", rss(d.pid) - before)
        d.alive()


def test_a_peer_that_has_gone_without_a_word_is_noticed():
    with daemon("--set", "gateway.ping=1") as d:
        quiet, there = connect(d), connect(d)
        same(there.frame(), (PING, b""), "a ping")
        there.send(PONG)
        same(quiet.frame(), (PING, b""), "a ping")
        quiet.client.ended()
        same(there.frame(), (PING, b""), "another")


def test_idle_connections_are_bounded():
    with daemon() as d:
        all_of_them = [connect(d) for _ in range(256)]
        c, got, _, _ = ask(place(d), QUERY)
        same(got, 429, "one more")
        c.close()
        all_of_them[0].send(CLOSE)
        all_of_them[0].closed()
        wait_until(lambda: more(d) == 101, "room for one more")


def more(d):
    c, got, _, _ = ask(place(d), QUERY)
    c.close()
    return got


if __name__ == "__main__":
    main(globals())
