"""The page in a real Chromium: every room, by keyboard, on a phone and on a desk."""
from harness import main, same
from page_world import ASKED, PageWorld


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
            rows = c.call("approval.list", {"status": "any"})["approvals"]
            rows.sort(key=lambda a: a["created_at"])
            same([a["status"] for a in rows], ["approved", "denied", "denied", "pending"], "decided")
            same(rows[1]["comment"], "not on a Friday", "comment")
            same("chromium" in rows[0]["decided_from"]["program"], True, "decided from")
            rule, = c.call("automation.rules")["rules"]
            same(rule["enabled"], False, "the rule's switch")


def test_many_tabs_share_one_stream():
    with PageWorld() as w:
        with w.daemon.connect() as c:
            w.ask("Bash", {"command": "true"}, c)
        same(w.browse("tabs")["tabs"], 13, "tabs")


if __name__ == "__main__":
    main(globals())
