"""Pictures of the page for the documents: page_pictures.py FOLDER. ./dev screenshots runs it."""
import json
import os
import sys

from harness import wait_until
from page_world import PageWorld

HOME = "/home/ann/"
EDIT = {"file_path": HOME + "shop/src/cart.py",
        "old_string": """def total(items):
    sum = 0
    for item in items:
        sum += item.price
    return sum
""",
        "new_string": """def total(items, currency="EUR"):
    return Money(sum(item.price * item.count
                     for item in items), currency)
"""}
ASKED = [
    ("claude", "shop", "Bash", {"command": "git push --force-with-lease origin release/2.4",
                                "description": "Push the rebased release branch"}),
    ("codex", "shop", "Edit", EDIT),
    ("gemini", "infra", "deploy", {"to": "staging", "services": ["api", "worker"], "migrate": True}),
]
QUESTION = "The invoices of March have two currencies. Round each line, or only the total?"

# What an agent says in its session, one line each.
SAID = [
    {"type": "system", "subtype": "init", "session_id": "s"},
    {"thinking": "Two tests fail since the currency was added. I look at the cart first."},
    "I will find out why the cart's total is off by one cent.",
    ("1", "Bash", {"command": "pytest tests/test_cart.py -q"}, "F.F....\n2 failed, 5 passed in 0.41s"),
    ("2", "Task", {"description": "Where is a price rounded?", "prompt": "Find each place that rounds a price."}, None),
    ("3", "Grep", {"pattern": "round\\(", "path": "src"}, "src/cart.py:14\nsrc/invoice.py:52"),
    ("4", "Edit", EDIT, "The file was changed."),
    "Prices were rounded twice: once in each line, and once in the total. Now only the total is rounded, and all "
    "seven tests pass.",
]
AGENT = """#!/bin/sh
cat %s
"""
RUNNER = """#!/bin/sh
for prompt; do :; done
case $prompt in
Translate*) echo "page 3 of 12: payments"; exec sleep 600 ;;
Build*) echo "no space left on device"; exit 1 ;;
*) echo "412 passed in 38.20s" ;;
esac
"""
MEMORIES = [("The shop is deployed from the branch release; staging from next", "decision"),
            ("Prices are kept as integers, in cents", "decision"),
            ("Tests of the cart need the database of docker compose up db", "fact"),
            ("Ann wants commits signed and messages in English", "preference")]


def line(said):
    if isinstance(said, dict) and "type" in said:
        return said
    if isinstance(said, dict):
        part = {"type": "thinking", **said}
    elif isinstance(said, str):
        part = {"type": "text", "text": said}
    else:
        part = {"type": "tool_use", "id": said[0], "name": said[1], "input": said[2]}
    parent = {"parent_tool_use_id": "2"} if isinstance(said, tuple) and said[0] == "3" else {}
    return {"type": "assistant", "message": {"content": [part]}, **parent}


def lines():
    for said in SAID:
        yield line(said)
        if isinstance(said, tuple) and said[3]:
            result = {"type": "tool_result", "tool_use_id": said[0], "content": said[3]}
            parent = {"parent_tool_use_id": "2"} if said[0] == "3" else {}
            yield {"type": "user", "message": {"content": [result]}, **parent}
    yield {"type": "result", "subtype": "success", "is_error": False, "result": "done", "total_cost_usd": 0.184,
           "usage": {"input_tokens": 18204, "output_tokens": 2311}}


def fill(w, c):
    with open(w("said"), "w", encoding="utf-8") as f:
        f.write("".join(json.dumps(said) + "\n" for said in lines()))
    with open(w("agent"), "w", encoding="utf-8") as f:
        f.write(AGENT % w("said"))
    for text, category in MEMORIES:
        c.call("memory.add", {"content": text, "category": category, "source": "claude"})
    session = c.call("session.launch", {"query": "The total of a cart is off by one cent. Find out why, and mend it.",
                                        "title": "The total is off by one cent", "working_dir": "/srv"})["id"]
    wait_until(lambda: c.call("session.get", {"id": session})["status"] == "completed", "its end")
    with open(w("runner"), "w", encoding="utf-8") as f:
        f.write(RUNNER)
    build = c.call("task.add", {"prompt": "Run all tests of the shop", "group": "shop", "label": "nightly"})["id"]
    c.call("task.wait", {"id": build})
    docs = c.call("task.add", {"prompt": "Translate the manual into French", "group": "docs"})["id"]
    c.call("task.add", {"prompt": "Send the French manual to Marie for review", "after": [docs], "group": "docs"})
    broken = c.call("task.add", {"prompt": "Build the packages of release 2.4", "group": "shop"})["id"]
    c.call("task.wait", {"id": broken})
    c.call("task.add", {"prompt": "Look for dead links in the guide", "priority": 5, "stash": True})
    wait_until(lambda: c.call("task.show", {"id": docs})["state"] == "running", "its start")
    for agent, folder, tool, given in ASKED:
        c.call("approval.create", {"agent": agent, "origin": HOME + folder, "tool": tool, "input": given, "session_id": session,
                                   "timeout": 1500})
    c.call("approval.create", {"agent": "claude", "origin": HOME + "books", "kind": "human_contact", "tool": "A question",
                               "input": {"msg": QUESTION}})
    return session, docs


with PageWorld("--set", "approval.agents_decide=yes") as world, world.daemon.connect() as client:
    session, task = fill(world, client)
    world.browse("pictures", {"KOINE_PICTURES": os.path.abspath(sys.argv[1]), "KOINE_OPEN": json.dumps({"session": session, "task": task})})
