"""What all hosts know: conversations, ids of tasks, and each other."""
import json
import subprocess
import threading

from harness import KOINE, check, clean_environment, same, wait_until
from hosts import Hosts

SOON = 10  # seconds; it takes a fraction of one on a machine that has time


def koine(node, *words):
    done = subprocess.run([KOINE, "-s", node.path, *words], stdin=subprocess.DEVNULL, capture_output=True,
                          env=clean_environment(), timeout=60)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def ask(node, method, **params):
    result, error = node.ask(method, params)
    check(error is None and result is not None, "%s at %s: %r", method, node.name, error)
    return result


def states(node):
    """Name to state, as a host sees them."""
    result, _ = node.ask("host.list")
    return {h["name"]: h["state"] for h in result["hosts"]} if result else {}


def test_conversations_go_on_anywhere(server):
    with Hosts(2, server=server) as hosts:
        talk(*hosts.nodes)


def test_ids_of_tasks_are_unique(server):
    with Hosts(3, server=server) as hosts:
        tasks(*hosts.nodes)


def test_hosts_are_listed(server):
    with Hosts(3, server=server) as hosts:
        listed(hosts)


def talk(a, b):
    ask(a, "send", content="My name is Alice")
    check("Alice" in ask(b, "send", content="What is my name?")["content"], "a conversation")


def tasks(*nodes):
    ids = []
    threads = [threading.Thread(target=lambda n=node: [ids.append(ask(n, "task.add", prompt="x", stash=True)["id"])
                                                       for _ in range(10)]) for node in nodes]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    same(sorted(ids), ["task-%04d" % i for i in range(30)], "ids")
    for node in nodes:
        wait_until(lambda: ask(node, "task.find")["counts"]["total"] == 30, "30 tasks at " + node.name, SOON)


def listed(hosts):
    want = {n.name: "alive" for n in hosts.nodes}
    for node in hosts.nodes:
        wait_until(lambda: states(node) == want, "all at " + node.name, SOON)
        same([h["name"] for h in ask(node, "host.list")["hosts"] if h["this"]], [node.name], "which one it is")
        done = koine(node, "hosts")
        same((done[0], done[2]), (0, ""), "koine hosts")
        check("\n%s*" % node.name in done[1] and all(name in done[1] for name in want), "%s", done[1])
        code, out, _ = koine(node, "hosts", "--json")
        same((code, {h["name"]: h["state"] for h in json.loads(out)}), (0, want), "as JSON")
    hosts.nodes[2].stop()
    wait_until(lambda: states(hosts.nodes[0]) == {**want, "gamma": "left"}, "gamma to have left", SOON)
