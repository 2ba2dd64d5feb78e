#!/usr/bin/env python3
"""The nexus dialect byte by byte: envelopes, parameters, statuses, paths, the gate, the end."""
import json
import os
import re
import time

from harness import (MIB, SOURCE, Client, Daemon, Folder, check, main, post, request, run_koined,
                     same, shared, wait_until)
from nexus_client import parse_response

TRANSCRIPT = os.path.join(SOURCE, "test", "vectors", "nexus-transcript.json")
PAGE = os.path.join(SOURCE, "doc", "dialects", "nexus.md")

METHODS = ("send", "cancel", "get_tokens", "get_context", "get_messages", "compact",
           "create_agent", "list_agents", "destroy_agent", "shutdown", "shutdown_server")

# One that never ends by itself, and says a word now and then.
SLOW = ("--set", "agent.slow.kind=recall", "--set", "agent.slow.word_delay=100")

CONTEXT = request("get_context")


def connect(d):
    for dialect, address in d.addresses:
        if dialect == "nexus":
            d.clients.append(Client(address))
            return d.clients[-1]
    raise AssertionError("no nexus: %r" % d.addresses)


def answer(c, body, path="/", **opts):
    """Status and body of one call."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    r = post(c, body, path, **opts)
    same(r.header("content-type"), "application/json; charset=utf-8", "content type")
    return r.status, r.body.decode()


def call(c, method, params=None, path="/"):
    status, body = answer(c, request(method, params), path)
    found = json.loads(body)
    check("result" in found, "%s failed: %s", method, body)
    same((status, list(found), found["id"]), (200, ["jsonrpc", "id", "result"], 1), "envelope")
    return found["result"]


def error_text(code, message, id="null"):
    return '{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}' % (
        id, code, json.dumps(message))


def refused(c, method, params, message, code=-32602, status=200, path="/"):
    same(answer(c, request(method, params), path), (status, error_text(code, message, "1")),
         "%s %r" % (method, params))


# ---- envelopes ----

ENVELOPES = (
    (b"[]", "Request must be a JSON object"),
    (b"[%s]" % CONTEXT, "Request must be a JSON object"),
    (b"7", "Request must be a JSON object"),
    (b'"x"', "Request must be a JSON object"),
    (b"null", "Request must be a JSON object"),
    (b"{}", "jsonrpc must be '2.0', got: None"),
    (b'{"jsonrpc":null}', "jsonrpc must be '2.0', got: None"),
    (b'{"jsonrpc":"1.0","method":"m","id":1}', "jsonrpc must be '2.0', got: '1.0'"),
    (b'{"jsonrpc":2.0,"method":"m","id":1}', "jsonrpc must be '2.0', got: 2.0"),
    (b'{"jsonrpc":true}', "jsonrpc must be '2.0', got: True"),
    (b'{"jsonrpc":"%s"}' % ("é" * 99).encode(), "jsonrpc must be '2.0', got: '%s'" % ("é" * 40)),
    (b'{"jsonrpc":"2.0","id":1}', "method must be a string, got: NoneType"),
    (b'{"jsonrpc":"2.0","method":5,"id":1}', "method must be a string, got: int"),
    (b'{"jsonrpc":"2.0","method":5.0}', "method must be a string, got: float"),
    (b'{"jsonrpc":"2.0","method":false}', "method must be a string, got: bool"),
    (b'{"jsonrpc":"2.0","method":["m"]}', "method must be a string, got: list"),
    (b'{"jsonrpc":"2.0","method":{}}', "method must be a string, got: dict"),
    (b'{"jsonrpc":"2.0","method":"","id":1}', "method must not be empty"),
    (b'{"jsonrpc":"2.0","method":"m","params":"x","id":1}',
     "params must be object or array, got: str"),
    (b'{"jsonrpc":"2.0","method":"m","params":0}', "params must be object or array, got: int"),
    (b'{"jsonrpc":"2.0","method":"m","params":[1],"id":1}',
     "Positional params (array) not supported, use named params (object)"),
    (b'{"jsonrpc":"2.0","method":"m","params":[]}',
     "Positional params (array) not supported, use named params (object)"),
    (b'{"jsonrpc":"2.0","method":"m","id":true}',
     "id must be string, number, or null, got: bool"),
    (b'{"jsonrpc":"2.0","method":"m","id":[1]}',
     "id must be string, number, or null, got: list"),
    (b'{"jsonrpc":"2.0","method":"m","id":{}}',
     "id must be string, number, or null, got: dict"),
)


def test_what_is_no_request_is_told_so_with_the_value_at_fault():
    with shared() as d:
        c = connect(d)
        for body, message in ENVELOPES:
            status, text = answer(c, body)
            same((status, json.loads(text)),
                 (400, {"jsonrpc": "2.0", "id": None,
                        "error": {"code": -32600, "message": message}}), repr(body))
            check(text.startswith('{"jsonrpc":"2.0","id":null,"error":{"code":'), "%s", text)


def test_what_is_no_json_is_told_so():
    with shared() as d:
        c = connect(d)
        for body in b"", b" ", b"{", b"{'a':1}", b"nonsense", b'{"a":1}x', b'"\xff"', b"\xef\xbb\xbf{}":
            status, text = answer(c, body)
            found = json.loads(text)
            same((status, found["id"], found["error"]["code"]), (400, None, -32700), repr(body))
            check(found["error"]["message"].startswith("Invalid JSON: "), "%s", text)


def test_ids_come_back_as_they_were_sent():
    with shared() as d:
        c = connect(d)
        for id in ("1", "-7", "0", '""', '"x"', '"\\u00e9\\n"', "1.5", "1e3", "-0.0",
                   "9223372036854775808", '"%s"' % ("x" * 1000)):
            same(answer(c, request("get_context", id=id)),
                 (200, '{"jsonrpc":"2.0","id":%s,"result":{"message_count":0,'
                       '"system_prompt":true}}' % id))


def test_a_notification_is_done_and_answered_with_nothing():
    with Daemon() as d:
        c = connect(d)
        for i, id in enumerate((None, "null")):
            r = post(c, request("send", {"content": "Hello"}, id=id))
            same((r.status, r.body, r.header("content-length")), (200, b"", "0"))
            # It ran to its end before.
            same(call(c, "get_context")["message_count"], 2 * (i + 1), "messages")
        for method, params in ("unknown", None), ("send", {}), ("send", {"content": 1}):
            r = post(c, request(method, params, id=None))
            same((r.status, r.body), (200, b""), "a notification of %s" % method)


def test_unknown_members_and_null_params_are_no_matter():
    with shared() as d:
        c = connect(d)
        same(answer(c, b'{"x":[1],"jsonrpc":"2.0","method":"get_context","params":null,"id":1}')[0],
             200)
        same(call(c, "get_context", {"unknown": [1], "agent_id": None})["message_count"], 0)


# ---- methods ----


def test_send_answers_with_its_two_members():
    with Daemon() as d:
        c = connect(d)
        r = call(c, "send", {"content": "My name is Alice"})
        same(list(r), ["content", "request_id"], "members")
        check(re.fullmatch(r"[0-9a-f]{16}", r["request_id"]), "%r", r["request_id"])
        for id in '"x"', "7", "-7", '"7"', "123456789012345678901234567890", '"\\u00e9"':
            body = request("send", '{"content":"","request_id":%s}' % id)
            same(json.loads(answer(c, body)[1])["result"]["request_id"], json.loads(id), "id")
        for id in None, "", 0:
            r = call(c, "send", {"content": "x", "request_id": id})
            check(re.fullmatch(r"[0-9a-f]{16}", r["request_id"]), "%r", r)
        same(list(call(c, "get_context")), ["message_count", "system_prompt"], "members")
        tokens = call(c, "get_tokens")
        same(list(tokens), ["system", "tools", "messages", "total", "budget", "available"])
        same(tokens["total"], tokens["system"] + tokens["tools"] + tokens["messages"], "total")
        same((tokens["budget"], tokens["available"]), (8000, 6000))


def test_parameters_are_refused_in_the_originals_words():
    cases = (
        ("send", None, "Missing required parameter: content"),
        ("send", {"content": None}, "Missing required parameter: content"),
        ("send", {"content": 5}, "content must be string, got: int"),
        ("send", {"content": 5.0}, "content must be string, got: float"),
        ("send", {"content": {}}, "content must be string, got: dict"),
        ("send", {"content": "x", "request_id": ["a"]},
         "request_id must be string or integer, got: list"),
        ("send", {"content": "x", "request_id": {}},
         "request_id must be string or integer, got: dict"),
        ("send", {"content": "x", "request_id": 1.5},
         "request_id must be string or integer, got: float"),
        ("send", {"content": "x", "request_id": True},
         "request_id must be string or integer, got: bool"),
        ("cancel", None, "Missing required parameter: request_id"),
        ("cancel", {"request_id": None}, "Missing required parameter: request_id"),
        ("cancel", {"request_id": ""}, "Missing required parameter: request_id"),
        ("cancel", {"request_id": 0}, "Missing required parameter: request_id"),
        ("cancel", {"request_id": [7]}, "request_id must be string or integer, got: list"),
        ("get_messages", {"offset": -1}, "offset must be at least 0, not -1"),
        ("get_messages", {"limit": 0}, "limit must be between 1 and 2000, not 0"),
        ("get_messages", {"limit": 2001}, "limit must be between 1 and 2000, not 2001"),
        ("get_messages", {"limit": "9"}, "limit must be integer, got: str"),
        ("destroy_agent", {}, "Missing required parameter: agent_id"),
        ("create_agent", {"agent_id": 5}, "agent_id must be string, got: int"),
        ("create_agent", {"initial_message": ""}, "initial_message cannot be empty"),
    )
    with shared() as d:
        c = connect(d)
        for method, params, message in cases:
            refused(c, method, params, message)
        refused(c, "nothing", {}, "Method not found: nothing", code=-32601)
        refused(c, "rpc.discover", {}, "Method not found: rpc.discover", code=-32601)
        refused(c, "memory.list", {}, "Method not found: memory.list", code=-32601)
        same(call(c, "get_context")["message_count"], 0, "messages")


def begin_slow(d, request_id, path="/"):
    """A send that is under way; its connection."""
    c = connect(d)
    c.send(b"POST %s HTTP/1.1\r\nHost: localhost\r\n" % path.encode())
    body = request("send", '{"content":"Tell me everything","request_id":%s}' % request_id)
    c.send(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    d.settle()
    return c


def test_cancel_ends_a_send_with_what_came():
    with Daemon(*SLOW, "--agent", "slow") as d:
        c = connect(d)
        slow = begin_slow(d, '"my-req-1"')
        said = lambda: [m for m in call(c, "get_messages")["messages"] if m["content"]][1:]
        wait_until(said, "the first words")
        same(answer(c, request("cancel", {"request_id": "my-req-1"}, id=2)),
             (200, '{"jsonrpc":"2.0","id":2,"result":{"cancelled":true,"request_id":"my-req-1"}}'))
        r = slow.read_response()
        found = json.loads(r.body)["result"]
        same((r.status, list(found)), (200, ["content", "request_id", "cancelled"]), "members")
        same((found["request_id"], found["cancelled"]), ("my-req-1", True))
        check(found["content"], "nothing was kept")
        messages = call(c, "get_messages")["messages"]
        same([(m["role"], m["content"], m["state"]) for m in messages],
             [("user", "Tell me everything", "cancelled"),
              ("assistant", found["content"], "cancelled")])
        same(answer(c, request("cancel", {"request_id": "my-req-1"}, id=2)),
             (200, '{"jsonrpc":"2.0","id":2,"result":{"cancelled":false,"request_id":"my-req-1",'
                   '"reason":"not_found_or_completed"}}'))


def test_request_ids_have_a_type_and_are_taken_once():
    with Daemon(*SLOW, "--agent", "slow") as d:
        c = connect(d)
        slow = begin_slow(d, "7")
        waiting = begin_slow(d, '"7"')
        for id in 7, "7":
            status, body = answer(c, request("send", {"content": "x", "request_id": id}))
            same((status, json.loads(body)["error"]["code"]), (200, -32602), "a second %r" % id)
        same(call(c, "cancel", {"request_id": 77})["cancelled"], False)
        # One that waits behind another ends at once, with nothing.
        same(call(c, "cancel", {"request_id": "7"}), {"cancelled": True, "request_id": "7"})
        same(json.loads(waiting.read_response().body)["result"],
             {"content": "", "request_id": "7", "cancelled": True})
        same(call(c, "cancel", {"request_id": 7}), {"cancelled": True, "request_id": 7})
        same(json.loads(slow.read_response().body)["result"]["request_id"], 7)


def test_a_send_whose_client_left_goes_on():
    with Daemon() as d:
        c = connect(d)
        post_and_leave = begin_slow(d, "1")
        post_and_leave.reset()
        wait_until(lambda: call(c, "get_context")["message_count"] == 2, "the answer")


def test_an_agent_that_fails_is_an_error_with_its_type_and_words():
    words = "Internal error: CommandError: bad: exit status 3: oops"
    with Daemon("--set", "agent.bad.kind=command", "--agent", "bad", "--set",
                "agent.bad.command=/bin/sh -c 'echo oops >&2; exit 3'") as d:
        c = connect(d)
        refused(c, "send", {"content": "x"}, words, code=-32603)
        r = call(c, "create_agent", {"agent_id": "a", "initial_message": "x",
                                     "wait_for_initial_response": True})
        same(r["response"], {"error": {"code": -32603, "message": words}})
        # The conversation goes on.
        refused(c, "send", {"content": "y"}, words, code=-32603)
        same([(m["role"], m["state"]) for m in call(c, "get_messages")["messages"]],
             [("user", "failed")] * 2)
    with Daemon("--set", "chat.agent=none") as d:
        refused(connect(d), "send", {"content": "x"}, "no agent is configured", code=-32000)


def test_messages_have_all_their_members():
    with Daemon() as d:
        c = connect(d)
        for i in range(3):
            call(c, "send", {"content": "question %d" % i})
        page = call(c, "get_messages", {"offset": 2, "limit": 3})
        same(list(page), ["agent_id", "total", "offset", "limit", "messages"])
        same((page["agent_id"], page["total"], page["offset"], page["limit"]), ("default", 6, 2, 3))
        same([(m["index"], m["role"]) for m in page["messages"]],
             [(2, "user"), (3, "assistant"), (4, "user")])
        for m in page["messages"]:
            same(list(m), ["index", "role", "content", "tool_call_id", "tokens", "created_at",
                           "state"])
            same((m["tool_call_id"], m["state"]), (None, "done"))
            check(m["tokens"] > 4, "%r", m)
        same(call(c, "get_messages", {"offset": 99})["messages"], [])


def test_compact_says_what_it_saved():
    with Daemon() as d:
        c = connect(d)
        r = call(c, "compact")
        same((r["compacted"], r["reason"], r["tokens_saved"]), (False, "nothing_to_compact", 0))
        for i in range(6):
            call(c, "send", {"content": "The garden has %d gates. " % i + "They are old. " * 40})
        r = call(c, "compact", {"force": True})
        same(list(r), ["compacted", "tokens_before", "tokens_after", "tokens_saved"])
        check(r["compacted"] and r["tokens_saved"] > 0, "%r", r)
        same(r["tokens_before"] - r["tokens_after"], r["tokens_saved"])
        same(call(c, "get_tokens")["total"], r["tokens_after"])
        same(call(c, "get_context")["message_count"], 12, "messages")


# ---- several agents ----

AGENT = ["agent_id", "is_temp", "created_at", "message_count", "should_shutdown",
         "parent_agent_id", "child_count", "halted_at_iteration_limit", "model",
         "last_action_at", "permission_level", "cwd", "write_paths"]


def test_agents_are_made_used_and_ended():
    with Daemon() as d:
        c = connect(d)
        same([a["agent_id"] for a in call(c, "list_agents")["agents"]], ["default"], "at first")
        same(call(c, "create_agent", {"agent_id": "a.B_1-2:3@x"}),
             {"agent_id": "a.B_1-2:3@x", "url": "/agent/a.B_1-2:3@x"})
        made = call(c, "create_agent", {"system_prompt": ""})
        same(made["url"], "/agent/" + made["agent_id"])
        same(call(c, "get_context", path=made["url"]), {"message_count": 0, "system_prompt": False})
        call(c, "send", {"content": "The key is under the mat"}, path="/agent/a.B_1-2:3@x")
        call(c, "send", {"content": "Nothing to see"})
        agents = call(c, "list_agents")["agents"]
        same(sorted((a["agent_id"], a["message_count"]) for a in agents),
             sorted([("a.B_1-2:3@x", 2), ("default", 2), (made["agent_id"], 0)]))
        for a in agents:
            same(list(a), AGENT, "members")
            same((a["is_temp"], a["should_shutdown"], a["model"]), (False, False, "recall"))
        same(call(c, "get_messages", path="/agent/a.B_1-2:3@x")["agent_id"], "a.B_1-2:3@x")
        # The parameter names it where there is no path.
        same(call(c, "get_context", {"agent_id": "a.B_1-2:3@x"})["message_count"], 2)
        same(call(c, "destroy_agent", {"agent_id": made["agent_id"]}),
             {"success": True, "agent_id": made["agent_id"]})
        same(call(c, "destroy_agent", {"agent_id": made["agent_id"]}),
             {"success": False, "agent_id": made["agent_id"]})
        same(call(c, "destroy_agent", {"agent_id": "a.B_1-2:3@x"})["success"], True)
        same([a["agent_id"] for a in call(c, "list_agents")["agents"]], ["default"])


def test_main_is_another_name_of_the_default_conversation():
    """Newer clients begin at /agent/main."""
    with Daemon() as d:
        c = connect(d)
        same(call(c, "get_tokens", path="/agent/main")["messages"], 0, "before anything was said")
        call(c, "send", {"content": "The key is under the mat"}, path="/agent/main")
        check("under the mat" in call(c, "send", {"content": "Where is the key?"})["content"], "another conversation")
        same(call(c, "get_messages", {"agent_id": "main"})["total"], 4, "by its name")
        same(call(c, "shutdown", path="/agent/main"), {"success": True})
        for name in "main", "default":
            refused(c, "destroy_agent", {"agent_id": name}, "Cannot destroy the default agent: " + name)
        refused(c, "create_agent", {"agent_id": "main"}, "Agent already exists: main")
        same([(a["agent_id"], a["message_count"], a["should_shutdown"]) for a in call(c, "list_agents")["agents"]],
             [("default", 4, True)], "the list")
        call(c, "create_agent", {"agent_id": "child", "parent_agent_id": "main"})
        same([a["parent_agent_id"] for a in call(c, "list_agents")["agents"] if a["agent_id"] == "child"],
             ["default"], "its child")
        call(c, "destroy_agent", {"agent_id": "child"})
        with d.connect() as own:
            same(own.call("create_agent", {"agent_id": "main"})["agent_id"], "main", "on koine's own socket any name")
            same(own.call("destroy_agent", {"agent_id": "default"})["success"], True, "there it is emptied")
        same(call(c, "get_context", path="/agent/main")["message_count"], 0, "messages")


def test_a_shutdown_of_an_agent_is_noted_and_it_goes_on():
    with Daemon() as d:
        c = connect(d)
        wanting = lambda: {a["agent_id"]: a["should_shutdown"]
                           for a in call(c, "list_agents")["agents"]}
        call(c, "create_agent", {"agent_id": "w", "initial_message": "The key is under the mat",
                                 "wait_for_initial_response": True})
        same(wanting(), {"default": False, "w": False}, "before")
        for _ in range(2):
            same(call(c, "shutdown", path="/agent/w"), {"success": True})
        same(wanting(), {"default": False, "w": True}, "after")
        check("under the mat" in call(c, "send", {"content": "Where is the key?"},
                                      path="/agent/w")["content"], "it forgot")
        same(call(c, "get_context", path="/agent/w")["message_count"], 4, "messages")
        same(call(c, "shutdown", path="/agent/default"), {"success": True})
        same(wanting(), {"default": True, "w": True}, "all of them")
        same(call(c, "get_context")["message_count"], 0, "the server goes on")
        # A new one by the same name wants nothing.
        call(c, "destroy_agent", {"agent_id": "w"})
        call(c, "create_agent", {"agent_id": "w"})
        same(wanting()["w"], False, "a new one")


def test_the_default_conversation_is_listed_before_anything_was_said():
    with Daemon() as d:
        c = connect(d)
        r = call(c, "list_agents")
        same((list(r["agents"][0]), r["total"]), (AGENT, 1), "members")
        same([(a["agent_id"], a["message_count"], a["model"]) for a in r["agents"]],
             [("default", 0, "recall")])
        same(call(c, "list_agents", {"offset": 1}), {"agents": [], "total": 1}, "a later page")
        call(c, "send", {"content": "hello"})
        r = call(c, "list_agents")
        same(([(a["agent_id"], a["message_count"]) for a in r["agents"]], r["total"]),
             ([("default", 2)], 1), "once")


def test_the_default_conversation_has_a_path_before_anything_was_said():
    with Daemon() as d:
        c = connect(d)
        same(call(c, "get_context", path="/agent/default")["message_count"], 0, "by its path")
        same(call(c, "get_tokens", {"agent_id": "default"})["messages"], 0, "by its name")
        same(call(c, "cancel", {"request_id": "r"}, path="/agent/default")["cancelled"], False)
        call(c, "send", {"content": "hello", "agent_id": "default"})
        same(call(c, "get_context")["message_count"], 2, "at /")


def test_an_agents_name_and_prompt_are_refused_by_their_own_names():
    with shared() as d:
        c = connect(d)
        for wrong, words in ("", "agent_id must have 1 to 128 characters"), \
                            ("a b", "agent_id may contain only letters, digits and . _ - : @"):
            refused(c, "send", {"content": "x", "agent_id": wrong}, words)
        refused(c, "create_agent", {"agent_id": "n", "system_prompt": "a\0b"},
                "system_prompt has a NUL byte")


def test_agents_are_listed_in_pages():
    with Daemon() as d:
        c = connect(d)
        for i in range(5):
            call(c, "create_agent", {"agent_id": "a%d" % i})
        every = [a["agent_id"] for a in call(c, "list_agents")["agents"]]
        same(sorted(every), ["a%d" % i for i in range(5)] + ["default"])
        for offset, limit, want in ((0, 2, every[:2]), (2, 2, every[2:4]), (4, 2, every[4:]),
                                    (4, 1, every[4:5]), (5, 1, ["default"]), (9, 2, [])):
            r = call(c, "list_agents", {"offset": offset, "limit": limit})
            same(([a["agent_id"] for a in r["agents"]], r["total"]), (want, 6), "from %d" % offset)
        refused(c, "list_agents", {"offset": -1}, "offset must be at least 0, not -1")
        for limit in 0, 2001:
            refused(c, "list_agents", {"limit": limit},
                    "limit must be between 1 and 2000, not %d" % limit)


def test_a_path_may_be_written_as_encode_uri_component_does():
    with Daemon() as d:
        c = connect(d)
        call(c, "create_agent", {"agent_id": "ann@home:1", "initial_message": "Hello",
                                 "wait_for_initial_response": True})
        for path in "/agent/ann%40home%3A1", "/agent/ann%40home%3a1", "/agent/%61nn@home:1":
            same(call(c, "get_messages", path=path)["agent_id"], "ann@home:1", path)
        same(call(c, "send", {"content": "again"}, path="/agent/ann%40home%3A1")["content"] != "",
             True, "a send there is answered")
        refused(c, "get_context", {}, "Agent not found: a@b", status=404, path="/agent/a%40b")


def test_a_path_too_long_for_an_id_is_not_found():
    with shared() as d:
        c = connect(d)
        long = "x" * 129
        for method, params in (("get_context", {}), ("send", {"content": "x"}), ("compact", {}),
                               ("get_messages", {}), ("get_tokens", {}), ("shutdown", {}),
                               ("cancel", {"request_id": "r"})):
            refused(c, method, params, "Agent not found: " + long, status=404,
                    path="/agent/" + long)


def test_an_agent_that_is_not_there_is_not_found():
    with shared() as d:
        c = connect(d)
        for method, params in (("send", {"content": "x"}), ("cancel", {"request_id": "x"}),
                               ("get_tokens", None), ("get_context", None), ("compact", None),
                               ("get_messages", None), ("shutdown", None)):
            refused(c, method, params, "Agent not found: nobody", status=404,
                    path="/agent/nobody")
            if method != "shutdown":
                refused(c, method, dict(params or {}, agent_id="no.body"),
                        "Agent not found: no.body", status=404)
        call(c, "create_agent", {"agent_id": "w"})
        for method in "create_agent", "list_agents", "shutdown_server":
            refused(c, method, {}, "Method not found: " + method, code=-32601, path="/agent/w")
        refused(c, "destroy_agent", {"agent_id": "w"}, "Method not found: destroy_agent",
                code=-32601, path="/agent/w")
        refused(c, "create_agent", {"agent_id": "w"}, "Agent already exists: w")
        for params in {"agent_id": "a/b"}, {"agent_id": ""}, {"agent_id": ".."}, {"model": "gpt"}:
            status, body = answer(c, request("create_agent", params))
            same((status, json.loads(body)["error"]["code"]), (200, -32602), repr(params))
        same(len(call(c, "list_agents")["agents"]), 2, "agents")


def test_a_first_message_can_be_waited_for():
    with Daemon(*SLOW) as d:
        c = connect(d)
        r = call(c, "create_agent", {"agent_id": "w", "initial_message": "My name is Alice",
                                     "wait_for_initial_response": True})
        same(list(r), ["agent_id", "url", "initial_request_id", "response"])
        same(list(r["response"]), ["content", "request_id"])
        same(r["response"]["request_id"], r["initial_request_id"])
        same(call(c, "get_context", path="/agent/w")["message_count"], 2)
        r = call(c, "create_agent", {"agent_id": "s", "model": "slow", "initial_message": "Hello"})
        same(list(r), ["agent_id", "url", "initial_request_id", "initial_status"])
        same(r["initial_status"], "queued")
        same(call(c, "cancel", {"request_id": r["initial_request_id"]}, path="/agent/s"),
             {"cancelled": True, "request_id": r["initial_request_id"]})
        # A cancel at "/" is about the default conversation.
        begin_slow(d, '"x"', path="/agent/s")
        same(call(c, "cancel", {"request_id": "x"})["cancelled"], False)
        same(call(c, "cancel", {"request_id": "x", "agent_id": "s"})["cancelled"], True)


def test_koines_own_socket_has_the_same_methods():
    with Daemon(*SLOW) as d:
        k = d.connect()
        same(k.call("send", {"content": "My name is Alice", "request_id": 7})["request_id"], 7)
        same(k.call("get_context"), {"message_count": 2, "system_prompt": True})
        k.call("create_agent", {"agent_id": "w", "model": "slow"})
        # A cancel overtakes on its own connection, and needs no name.
        k.send(request("send", {"content": "Hello", "request_id": "r", "agent_id": "w"}, id=1) +
               b"\n" + request("get_context", {"agent_id": "w"}, id=2) + b"\n" +
               request("cancel", {"request_id": "r"}, id=3) + b"\n")
        found = [json.loads(k.read_line()) for _ in range(3)]
        same(found[2]["id"], 2, "the last answer")
        found = {f["id"]: f["result"] for f in found}
        same(found[3], {"cancelled": True, "request_id": "r"})
        same((found[1]["request_id"], found[1]["cancelled"]), ("r", True))


# ---- HTTP ----


NOT_FOUND = error_text(-32602, "Not found. Use /, /rpc, or /agent/{agent_id}.")
TOO_LARGE = error_text(-32700, "Request body too large: 1048577 > 1048576")


def test_paths_and_methods():
    with shared() as d:
        c = connect(d)
        for path in "/", "/rpc":
            same(answer(c, CONTEXT, path)[0], 200, path)
        for path in ("/rpc/", "/?x=1", "/rpc?x", "//", "/agent", "/agent/", "/agent/a/", "/x",
                     "/agent/a?b", "/agent/..", "/RPC", "*", "/agent/a%2fb", "/agent/a%",
                     "/agent/a%4", "/agent/%4g", "/agent/%2e%2E", "/agent/a%00", "/agent/%C3%A9",
                     "/agent/" + "x" * 300, "/rp%63"):
            same(answer(c, CONTEXT, path), (404, NOT_FOUND), path)
        for method in "GET", "PUT", "DELETE", "OPTIONS", "post", "PATCH":
            for path in "/", "/x":
                same(answer(c, b"", path, method=method),
                     (405, error_text(-32600, "Method not allowed. Use POST.")), method)
        same(answer(c, b"", method="HEAD"), (405, ""))


def raw(d, data, half_close=False):
    """Status and body of whatever bytes, after which the connection is over."""
    with connect(d) as c:
        c.send_all_it_takes(data)
        if half_close:
            c.half_close()
        r = c.read_response()
        same(r.header("connection"), "close", "connection")
        c.ended()
        return r.status, r.body.decode()


def test_requests_that_are_none():
    post_line = b"POST / HTTP/1.1\r\nHost: localhost\r\n"
    with shared() as d:
        same(raw(d, b"GARBAGE\r\n\r\n"), (400, error_text(-32700, "Invalid request line: GARBAGE")))
        same(raw(d, b'SAY "hi\\"\r\n\r\n'),
             (400, error_text(-32700, 'Invalid request line: SAY "hi\\"')))
        same(raw(d, post_line + b"Content-Length: abc\r\n\r\n"),
             (400, error_text(-32700, "Invalid Content-Length: abc")))
        same(raw(d, post_line + b"Content-Length: +5\r\n\r\nabcde"),
             (400, error_text(-32700, "Invalid Content-Length: +5")))
        same(raw(d, post_line + b"Content-Length: 50\r\n\r\nabc", half_close=True),
             (400, error_text(-32700, "Incomplete body: expected 50, got 3")))
        same(raw(d, post_line + b"Content-Length: 1048577\r\n\r\n"),
             (413, TOO_LARGE))
        for data in (b"POST / HTTP/1.1\nHost: localhost\n\n", post_line + b"X: y\n\r\n",
                     post_line + b"X: y\rz\r\n\r\n", b"POST /\r\n\r\n",
                     b"POST  / HTTP/1.1\r\nHost: localhost\r\n\r\n",
                     b"POST / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
                     post_line + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}"):
            status, body = raw(d, data)
            same(status, 400, repr(data))
            told = parse_response(body)
            same((told["id"], told["error"]["code"]), (None, -32700), body)
        with connect(d) as c:
            c.half_close()
            c.ended()
        d.alive()


def test_a_body_has_at_most_one_mebibyte():
    with shared() as d:
        c = connect(d)
        spaces = b" " * (MIB - len(CONTEXT))
        same(answer(c, CONTEXT + spaces)[0], 200)
        # And one more is refused by its length alone, in a way that the client can read.
        big = CONTEXT + spaces + b" "
        same(raw(d, b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" %
                 (len(big), big)),
             (413, TOO_LARGE))
        same(answer(c, CONTEXT)[0], 200)


def test_a_request_that_does_not_come_in_time():
    with Daemon("--set", "limits.read_timeout=1") as d:
        head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
        for data, words in ((b"", "Request timeout"), (b"POST / HT", "Request timeout"),
                            (head, "Header read timeout"), (head + b"\r\n{", "Body read timeout")):
            same(raw(d, data), (400, error_text(-32700, words)), repr(data))


def test_connections_stay_or_close_as_asked():
    with shared() as d:
        c = connect(d)
        for _ in range(3):
            same(post(c, CONTEXT).header("connection"), "keep-alive")
        r = post(c, CONTEXT, headers="Connection: close\r\n")
        same((r.status, r.header("connection")), (200, "close"))
        c.ended()
        c = connect(d)
        r = post(c, CONTEXT, version="1.0")
        same((r.status, r.header("connection")), (200, "close"))
        c.ended()
        c = connect(d)
        same(post(c, CONTEXT, version="1.0",
                  headers="Connection: keep-alive\r\n").header("connection"), "keep-alive")
        same(answer(c, CONTEXT)[0], 200)
        # The headers, in the order that clients of the original know.
        same(post(c, CONTEXT, headers="Connection: close\r\n").head,
             b"HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\n"
             b"Content-Length: 74\r\nConnection: close\r\n\r\n")
        # Two in one go are answered in order.
        c = connect(d)
        one = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s"
        bodies = [request("send", {"content": "x"}, id=1), request("get_context", id=2)]
        c.send(b"".join(one % (len(b), b) for b in bodies))
        same([json.loads(c.read_response().body)["id"] for _ in bodies], [1, 2])


# ---- who may come in ----

FORM = "Content-Type: text/plain\r\nOrigin: http://evil.example\r\n"


def test_web_pages_are_turned_away():
    host = error_text(-32600, "Forbidden: Host must be localhost or a loopback address")
    page = error_text(-32600, "Forbidden: requests from web pages are not accepted")
    with Daemon() as d:
        port = connect(d).socket.getpeername()[1]
        for opts, want in (({"host": "evil.example"}, host), ({"host": "127.0.0.1.evil"}, host),
                           ({"host": "0.0.0.0"}, host), ({"host": "192.168.1.1"}, host),
                           ({"host": "localhost."}, host),
                           ({"headers": FORM}, page),
                           ({"headers": "Origin: null\r\n"}, page),
                           ({"headers": "Origin: http://localhost:1\r\n"}, page),
                           ({"headers": "Origin: https://localhost:%d\r\n" % port}, page),
                           ({"headers": "Sec-Fetch-Site: cross-site\r\n"}, page),
                           ({"headers": "Sec-Fetch-Site: same-site\r\n"}, page),
                           ({"headers": FORM, "method": "OPTIONS"}, page),
                           ({"headers": FORM, "method": "GET"}, page)):
            c = connect(d)
            same(answer(c, request("send", {"content": "do it"}), **opts), (403, want), repr(opts))
            c.ended()
        for name in ("localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:%d" % port, "127.9.9.9",
                     "[::1]", "[::1]:%d" % port):
            same(answer(connect(d), CONTEXT, host=name)[0], 200, name)
        here = "localhost:%d" % port
        same(answer(connect(d), CONTEXT, host=here, headers="Origin: http://%s\r\n"
                    "Sec-Fetch-Site: same-origin\r\n" % here)[0], 200)
        same(call(connect(d), "get_context")["message_count"], 0, "messages")


def test_a_token_is_asked_for_where_one_is_set():
    with Folder() as f:
        with open(f("token"), "w") as file:
            os.chmod(f("token"), 0o600)
            file.write("nxk_0123456789abcdef\n")
        with Daemon("--set", "nexus.token_file=" + f("token")) as d:
            for headers, status, words in (
                    ("", 401, "Authorization header required"),
                    ("Authorization: Bearer nxk_other\r\n", 403, "Invalid API key"),
                    ("Authorization: nxk_0123456789abcdef\r\n", 401, "Authorization header required"),
                    ("Authorization: Basic eDp5\r\n", 401, "Authorization header required"),
                    ("Authorization: Bearer nxk_0123456789abcdef2\r\n", 403, "Invalid API key")):
                c = connect(d)
                for opts in {}, {"path": "/x"}, {"method": "GET"}:
                    same(answer(connect(d), CONTEXT, headers=headers, **opts),
                         (status, error_text(-32600, words)), repr((headers, opts)))
                c.close()
            given = "Authorization: Bearer nxk_0123456789abcdef\r\n"
            same(answer(connect(d), CONTEXT, headers=given)[0], 200)
            same(answer(connect(d), b"", "/x", headers=given, method="GET")[0], 405)
            same(answer(connect(d), b"", "/x", headers=given)[0], 404)
            # Pages are turned away before they can guess.
            same(answer(connect(d), CONTEXT, headers=FORM + given)[0], 403)
            same(json.loads(answer(connect(d), CONTEXT, headers=FORM)[1])["error"]["message"],
                 "Forbidden: requests from web pages are not accepted")
            # Whoever may open the socket needs no token.
            d.connect().call("get_context")
        os.chmod(f("token"), 0o644)
        done = run_koined("--root", f("root"), "--set", "nexus.token_file=" + f("token"))
        check(done.returncode != 0 and b"token" in done.stderr, "%r", done)


# ---- the end ----


def test_shutdown_answers_and_the_daemon_stops():
    for method, result in (("shutdown", '{"success":true}'),
                           ("shutdown_server",
                            '{"success":true,"message":"Server shutting down"}')):
        with Daemon(*SLOW, "--agent", "slow") as d:
            slow = begin_slow(d, '"r"')
            idle = connect(d)
            c = connect(d)
            same(answer(c, request(method, id=2)),
                 (200, '{"jsonrpc":"2.0","id":2,"result":%s}' % result))
            c.ended()
            idle.ended()
            found = json.loads(slow.read_response().body)["result"]
            same((found["request_id"], found["cancelled"]), ("r", True), "the send under way")
            same(d.wait_exit(), 0, "exit status")


def test_shutdown_as_a_notification():
    with Daemon() as d:
        r = post(connect(d), request("shutdown", id=None))
        same((r.status, r.body), (200, b""))
        same(d.wait_exit(), 0, "exit status")


def test_shutdown_can_close_its_listener_only():
    with Daemon(*SLOW, "--agent", "slow", "--set", "nexus.shutdown=listener") as d:
        slow = begin_slow(d, '"r"')
        k = d.connect()
        wait_until(lambda: k.call("get_context")["message_count"] > 0, "the question")
        idle = connect(d)
        c = connect(d)
        address = [a for dialect, a in d.addresses if dialect == "nexus"][0]
        same(call(c, "shutdown"), {"success": True})
        c.ended()
        idle.ended()
        try:
            Client(address).close()
            check(False, "it still listens")
        except ConnectionRefusedError:
            pass
        # What was begun there goes on, and is answered.
        same([e["dialect"] for e in k.call("daemon.status")["listeners"]],
             ["koine", "ash", "hld", "ocg", "aiwg"])
        same(k.call("cancel", {"request_id": "r"})["cancelled"], True)
        same(json.loads(slow.read_response().body)["result"]["cancelled"], True)
        slow.ended()
        check(k.call("get_context")["message_count"] > 0, "nothing was kept")
        # On koine's own socket it means the daemon.
        same(k.call("shutdown"), {"success": True})
        same(d.wait_exit(), 0, "exit status")


def test_the_only_listener_takes_the_daemon_with_it():
    with Daemon("--set", "nexus.shutdown=listener", "--set", "listen.koine=off",
                "--set", "listen.ash=off", "--set", "listen.hld=off", "--set", "listen.ocg=off",
                "--set", "listen.aiwg=off") as d:
        same(call(connect(d), "shutdown"), {"success": True})
        same(d.wait_exit(), 0, "exit status")


def test_shutdown_can_be_off():
    with Daemon("--set", "nexus.shutdown=off") as d:
        c = connect(d)
        for method in "shutdown", "shutdown_server":
            same(answer(c, request(method, id=2)),
                 (200, '{"jsonrpc":"2.0","id":2,"error":{"code":-32000,'
                       '"message":"shutdown is off: see [nexus] shutdown in koine.conf(5)"}}'))
        d.alive()
        # On koine's own socket it means the daemon.
        same(d.connect().call("shutdown"), {"success": True})
        same(d.wait_exit(), 0, "exit status")


# ---- the page ----


def transcript():
    with open(TRANSCRIPT, encoding="utf-8") as file:
        return json.load(file)["steps"]


def shown(step):
    lines = ""
    if "send" in step:
        lines += "%s> POST %s %s\n" % (step["on"], step["path"], step["send"])
    if "answer" in step:
        lines += "%s< %d %s\n" % (step["on"], step["status"], step["answer"])
    return lines.replace(" \n", "\n")


def test_the_page_shows_the_transcript():
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    for part in sorted({s["part"] for s in transcript()}):
        text = "".join(shown(s) for s in transcript() if s["part"] == part)
        check("```\n%s```\n" % text in page, "the page shows something else for %r", part)


def without_what_varies(text):
    """An agent's own words, and how many tokens they are; ids that are made; times."""
    text = re.sub(r'("content":")(?:[^"\\]|\\.)*"', r'\1TEXT"', text)
    text = re.sub(r'("(?:system|messages|total|tokens|tokens_\w+)":)\d+', r"\1N", text)
    text = re.sub(r'"[0-9a-f]{16}"', '"ID"', text)
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]{15}", "TIME", text)


def test_the_transcript_is_what_happens():
    for part in sorted({s["part"] for s in transcript()}):
        with Daemon(*SLOW) as d:
            on = {}
            for step in (s for s in transcript() if s["part"] == part):
                c = on.setdefault(step["on"], connect(d))
                if "send" in step:
                    body = step["send"].encode()
                    c.send(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s"
                           % (step["path"].encode(), len(body), body))
                if "answer" not in step:
                    d.settle()
                    continue
                r = c.read_response()
                same((r.status, without_what_varies(r.body.decode())),
                     (step["status"], without_what_varies(step["answer"])), "after %r" % step)
                if "must_say" in step:
                    check(step["must_say"] in r.body.decode(), "%r", r.body)
            if '"shutdown"' in step["send"]:
                same(d.wait_exit(), 0, "exit status")


def test_the_page_names_every_parameter():
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    with shared() as d:
        found = {m["name"]: m for m in d.connect().call("rpc.discover")["methods"]}
    for name in METHODS:
        part = page.partition("**`%s`**" % name)[2].partition("\n**`")[0]
        check(part, "%s is not on the page", name)
        for p in (p["name"] for p in found[name]["params"] if p["name"] != "agent_id"):
            check("`%s`" % p in part, "%s of %s is not on the page", p, name)


if __name__ == "__main__":
    main(globals())
