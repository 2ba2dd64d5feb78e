"""A daemon with something in every room of the page, and a real browser in front of it."""
import contextlib
import json
import os
import subprocess

from harness import KOINE, Daemon, Folder, check, clean_environment, installed, same, wait_until
from mcp_npm import HERE, NODE, PACKAGES, need

CHROMIUM = "/usr/bin/chromium"

# A session's agent that asks what its query says, so that it is an agent of koined's that asks,
# and not the test.
AGENT = """#!/bin/sh
for query; do :; done
printf '{"type":"system","subtype":"init","session_id":"shell-%s"}\\n' $$
printf '{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"<b>Hm</b>"}]}}\\n'
printf '{"type":"assistant","message":{"content":[{"type":"text","text":"I will ask first."}]}}\\n'
printf '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"1","name":"Bash","input":{"command":"ls <i>x</i>"}}]}}\\n'
printf '{"type":"assistant","parent_tool_use_id":"1","message":{"content":[{"type":"text","text":"Below it."}]}}\\n'
printf '%s' "$query" | "$KOINE" hook --format plain >/dev/null
printf '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"1","content":"done"}]}}\\n'
printf '{"type":"result","subtype":"success","is_error":false,"result":"ended","total_cost_usd":0.031}\\n'
"""

RUNNER = """#!/bin/sh
for prompt; do :; done
exec /bin/sh -c "$prompt"
"""

CONFIG = """
[session]
program = %(agent)s
[agent shell]
kind = command
command = %(runner)s
[tasks]
runner = shell
[rule nightly]
cron = 0 3 * * *
prompt = check the links
"""

EDIT = {"file_path": "/src/app/server.c",
        "old_string": "int main(void)\n{\n\treturn 1;\n}\n",
        "new_string": "int main(void)\n{\n\tserve();\n\treturn 0;\n}\n"}
EVIL = "<img src=x onerror=alert(1)> \x1b[31m \u202e"
ASKED = [("Bash", {"command": "make install && reboot"}), ("Edit", EDIT),
         ("deploy", {"to": EVIL, "hosts": ["a", "b"]}), ("Bash", {"command": "git push"})]
MEMORIES = ["Ann plays the violin in the town orchestra", "The release is on Friday " + EVIL,
            "Builds run on koine-ci; its disk is small"]


class PageWorld(Folder):
    def __init__(self, *args):
        super().__init__()
        self.args = args

    def __enter__(self):
        super().__enter__()
        self.stack = contextlib.ExitStack()
        for name, text in (("agent", AGENT), ("runner", RUNNER)):
            with open(self(name), "w", encoding="utf-8") as f:
                f.write(text)
            os.chmod(self(name), 0o755)
        with open(self("koine.conf"), "w", encoding="utf-8") as f:
            f.write(CONFIG % {"agent": self("agent"), "runner": self("runner")})
        self.daemon = self.stack.enter_context(
            Daemon("--config", self("koine.conf"), "--set", "approval.agents_decide=no", *self.args,
                   env={"KOINE": KOINE, "KOINE_HOST_NAME": "alone"}))
        return self

    def __exit__(self, *exc):
        try:
            self.stack.close()
        finally:
            super().__exit__(*exc)

    def ask(self, tool, given, client):
        """A session that asks; returns when it waits."""
        before = client.call("approval.list")["pending"]
        client.call("session.launch", {"query": json.dumps({"tool_name": tool, "tool_input": given}),
                                       "title": "%s, please" % tool})
        wait_until(lambda: client.call("approval.list")["pending"] > before, "it asks")

    def fill(self):
        with self.daemon.connect() as c:
            for text in MEMORIES:
                c.call("memory.add", {"content": text})
            first = c.call("task.add", {"prompt": "echo built", "group": "build"})["id"]
            c.call("task.add", {"prompt": "echo tested; exit 3", "after": [first]})
            c.call("task.wait", {"id": first})
            for tool, given in ASKED:
                self.ask(tool, given, c)

    def link(self):
        done = subprocess.run([KOINE, "--socket", self.daemon.socket_path, "page", "--no-open"],
                              capture_output=True, text=True, timeout=60)
        same(done.returncode, 0, "koine page, %r" % done.stderr)
        return done.stdout.strip()

    def browse(self, what, env=None, link=None):
        """What the browser found, without problems."""
        need(NODE, os.path.join(PACKAGES, "node_modules", "playwright-core"))
        installed(CHROMIUM)
        extra = {"KOINE": KOINE, "KOINE_SOCKET": self.daemon.socket_path, "HOME": self.path}
        done = subprocess.run([NODE, os.path.join(HERE, "page_browser.mjs"), PACKAGES, self.path,
                               link or self.link(), what],
                              env=clean_environment({**extra, **(env or {})}),
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=600)
        same(done.returncode, 0, "node's end, %r" % done.stderr[-2000:])
        found = json.loads(done.stdout)
        same(found.pop("problems"), [], "problems")
        return found
