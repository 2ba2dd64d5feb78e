"""
A network of hosts in namespaces of our own: a hub, where the database is, and some hosts around it.

A namespace lives as long as its keeper, which ends when nobody holds its standard input any more: so nothing
is left behind, however we end. Who is whose neighbour is said, not asked for. So a direction is cut by
a wrong address: what is sent there is lost without a word, and needs no filter in the kernel.
"""
import os
import shutil
import subprocess

from harness import Failure, Skip, installed

HUB = "10.77.0.1"
WRONG = "02:00:0a:4d:ff:ff"


class Namespace:
    def __init__(self):
        # A signal from the terminal is for us: what is in it ends before it does.
        self.keeper = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, start_new_session=True)
        self.keeper.stdin.write(b"\n")
        self.keeper.stdin.flush()
        if self.keeper.stdout.read(1) != b"\n":
            self.close()
            raise Failure("no namespace for a network")
        self.wrapper = ["nsenter", "--net=/proc/%d/ns/net" % self.keeper.pid, "--"]
        self.ip("link set lo up")

    def ip(self, words):
        done = subprocess.run([*self.wrapper, "ip", *words.split()], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise Failure("ip %s: %s" % (words, done.stdout.decode()))

    def close(self):
        self.keeper.stdin.close()
        self.keeper.stdout.close()
        self.keeper.wait()


def mac(number):
    return "02:00:0a:4d:00:%02x" % number


class Network:
    """For a `with`. Hosts are numbers from 0 on; `outside`, where they cannot be made, is one host for all."""

    def __init__(self, n):
        self.n = n
        self.real = os.geteuid() == 0 and bool(shutil.which("ip")) and bool(shutil.which("nsenter"))
        self.spaces = []
        self.hub = None

    def __enter__(self):
        if self.real:
            try:
                self.build()
            except BaseException:
                self.close()
                raise
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        for space in [*self.spaces, self.hub]:
            if space:
                space.close()
        self.spaces, self.hub = [], None

    def build(self):
        self.hub = Namespace()
        self.hub.ip("link add br0 type bridge")
        self.hub.ip("link set br0 address %s up" % mac(1))
        self.hub.ip("address add %s/24 dev br0" % HUB)
        for number in range(self.n):
            self.add(number)

    def add(self, number):
        space = Namespace()
        self.spaces.append(space)
        self.hub.ip("link add v%d type veth peer name eth0 address %s netns %d" %
                    (number, mac(number + 11), space.keeper.pid))
        self.hub.ip("link set v%d master br0 up" % number)
        space.ip("address add %s/24 dev eth0" % self.address(number))
        space.ip("link set eth0 up")
        self.heal(number)

    def address(self, number):
        return "10.77.0.%d" % (number + 11) if self.real else "127.0.0.1"

    @property
    def server_address(self):
        return HUB if self.real else "127.0.0.1"

    @property
    def server_wrapper(self):
        return self.hub.wrapper if self.real else []

    def wrapper(self, number):
        return self.spaces[number].wrapper if self.real else []

    def need(self):
        if os.geteuid() == 0:
            installed("ip")
            installed("nsenter")
        if not self.real:
            raise Skip("networks of our own need root, ip and nsenter")

    def cut(self, number, leaving=True, coming=True):
        """What leaves the host, or comes to it, is lost."""
        self.need()
        self.say(number, WRONG if leaving else mac(1), WRONG if coming else mac(number + 11))

    def heal(self, number):
        self.say(number, mac(1), mac(number + 11))

    def say(self, number, hubs, hosts):
        self.spaces[number].ip("neigh replace %s lladdr %s nud permanent dev eth0" % (HUB, hubs))
        self.hub.ip("neigh replace %s lladdr %s nud permanent dev br0" % (self.address(number), hosts))
