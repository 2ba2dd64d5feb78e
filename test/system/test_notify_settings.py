#!/usr/bin/env python3
"""Notifiers' secrets and settings, and koine notify."""
import json
import os
import subprocess

from harness import KOINE, PATIENCE, Daemon, Folder, check, main, run_koined, same, wait_until
from push_server import Ntfy, Telegram
from test_chat_cli import of
from test_deciders import Agent
from test_notify import FAILING, TOPIC, World, kind_of, secret, servers, sets

# ---- secrets ----


def test_secrets_are_shown_nowhere():
    for server in (Ntfy(key="tk_verysecretkey"), Telegram()):
        hidden = [TOPIC, "tk_verysecretkey", Telegram.KEY, Telegram.KEY.split(":")[1]]
        with World(server, announced=[FAILING]) as w:
            w.server.trouble["send"].append((500, b""))
            a = w.ask()
            m = w.server.arrived(1)
            if kind_of(server) == "ntfy":
                hidden += [w.server.button(m, x)["body"] for x in ("Approve", "Deny")]
                check("tk_verysecretkey" not in json.dumps(m), "the key is in the message")
            w.server.press(m, "Approve")
            w.decided(a["id"])
            shown = [w.d.log(), json.dumps(w.c.call("notify.list")).encode(),
                     json.dumps(w.c.call("event.list", {"limit": 100})).encode(),
                     run_koined("--check", *w.d.args, "--root", w.d.root).stdout]
            for text in shown:
                for secret_text in hidden:
                    check(secret_text.encode() not in text, "%s is in %r", secret_text, text)


def test_a_server_that_repeats_the_key_is_not_quoted():
    """Wherever its words are cut."""
    for kind in ("send", "read"):
        for n in (0, 95, 110, 130, 139):
            said = {"ok": False, "error_code": 500, "description": "x" * n + Telegram.KEY + " is wrong: " + Telegram.KEY}
            server = Telegram()
            server.trouble[kind].append((500, json.dumps(said).encode()))
            with World(server, announced=[FAILING]) as w:
                w.ask()
                w.arrived(1)
                error = wait_until(lambda w=w: w.state().get("error"), "what went wrong")
                for text in (error, w.d.log().decode()):
                    for at in range(len(Telegram.KEY) - 5):
                        check(Telegram.KEY[at:at + 6] not in text, "a part of the key is in %r", text)


def test_a_secret_that_cannot_be_read():
    with Folder() as f:
        topic = secret(f.path, "topic", TOPIC)
        os.chmod(topic, 0o644)
        args = sets("phone", kind="ntfy", url="http://127.0.0.1:1", topic_file=topic)
        check(b"would use     notifier phone (ntfy)  error: " in run_koined("--check", *args, "--root",
                                                                f.path).stdout, "--check")
        with Daemon(*args, announced=[FAILING]) as d, d.connect() as c:
            state = c.call("notify.list")["notifiers"][0]
            same(state["state"], "off", "state")
            c.call("approval.create", {"tool": "x"})


# ---- settings ----


def test_wrong_settings_are_refused():
    rows = [
        (dict(), b"kind is required"),
        (dict(kind="pigeon"), b"ntfy, telegram, webhook"),
        (dict(kind="ntfy"), b"topic_file"),
        (dict(kind="telegram", key_env="X"), b"requires chat = NUMBER"),
        (dict(kind="telegram", key_env="X", chat="me"), b"requires chat = NUMBER"),
        (dict(kind="telegram", chat="5"), b"requires key_file or key_env"),
        (dict(kind="telegram", key_env="X", chat="5", user="anna"), b"invalid user 'anna': expected a number"),
        (dict(kind="webhook"), b"requires url"),
        (dict(kind="command"), b"requires command"),
        (dict(kind="command", command="x", url="http://h"), b"url is not valid for kind command"),
        (dict(kind="ntfy", topic_env="T", quiet="22-7"), b"expected HH:MM-HH:MM"),
        (dict(kind="ntfy", topic_env="T", quiet="22:00-07:00", zone="Mars/North"), b"Mars/North"),
        (dict(kind="ntfy", topic_env="T", per_minute="0"), b"per_minute"),
        (dict(kind="ntfy", topic_env="T", on=","), b"invalid 'on': expected 1 to"),
        (dict(kind="ntfy", topic_env="T", on=""), b"invalid 'on': expected 1 to"),
        (dict(kind="ntfy", topic_env="T", url="ftp://h"), b"http://HOST"),
        (dict(kind="ntfy", topic_env="T", link="javascript:1"), b"invalid link"),
        (dict(kind="ntfy", topic_env="T", topic_file="/x"), b"only one of"),
        (dict(kind="ntfy", topic_env="T", condition3="payload.x"),
         b"invalid condition3 'payload.x': expected FIELD OPERATOR VALUE"),
        (dict(kind="ntfy", topic_env="T", condition1="payload.x like y"), b"unknown operator 'like'"),
        (dict(kind="ntfy", topic_env="T", condition1="payload.x gt y"), b"requires a number"),
        (dict(kind="ntfy", topic_env="T", condition1="payload.x matches ("), b"[notify n]"),
    ]
    for settings, words in rows:
        args = sets("n", **settings) or ["--set", "notify.n.on=approval"]
        done = run_koined("--check", *args)
        check(done.returncode != 0 and words in done.stderr + done.stdout, "%r: %r", settings,
              done.stderr[-300:])


# ---- the command line ----


def koine(d, *args):
    return subprocess.run([KOINE, "notifier", *args], env=of(d), capture_output=True,
                          timeout=PATIENCE, check=False)


def test_koine_notify():
    for server in servers():
        with World(server, quiet="00:00-24:00", zone="UTC") as w:
            done = subprocess.Popen([KOINE, "notifier", "test", "phone"], env=of(w.d),
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            m = w.server.arrived(1)
            w.server.press(m, "Deny")
            out, err = done.communicate(timeout=PATIENCE)
            same(done.returncode, 0, "exit code (%r)" % err)
            check(out.startswith(b"Deny was pressed by %s:phone" % kind_of(server).encode()), "%r",
                  out)
            wait_until(lambda m=m: m["changes"], "the change")
            listed = koine(w.d)
            check(b"phone" in listed.stdout and b"quiet" in listed.stdout, "%r", listed)
            none = koine(w.d, "test", "nobody")
            check(none.returncode == 1 and b"notifier not found in the settings: 'nobody'" in none.stderr, "%r", none)
            check(b"press one" in err and b"press one" not in none.stderr, "whom it is sent to: %r, %r", err, none)
            late = koine(w.d, "test", "phone", "--timeout", "1")
            check(late.returncode == 1 and b"no button was pressed" in late.stderr, "%r", late)
            w.server.press(w.server.arrived(2), "Approve")
            wait_until(lambda w=w: w.state()["ignored"] == 1, "a late press")


def test_agents_may_not_test():
    with Ntfy() as server, Folder() as f:
        topic = secret(f.path, "topic", TOPIC)
        with Daemon(*sets("phone", kind="ntfy", url=server.url, topic_file=topic),
                    "--set", "approval.agents_decide=no") as d, Agent(d) as agent:
            agent.call("approval.create", {"tool": "x"})
            server.arrived(1)
            told = agent.call("notify.test", {"name": "phone"})
            same(told["error"]["code"], -32006, "code")
            same(len(server.messages), 1, "messages")
            # A button is no agent, whoever may decide here.
            server.press(server.messages[0], "Deny")
            with d.connect() as c:
                wait_until(lambda: c.call("approval.list", {"status": "denied"})["approvals"],
                           "the decision")


def test_settings_that_are_read_again():
    with Folder() as f, Ntfy() as server:
        topic = secret(f.path, "topic", TOPIC)
        conf = f("koine.conf")

        def write(url):
            with open(conf, "w", encoding="utf-8") as out:
                out.write("[notify phone]\nkind = ntfy\nurl = %s\ntopic_file = %s\n" % (url, topic))

        write("http://127.0.0.1:1")
        with Daemon("--config", conf, announced=[FAILING]) as d, d.connect() as c:
            a = c.call("approval.create", {"tool": "Bash", "input": {"command": "ls"}})
            wait_until(lambda: c.call("notify.list")["notifiers"][0]["failed"] >= 1, "a failure")
            write(server.url)
            c.call("daemon.reload")
            server.press(server.arrived(1), "Approve")
            wait_until(lambda: c.call("approval.get", {"id": a["id"]})["status"] == "approved",
                       "the decision")


if __name__ == "__main__":
    main(globals())
