"""The page in a real Chromium: every room, by keyboard, on a phone and on a desk."""
import json
import os

from harness import MIB, SERVER, check, main, same
from page_world import ASKED, EVIL, PageWorld
from test_notify import Hooked, sets


def test_every_room_works_by_keyboard():
    with PageWorld() as w:
        w.fill()
        found = w.browse("rooms")
        same(found["cards"], [tool + " tool" for tool, _ in ASKED], "the inbox, oldest first")
        same(found["first"], "Bash", "chosen first")
        same(found["marked"], "violin", "marked")
        same(found["address"], "#/events?type=memory.*", "the filter's address")
        same(len(found["charts"]), 6, "charts of the last day")
        with w.daemon.connect() as c:
            same(found["hosts"][:2], ["alone (this one)", "alive"] if SERVER
                 else ["Only this koined can use its store: hosts share one in PostgreSQL."], "hosts")
            rows = c.call("approval.list", {"status": "any"})["approvals"]
            rows.sort(key=lambda a: a["created_at"])
            same([a["status"] for a in rows], ["approved", "denied", "denied", "pending"], "decided")
            same(rows[1]["comment"], "not on a Friday", "comment")
            same("chromium" in rows[0]["decided_from"]["program"], True, "decided from")
            rule, = c.call("automation.rules")["rules"]
            same(rule["enabled"], False, "the rule's switch")


def test_long_lists_and_tasks_that_wait():
    with PageWorld() as w, w.daemon.connect() as c:
        for n in range(250):
            c.call("task.add", {"prompt": "wait %d" % n, "stash": True, **({"group": "docs"} if n % 2 else {})})
        found = w.browse("control")
        same((found["first"], found["kept"], found["more"]), (100, 250, 251), "rows")
        same(found["order"], ["task-%04d" % n for n in reversed(range(250))], "order")
        same(found["paused"], ["docs"], "paused")
        task = c.call("task.show", {"id": "task-0248"})
        same((task["prompt"], task["label"], task["priority"], task["after"], task["stashed"]),
             ("changed on the page", "meanwhile", 2, ["task-0249"], False), "changed")


def test_many_tabs_share_one_stream():
    """KOINE_TEST_TABS=50 takes more than a minute."""
    tabs = os.environ.get("KOINE_TEST_TABS", "13")
    with PageWorld() as w:
        with w.daemon.connect() as c:
            for n in range(3):
                w.ask("Bash", {"command": "true %d" % n}, c)
        same(w.browse("tabs", {"KOINE_TABS": tabs})["tabs"], int(tabs), "tabs")


def test_what_is_long_or_evil_harms_nobody():
    """A diff of a megabyte, lines of 10 MiB, and markup and escapes in every field that takes a text."""
    old = "".join("line %d of the old one\n" % n for n in range(18000))
    with PageWorld("--set", "approval.agents_decide=yes") as w, w.daemon.connect() as c:
        for tool, given in (("Edit", {"file_path": EVIL, "old_string": old, "new_string": old.replace("old", "new")}),
                            (EVIL, {EVIL: EVIL, "command": EVIL})):
            c.call("approval.create", {"tool": tool, "input": given})
        long = [c.call("task.add", {"prompt": "head -c %d /dev/zero | tr '\\0' %s" % (10 * MIB, what),
                                    "group": "<b>group</b>"})["id"] for what in ("x", "'<'")]
        for id in long:
            c.call("task.wait", {"id": id})
        c.call("task.add", {"prompt": "printf '%%s' '%s'; exit 1" % EVIL, "label": "<i>label</i>\u202e",
                            "agent": EVIL, "metadata": {EVIL: EVIL}})
        c.call("task.add", {"prompt": EVIL, "stash": True, "group": "<img src=x>"})
        c.call("memory.add", {"content": EVIL, "source": EVIL, "metadata": {EVIL: EVIL}})
        c.call("session.launch", {"query": EVIL, "title": EVIL})
        c.call("agent.note", {"what": "tool", "agent": "<b>a</b>", "session_id": EVIL, "tool": EVIL, "text": EVIL})
        found = w.browse("hostile", {"KOINE_LONG": json.dumps(long)})
        check(found["diff"]["nodes"] < 5000 and found["diff"]["text"] < 200000, "%r", found)
        check(max(found["output"]) < 300000, "%r", found)
        same((found["evil"], found["escapes"]), (0, 0), "nothing of it is read")


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
