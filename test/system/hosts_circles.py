"""
A circle with every kind of change that a host makes: somebody else has a table that it needs and wants one that it
has, and the database ends the host's change. It is made again, once, and nobody hears of that.
"""
import contextlib
import json
import os
import threading

from harness import SOURCE, Failure, Folder, check, same, wait_until
from hosts import Hosts
from hosts_work import CALM, SESSIONS, TOKEN, Later, ask, cron, hosts_of, says, session_is

# The host is the one that looks for a circle, some time after it began to wait; the other one is in it by then. Every
# batch begins with a row of `writer`. Who is too late for that gives up.
CIRCLE = """SET application_name = 'circle'; SET deadlock_timeout = '1h'; BEGIN; LOCK koine.%(table)s IN EXCLUSIVE MODE;
DO $$ BEGIN
    WHILE NOT EXISTS (SELECT FROM pg_locks WHERE relation = 'koine.%(table)s'::regclass AND NOT granted) LOOP
        PERFORM pg_sleep(0.002);
    END LOOP;
    SET LOCAL lock_timeout = '5s';
    LOCK koine.writer IN EXCLUSIVE MODE;
END $$; COMMIT"""
LOOKS_MS = 300
TRIES = 20


def look_late(hosts):
    """Of connections that are made from now on."""
    hosts.server.sql("ALTER DATABASE %s SET deadlock_timeout = %d" % (hosts.name, LOOKS_MS))


class Circle(threading.Thread):
    """With whoever writes to the table next."""

    def __init__(self, hosts, table):
        super().__init__(daemon=True)
        self.hosts, self.table, self.late = hosts, table, None
        self.start()
        held = "SELECT count(*) FROM pg_locks WHERE relation = 'koine.%s'::regclass AND mode = 'ExclusiveLock' AND granted"
        wait_until(lambda: hosts.sql(held % table) == "1" or not self.is_alive(), "the lock of " + table)

    def run(self):
        try:
            self.hosts.sql(CIRCLE % {"table": self.table})
        except Failure as why:
            self.late = why

    def end(self):
        """The change is made, so there was a circle, or there will be none."""
        self.join(5)
        if self.is_alive():
            self.hosts.sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'circle'")
            self.join()


# It says one thing when it may, and another one after that.
AGENT = """#!/bin/sh
until [ -e "$FOLDER/go" ]; do sleep 0.01; done
printf one
until [ -e "$FOLDER/more" ]; do sleep 0.01; done
printf two
"""
SETTINGS = """[rule quiet]
event = memory.deleted
command = true
[rule noted]
event = agent.asked
command = true
"""


class World:
    """A host that does everything, and what a change needs before it can be made."""

    def __init__(self, hosts, folder):
        self.hosts, self.folder, self.n = hosts, folder, 0
        self.node = hosts.nodes[0]

    def ask(self, method, **params):
        result, error = self.node.ask(method, params)
        check(error is None and result is not None, "%s: %r", method, error)
        return result

    def name(self):
        self.n += 1
        return "n%d" % self.n

    def question(self):
        return self.ask("approval.create", tool=self.name(), input={"command": "ls"})["id"]

    def switch(self, go=False, more=False):
        for name, on in ("go", go), ("more", more):
            if on:
                open(self.folder(name), "w").close()
            elif os.path.exists(self.folder(name)):
                os.remove(self.folder(name))

    def say(self, name):
        return Later(self.node, "chat.stream", {"conversation": name, "content": "hello", "agent": "slow"})

    def turn(self):
        """The name of a conversation, and its turn, which has begun."""
        self.switch()
        name = self.name()
        turn = self.say(name)
        wait_until(lambda: self.said(name), "the turn")
        return name, turn

    def said(self, name):
        """As it is kept."""
        return self.hosts.sql("SELECT m.text FROM koine.message AS m JOIN koine.conversation AS c ON c.seq = m.conversation"
                              " WHERE c.id = '%s' ORDER BY m.seq" % name).split()

    def hear_all(self, begun):
        name, turn = begun
        self.switch(go=True, more=True)
        same(turn.result()["content"], "onetwo", "the answer")
        same(self.said(name), ["hello", "onetwo"], "what is kept")
        return name

    def hear_first(self, begun):
        """The first piece is stored before the other comes."""
        self.switch(go=True)
        wait_until(lambda: self.said(begun[0]) == ["hello", "one"], "its text")
        self.hear_all(begun)

    def talk(self, *_):
        self.switch(go=True, more=True)
        name = self.name()
        return self.hear_all((name, self.say(name)))

    def ended(self):
        self.ask("destroy_agent", agent_id=self.talk())

    def task(self):
        id = self.ask("task.run", command=["true"])["id"]
        self.ask("task.wait", id=id)
        return id

    def session(self):
        return self.launch("x")

    def launch(self, *_):
        """It is over, too: whatever its end has to write."""
        id = self.ask("session.launch", query="say one\ncall Bash {}\nresult yes", working_dir="/tmp")["id"]
        wait_until(lambda: self.ask("session.get", id=id)["status"] == "completed", "its end")
        events = self.ask("session.events", id=id)["events"]
        same([e["sequence"] for e in events], list(range(1, len(events) + 1)), "numbers of what was said")
        return id

    def job(self, *_):
        job = {"name": self.name(), "schedule": {"kind": "every", "everyMs": 3600000}, "enabled": False,
               "payload": {"kind": "agentTurn", "message": "x"}}
        status, answer = cron(self.node, "add", job)
        same(status, 200, "status (%r)" % answer)
        return answer["jobId"]

    def change_job(self, id):
        status, answer = cron(self.node, "update", {"jobId": id, "patch": {"name": self.name()}})
        same(status, 200, "status (%r)" % answer)

    def noted(self, *_):
        n = self.executed()
        self.ask("agent.note", what="asked", agent="claude")
        wait_until(lambda: self.executed() > n, "the rule")

    def executed(self):
        return int(self.hosts.sql("SELECT count(*) FROM koine.event WHERE type = 'rule.executed'"))

    def trust(self, *_):
        digest = self.ask("project.show", folder=self.project)["digest"]
        self.ask("project.trust", folder=self.project, digest=digest)

    def purge(self, *_):
        past = self.ask("chat.past")["total"]
        same(self.ask("chat.purge", all=True), {"purged": past}, "what is gone")

    def clean(self, _):
        ended = self.hosts.sql("SELECT count(*) FROM koine.task")
        same(str(self.ask("task.clean")["cleaned"]), ended, "what is gone")

    def decide(self, id):
        same(self.ask("approval.decide", id=id, decision="approve", grant={"scope": "all", "for": 3600})["status"], "approved", "its status")


def toggle(w, _):
    w.ask("automation.disable" if w.n % 2 else "automation.enable", ruleId="quiet")
    w.n += 1


# What is done, what it needs before that, the tables that it changes, and the event that tells of it, once each time.
CHANGES = [
    ("a memory", None, lambda w, _: w.ask("memory.add", content=w.name()), "memory event_counter", "memory.added"),
    ("a note", None, lambda w, _: w.ask("agent.note", what="tool", agent="claude"), "event_counter", "agent.tool"),
    ("a rule switched", None, toggle, "rule event_counter", "rule.switched"),
    ("a rule run", None, lambda w, _: w.ask("automation.run", rule="quiet"), "rule event_counter", None),
    ("a rule fired", None, World.noted, "rule_claim rule event_counter", None),
    ("a group paused", None, lambda w, _: w.ask("task.pause", group=w.name()), "task_pause event_counter", "task.paused"),
    ("a task", None, lambda w, _: w.task(), "task_project task event_counter", None),
    ("tasks forgotten", World.task, World.clean, "task event_counter", "task.cleaned"),
    ("a job", None, World.job, "job event_counter", "job.added"),
    ("a job changed", World.job, World.change_job, "job event_counter", "job.changed"),
    ("a question", None, lambda w, _: w.question(), "approval event_counter", None),
    ("a decision", World.question, World.decide, "approval approval_grant event_counter", "approval.resolved"),
    ("a grant", None, lambda w, _: w.ask("approval.grant", tool=w.name()), "approval_grant", None),
    ("trust", None, World.trust, "project_trust event_counter", "project.trusted"),
    ("a turn", None, World.talk, "conversation turn message event_counter", None),
    ("a turn's text", World.turn, World.hear_first, "message", None),
    ("a turn's end", World.turn, World.hear_all, "message turn conversation event_counter", None),
    ("a conversation ended", World.talk, lambda w, name: w.ask("destroy_agent", agent_id=name), "conversation event_counter", "chat.ended"),
    ("conversations gone", World.ended, World.purge, "conversation turn message event_counter", None),
    ("a session", None, World.launch, "session session_event event_counter", None),
    ("a session renamed", World.session, lambda w, id: w.ask("session.rename", id=id, title=w.name()), "session event_counter", None),
]


@contextlib.contextmanager
def world(server):
    with Folder() as f:
        with open(f("slow"), "w") as out:
            out.write(AGENT.replace("$FOLDER", f.path))
        os.chmod(f("slow"), 0o755)
        with open(f("koine.conf"), "w") as out:
            out.write(SETTINGS)
        os.makedirs(f("project/.aiwg"))
        with open(f("project/.aiwg/daemon.json"), "w") as out:
            json.dump({"rules": [{"id": "heard", "trigger": {"type": "task.failed"}, "action": {"type": "agent", "prompt": "x"}}]}, out)
        agent = "python3 " + os.path.join(SOURCE, "test", "system", "session_agent.py")
        args = ("--config", f("koine.conf"), "--project", f("project"), "--set", "session.program=" + agent,
                "--set", "agent.slow.kind=command", "--set", "agent.slow.command=" + f("slow"), "--set", "listen.gateway=on")
        with Hosts(0, spare=1, server=server) as hosts:
            look_late(hosts)
            node = hosts.node(0, args=args, strict=True, env={**CALM, "OPENCLAW_UI_TOKEN": TOKEN, "PATH": os.environ["PATH"]}).up()
            wait_until(lambda: b"rule state loaded" in node.log(), "rules")
            w = World(hosts, f)
            w.project = f("project")
            yield w


def events_of(hosts, kind):
    return int(hosts.sql("SELECT count(*) FROM koine.event WHERE type = '%s'" % kind))


def try_change(w, table, change):
    """One that came too late for a circle is made once more."""
    _, before, make, _, event = change
    for _ in range(TRIES):
        needs = before(w) if before else None
        n = events_of(w.hosts, event) if event else 0
        circle = Circle(w.hosts, table)
        try:
            make(w, needs)
        finally:
            circle.end()
        if event:
            same(events_of(w.hosts, event) - n, 1, "events " + event)
        if not circle.late:
            return
    raise Failure("never in a circle: %s" % circle.late)


def test_whatever_is_changed_is_changed_again(server):
    with world(server) as w:
        wrong = []
        for change in CHANGES:
            for table in change[3].split():
                try:
                    try_change(w, table, change)
                except (Failure, ValueError) as why:
                    wrong.append("%s, %s: %s" % (change[0], table, why))
        check(not wrong, "%d went wrong: %s", len(wrong), "; ".join(wrong))


def end_session(here, there, session, how):
    """Of `here`, by `there`."""
    if how == "session.interrupt":
        ask(there, how, {"id": session})
    else:
        more = ask(there, how, {"id": session, "query": "say more"})["id"]
        session_is(there, more, "completed")
    session_is(here, session, "interrupted")


def test_what_is_wished_of_another_host_is_wished_once(server):
    with hosts_of(server, 0, spare=2, args=SESSIONS) as h:
        look_late(h)
        here, there = [h.node(i).up() for i in range(2)]
        for how in "session.interrupt", "session.continue":
            for table in "session", "event_counter":
                for _ in range(TRIES):
                    session = ask(here, "session.launch", {"query": "say one\nhang", "working_dir": "/tmp"})["id"]
                    says(there, session, "one")
                    circle = Circle(h, table)
                    try:
                        end_session(here, there, session, how)
                    finally:
                        circle.end()
                    told = h.sql("SELECT count(*) FROM koine.event WHERE type = 'session.interrupting' AND session = '%s'" % session)
                    # Who continues it wishes it again as long as it has not ended.
                    check(told == "1" or how == "session.continue", "%s, %s: %s wishes were told", how, table, told)
                    if not circle.late:
                        break
                check(not circle.late, "%s: never in a circle: %s", table, circle.late)
