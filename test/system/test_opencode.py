#!/usr/bin/env python3
"""
koined as a client of opencode's server: what opencode asks stands in the inbox, and what is
decided there is what opencode is told.
"""
import json
import os
import signal

from harness import Daemon, Failure, Folder, check, main, run_koined, same, wait_until
from opencode_server import Opencode
from test_chat_cli import koine, of


def settings(fake, *more, name="opencode"):
    out = ["--set", "agent-server.%s.kind=opencode" % name, "--set", "agent-server.%s.url=%s" % (name, fake.url)]
    for pair in more:
        out += ["--set", "agent-server.%s.%s" % (name, pair)]
    return out


def server(client, name="opencode"):
    return [s for s in client.call("agent.server.list")["servers"] if s["name"] == name][0]


def connected(client, d=None, name="opencode"):
    """Of a daemon with a clock, at once."""
    (d.hurry if d else wait_until)(lambda: server(client, name)["state"] == "connected", "a connection")


def away(client, words=""):
    return wait_until(lambda: (s := server(client))["state"] == "unreachable" and words in s["text"] and s,
                      "the loss of the connection")


def pending(client, n=1):
    """Waits until so many are pending, and returns them."""
    def look():
        rows = client.call("approval.list", {"status": "pending"})["approvals"]
        return len(rows) == n and rows or (n == 0 and not rows)
    found = wait_until(look, "%d approvals" % n)
    return [] if n == 0 else found


def one(client):
    return pending(client)[0]


def decide(client, row, decision="approve", **more):
    return client.call("approval.decide", {"id": row["id"], "decision": decision, **more})


def status(client, id):
    return client.call("approval.get", {"id": id})["status"]


def becomes(client, id, want):
    wait_until(lambda: status(client, id) == want, "%s to be %s" % (id, want))


# ---- what is decided ----


def test_a_permission_is_asked_in_the_inbox_and_approved_once():
    with Opencode() as fake, Daemon(*settings(fake)) as d, d.connect() as c:
        connected(c)
        id = fake.ask("touch a && echo b", patterns=["touch a", "echo b"], folder="/src/ö x&y")
        row = one(c)
        same((row["agent"], row["tool"], row["session_id"], row["origin"], row["kind"]),
             ("opencode", "bash", "ses_1", "/src/ö x&y", "function_call"), "approval")
        same(row["input"], {"command": "touch a && echo b", "patterns": ["touch a", "echo b"]}, "input")
        check(row["id"].endswith("-opencode-" + id), "%r", row["id"])
        decide(c, row)
        same(fake.reply(), (id, {"reply": "once"}), "reply")
        pending(c, 0)
        wait_until(lambda: server(c)["open"] == 0, "nothing open")


def test_a_denial_is_told_with_its_reason():
    with Opencode() as fake, Daemon(*settings(fake)) as d, d.connect() as c:
        connected(c)
        id = fake.ask()
        decide(c, one(c), "deny", comment="not today")
        same(fake.reply(), (id, {"reply": "reject", "message": "not today"}), "reply")


def test_a_grant_answers_the_next_and_opencode_learns_no_rule():
    with Opencode() as fake, Daemon(*settings(fake)) as d, d.connect() as c:
        connected(c)
        first = fake.ask("one")
        decide(c, one(c), grant={"scope": "session"})
        same(fake.reply(), (first, {"reply": "once"}), "the first")
        second = fake.ask("two")
        same(fake.reply(), (second, {"reply": "once"}), "the second, by the grant")
        other = fake.ask("three", session="ses_2")
        same(one(c)["input"]["command"], "three", "another session is asked for")
        decide(c, one(c))
        same(fake.reply()[0], other, "the third")


def test_policies_decide_by_the_command():
    with Opencode() as fake, Daemon(*settings(fake), "--set", "policy.no.verdict=deny", "--set",
                                    "policy.no.input=command=rm *", "--set", "policy.no.comment=never") as d, \
            d.connect() as c:
        connected(c)
        id = fake.ask("rm -rf /")
        same(fake.reply(), (id, {"reply": "reject", "message": "never"}), "reply")


def test_nobody_answers_and_opencode_goes_on_waiting():
    with Opencode() as fake, Daemon(*settings(fake), "--set", "approval.timeout=1") as d, d.connect() as c:
        connected(c)
        id = fake.ask()
        row = one(c)
        becomes(c, row["id"], "expired")
        # What is asked later is answered: nothing about the first is on its way.
        later = fake.ask("later")
        decide(c, wait_until(lambda: [r for r in c.call("approval.list", {"status": "pending"})["approvals"]
                                      if r["input"]["command"] == "later"], "the later one")[0])
        same(fake.reply()[0], later, "the only reply")
        check(id in fake.open, "it still waits in opencode")


# ---- asked twice, answered elsewhere ----


def test_the_same_id_is_one_approval():
    with Opencode() as fake, Daemon(*settings(fake)) as d, d.connect() as c:
        connected(c)
        id = fake.ask()
        row = {k: v for k, v in fake.open[id].items() if k != "directory"}
        one(c)
        fake.tell("permission.asked", row)
        last = fake.ask("last")
        rows = pending(c, 2)
        same(sorted(r["input"]["command"] for r in rows), ["last", "touch it"], "commands")
        for r in rows:
            decide(c, r)
        same({fake.reply()[0], fake.reply()[0]}, {id, last}, "replies")


def test_what_is_answered_elsewhere_is_withdrawn():
    with Opencode() as fake, Daemon(*settings(fake)) as d, d.connect() as c:
        connected(c)
        id = fake.ask()
        row = one(c)
        fake.answer(id)
        becomes(c, row["id"], "superseded")
        same(c.call("approval.get", {"id": row["id"]})["comment"], "decided in the agent's own dialog", "comment")


def test_a_decision_that_comes_too_late_is_no_harm():
    with Opencode() as fake, Daemon(*settings(fake)) as d, d.connect() as c:
        connected(c)
        id = fake.ask()
        row = one(c)
        with fake.lock:
            del fake.open[id]  # answered, and its event not sent yet
        decide(c, row)
        wait_until(lambda: server(c)["open"] == 0, "it to be forgotten")
        same(server(c)["state"], "connected", "state")


def test_a_session_that_is_over_waits_for_nothing():
    with Opencode() as fake, Daemon(*settings(fake)) as d, d.connect() as c:
        connected(c)
        fake.ask("mine")
        fake.ask("theirs", session="ses_2")
        rows = {r["input"]["command"]: r["id"] for r in pending(c, 2)}
        fake.tell("session.idle", {"sessionID": "ses_1"})
        becomes(c, rows["mine"], "superseded")
        same(status(c, rows["theirs"]), "pending", "the other session's")


# ---- connections ----


def test_what_was_asked_before_the_connection_is_found_in_its_list():
    with Opencode(password="geheim") as fake:
        id = fake.ask(tell=False)
        with Daemon(*settings(fake, "password_env=OC_PASSWORD"), env={"OC_PASSWORD": "geheim"}) as d, d.connect() as c:
            row = one(c)
            same(row["origin"], fake.folder, "folder")
            decide(c, row)
            same(fake.reply()[0], id, "reply")
            check(b"geheim" not in d.log(), "the password is in the log")
            same([a for p, _, a in fake.asked if p == "/global/health"][0], None, "password to an unknown server")


def test_a_restart_goes_on_with_the_same_approval():
    with Folder() as root, Opencode() as fake:
        with Daemon(*settings(fake), root=root.path) as d, d.connect() as c:
            connected(c)
            kept = fake.ask("kept", folder="/src/other")
            gone = fake.ask("gone", folder="/src/third")
            ids = {r["input"]["command"]: r["id"] for r in pending(c, 2)}
        with fake.lock:
            del fake.open[gone]
        with Daemon(*settings(fake), root=root.path) as d, d.connect() as c:
            becomes(c, ids["gone"], "superseded")
            same(one(c)["id"], ids["kept"], "the same approval")
            decide(c, one(c))
            same(fake.reply(), (kept, {"reply": "once"}), "reply")


def test_what_was_decided_while_nobody_could_tell_is_told_later():
    with Folder() as root, Opencode() as fake:
        with Daemon(*settings(fake), root=root.path, exit_status=-signal.SIGKILL) as d, d.connect() as c:
            connected(c)
            id = fake.ask()
            row = one(c)
            fake.stop()
            away(c)
            decide(c, row)
            d.signal(signal.SIGKILL)
            d.wait_exit()
        fake.start()
        with Daemon(*settings(fake), root=root.path):
            same(fake.reply(), (id, {"reply": "once"}), "reply")


def test_a_server_that_comes_back_without_them_has_them_withdrawn():
    with Opencode() as fake, Daemon(*settings(fake)) as d, d.connect() as c:
        connected(c)
        kept, gone = fake.ask("kept"), fake.ask("gone")
        ids = {r["input"]["command"]: r["id"] for r in pending(c, 2)}
        fake.stop()
        away(c)
        same(len(pending(c, 2)), 2, "they wait")
        with fake.lock:
            del fake.open[gone]
        fake.start()
        becomes(c, ids["gone"], "superseded")
        decide(c, one(c))
        same(fake.reply(), (kept, {"reply": "once"}), "reply")
        same(d.log().count(b"agent server unreachable"), 1, "lines about the outage")


def test_a_server_that_stays_away_has_them_withdrawn():
    with Opencode() as fake, Daemon(*settings(fake, "away_time=1")) as d, d.connect() as c:
        connected(c)
        fake.ask()
        row = one(c)
        fake.stop()
        becomes(c, row["id"], "superseded")
        same(c.call("approval.get", {"id": row["id"]})["comment"], "the agent server is unreachable", "comment")


def test_a_stream_that_ends_is_opened_again():
    with Opencode() as fake, Daemon(*settings(fake)) as d, d.connect() as c:
        connected(c)
        fake.wait_streams()
        fake.cut()
        missed = fake.ask("missed", tell=False)
        decide(c, one(c))
        same(fake.reply()[0], missed, "reply")


def test_a_stream_that_falls_silent_is_given_up():
    with Opencode() as fake, Daemon(*settings(fake, "idle_timeout=1")) as d, d.connect() as c:
        connected(c)
        away(c, "timed out waiting for data")
        connected(c)


def test_a_reply_that_fails_is_sent_again():
    with Opencode() as fake, Daemon(*settings(fake), announced=["the server rejected the reply (HTTP 503)"]) as d, d.connect() as c:
        connected(c)
        id = fake.ask()
        row = one(c)
        fake.broken = "reply"
        decide(c, row)
        away(c, "HTTP 503")
        fake.broken = None
        same(fake.reply(), (id, {"reply": "once"}), "reply")


# ---- bad servers ----


def bad(broken, words, warns=True, *more):
    with Opencode() as fake:
        fake.broken = broken
        with Daemon(*settings(fake, *more), announced=[words] if warns else []) as d, d.connect() as c:
            away(c, words)
            fake.broken = None
            fake.ask()
            connected(c)
            one(c)


def test_a_redirect_is_not_followed():
    bad("redirect", "HTTP 302")


def test_another_kind_of_server_is_told_apart():
    bad("elsewhere", "check that the server is opencode")


def test_a_home_that_cannot_be_read():
    bad("path", "cannot read the server's /path")


def test_a_list_that_is_none():
    bad("list", "cannot read the server's /permission: the response is not a list")


def test_a_list_without_end():
    bad("huge list", "exceeds its size limit", False)


def test_a_head_without_end():
    bad("endless head", "exceeds its size limit", False)


def test_a_server_that_says_nothing():
    bad("silent", "timed out waiting for data", False, "idle_timeout=1")


def test_a_wrong_password_is_said_once_and_not_shown():
    with Opencode(password="right") as fake, Folder() as folder:
        with open(folder("password"), "w") as f:
            os.chmod(folder("password"), 0o600)
            f.write("wrong-secret\n")
        with Daemon(*settings(fake, "password_file=" + folder("password")), clock=0,
                    announced=["the server rejected the password (HTTP 401)"]) as d, d.connect() as c:
            away(c, "the server rejected the password")
            n = len(fake.asked)
            d.hurry(lambda: len(fake.asked) > n + 2, "more tries")
            same(d.log().count(b"rejected the password"), 1, "lines")
            check(b"wrong-secret" not in d.log(), "the password is in the log")
            with open(folder("password"), "w") as f:
                f.write("right\n")
            connected(c, d)


def test_a_server_that_wants_a_password_is_said_to():
    with Opencode(password="right") as fake, \
            Daemon(*settings(fake), announced=["the server requires a password"]) as d, d.connect() as c:
        away(c, "the server requires a password")


def test_garbage_ends_the_connection_and_nothing_else():
    garbage = [b"data: {\n\n", b"data: []\n\n", b'data: {"payload":{}}\n\n', b"data: \xff\xfe\n\n",
               b"data: " + b"x" * (9 << 20) + b"\n\n"]
    with Opencode() as fake, Daemon(*settings(fake), clock=0,
                                   announced=["invalid event from opencode", "a line longer than"]) as d, d.connect() as c:
        for text in garbage:
            connected(c, d)
            fake.wait_streams()
            fake.send(text)
            away(c)
        connected(c, d)
        fake.ask()
        decide(c, one(c))
        same(fake.reply()[1], {"reply": "once"}, "reply")


def test_what_cannot_be_shown_is_left_to_opencode():
    with Opencode() as fake, Daemon(*settings(fake)) as d, d.connect() as c:
        connected(c)
        for row in ({}, {"id": 7}, {"id": "per_../../x", "sessionID": "s", "permission": "bash"},
                    {"id": "per_" + "x" * 100, "sessionID": "s", "permission": "bash"},
                    {"id": "per_1", "sessionID": [], "permission": "bash"},
                    {"id": "per_1", "sessionID": "s", "permission": ""}):
            fake.tell("permission.asked", row)
        for row in ({"id": "que_1", "sessionID": "s", "questions": []},
                    {"id": "que_1", "sessionID": "s", "questions": [{"question": "?"}] * 9},
                    {"id": "que_1", "sessionID": "s", "questions": [{"header": "?"}]},
                    {"id": "que_1", "sessionID": "s", "questions": "?"}):
            fake.tell("question.asked", row)
        fake.tell("permission.replied", {})
        fake.tell("session.idle", None)
        fake.tell("message.part.updated", {"part": 3})
        fake.ask("last", metadata=[1, 2], patterns={"a": "b"})
        same(one(c)["input"], {"patterns": {"a": "b"}}, "the only one")
        same(server(c)["state"], "connected", "state")


def test_more_than_are_mirrored_wait_in_opencode():
    with Opencode() as fake, Daemon(*settings(fake)) as d, d.connect() as c:
        connected(c)
        ids = {fake.ask("n%d" % i) for i in range(70)}
        told = set()
        for n in (64, 6):
            for row in pending(c, n):
                decide(c, row)
            for _ in range(n):
                told.add(fake.reply()[0])
        same(told, ids, "all were answered")


# ---- questions ----


QUESTIONS = ({"question": "Which colour?", "header": "Colour",
              "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]},
             {"question": "Which sizes?", "header": "Size", "multiple": True,
              "options": [{"label": "S", "description": ""}, {"label": "L", "description": "large"}]})


def test_questions_are_asked_one_by_one_and_answered_together():
    with Opencode() as fake, Daemon(*settings(fake)) as d, d.connect() as c:
        connected(c)
        id = fake.ask_question(*QUESTIONS)
        rows = {r["input"]["header"]: r for r in pending(c, 2)}
        same(rows["Colour"]["input"], {"msg": "Which colour?\n- Red: warm\n- Blue: cold", "header": "Colour",
                                       "choices": ["Red", "Blue"]}, "the first")
        same(rows["Size"]["kind"], "human_contact", "kind")
        decide(c, rows["Size"], "respond", comment="S, L")
        same(one(c)["id"], rows["Colour"]["id"], "the other")
        decide(c, rows["Colour"], "respond", comment=" Blue\n")
        same(fake.reply(), (id, {"answers": [["Blue"], ["S", "L"]]}), "reply")


def test_a_question_may_be_answered_freely_or_elsewhere():
    with Opencode() as fake, Daemon(*settings(fake)) as d, d.connect() as c:
        connected(c)
        id = fake.ask_question(QUESTIONS[0])
        decide(c, one(c), "respond", comment="Green, rather")
        same(fake.reply(), (id, {"answers": [["Green, rather"]]}), "reply")
        id = fake.ask_question(*QUESTIONS)
        rows = pending(c, 2)
        with fake.lock:
            row = fake.open.pop(id)
        fake.say_answered(row, "question", "reject", {})
        for r in rows:
            becomes(c, r["id"], "superseded")


# ---- what people see ----


def test_koine_agents_and_koine_status_show_servers():
    with Opencode() as fake, Opencode(password="right") as other, \
            Daemon(*settings(fake), *settings(other, name="far"), announced=["the server requires a password"]) as d, \
            d.connect() as c:
        env = of(d)
        connected(c)
        wait_until(lambda: server(c, "far")["fault"] == "password", "the refusal")
        fake.ask()
        one(c)
        lines = koine(env, "agents").out.splitlines()
        at = lines.index("")
        same(lines[at + 1].split(), ["SERVER", "KIND", "OPEN", "STATE", "URL", "SAYS"], "titles")
        same(lines[at + 2].split(), ["opencode", "opencode", "1", "connected", fake.url], "the first")
        same(lines[at + 3].split(maxsplit=5),
             ["far", "opencode", "0", "unreachable", other.url, "the server requires a password (HTTP 401)"], "the other")
        got = json.loads(koine(env, "agents", "--json").out)
        same([a["name"] for a in got if "state" not in a], ["recall"], "agents")
        same([(s["name"], s["state"], s["fault"]) for s in got if "state" in s],
             [("opencode", "connected", None), ("far", "unreachable", "password")], "servers")
        shown = koine(env, "status").out.splitlines()
        same([line.split(maxsplit=1)[1] for line in shown if line.startswith("server")],
             ["opencode, connected", "far, unreachable: the server requires a password (HTTP 401)"], "status")
        same(json.loads(koine(env, "status", "--json").out)["agent_servers"],
             c.call("agent.server.list")["servers"], "the same for programs")
        fake.stop()
        same(away(c)["fault"], "gone", "one that has ended")


def test_without_servers_nobody_speaks_of_them():
    with Daemon() as d:
        same([line for line in koine(of(d), "status").out.splitlines() if line.startswith("server")], [], "status")
        check("" not in koine(of(d), "agents").out.splitlines(), "a second table")
        same([a["name"] for a in json.loads(koine(of(d), "agents", "--json").out)], ["recall"], "agents alone")


# ---- what else ----


def test_the_agent_does_not_answer_itself():
    with Opencode() as fake, Daemon(*settings(fake), "--set", "approval.agents_decide=no") as d, d.connect() as c:
        connected(c)
        fake.ask()
        row = one(c)
        try:
            decide(c, row)
        except Failure as e:
            check("an agent that requests approvals" in str(e), "%r", e)
        else:
            raise Failure("the process that has opencode's port has approved")
        same(status(c, row["id"]), "pending", "still")


def test_what_agents_do_is_logged_as_hooks_do_it():
    with Opencode() as fake, Daemon(*settings(fake)) as d, d.connect() as c:
        connected(c)
        fake.tell("session.created", {"sessionID": "ses_9", "info": {}})
        part = {"type": "tool", "sessionID": "ses_9", "tool": "bash", "callID": "call_9"}
        fake.tell("message.part.updated", {"part": {**part, "state": {"status": "running"}}})
        fake.tell("message.part.updated", {"part": {**part, "state": {"status": "completed"}}})
        fake.tell("session.error", {"sessionID": "ses_9", "error": {"name": "E", "data": {"message": "no model"}}})
        fake.tell("session.deleted", {"sessionID": "ses_9"})
        def look():
            events = c.call("event.list", {"session_id": "ses_9"})["events"]
            return len(events) == 4 and events
        events = wait_until(look, "four events")
        same([e["type"] for e in events], ["agent.started", "agent.tool", "agent.stopped", "agent.ended"], "types")
        same(events[1]["data"], {"agent": "opencode", "session_id": "ses_9", "folder": "/src/app", "tool": "bash",
                                 "tool_use_id": "call_9"}, "data")
        same(events[2]["data"]["text"], "no model", "why it stopped")


def test_a_reload_follows_the_settings():
    with Opencode() as one_fake, Opencode() as other, Folder() as folder:
        def write(*servers):
            with open(folder("koine.conf"), "w") as f:
                for name, fake in servers:
                    f.write("[agent-server %s]\nkind = opencode\nurl = %s/\n" % (name, fake.url))
        write(("a", one_fake))
        with Daemon("--config", folder("koine.conf")) as d, d.connect() as c:
            connected(c, name="a")
            one_fake.ask("first")
            row = one(c)
            write(("a", one_fake), ("b", other))
            c.call("daemon.reload")
            connected(c, name="b")
            other.ask("second")
            second = [r for r in pending(c, 2) if r["agent"] == "b"][0]
            write(("b", other))
            c.call("daemon.reload")
            same([s["name"] for s in c.call("agent.server.list")["servers"]], ["b"], "servers")
            becomes(c, row["id"], "superseded")
            write(("b", one_fake))
            c.call("daemon.reload")
            becomes(c, second["id"], "superseded")


def test_check_says_what_is_wrong():
    def refused(words, *pairs):
        args = [a for p in pairs for a in ("--set", "agent-server.x." + p)]
        with Folder() as root:
            done = run_koined("--root", root.path, "--check", *args)
        said = (done.stdout + done.stderr).decode()
        check(done.returncode != 0 and words in said, "%r", said[-500:])
    url = "url=http://127.0.0.1:4096"
    refused("requires kind", url)
    refused("requires url", "kind=opencode")
    refused("requires a loopback address", "kind=opencode", "url=http://example.org:4096")
    refused("requires a loopback address", "kind=opencode", "url=http://127.0.0.1.example.org")
    refused("without a password", "kind=opencode", "url=http://a:b@127.0.0.1:4096")
    refused("only one of", "kind=opencode", url, "password_env=A", "password_file=/b")
    refused("must not contain a colon", "kind=opencode", url, "username=a:b")
    with Folder() as root:
        done = run_koined("--root", root.path, "--check", "--set", "agent-server.opencode." + url, "--set",
                          "agent-server.opencode.password_env=OC_PASSWORD")
        check(b"would use     agent server opencode (opencode http://127.0.0.1:4096)  not available: environment variable OC_PASSWORD is not set"
              in done.stdout, "%r", done.stdout[:2000])
        same(done.returncode, 0, "it can start")
        done = run_koined("--root", root.path, "--check", env={
            "KOINE_AGENT_SERVER_OPENCODE_URL": "http://[::1]:4096", "KOINE_AGENT_SERVER_KIND": "recall"})
        check(b"would use     agent server opencode (opencode http://[::1]:4096)  ok" in done.stdout, "%r", done.stdout[:2000])
        check(b"would use     agent server (recall)" in done.stdout, "an agent called server: %r", done.stdout[:2000])


if __name__ == "__main__":
    main(globals())
