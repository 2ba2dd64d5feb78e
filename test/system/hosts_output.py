"""What a task prints, as other hosts read it: at the seams of attempts, of chunks and of characters."""
import json
import os
import threading

from harness import Client, check, request, same, wait_until
from hosts import Hosts
from hosts_tasks import in_state, task

# The second attempt says less than the first.
TWICE = 'if [ $KOINE_ATTEMPT = 1 ]; then echo "the first attempt, at $KOINE_HOST"; sleep 300; fi; echo second'


class Following(threading.Thread):
    """task.follow; its pieces and its end."""

    def __init__(self, node, id):
        super().__init__(daemon=True)
        self.node, self.id = node, id
        self.pieces, self.end = [], None
        self.start()

    def run(self):
        with Client("unix:" + self.node.path, timeout=180) as c:
            c.send(request("task.follow", {"id": self.id}) + b"\n")
            while "params" in (told := json.loads(c.read_line())):
                self.pieces.append(told["params"])
            self.end = told

    @property
    def text(self):
        return "".join(p["text"] for p in self.pieces)


def run(node, line, **params):
    found, error = node.ask("task.run", {"command": ["sh", "-c", line], **params})
    check(found, "%r", error)
    return found["id"]


def output(node, id, **params):
    return node.ask("task.output", {"id": id, **params})[0]


def test_what_the_next_attempt_prints_follows_elsewhere(server):
    with Hosts(3, server=server) as hosts:
        alpha, beta, gamma = hosts.nodes
        wait_until(lambda: len(alpha.ask("host.list")[0]["hosts"]) == 3, "all hosts")
        id = run(alpha, TWICE, host="alpha", retries=1)
        first = "the first attempt, at alpha\n"
        follows = Following(gamma, id)
        wait_until(lambda: follows.text == first, "the first attempt")
        alpha.kill()
        in_state(beta, id, "queued")
        for node in (beta, gamma):
            wait_until(lambda: output(node, id)["text"] == first, "what was printed, while it waits")
        wait_until(lambda: beta.ask("task.edit", {"id": id, "host": "beta"})[1] is None, "beta has heard of it")
        in_state(gamma, id, "completed")
        follows.join(60)
        same((follows.text, follows.end["result"]["state"]), (first + "second\n", "completed"), "what was followed")
        same(output(gamma, id)["text"], first + "second\n", "all of it")
        same(output(beta, id)["text"], "second\n", "where it ran last")
        same(task(beta, id)["result"], "second\n", "its result")


def test_a_character_before_a_gap_is_no_end(server):
    with Hosts(2, server=server) as hosts:
        alpha, beta = hosts.nodes
        id = run(alpha, "sleep 300", host="alpha")
        in_state(beta, id, "running")
        hosts.sql("INSERT INTO koine.task_chunk SELECT seq, 0, '\\x61c3' FROM koine.task;"
                  "INSERT INTO koine.task_chunk SELECT seq, 100, '\\xa46263' FROM koine.task")
        follows = Following(beta, id)
        wait_until(lambda: follows.text.endswith("bc"), "what is behind the gap")
        same([(p["offset"], p["next"]) for p in follows.pieces], [(0, 1), (1, 2), (101, 103)], "places")
        at, text = 0, ""
        while (piece := output(beta, id, offset=at))["next"] > at:
            text += piece["text"]
            at = piece["next"]
        same((at, text[0], text[-2:]), (103, "a", "bc"), "piece by piece")
        same(beta.ask("task.cancel", {"taskId": id})[1], None, "cancelled")
        follows.join(60)
        same(follows.end["result"]["state"], "cancelled", "its end")


def test_pieces_of_exactly_a_chunk(server):
    """256 KiB at a time, with a character across each end; and all of it in the end."""
    with Hosts(2, server=server) as hosts:
        alpha, beta = hosts.nodes
        go = os.path.join(hosts.folder, "go")
        line = ("import os, sys, time\n"
                "text = ('x' + chr(0x20ac) * 87381 * 3).encode()[:262144 * 3]\n"
                "for i in range(3):\n"
                "    sys.stdout.buffer.write(text[262144 * i:262144 * (i + 1)]); sys.stdout.flush()\n"
                "    while not os.path.exists(%r + str(i)): time.sleep(0.05)\n" % go)
        found, error = alpha.ask("task.run", {"command": ["python3", "-c", line], "host": "alpha"})
        check(found, "%r", error)
        follows = Following(beta, found["id"])
        for i in range(3):
            wait_until(lambda: len(follows.text.encode()) >= 262144 * (i + 1) - 2, "piece %d" % i)
            with open(go + str(i), "w"):
                pass
        follows.join(60)
        whole = ("x" + chr(0x20ac) * 87381 * 3).encode()[:262144 * 3].decode(errors="replace")
        same((len(follows.text), follows.text == whole), (len(whole), True), "what was followed")
        same(follows.end["result"]["state"], "completed", "its end")


def test_who_lost_an_attempt_deletes_nothing(server):
    """What another host's attempt has printed stays, whatever comes late from the one before."""
    with Hosts(1, server=server) as hosts:
        alpha = hosts.nodes[0]
        go = os.path.join(hosts.folder, "go")
        id = run(alpha, "while ! [ -e %s ]; do sleep 0.05; done; echo late; exec sleep 1" % go, retries=5)
        wait_until(lambda: task(alpha, id).get("pid"), "it runs")
        hosts.sql("INSERT INTO koine.host (name, epoch, state, boot, labels, version, since_ms, seen_ms, lease_ms,"
                  " running, parallel) VALUES ('ghost', 999, 0, '', '', '', 0, 0, %d, 0, 0)" % (1 << 60))
        hosts.sql("UPDATE koine.task SET epoch = 999, host = 'ghost', attempts = 2, version = version + 1;"
                  "INSERT INTO koine.task_chunk SELECT seq, 0, 'of the second' FROM koine.task")
        with open(go, "w"):
            pass
        fenced = "SELECT count(*) FROM koine.event WHERE type = 'task.fenced'"
        wait_until(lambda: hosts.sql(fenced).strip() == "1", "the event")
        same(hosts.sql("SELECT convert_from(bytes, 'UTF8') FROM koine.task_chunk").strip(), "of the second", "chunks")
