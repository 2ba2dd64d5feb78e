#!/usr/bin/env python3
"""
Clients of hld's socket with the habits of the real ones, against agents that are real programs:
one in Go (test/go/hld) and one in Node (hld_client.mjs), written from the specification with
their standard libraries alone, the Rust client's ways, and what each of three generations reads
and sends. What they are told is compared to the letter.
"""
import contextlib
import json
import os
import re
import subprocess
import sys

from harness import KOINED, SOURCE, Daemon, Folder, check, installed, main, same, wait_until
from test_hld import event_line

HERE = os.path.join(SOURCE, "test", "system")
AGENT = sys.executable + " " + os.path.join(HERE, "session_agent.py")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
# A fraction ends with no zero, as Go's do.
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{0,8}[1-9])?Z")
SECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@contextlib.contextmanager
def hld_daemon(*args):
    # Its address must be short, and be known to the agent.
    with Folder() as f:
        with Daemon("--listen", "koine=unix:" + f("koine.sock"), "--listen",
                    "hld=unix:" + f("hld.sock"), "--set", "session.program=" + AGENT, *args) as d:
            d.folder = f
            yield d


def text_of(value):
    """As Go writes it."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def same_text(got, want, what):
    """They are long: says where they part."""
    at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
    check(got == want, "%s: %r, not %r", what, got[max(0, at - 60):at + 90],
          want[max(0, at - 60):at + 90])


# ---- the scene that the programs play ----


FIRST = """session claude-1
via hld %s
say Hello <you> & me
ask Bash {"command": "ls -l"}
say Done"""
SECOND = "session claude-2\nsay More\nhang"


class Scene:
    """What they must have seen, of a daemon that had nothing to tell before."""

    def __init__(self, seen, socket, folder):
        self.calls = [tuple(call) for call in seen["calls"]]
        self.events = seen["events"]
        self.filtered = seen["filtered"]
        self.folder = folder
        self.query = FIRST % socket
        self.names = {}

    def name(self, what, value):
        check(value not in self.names, "%s is one that there is: %s", what, value)
        self.names[value] = what

    def learn(self):
        """What the daemon chose is known by its names from now on."""
        answers = [json.loads(text)["result"] for _, text in self.calls]
        launched, approval, continued = answers[1], answers[2]["approvals"][0], answers[8]
        self.name("SESSION-1", launched["session_id"])
        self.name("RUN-1", launched["run_id"])
        self.name("SESSION-2", continued["session_id"])
        self.name("RUN-2", continued["run_id"])
        for value in list(self.names):
            check(UUID.fullmatch(value), "no UUID: %s", value)
        self.name("APPROVAL", approval["id"])
        check(UUID.fullmatch(approval["id"].removeprefix("local-")), "id %s", approval["id"])

    def plain(self, text, times=TIME):
        for value, name in self.names.items():
            text = text.replace(value, name)
        return times.sub("TIME", text)

    # ---- answers ----

    def message(self, n, at, **members):
        """Of getConversation."""
        first = n <= 5
        return {"id": n, "session_id": "SESSION-1" if first else "SESSION-2",
                "claude_session_id": "claude-1" if first else "claude-2",
                "sequence": n if first else n - 5, "event_type": at, "created_at": "TIME",
                **members}

    def conversation(self):
        return [
            self.message(1, "message", role="user", content=self.query, is_completed=False),
            self.message(2, "message", role="assistant", content="Hello <you> & me",
                         is_completed=False),
            self.message(3, "tool_call", tool_id="toolu_1", tool_name="Bash",
                         tool_input_json='{"command":"ls -l"}', is_completed=True,
                         approval_status="approved", approval_id="APPROVAL"),
            self.message(4, "tool_result", role="user", tool_result_for_id="toolu_1",
                         tool_result_content="approved", is_completed=False),
            self.message(5, "message", role="assistant", content="Done", is_completed=False),
            self.message(6, "message", role="user", content=SECOND, is_completed=False),
            self.message(7, "message", role="assistant", content="More", is_completed=False),
        ]

    def approval(self):
        return {"type": "function_call",
                "function_call": {"run_id": "RUN-1", "call_id": "APPROVAL",
                                  "spec": {"fn": "Bash", "kwargs": {"command": "ls -l"}},
                                  "status": {"requested_at": "TIME"}},
                "id": "APPROVAL", "run_id": "RUN-1", "session_id": "SESSION-1",
                "status": "pending", "created_at": "TIME", "tool_name": "Bash",
                "tool_input": {"command": "ls -l"}, "tool_use_id": "toolu_1"}

    def summary(self):
        words = " ".join(self.query.split())
        return words[:47] + "..."

    def info(self):
        return {"id": "SESSION-1", "run_id": "RUN-1", "claude_session_id": "claude-1",
                "status": "completed", "start_time": "TIME", "end_time": "TIME",
                "last_activity_at": "TIME", "query": self.query, "summary": self.summary(),
                "model": "opus", "working_dir": self.folder,
                "result": {"type": "result", "subtype": "session_completed",
                           "total_cost_usd": 0.05, "is_error": False, "duration_ms": 1200,
                           "duration_api_ms": 0, "num_turns": 2, "result": "Done",
                           "session_id": "claude-1"}}

    def state(self, n, query, summary, **more):
        parent = {"parent_session_id": "SESSION-1"} if n == 2 else {}
        return {"session": {"id": "SESSION-%d" % n, "run_id": "RUN-%d" % n,
                            "claude_session_id": "claude-%d" % n, **parent, "status": "completed",
                            "query": query, "summary": summary, "model": "opus",
                            "working_dir": self.folder, "created_at": "TIME",
                            "last_activity_at": "TIME", "completed_at": "TIME", **more}}

    def answers(self):
        refused = {"success": False, "error": "this approval has already been responded to"}
        return [
            ("health", {"status": "ok", "version": "0.1.0"}),
            ("launchSession", {"session_id": "SESSION-1", "run_id": "RUN-1"}),
            ("fetchApprovals", {"approvals": [self.approval()]}),
            ("sendDecision", {"success": True}),
            ("sendDecision", refused),
            ("getConversation", {"events": self.conversation()[:5]}),
            ("getSessionState", self.state(1, self.query, self.summary(), cost_usd=0.05,
                                           total_tokens=30, duration_ms=1200)),
            ("listSessions", {"sessions": [self.info()]}),
            ("continueSession", {"session_id": "SESSION-2", "run_id": "RUN-2",
                                 "claude_session_id": "", "parent_session_id": "SESSION-1"}),
            ("interruptSession", {"success": True, "session_id": "SESSION-2",
                                  "status": "completing"}),
            ("getSessionState", self.state(2, SECOND, " ".join(SECOND.split()), duration_ms=0)),
            ("getConversation", {"events": self.conversation()}),
            ("fetchApprovals", {"approvals": []}),
        ]

    def check_answers(self):
        wanted = self.answers()
        same([method for method, _ in self.calls], [method for method, _ in wanted], "calls")
        for n, ((method, text), (_, result)) in enumerate(zip(self.calls, wanted), 1):
            in_seconds = method in ("getConversation", "getSessionState")
            text = self.plain(text, SECONDS if in_seconds else TIME)
            if n == 11:  # how long it ran until it was interrupted
                text = re.sub(r'"duration_ms":\d+', '"duration_ms":0', text)
            same_text(text, text_of({"jsonrpc": "2.0", "result": result, "id": n}), method)

    # ---- events ----

    @staticmethod
    def event(type, /, **data):
        return text_of({"jsonrpc": "2.0", "result": {"event": {
            "type": type, "timestamp": "TIME", "data": dict(sorted(data.items()))}}})

    def status(self, n, old, new):
        parent = {"parent_session_id": "SESSION-1"} if n == 2 else {}
        return self.event("session_status_changed", session_id="SESSION-%d" % n,
                          run_id="RUN-%d" % n, old_status=old, new_status=new, **parent)

    def news(self, n):
        """Of the conversation, as it was told when it happened."""
        kept = self.conversation()[n - 1]
        out = {k: kept[k] for k in ("id", "session_id", "claude_session_id", "sequence",
                                    "event_type")}
        out["run_id"] = "RUN-" + kept["session_id"][-1]
        content = {"message": "text", "tool_call": "tool_use", "tool_result": "tool_result"}
        out["content_type"] = content[kept["event_type"]]
        if kept["event_type"] == "message":
            out.update(role=kept["role"], content=kept["content"])
        elif kept["event_type"] == "tool_call":
            out.update(tool_id="toolu_1", tool_name="Bash", tool_input={"command": "ls -l"})
        else:
            out.update(tool_result_for_id="toolu_1", tool_result_content="approved")
        return self.event("conversation_updated", **out)

    def established(self, text):
        found = re.fullmatch(r'\{"jsonrpc":"2\.0","result":\{"subscription_id":"sub_(.*)",'
                             r'"message":"Subscription established\. Waiting for events\.\.\."\},'
                             r'"id":1\}', text)
        check(found and UUID.fullmatch(found[1]), "subscription: %s", text)

    def asked(self):
        return self.event("new_approval", approval_id="APPROVAL", call_id="APPROVAL", count=1,
                          run_id="RUN-1", session_id="SESSION-1", tool_name="Bash", total=1,
                          tool_input={"command": "ls -l"}, tool_use_id="toolu_1",
                          type="function_call")

    def resolved(self):
        return self.event("approval_resolved", approval_id="APPROVAL", approved=True,
                          call_id="APPROVAL", decided_by="human", decision="approved",
                          response_text="", run_id="RUN-1", session_id="SESSION-1",
                          status="approved", tool_name="Bash", type="function_call")

    def check_events(self):
        self.established(self.events[0])
        got = [self.plain(text) for text in self.events[1:]]
        # Told with its call if it was asked for before; the agent does both at once.
        got = [text.replace('"approval_id":"APPROVAL","claude', '"claude') for text in got]
        said, asked = [self.news(n) for n in range(1, 8)], self.asked()
        waits = self.status(1, "running", "waiting_input")
        goes_on = self.status(1, "waiting_input", "running")
        completed = self.status(1, "running", "completed")
        began = self.status(1, "starting", "running")
        continued = self.status(2, "starting", "running")
        told_to_end = self.status(2, "running", "completing")
        ended = self.status(2, "completing", "interrupted")
        orders = [
            [began, *said[:5], completed, continued, *said[5:], told_to_end, ended],
            [began, asked, waits, self.resolved(), goes_on, completed],
            [said[2], waits],
            [self.resolved(), said[3]],
        ]
        same(sorted(got), sorted({text for order in orders for text in order}), "all events")
        for order in orders:
            same([text for text in got if text in order], order, "events in order")
        self.established(self.filtered[0])
        same([self.plain(text) for text in self.filtered[1:]], [told_to_end, ended], "filtered")

    def check(self):
        self.learn()
        self.check_answers()
        self.check_events()


def play(command):
    with hld_daemon() as d:
        folder = d.folder("work")
        os.mkdir(folder)
        path = d.address("unix", "hld")[len("unix:"):]
        done = subprocess.run([*command, path, folder], capture_output=True, text=True, timeout=120)
        same((done.returncode, done.stderr), (0, ""), "the client's end")
        Scene(json.loads(done.stdout), path, folder).check()


def test_a_go_client_plays_a_whole_scene():
    go = installed("go")
    with Folder() as f:
        # The compiled standard library stays with the build: it takes longer than all else here.
        cache = os.path.join(os.path.dirname(os.path.abspath(KOINED)), "gocache")
        env = {**os.environ, "GO111MODULE": "off", "GOFLAGS": "", "GOPROXY": "off",
               "GOCACHE": cache, "CGO_ENABLED": "0"}
        built = subprocess.run([go, "build", "-o", f("client"), "main.go"], env=env, text=True,
                               cwd=os.path.join(SOURCE, "test", "go", "hld"), capture_output=True)
        same((built.returncode, built.stderr), (0, ""), "go build")
        play([f("client")])


def test_a_node_client_plays_a_whole_scene():
    play([installed("node", "nodejs"), os.path.join(HERE, "hld_client.mjs")])


# ---- the Rust client's ways ----


class RustClient:
    """Parameters that are null, one line for each request, and types that must fit."""

    STATUS = {"starting", "running", "completed", "failed", "waiting_input"}
    INFO = {"id": str, "run_id": str, "status": str, "start_time": str, "last_activity_at": str,
            "query": str, "summary": str}

    def __init__(self, d):
        self.client = d.connect(dialect="hld")
        self.id = 0

    def call(self, method, params=None):
        self.id += 1
        self.client.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params,
                                     "id": self.id}).encode() + b"\n")
        answer = json.loads(self.client.read_line())
        same(answer["id"], self.id, "id")
        check(not self.client.got, "more than a line: %r", bytes(self.client.got))
        return answer["result"]

    def sessions(self):
        sessions = self.call("listSessions")["sessions"]
        check(isinstance(sessions, list), "no list: %r", sessions)
        for session in sessions:
            for name, kind in self.INFO.items():
                check(isinstance(session.get(name), kind), "%s: %r", name, session)
            check(session["status"] in self.STATUS, "status %s", session["status"])
            for name in ("start_time", "last_activity_at"):
                check(TIME.fullmatch(session[name]), "%s: %s", name, session[name])
        return sessions


def events_of(d, params=None):
    c = d.connect(dialect="hld")
    c.send(json.dumps({"jsonrpc": "2.0", "method": "Subscribe", "params": params, "id": 9}).encode()
           + b"\n")
    answer = json.loads(c.read_line())
    same(sorted(answer["result"]), ["message", "subscription_id"], "subscription")
    return c


def next_event(c):
    return json.loads(event_line(c))["result"]["event"]


def until(c, condition):
    """Events up to the one that fits; that one is the last."""
    events = [next_event(c)]
    while not condition(events[-1]):
        events.append(next_event(c))
    return events


def is_status(name):
    return lambda e: e["data"].get("new_status") == name


def test_a_rust_client_can_read_every_state():
    with hld_daemon() as d:
        rust = RustClient(d)
        same(rust.call("health"), {"status": "ok", "version": "0.1.0"})
        same(rust.sessions(), [], "sessions")
        same(rust.call("fetchApprovals", {"session_id": None}), {"approvals": []})
        events = events_of(d)
        ready = d.folder("ready")
        session = rust.call("launchSession", {"query": "ignore INT\ntouch %s\nwait %s.end"
                                              % (ready, ready)})["session_id"]
        check(rust.sessions()[0]["status"] in ("starting", "running"), "%r", rust.sessions())
        wait_until(lambda: os.path.exists(ready), "the agent")
        same(rust.call("interruptSession", {"session_id": session})["status"], "completing")
        until(events, is_status("completing"))
        same([s["status"] for s in rust.sessions()], ["running"], "as it is told to end")
        open(ready + ".end", "w").close()
        until(events, is_status("interrupted"))
        same([s["status"] for s in rust.sessions()], ["completed"], "interrupted")
        rust.call("launchSession", {"query": "bare\nerr it broke\nexit 3"})
        failed = until(events, is_status("failed"))[-1]["data"]
        check("it broke" in failed["error"], "%r", failed)
        same([s["status"] for s in rust.sessions()], ["failed", "completed"], "failed")
        check("it broke" in rust.sessions()[0]["error"], "%r", rust.sessions()[0])


# ---- three generations ----


def first_generation(waiting):
    same([a["type"] for a in waiting], ["function_call"], "types")
    call = waiting[0]["function_call"]
    same(call["spec"], {"fn": "Bash", "kwargs": {"command": "one"}}, "spec")
    check(TIME.fullmatch(call["status"]["requested_at"]), "%r", call)
    return {"call_id": call["call_id"], "type": "function_call", "decision": "approve",
            "comment": "go on"}


def second_generation(waiting):
    (a,) = waiting
    same((a["status"], a["tool_name"], a["tool_input"]), ("pending", "Edit", {"file": "two"}))
    return {"call_id": a["id"], "type": "function_call", "decision": "deny", "comment": "not now"}


def third_generation(waiting):
    (a,) = waiting
    same((a["status"], a["tool_name"], a["tool_use_id"]), ("pending", "Write", "toolu_3"))
    return {"approval_id": a["id"], "decision": "deny", "comment": "never"}


def human_contact(waiting):
    same([a["type"] for a in waiting], ["human_contact"], "types")
    contact = waiting[0]["human_contact"]
    same(contact["spec"]["msg"], "Which port?", "message")
    return {"call_id": contact["call_id"], "type": "human_contact", "decision": "respond",
            "comment": "8080"}


# How each decides, and how the resolution reads: to the first of them, to the later ones.
GENERATIONS = [
    (first_generation, ("approved", "comment", "go on"), (True, "approved")),
    (second_generation, ("denied", "reason", "not now"), (False, "denied")),
    (third_generation, ("denied", "reason", "never"), (False, "denied")),
    (human_contact, ("responded", "response", "8080"), (False, "responded")),
]


def check_new(event, session, waiting):
    """Members of all generations at once."""
    data = event["data"]
    a = waiting[0]
    same((data["type"], data["count"], data["total"]), (a["type"], 1, 1), "new_approval, first")
    same((data["approval_id"], data["session_id"], data["tool_name"]),
         (a["id"], session["session_id"], a["tool_name"]), "new_approval, later")


def check_resolved(event, session, a, first, later):
    data = event["data"]
    decision, member, text = first
    same((data["type"], data["call_id"], data["run_id"], data["decision"], data[member]),
         (a["type"], a["id"], session["run_id"], decision, text), "approval_resolved, first")
    others = {"comment", "reason", "response"} - {member}
    check(not others & set(data), "%r", data)
    same((data["approval_id"], data["session_id"], data["approved"], data["response_text"],
          data["status"]), (a["id"], session["session_id"], later[0], text, later[1]),
         "approval_resolved, later")


def test_three_generations_decide_in_their_own_words():
    with hld_daemon() as d:
        events = events_of(d, {"event_types": ["new_approval", "approval_resolved"]})
        c = d.connect(dialect="hld")
        path = d.address("unix", "hld")[len("unix:"):]
        session = c.call("launchSession", {"query": "\n".join([
            "via hld " + path, 'ask Bash {"command": "one"}', 'ask Edit {"file": "two"}',
            'ask Write {"file": "three"}', "via koine " + d.folder("koine.sock"),
            "question Which port?"])})
        for decide, first, later in GENERATIONS:
            asked = next_event(events)
            same(asked["type"], "new_approval", "event")
            waiting = c.call("fetchApprovals", {"session_id": session["session_id"]})["approvals"]
            same(c.call("fetchApprovals")["approvals"], waiting, "all that wait")
            check_new(asked, session, waiting)
            same(c.call("sendDecision", decide(waiting)), {"success": True}, "decision")
            same(c.call("sendDecision", decide(waiting)),
                 {"success": False, "error": "this approval has already been responded to"})
            check_resolved(next_event(events), session, waiting[0], first, later)
            got = c.call("getApproval", {"approval_id": waiting[0]["id"]})["approval"]
            same((got["status"], got["comment"]), (later[1], first[2]), "as it is kept")
            check(TIME.fullmatch(got["responded_at"]), "%r", got)
        texts = wait_until(lambda: ended(c, session), "its end")
        same(texts, ["approved: go on", "denied: not now", "denied: never", "responded: 8080"],
             "what the agent was told")


def ended(c, session):
    """What it was told, once it is over."""
    state = c.call("getSessionState", {"session_id": session["session_id"]})["session"]
    if state["status"] != "completed":
        return None
    events = c.call("getConversation", {"session_id": session["session_id"]})["events"]
    return [e.get("tool_result_content") or e["content"] for e in events
            if e["event_type"] == "tool_result" or e.get("role") == "assistant" and "content" in e]


if __name__ == "__main__":
    main(globals())
