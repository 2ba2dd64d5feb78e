#!/usr/bin/env python3
"""
The words of events: what each kind of client is shown of everything that happens, member by
member and in order, as test/vectors/events.json has it. The log stores other names.

KOINE_RECORD=FILE writes what was seen instead of comparing it.
"""
import json
import os
import re
import threading

from harness import SERVER, SOURCE, Client, main, request, same, wait_until
from task_world import World
from test_aiwg import connect as aiwg

VECTORS = os.path.join(SOURCE, "test", "vectors", "events.json")
AGENT = "python3 " + os.path.join(SOURCE, "test", "system", "session_agent.py")

RULES = """
[rule told]
event=%s
command=printf '%%s\\n' "$KOINE_EVENT_JSON" >> $WORLD/rules

[rule broken]
event=memory.added
webhook=http://127.0.0.1:9/

[rule asks]
event=memory.added
project=%s
prompt=echo {{payload.user}}

[policy echo]
tool=Echo
verdict=allow
"""

VARIES = [(re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "TIME"),
          (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UUID"),
          (re.compile(r"\b[0-9a-f]{16}\b"), "HEX"), (re.compile(r"after \d+ ms"), "after N ms")]
HLD = ("session.status", "session.event", "approval.requested", "approval.resolved")
NUMBERS = ("seq", "pid", "duration", "id", "uid")


def plain(value, folder, key=None):
    """What differs from run to run has one name. Among several hosts an event says where it was made."""
    if isinstance(value, dict):
        return {k: plain(v, folder, k) for k, v in value.items() if k != "terminal" and not (SERVER and k == "host")}
    if isinstance(value, list):
        return [plain(v, folder) for v in value]
    if isinstance(value, int) and not isinstance(value, bool) and key in NUMBERS:
        return key.upper()
    if isinstance(value, str):
        value = "PATH" if key == "program" else value.replace(folder, "WORLD")
        for pattern, name in VARIES:
            value = pattern.sub(name, value)
        value = "%d bytes" % len(value) if len(value) > 300 else value
    return value


class Ear(threading.Thread):
    """Keeps what a connection is told."""

    def __init__(self, client):
        super().__init__(daemon=True)
        self.client, self.heard = client, []
        self.start()

    def run(self):
        while True:
            try:
                self.heard.append(json.loads(self.client.read_line()))
            except Exception:
                return


class Scene:
    """A daemon whose events everybody hears."""

    def __init__(self, world, rules, announced=()):
        self.world = world
        with open(world("koine.conf"), "w", encoding="utf-8") as f:
            f.write(RULES % (rules, world("root")))
        self.daemon = world.daemon("--config", world("koine.conf"), "session.program=" + AGENT,
                                   "limits.stop_time=0", announced=announced)

    def __enter__(self):
        d = self.daemon.__enter__()
        wait_until(lambda: b"rule state loaded" in d.log(), "the rules")
        self.koine = d.connect()
        self.aiwg = Ear(aiwg(d))
        hld = d.connect("unix", "hld")
        hld.call("Subscribe", {})
        self.hld = Ear(hld)
        return self

    def __exit__(self, *exc):
        return self.daemon.__exit__(*exc)

    def call(self, method, **params):
        return self.koine.call(method, params)

    def listed(self):
        return self.call("event.list", since=0, limit=1000)["events"]

    def until(self, *types):
        """Waits for the last events."""
        wait_until(lambda: all(any(e["type"] == t for e in self.listed()) for t in types),
                   "%r" % (types,))

    def ruled(self):
        lines = [json.loads(line) for line in self.world.read("rules").splitlines()]
        return sorted(lines, key=lambda e: e["payload"]["seq"])

    def words(self, only):
        """What was shown of events of these types: to each kind of client, once it has all."""
        events = [e for e in self.listed() if e["type"].startswith(only)]
        self.until_rules(len(events))
        return self.shown(events)

    def shown(self, events):
        """Once everybody has heard the last event."""
        self.aiwg.client.send(request("ping", id=9) + b"\n")
        wait_until(lambda: any("id" in m for m in self.aiwg.heard), "an answer behind events")
        told = [e for e in events if e["type"] in HLD and e["data"].get("event_type") != "raw"]
        wait_until(lambda: len(self.hld.heard) >= len(told), "%d events for hld" % len(told))
        return plain({"koine": events, "rules": self.ruled(),
                      "aiwg": [m for m in self.aiwg.heard if "id" not in m],
                      "hld": self.hld.heard},
                     self.world.path)

    def until_rules(self, n):
        """Their lines, and their ends: a stop would cut a command that has written already."""
        wait_until(lambda: len(self.world.read("rules").splitlines()) >= n, "%d rules" % n)
        wait_until(lambda: sum(e["type"] == "rule.executed" for e in self.listed()) >= n,
                   "the ends of %d rules" % n)


def compare(name, got):
    """Text, so that the order of members counts."""
    record = os.environ.get("KOINE_RECORD")
    if record:
        all = json.load(open(record)) if os.path.exists(record) else {}
        all[name] = got
        with open(record, "w", encoding="utf-8") as f:
            f.write("{\n" + ",\n".join(
                '"%s": {\n%s}' % (scene, ",\n".join(
                    ' "%s": [%s]' % (who, ",".join("\n  " + json.dumps(e) for e in told))
                    for who, told in shown.items())) for scene, shown in all.items()) + "\n}\n")
        return
    with open(VECTORS, encoding="utf-8") as f:
        want = json.load(f)[name]
    for who, told in want.items():
        for i, (a, b) in enumerate(zip(got[who], told)):
            same(json.dumps(a), json.dumps(b), "%s, %s, %d" % (name, who, i))
        same(len(got[who]), len(told), "%s, %s: number of events" % (name, who))


def test_tasks():
    with World() as w, Scene(w, "task.*") as s:
        def add(prompt, **more):
            return s.call("task.add", prompt=prompt, project=w("root"), **more)["id"]

        def run(prompt, **more):
            s.call("task.wait", id=add(prompt, **more))

        run("echo hello")
        run("echo 'so far'; echo 'it broke' >&2; exit 3")
        run("kill -9 $$")
        run("echo " + "x" * 100)
        one = add("exec sleep 600")
        wait_until(lambda: s.call("task.get", taskId=one)["pid"], "its program")
        s.call("task.cancel", taskId=one)
        s.call("task.wait", id=one)
        run("exec sleep 600", timeout=300)
        run("who are you?", runner="recall")
        compare("tasks", s.words("task."))


def test_rules():
    with World() as w, Scene(w, "memory.*", ["rule fired"]) as s:
        s.call("memory.add", content="ann likes tea", user_id="ann", category="fact")
        wait_until(lambda: len([e for e in s.listed() if e["type"].startswith("rule.")]) == 3,
                   "what the rules did")
        s.until("task.completed")
        s.until_rules(1)
        got = s.shown(s.listed())
        got["koine"].sort(key=lambda e: (e["type"], str(e["data"])))
        got["aiwg"].sort(key=lambda e: e["method"])
        compare("rules", got)


def test_sessions():
    with World() as w, Scene(w, "session.*") as s:
        s.call("session.launch", query="\n".join((
            "session 11111111-1111-4111-8111-111111111111", "say Hi", "think nothing",
            'call Bash {"command": "ls", "deep": {"b": [1, 2.50, null], "a": true}}',
            "result one\\ntwo", "raw not json", "lines 1 70000")), title="first")
        s.until("session.status")
        wait_until(lambda: any(e["data"].get("new_status") == "completed" for e in s.listed()),
                   "its end")
        one = s.call("session.list")["sessions"][0]["id"]
        s.call("session.rename", id=one, title="second")
        s.call("session.archive", id=one)
        s.call("session.continue", id=one, query="bare\nerr it is over\nexit 3")
        wait_until(lambda: any(e["data"].get("new_status") == "failed" for e in s.listed()),
                   "its end")
        compare("sessions", s.words("session."))


def ask(s, id, tool="Bash", input=None, **more):
    c = Client(s.daemon.address("unix", "koine"))
    s.daemon.clients.append(c)
    c.send(request("approval.request", dict(more, id=id, tool=tool, input=input or {})) + b"\n")
    wait_until(lambda: any(e["type"] == "approval.requested" and e["data"]["approval_id"] == id
                           for e in s.listed()), "the question")
    return c


def test_approvals():
    with World() as w, Scene(w, "approval.*") as s:
        ask(s, "a1", input={"command": "ls", "deep": {"b": [1], "a": 2}}, session_id="s1",
            run_id="r1", agent="claude", tool_use_id="toolu_1", timeout=1000)
        s.call("approval.decide", id="a1", decision="approve", comment="go on")
        ask(s, "a2")
        s.call("approval.decide", id="a2", decision="approve")
        ask(s, "a3")
        s.call("approval.decide", id="a3", decision="deny", comment="not here")
        ask(s, "a4")
        s.call("approval.decide", id="a4", decision="deny", comment="")
        ask(s, "a5", tool="which", kind="human_contact", input={"msg": "red or blue?"})
        s.call("approval.decide", id="a5", decision="respond", comment="blue")
        ask(s, "a6")
        s.call("approval.withdraw", id="a6", comment="never mind")
        ask(s, "a7", timeout=0.05)
        wait_until(lambda: s.call("approval.get", id="a7")["status"] == "expired", "its end")
        s.call("approval.request", id="a8", tool="Echo", input={})
        ask(s, "a9", input={"long": "x" * 70000})
        s.call("approval.withdraw", id="a9")
        compare("approvals", s.words("approval."))


def test_conversations():
    with World() as w, Scene(w, "chat.*") as s:
        with Client(s.daemon.address("unix", "koine")) as c:
            c.send(request("chat.stream", {"content": "hello", "conversation": "talk"}) + b"\n")
            while "id" not in json.loads(c.read_line()):
                pass
        compare("conversations", s.words("chat."))


if __name__ == "__main__":
    main(globals())
