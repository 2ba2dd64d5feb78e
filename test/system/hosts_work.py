"""Approvals, sessions, conversations and rules of several hosts."""
import concurrent.futures
import json
import os
import subprocess
import threading
import time

from harness import (KOINE, SANITIZED, SOURCE, Client, Folder, check, clean_environment, note, request, same,
                     wait_until)
from hosts import Hosts

# These wait for nobody's end, and must not be fenced where the machine has much to do.
CALM = {"KOINE_HOST_LEASE": "20"}


def hosts_of(server, n, **opts):
    return Hosts(n, server=server, env={**CALM, **opts.pop("env", {})}, **opts)


class Later(threading.Thread):
    """A call that takes long: its answer comes later."""

    def __init__(self, node, method, params):
        super().__init__(daemon=True)
        self.node, self.method, self.params = node, method, params
        self.answer = None
        self.start()

    def run(self):
        with Client("unix:" + self.node.path) as c:
            c.send(request(self.method, self.params) + b"\n")
            while not self.answer or "id" not in self.answer:  # text may come first
                self.answer = json.loads(c.read_line())

    def result(self):
        self.join()
        check(self.answer and "result" in self.answer, "%r", self.answer)
        return self.answer["result"]


def ask(node, method, params=None):
    result, error = node.ask(method, params)
    check(error is None and result is not None, "%s at %s: %r", method, node.name, error)
    return result


def waiting(node):
    return [a["id"] for a in ask(node, "approval.list", {"status": "pending"})["approvals"]]


# ---- approvals ----

def test_what_is_asked_here_is_decided_there(server):
    """Though both are this process: the number of a process says nothing on another host."""
    with hosts_of(server, 2, args=("--set", "approval.agents_decide=no")) as h:
        here, there = h.nodes
        question = {"tool": "Bash", "input": {"command": "rm -r /"}, "agent": "claude"}
        asked = [Later(here, "approval.request", {"id": "q%d" % i, **question}) for i in range(3)]
        wait_until(lambda: len(waiting(there)) == 3, "three questions")
        same(ask(there, "approval.get", {"id": "q0"})["host"], here.name, "where it was asked")
        refused = here.ask("approval.decide", {"id": "q0", "decision": "approve"})[1]
        check(refused and "an agent that requests approvals" in refused["message"], "%r", refused)
        for i, word in enumerate(["approve", "deny", "approve"]):
            ask(there, "approval.decide", {"id": "q%d" % i, "decision": word, "comment": "so"})
        same([a.result()["status"] for a in asked], ["approved", "denied", "approved"], "what the askers hear")
        same(waiting(here), [], "pending at the asker's host")
        # What waits is at hand everywhere, and goes everywhere.
        for node in h.nodes:
            wait_until(lambda: ask(node, "daemon.status")["approvals_pending"] == 0, "nothing pending at " + node.name)


# Seconds from a decision to the end of whoever asked; a program of a sanitizer takes longer to end.
TOLD = 5.0 if SANITIZED else 1.0


def hook(node, told):
    """koine hook while it waits."""
    process = subprocess.Popen([KOINE, "-s", node.path, "hook"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, env=clean_environment())
    process.stdin.write(json.dumps(told).encode())
    process.stdin.close()
    return process


def test_a_hook_is_told_within_a_second_what_was_decided_elsewhere(server):
    with hosts_of(server, 3) as h:
        here, *others = h.nodes
        took = []
        for i in range(9):
            there, word = others[i % 2], ("approve", "deny")[i // 2 % 2]
            asker = hook(here, {"tool_name": "deploy", "tool_input": {"number": i}})
            with asker:
                wait_until(lambda: len(waiting(there)) == 1, "the question at " + there.name)
                ask(there, "approval.decide", {"id": waiting(there)[0], "decision": word, "comment": "so"})
                begun = time.monotonic()
                said = json.loads(asker.stdout.read())
                took.append(time.monotonic() - begun)
            same((said["decision"], said["comment"]), ({"approve": "approved", "deny": "denied"}[word], "so"), "what it says")
        # Each of them, but where the machine has much else to do.
        check(sorted(took)[len(took) // 2] < TOLD, "it took %s s", ", ".join("%.3f" % t for t in took))
        note("a hook is told after %.0f ms, at most %.0f ms" % (1e3 * sorted(took)[len(took) // 2], 1e3 * max(took)))


def test_one_decision_of_many_hosts_counts(server):
    with hosts_of(server, 3) as h:
        for i in range(5):
            name = "all%d" % i
            asker = Later(h.nodes[0], "approval.request", {"id": name, "tool": "Edit", "agent": "x"})
            wait_until(lambda: name in waiting(h.nodes[2]), "the question")
            words = ["approve", "deny"]
            tries = [Later(h.nodes[1 + k], "approval.decide", {"id": name, "decision": words[k]}) for k in range(2)]
            for t in tries:
                t.join()
            won = [k for k, t in enumerate(tries) if "result" in t.answer]
            same(len(won), 1, "decisions that counted: %r" % [t.answer for t in tries])
            lost = tries[1 - won[0]].answer["error"]
            check("already" in lost["message"], "%r", lost)
            same(asker.result()["status"], ["approved", "denied"][won[0]], "what the asker hears")
        resolved = h.sql("SELECT count(*) FROM koine.event WHERE type = 'approval.resolved'")
        same(resolved.strip(), "5", "events of decisions")


def test_nobody_decides_in_time_once(server):
    with hosts_of(server, 2) as h:
        asker = Later(h.nodes[0], "approval.request", {"id": "late", "tool": "Edit", "timeout": 1})
        same(asker.result()["status"], "expired", "what the asker hears")
        # Its host has gone before its time was over.
        Later(h.nodes[0], "approval.create", {"id": "later", "tool": "Edit", "timeout": 4}).result()
        wait_until(lambda: "later" in waiting(h.nodes[1]), "the question")
        h.nodes[0].stop()
        wait_until(lambda: waiting(h.nodes[1]) == [], "its end")
        resolved = h.sql("SELECT count(*) FROM koine.event WHERE type = 'approval.resolved'")
        same(resolved.strip(), "2", "events of ends")


# ---- sessions ----

AGENT = "python3 " + os.path.join(SOURCE, "test", "system", "session_agent.py")
SESSIONS = ("--set", "session.program=" + AGENT, "--set", "limits.stop_time=0")


def session_is(node, session, status):
    wait_until(lambda: ask(node, "session.get", {"id": session})["status"] == status, "%s at %s" % (status, node.name))


def says(node, session, text):
    wait_until(lambda: any(e.get("content") == text for e in ask(node, "session.events", {"id": session})["events"]),
               "%r at %s" % (text, node.name))


def test_a_session_is_read_and_interrupted_from_elsewhere(server):
    with hosts_of(server, 2, args=SESSIONS) as h:
        here, there = h.nodes
        session = ask(here, "session.launch", {"query": "say one\nask Bash {}\nsay two\nhang", "working_dir": "/tmp"})["id"]
        says(there, session, "one")
        session_is(there, session, "waiting_input")
        same(ask(there, "session.get", {"id": session})["host"], here.name, "where it runs")
        ask(there, "approval.decide", {"id": waiting(there)[0], "decision": "approve"})
        says(there, session, "two")
        ask(there, "session.interrupt", {"id": session})
        for node in h.nodes:
            session_is(node, session, "interrupted")
        refused = there.ask("session.interrupt", {"id": session})[1]
        check(refused and "interrupted" in refused["message"], "%r", refused)


def test_a_session_is_continued_on_another_host(server):
    with hosts_of(server, 2, args=SESSIONS) as h:
        here, there = h.nodes
        first = ask(here, "session.launch", {"query": "say one\nhang", "working_dir": "/tmp"})["id"]
        says(there, first, "one")
        # It runs: it is interrupted, and waited for.
        second = ask(there, "session.continue", {"id": first, "query": "say more"})["id"]
        same(ask(there, "session.get", {"id": first})["status"], "interrupted", "the first")
        session_is(here, second, "completed")
        got = ask(here, "session.get", {"id": second})
        same((got["host"], got["parent_session_id"]), (there.name, first), "the second")


def test_sessions_of_a_lost_host_have_failed(server):
    with hosts_of(server, 2, args=SESSIONS, env={"KOINE_HOST_LEASE": "6"}) as h:
        here, there = h.nodes
        session = ask(here, "session.launch", {"query": "say one\nask Bash {}\nhang", "working_dir": "/tmp"})["id"]
        session_is(there, session, "waiting_input")
        mine = ask(there, "session.launch", {"query": "say mine\nhang", "working_dir": "/tmp"})["id"]
        here.kill()
        session_is(there, session, "failed")
        same(ask(there, "session.get", {"id": session})["error"], "host %s was declared dead" % here.name, "its error")
        wait_until(lambda: waiting(there) == [], "the end of its question")
        same(ask(there, "session.get", {"id": mine})["status"], "running", "one of a host that lives")
        here.up()
        same(ask(here, "session.get", {"id": mine})["status"], "running", "after a start")
        told = h.sql("SELECT count(*) FROM koine.event WHERE type = 'session.status' AND session = '%s'"
                     " AND host = '%s'" % (session, there.name))
        same(told.strip(), "1", "events of its end")


# ---- rules ----

# A minute of schedules begins a few seconds after the start.
RULES = """[rule tick]
every = 2s
prompt = tick {{payload.time}}

[rule echo]
event = memory.added
prompt = heard {{payload.seq}}

[rule chain]
event = task.queued
prompt = again

[rule rare]
event = memory.added
cooldown = 1h
prompt = rare
"""


def prompts(node, first):
    found = ask(node, "task.find", {"limit": 1000})["tasks"]
    return sorted(t["prompt"] for t in found if t["prompt"].startswith(first))


def test_a_rule_of_three_hosts_fires_once(server):
    with Folder() as f:
        with open(f("koine.conf"), "w") as out:
            out.write(RULES)
        args = ("--config", f("koine.conf"))
        with hosts_of(server, 3, args=args, env={"PATH": "/usr/bin:/bin"}) as h:
            for node in h.nodes:
                wait_until(lambda: b"rule state loaded" in node.log(), "rules of " + node.name)
            for i, node in enumerate(h.nodes):
                ask(node, "memory.add", {"content": "fact %d of %s" % (i, node.name)})
            wait_until(lambda: len(prompts(h.nodes[0], "heard")) >= 3, "what was heard")
            wait_until(lambda: len(prompts(h.nodes[1], "tick")) >= 4, "four ticks")
            # Off everywhere, by one of them.
            ask(h.nodes[2], "automation.disable", {"ruleId": "tick"})
            for node in h.nodes:
                wait_until(lambda: not [r for r in ask(node, "automation.rules")["rules"]
                                        if r["rule"] == "tick" and r["enabled"]], "off at " + node.name)
            # Each task but its own has fired the chain, and none twice.
            def others():
                return len(prompts(h.nodes[0], "")) - len(prompts(h.nodes[0], "again"))
            wait_until(lambda: len(prompts(h.nodes[0], "again")) == others(), "the chain")
            ticks = "SELECT max(occurrence_ms) FROM koine.rule_claim WHERE rule = E'\\ntick'"
            last = h.sql(ticks)
            wait_until(lambda: h.sql(ticks) != last, "a tick that is only claimed")
            same(len(prompts(h.nodes[0], "again")), others(), "the chain")
            for first in "tick", "heard":
                found = prompts(h.nodes[0], first)
                same(len(found), len(set(found)), "%s: all different: %r" % (first, found))
            same(len(prompts(h.nodes[0], "heard")), 3, "what was heard")
            same(prompts(h.nodes[0], "rare"), ["rare"], "with a cooldown")


def test_a_rule_that_is_off_in_ones_settings_fires_elsewhere(server):
    with Folder() as f, hosts_of(server, 0, spare=2) as h:
        for number, more in enumerate(["", "enabled = no\n"]):
            with open(f("koine%d.conf" % number), "w") as out:
                out.write("[rule tick]\nevery = 1s\nprompt = tick {{payload.time}}\n" + more)
            node = h.node(number, args=("--config", f("koine%d.conf" % number)), env={**CALM, "PATH": "/usr/bin:/bin"}).up()
            wait_until(lambda: b"rule state loaded" in node.log(), "rules of " + node.name)
        here = h.nodes[0]
        n = len(prompts(here, "tick"))
        wait_until(lambda: len(prompts(here, "tick")) >= n + 6, "six ticks")
        claims = h.sql("SELECT (max(occurrence_ms) - min(occurrence_ms)) / 1000 FROM koine.rule_claim WHERE occurrence_ms % 1000 = 0")
        check(len(prompts(here, "tick")) >= int(claims), "%d of %s ticks", len(prompts(here, "tick")), claims)


def test_own_switches_count_while_others_fire(server):
    """What was read of a rule before it was switched here is not what it is."""
    with Folder() as f:
        with open(f("koine.conf"), "w") as out:
            out.write("[rule echo]\nevent = memory.added\nprompt = heard\n[rule more]\nevent = memory.added\nprompt = more\n")
        with hosts_of(server, 2, args=("--config", f("koine.conf")), env={"PATH": "/usr/bin:/bin"}) as h:
            here, there = h.nodes
            for node in h.nodes:
                wait_until(lambda: b"rule state loaded" in node.log(), "rules of " + node.name)
            over = threading.Event()

            def fire():
                n = 0
                while not over.is_set():
                    n += 1
                    ask(here, "memory.add", {"content": "fact %d" % n})

            def enabled(node):
                return {r["rule"]: r["enabled"] for r in ask(node, "automation.rules")["rules"]}["echo"]
            firing = threading.Thread(target=fire, daemon=True)
            firing.start()
            try:
                for i in range(60):
                    ask(there, "automation.enable" if i % 2 else "automation.disable", {"ruleId": "echo"})
                    ask(there, "task.resume" if i % 2 else "task.pause", {"group": "g"})
                    ask(here, "task.pause" if i % 2 else "task.resume", {"group": "other"})
                    same(enabled(there), bool(i % 2), "after switch %d" % i)
            finally:
                over.set()
                firing.join()
            ask(there, "task.pause", {"group": "g"})
            ask(here, "task.resume", {"group": "other"})
            for node in h.nodes:
                wait_until(lambda: enabled(node), "it is on at " + node.name)
                wait_until(lambda: [g["group"] for g in ask(node, "task.groups")["groups"] if g["paused"]] == ["g"],
                           "what is paused at " + node.name)


# ---- jobs of the gateway ----

TOKEN = "a-token-of-some-length"
JOB = {"name": "Report", "schedule": {"kind": "every", "everyMs": 2000},
       "payload": {"kind": "agentTurn", "message": "tick of a job"}}


def cron(node, what, params=None):
    """Status and answer of the gateway, asked on its own host."""
    url = "http://%s/cron/%s" % (node.address("http", "gateway")[len("http:"):], what)
    body = [] if params is None else ["-d", json.dumps(params)]
    done = subprocess.run([*node.hosts.network.wrapper(node.number), "curl", "-s", "-w", "\\n%{http_code}", *body,
                           "-H", "Authorization: Bearer " + TOKEN, "-H", "Content-Type: application/json", url],
                          capture_output=True, timeout=60)
    text, _, status = done.stdout.decode().rpartition("\n")
    return int(status), json.loads(text)


def jobs(node):
    return {j["id"]: j["name"] for j in cron(node, "list")[1]}


def test_jobs_are_those_of_all_hosts(server):
    with hosts_of(server, 2, args=("--set", "listen.gateway=on"),
                  env={"OPENCLAW_UI_TOKEN": TOKEN, "PATH": "/usr/bin:/bin"}) as h:
        here, there = h.nodes
        status, made = cron(here, "add", JOB)
        same(status, 200, "status (%r)" % made)
        id = made["jobId"]
        wait_until(lambda: jobs(there) == {id: "Report"}, "the job at " + there.name)
        # It is one job, whoever runs it.
        wait_until(lambda: len(prompts(here, "tick of a job")) >= 3, "three runs")
        claims = h.sql("SELECT count(*), count(DISTINCT occurrence_ms) FROM koine.rule_claim WHERE rule = E'\\n%s'" % id)
        same(*claims.strip().split("|"), "claims, each once")
        status, answer = cron(there, "update", {"jobId": id, "patch": {"name": "Off", "enabled": False}})
        same(status, 200, "status (%r)" % answer)
        wait_until(lambda: jobs(here) == {id: "Off"}, "the change at " + here.name)
        same([cron(node, "status")[1]["disabled"] for node in h.nodes], [1, 1], "off")
        # Of two changes at once, none is lost: one is refused, or comes second.
        h.sql("UPDATE koine.job SET updated_ms = updated_ms + 1")
        status, answer = cron(here, "update", {"jobId": id, "patch": {"name": "Lost"}})
        check(status == 409 and "was changed in the meantime" in str(answer), "%d %r", status, answer)
        same(cron(here, "remove", {"jobId": id})[0], 200, "status")
        wait_until(lambda: jobs(there) == {}, "its end at " + there.name)
        # Two that are made in one millisecond are two.
        made = both_at_once(lambda node: cron(node, "add", dict(JOB, enabled=False, name=node.name)), h.nodes)
        same([status for status, _ in made], [200] * len(made), "%r" % made)
        for node in h.nodes:
            wait_until(lambda: sorted(jobs(node)) == sorted(a["jobId"] for _, a in made), "all at " + node.name)


def both_at_once(work, nodes, each=8):
    with concurrent.futures.ThreadPoolExecutor(2 * each) as pool:
        return list(pool.map(work, nodes * each))


# ---- projects ----

def test_trust_that_is_withdrawn_elsewhere_is_withdrawn_here(server):
    with Folder() as f, hosts_of(server, 0, spare=2) as h:
        project = f("project")
        os.makedirs(project + "/.aiwg")
        with open(project + "/.aiwg/daemon.json", "w") as out:
            json.dump({"rules": [{"id": "heard", "trigger": {"type": "task.completed"}, "cooldownMs": 3600000,
                                  "action": {"type": "agent", "prompt": "x"}}]}, out)
        here = h.node(0, args=("--project", project)).up()

        def state():
            return here.ask("project.show", {"folder": project})[0]["state"]
        digest = here.ask("project.show", {"folder": project})[0]["digest"]
        same(here.ask("project.trust", {"folder": project, "digest": digest})[1], None, "a refusal")
        same(state(), "trusted", "at first")
        there = h.node(1).up()
        same(there.ask("project.distrust", {"folder": project})[1], None, "a refusal")
        wait_until(lambda: state() == "untrusted", "it is heard of")
