#!/usr/bin/env python3
"""hld's clients against a real daemon: every text, every kind of bad input, subscriptions."""
import json
import os
import re
import select
import threading

from harness import MIB, SOURCE, Client, Daemon, Failure, Folder, check, main, request, rss, same, wait_until

TRANSCRIPT = os.path.join(SOURCE, "test", "vectors", "hld-transcript.json")
PAGE = os.path.join(SOURCE, "doc", "dialects", "hld.md")
AGENT = "python3 " + os.path.join(SOURCE, "test", "system", "session_agent.py")
FOLDER = "/home/ann/work"  # in the transcript

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{0,2}[1-9])?Z")
LIMIT = 10 * 1048576

METHODS = ("health", "launchSession", "listSessions", "getSessionLeaves", "getConversation",
           "getSessionState", "continueSession", "interruptSession", "archiveSession",
           "updateSessionTitle", "getRecentPaths", "fetchApprovals", "sendDecision",
           "createApproval", "getApproval", "Subscribe")


def served(*args, **more):
    # What still runs is not waited for.
    return Daemon("--set", "session.program=" + AGENT, "--set", "limits.stop_time=0", *args,
                  **more)


def connect(d):
    return Client(d.address("unix", "hld"))


def error(code, message, id="1"):
    return '{"jsonrpc":"2.0","error":{"code":%d,"message":%s},"id":%s}' % (
        code, json.dumps(message), id)


def ok(id="1"):
    return '{"jsonrpc":"2.0","result":{"status":"ok","version":"0.1.0"},"id":%s}' % id


def subscribe(d, **params):
    c = connect(d)
    answer = c.call("Subscribe", params)
    check(re.fullmatch("sub_" + UUID.pattern, answer["subscription_id"]), "%r", answer)
    same(answer["message"], "Subscription established. Waiting for events...")
    return c


BEAT = b'{"jsonrpc":"2.0","result":{"type":"heartbeat","message":"Connection alive"}}'


def event_line(c):
    """On a busy machine half a minute passes, and then there is a heartbeat."""
    for _ in range(3):
        line = c.read_line()
        if line.strip() != BEAT:
            return line
    raise Failure("heartbeats, but no event")


def next_event(c):
    line = event_line(c)
    got = json.loads(line)
    same(list(got), ["jsonrpc", "result"], "members of %r" % line)
    same(list(got["result"]), ["event"], "members of %r" % line)
    event = got["result"]["event"]
    same(list(event), ["type", "timestamp", "data"], "members of %r" % line)
    check(TIME.fullmatch(event["timestamp"]), "%r", event["timestamp"])
    same(list(event["data"]), sorted(event["data"]), "order")
    return event


def ended(c, session):
    """Events of a session up to its end."""
    events = []
    while True:
        events.append(next_event(c))
        data = events[-1]["data"]
        if data.get("new_status") in ("completed", "failed", "interrupted"):
            same(data["session_id"], session, "session")
            return events


# ---- the envelope ----


ENVELOPES = (
    (b'{"jsonrpc":"2.0","method":"health","id":1}', ok()),
    (b'{"JSONRPC":"2.0","Method":"health","PARAMS":{"a":1},"ID":7}', ok("7")),
    (b'{"id":1,"id":"b","method":"nope","method":"health","jsonrpc":"2.0","more":{}}', ok('"b"')),
    (b'{"jsonrpc":"2.0","method":"health","params":null,"id":null}', ok("null")),
    (b'{"jsonrpc":"2.0","method":"health","id":12345678901234567890}', ok("12345678901234567890")),
    (b'{"jsonrpc":"2.0","method":"health","id":[1.50,{"a":"<b>&"}]}',
     ok('[1.50,{"a":"\\u003cb\\u003e\\u0026"}]')),
    (b"  {\"jsonrpc\":\"2.0\",\"method\":\"health\",\"id\":1}\r", ok()),
    (b"nope", error(-32700, "Parse error", "null")),
    (b"{} {}", error(-32700, "Parse error", "null")),
    (b'{"jsonrpc":"2.0","method":"health","id":1', error(-32700, "Parse error", "null")),
    (b'{"jsonrpc":"2.0","method":5,"id":3}', error(-32700, "Parse error", "null")),
    (b"[]", error(-32600, "Invalid request", "null")),
    (b'[{"jsonrpc":"2.0","method":"health","id":1}]', error(-32600, "Invalid request", "null")),
    (b"5", error(-32600, "Invalid request", "null")),
    (b'"health"', error(-32600, "Invalid request", "null")),
    (b"null", error(-32600, "Invalid request", "null")),
    (b'{"method":"health","id":3}', error(-32600, "Invalid request: must be JSON-RPC 2.0", "3")),
    (b'{"jsonrpc":2.0,"method":"health","id":3}',
     error(-32600, "Invalid request: must be JSON-RPC 2.0", "3")),
    (b'{"jsonrpc":"1.0","method":"Subscribe"}',
     error(-32600, "Invalid request: must be JSON-RPC 2.0", "null")),
    (b'{"jsonrpc":"2.0","method":"Health","id":"x"}',
     error(-32601, "Method not found: Health", '"x"')),
    (b'{"jsonrpc":"2.0","method":"subscribe","id":1}',
     error(-32601, "Method not found: subscribe")),
    (b'{"jsonrpc":"2.0","method":"rpc.discover","id":1}',
     error(-32601, "Method not found: rpc.discover")),
)


def test_every_envelope_has_its_answer_and_the_connection_stays():
    with served() as d, connect(d) as c:
        for line, want in ENVELOPES:
            same(c.call_text(line).decode(), want, "answer to %r" % line)
        # All of them at once are answered in their order.
        c.send(b"\n\r\n \n".join(line for line, _ in ENVELOPES) + b"\n")
        for line, want in ENVELOPES:
            same(c.read_line().decode(), want, "answer to %r" % line)


def test_what_has_no_id_is_done_and_not_answered():
    with served() as d, connect(d) as c:
        c.send(b'{"jsonrpc":"2.0","method":"health"}\n{"jsonrpc":"2.0","method":"nope"}\n'
               b'{"jsonrpc":"2.0","method":"launchSession","params":{"query":5}}\n'
               b'{"jsonrpc":"2.0","method":"launchSession","params":{"query":"say hi"}}\n')
        wait_until(lambda: [s["query"] for s in c.call("listSessions")["sessions"]] == ["say hi"],
                   "the session that was launched without a word")


def test_the_last_line_needs_no_newline():
    with served() as d, connect(d) as c:
        c.send(request("health", id=1) + b"\n" + request("health", id=2))
        c.half_close()
        same(c.read_rest().decode(), ok("1") + "\n" + ok("2") + "\n")


def test_a_line_may_have_ten_mebibytes_and_not_a_byte_more():
    line = request("health")
    with served() as d:
        with connect(d) as c:
            for end in (b"\n", b"\r\n"):
                c.send(b" " * (LIMIT - len(line)) + line + end)
                same(c.read_line().decode(), ok())
            c.send_all_it_takes(b" " * (LIMIT - len(line) + 1) + line + b"\n" + line + b"\n")
            same(c.read_rest().decode(),
                 error(-32600, "the message is longer than 10485760 bytes", "null") + "\n")
        with connect(d) as c:
            c.send_all_it_takes(b"x" * (LIMIT + 1))
            check(c.read_rest(), "closed without a word")


# ---- parameters ----


GO = "invalid request: json: cannot unmarshal %s into Go "
FIELD = GO + "struct field %s of type %s"

PARAMS = (
    ("launchSession", "[]", GO % "array" + "value of type rpc.LaunchSessionRequest"),
    ("launchSession", '"x"', GO % "string" + "value of type rpc.LaunchSessionRequest"),
    ("launchSession", "true", GO % "bool" + "value of type rpc.LaunchSessionRequest"),
    ("launchSession", "null", "query is required"),
    ("launchSession", '{"query":null}', "query is required"),
    ("launchSession", '{"query":""}', "query is required"),
    ("launchSession", '{"query":5}', FIELD % ("number", "LaunchSessionRequest.query", "string")),
    ("launchSession", '{"query":{},"Query":"x"}',
     FIELD % ("object", "LaunchSessionRequest.query", "string")),
    ("launchSession", '{"query":"x","MAX_TURNS":"1"}',
     FIELD % ("string", "LaunchSessionRequest.max_turns", "int")),
    ("launchSession", '{"query":"x","max_turns":1.5}',
     FIELD % ("number 1.5", "LaunchSessionRequest.max_turns", "int")),
    ("launchSession", '{"query":"x","verbose":0}',
     FIELD % ("number", "LaunchSessionRequest.verbose", "bool")),
    ("launchSession", '{"query":"x","max_turns":-1}',
     "max_turns must be between 0 and 2147483647, not -1"),
    ("launchSession", '{"query":"x","dangerously_skip_permissions":true}',
     "dangerously_skip_permissions is not supported: use approval policies"),
    ("launchSession", '{"query":"x","Dangerously_Skip_Permissions_Timeout":60000}',
     "dangerously_skip_permissions_timeout is not supported: use approval policies"),
    ("launchSession", '{"query":"x","dangerously_skip_permissions":"no"}',
     FIELD % ("string", "LaunchSessionRequest.dangerously_skip_permissions", "bool")),
    ("launchSession", '{"query":"x","allowed_tools":"Bash"}',
     FIELD % ("string", "LaunchSessionRequest.allowed_tools", "[]string")),
    ("launchSession", '{"query":"x","disallowed_tools":["a",[]]}',
     FIELD % ("array", "LaunchSessionRequest.disallowed_tools", "string")),
    ("launchSession", '{"query":"x","mcp_config":"{}"}',
     FIELD % ("string", "LaunchSessionRequest.mcp_config", "claudecode.MCPConfig")),
    ("launchSession", '{"query":"x","mcp_config":{"mcpServers":[]}}',
     FIELD % ("array", "MCPConfig.mcp_config.mcpServers", "map[string]claudecode.MCPServer")),
    ("launchSession", '{"query":"x","mcp_config":{"mcpServers":{"a":{"env":{"b":5}}}}}',
     FIELD % ("number", "MCPServer.mcp_config.mcpServers.env", "string")),
    ("launchSession", '{"query":"x","additional_directories":["/srv","--help"]}',
     "additional_directories[1] must be an absolute path, not '--help'"),
    ("launchSession", '{"query":"x","additional_directories":"/srv"}',
     FIELD % ("string", "LaunchSessionRequest.additional_directories", "[]string")),
    ("launchSession", '{"query":"x","title":5}', FIELD % ("number", "LaunchSessionRequest.title", "string")),
    ("getSessionLeaves", '{"filter":"old"}', "filter must be normal, archived or draft"),
    ("listSessions", "[]", GO % "array" + "value of type rpc.ListSessionsRequest"),
    ("getSessionLeaves", '{"include_archived":"yes"}',
     FIELD % ("string", "GetSessionLeavesRequest.include_archived", "bool")),
    ("getSessionState", "{}", "session_id is required"),
    ("interruptSession", '{"session_id":""}', "session_id is required"),
    ("archiveSession", "{}", "session_id is required"),
    ("updateSessionTitle", '{"title":"x"}', "session_id is required"),
    ("getConversation", "{}", "either session_id or claude_session_id is required"),
    ("continueSession", "{}", "session_id is required"),
    ("continueSession", '{"session_id":"x"}', "query is required"),
    ("continueSession", '{"session_id":"x","query":"y","mcp_config":{}}',
     FIELD % ("object", "ContinueSessionRequest.mcp_config", "string")),
    ("continueSession", '{"session_id":"x","query":"y","mcp_config":" "}',
     "invalid mcp_config JSON: unexpected end of JSON input"),
    ("continueSession", '{"session_id":"x","query":"y","mcp_config":"[]"}',
     "invalid mcp_config JSON: json: cannot unmarshal array into Go value of type "
     "claudecode.MCPConfig"),
    ("createApproval", "{}", "run_id is required"),
    ("createApproval", '{"run_id":"r"}', "tool_name is required"),
    ("createApproval", '{"run_id":"r","tool_name":"t"}', "tool_input is required"),
    ("getApproval", "{}", "approval_id is required"),
    ("fetchApprovals", '{"session_id":5}',
     FIELD % ("number", "FetchApprovalsRequest.session_id", "string")),
    ("getRecentPaths", '{"limit":"5"}', FIELD % ("string", "GetRecentPathsRequest.limit", "int")),
    ("sendDecision", '{"approval_id":"a"}', "decision is required"),
    ("sendDecision", '{"approval_id":"a","decision":"deny"}', "comment is required for denial"),
    ("sendDecision", '{"approval_id":"a","decision":"respond"}',
     "comment is required for human contact response"),
    ("sendDecision", '{"approval_id":"a","type":"x","decision":"approve"}', "invalid type: x"),
)


def test_wrong_parameters_are_refused_in_the_words_of_the_original():
    with served() as d, connect(d) as c:
        for method, params, message in PARAMS:
            same(c.call_text(request(method, params)).decode(), error(-32602, message),
                 "answer to %s %s" % (method, params))


def test_params_are_an_object_or_nothing_at_all():
    kinds = (("[]", "array"), ('"x"', "string"), ("5", "number"), ("true", "bool"))
    with served() as d:
        for method in METHODS:
            type = method[0].upper() + method[1:] + "Request"
            for params, kind in kinds:
                with connect(d) as c:
                    same(c.call_text(request(method, params)).decode(),
                         error(-32602, GO % kind + "value of type rpc." + type),
                         "%s %s" % (method, params))
            # Which of them needs something says so.
            answers = []
            for params in (None, "null", "{}"):
                with connect(d) as c:
                    got = json.loads(c.call_text(request(method, params)))
                    check("unmarshal" not in str(got) and "JSON input" not in str(got),
                          "%s %s: %r", method, params, got)
                    answers.append(got.get("error"))
            same(answers, [answers[0]] * 3, method)


def test_a_subscription_with_wrong_parameters_ends_the_connection():
    with served() as d, connect(d) as c:
        c.send(request("Subscribe", '{"event_types":5}') + b"\n" + request("health") + b"\n")
        same(c.read_rest().decode(),
             error(-32602, FIELD % ("number", "SubscribeRequest.event_types", "[]string")) + "\n")


# ---- sessions ----


def test_a_folder_that_is_not_there_is_said_and_leaves_a_failed_session():
    with served(announced=["could not start session"]) as d, connect(d) as c:
        same(c.call_text(request("launchSession",
                                 {"query": "x", "working_dir": "/nonexistent/dir"})).decode(),
             error(-32603, "failed to launch Claude session: failed to start claude: chdir "
                           "/nonexistent/dir: no such file or directory"))
        (session,) = c.call("listSessions")["sessions"]
        same((session["status"], session["working_dir"]), ("failed", "/nonexistent/dir"))
        check("no such file or directory" in session["error"], "%r", session["error"])
        got = json.loads(c.call_text(request("continueSession", {"session_id": session["id"],
                                                                 "query": "x"})))
        same(got["error"], {"code": -32603, "message": "parent session missing claude_session_id "
                                                       "(cannot resume)"})


def test_of_a_long_folder_the_end_is_cut_and_not_what_is_wrong_with_it():
    where = "failed to launch%s Claude session: failed to start claude: chdir /tmp/"
    with served(announced=["could not start session"]) as d, connect(d) as c:
        for name in ("d" * 80, "d" * 110, "\u00e9" * 100, "d" * 2000):
            got = json.loads(c.call_text(request("launchSession", {
                "query": "x", "working_dir": "/tmp/" + name})))["error"]["message"]
            check(got.startswith(where % ""), "%r", got)
            shown, _, reason = got[len(where % ""):].rpartition(": ")
            same(reason, "File name too long" if len(name) > 255 else "no such file or directory")
            same(shown, name if len(name) == 80 else name[:len(shown) - 3] + "...", "the folder")
        # Of one that is continued there is more to say.
        folder = os.path.join(d.root, "d" * 120)
        os.mkdir(folder)
        with subscribe(d) as events:
            session = c.call("launchSession", {"query": "say hi",
                                               "working_dir": folder})["session_id"]
            ended(events, session)
        os.rmdir(folder)
        got = json.loads(c.call_text(request("continueSession", {"session_id": session,
                                                                 "query": "x"})))
        check(got["error"]["message"].endswith("ddd...: no such file or directory"), "%r", got)


def test_a_session_that_fails_says_so_with_an_event():
    with served() as d, connect(d) as c, subscribe(d) as events:
        session = c.call("launchSession", {"query": "err it broke\nexit 3"})["session_id"]
        last = ended(events, session)[-1]["data"]
        same((last["old_status"], last["new_status"]), ("running", "failed"))
        check("it broke" in last["error"], "%r", last)
        state = c.call("getSessionState", {"session_id": session})["session"]
        same((state["status"], state["error_message"]), ("failed", last["error"]))
        # It had begun, so its agent can go on.
        again = c.call("continueSession", {"session_id": session, "query": "tell argv"})["session_id"]
        ended(events, again)
        argv = said(c, again)
        same(argv[argv.index("--resume") + 1], state["claude_session_id"], "the agent's session")


def test_title_and_folders_of_a_launch_are_used_and_inherited():
    with served() as d, connect(d) as c, subscribe(d) as events:
        session = c.call("launchSession", {"query": "tell argv", "title": "The plan",
                                           "additional_directories": ["/srv", d.root]})["session_id"]
        for title in "The plan", None:
            ended(events, session)
            state = c.call("getSessionState", {"session_id": session})["session"]
            same(state.get("title"), title, "title")
            argv = said(c, session)
            same([argv[i + 1] for i, word in enumerate(argv) if word == "--add-dir"], ["/srv", d.root], "folders")
            session = c.call("continueSession", {"session_id": session, "query": "tell argv"})["session_id"]
        ended(events, session)


def test_recent_paths_are_limited_by_the_client_and_to_1000():
    with served() as d, connect(d) as c, d.connect() as koine:
        for n in range(22):
            folder = os.path.join(d.root, "p%d" % n)
            os.mkdir(folder)
            koine.call("session.launch", {"query": "hello", "agent": "recall", "working_dir": folder})
        for limit, want in ((1, 1), (21, 21), (0, 20), (-1, 20), (1000, 22), (5000, 22)):
            same(len(c.call("getRecentPaths", {"limit": limit})["paths"]), want, "with limit %d" % limit)


def test_leaves_are_filtered_by_one_word():
    with served() as d, connect(d) as c, subscribe(d) as events:
        made = []
        for archived in False, True:
            made.append(c.call("launchSession", {"query": "say hi"})["session_id"])
            ended(events, made[-1])
            c.call("archiveSession", {"session_id": made[-1], "archived": archived})
        for params, want in (({"filter": "normal"}, made[:1]), ({"filter": "archived"}, made[1:]),
                             ({"filter": "draft"}, []), ({"filter": ""}, made[:1]),
                             ({"filter": "archived", "include_archived": True}, made[1:])):
            same([s["id"] for s in c.call("getSessionLeaves", params)["sessions"]], want, repr(params))


def test_models_that_nobody_knows_are_dropped():
    with served() as d, connect(d) as c, subscribe(d) as events:
        for model, shown in (("sonnet", "sonnet"), ("gpt", None)):
            session = c.call("launchSession", {"query": "say hi", "model": model})["session_id"]
            ended(events, session)
            state = c.call("getSessionState", {"session_id": session})["session"]
            same(state.get("model"), shown, "model")


def said(c, session):
    """What an agent told of itself, by its last words."""
    state = [s for s in c.call("listSessions")["sessions"] if s["id"] == session][0]
    return json.loads(state["result"]["result"])


def test_who_continues_has_the_tools_of_the_parent():
    with served() as d, connect(d) as c, subscribe(d) as events:
        session = c.call("launchSession", {
            "query": "tell argv", "allowed_tools": ["Read"], "disallowed_tools": ["Bash", "Edit"],
            "working_dir": d.root})["session_id"]
        ended(events, session)
        # What is empty is not given, and a grandchild has what its parent had.
        for given, allowed in (({}, "Read"),
                               ({"allowed_tools": [], "disallowed_tools": None}, "Read"),
                               ({"allowed_tools": ["Glob"]}, "Glob")):
            session = c.call("continueSession", dict(given, session_id=session,
                                                     query="tell argv"))["session_id"]
            ended(events, session)
            argv = said(c, session)
            for flag, want in (("--allowedTools", allowed), ("--disallowedTools", "Bash,Edit")):
                check(flag in argv, "no %s in %r", flag, argv)
                same(argv[argv.index(flag) + 1], want, "%s of %r" % (flag, argv))


def test_custom_instructions_are_told_to_the_agent():
    with served() as d, connect(d) as c, subscribe(d) as events:
        rows = (({"custom_instructions": "Be brief."}, "Be brief."),
                ({"append_system_prompt": "Be kind.", "custom_instructions": "Be brief."},
                 "Be kind.\n\nBe brief."))
        for given, want in rows:
            session = c.call("launchSession", {"query": "tell argv", **given})["session_id"]
            ended(events, session)
            argv = said(c, session)
            same(argv[argv.index("--append-system-prompt") + 1], want, "argument")


def test_whose_tool_an_agent_below_speaks_for_is_kept_and_told():
    line = json.dumps({"type": "assistant", "parent_tool_use_id": "toolu_1", "message":
                       {"role": "assistant", "content": [{"type": "text", "text": "from below"}]}})
    with served() as d, connect(d) as c, subscribe(d) as listener:
        session = c.call("launchSession", {"query": 'call Task {"prompt":"look"}\nraw %s\n'
                                                    "result done" % line})["session_id"]
        told = [e["data"] for e in ended(listener, session)]
        same([e.get("parent_tool_use_id") for e in told if e.get("content") == "from below"],
             ["toolu_1"], "told")
        same([e for e in told if "parent_tool_use_id" in e and e.get("content") != "from below"],
             [], "told of others")
        ours = d.connect().call("session.events", {"id": session})["events"]
        same([e["parent_tool_use_id"] for e in ours if "parent_tool_use_id" in e], ["toolu_1"],
             "on koine's socket")
        events = c.call("getConversation", {"session_id": session})["events"]
        same([(e.get("content"), e.get("parent_tool_use_id")) for e in events],
             [(events[0]["content"], None), (None, None), ("from below", "toolu_1"), (None, None)],
             "events")


def test_what_a_conversation_cannot_use_is_said():
    with served() as d:
        c = d.connect()
        for given, want in (({"model": "opus"}, "model"),
                            ({"mcp_config": {"mcpServers": {"a": {"command": "b"}}}}, "mcp_config"),
                            ({"mcp_config": {"mcpServers": {}}, "max_turns": 3}, None)):
            session = c.call("session.launch", {"query": "hello", "agent": "recall", **given})["id"]
            wait_until(lambda: c.call("session.get", {"id": session})["status"]
                       == "completed", "the end")
            events = c.call("session.events", {"id": session})["events"]
            same([e["content"] for e in events if e["event_type"] == "system"],
                 ["koine: agent 'recall' is not a program and ignores " + want] if want else [],
                 "said of %r" % given)


def test_mcp_servers_know_the_run_and_the_socket():
    own = {"A": "1", "HUMANLAYER_RUN_ID": "mine", "HUMANLAYER_SESSION_ID": "mine",
           "HUMANLAYER_DAEMON_SOCKET": "/mine.sock"}
    servers = {"bare": {"command": "a", "args": ["b"]}, "own": {"command": "c", "env": own}}
    with served() as d, connect(d) as c, subscribe(d) as events:
        launched = c.call("launchSession", {"query": "tell mcp",
                                            "mcp_config": {"mcpServers": servers}})
        ended(events, launched["session_id"])
        socket = d.address("unix", "hld")[len("unix:"):]
        same(said(c, launched["session_id"])["mcpServers"], {
            "bare": dict(servers["bare"], env={"HUMANLAYER_RUN_ID": launched["run_id"],
                                               "HUMANLAYER_SESSION_ID": launched["session_id"],
                                               "HUMANLAYER_DAEMON_SOCKET": socket}),
            # Run and session are not theirs to say.
            "own": dict(servers["own"], env=dict(own, HUMANLAYER_RUN_ID=launched["run_id"],
                                                 HUMANLAYER_SESSION_ID=launched["session_id"]))})


def test_programs_know_their_run_and_session():
    with served() as d, connect(d) as c, subscribe(d) as events:
        for name, member in (("HUMANLAYER_RUN_ID", "run_id"), ("HUMANLAYER_SESSION_ID", "session_id")):
            launched = c.call("launchSession", {"query": "tell env " + name})
            ended(events, launched["session_id"])
            same(said(c, launched["session_id"]), launched[member], name)


# ---- approvals ----


def ask(d, c, query="call Bash {}\nhang"):
    run = c.call("launchSession", {"query": query})["run_id"]
    return c.call("createApproval", {"run_id": run, "tool_name": "Bash", "tool_input": {"a": 1}})[
        "approval_id"]


def test_an_approval_asked_with_a_sessions_id_belongs_to_that_session():
    """Newer clients give it as run_id."""
    with served() as d, connect(d) as c:
        launched = c.call("launchSession", {"query": "call Bash {}\nhang"})
        id = c.call("createApproval", {"run_id": launched["session_id"], "tool_name": "Bash", "tool_input": {}})["approval_id"]
        (asked,) = c.call("fetchApprovals", {"session_id": launched["session_id"]})["approvals"]
        same((asked["id"], asked["run_id"], asked["session_id"]), (id, launched["run_id"], launched["session_id"]))
        same(c.call_text(request("createApproval", {"run_id": "nobody", "tool_name": "Bash", "tool_input": {}})).decode(),
             error(-32603, "failed to create approval: session not found for run_id: nobody"))


def test_of_two_who_decide_at_once_one_is_told_that_it_was_late():
    with served() as d, connect(d) as c:
        approval = ask(d, c)
        answers = []
        start = threading.Barrier(8)

        def decide(i):
            with connect(d) as own:
                start.wait()
                params = {"call_id": approval, "type": "function_call", "decision": "approve"}
                if i % 2:
                    params = {"approval_id": approval, "decision": "deny", "comment": "no"}
                answers.append((i, own.call("sendDecision", params)))

        threads = [threading.Thread(target=decide, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        (won,) = [i for i, a in answers if a == {"success": True}]
        late = {"success": False, "error": "this approval has already been responded to"}
        same([a for i, a in answers if i != won], [late] * 7)
        same(c.call("getApproval", {"approval_id": approval})["approval"]["status"],
             "denied" if won % 2 else "approved")
        same(c.call("fetchApprovals"), {"approvals": []})


def test_a_question_is_a_human_contact_and_takes_no_other_decision():
    with served() as d, connect(d) as c, d.connect() as koine:
        koine.send(request("approval.request", {"kind": "human_contact", "tool": "Lunch",
                                                "input": {"msg": "Pizza?"}}) + b"\n")
        (asked,) = wait_until(lambda: c.call("fetchApprovals")["approvals"], "the question")
        same(asked["type"], "human_contact")
        check("function_call" not in asked, "%r", asked)
        contact = asked["human_contact"]
        same(contact["spec"], {"msg": "Pizza?", "subject": "Lunch"}, "spec")
        same((contact["run_id"], asked["session_id"]), ("", ""))
        id = contact["call_id"]
        same(c.call("sendDecision", {"call_id": id, "type": "function_call",
                                     "decision": "approve"}),
             {"success": False, "error": "function call not found: function call not found: " + id})
        same(c.call("sendDecision", {"approval_id": id, "decision": "approve"}),
             {"success": False, "error": "invalid decision for human_contact: approve"})
        same(c.call("sendDecision", {"approval_id": ask(d, c), "decision": "respond",
                                     "comment": "yes"}),
             {"success": False, "error": "invalid decision for function_call: respond"})
        same(c.call("sendDecision", {"call_id": id, "type": "human_contact", "decision": "respond",
                                     "comment": "Soup."}), {"success": True})
        answer = json.loads(koine.read_line())["result"]
        same((answer["status"], answer["comment"]), ("responded", "Soup."), "answer")


def test_what_clients_cannot_read_of_a_question_is_left_out():
    """Clients of the first generation take the whole list or nothing of it."""
    given = {"msg": "What?", "state": {"a": [1]},
             "channel": {"slack": {"channel_or_user_id": "C1", "thread": 5},
                         "email": {"address": None}, "pigeon": {}},
             "response_options": [{"name": "a"}, "b", {"title": "c"}, {"name": 5}, None,
                                  {"name": "d", "title": "D", "description": 5, "more": [],
                                   "prompt_fill": "x", "interactive": True}]}
    want = {"msg": "What?", "subject": "Q", "state": {"a": [1]},
            "channel": {"slack": {"channel_or_user_id": "C1"}},
            "response_options": [{"name": "a", "interactive": False},
                                 {"name": "d", "title": "D", "prompt_fill": "x",
                                  "interactive": True}]}
    with served() as d, connect(d) as c, d.connect() as koine:
        for input, spec in ((given, want),
                            ({"msg": "?", "channel": {"slack": "x"}, "response_options": {}},
                             {"msg": "?", "subject": "Q", "channel": {}}),
                            ({"msg": "?", "channel": ["x"], "response_options": []},
                             {"msg": "?", "subject": "Q", "response_options": []})):
            id = koine.call("approval.create", {"kind": "human_contact", "tool": "Q",
                                                "input": input})["id"]
            approval = c.call("getApproval", {"approval_id": id})["approval"]
            same(approval["human_contact"]["spec"], spec, "spec")
            same(approval["tool_input"], input, "what later generations read")


def test_approvals_of_a_session_that_koined_did_not_start():
    with served() as d, connect(d) as c, d.connect() as koine:
        id = koine.call("approval.create", {"tool": "Bash", "session_id": "abc"})["id"]
        (asked,) = c.call("fetchApprovals", {"session_id": "abc"})["approvals"]
        same((asked["id"], asked["session_id"]), (id, "abc"))
        koine.call("approval.withdraw", {"id": id})
        same(c.call_text(request("fetchApprovals", {"session_id": "abc"})).decode(),
             error(-32603, "session not found: session not found: session not found: abc"))
        known = c.call("launchSession", {"query": "say hi"})["session_id"]
        same(c.call("fetchApprovals", {"session_id": known}), {"approvals": []})


def test_what_ended_by_itself_reads_resolved():
    with served() as d, connect(d) as c, d.connect() as koine:
        with subscribe(d, event_types=["approval_resolved"]) as events:
            withdrawn = ask(d, c)
            koine.call("approval.withdraw", {"id": withdrawn})
            late = koine.call("approval.request", {"tool": "Bash", "timeout": 0.01})["id"]
            for id, decision in ((withdrawn, "superseded"), (late, "expired")):
                same(c.call("getApproval", {"approval_id": id})["approval"]["status"], "resolved")
                data = next_event(events)["data"]
                same([data.get(key) for key in ("approval_id", "status", "decision", "approved",
                                                "resolved_externally")],
                     [id, "resolved", decision, False, True], "event")
            approved = ask(d, c)
            c.call("sendDecision", {"approval_id": approved, "decision": "approve"})
            data = next_event(events)["data"]
            same((data["status"], data.get("resolved_externally")), ("approved", None), "a decision")
        # In koine's own words it stays what it was.
        told = koine.call("event.list", {"types": ["approval.resolved"]})["events"]
        same([e["data"]["status"] for e in told], ["superseded", "expired", "approved"], "koine's events")


# ---- subscriptions ----


def test_filters_hold_together():
    with served() as d, connect(d) as c, subscribe(d, event_types=["new_approval"]) as approvals:
        with subscribe(d, event_types=[], session_id="", run_id="") as everything:
            one = c.call("launchSession", {"query": "say one"})
            ended(everything, one["session_id"])
            with subscribe(d, session_id=one["session_id"]) as first:
                with subscribe(d, run_id=one["run_id"], event_types=["new_approval"]) as both:
                    two = c.call("launchSession", {"query": "say two"})
                    for e in ended(everything, two["session_id"]):
                        same(e["data"]["session_id"], two["session_id"], "session")
                    c.call("createApproval", {"run_id": one["run_id"], "tool_name": "Bash",
                                              "tool_input": {}})
                    for told in (first, both, approvals):
                        event = next_event(told)
                        same((event["type"], event["data"]["session_id"]),
                             ("new_approval", one["session_id"]))
                    approvals.quiet(0.05)


def test_silence_is_broken_after_the_time_that_was_set():
    with served("--set", "hld.heartbeat=1") as d, subscribe(d) as c:
        for _ in range(2):
            same(json.loads(c.read_line()), {"jsonrpc": "2.0", "result": {
                "type": "heartbeat", "message": "Connection alive"}}, "heartbeat")


def test_a_subscriber_is_heard_no_more_and_leaves_by_hanging_up():
    with served() as d, connect(d) as calls:
        with subscribe(d) as c:
            c.send(request("health") + b"\nnonsense\n" + b"x" * (3 * LIMIT) + b"\n")
            session = calls.call("launchSession", {"query": "say hi"})["session_id"]
            ended(c, session)
            c.half_close()
            c.ended()
        with subscribe(d) as c:
            c.reset()
        with d.connect() as koine:
            wait_until(lambda: [e["connections"] for e in koine.call("daemon.status")["listeners"]
                                if e["dialect"] == "hld"] == [1], "only the caller to be left")


def dropped(koine):
    (row,) = [e for e in koine.call("daemon.status")["listeners"] if e["dialect"] == "hld"]
    return row["dropped"]


def readable(c):
    return bool(c.got or select.select([c.socket], [], [], 0)[0])


def test_what_one_that_does_not_read_loses_is_counted_and_others_lose_nothing():
    n = 2000
    with served() as d, connect(d) as c, d.connect() as koine:
        with subscribe(d) as stalled, subscribe(d) as busy:
            launched = c.call("launchSession", {"query": "lines %d 1000" % n})
            got = ended(busy, launched["session_id"])
            same(len(got), n + 3, "events of the one that reads")
            wait_until(lambda: dropped(koine), "the other one to lose some")
            # The daemon still drops some while this client reads.
            n_read = 0
            rest = iter(got)
            while wait_until(lambda: readable(stalled) or n_read + dropped(koine) == n + 3, "an event") and readable(stalled):
                event = next_event(stalled)["data"]
                check(any(event == e["data"] for e in rest), "out of order: %r", event)
                n_read += 1
            lost = dropped(koine)
            same(n_read + lost, n + 3, "events")
        wait_until(lambda: re.search(rb"subscription ended.*dropped=%d" % lost, d.log()),
                   "the count in the log")
        check(b"events dropped" in d.log(), "the first drop is not in the log")


def test_long_id_of_a_subscription_is_not_kept():
    with served() as d:
        d.alive()
        before = rss(d.pid)
        clients = [Client(d.address("unix", "hld")) for _ in range(100)]
        for c in clients:
            c.send(request("Subscribe", {"session_id": "s" * 500000, "run_id": "r" * 500000}) + b"\n")
            check(b"subscription_id" in c.read_line(), "no subscription")
        check(rss(d.pid) - before < 32 * MIB, "%d MiB more", (rss(d.pid) - before) >> 20)
        for c in clients:
            c.close()


def test_on_koines_socket_it_says_where_events_are():
    with served() as d, d.connect() as koine:
        got = json.loads(koine.call_text(request("Subscribe", {})))
        check("event.subscribe" in got["error"]["message"], "%r", got)
        same(list(koine.call("health")), ["status", "version"])
        same(koine.call("listSessions"), {"sessions": []})
        got = json.loads(koine.call_text(request("launchSession", {})))
        same(got["error"]["message"], "Invalid params: query is required")


# ---- its place ----


def test_variables_move_its_socket():
    with Folder() as f:
        moved = {"HUMANLAYER_DAEMON_SOCKET": f("one.sock")}
        with served(env=moved) as d:
            same(d.address("unix", "hld"), "unix:" + f("one.sock"))
        with served(env=dict(moved, HUMANLAYER_SOCKET_PATH="~/sub/two.sock", HOME=f.path)) as d:
            same(d.address("unix", "hld"), "unix:" + f("sub", "two.sock"))
            same(os.stat(f("sub")).st_mode & 0o777, 0o700, "mode of its folder")
            same(os.stat(f("sub", "two.sock")).st_mode & 0o777, 0o600, "mode of it")


def test_agents_are_told_the_whole_path_of_it():
    with Folder() as f:
        with served(env={"HUMANLAYER_DAEMON_SOCKET": "one.sock"}, cwd=f.path) as d:
            with Client("unix:" + f("one.sock")) as c, Client("unix:" + f("one.sock")) as events:
                events.call("Subscribe", {})
                session = c.call("launchSession", {
                    "query": "tell env HUMANLAYER_DAEMON_SOCKET"})["session_id"]
                ended(events, session)
                same(said(c, session), os.path.join(os.path.realpath(f.path), "one.sock"))


# ---- the page ----


def transcript():
    with open(TRANSCRIPT, encoding="utf-8") as file:
        return json.load(file)["steps"]


def parts():
    return sorted({s["part"] for s in transcript()})


def shown(step):
    lines = ["%s> %s\n" % (step["on"], step["send"])] if "send" in step else []
    return "".join(lines + ["%s< %s\n" % (step["on"], line) for line in step["lines"]])


def test_the_page_shows_the_transcript():
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    for part in parts():
        text = "".join(shown(s) for s in transcript() if s["part"] == part)
        check("```\n%s```\n" % text in page, "the page shows something else for %r", part)


def without_what_varies(text):
    text = re.sub(r'("duration_ms":)\d+', r"\1N", text)
    return TIME.sub("TIME", text)


class Names:
    """Ids of the transcript, and those that came in their place."""

    def __init__(self, folder):
        self.ours = {FOLDER: folder}

    def __call__(self, text):
        for theirs, ours in self.ours.items():
            text = text.replace(theirs, ours)
        return text

    def learn(self, want, got):
        for theirs, ours in zip(UUID.findall(want), UUID.findall(got)):
            self.ours.setdefault(theirs, ours)


def test_the_transcript_is_what_happens():
    for part in parts():
        with served(announced=["could not start session"] if "refusals" in part else ()) as d:
            names = Names(d.root)
            on = {}
            for step in (s for s in transcript() if s["part"] == part):
                c = on.setdefault(step["on"], None) or connect(d)
                on[step["on"]] = c
                if "make" in step:
                    with open(os.path.join(d.root, step["make"]), "w", encoding="utf-8"):
                        pass
                if "send" in step:
                    c.send(names(step["send"]).encode() + b"\n")
                for want in step["lines"]:
                    got = c.read_line().decode()
                    names.learn(want, got)
                    same(without_what_varies(got), without_what_varies(names(want)),
                         "after %r" % step.get("send"))
            for c in on.values():
                c.close()


def test_the_page_names_every_method_and_parameter():
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    with Daemon() as d:
        found = {m["name"]: m for m in d.connect().call("rpc.discover")["methods"]}
    for name in METHODS:
        part = page.partition("**`%s`**" % name)[2].partition("\n**`")[0]
        check(part, "%s is not on the page", name)
        for p in found[name]["params"]:
            check("`%s`" % p["name"] in part, "%s of %s is not on the page", p["name"], name)


if __name__ == "__main__":
    main(globals(), measured=("long_id_of_a_subscription_is_not_kept",))
