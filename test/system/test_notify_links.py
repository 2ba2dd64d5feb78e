#!/usr/bin/env python3
"""Links in a webhook's message: what they show, what they decide, and when they do not count."""
import base64
import contextlib
import hashlib
import json
import re
import subprocess
import threading

from harness import KOINE, PATIENCE, Daemon, Folder, change_store, check, main, run_koined, same, wait_until
from push_server import Ntfy
from test_chat_cli import of
from test_deciders import Agent
from test_hook import PRE, Hook
from test_notify import TOPIC, Hooked, secret, sets
from test_page import Browser
from test_users import NOBODY, someone_else

BEHIND = "https://koine.example:8443"


class World:
    """A web server that is told, a daemon with a page, and a client."""

    def __init__(self, *args, page="on", announced=(), **settings):
        self.args = args
        self.announced = announced
        self.page = page
        self.settings = settings

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        with self.stack:
            self.server = self.stack.enter_context(Hooked())
            own = {"kind": "webhook", "url": self.server.url, **self.settings}
            self.d = self.stack.enter_context(Daemon(*sets("home", **own), *self.args, "--set",
                                                     "listen.page=" + self.page,
                                                     announced=self.announced))
            self.c = self.d.connect()
            self.stack.callback(self.c.close)
            self.stack = self.stack.pop_all()
        return self

    def __exit__(self, *exc):
        return self.stack.__exit__(*exc)

    def ask(self, command="rm -rf build", **more):
        return self.c.call("approval.create", {"tool": "Bash", "agent": "claude",
                                               "input": {"command": command}, **more})

    def told(self, n=1):
        return json.loads(self.server.arrived(n))

    def links(self, n=1):
        m = self.told(n)
        return Link(m["approval.approve_url"]), Link(m["approval.deny_url"])

    def status(self, a):
        return self.c.call("approval.get", {"id": a["id"]})["status"]

    def state(self):
        return self.c.call("notify.list")["notifiers"][0]


class Link:
    """One in somebody's browser, which has no cookie."""

    def __init__(self, url, via=None):
        self.url = url
        self.base, self.path = re.fullmatch(r"(https?://[^/]+)(/answer\?token=[0-9a-f]{32})", url).groups()
        self.host = self.base.split("://")[1]
        self.browser = Browser("http://" + (via or self.host))

    def get(self, *headers):
        return self.browser.get(self.path, *headers, host=self.host)

    def post(self, *headers, path=None, body=b""):
        headers = headers or ("Origin: " + self.base,
                              "Content-Type: application/x-www-form-urlencoded")
        return self.browser.ask("POST", path or self.path, body, headers, host=self.host)


def says(r, status, *words):
    same(r.status, status, "status (%r)" % r.body)
    check(r.header("Content-Type").startswith("text/html"), "%r", r.header("Content-Type"))
    same(r.header("Cache-Control"), "no-store", "caching")
    for w in words:
        check(w.encode() in r.body, "%r is not in %r", w, r.body)


# ---- what they do ----


def test_a_hook_is_answered_by_a_link():
    for which, word, status in ((0, "allow", "approved"), (1, "deny", "denied")):
        with World() as w, Hook(of(w.d), PRE) as hook:
            link = w.links()[which]
            says(link.get(), 200, "Approve?" if which == 0 else "Deny?", "command: ls", "claude",
                 "<form method=post>", "Nothing is decided until you press the button")
            says(link.post(), 200, "%s by webhook:home." % status.capitalize())
            same(hook.end()["hookSpecificOutput"]["permissionDecision"], word, "told")
            a, = w.c.call("approval.list", {"status": status})["approvals"]
            same((a["decided_by"], a["decided_from"]["program"]), ("webhook:home", "notify"), "who")
            same(w.state()["answers"], 1, "answers")


def test_who_only_looks_decides_nothing():
    """A preview, a scanner, a browser that reads ahead."""
    with World() as w:
        a = w.ask()
        for link in w.links():
            for headers in ((), ("Purpose: prefetch", "Sec-Purpose: prefetch"),
                            ("User-Agent: Slackbot-LinkExpanding 1.0",),
                            ("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate",
                             "Sec-Fetch-Dest: document")):
                says(link.get(*headers), 200)
            same(link.browser.ask("HEAD", link.path).status, 200, "HEAD")
        same(w.status(a), "pending", "status")
        says(w.links()[1].post(), 200, "Denied by webhook:home")


def test_what_an_agent_wrote_is_text():
    nasty = "<script>alert(1)</script>&amp;</pre><form action=//evil>"
    with World() as w:
        w.ask(nasty)
        r = w.links()[0].get()
        says(r, 200, "&lt;script>alert(1)&lt;/script>&amp;amp;&lt;/pre>&lt;form")
        check(b"<script" not in r.body and r.body.count(b"<form") == 1, "%r", r.body)


def test_the_policy_of_its_page():
    with World() as w:
        w.ask()
        link = w.links()[0]
        for r in (link.get(), link.post()):
            policy = r.header("Content-Security-Policy")
            style = re.search(rb"<style>(.*?)</style>", r.body).group(1)
            want = base64.b64encode(hashlib.sha256(style).digest()).decode()
            for part in ("default-src 'none'", "style-src 'sha256-%s'" % want, "form-action 'self'",
                         "frame-ancestors 'none'", "base-uri 'none'"):
                check(part in policy, "%s is not in %s", part, policy)
            check("script-src" not in policy and "unsafe" not in policy, "%s", policy)
            same(r.header("Referrer-Policy"), "same-origin", "referrer")
            same(r.header("X-Content-Type-Options"), "nosniff", "type")
            same(r.header("Set-Cookie"), None, "cookie")


# ---- when they do not count ----


def test_a_link_counts_once():
    with World() as w:
        a = w.ask()
        yes, no = w.links()
        says(no.post(), 200, "Denied by webhook:home")
        wait_until(lambda: b"Denied by webhook:home" in no.get().body, "what came of it")
        for link in (yes, no):
            says(link.post(), 409, "This request was already decided. ✗ Denied by webhook:home")
            says(link.get(), 409, "This request was already decided. ✗ Denied by webhook:home")
        same(w.status(a), "denied", "status")
        check(w.state()["ignored"] >= 4, "%r", w.state())


def test_what_was_answered_elsewhere():
    with World() as w:
        a = w.ask()
        yes, _ = w.links()
        subprocess.run([KOINE, "deny", a["id"], "--comment", "no"], env=of(w.d), check=True, timeout=PATIENCE,
                       capture_output=True)
        says(yes.post(), 409, "This request was already decided. ✗ Denied by human")
        says(yes.get(), 409, "This request was already decided. ✗ Denied by human")
        same(w.status(a), "denied", "status")


def test_a_late_link():
    with World(button_time=1) as w:
        a = w.ask()
        yes, no = w.links()
        wait_until(lambda: yes.get().status == 403, "its end")
        for r in (yes.get(), yes.post(), no.post()):
            says(r, 403, "This link has expired.")
        same(w.status(a), "pending", "status")


def test_a_link_that_was_changed():
    with World() as w:
        first, second = w.ask(), w.ask("echo other")
        yes, _ = w.links()
        token = yes.path.split("=")[1]
        other = w.links(2)[0].path.split("=")[1]
        for bad in (token[:-1] + ("0" if token[-1] != "0" else "1"), token[:31], token + "0",
                    token.upper() + "x", first["id"], "", token[:16] + other[16:], "%00" * 32,
                    "x" * 4000):
            for r in (yes.post(path="/answer?token=" + bad),
                      yes.browser.get("/answer?token=" + bad)):
                says(r, 404, "Unknown link:")
        for path in ("/answer", "/answer?token=%s&token=%s" % (token, token), "/answer?token=%ff"):
            same(yes.post(path=path).status, 400, path)
        same(yes.post(path=yes.path + "&approval=" + second["id"]).status, 200, "more words say nothing")
        same((w.status(first), w.status(second)), ("approved", "pending"), "statuses")


def test_a_button_is_no_link():
    """What a phone may press is nothing in an address, and counts on the phone as before."""
    with Ntfy() as phone, Folder() as f, World(*sets("phone", kind="ntfy", url=phone.url,
                                                     topic_file=secret(f.path, "topic", TOPIC))) as w:
        a = w.ask()
        m = phone.arrived(1)
        link = w.links()[0]
        for action in m["actions"]:
            path = "/answer?token=" + action["body"]
            says(link.browser.get(path), 404, "Unknown link:")
            says(link.post(path=path), 404, "Unknown link:")
        same(w.status(a), "pending", "status")
        phone.press(m, "Deny")
        wait_until(lambda: w.status(a) == "denied", "the button's decision")


def test_a_link_does_not_outlive_koined():
    with World() as w:
        a = w.ask()
        yes, _ = w.links()
        w.d.stop()
        w.d.start()
        w.d.wait_ready()
        w.c = w.d.connect()
        fresh = w.links(2)[0]
        says(fresh.post(path=yes.path), 404, "Unknown link:")
        says(fresh.post(), 200, "Approved by webhook:home")
        same(w.status(a), "approved", "status")


def test_a_server_that_is_slow_busy_or_confused():
    """It may have taken a message that it did not answer: the links of the last one count."""
    gate = threading.Event()

    def slow(h):
        gate.wait(PATIENCE)
        h.answer(503, b"")

    with World(announced=["notifier failed"]) as w:
        w.server.trouble["send"] += [slow, (429, b"", [("Retry-After", "1")]),
                                     (200, b"\xff garbage \x00" * 1000)]
        a = w.ask()
        wait_until(lambda: w.server.count("send") == 1, "the first attempt")
        w.c.ping()
        gate.set()
        wait_until(lambda: w.server.count("send") == 3, "the last attempt")
        bodies = [json.loads(body) for kind, _, _, body in w.server.asked if kind == "send"]
        links = [Link(b["approval.approve_url"]) for b in bodies]
        for old in links[:2]:
            says(old.post(), 404, "a newer link has replaced it")
        wait_until(lambda: w.state()["state"] == "ok", "it to be well")
        says(links[2].post(), 200, "Approved by webhook:home")
        same(w.status(a), "approved", "status")


def test_wrong_links_in_masses():
    with World() as w:
        a = w.ask()
        yes, _ = w.links()
        answers = [yes.browser.get("/answer?token=%032x" % i).status for i in range(40)]
        same((answers[:30], answers[30:]), ([404] * 30, [429] * 10), "answers")
        says(yes.browser.get("/answer?token=0"), 429, "Too many invalid links")
        says(yes.post(), 200, "Approved by webhook:home")
        same(w.status(a), "approved", "the right one counts")


def test_only_what_was_shown_can_be_approved():
    with World() as w:
        a = w.ask("echo harmless")
        yes, _ = w.links()
        change_store(w.d.root, "UPDATE approval SET tool = 'Execute' WHERE id = '%s'" % a["id"])
        says(yes.post(), 403, "the request has changed since it was shown")
        same(w.status(a), "pending", "status")


def test_no_other_page_can_post():
    with World() as w:
        a = w.ask()
        yes, _ = w.links()
        port = yes.host.split(":")[1]
        for headers in (("X: y",), ("Origin: http://evil.example",), ("Origin: null",),
                        ("Origin: http://localhost:" + port,), ("Origin: https://" + yes.host,),
                        ("Origin: " + yes.base, "Sec-Fetch-Site: cross-site"),
                        ("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate",
                         "Sec-Fetch-Dest: document"), ("Sec-Fetch-Site: same-site",),
                        ("Origin: " + yes.base, "Origin: " + yes.base)):
            same(yes.post(*headers).status, 403, "%r" % (headers,))
        for headers in (("Origin: http://evil.example",), ("Sec-Fetch-Site: cross-site",),
                        ("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate",
                         "Sec-Fetch-Dest: iframe")):
            same(yes.get(*headers).status, 403, "%r" % (headers,))
        same(yes.browser.get(yes.path, host="evil.example").status, 403, "another host")
        same(yes.post("Origin: " + yes.base, "Content-Type: text/plain", body=b"x").status, 415, "body")
        same(w.status(a), "pending", "status")
        check(yes.path.split("=")[1].encode() not in w.d.log(), "the token is in the log")
        says(yes.post("Sec-Fetch-Site: same-origin"), 200, "Approved")


def test_an_agent_does_not_answer_itself():
    """Who asked has found the link somewhere: it decides nothing with it, and spoils nothing."""
    with World("--set", "approval.agents_decide=no") as w, Agent(w.d) as agent:
        agent.call("approval.create", {"tool": "Bash", "agent": "claude", "input": {"command": "ls"}})
        yes, _ = w.links()
        _, said, _ = agent.do(run=["curl", "-s", "-i", "-X", "POST", "-H", "Origin: " + yes.base,
                                   yes.url])
        check("403 Forbidden" in said and "an agent that requests approvals" in said, "%r", said)
        says(yes.get(), 200, "<form method=post>")


# ---- where they lead ----


def test_no_page_no_links():
    with World(page="off") as w:
        w.ask()
        check("approval.approve_url" not in w.told(), "%r", w.told())
    with World(links="no") as w:
        w.ask()
        check("approval.approve_url" not in w.told(), "%r", w.told())
    with World() as w:
        w.ask(kind="human_contact", tool="which database?", input={"msg": "which database?"})
        check("approval.approve_url" not in w.told(), "a question has none: %r", w.told())


def test_behind_a_proxy():
    """The proxy is another user's program, which passes Host on."""
    with Folder() as f:
        with open(f("koine.conf"), "w", encoding="utf-8") as out:
            out.write("[listen page]\nallow_uids = %d\n" % NOBODY)
        with World("--config", f("koine.conf"), "--set", "page.behind=" + BEHIND) as w:
            a = w.ask()
            at = w.d.address("http", "page")[5:]
            m = w.told()
            check(m["approval.deny_url"].startswith(BEHIND + "/answer?token="), "%r", m)
            link = Link(m["approval.deny_url"], via=at)
            same(link.post("Origin: http://koine.example:8443").status, 403, "another scheme")
            same(link.post("Origin: https://koine.example").status, 403, "another port")

            def through_proxy():
                first, then = link.get(), link.post()
                return "%d %d %s" % (first.status, then.status, "Denied by webhook:home" in
                                     then.body.decode())

            same(someone_else(through_proxy), "200 200 True", "by the proxy")
            same(w.status(a), "denied", "status")
            how = subprocess.run([KOINE, "page", "--link", BEHIND], env=of(w.d), check=True,
                                 capture_output=True, text=True, timeout=PATIENCE)
            check(how.stdout.startswith(BEHIND + "/enter?link=") and "webhook" in how.stderr, "%r", how)
            how = subprocess.run([KOINE, "page", "--link", "https://x.example"], env=of(w.d),
                                 check=True, capture_output=True, text=True, timeout=PATIENCE)
            check("behind = https://x.example" in how.stderr and "webhook" in how.stderr, "%r", how)


def test_messages_point_at_the_page_where_it_can_be_reached():
    """Not at this machine's own address, which is another machine's on a phone; and they say where it was asked."""
    for args, wanted in ((("--set", "page.behind=" + BEHIND), BEHIND + "/#/inbox/%s"), ((), None)):
        with World("--set", "host.name=attic", *args) as w:
            a = w.ask()
            m = w.told()
            same(m.get("link"), wanted and wanted % a["id"], "link")
            same(m["host"], "attic", "host")
            check(", on attic" in m["text"], "%r", m)
    with World("--set", "page.behind=" + BEHIND, link="https://mine.example/x", on="approval, task.completed") as w:
        w.ask(id="an id of mine")
        same(w.told()["link"], "https://mine.example/x", "the user's own")
    with World("--set", "page.behind=" + BEHIND, on="approval, task.completed") as w:
        w.ask(id="../an id/of mine")
        same(w.told()["link"], BEHIND + "/", "an id that is no part of an address")
        w.c.call("task.add", {"prompt": "hello", "runner": "recall"})
        same(w.told(2)["link"], BEHIND + "/", "of news")


def test_a_template_with_links():
    template = ('{"text": "{title}", "actions": [{"url": "{approval.approve_url}"}, '
                '{"url": "{approval.deny_url}"}]}')
    with World(template=template) as w:
        w.ask()
        said = w.told()
        says(Link(said["actions"][1]["url"]).post(), 200, "Denied by webhook:home")
    bad = run_koined("--check", *sets("w", kind="webhook", url="http://127.0.0.1:1/",
                                      template="{approval.url}"))
    check(bad.returncode != 0 and b"unknown field {approval.url}" in bad.stderr + bad.stdout, "%r", bad)
    bad = run_koined("--check", *sets("w", kind="command", command="x", links="no"))
    check(bad.returncode != 0 and b"links is not valid for kind command" in bad.stderr + bad.stdout,
          "%r", bad)


def test_no_text_becomes_a_link_where_markup_is_read():
    """As in Slack, where <address|word> is a link: what an agent wrote must not be one that looks like ours."""
    evil = "ls # <https://evil.example|Approve> & <!channel>"
    for template in ('{"text": "{text}\\n<{approval.approve_url}|Approve>"}', "{text}\n<{approval.approve_url}|Approve>"):
        with World(template=template, escape_html="yes") as w:
            w.ask(evil)
            body = w.server.arrived(1).decode()
            check("ls # &lt;https://evil.example|Approve&gt; &amp; &lt;!channel&gt;" in body, "%r", body)
            same(body.count("<"), 1, "links in %r" % body)
            says(Link(re.search("<(http[^|]*)[|]Approve>", body).group(1)).post(), 200, "Approved by webhook:home")
    bad = run_koined("--check", *sets("w", kind="command", command="x", escape_html="yes"))
    check(bad.returncode != 0 and b"escape_html is not valid for kind command" in bad.stderr + bad.stdout, "%r", bad)


def test_news_of_it_is_a_message_of_its_own():
    with World(on="approval, approval.resolved") as w:
        a = w.ask()
        yes, _ = w.links()
        says(yes.post(), 200, "Approved")
        same((w.told(2)["event"], w.told(2)["id"]), ("approval.resolved", a["id"]), "news")
        says(yes.get(), 409, "Approved by webhook:home")


def test_more_than_are_kept():
    """The oldest links go; no message is lost."""
    with World(per_minute=60) as w:
        for i in range(60):
            w.ask("echo %d" % i)
        links = [w.links(n + 1)[0] for n in range(60)]
        for i in range(80):
            w.ask("echo later %d" % i)
        wait_until(lambda: w.state()["waiting"] == 80, "all others to wait")
        same(w.state()["dropped"], 0, "dropped")
        says(links[11].post(), 404, "Unknown link")
        says(links[12].post(), 200, "Approved")


if __name__ == "__main__":
    main(globals())
