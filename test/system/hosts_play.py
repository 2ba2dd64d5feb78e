"""
`./dev hosts [N]`: koined on N hosts of one machine, over one PostgreSQL server, to try things with.

Commands from standard input do to them what happens to hosts. A signal, or the end of the input, ends everything.
"""
import os
import shutil
import signal
import sys

from harness import KOINE, Failure, Skip, wait_until
from hosts import NAMES, Hosts

FOLDER = os.environ.get("TEST_FOLDER", os.path.join(os.path.dirname(os.path.abspath(KOINE)), "hosts"))
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

COMMANDS = {
    "kill": (lambda node: node.kill(), "kill its koined (SIGKILL)"),
    "stop": (lambda node: node.stop(), "stop it gracefully"),
    "start": (lambda node: node.up(), "start it again"),
    "freeze": (lambda node: node.freeze(), "suspend koined and its programs (SIGSTOP)"),
    "thaw": (lambda node: node.thaw(), "resume them"),
    "cut": (lambda node: node.cut(), "disconnect it from the database"),
    "deafen": (lambda node: node.cut(leaving=False), "drop what the database sends to it"),
    "silence": (lambda node: node.cut(coming=False), "drop what it sends to the database"),
    "heal": (lambda node: node.heal(), "reconnect it"),
}


class End(Exception):
    pass


def end(*_):
    """Once: who is impatient must not leave half of it behind."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise End


def welcome(hosts):
    for node in hosts.nodes:
        print("  %-8s %s -s %s" % (node.name, os.path.relpath(KOINE), os.path.relpath(node.path)))
    print("\nThe database: psql %s" % hosts.admin_url())
    print("\nIn this terminal:")
    for word, (_, what) in COMMANDS.items():
        print("  %-16s %s" % (word + " NAME", what))
    print("  %-16s %s" % ("restart", "restart the database as after a power failure"))
    print("  %-16s %s" % ("quit", "stop everything, like Ctrl-C"))
    print("\nready", flush=True)


def obey(hosts, words):
    nodes = {node.name: node for node in hosts.nodes}
    if words == ["restart"]:
        hosts.server.restart()
    elif words in (["quit"], ["exit"]):
        raise End
    elif len(words) == 2 and words[0] in COMMANDS and words[1] in nodes:
        node = nodes[words[1]]
        if (words[0] == "start") == node.running:
            raise Failure("%s is %srunning" % (node.name, "" if node.running else "not "))
        COMMANDS[words[0]][0](node)
    elif words:
        raise Failure("unknown command: use restart, quit, or one of these with %s: %s" % (" or ".join(nodes), ", ".join(COMMANDS)))
    print("done" if words else "", flush=True)


def play(hosts):
    welcome(hosts)
    for line in sys.stdin:
        try:
            obey(hosts, line.split())
        except (Failure, Skip) as why:
            print(why, flush=True)
    # Somebody without a terminal waits for a signal.
    while not sys.stdin.isatty():
        signal.pause()


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdecimal() else 3
    if len(sys.argv) > 2 or not 1 <= n <= len(NAMES) or (len(sys.argv) > 1 and str(n) != sys.argv[1]):
        sys.exit("usage: ./dev hosts [N], with N from 1 to %d" % len(NAMES))
    for number in SIGNALS:
        signal.signal(number, end)
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(FOLDER)
    try:
        with Hosts(n, folder=FOLDER, lease=os.environ.get("KOINE_HOST_LEASE", "30"), env={"KOINE_AGENT_RECALL_WORD_DELAY": "80"}) as hosts:
            if not hosts.network.real:
                print("Not root: all hosts share this machine's network and cannot be disconnected.")
            # A host that does not list the others refuses tasks for them.
            for node in hosts.nodes:
                wait_until(lambda node=node: len(node.ask("host.list")[0]["hosts"]) == n, "%s to list all hosts" % node.name)
            play(hosts)
    except End:
        print("stopped")
    except (Failure, Skip) as why:
        sys.exit(str(why))
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)


if __name__ == "__main__":
    main()
