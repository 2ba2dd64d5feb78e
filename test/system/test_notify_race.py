#!/usr/bin/env python3
"""
One question, and everybody answers at the same instant: one wins, and all show the same, within a second. The page,
a terminal, two phones and the agent are told of it; none of them asks.
"""
import concurrent.futures
import contextlib
import datetime
import json
import random
import re
import statistics
import subprocess
import threading
import time

from harness import KOINE, PATIENCE, Client, Daemon, Folder, check, main, same, wait_until
from push_server import Ntfy, Telegram
from test_chat_cli import of
from test_hook import PRE, Hook, waiting
from test_notify import TOPIC, Hooked, secret, sets, text_of
from test_notify_links import Link
from test_page import enter
from test_top import Tmux

ROUNDS = 6
SECOND = 1.0
PINGS = 20  # as long as that many commands take, on a machine that has no second to spare
STILL = 3.0
WORDS = {"approved": ("approve", "Approve", "allow"), "denied": ("deny", "Deny", "deny")}


class World:
    """A daemon with a page and three notifiers, and what each of them has been told."""

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        with self.stack:
            f = self.stack.enter_context(Folder())
            self.ntfy, self.telegram, self.hook = (self.stack.enter_context(s())
                                                   for s in (Ntfy, Telegram, Hooked))
            self.d = self.stack.enter_context(Daemon(
                *sets("pocket", kind="ntfy", url=self.ntfy.url, per_minute=60,
                      topic_file=secret(f.path, "topic", TOPIC)),
                *sets("bot", kind="telegram", url=self.telegram.url, chat=self.telegram.chat,
                      user=self.telegram.user, key_file=secret(f.path, "key", Telegram.KEY),
                      per_minute=60),
                *sets("home", kind="webhook", url=self.hook.url, per_minute=60),
                "--set", "listen.page=on"))
            self.c = self.stack.enter_context(self.d.connect())
            self.browser = enter(self.d)
            self.stream = self.stack.enter_context(Client(self.browser.place))
            self.stream.send(("GET /events HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\n\r\n" % (
                self.browser.host, self.browser.cookie)).encode())
            self.stream.take_until(b"event: hello")
            self.screen = self.stack.enter_context(Tmux(of(self.d), "approvals", "-w"))
            self.pool = self.stack.enter_context(concurrent.futures.ThreadPoolExecutor())
            self.stack = self.stack.pop_all()
        return self

    def __exit__(self, *exc):
        return self.stack.__exit__(*exc)

    def calls(self):
        """How many there were of everybody but us."""
        text = self.c.call("daemon.metrics")["text"]
        return sum(int(n) for method, n in re.findall(
            r'koine_calls_total\{[^}]*method="([^"]*)"[^}]*\} (\d+)', text) if method != "daemon.metrics")

    def ping(self):
        begun = time.monotonic()
        subprocess.run([KOINE, "status"], env=of(self.d), capture_output=True, timeout=PATIENCE, check=True)
        return time.monotonic() - begun

    def answers(self):
        return sum(n["answers"] for n in self.c.call("notify.list")["notifiers"])


class Round:
    def __init__(self, w, n, hook, approval):
        self.w = w
        self.id = approval["id"]
        self.ntfy = w.ntfy.arrived(n)
        self.telegram = w.telegram.arrived(n)
        self.hook = json.loads(w.hook.arrived(n))
        self.told = {}
        w.screen.until(self.id[:8])
        # Who shows what came of it, and when.
        self.shown = {name: w.pool.submit(lambda look=look: (look(), time.time())) for name, look in {
            "agent": hook.end,
            "page": lambda: w.stream.take_until(b'"approval.resolved"') + w.stream.take_until(b"\n\n"),
            "terminal": lambda: w.screen.until(without=[self.id[:8]]),
            "ntfy": lambda: wait_until(lambda: self.ntfy["changes"], "ntfy's change"),
            "telegram": lambda: wait_until(lambda: self.telegram["changes"], "Telegram's change"),
        }.items()}

    # Each returns whether it was told that it won, and what came of it; or None: it is told elsewhere.

    def by_page(self, status):
        r = json.loads(self.w.browser.call("approval.decide", {
            "id": self.id, "decision": WORDS[status][0]}).body)
        said = r.get("result") or r["error"]["data"]["approval"]
        return "result" in r, said["status"]

    def by_terminal(self, status):
        done = subprocess.run([KOINE, WORDS[status][0], self.id, "--comment", "x"], env=of(self.w.d),
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
        check(done.returncode in (0, 1), "%r", done)
        said = [s for s in WORDS if s in (done.stdout + done.stderr).lower()]
        return done.returncode == 0, said[0] if len(said) == 1 else done

    def by_link(self, status):
        r = Link(self.hook["approval.%s_url" % WORDS[status][0]]).post()
        check(r.status in (200, 409), "%r", r.body)
        said = [s for s in WORDS if s in r.body.decode().lower()]
        return r.status == 200, said[0] if len(said) == 1 else r.body

    def by_ntfy(self, status):
        self.w.ntfy.press(self.ntfy, WORDS[status][1])

    def by_telegram(self, status):
        pressed = self.w.telegram.press(self.telegram, WORDS[status][1])
        self.acknowledged = self.w.telegram.acknowledged(pressed)

    def run(self, dice):
        ways = [self.by_page, self.by_terminal, self.by_link, self.by_ntfy, self.by_telegram]
        dice.shuffle(ways)
        start = threading.Barrier(len(ways))

        def go(way, status):
            start.wait(PATIENCE)
            self.told[way.__name__] = way(status)

        threads = [threading.Thread(target=go, args=(way, dice.choice(list(WORDS)))) for way in ways]
        for t in threads:
            t.start()
        for t in threads:
            t.join(PATIENCE)
        same(len(self.told), len(ways), "all have answered: %r" % self.told)

    def judge(self, before):
        w = self.w
        kept = w.c.call("approval.get", {"id": self.id})
        outcome = "%s by %s" % (kept["status"].capitalize(), kept["decided_by"])
        known = [t for t in self.told.values() if t]
        same([said for _, said in known], [kept["status"]] * 3, "what they were told")
        pressed = {"ntfy:pocket": "by_ntfy", "telegram:bot (anna)": "by_telegram"}
        won = [name for name, t in self.told.items() if t and t[0]]
        if not won:
            won = [pressed[kept["decided_by"]]]
        same(len(won), 1, "winners: %r" % self.told)
        same(w.answers() - before, int(won[0] in ("by_link", "by_ntfy", "by_telegram")), "answers")
        shown = {name: f.result() for name, f in self.shown.items()}
        for name in ("ntfy", "telegram"):
            check(outcome in text_of(shown[name][0][0]), "%r is not in %r", outcome, shown[name])
        # Its button may have come when its message said so already, and was forgotten.
        check(outcome in self.acknowledged or "no longer valid" in self.acknowledged, "%r",
              self.acknowledged)
        seen = shown["page"][0]
        check(self.id.encode() in seen and json.dumps(kept["decided_by"]).encode() in seen, "%r", seen)
        late = Link(self.hook["approval.deny_url"]).get()
        check(late.status == 409 and outcome.encode() in late.body, "%r", late.body)
        same(shown["agent"][0]["hookSpecificOutput"]["permissionDecision"], WORDS[kept["status"]][2],
             "what the agent is told")
        at = datetime.datetime.fromisoformat(kept["decided_at"].replace("Z", "+00:00")).timestamp()
        return {name: when - at for name, (_, when) in shown.items()}


def test_everybody_answers_at_the_same_instant():
    dice = random.Random()
    seed = dice.randrange(1 << 32)
    dice.seed(seed)
    print("seed %d" % seed)
    times = {}
    with World() as w:
        for n in range(1, ROUNDS + 1):
            with Hook(of(w.d), dict(PRE, tool_use_id="t%d" % n)) as hook:
                r = Round(w, n, hook, waiting(w.c)[0])
                before = w.answers()
                r.run(dice)
                for name, took in {**r.judge(before), "ping": w.ping()}.items():
                    times.setdefault(name, []).append(took)
    for name, took in times.items():
        print("%-8s shows it after %.0f ms, %.0f at most" % (name, 1000 * statistics.median(took), 1000 * max(took)))
    most = max(SECOND, PINGS * statistics.median(times.pop("ping")))
    check(all(statistics.median(took) < most for took in times.values()), "not within %.1f s: %r", most, times)


def test_nobody_asks_whether_something_has_happened():
    """Whoever shows it was told: nobody waits for the next time that it would ask."""
    with World() as w, Hook(of(w.d), PRE) as hook:
        r = Round(w, 1, hook, waiting(w.c)[0])

        def still():
            before = w.calls(), w.ntfy.count("read"), w.telegram.count("read")
            time.sleep(STILL)
            return (w.calls(), w.ntfy.count("read"), w.telegram.count("read")) == before

        wait_until(still, "%.0f s without a question" % STILL)
        w.c.call("approval.decide", {"id": r.id, "decision": "deny"})
        for shown in r.shown.values():
            shown.result()


if __name__ == "__main__":
    main(globals())
