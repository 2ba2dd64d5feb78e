"""
A real systemd user manager, where this machine lets us have one: as root, in a mount namespace
with a /run of its own and in a cgroup of its own, so that nobody else notices.
"""
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile

from harness import KOINE, KOINED, PATIENCE, SOURCE, Skip, check, clean_environment, installed, missing, wait_until

SYSTEMD = "/lib/systemd/systemd"
CGROUPS = ("/sys/fs/cgroup", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified")
UNITS = os.path.join(SOURCE, "dist", "systemd")

# What a booted system has before its managers start. The nodes are what ProtectHome= and others put
# over what is not to be seen.
SCRIPT = """
set -e
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /srv
mkdir -p /run/systemd/system /run/systemd/inaccessible/dir /run/manager /srv/home /srv/bin /srv/units
mount --bind "$BUILT" /srv/bin
mount --bind "$UNITS" /srv/units
touch /run/systemd/inaccessible/reg
mkfifo /run/systemd/inaccessible/fifo
mknod /run/systemd/inaccessible/chr c 0 0
mknod /run/systemd/inaccessible/blk b 0 0
chmod 000 /run/systemd/inaccessible/*
chmod 755 /run /srv /srv/home
chmod 711 /run/manager
mkdir -p "$XDG_CONFIG_HOME/systemd/user"
cp -r "$FIRST"/. "$XDG_CONFIG_HOME/systemd/user"
for folder in $GROUPS_OF_OURS; do echo $$ >"$folder/cgroup.procs"; done
exec %s --user --log-target=null
""" % SYSTEMD


def unit(kind, name, bindir=os.path.dirname(KOINED), units=UNITS, **replaced):
    """A unit as it is installed, with what was built in the place of what will be installed."""
    path = os.path.join(UNITS, kind, name)
    with open(path + (".in" if not os.path.exists(path) else ""), encoding="utf-8") as f:
        text = f.read()
    text = text.replace("@bindir@", bindir)
    text = text.replace("@sysconfdir@/koine", os.path.join(units, "system"))
    for old, new in replaced.items():
        check(old + "=" in text, "there is no %s", old)
        text = "\n".join(new if line.startswith(old + "=") else line for line in text.split("\n"))
    return text


def unit_within(kind, name, **replaced):
    """The same for a UserManager, where no sandbox hides what was built: not below /tmp nor a home."""
    return unit(kind, name, "/srv/bin", "/srv/units", **replaced)


def proc_text(pid, name):
    """What a process that should be gone is, and what it waits for."""
    with contextlib.suppress(OSError), open("/proc/%d/%s" % (pid, name), "rb") as f:
        return f.read(2000)
    return None


class UserManager:
    """units: file name to text, in the folder where a user's units are."""

    def __init__(self, units):
        self.units = units
        self.groups = []
        self.process = None

    def __enter__(self):
        if os.geteuid() != 0:
            raise Skip("a user manager of our own needs root")
        installed("nsenter")
        if not os.path.exists(SYSTEMD):
            missing("systemd")
        self.folder = tempfile.mkdtemp(prefix="koine-units-")
        try:
            self.start()
        except BaseException:
            self.clean_up()
            raise
        return self

    def start(self):
        for name, text in self.units.items():
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as f:
                f.write(text)
        self.make_groups()
        self.env = clean_environment({
            "HOME": "/srv/home", "XDG_RUNTIME_DIR": "/run/manager",
            "XDG_CONFIG_HOME": "/srv/home/.config", "XDG_STATE_HOME": "/srv/home/state",
            "GROUPS_OF_OURS": " ".join(self.groups), "FIRST": self.folder,
            "BUILT": os.path.dirname(os.path.realpath(KOINED)), "UNITS": UNITS})
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", SCRIPT], env=self.env,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

        def is_up():
            if self.process.poll() is not None:
                raise Skip("no user manager here: %.200r" % self.process.stderr.read())
            return self.run("systemctl", "--user", "is-system-running").stdout.strip() in (
                b"running", b"degraded")

        wait_until(is_up, "a user manager")

    def make_groups(self):
        """Away from what others have: a manager ends what is in its groups."""
        for top in CGROUPS:
            if not os.path.exists(os.path.join(top, "cgroup.procs")):
                continue
            group = os.path.join(top, os.path.basename(self.folder))
            try:
                os.mkdir(group)
            except OSError as why:
                raise Skip("no cgroup of our own: %s" % why) from None
            self.groups.append(group)
        if not self.groups:
            raise Skip("there are no cgroups")

    def run(self, *argv, env=None):
        """A command in the manager's namespace."""
        command = ["nsenter", "--mount", "--target", str(self.process.pid), "--", *argv]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True,
                              env={**self.env, **(env or {})}, timeout=PATIENCE, cwd="/")

    def systemctl(self, *args):
        done = self.run("systemctl", "--user", *args)
        check(done.returncode == 0, "systemctl %r: %r", args, done.stderr)
        return done.stdout.decode()

    def show(self, unit_name, member):
        return self.systemctl("show", unit_name, "-p", member, "--value").strip()

    def koine(self, *args, status=0, env=None):
        done = self.run(KOINE, *args, env=env)
        check(status is None or done.returncode == status, "koine %r: %d %r %r", args,
              done.returncode, done.stdout, done.stderr)
        return (done.stdout + (b"" if status == 0 else done.stderr)).decode()

    def __exit__(self, *exc):
        self.clean_up()

    def clean_up(self):
        if self.process:
            if self.process.poll() is None:
                # It starts its exit.target: all units are stopped first.
                self.process.send_signal(signal.SIGTERM)
                try:
                    self.process.wait(PATIENCE)
                except subprocess.TimeoutExpired:
                    self.process.kill()
                    self.process.wait()
            self.process.stderr.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        left = []
        for group in self.groups:
            for at, _, _ in os.walk(group, topdown=False):
                left += self.end_all(at)
                with contextlib.suppress(OSError):
                    os.rmdir(at)
        check(not left, "left behind: %r", left)

    @staticmethod
    def end_all(group):
        """Who is still in a cgroup of ours; then nobody is."""
        found = []
        with contextlib.suppress(OSError), open(os.path.join(group, "cgroup.procs")) as f:
            for pid in map(int, f.read().split()):
                found.append((pid, *(proc_text(pid, name) for name in ("cmdline", "wchan", "syscall", "status"))))
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        return found
