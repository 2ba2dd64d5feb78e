#!/usr/bin/env python3
"""What mcp-everything does with requests that are wrong, and with clients that are."""
import base64
import contextlib
import json
import socket
import time

from harness import (MIB, PATIENCE, Folder, check, main, note, raise_descriptor_limit, rss, same,
                     wait_until)
from mcp_world import (MODERN, PROTOCOL, Everything, Http, Lines, dial, headers_for, message,
                       messages, meta, modern, tool_faults)

ELICITS = {"elicitation": {}}


def code(answer):
    return answer["error"]["code"]


def tool(name, arguments=None, **more):
    return dict({"name": name, "arguments": arguments or {}}, **more)


# ---- modern requests ----


def test_schemas_are_those_that_models_and_editors_take():
    """Of tools whose schema libkoine makes of their fields."""
    with Everything() as server:
        h = Http(server)
        tools, cursor = [], None
        while not tools or cursor:
            params = {"cursor": cursor} if cursor else {}
            _, answer = h.modern("tools/list", params)
            tools += answer["result"]["tools"]
            cursor = answer["result"].get("nextCursor")
        own = ("json_schema_2020_12_tool", "test_header")
        same(tool_faults(t for t in tools if t["name"] not in own), [])
        types = next(t for t in tools if t["name"] == "types")["inputSchema"]["properties"]
        same([types[name]["items"] for name in ("names", "sizes", "parts")],
             [{"type": "string"}, {"type": "number"}, {"type": "object"}])
        _, answer = h.modern("tools/call", {"name": "types", "arguments": {"whole": 5.0}})
        same(answer["result"]["structuredContent"], {"whole": 5})
        _, answer = h.modern("tools/call", {"name": "types", "arguments": {"whole": 5.5}})
        check(answer["result"]["isError"], "%s", answer)


def test_modern_without_its_envelope():
    with Everything() as server:
        h = Http(server)
        version = {PROTOCOL + "protocolVersion": MODERN}
        able = {PROTOCOL + "clientCapabilities": {}}
        for params in ({}, None, {"_meta": {}}, {"_meta": able}, {"_meta": version},
                       {"_meta": dict(version, **{PROTOCOL + "clientCapabilities": []})},
                       {"_meta": dict(able, **{PROTOCOL + "protocolVersion": 7})},
                       {"_meta": "x"}):
            body = message("server/discover", params, 5)
            status, answer = h.post(body, headers_for({"method": "server/discover"}))
            same((status, code(answer), answer["id"]), (400, -32602, 5), str(params))
        with Lines() as lines:
            same(code(lines.call(message("server/discover", {}, 6))), -32602)


def test_headers_that_differ():
    with Everything() as server:
        h = Http(server)
        body = modern("tools/call", tool("test_simple_text"), 9)
        right = headers_for(body)
        same(h.post(body, right)[0], 200)

        def refused(**changed):
            sent = dict(right, **{k.replace("_", "-"): v for k, v in changed.items()})
            status, answer = h.post(body, sent)
            same((status, code(answer), answer["id"]), (400, -32020, 9), str(changed))

        refused(Mcp_Method=None)
        refused(Mcp_Method="tools/list")
        refused(Mcp_Method="TOOLS/CALL")
        refused(Mcp_Name=None)
        refused(Mcp_Name="sum")
        refused(MCP_Protocol_Version=None)
        refused(MCP_Protocol_Version="2025-11-25")
        text = base64.b64encode(b"test_simple_text").decode()
        same(h.post(body, dict(right, **{"Mcp-Name": "=?base64?%s?=" % text}))[0], 200)
        refused(Mcp_Name="=?base64?%s?=" % text[:-1])
        refused(Mcp_Name="=?base64?%s!?=" % text)
        refused(Mcp_Name="=?base64?%s" % text)
        refused(Mcp_Name="=?BASE64?%s?=" % text)


def test_argument_headers():
    with Everything() as server:
        h = Http(server)

        def call(arguments, **headers):
            status, answer = h.modern("tools/call", tool("test_header", arguments),
                                      headers={k.replace("_", "-"): v for k, v in headers.items()})
            return status, answer.get("error", {}).get("code")

        same(call({"name": "Ada"}, Mcp_Param_Name="Ada"), (200, None))
        same(call({}), (200, None))
        same(call({"name": None}), (200, None))
        same(call({"name": "Ada"}), (400, -32020))
        same(call({"name": "Ada"}, Mcp_Param_Name="Bob"), (400, -32020))


def test_unsupported_versions():
    with Everything() as server:
        h = Http(server)
        for version in ("v999", "2025-11-25", ""):
            body = message("server/discover", {"_meta": dict(
                meta(), **{PROTOCOL + "protocolVersion": version})})
            status, answer = h.post(body, {"MCP-Protocol-Version": version,
                                           "Mcp-Method": "server/discover"})
            same((status, code(answer), answer["error"]["data"]),
                 (400, -32022, {"supported": [MODERN], "requested": version}), version)
        # Without a session, too, nobody is left to guess.
        same(h.post(message("tools/list"), {"MCP-Protocol-Version": "2031-01-01"})[0], 400)


def test_legacy_methods_in_modern_envelopes():
    with Everything() as server, Lines() as lines:
        h = Http(server)
        for method in ("initialize", "ping", "logging/setLevel", "resources/subscribe",
                       "resources/unsubscribe", "tasks/list", "nonsense"):
            status, answer = h.modern(method, {"uri": "x"}, 3)
            same((status, code(answer), answer["id"]), (404, -32601, 3), method)
            same(code(lines.call(modern(method))), -32601, method)


def test_modern_has_no_other_methods_than_post():
    with Everything() as server:
        h = Http(server)
        for method in ("GET", "DELETE", "HEAD", "PUT"):
            c, r = h.open(method, headers={"MCP-Protocol-Version": MODERN})
            same((r.status, "POST" in r.getheader("allow")), (405, True), method)
            c.close()


def test_bodies_that_are_no_messages():
    with Everything() as server, Lines() as lines:
        h = Http(server)
        for body, want in (("", -32600), ("{", -32700), ("[]", -32600), ("7", -32600),
                           ('[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
                           ('{"jsonrpc":"2.0","id":1}', -32600),
                           ('{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
                           ('{"jsonrpc":"2.0","id":[1],"method":"ping"}', -32600),
                           ('{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602)):
            status, answer = h.post(body)
            same((status, code(answer)), (400 if want != -32602 else 200, want), body)
            if body:
                same(code(lines.call(body.encode())), want, body)


# ---- legacy sessions ----


def test_sessions():
    with Everything() as server:
        h = Http(server)
        same(h.post(message("tools/list"))[0], 400)
        h.initialize()
        same(h.post(message("tools/list"))[0], 200)
        same(h.post(message("tools/list"), {"MCP-Protocol-Version": "2031-01-01"})[0], 400)
        same(h.post(message("nonsense"))[1]["error"]["code"], -32601)
        same(h.post(message("tools/list"), {"Mcp-Session-Id": "0" * 32})[0], 404)
        c, r = h.open("DELETE")
        same(r.status, 202, "DELETE")
        c.close()
        status, answer = h.post(message("tools/list"))
        same((status, code(answer)), (404, -32001))
        c, r = h.open("DELETE")
        same(r.status, 404, "DELETE again")
        c.close()


def test_versions_of_legacy_clients():
    for asked, got in (("2024-11-05", "2024-11-05"), ("2025-03-26", "2025-03-26"),
                       ("2025-06-18", "2025-06-18"), ("2025-11-25", "2025-11-25"),
                       ("2026-07-28", "2025-11-25"), ("1999-01-01", "2025-11-25")):
        with Lines() as lines:
            same(lines.initialize(version=asked)["protocolVersion"], got, asked)
            answer = lines.call(message("tools/call", tool("test_simple_text")))
            same(sorted(answer["result"]), ["content"])


def test_lines_without_a_session():
    with Lines() as lines:
        same(code(lines.call(message("tools/list"))), -32600)
        same(lines.call(message("ping"))["result"], {})
        same(lines.call(modern("tools/list", id="m"))["result"]["resultType"], "complete")
        lines.initialize()
        same(code(lines.call(message("initialize", {"protocolVersion": "2025-11-25"}))), -32600)
        # Both eras, side by side, on one connection.
        same("resultType" in lines.call(message("tools/list"))["result"], False)
        same("resultType" in lines.call(modern("tools/list"))["result"], True)


# ---- questions ----


def first_round(h, name="test_input_required_result_request_state", arguments=None):
    status, answer = h.modern("tools/call", tool(name, arguments), capabilities=ELICITS)
    same((status, answer["result"]["resultType"]), (200, "input_required"))
    return answer["result"]["requestState"]


def second_round(h, state, name="test_input_required_result_request_state", **more):
    params = tool(name, requestState=state, inputResponses={
        "confirm": {"action": "accept", "content": {"ok": True}}}, **more)
    return h.modern("tools/call", params, capabilities=ELICITS)[1]


def test_state_that_was_changed():
    with Everything() as server, Everything() as another:
        h = Http(server)
        state = first_round(h)
        same(second_round(h, state)["result"]["content"][0]["text"], "state-ok")
        mac, text = state.split(".")
        forged = json.loads(base64.urlsafe_b64decode(text + "==="))
        forged["expires"] += 1000
        forged = base64.urlsafe_b64encode(json.dumps(forged).encode()).decode().rstrip("=")
        for bad in (state + "-TAMPERED", state[:-2], "", ".", "x.y", mac + "." + forged,
                    text + "." + mac, "=" * 40):
            same(code(second_round(h, bad)), -32602, bad)
        # Made by somebody else, or for another tool, or for other arguments.
        same(code(second_round(Http(another), state)), -32602)
        same(code(second_round(h, state, "test_input_required_result_tampered_state")), -32602)
        params = tool("test_input_required_result_request_state", {"a": 1}, requestState=state)
        same(code(h.modern("tools/call", params, capabilities=ELICITS)[1]), -32602)


def test_answers_that_are_none():
    with Everything() as server:
        h = Http(server)

        def answer(responses):
            params = tool("test_input_required_result_elicitation", inputResponses=responses)
            return h.modern("tools/call", params, capabilities=ELICITS)[1]

        for bad in (None, [], 7, {"user_name": 7}, {"user_name": {"action": "perhaps"}},
                    {"user_name": {}}, {"key%d" % i: {} for i in range(100)}):
            same(code(answer(bad)), -32602, str(bad)[:60])
        same(answer({"other": {}})["result"]["resultType"], "input_required")
        same(answer({"user_name": {"action": "accept", "content": {"name": "Ada"}}})
             ["result"]["content"][0]["text"], "Hello, Ada!")


def test_a_legacy_client_is_asked():
    with Lines() as lines:
        lines.initialize({"elicitation": {}, "sampling": {}, "roots": {}})
        question = lines.call(message("tools/call", tool("test_elicitation", {"message": "Who?"})))
        same((question["method"], question["params"]["message"]), ("elicitation/create", "Who?"))
        # Other calls go on meanwhile, and answers to nothing change nothing.
        lines.send({"jsonrpc": "2.0", "id": "ask-99", "result": {}})
        same(lines.call(message("ping", id=2))["id"], 2)
        answer = lines.call({"jsonrpc": "2.0", "id": question["id"],
                             "result": {"action": "decline"}})
        same(answer["result"]["content"][0]["text"], 'User response: {"action": "decline"}')
        # A client that cannot answer says so.
        question = lines.call(message("tools/call", tool("test_elicitation", {"message": "Who?"})))
        answer = lines.call({"jsonrpc": "2.0", "id": question["id"],
                             "error": {"code": -32601, "message": "no dialog"}})
        same((answer["result"]["isError"], "no dialog" in answer["result"]["content"][0]["text"]),
             (True, True))


def test_a_legacy_client_that_cannot_be_asked():
    with Lines() as lines:
        lines.initialize()
        answer = lines.call(message("tools/call", tool("test_elicitation", {"message": "Who?"})))
        same((answer["result"]["isError"], "elicitation" in answer["result"]["content"][0]["text"]),
             (True, True))


def test_cancel():
    with Lines() as lines:
        lines.initialize({"elicitation": {}})
        question = lines.call(message("tools/call", tool("test_elicitation", {"message": "?"}), 7))
        lines.send(message("notifications/cancelled", {"requestId": 7}, None))
        # The question is withdrawn, and the call is not answered.
        same(lines.read()["params"]["requestId"], question["id"])
        same(lines.call(message("ping", id=8))["id"], 8)


# ---- pages ----


def test_cursors_of_another_list():
    with Lines() as lines:
        lines.initialize()
        for bad in ("", "x", "x.y", "AAAA.NTA"):
            same(code(lines.call(message("tools/list", {"cursor": bad}))), -32602, bad)
        same(code(lines.call(message("tools/list", {"cursor": 7}))), -32602)


# ---- arguments ----


def test_wrong_arguments_are_told_to_the_model():
    with Lines() as lines:
        lines.initialize()
        for arguments, words in (({}, "a is required"), ({"a": 1}, "b is required"),
                                 ({"a": "x", "b": 1}, "a must be a number, not string"),
                                 ({"a": 1, "b": 2, "c": 3}, "unknown argument: c")):
            result = lines.call(message("tools/call", tool("sum", arguments)))["result"]
            same((result["isError"], result["content"][0]["text"]), (True, words))
        same(code(lines.call(message("tools/call", {"name": "sum", "arguments": [1]}))), -32602)
        same(code(lines.call(message("tools/call", {"arguments": {}}))), -32602)
        same(code(lines.call(message("tools/call", {"name": "none"}))), -32602)


def test_ten_mebibytes_of_arguments():
    with Everything() as server, Lines() as lines:
        text = "x" * (10 * MIB)
        status, answer = Http(server).modern(
            "tools/call", tool("json_schema_2020_12_tool", {"name": text}))
        same((status, answer["result"]["content"][0]["text"] == text), (200, True))
        lines.initialize()
        answer = lines.call(message("tools/call", tool("json_schema_2020_12_tool",
                                                       {"name": text})))
        same(answer["result"]["content"][0]["text"] == text, True)
        status, answer = Http(server).modern("tools/call", tool("sum", {"a": text * 2, "b": 1}))
        same((status, "error" in answer), (413, True))
        # It serves on.
        same(Http(server).modern("server/discover")[0], 200)


# ---- streams ----


def listen(server, notifications, id=1):
    h = Http(server)
    body = modern("subscriptions/listen", {"notifications": notifications}, id)
    c, r = h.open("POST", body, headers_for(body))
    same(r.status, 200, "listen")
    return c, r


def next_event(r):
    while True:
        line = r.readline()
        check(line, "the stream ended")
        if line.startswith(b"data: ") and line.strip() != b"data:":
            return json.loads(line[6:])


def test_a_thousand_open_streams():
    check(raise_descriptor_limit() > 2500, "too few descriptors")
    with Everything() as server, contextlib.ExitStack() as stack:
        streams = []
        before = rss(server.pid)
        for i in range(1000):
            c, r = listen(server, {"toolsListChanged": True}, "s%d" % i)
            stack.callback(c.close)
            streams.append(r)
            acknowledged = next_event(r)
            same(acknowledged["params"]["_meta"][PROTOCOL + "subscriptionId"], "s%d" % i)
        if before:
            note("a stream takes %.1f kB" % ((rss(server.pid) - before) / 1000 / 1000))
        same(Http(server).modern("tools/call", tool("test_trigger_tool_change"))[0], 200)
        for i, r in enumerate(streams):
            event = next_event(r)
            same((event["method"], event["params"]["_meta"][PROTOCOL + "subscriptionId"]),
                 ("notifications/tools/list_changed", "s%d" % i))


def test_a_client_that_never_reads():
    with Everything() as server:
        h = Http(server)
        body = json.dumps(modern("subscriptions/listen", {"notifications": {
            "toolsListChanged": True}}, "x" * 2000))
        s = socket.create_connection(server.host.split(":"), timeout=PATIENCE)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.sendall(("POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
                   "MCP-Protocol-Version: %s\r\nMcp-Method: subscriptions/listen\r\n"
                   "Content-Length: %d\r\n\r\n%s"
                   % (server.host, MODERN, len(body), body)).encode())
        other, r = listen(server, {"toolsListChanged": True})
        next_event(r)
        body = modern("tools/call", tool("test_trigger_tool_change"))
        before = rss(server.pid)
        for _ in range(3000):
            same(h.post(body, headers_for(body))[0], 200)
            next_event(r)
        # It was cut: what it did not take is gone, and the others were told everything.
        if before:
            check(rss(server.pid) - before < 8 * MIB, "%d bytes more", rss(server.pid) - before)
        other.close()
        s.close()


def test_listening_on_lines():
    with Lines() as lines:
        lines.send(modern("subscriptions/listen", {"notifications": {
            "promptsListChanged": True, "resourceSubscriptions": ["test://watched-resource"]}}, 5))
        first = lines.read()
        same((first["method"], first["params"]["notifications"]),
             ("notifications/subscriptions/acknowledged",
              {"promptsListChanged": True, "resourceSubscriptions": ["test://watched-resource"]}))
        lines.send(modern("tools/call", tool("test_trigger_tool_change"), 6))
        same(lines.read()["id"], 6)
        lines.send(modern("tools/call", tool("test_trigger_resource_update"), 7))
        event = lines.read()
        same((event["params"]["uri"], event["params"]["_meta"][PROTOCOL + "subscriptionId"]),
             ("test://watched-resource", 5))
        same(lines.read()["id"], 7)
        lines.send(message("notifications/cancelled", {"requestId": 5}, None))
        lines.send(modern("tools/call", tool("test_trigger_prompt_change"), 8))
        same(lines.read()["id"], 8)


def test_closing_the_stream_cancels():
    with Everything() as server:
        body = modern("tools/call", dict(tool("test_tool_with_progress")))
        body["params"]["_meta"]["progressToken"] = 1
        for _ in range(20):
            c, r = Http(server).open("POST", body, headers_for(body))
            next_event(r)
            c.close()
        same(Http(server).modern("server/discover")[0], 200)


def test_a_broken_stream_is_gone_on_with():
    with Everything() as server:
        h = Http(server)
        h.initialize()
        c, r = h.open("POST", message("tools/call", tool("test_reconnection"), 4))
        text = r.read()
        c.close()
        same(messages(text), [], "before it hung up")
        last = [line for line in text.decode().split("\n") if line.startswith("id: ")][-1][4:]
        c, r = h.open("GET", headers={"Last-Event-ID": last})
        same(r.status, 200)
        answer = messages(r.read())[-1]
        c.close()
        same((answer["id"], answer["result"]["content"][0]["text"]),
             (4, "Reconnection test completed successfully."))


def test_a_lost_connection_is_no_cancel_for_legacy_clients():
    with Everything() as server:
        h = Http(server)
        h.initialize()
        h.post(message("logging/setLevel", {"level": "debug"}))
        c, r = h.open("POST", message("tools/call", tool("test_tool_with_logging"), 4))
        line = b""
        while not line.startswith(b"id: "):
            line = r.readline()
        c.close()
        c, r = h.open("GET", headers={"Last-Event-ID": line[4:].decode().strip()})
        got = messages(r.read())
        c.close()
        same((got[-1]["id"], got[-1]["result"]["content"][0]["text"]), (4, "Done in three steps."))
        check(len(got) > 1, "what was logged is there, too: %s", got)


# ---- strangers ----


def test_foreign_hosts_and_pages():
    with Everything() as server:
        h = Http(server)
        body = modern("server/discover")
        sent = headers_for(body)
        for wrong in ({"Host": "evil.example.com"}, {"Origin": "http://evil.example.com"},
                      {"Origin": "null"}):
            status, answer = h.post(body, dict(sent, **wrong))
            same((status, "error" in answer), (403, True), str(wrong))
        same(h.post(body, dict(sent, Origin="http://" + server.host))[0], 200)


# ---- the socket ----


def test_a_unix_socket():
    with Folder() as folder:
        path = folder("mcp.sock")
        with Everything(path):
            with dial(path) as s, s.makefile("rb") as f:
                s.sendall(json.dumps(modern("tools/list", id="a")).encode() + b"\n")
                same(json.loads(f.readline())["id"], "a")
            with dial(path) as s, s.makefile("rb") as f:
                body = json.dumps(modern("server/discover")).encode()
                s.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
                          b"Content-Type: application/json\r\nMCP-Protocol-Version: "
                          + MODERN.encode() + b"\r\nMcp-Method: server/discover\r\n"
                          b"Content-Length: %d\r\n\r\n" % len(body) + body)
                check(f.readline().startswith(b"HTTP/1.1 200 "), "HTTP on the socket")


def test_first_answer():
    start = time.monotonic()
    with Lines() as lines:
        lines.initialize()
        note("first answer after %.1f ms, %.1f MB resident"
             % ((time.monotonic() - start) * 1000, rss(lines.pid) / 1e6))


def test_end_of_input_ends_the_program():
    with Lines() as lines:
        lines.initialize()
        lines.send(message("tools/call", tool("test_tool_with_progress"), 3))
        lines.process.stdin.close()
        same(lines.read()["id"], 3)
        wait_until(lambda: lines.process.poll() is not None, "the program's end")


def test_a_server_of_ones_own():
    with Lines(program="mcp-notes") as lines:
        lines.initialize()
        add = dict(name="add_note", arguments={"text": "milk"})
        same(lines.call(message("tools/call", add))["result"]["content"][0]["text"], "Noted.")
        same(lines.call(message("resources/read", {"uri": "notes://all"}))["result"]["contents"],
             [{"uri": "notes://all", "text": "milk"}])
        add["arguments"]["text"] = "x" * 500
        same(lines.call(message("tools/call", add))["result"]["isError"], True)


def test_nothing_that_waits_outlives_its_client():
    with Lines() as lines:
        lines.initialize({"elicitation": {}})
        lines.call(message("tools/call", tool("test_elicitation", {"message": "Who?"}), 3))
        lines.call(modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, 4))
        lines.process.stdin.close()
        got = {answer["id"]: answer for answer in (lines.read(), lines.read())}
        same((got[3]["result"]["isError"], got[4]["result"]["resultType"]), (True, "complete"))
        wait_until(lambda: lines.process.poll() is not None, "the program's end")


if __name__ == "__main__":
    main(globals())
