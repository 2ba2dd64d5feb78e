"""A home of its own, and koined in it as a service is run: without --root."""
import os

from harness import KOINED, Daemon


def home_environment(root, extra=None):
    """Everything that koined and koine look for lies below this folder."""
    return {"HOME": root, "XDG_RUNTIME_DIR": os.path.join(root, "run"),
            "XDG_CONFIG_HOME": os.path.join(root, "config"),
            "XDG_STATE_HOME": os.path.join(root, "state"), **(extra or {})}


def make_home(root):
    for name in ("run", "config/koine", "state/koine"):
        os.makedirs(os.path.join(root, name), mode=0o700, exist_ok=True)


def write_settings(root, text):
    path = os.path.join(root, "config", "koine", "koine.conf")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


class Service(Daemon):
    """koined --service, in a home of its own. settings: the text of its koine.conf."""

    def __init__(self, *args, settings="", flags=("--service",), **options):
        super().__init__(*args, **options)
        self.settings = settings
        self.flags = list(flags)

    def start(self):
        make_home(self.root)
        if self.settings:
            write_settings(self.root, self.settings)
        self.env = home_environment(self.root, self.env)
        self.popen.setdefault("cwd", self.root)
        super().start()

    def command(self):
        return [*self.wrapper, KOINED, *self.flags, *self.args]

    def runtime(self, name):
        return "unix:" + os.path.join(self.root, "run", "koine", name)

    def places(self):
        """What it said where it listens: dialect to addresses."""
        out = {}
        for dialect, address in self.addresses:
            out.setdefault(dialect, []).append(address)
        return out
