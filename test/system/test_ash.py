#!/usr/bin/env python3
"""ash's own clients against a real daemon: every member, default, text and limit."""
import datetime
import json
import os
import re
import signal
import socket
import struct
import subprocess
import threading
import time

from ash_client import (MAX_MESSAGE, RPCError, connect, frame, open_answer, read_frame,
                        request_bytes, rpc_call)
from harness import (KOINED, MIB, PATIENCE, SOURCE, Daemon, Failure, Folder, Skip, check,
                     clean_environment, main, same, wait_until)

UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00")

METHODS = ("memory.search", "memory.add", "memory.list", "memory.delete", "config.reload")
PARSE, REQUEST, METHOD, PARAMS = -32700, -32600, -32601, -32602

# What later clients send beside the parameters, mostly null.
EXTRA = {"context_token": "x.y.z", "chat_type": None, "chat_title": None, "provider": "telegram",
         "session_key": None, "thread_id": None, "source_username": None,
         "source_display_name": None, "message_id": 7, "current_user_message": None,
         "timezone": ["no", "matter"], "this_chat": False}


class Ash:
    """Calls at the ash listener of a daemon."""

    def __init__(self, daemon, kind="unix"):
        for dialect, address in daemon.addresses:
            if dialect == "ash" and address.startswith(kind + ":"):
                self.address = address[len(kind) + 1:]
                if kind == "tcp":
                    host, _, port = self.address.rpartition(":")
                    self.address = (host, int(port))
                return
        raise Failure("no ash at %s: %r" % (kind, daemon.addresses))

    def call(self, method, **params):
        return rpc_call(method, params, max_retries=0, address=self.address)

    def add(self, content, **params):
        return self.call("memory.add", content=content, **params)

    def contents(self, **params):
        return [m["content"] for m in self.call("memory.list", limit=1000, **params)]

    def found(self, query, **params):
        return [m["content"] for m in self.call("memory.search", query=query, **params)]

    def delete(self, memory_id, **params):
        answer = self.call("memory.delete", memory_id=memory_id, **params)
        check(list(answer) == ["deleted"] and isinstance(answer["deleted"], bool),
              "delete answers %r", answer)
        return answer["deleted"]

    def refused(self, method, code, message, **params):
        try:
            answer = self.call(method, **params)
        except RPCError as error:
            same((error.code, error.message, error.data), (code, message, None), "error")
            return
        raise Failure("%s %.100r was answered with %.100r" % (method, params, answer))

    def raw(self, payload):
        """The bytes of the answer."""
        with connect(self.address) as sock:
            sock.sendall(frame(payload))
            return read_frame(sock)


def send(method, params="{}", id="1"):
    return ('{"jsonrpc":"2.0","method":"%s","params":%s,"id":%s}' % (method, params, id)).encode()


def error_text(code, message, id="null"):
    return ('{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"%s"}}'
            % (id, code, message)).encode()


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def time_of(text):
    check(TIME.fullmatch(text), "not a time of ash: %r", text)
    return datetime.datetime.fromisoformat(text)


# ---- the four methods ----


def test_add_answers_with_the_entry():
    with Daemon() as d:
        ash = Ash(d)
        before = now() - datetime.timedelta(seconds=1)
        got = ash.add("I like tea", user_id="u1", chat_id=None)
        same(list(got), ["id", "content", "source", "created_at", "expires_at"], "members")
        check(UUID4.fullmatch(got["id"]), "not a UUID: %r", got["id"])
        same((got["content"], got["source"], got["expires_at"]), ("I like tea", "rpc", None))
        check(before <= time_of(got["created_at"]) <= now(), "time is %r", got["created_at"])
        same(ash.add("said so", source="agent")["source"], "agent", "source")
        same(ash.add("said nothing", source="")["source"], "", "source")


def test_list_is_newest_first_with_its_members_in_order():
    with Daemon() as d:
        ash = Ash(d)
        for i in range(25):
            ash.add("entry %d" % i)
        rows = ash.call("memory.list")
        same([m["content"] for m in rows], ["entry %d" % i for i in range(24, 4, -1)])
        for m in rows:
            same(list(m), ["id", "content", "source", "created_at", "expires_at"], "members")
            # The original slices both.
            check(isinstance(m["id"], str) and isinstance(m["source"], str), "%r", m)
        same(ash.call("memory.list", limit=1)[0]["content"], "entry 24")


def test_search_is_best_first_with_its_members_in_order():
    with Daemon() as d:
        ash = Ash(d)
        ash.add("Ann plays the violin on Sundays", subjects=["Ann", "Bob Day"],
                metadata={"from": {"chat": [1, 2]}})
        for i in range(15):
            ash.add("day %d was about the garden" % i)
        hits = ash.call("memory.search", query="who plays the violin")
        same(len(hits), 1, "hits")
        same(list(hits[0]), ["id", "content", "similarity", "metadata"], "members")
        check(0 < hits[0]["similarity"] <= 1, "similarity is %r", hits[0]["similarity"])
        same(hits[0]["metadata"], {"from": {"chat": [1, 2]}, "subject_person_ids": None,
                                   "subject_name": "Ann, Bob Day"}, "metadata")
        hits = ash.call("memory.search", query="garden day")
        same(len(hits), 10, "hits by default")
        similar = [h["similarity"] for h in hits]
        same(similar, sorted(similar, reverse=True), "order")
        same(hits[0]["metadata"], {"subject_person_ids": None, "subject_name": None}, "metadata")
        same(len(ash.call("memory.search", query="garden", limit=3)), 3, "hits")
        same(ash.call("memory.search", query="zeppelin"), [])


def test_metadata_is_kept_without_its_white_space():
    with Daemon() as d:
        ash = Ash(d)
        for i, (given, want) in enumerate(((b"{ \n}", {}), (b'{ "a" :\n[ 1 , 2.50 ],"b":"x\\ny" }',
                                                          {"a": [1, 2.5], "b": "x\ny"}))):
            ash.raw(b'{"jsonrpc":"2.0","method":"memory.add","params":{"content":"entry %d",'
                    b'"metadata":%s},"id":1}' % (i, given))
            hit = json.loads(ash.raw(send("memory.search", '{"query":"%d"}' % i)))["result"][0]
            same(hit["metadata"], dict(want, subject_person_ids=None, subject_name=None))
            # On the other socket an answer is a line.
            entry = d.connect().call("memory.get", {"memory_id": hit["id"]})
            same(entry["metadata"], want, "metadata")


def test_delete_by_id_and_by_its_first_eight():
    with Daemon() as d:
        ash = Ash(d)
        one, two = ash.add("one")["id"], ash.add("two")["id"]
        same(ash.delete(one), True)
        same(ash.delete(one), False)
        same(ash.found("one"), [])
        same(ash.delete(two[:8]), True)
        same(ash.contents(), [])
        for strange in ("nothing", "%", "_", "é", "\0", "x" * 1000):
            same(ash.delete(strange), False)


def test_a_prefix_that_fits_two_deletes_neither():
    with Daemon() as d:
        ash = Ash(d)
        seen = {}
        for i in range(17):
            made = ash.add("memory %d" % i)["id"]
            if made[0] in seen:
                break
            seen[made[0]] = made
        other = seen[made[0]]
        same(ash.delete(made[0]), False)
        same(ash.delete(made[:35]), True)
        same(ash.delete(other[0]), True, "the one that is left")


def test_reload_reads_the_settings_again():
    with Folder() as f:
        conf = f("koine.conf")
        with open(conf, "w") as out:
            out.write("[daemon]\nlog_level = info\n")
        with Daemon("--config", conf, announced=["could not reload settings"]) as d:
            ash = Ash(d)
            same(ash.raw(send("config.reload")), b'{"jsonrpc":"2.0","id":1,"result":{"success":true}}')
            with open(conf, "w") as out:
                out.write("[daemon]\nlog_level = loud\n")
            got = ash.call("config.reload")
            same(list(got), ["success", "error"], "members")
            same(got["success"], False)
            check("log_level" in got["error"], "does not say why: %r", got)


def test_a_sandbox_cannot_bring_rules_by_a_reload():
    """It has ash's socket and a project that it may write to, nothing else."""
    rule = "[rule %s]\nevent = memory.added\nprompt = %s\nrunner = recall\n"
    theirs = {"id": "theirs", "trigger": {"type": "memory.added"},
              "action": {"type": "agent", "prompt": "theirs"}}
    with Folder() as f:
        with open(f("koine.conf"), "w") as out:
            out.write(rule % ("mine", "mine"))
        with Daemon("--config", f("koine.conf"), root=f.path) as d, d.connect() as c:
            with open(f(".aiwg", "daemon.json"), "w") as out:
                json.dump({"rules": [theirs], "supervisor": {"max_queue_depth": 1}}, out)
            with open(f("koine.conf"), "a") as out:
                out.write(rule % ("new", "new"))
            same(Ash(d).call("config.reload"), {"success": True})
            same([r["rule"] for r in c.call("automation.rules")["rules"]], ["mine"], "rules")
            Ash(d).add("an event")
            wait_until(lambda: c.call("task.stats")["total"] > 0, "my own rule's task")
            same([t["prompt"] for t in c.call("task.list")], ["mine"], "tasks")
            # koine's own socket is no sandbox's.
            same(c.call("config.reload"), {"success": True})
            check("new" in [r["rule"] for r in c.call("automation.rules")["rules"]], "not read")


# ---- envelopes ----


def test_every_way_to_be_wrong_has_its_words():
    rows = [
        (b"", error_text(PARSE, "Invalid JSON")),
        (b"{", error_text(PARSE, "Invalid JSON")),
        (b'{"jsonrpc":"2.0"} x', error_text(PARSE, "Invalid JSON")),
        (b"\xff\xfe", error_text(PARSE, "Invalid JSON")),
        (b"[" * 100000, error_text(PARSE, "Invalid JSON")),
        (b"[]", error_text(REQUEST, "Invalid JSON-RPC")),
        (b"5", error_text(REQUEST, "Invalid JSON-RPC")),
        (b"null", error_text(REQUEST, "Invalid JSON-RPC")),
        (b'"text"', error_text(REQUEST, "Invalid JSON-RPC")),
        (b"{}", error_text(REQUEST, "Invalid JSON-RPC")),
        (b'{"method":"memory.list","id":1}', error_text(REQUEST, "Invalid JSON-RPC", "1")),
        (b'{"jsonrpc":"1.0","method":"memory.list","id":1}',
         error_text(REQUEST, "Invalid JSON-RPC", "1")),
        (b'{"jsonrpc":2.0,"method":"memory.list","id":1}',
         error_text(REQUEST, "Invalid JSON-RPC", "1")),
        (b'{"jsonrpc":"2.0","id":1}', error_text(REQUEST, "Invalid JSON-RPC", "1")),
        (b'{"jsonrpc":"2.0","method":"","id":1}', error_text(REQUEST, "Invalid JSON-RPC", "1")),
        (b'{"jsonrpc":"2.0","method":5,"id":1}', error_text(REQUEST, "Invalid JSON-RPC", "1")),
        (b'{"jsonrpc":"2.0","method":[],"id":1}', error_text(REQUEST, "Invalid JSON-RPC", "1")),
        (send("memory.forget"), error_text(METHOD, "Method not found: memory.forget", "1")),
        (send("ping"), error_text(METHOD, "Method not found: ping", "1")),
        (send("memory.search"), error_text(PARAMS, "Invalid params: query is required", "1")),
    ]
    with Daemon() as d:
        ash = Ash(d)
        with connect(ash.address) as sock:
            for payload, want in rows:
                sock.sendall(frame(payload))
                same(read_frame(sock), want, "answer to %.60r" % payload)
            sock.sendall(frame(send("memory.list")))
            same(read_frame(sock), b'{"jsonrpc":"2.0","id":1,"result":[]}')


def test_params_of_the_wrong_kind():
    with Daemon() as d:
        ash = Ash(d)
        for params in ('["tea"]', "[]", '"tea"', "5", "true"):
            try:
                open_answer(ash.raw(send("memory.search", params)))
            except RPCError as error:
                same(error.code, PARAMS, "code")
                check(error.message.startswith("Invalid params: "), "%r", error.message)
                continue
            raise Failure("params %s were taken" % params)
        same(ash.raw(send("memory.list", "null")), b'{"jsonrpc":"2.0","id":1,"result":[]}')
        same(ash.raw(b'{"jsonrpc":"2.0","method":"memory.list","id":1}'),
             b'{"jsonrpc":"2.0","id":1,"result":[]}')
        ash.refused("memory.search", PARAMS, "Invalid params: query is required")


def test_what_is_required_and_missing_or_empty_or_null():
    with Daemon() as d:
        ash = Ash(d)
        for method, name in (("memory.search", "query"), ("memory.add", "content"),
                             ("memory.delete", "memory_id")):
            for params in ({}, {name: ""}, {name: None}):
                ash.refused(method, PARAMS, "Invalid params: %s is required" % name, **params)
        same(ash.contents(), [])


def test_parameters_of_the_wrong_type():
    rows = [
        ("memory.search", {"query": 0}, "query must be a string, not number"),
        ("memory.search", {"query": ["tea"]}, "query must be a string, not array"),
        ("memory.search", {"query": "tea", "limit": "5"}, "limit must be an integer, not string"),
        ("memory.search", {"query": "tea", "user_id": 5}, "user_id must be a string, not number"),
        ("memory.add", {"content": {}}, "content must be a string, not object"),
        ("memory.add", {"content": "x", "source": 1}, "source must be a string, not number"),
        ("memory.add", {"content": "x", "shared": "yes"}, "shared must be a boolean, not string"),
        ("memory.add", {"content": "x", "subjects": "Ann"}, "subjects must be an array, not string"),
        ("memory.add", {"content": "x", "subjects": [1]}, "subjects must be strings, not number"),
        ("memory.add", {"content": "x", "expires_days": "3"},
         "expires_days must be an integer, not string"),
        ("memory.add", {"content": "x", "expires_days": 1.5},
         "expires_days must be a whole number, not 1.5"),
        ("memory.add", {"content": "x", "expires_days": 10 ** 30},
         "expires_days must be a 64-bit integer, not 1000000000000000000000000000000"),
        ("memory.search", {"query": "tea", "limit": 1.5}, "limit must be a whole number, not 1.5"),
        ("memory.list", {"limit": -0.25}, "limit must be a whole number, not -0.25"),
        ("memory.list", {"this_chat": "yes", "chat_id": "c"},
         "this_chat must be a boolean, not string"),
        ("memory.search", {"query": "tea", "this_chat": True}, "this_chat requires chat_id"),
        ("memory.list", {"this_chat": True, "user_id": "ann"}, "this_chat requires chat_id"),
        ("memory.list", {"chat_type": 5}, "chat_type must be a string, not number"),
        ("memory.add", {"content": "x", "metadata": []}, "metadata must be an object, not array"),
        ("memory.add", {"content": "x", "category": "gossip"},
         "category must be preference, decision, fact, entity or other, not 'gossip'"),
        ("memory.add", {"content": "x", "importance": 1.01},
         "importance must be between 0 and 1, not 1.01"),
        ("memory.add", {"content": "x", "importance": -0.1},
         "importance must be between 0 and 1, not -0.1"),
        ("memory.add", {"content": "x", "created_at": "yesterday"},
         "created_at must be a time like 2026-11-15T07:47:17Z"),
        ("memory.list", {"limit": []}, "limit must be an integer, not array"),
        ("memory.list", {"include_expired": 1}, "include_expired must be a boolean, not number"),
        ("memory.delete", {"memory_id": 1}, "memory_id must be a string, not number"),
    ]
    with Daemon() as d:
        ash = Ash(d)
        for method, params, why in rows:
            ash.refused(method, PARAMS, "Invalid params: " + why, **params)
        same(ash.contents(), [])


def test_unknown_parameters_are_ignored():
    with Daemon() as d:
        ash = Ash(d)
        made = ash.add("kept", **EXTRA)["id"]
        same(ash.found("kept", **EXTRA), ["kept"])
        same([m["id"] for m in ash.call("memory.list", **EXTRA)], [made])
        same(ash.delete(made, **EXTRA), True)
        same(ash.call("config.reload", **EXTRA), {"success": True})


def test_ids_of_every_kind_come_back_as_they_were():
    ids = ["1", "-0", "1.50", "1e2", "123456789012345678901234567890", '"a\\u00e9b"', '""', "null",
           "true", "[1, 2]", '{"a": [null]}']
    with Daemon() as d:
        ash = Ash(d)
        for id in ids:
            same(ash.raw(send("memory.list", id=id)),
                 ('{"jsonrpc":"2.0","id":%s,"result":[]}' % id).encode())
            same(ash.raw(send("nothing", id=id)), error_text(METHOD, "Method not found: nothing", id))


def test_the_last_of_equal_keys_wins():
    with Daemon() as d:
        ash = Ash(d)
        got = ash.raw(b'{"jsonrpc":"1.0","jsonrpc":"2.0","method":"x","method":"memory.add",'
                      b'"params":5,"params":{"content":"first","content":"last"},"id":1,"id":2}')
        answer = json.loads(got)
        same((answer["id"], answer["result"]["content"]), (2, "last"))


def test_notifications_are_silent_and_done():
    with Daemon() as d:
        ash = Ash(d)
        with connect(ash.address) as sock:
            for payload in (b'{"jsonrpc":"2.0","method":"memory.add","params":{"content":"quiet"}}',
                            b'{"jsonrpc":"2.0","method":"memory.add","params":{}}',
                            b'{"jsonrpc":"2.0","method":"nothing"}'):
                sock.sendall(frame(payload))
            sock.sendall(frame(send("memory.list", id="9")))
            answer = json.loads(read_frame(sock))
            same((answer["id"], [m["content"] for m in answer["result"]]), (9, ["quiet"]))


def test_batches():
    with Daemon() as d:
        ash = Ash(d)
        same(ash.raw(b"[%s,%s,5,%s]" % (
            send("memory.list", id="1"),
            b'{"jsonrpc":"2.0","method":"memory.add","params":{"content":"quiet"}}',
            send("nothing", id='"b"'))),
            b"[%s,%s,%s]" % (b'{"jsonrpc":"2.0","id":1,"result":[]}',
                             error_text(REQUEST, "Invalid JSON-RPC"),
                             error_text(METHOD, "Method not found: nothing", '"b"')))
        # All of a batch see what those before have done.
        got = json.loads(ash.raw(b"[%s,%s]" % (send("memory.add", '{"content":"loud"}'),
                                               send("memory.search", '{"query":"loud"}', id="2"))))
        same(got[1]["result"][0]["content"], "loud")
        with connect(ash.address) as sock:
            sock.sendall(frame(b'[{"jsonrpc":"2.0","method":"memory.list"}]'))
            sock.sendall(frame(send("memory.list", '{"limit":1}', id="3")))
            same(json.loads(read_frame(sock))["id"], 3)


def test_pipelined_calls_are_answered_in_order():
    with Daemon() as d:
        ash = Ash(d)
        with connect(ash.address) as sock:
            parts = []
            for i in range(100):
                parts.append(frame(send("memory.add", '{"content":"entry %d"}' % i, id=str(2 * i))))
                parts.append(frame(send("memory.list", '{"limit":1}', id=str(2 * i + 1))))
            sock.sendall(b"".join(parts))
            for i in range(100):
                same(json.loads(read_frame(sock))["id"], 2 * i)
                got = json.loads(read_frame(sock))
                same((got["id"], got["result"][0]["content"]), (2 * i + 1, "entry %d" % i))


# ---- sizes ----


def padded(size):
    body = request_bytes("memory.list", {"pad": "X"})
    return body.replace(b"X", b"x" * (size - len(body) + 1))


def test_exactly_the_limit_is_served():
    with Daemon() as d:
        ash = Ash(d)
        same(ash.raw(padded(MAX_MESSAGE)), b'{"jsonrpc":"2.0","id":1,"result":[]}')


def test_one_more_is_refused_in_words_before_the_end():
    want = error_text(REQUEST, "Message too large: 10485761 > 10485760")
    with Daemon() as d:
        ash = Ash(d)
        # From the header alone, and to a client that sends all of it first.
        for payload in (b"", padded(MAX_MESSAGE + 1)):
            with connect(ash.address) as sock:
                sock.sendall(struct.pack(">I", MAX_MESSAGE + 1) + payload)
                same(read_frame(sock), want)
                same(sock.recv(1), b"", "end")
        same(ash.contents(), [])


def test_an_answer_over_the_limit_loses_its_last_rows():
    with Daemon() as d:
        ash = Ash(d)
        for i in range(12):
            ash.add("%02d " % i + "filler " * (MIB // 7))
        for rows in (ash.call("memory.list", limit=50),
                     ash.call("memory.search", query="filler", limit=50)):
            same(len(rows), 9, "rows")
        same([m["content"][:2] for m in ash.call("memory.list")],
             ["%02d" % i for i in range(11, 2, -1)])


def test_the_largest_memory_is_acknowledged_in_a_frame_that_can_be_read():
    with Daemon() as d:
        ash = Ash(d)
        ash.add("small one")
        body = request_bytes("memory.add", {"content": "X"})
        # The answer has more members than the question: it would pass the limit.
        got = open_answer(ash.raw(body.replace(b"X", b"x" * (MAX_MESSAGE - len(body) + 1))))
        check(UUID4.fullmatch(got["id"]) and "content" not in got, "%.300r", got)
        # Too large for any list, but not in the way of the next.
        same(ash.contents(), ["small one"])
        same(ash.delete(got["id"][:8]), True)


def test_a_batch_over_the_limit_is_refused_in_a_frame_that_can_be_read():
    with Daemon() as d:
        ash = Ash(d)
        ash.add("x" * (6 * MIB))
        got = json.loads(ash.raw(b"[%s,%s]" % (send("memory.list"), send("memory.list"))))
        same(got["error"]["code"], REQUEST, "code")


def test_limits_of_rows():
    with Daemon() as d:
        ash = Ash(d)
        with connect(ash.address) as sock:
            for i in range(1005):
                sock.sendall(frame(send("memory.add", '{"content":"row %d"}' % i)))
                read_frame(sock)
        for limit, listed, found in ((0, 20, 10), (-1, 20, 10), (-10 ** 18, 20, 10), (1, 1, 1),
                                     (1000, 1000, 1000), (1001, 1000, 1000), (10 ** 18, 1000, 1000)):
            same(len(ash.call("memory.list", limit=limit)), listed, "listed with %d" % limit)
            same(len(ash.call("memory.search", query="row", limit=limit)), found,
                 "found with %d" % limit)


# ---- text ----


def test_strange_text_comes_back_and_is_found():
    rows = [("nul\0inside the word list", "inside"), ("party 🎉🎂👩‍👩‍👧 tonight", "tonight party"),
            ("cafe\u0301 with Zoe\u0308", "café zoë"), ("שלום עולם", "שלום"),
            ("我昨天在北京吃了烤鸭", "北京"), ("東京タワーに行った", "東京タワー"),
            ("quotes \" ' ` and \\ back", "quotes back"), ("\u202eevil\u202c text\ttabs\r\n", "evil"),
            ("\ufdd0 \U0010ffff private \ue000", "private")]
    with Daemon() as d:
        ash = Ash(d)
        for content, query in rows:
            same(ash.add(content)["content"], content)
        same(ash.contents(), [content for content, _ in reversed(rows)])
        for content, query in rows:
            check(content in ash.found(query), "%r does not find %r", query, content)


def test_nine_mebibytes_are_kept_and_found():
    with Daemon() as d:
        ash = Ash(d)
        content = "zeppelin " + "hangar " * (9 * MIB // 7)
        same(ash.add(content)["content"], content)
        same(ash.found("zeppelin"), [content])
        same(ash.contents(), [content])


def test_no_query_is_a_syntax_error():
    with Daemon() as d:
        ash = Ash(d)
        ash.add("the cat is on the mat")
        ash.add("quarterly numbers")
        queries = ['"', '""', "'", '"unclosed', "cat AND", "OR", "NOT cat", "NEAR(cat, 2)", "cat*",
                   "content:cat", "^cat", "(((", "-cat", "{a b}", "%", "\\", "\0", " ", "\n", "?",
                   "🎉", "a" * 100000, "; DROP TABLE memory; --"]
        for query in queries:
            check(isinstance(ash.call("memory.search", query=query), list), "%r", query)
        same(ash.found("cat*"), ["the cat is on the mat"])
        # Only stop words: then they count.
        same(ash.found("who is on the"), ["the cat is on the mat"])
        many = " ".join("word%d" % i for i in range(10000))
        same(ash.found(many), [])
        same(ash.found("quarterly " + many), ["quarterly numbers"])


def test_a_subject_hides_nothing():
    with Daemon() as d:
        ash = Ash(d)
        ash.add("Anna prefers tea", subjects=["Anna"], user_id="u1")
        ash.add("Ben told me to drink more water", subjects=["Ben"], user_id="u1")
        for question in ("tell me about Anna", "what does anna drink", "anna", "Where is Anna?"):
            check("Anna prefers tea" in ash.found(question, user_id="u1"), "not found: %s", question)
        same(ash.found("tell me about Anna", user_id="u1"), ["Anna prefers tea"])


# ---- who sees what ----


def fill_scopes(ash):
    ash.add("note of ann", user_id="ann", chat_id="c1")
    ash.add("note of ann without chat", user_id="ann")
    ash.add("note of bob", user_id="bob", chat_id="c1")
    ash.add("note of chat one", user_id="ann", chat_id="c1", shared=True)
    ash.add("note of chat two", user_id="bob", chat_id="c2", shared=True)
    ash.add("note of nobody")
    ash.add("note of nobody in a chat", chat_id="c1")
    ash.add("note shared without a chat", user_id="ann", shared=True)


def test_scopes():
    common = {"note of nobody"}
    one = {"note of chat one", "note of nobody in a chat"}
    ann = {"note of ann", "note of ann without chat", "note shared without a chat"}
    rows = [
        ({"user_id": "ann"}, ann | common),
        ({"user_id": "ann", "chat_id": None}, ann | common),
        ({"user_id": "ann", "chat_id": "c1"}, ann | common | one),
        ({"user_id": "ann", "chat_id": "c2"}, ann | common | {"note of chat two"}),
        ({"user_id": "bob", "chat_id": "c1"}, {"note of bob"} | one | common),
        ({"chat_id": "c1"}, one | common),
        ({"user_id": "eve", "chat_id": "c9"}, common),
        ({"user_id": "", "chat_id": "c2"}, {"note of chat two"} | common),
        ({}, None),
        ({"user_id": "", "chat_id": ""}, None),
    ]
    with Daemon() as d:
        ash = Ash(d)
        fill_scopes(ash)
        everything = set(ash.contents())
        same(len(everything), 8, "memories")
        for who, want in rows:
            same(set(ash.contents(**who)), everything if want is None else want, "listed for %r" % who)
            same(set(ash.found("note", limit=100, **who)), everything if want is None else want,
                 "found for %r" % who)


def test_of_a_chat_without_a_user_is_the_chats():
    with Daemon() as d:
        ash = Ash(d)
        made = ash.add("the door code is 4711", chat_id="c1")["id"]
        same(ash.contents(chat_id="c2"), [], "another chat's")
        same(ash.contents(user_id="eve"), [], "another user's")
        same(ash.delete(made, chat_id="c2"), False)
        stats = d.connect().call("memory.stats")
        same((stats["personal"], stats["group"], stats["common"]), (0, 1, 0), "stats")
        same(ash.delete(made, chat_id="c1"), True)


def learn(ash):
    """What ann learnt in three places, and what is not hers alone."""
    ash.add("note to myself", user_id="ann", chat_id="dm", chat_type="private")
    ash.add("note in the club", user_id="ann", chat_id="club", chat_type="group")
    ash.add("note in the crowd", user_id="ann", chat_id="crowd", chat_type="supergroup")
    ash.add("note from a chat of old", user_id="ann", chat_id="old")
    ash.add("note from nowhere", user_id="ann")
    ash.add("note of the club", user_id="bob", chat_id="club", shared=True)
    ash.add("note for all")


def test_this_chat_is_what_was_learnt_there():
    rows = [
        ({"user_id": "ann", "chat_id": "dm"}, {"note to myself"}),
        ({"user_id": "ann", "chat_id": "club"}, {"note in the club", "note of the club"}),
        ({"user_id": "ann", "chat_id": "old", "chat_type": "group"}, {"note from a chat of old"}),
        ({"user_id": "bob", "chat_id": "club"}, {"note of the club"}),
        ({"chat_id": "club"}, {"note of the club"}),
        ({"user_id": "ann", "chat_id": "none"}, set()),
    ]
    with Daemon() as d:
        ash = Ash(d)
        learn(ash)
        for who, want in rows:
            same(set(ash.contents(this_chat=True, **who)), want, "listed for %r" % who)
            same(set(ash.found("note", limit=100, this_chat=True, **who)), want,
                 "found for %r" % who)
        # The limit is of what was learnt there.
        same(ash.found("note", limit=1, this_chat=True, user_id="ann", chat_id="dm"),
             ["note to myself"])


def test_a_group_hears_nothing_of_private_chats():
    open_to_all = {"note in the club", "note in the crowd", "note for all"}
    rows = [
        ({"chat_id": "club", "chat_type": "group"}, open_to_all | {"note of the club"}),
        ({"chat_id": "crowd", "chat_type": "supergroup"}, open_to_all),
        ({"chat_id": "old", "chat_type": "group"}, open_to_all | {"note from a chat of old"}),
        ({"chat_type": "group"}, open_to_all),
        ({"chat_id": "dm", "chat_type": "private"}, None),
        ({"chat_id": "dm", "chat_type": None}, None),
    ]
    with Folder() as f:
        with Daemon(root=f.path) as d:
            learn(Ash(d))
        with Daemon(root=f.path) as d:
            ash = Ash(d)
            for who, want in rows:
                want = set(ash.contents(user_id="ann", chat_id=who.get("chat_id"))
                           if want is None else want)
                same(set(ash.contents(user_id="ann", **who)), want, "listed for %r" % who)
                same(set(ash.found("note", limit=100, user_id="ann", **who)), want,
                     "found for %r" % who)
            same(len(ash.found("note", limit=2, user_id="ann", chat_type="group")), 2, "hits")


def test_who_may_delete():
    with Daemon() as d:
        ash = Ash(d)

        def fresh(**params):
            fresh.n += 1
            return ash.add("entry %d" % fresh.n, **params)["id"]

        fresh.n = 0
        ann = {"user_id": "ann", "chat_id": "c1"}
        rows = [
            (fresh(**ann), {"user_id": "bob"}, False),
            (fresh(**ann), {"user_id": "bob", "chat_id": "c1"}, False),
            (fresh(**ann), {"chat_id": "c1"}, False),
            (fresh(**ann), {"user_id": "ann"}, True),
            (fresh(**ann), {"user_id": "ann", "chat_id": "c2"}, True),
            (fresh(**ann), {}, True),
            (fresh(shared=True, **ann), {"user_id": "ann"}, False),
            (fresh(shared=True, **ann), {"user_id": "ann", "chat_id": "c2"}, False),
            (fresh(shared=True, **ann), {"user_id": "bob", "chat_id": "c1"}, True),
            (fresh(shared=True, **ann), {"chat_id": "c1"}, True),
            (fresh(shared=True, **ann), {}, True),
            (fresh(), {"user_id": "ann"}, False),
            (fresh(), {}, True),
        ]
        for id, who, want in rows:
            same(ash.delete(id[:8] if not want else id, **who), want, "delete by %r" % who)
            same(id in [m["id"] for m in ash.call("memory.list", limit=100)], not want, "it is there")


def test_another_users_id_does_not_count_for_a_prefix():
    with Daemon() as d:
        ash = Ash(d)
        mine = ash.add("mine", user_id="ann")["id"]
        while True:
            other = ash.add("theirs %d" % time.monotonic_ns(), user_id="bob")["id"]
            if other[0] == mine[0]:
                break
        same(ash.delete(mine[0], user_id="ann"), True)
        check(other in [m["id"] for m in ash.call("memory.list", user_id="bob", limit=1000)], "gone")


# ---- repeating, time ----


def test_a_repeated_add_is_one_memory():
    with Daemon() as d:
        ash = Ash(d)
        who = {"user_id": "ann", "chat_id": "c1", "shared": True}
        first = ash.add("once", **who)
        for _ in range(3):
            same(ash.add("once", **who), first)
        same(ash.contents(), ["once"])
        ids = {first["id"]}
        # Who says something else about it did not repeat a call.
        for other in ({"source": "again"}, {"expires_days": 4}, {"subjects": ["Ann"]},
                      {"subjects": ["Ann", "Bob"]}, {"expires_days": 5}):
            ids.add(ash.add("once", **other, **who)["id"])
            check(ash.add("once", **other, **who)["id"] in ids, "repeated: %r", other)
        same(len(ids), 6, "memories")
        for other in ({"user_id": "ann", "chat_id": "c1"}, {"user_id": "bob", "chat_id": "c1"},
                      {"user_id": "ann"}, {"user_id": "ann", "chat_id": "c2", "shared": True}, {}):
            ids.add(ash.add("once", **other)["id"])
        ids.add(ash.add("once ", **who)["id"])
        same(len(ids), 12, "memories")
        # What is gone is not there to be repeated.
        ids.add(ash.add("short-lived", expires_days=-1)["id"])
        same(ash.add("short-lived")["id"] in ids, False, "an expired memory was answered")
        ash.delete(first["id"])
        check(ash.add("once", **who)["id"] not in ids, "a deleted memory was answered")


def test_repeated_adds_at_the_same_moment_are_one_memory():
    with Daemon() as d:
        ash = Ash(d)
        ids = []
        threads = [threading.Thread(target=lambda: ids.append(ash.add("at once")["id"]))
                   for _ in range(20)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        same((len(ids), len(set(ids))), (20, 1), "answers and memories")


def test_expiry_hides_and_a_restart_sweeps():
    with Folder() as f:
        with Daemon(root=f.path) as d:
            ash = Ash(d)
            later = ash.add("later note", expires_days=30)
            apart = time_of(later["expires_at"]) - time_of(later["created_at"])
            same(apart.total_seconds(), 30 * 86400.0, "expiry")
            for days in (0, -1, -10 ** 15):
                ash.add("gone note %d" % days, expires_days=days)
            same(ash.add("far note", expires_days=10 ** 15)["expires_at"], None)
            ash.add("note for ever", expires_days=None)
            kept = ["note for ever", "far note", "later note"]
            same(ash.contents(), kept)
            same(ash.contents(include_expired=False), kept)
            same(set(ash.found("note")), set(kept))
            same(len(ash.contents(include_expired=True)), 6, "with the expired")
        with Daemon(root=f.path) as d:
            ash = Ash(d)
            wait_until(lambda: len(ash.contents(include_expired=True)) == 3, "the sweep")
            same(ash.contents(include_expired=True), kept)
            same(set(ash.found("note")), set(kept))


def test_a_sweep_goes_on_until_all_are_gone():
    with Folder() as f:
        with Daemon(root=f.path) as d, connect(Ash(d).address) as sock:
            for i in range(1300):
                sock.sendall(frame(send("memory.add", '{"content":"gone %d","expires_days":-1}' % i)))
            for i in range(1300):
                read_frame(sock)
        with Daemon(root=f.path) as d:
            ash = Ash(d)
            wait_until(lambda: not ash.contents(include_expired=True), "the sweep")


def test_created_at_is_the_entrys_own_time():
    with Daemon() as d:
        ash = Ash(d)
        ash.add("new")
        got = ash.add("old", created_at="2023-05-07T10:00:00+02:00")
        same(got["created_at"], "2023-05-07T08:00:00.000000+00:00")
        same(ash.add("older", created_at="2021-01-02")["created_at"],
             "2021-01-02T00:00:00.000000+00:00")
        same(ash.add("epoch", created_at="1970-01-01T00:00:00Z")["created_at"][:19],
             "1970-01-01T00:00:00")
        same(ash.add("moon", created_at="1969-07-20T20:17:40Z")["created_at"],
             "1969-07-20T20:17:40.000000+00:00")
        same(ash.contents(), ["new", "old", "older", "epoch", "moon"])


def test_memories_survive_a_restart():
    with Folder() as f:
        with Daemon(root=f.path) as d:
            made = Ash(d).add("kept over night", user_id="ann", subjects=["Ann"], metadata={"a": 1})
        with Daemon(root=f.path) as d:
            ash = Ash(d)
            same(ash.call("memory.list", user_id="ann"), [made])
            hit = ash.call("memory.search", query="night", user_id="ann")[0]
            same(hit["metadata"], {"a": 1, "subject_person_ids": None, "subject_name": "Ann"})


# ---- connections ----


def test_fifty_clients_at_once():
    with Daemon() as d:
        ash = Ash(d)
        faults = []

        def client(n):
            try:
                user = "user%d" % n
                with connect(ash.address) as sock:
                    def call(method, **params):
                        sock.sendall(frame(request_bytes(method, dict(params, user_id=user))))
                        return open_answer(read_frame(sock))
                    for i in range(5):
                        call("memory.add", content="number %d of %s" % (i, user))
                    same(len(call("memory.list")), 5, "listed")
                    hits = call("memory.search", query="number")
                    same({h["content"] for h in hits}, {"number %d of %s" % (i, user) for i in range(5)})
                    same(call("memory.delete", memory_id=hits[0]["id"][:8]), {"deleted": True})
                    same(len(call("memory.search", query="number")), 4, "found")
            except Exception as why:
                faults.append("%d: %r" % (n, why))

        threads = [threading.Thread(target=client, args=(n,)) for n in range(50)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        same(faults, [])
        same(len(ash.contents()), 200, "memories")


def test_the_client_tries_again_until_the_server_is_there():
    with Folder() as f:
        with Daemon(root=f.path, exit_status=-signal.SIGKILL) as d:
            ash = Ash(d)
            d.signal(signal.SIGKILL)
            d.wait_exit()
        check(os.path.exists(ash.address), "no dead socket to try")
        results = []
        caller = threading.Thread(target=lambda: results.append(rpc_call(
            "memory.add", {"content": "patience"}, retry_delay=1.0, address=ash.address)))
        caller.start()
        with Daemon(root=f.path) as d:
            caller.join(PATIENCE)
            same([r["content"] for r in results], ["patience"])
            same(Ash(d).contents(), ["patience"])


def test_a_client_that_sends_again_finds_its_first_memory():
    with Daemon() as d:
        ash = Ash(d)
        for _ in range(3):
            with connect(ash.address) as sock:
                sock.sendall(frame(request_bytes("memory.add", {"content": "sent again"})))
        wait_until(ash.contents, "the first")
        same(ash.add("sent again")["content"], "sent again")
        same(ash.contents(), ["sent again"])


def test_half_closed_clients_get_their_answer():
    with Daemon() as d:
        ash = Ash(d)
        with connect(ash.address) as sock:
            sock.sendall(frame(send("memory.add", '{"content":"last words"}')))
            sock.shutdown(socket.SHUT_WR)
            same(open_answer(read_frame(sock))["content"], "last words")
            same(sock.recv(1), b"", "end")
        for part in (b"", b"\0", b"\0\0\0\x10", b"\0\0\0\x10{"):
            with connect(ash.address) as sock:
                sock.sendall(part)
                sock.shutdown(socket.SHUT_WR)
                same(sock.recv(1), b"", "end after %r" % part)


def test_loopback_tcp():
    with Daemon("--listen", "ash=tcp:127.0.0.1:0", listen=("unix:ROOT/koine.sock",)) as d:
        ash = Ash(d, "tcp")
        made = ash.add("over tcp")
        same(ash.call("memory.list"), [made])
        same(ash.delete(made["id"]), True)
        with connect(ash.address) as sock:
            sock.sendall(struct.pack(">I", MAX_MESSAGE + 1) + b"x" * MIB)
            check(b"Message too large" in read_frame(sock), "no reason")


def test_a_stop_closes_idle_clients_and_takes_the_socket_away():
    # Nothing runs, so nothing is waited for.
    with Daemon("--set", "limits.stop_time=3600") as d:
        ash = Ash(d)
        same(os.stat(ash.address).st_mode & 0o7777, 0o600, "mode")
        idle = [connect(ash.address) for _ in range(3)]
        idle[1].sendall(frame(send("memory.list")))
        read_frame(idle[1])
        idle[2].sendall(b"\0\0")
        d.signal(signal.SIGTERM)
        for sock in idle:
            same(sock.recv(1), b"", "end")
            sock.close()
        d.wait_exit()
        check(not os.path.exists(ash.address), "the socket is still there")


def test_where_it_listens():
    with Folder() as f:
        with Daemon(env={"ASH_RPC_SOCKET": f("run", "rpc.sock")}) as d:
            same(Ash(d).address, f("run", "rpc.sock"), "place by ASH_RPC_SOCKET")
        with Daemon("--set", "listen.ash=unix:" + f("set.sock"),
                    env={"ASH_RPC_SOCKET": f("other")}) as d:
            same(Ash(d).address, f("set.sock"), "place by --set")
        with Daemon("--set", "listen.ash=off") as d:
            same([dialect for dialect, _ in d.addresses], ["koine", "hld", "ocg", "nexus", "aiwg"],
                 "dialects")
        with Daemon() as d:
            same(Ash(d).address, os.path.join(d.root, "ash.sock"), "place under --root")


def test_where_it_cannot_be_it_is_in_the_runtime_folder():
    if os.geteuid() != 0:
        raise Skip("only root can be somebody else")
    try:
        done = subprocess.run([KOINED, "--check"], user=65534, group=65534, extra_groups=[],
                              capture_output=True, timeout=PATIENCE,
                              env=clean_environment({"XDG_RUNTIME_DIR": "/tmp"}))
    except PermissionError:
        raise Skip("others may not run what was built here") from None
    check(b" ash unix:/tmp/koine/ash.sock " in done.stdout, "%r", done)


def test_koines_own_socket_has_the_same_methods():
    with Daemon() as d:
        c = d.connect()
        made = c.call("memory.add", {"content": "by the other door"})
        same(Ash(d).contents(), ["by the other door"])
        same(c.call("memory.search", {"query": "door"})[0]["id"], made["id"])
        same(c.call("memory.delete", {"memory_id": made["id"][:8]}), {"deleted": True})


# ---- the page ----


def transcript():
    with open(os.path.join(SOURCE, "test", "vectors", "ash-transcript.json")) as file:
        return json.load(file)["frames"]


def test_the_page_shows_the_transcript():
    lines = []
    for step in transcript():
        for mark, text in (">", step["send"]), ("<", step["answer"]):
            lines.append("%s %08x %s\n" % (mark, len(text.encode()), text))
    with open(os.path.join(SOURCE, "doc", "dialects", "ash.md")) as page:
        check("```\n%s```\n" % "".join(lines) in page.read(), "the page shows something else")


def without_what_varies(text):
    text = re.sub(r'"similarity":0\.\d+', '"similarity":0.5', text)
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]{15}", "TIME", text)


def test_the_transcript_is_what_happens():
    ids = {}  # those of the transcript, and those that come instead
    with Daemon() as d, connect(Ash(d).address) as sock:
        for step in transcript():
            sent = step["send"]
            for theirs, ours in ids.items():
                sent = sent.replace(theirs[:8], ours[:8])
            sock.sendall(frame(sent.encode()))
            got = read_frame(sock).decode()
            for theirs, ours in zip(UUID4.findall(step["answer"]), UUID4.findall(got)):
                ids.setdefault(theirs, ours)
            want = step["answer"]
            for theirs, ours in ids.items():
                want = want.replace(theirs, ours)
            same(without_what_varies(got), without_what_varies(want), "answer to %s" % sent)


def test_the_page_names_every_parameter():
    with open(os.path.join(SOURCE, "doc", "dialects", "ash.md")) as file:
        page = file.read()
    with open(os.path.join(SOURCE, "doc", "dialects", "koine.md")) as file:
        added = file.read().partition("## Memories")[2].partition("\n## ")[0]
    with Daemon() as d:
        for method in d.connect().call("rpc.discover")["methods"]:
            if method["name"] not in METHODS:
                continue
            part = page.partition("**`%s`**" % method["name"])[2].partition("\n**`")[0]
            check(part, "%s is not on the page", method["name"])
            for name in (p["name"] for p in method["params"] if p["name"] != "context_token"):
                check("`%s`" % name in part or "`%s`" % name in added,
                      "%s of %s is not on the page", name, method["name"])


if __name__ == "__main__":
    main(globals())
