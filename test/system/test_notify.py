#!/usr/bin/env python3
"""
Approvals and news on a phone: ntfy and Telegram both ways, with a real HTTP server that keeps
their contracts; webhooks and commands; and all that can go wrong on the way.
"""
import contextlib
import hashlib
import hmac
import json
import os
import re
import threading
import time
import urllib.request

from harness import PATIENCE, Daemon, Folder, change_store, check, main, run_koined, same, wait_until
from push_server import Ntfy, Telegram
from test_approvals_screen import HIDDEN
from test_chat_cli import of
from test_hook import PRE, Hook

TOPIC = "koine-secret-topic"
FAILING = "notifier failed"


def secret(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text + "\n")
    os.chmod(path, 0o600)
    return path


def sets(name, **settings):
    return [a for k, v in settings.items() for a in ("--set", "notify.%s.%s=%s" % (name, k, v))]


class World:
    """A push server, a daemon that uses it, and a client."""

    def __init__(self, server, announced=(), env=None, name="phone", clock=0, **settings):
        self.server = server
        self.announced = announced
        self.env = env
        self.clock = clock
        self.name = name
        self.settings = settings

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        with self.stack:
            folder = self.stack.enter_context(Folder())
            self.stack.enter_context(self.server)
            own = dict(url=self.server.url)
            if isinstance(self.server, Ntfy):
                own.update(kind="ntfy", topic_file=secret(folder.path, "topic", TOPIC))
                if self.server.key:
                    own["key_file"] = secret(folder.path, "key", self.server.key)
            else:
                own.update(kind="telegram", chat=self.server.chat, user=self.server.user,
                           key_file=secret(folder.path, "key", self.server.KEY))
            own.update(self.settings)
            self.d = self.stack.enter_context(Daemon(*sets(self.name, **own), env=self.env, clock=self.clock,
                                                     announced=self.announced))
            self.c = self.d.connect()
            self.stack = self.stack.pop_all()
        return self

    def __exit__(self, *exc):
        return self.stack.__exit__(*exc)

    def ask(self, command="rm -rf build", **more):
        """An approval that waits, without anybody who waits for it."""
        return self.c.call("approval.create", {"tool": "Bash", "agent": "claude",
                                               "input": {"command": command}, **more})

    def get(self, id):
        return self.c.call("approval.get", {"id": id})

    def decided(self, id):
        return self.d.hurry(lambda: (lambda a: a if a["status"] != "pending" else None)(self.get(id)), "a decision")

    def arrived(self, n, step=0.25):
        """The nth message, however many attempts it takes."""
        self.d.hurry(lambda: len(self.server.messages) >= n, "message %d" % n, step)
        return self.server.arrived(n)

    def state(self):
        return self.c.call("notify.list")["notifiers"][0]

    def known(self, n):
        """The nth message, once koined has heard under which number: nobody replies sooner."""
        message = self.server.arrived(n)
        wait_until(lambda: self.state()["sent"] >= n, "the number of message %d" % n)
        return message


def servers():
    return [Ntfy(), Telegram()]


def kind_of(server):
    return "ntfy" if isinstance(server, Ntfy) else "telegram"


def text_of(message):
    return message.get("text") or message["title"] + "\n\n" + message["message"]


# ---- both ways ----


def test_a_hook_is_answered_by_a_button():
    for server in servers():
        for label, word in (("Approve", "allow"), ("Deny", "deny")):
            with World(type(server)()) as w, Hook(of(w.d), PRE) as hook:
                m = w.server.arrived(1)
                check("claude" in text_of(m) and "Bash" in text_of(m), "who and what: %r", m)
                check("command: ls" in text_of(m), "the command: %r", m)
                w.server.press(m, label)
                same(hook.end()["hookSpecificOutput"]["permissionDecision"], word, label)
                a, = w.c.call("approval.list", {"status": "approved" if label == "Approve"
                                                else "denied"})["approvals"]
                who = "ntfy:phone" if kind_of(server) == "ntfy" else "telegram:phone (anna)"
                same(a["decided_by"], who, "decided by")
                same(a["decided_from"]["program"], "notify", "program")
                change = wait_until(lambda m=m: m["changes"], "the message's change")[0]
                check(("Approved by " if label == "Approve" else "Denied by ") + who in
                      text_of(change), "it says who: %r", change)
                check(not change.get("actions") and "reply_markup" not in change, "no buttons")
                same(len(w.server.messages), 1, "messages")
                same(w.state()["answers"], 1, "answers")


def test_a_reply_denies_with_a_comment():
    with World(Telegram()) as w, Hook(of(w.d), PRE) as hook:
        m = w.known(1)
        w.server.reply(m, "use make clean instead\nplease")
        out = hook.end()["hookSpecificOutput"]
        same(out["permissionDecision"], "deny", "decision")
        check("use make clean instead" in out["permissionDecisionReason"], "%r", out)
        change = wait_until(lambda: m["changes"], "the change")[0]
        check("Denied by telegram:phone (anna): use make clean" in change["text"], "%r", change)


def test_a_reply_answers_a_question():
    with World(Telegram()) as w:
        a = w.ask(kind="human_contact", tool="which database?", input={"msg": "which database?"})
        m = w.known(1)
        check("reply_markup" not in m, "a question has no buttons")
        w.server.reply(m, "the small one")
        a = w.decided(a["id"])
        same((a["status"], a["comment"]), ("responded", "the small one"), "answer")


def test_what_was_answered_elsewhere_says_so():
    for server in servers():
        with World(server) as w:
            a = w.ask()
            m = w.server.arrived(1)
            w.c.call("approval.decide", {"id": a["id"], "decision": "deny", "comment": "no"})
            change = wait_until(lambda m=m: m["changes"], "the change")[0]
            check("Denied by human" in text_of(change), "%r", change)
            w.server.press(m, "Approve")
            wait_until(lambda w=w: w.state()["ignored"] == 1, "the press to be ignored")
            same(w.get(a["id"])["status"], "denied", "status")


# ---- what does not count ----


def test_a_button_counts_once():
    with World(Telegram()) as w:
        first, second = w.ask(), None
        m = w.server.arrived(1)
        data = w.server.button(m, "Approve")["callback_data"]
        check("Approved" in w.server.acknowledged(w.server.press(m, "Approve")), "taken")
        same(w.decided(first["id"])["status"], "approved", "status")
        wait_until(lambda: m["changes"], "the change")
        second = w.ask("echo another")
        other = w.server.arrived(2)
        # used, for another approval, tampered with, of the wrong shape
        for bad in (data, data[:-1] + ("0" if data[-1] != "0" else "1"), data[:31], data + "0", "",
                    "x" * 64, "../../..", first["id"], second["id"],
                    w.server.button(other, "Approve")["callback_data"].upper()):
            words = w.server.acknowledged(w.server.press_data(other["message_id"], bad))
            check("no longer valid" in words, "%r: %r", bad, words)
        same(w.get(second["id"])["status"], "pending", "status")
        same(w.state()["ignored"], 10, "ignored")
        w.server.press(other, "Deny")
        same(w.decided(second["id"])["status"], "denied", "and the right one counts")


def test_both_buttons_of_a_message_are_one_decision():
    with World(Ntfy()) as w:
        a = w.ask()
        m = w.server.arrived(1)
        tokens = {w.server.button(m, label)["body"] for label in ("Approve", "Deny")}
        same(len(tokens), 2, "tokens")
        w.server.press(m, "Deny")
        w.server.press(m, "Approve")
        same(w.decided(a["id"])["status"], "denied", "the first")
        wait_until(lambda: w.state()["ignored"] == 1, "the second to be ignored")


def test_only_what_was_shown_can_be_approved():
    for server in servers():
        with World(server) as w:
            a = w.ask("echo harmless")
            m = w.server.arrived(1)
            change_store(w.d.root, "UPDATE approval SET tool = 'Execute' WHERE id = '%s'" % a["id"])
            same(w.get(a["id"])["tool"], "Execute", "what is asked now")
            pressed = w.server.press(m, "Approve")
            wait_until(lambda w=w: w.state()["ignored"] == 1, "it to be ignored")
            if kind_of(server) == "telegram":
                check("has changed since it was shown" in w.server.acknowledged(pressed), "its words")
            same(w.get(a["id"])["status"], "pending", "status")


def test_late_buttons():
    with World(Telegram()) as w:
        a = w.ask()
        m = w.server.arrived(1)
        w.c.call("approval.decide", {"id": a["id"], "decision": "approve"})
        wait_until(lambda: m["changes"], "the change")
        words = w.server.acknowledged(w.server.press(m, "Approve"))
        check("no longer valid" in words, "%r", words)
    with World(Telegram()) as w:
        a = w.ask(timeout=1)
        m = w.server.arrived(1)
        change = wait_until(lambda: m["changes"], "its end")[0]
        check("Timed out" in change["text"], "%r", change)
        w.server.acknowledged(w.server.press(m, "Approve"))
        same(w.get(a["id"])["status"], "expired", "status")


def test_other_chats_and_users_do_not_count():
    with World(Telegram()) as w:
        a = w.ask()
        m = w.server.arrived(1)
        w.server.press(m, "Approve", user=666)
        w.server.press(m, "Approve", chat=4711)
        w.server.reply(m, "yes", user=666)
        w.server.reply(m, "yes", chat=4711)
        w.server.reply({"message_id": 999999}, "no")
        w.server.press(m, "Deny")
        a = w.decided(a["id"])
        same((a["status"], a.get("comment")), ("denied", None), "only the last")


def test_an_update_counts_once():
    """However often a server tells it."""
    with World(Telegram()) as w:
        for n, (label, status) in enumerate((("Approve", "approved"), ("Deny", "denied")), 1):
            a = w.ask()
            w.server.press(w.server.arrived(n), label)
            same(w.decided(a["id"])["status"], status, label)
            w.server.repeats = True
        same((w.state()["answers"], w.state()["ignored"]), (2, 0), "answers, and what was ignored")


def test_only_the_second_topic_counts():
    with World(Ntfy()) as w:
        a = w.ask()
        m = w.server.arrived(1)
        token = w.server.button(m, "Approve")["body"]
        reply_topic = w.server.button(m, "Approve")["url"].rsplit("/", 1)[1]
        check(reply_topic != TOPIC and len(reply_topic) >= 32, "a secret topic: %r", reply_topic)
        w.server.publish(TOPIC, token)
        w.server.publish("another", token)
        w.server.publish(reply_topic, "nonsense")
        wait_until(lambda: w.state()["ignored"] == 1, "nonsense")
        # Nor does what comes by it and is of another, or no message.
        for other in ({"topic": TOPIC}, {"event": "poll_request"}, {"message": "more nonsense"}):
            with w.server.changed:
                w.server.topics[reply_topic].append({"id": "x" * 12, "time": int(time.time()), "event": "message",
                                                     "topic": reply_topic, "message": token, **other})
                w.server.changed.notify_all()
        wait_until(lambda: w.state()["ignored"] == 2, "more nonsense")
        same(w.get(a["id"])["status"], "pending", "status")
        w.server.press(m, "Approve")
        same(w.decided(a["id"])["status"], "approved", "status")


# ---- what is shown ----


def test_the_whole_command_is_shown_and_nothing_is_interpreted():
    nasty = "echo '<b>*x* _y_ [a](http://e)</b>'\nsecond: line\x1b[31m\u202eevil\u200b\x00end"
    for server in servers():
        with World(server) as w:
            w.ask(nasty, input={"command": nasty, "timeout": 5, "deep": {"a": ["\x07", None]}})
            text = text_of(w.server.arrived(1))
            for part in ("<b>*x* _y_ [a](http://e)</b>", "\n    second: line", "\\x1b[31m",
                         "\\u{202e}evil\\u{200b}\\x00end", "timeout: 5", 'deep: {"a":["\\u0007",null]}'):
                check(part in text, "%r is not in %r", part, text)
            for bad in "\x1b\u202e\u200b\x00":
                check(bad not in text, "%r is in %r", bad, text)
            w.ask("".join("l%ss " % char for char in HIDDEN.values()) + "done \u2714\ufe0f")
            text = text_of(w.server.arrived(2))
            for name, char in HIDDEN.items():
                shown = "\\x%02x" % ord(char) if ord(char) < 0x80 else "\\u{%x}" % ord(char)
                check("l%ss" % char not in text and "l%ss" % shown in text, "%s: %r", name, text)
            check("done \u2714\ufe0f" in text, "a sign: %r", text)


def test_names_are_text_too_and_are_cut_with_a_mark():
    hidden = "\u202e\u200b" * 40
    for server in servers():
        with World(server) as w:
            w.ask("x" * 5000, agent="a" * 200, origin="/src" + "/long" * 60, session_id="\u202e\x1b[2J" * 9,
                  input={"k" * 300: "x" * 5000})
            text = text_of(w.server.arrived(1))
            for pattern in ("a{70,}… wants to use Bash", "\nk{300}: xxx", "(/long)+[/long]*…, on ",
                            r", session \\u{202e}\\x1b\[2J"):
                check(re.search(pattern, text), "%r is not in %r", pattern, text)
            for bad in "\x1b\u202e\u200b":
                check(bad not in text, "%r is in %r", bad, text)
            # However much each of them grows, all of it fits, and so does what came of it.
            a = w.ask("", agent=hidden, origin=hidden, tool=hidden, session_id=hidden, input={hidden: "\u202e" * 3000})
            m = w.server.arrived(2)
            w.c.call("approval.decide", {"id": a["id"], "decision": "deny", "comment": "é" + "\u202e" * 500})
            change = text_of(wait_until(lambda m=m: m["changes"], "its change")[0])
            check("Denied by human" in change and change.count("…") >= 3, "%r", change[-900:])


def test_what_is_too_long_says_so():
    for server in servers():
        with World(server, link="https://desk.example/koine") as w:
            a = w.ask("é" * 40000)
            m = w.server.arrived(1)
            check("TRUNCATED: this message shows the first 3000 of 80009 bytes" in text_of(m) or
                  "TRUNCATED: this message shows the first 2999 of 80009 bytes" in text_of(m), "%r",
                  text_of(m)[-300:])
            check("https://desk.example/koine" in json.dumps(m), "the link")
            w.server.press(m, "Deny")
            same(w.decided(a["id"])["status"], "denied", "status")


def test_a_link_is_only_there_if_it_is_set():
    with World(Ntfy()) as w:
        w.ask()
        check("click" not in w.server.arrived(1), "no link")


# ---- servers that fail ----


def test_a_server_that_fails_for_a_while():
    def hang_up(h):
        h.connection.close()
        h.close_connection = True

    for server in servers():
        with World(server, announced=[FAILING]) as w:
            w.server.trouble["send"] += [(500, b"oops"), hang_up,
                                         (429, {"ok": False, "parameters": {"retry_after": 1}},
                                          [("Retry-After", "1")])]
            a = w.ask()
            m = w.arrived(1)
            same(w.server.count("send"), 4, "attempts")
            state = w.state()
            same((state["sent"], state["dropped"], state["state"]), (1, 0, "ok"), "state")
            # A kept connection that is closed at once is tried again without a word.
            check(state["failed"] in (2, 3), "failed: %r", state)
            w.server.press(m, "Approve")
            same(w.decided(a["id"])["status"], "approved", "status")


def test_429_is_waited_for():
    for server in servers():
        with World(server, announced=[FAILING]) as w:
            w.server.trouble["send"].append(
                (429, {"ok": False, "error_code": 429, "parameters": {"retry_after": 300}},
                 [("Retry-After", "300")] if kind_of(server) == "ntfy" else ()))
            w.ask()
            w.arrived(1, step=10)
            uptime = w.c.call("daemon.status")["uptime_seconds"]
            check(uptime >= 300, "it came after %d s", uptime)


def test_a_server_that_says_no_is_not_asked_again():
    for server in servers():
        with World(server, announced=[FAILING]) as w:
            w.server.trouble["send"].append((403, {"ok": False, "description": "bot was blocked"}))
            a = w.ask()
            wait_until(lambda w=w: w.state()["dropped"] == 1, "it to be dropped")
            state = w.state()
            same(state["state"], "failing", "state")
            check("403" in state["error"] or "blocked" in state["error"], "%r", state)
            same(w.get(a["id"])["status"], "pending", "it still waits")
            second = w.ask("another")
            m = w.server.arrived(1)
            check("1 earlier messages omitted" in text_of(m), "%r", m)
            w.server.press(m, "Deny")
            same(w.decided(second["id"])["status"], "denied", "status")


def test_nobody_is_led_elsewhere():
    """A message and its buttons are for the server of the settings, wherever that points."""
    for status in (301, 302, 307, 308):
        for server in (Ntfy(key="tk_key"), Telegram()):
            with Hooked() as other, World(server, announced=[FAILING]) as w:
                there = [("Location", other.url + "/elsewhere")]
                w.server.trouble["send"].append((status, b"", there))
                w.server.trouble["read"].append((status, b"", there))
                w.ask()
                wait_until(lambda w=w: w.state()["failed"] >= 1, "a failure")
                a = w.ask("another")
                # A retry of the first may arrive before it.
                message = w.d.hurry(lambda w=w: [m for m in w.server.messages if "another" in json.dumps(m)], "its message")[0]
                w.server.press(message, "Approve")
                same(w.decided(a["id"])["status"], "approved", "the next one")
                same(other.asked, [], "what came elsewhere")


def test_garbage_and_huge_answers():
    huge = b"x" * (2 << 20)
    for server in servers():
        # Before koined is there: it reads as soon as it is.
        server.trouble["read"] += [(200, b"\xff\xfe garbage\n{]\n"), (200, huge), (200, b"[" * 100000), (502, b"<html>")]
        server.trouble["send"] += [(200, huge)]
        with World(server, announced=[FAILING]) as w:
            a = w.ask()
            m = w.arrived(1)
            w.server.press(m, "Approve")
            same(w.decided(a["id"])["status"], "approved", "status")
            w.d.hurry(lambda: w.server.count("read") >= 2, "the next read")
            w.d.alive()


def test_telegram_garbage_for_a_message_is_a_failure():
    with World(Telegram(), announced=[FAILING]) as w:
        w.server.trouble["send"].append((200, b'{"ok":'))
        w.ask()
        wait_until(lambda: w.state()["failed"] == 1, "a failure")
        check("invalid response from Telegram" in w.state()["error"], "%r", w.state())


def test_a_server_that_is_down():
    with Folder() as f:
        topic = secret(f.path, "topic", TOPIC)
        with Daemon(*sets("phone", kind="ntfy", url="http://127.0.0.1:1", topic_file=topic),
                    announced=[FAILING]) as d, d.connect() as c:
            a = c.call("approval.create", {"tool": "Bash", "input": {"command": "ls"}})
            wait_until(lambda: c.call("notify.list")["notifiers"][0]["failed"] >= 1, "a failure")
            c.call("approval.decide", {"id": a["id"], "decision": "approve"})
            wait_until(lambda: c.call("notify.list")["notifiers"][0]["waiting"] == 0,
                       "nothing to wait")


def test_a_slow_server_holds_nobody_up():
    gate = threading.Event()

    def slow(h):
        gate.wait(PATIENCE)
        h.answer(500, b"")

    for server in servers():
        gate.clear()
        with World(server, announced=[FAILING]) as w:
            w.server.trouble["send"].append(slow)
            a = w.ask()
            wait_until(lambda w=w: w.server.count("send") == 1, "the attempt")
            begun = time.monotonic()
            w.c.ping()
            check(time.monotonic() - begun < 5, "a ping took %.1f s", time.monotonic() - begun)
            # Decided meanwhile: nobody is asked about it any more.
            w.c.call("approval.decide", {"id": a["id"], "decision": "approve"})
            gate.set()
            wait_until(lambda w=w: w.state()["failed"] == 1 and w.state()["waiting"] == 0, "its end")
            same(w.server.messages, [], "messages")


def test_answers_given_while_the_stream_was_broken():
    """ntfy keeps what came meanwhile; so does Telegram. What was read before is not read again."""
    for server in servers():
        with World(server, announced=[FAILING]) as w:
            for n in (1, 2):
                a = w.ask()
                m = w.server.arrived(n)
                before = w.server.count("read")
                w.server.trouble["read"] += [(503, b"")] * 2
                if kind_of(server) == "telegram":
                    w.server.update()  # ends the question that is held
                else:
                    with w.server.changed:  # ends the stream
                        w.server.closing = True
                        w.server.changed.notify_all()
                    w.d.hurry(lambda w=w, n=before: w.server.count("read") > n, "the next stream")
                    w.server.closing = False
                w.server.press(m, "Approve")
                same(w.decided(a["id"])["status"], "approved", "status")
            same((w.state()["answers"], w.state()["ignored"]), (2, 0), "answers, and what was read again")


def test_an_older_ntfy_gets_a_second_message():
    """It does not know that a message can take another's place."""
    with World(Ntfy(version=(2, 15))) as w:
        a = w.ask()
        w.server.press(w.server.arrived(1), "Approve")
        same(w.decided(a["id"])["status"], "approved", "status")
        second = w.server.arrived(2)
        check("Approved by ntfy:phone" in text_of(second) and not second.get("actions"), "%r", second)
        same(second["priority"], 1, "nobody is woken by it")


def test_a_change_whose_answer_was_lost():
    """Telegram refuses to make it again, and it is made."""
    with World(Telegram(), announced=[FAILING]) as w:
        w.server.trouble["edited"].append((502, b"<html>"))
        a = w.ask()
        m = w.server.arrived(1)
        w.server.press(m, "Deny")
        same(w.decided(a["id"])["status"], "denied", "status")
        wait_until(lambda: w.server.count("send") == 3, "the second attempt")
        wait_until(lambda: w.state()["state"] == "ok", "it to be well")
        same((len(m["changes"]), w.state()["failed"]), (1, 1), "changes")


def test_a_message_that_was_deleted_on_the_phone():
    with World(Telegram()) as w:
        a = w.ask()
        m = w.server.arrived(1)
        w.server.messages.remove(m)
        w.c.call("approval.decide", {"id": a["id"], "decision": "approve"})
        wait_until(lambda: w.server.count("send") == 2, "the attempt")
        w.ask("another")
        w.server.arrived(1)
        same((w.state()["state"], w.state()["failed"]), ("ok", 0), "state")


def test_another_program_reads_the_same_bot():
    """Telegram ends the older question: koined says so, goes on, and hears again once it is alone."""
    with World(Telegram(), announced=[FAILING]) as w:
        a = w.ask()
        m = w.server.arrived(1)

        def read():
            body = {"timeout": 0, "allowed_updates": ["callback_query", "message"]}
            with contextlib.suppress(OSError), urllib.request.urlopen(urllib.request.Request(
                    "%s/bot%s/getUpdates" % (w.server.url, Telegram.KEY),
                    data=json.dumps(body).encode()), timeout=PATIENCE) as r:
                r.read()

        wait_until(lambda: w.server.count("read") >= 1, "koined to read")
        read()
        state = wait_until(lambda: (lambda s: s if s["state"] == "failing" else None)(w.state()),
                           "its words")
        check("Conflict: terminated by other getUpdates request; make sure that only one bot instance"
              in state["error"], "%r", state)
        w.server.press(m, "Approve")
        same(w.decided(a["id"])["status"], "approved", "status")
        wait_until(lambda: w.state()["state"] == "ok", "it to be well")


# ---- when, and how often ----


def test_a_rate():
    with World(Ntfy(), per_minute=2) as w:
        ids = [w.ask("echo %d" % i)["id"] for i in range(4)]
        w.server.arrived(2)
        wait_until(lambda: w.state()["waiting"] == 2, "two to wait")
        # What is decided meanwhile is never sent.
        w.c.call("approval.decide", {"id": ids[2], "decision": "approve"})
        wait_until(lambda: w.state()["waiting"] == 1, "one to wait")
        same(len(w.server.messages), 2, "messages")


def test_quiet_hours():
    at = time.gmtime()
    noon = (12 - at.tm_hour) * 3600 - at.tm_min * 60 - at.tm_sec
    for hours, quiet, sent in ((0, "11:00-13:00", False), (0, "13:00-11:00", True), (12, "22:00-07:00", False)):
        with World(Ntfy(), clock=noon + hours * 3600, quiet=quiet, zone="UTC") as w:
            w.ask()
            if sent:
                w.server.arrived(1)
                same(w.state()["state"], "ok", "state")
                continue
            wait_until(lambda w=w: w.state()["waiting"] == 1, "it to wait")
            same(w.state()["state"], "quiet", "state")
            w.d.settle()
            same(w.server.messages, [], "messages")


def test_one_message_for_a_task():
    with World(Ntfy(), on="task.started, task.completed, task.failed") as w:
        id = w.c.call("task.submit", {"prompt": "hello"})["taskId"]
        m = w.server.arrived(1)
        wait_until(lambda: any("completed" in text_of(c) or "failed" in text_of(c)
                               for c in [m, *m["changes"]]), "its end")
        same(len(w.server.messages), 1, "messages")
        check(id[:8] in text_of(m), "%r is not in %r", id, m)


def test_only_what_the_conditions_say():
    """As rules have them: for events, for approvals, and for what waits at a start."""
    with World(Ntfy(), on="approval, task.completed", condition1="payload.tool_name eq Bash",
               condition2="payload.tool_input.command matches ^rm") as w:
        w.ask("ls")
        w.ask("rm -rf /", tool="Execute")
        a = w.ask("rm -rf x")
        m = w.server.arrived(1)
        check("rm -rf x" in text_of(m), "%r", m)
        w.d.settle()
        same((len(w.server.messages), w.state()["waiting"]), (1, 0), "messages")
        # Its end is told whatever the conditions say of that event.
        w.c.call("approval.decide", {"id": a["id"], "decision": "approve"})
        wait_until(lambda: m["changes"], "the change")
        b = w.ask("rm y")
        w.server.arrived(2)
        w.d.stop()
        w.d.start()
        w.d.wait_ready()
        w.c = w.d.connect()
        w.server.press(w.server.arrived(3), "Deny")
        same(w.decided(b["id"])["status"], "denied", "the one that was shown anew")
        w.d.settle()
        same(len(w.server.messages), 3, "messages")


def test_only_the_tasks_of_a_project():
    with Folder() as f, Hooked() as server:
        os.makedirs(f("app", ".aiwg"))
        app = os.path.realpath(f("app"))
        with Daemon("--project", app, *sets(
                "home", kind="webhook", url=server.url, on="task.*",
                condition1="payload.project eq " + app,
                condition2="type matches [.](completed|failed)$")) as d, d.connect() as c:
            for more in ({}, {"project": app}):
                id = c.call("task.add", {"prompt": "hello", "runner": "recall", **more})["id"]
                c.call("task.wait", {"id": id, **more})
            said = json.loads(server.arrived(1))
            same((said["id"], said["project"]), (id, app), "told")
            d.settle()
            same(len(server.messages), 1, "messages")


def test_an_expression_that_takes_too_long():
    """It finds nothing, which is said; others go on."""
    with World(Ntfy(), announced=["notifier conditions take too long, skipping event"],
               condition1="payload.tool_input.command matches (a?){200}(a?){200}b$") as w:
        w.ask("a" * 16000)
        wait_until(lambda: b"notifier conditions take too long, skipping event" in w.d.log(), "the warning")
        w.ask("ab")
        check("command: ab" in text_of(w.server.arrived(1)), "%r", w.server.messages)


def test_after_a_restart_what_waits_is_shown_anew():
    with World(Telegram()) as w:
        a = w.ask()
        old = w.server.arrived(1)
        w.d.stop()
        w.d.start()
        w.d.wait_ready()
        w.c = w.d.connect()
        new = w.server.arrived(2)
        words = w.server.acknowledged(w.server.press(old, "Approve"))
        check("no longer valid" in words, "%r", words)
        same(w.get(a["id"])["status"], "pending", "status")
        w.server.press(new, "Approve")
        same(w.decided(a["id"])["status"], "approved", "status")


# ---- webhooks and commands ----


class Hooked(Ntfy):
    """A web server that keeps what is posted to it."""

    def play(self, h, body):
        trouble = self.note("send", h, body)
        if trouble:
            self.misplay(h, trouble)
            return
        h.answer(204, b"")
        self.messages.append(body)


def test_a_webhook_is_signed_and_tried_again():
    with Folder() as f, Hooked() as server:
        key = secret(f.path, "key", "open sesame".replace(" ", "-"))
        server.trouble["send"].append((503, b""))
        with Daemon(*sets("hook", kind="webhook", url=server.url + "/in?x=1", key_file=key),
                    announced=[FAILING]) as d, d.connect() as c:
            a = c.call("approval.create", {"tool": "Bash", "agent": "claude",
                                           "input": {"command": 'say "hi"'}})
            body = server.arrived(1)
            said = json.loads(body)
            same((said["approval.id"], said["approval.tool"], said["event"]),
                 (a["id"], "Bash", "approval.requested"), "fields")
            same(json.loads(said["approval.input"]), {"command": 'say "hi"'}, "input")
            kind, path, headers, _ = server.asked[-1]
            same(path, "/in?x=1", "path")
            stamp = headers["Koine-Timestamp"]
            check(abs(int(stamp) - time.time()) < 600, "stamp %s", stamp)
            want = hmac.new(b"open-sesame", stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
            same(headers["Koine-Signature"], "sha256=" + want, "signature")


def test_a_template_is_escaped_where_it_is_json():
    template = '{"text": "{approval.agent}: {approval.tool} {nothing} {approval.input}", "n": {}}'
    bad = run_koined("--check", *sets("w", kind="webhook", url="http://127.0.0.1:1/",
                                      template=template))
    check(bad.returncode != 0 and b"unknown field {nothing}" in bad.stderr + bad.stdout, "%r", bad)
    for given, want in ((template.replace("{nothing} ", ""), None), ("{approval.tool}!", b'a"}!')):
        with Hooked() as server, Daemon(*sets("w", kind="webhook", url=server.url,
                                              template=given)) as d, d.connect() as c:
            c.call("approval.create", {"tool": 'a"}', "agent": 'x", "n": {"y":1}, "z": "',
                                       "input": {"k": "\n"}})
            body = server.arrived(1)
            if want:
                same(body, want, "body")
                continue
            said = json.loads(body)
            same(list(said), ["text", "n"], "members")
            same(said["text"], 'x", "n": {"y":1}, "z": ": a"} {"k":"\\n"}', "text")


def test_a_command_gets_text_and_fields_and_no_secrets():
    with Folder() as f:
        out = f("out")
        topic = {"MY_TOPIC": "a-secret-topic-name"}
        with Ntfy("a-secret-topic-name") as server, Daemon(
                *sets("c", kind="command", command="{ cat; env; } > %s.new; mv %s.new %s" % (out, out, out)),
                *sets("n", kind="ntfy", url=server.url, topic_env="MY_TOPIC"),
                env=topic) as d, d.connect() as c:
            c.call("approval.create", {"tool": "$(touch /tmp/x) --help", "agent": "claude",
                                       "input": {"command": "ls; `id`"}})
            server.arrived(1)
            wait_until(lambda: os.path.exists(out), "the command's output")
            with open(out, encoding="utf-8") as said:
                text = said.read()
            check(text.startswith("command: ls; `id`\n"), "%r", text)
            check("KOINE_NOTIFY_APPROVAL_TOOL=$(touch /tmp/x) --help\n" in text, "%r", text)
            check("KOINE_NOTIFY_EVENT=approval.requested\n" in text, "%r", text)
            check("a-secret-topic-name" not in text, "a secret in %r", text)
        with Daemon(*sets("c", kind="command", command="exit 3"), announced=[FAILING]) as d, \
                d.connect() as c:
            c.call("approval.create", {"tool": "x"})
            wait_until(lambda: c.call("notify.list")["notifiers"][0]["failed"] == 1, "a failure")
            same(c.call("notify.list")["notifiers"][0]["error"],
                 "the command failed with status 3", "error")


if __name__ == "__main__":
    main(globals())
