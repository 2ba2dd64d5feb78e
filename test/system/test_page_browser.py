"""The page in a real Chromium: every room, by keyboard, on a phone and on a desk."""
import concurrent.futures
import contextlib
import json
import os
import signal
import socket
import subprocess

from harness import KOINE, SERVER, check, main, same, wait_until
from page_world import ASKED, PageWorld
from test_notify import Hooked, sets


def test_every_room_works_by_keyboard():
    with PageWorld() as w:
        w.fill()
        found = w.browse("rooms")
        same(found["cards"], [tool for tool, _ in ASKED], "the inbox, oldest first")
        same(found["first"], "Bash", "chosen first")
        same(found["marked"], "violin", "marked")
        same(found["thinking"], ["thinking<b>Hm</b>"], "what it thinks is folded")
        same(found["address"], "#/events?type=memory.*", "the filter's address")
        same(len(found["charts"]), 6, "charts of the last day")
        with w.daemon.connect() as c:
            same(found["hosts"][:2], ["alone (this host)", "alive"] if SERVER
                 else ["Only this host uses the store. To share a store between hosts, use PostgreSQL."], "hosts")
            rows = c.call("approval.list", {"status": "any"})["approvals"]
            rows.sort(key=lambda a: a["created_at"])
            same([a["status"] for a in rows], ["approved", "denied", "denied", "approved"], "decided")
            same(rows[1]["comment"], "not on a Friday", "comment")
            same("chromium" in rows[0]["decided_from"]["program"], True, "decided from")
            rule, = c.call("automation.rules")["rules"]
            same(rule["enabled"], False, "the rule's switch")


def test_the_inbox_links_to_sessions_that_koined_did_not_start():
    with PageWorld() as w, w.daemon.connect() as c:
        c.call("agent.note", {"what": "asked", "agent": "claude", "session_id": "observed-1", "folder": "/w",
                              "text": "tidy the shelves"})
        for tool, session in (("Sweep", "observed-1"), ("Dust", "unheard-1")):
            # By a process of its own: whoever has asked gets no link to the page.
            subprocess.run([KOINE, "--socket", w.daemon.socket_path, "call", "approval.create",
                            json.dumps({"tool": tool, "session_id": session})], check=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        found = w.browse("observed")
        same(found, {"observed": ["Sweep"], "actions": 0, "unheard": ["Dust"], "list": ["tidy the shelves"],
                     "stale": 0, "back": ["tidy the shelves"]})


def test_tasks_that_have_ended_say_how_and_are_tried_again():
    with PageWorld() as w, w.daemon.connect() as c:
        c.call("task.pause")
        first = c.call("task.run", {"command": ["no-such-program"]})["id"]
        c.call("task.add", {"prompt": "what comes after it", "after": [first]})
        c.call("task.resume")
        same(c.call("task.wait", {"id": "task-0001"})["state"], "skipped", "its end")
        c.call("task.pause")
        found = w.browse("outcomes")
        check(found["skipped"].startswith("skipped task-0001 what comes after it"), "%r", found)
        check(found["failed"].startswith("failed task-0000 no-such-program") and " exit 127 " in found["failed"], "%r", found)
        same(found["error"], "no-such-program: command not found", "why")
        same([c.call("task.show", {"id": t})["state"] for t in (first, "task-0001")], ["queued"] * 2, "again")


def test_long_lists_and_tasks_that_wait():
    with PageWorld() as w, w.daemon.connect() as c:
        for n in range(250):
            c.call("task.add", {"prompt": "wait %d" % n, "stash": True, **({"group": "docs"} if n % 2 else {})})
        found = w.browse("control")
        same((found["first"], found["kept"], found["more"]), (100, 250, 251), "rows")
        same(found["order"], ["task-%04d" % n for n in reversed(range(250))], "order")
        same(found["paused"], ["docs"], "paused")
        same(found["waits"], "Waiting: until the task is enqueued", "why it waits")
        task = c.call("task.show", {"id": "task-0248"})
        same((task["prompt"], task["label"], task["priority"], task["after"], task["stashed"]),
             ("changed on the page", "meanwhile", 2, ["task-0249"], False), "changed")


def test_an_open_tab_goes_on_after_a_restart_and_says_how_to_sign_in_again_after_an_end():
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as s:
        port = s.getsockname()[1]
    with PageWorld("--listen", "page=http:127.0.0.1:%d" % port, "--listen", "koine=on",
                   "--set", "approval.agents_decide=yes") as w, \
            concurrent.futures.ThreadPoolExecutor(1) as pool:
        d = w.daemon
        browsing = pool.submit(w.browse, "ended")

        def comes_to(name):
            wait_until(lambda: os.path.exists(w(name)) or browsing.done(), name)
            check(not browsing.done(), "the browser has ended: %s", browsing.done() and browsing.exception())

        comes_to("restart-open")
        with d.connect() as c:
            c.call("daemon.restart")
        wait_until(lambda: d.log().count(b" started ") == 2, "a new start")
        with d.connect() as c:
            c.call("approval.create", {"tool": "Bash", "input": {"command": "after the restart"}})
        for how, end in ("stop", d.stop), ("kill", lambda: (d.signal(signal.SIGKILL), d.wait_exit())):
            comes_to(how + "-open")
            end()
            comes_to(how + "-away")
            d.start()
            d.wait_ready()
        said = browsing.result()["said"]
        same(["koine page" in text for text in said], [True, True], "%r" % said)


def test_many_tabs_share_one_stream():
    """KOINE_TEST_TABS=50 takes more than a minute."""
    tabs = os.environ.get("KOINE_TEST_TABS", "13")
    with PageWorld() as w:
        with w.daemon.connect() as c:
            for n in range(3):
                w.ask("Bash", {"command": "true %d" % n}, c)
        same(w.browse("tabs", {"KOINE_TABS": tabs})["tabs"], int(tabs), "tabs")


def test_a_link_of_a_webhook_is_answered():
    """Its form is sent with its origin, under the policy of its page."""
    with Hooked() as server, PageWorld(*sets("home", kind="webhook", url=server.url), "--set",
                                       "listen.page=on") as w, w.daemon.connect() as c:
        w.ask("Bash", {"command": "ls <i>x</i>"}, c)
        link = json.loads(server.arrived(1))["approval.approve_url"]
        found = w.browse("answer", {"KOINE_ANSWER": link})
        check("command: ls <i>x</i>" in found["asked"], "%r", found)
        same(found["style"], "pre-wrap", "its style")
        check("Approved by webhook:home" in found["said"], "%r", found)
        a, = c.call("approval.list", {"status": "approved"})["approvals"]
        same(a["decided_by"], "webhook:home", "decided by")


if __name__ == "__main__":
    main(globals())
