#!/usr/bin/env python3
"""examples/mcp-everything.c before the protocol's official suite and its own libraries."""
import os
import re

from harness import Folder, check, main, note, rss, same
from mcp_npm import (ATTEMPTS, NODE, PACKAGES, SUITE, need, outcomes, passes_alone, run_script,
                     run_suite)
from mcp_world import EVERYTHING, Everything


def scored(version):
    """The server scenarios that a version requires."""
    with open(os.path.join(os.path.dirname(os.path.dirname(SUITE)), "requirements",
                           version + ".yaml")) as f:
        text = f.read()
    return re.findall(r"^  - (\S+)$", text.split("\nserver:\n")[1].split("\nclient:\n")[0], re.M)


def judge(version, count, known):
    """All scored scenarios pass; what is not scored fails only where it is known to."""
    need(NODE, SUITE)
    required = scored(version)
    same(len(required), count, "scored scenarios at " + version)
    with Folder() as folder, Everything() as server:
        result = outcomes(run_suite(server, folder.path, "--requirements", version))
        check(set(required) <= set(result), "not run: %s", set(required) - set(result))
        failed = [name for name, passed in result.items() if not passed and name not in known]
        for _ in range(ATTEMPTS):
            failed = [name for name in failed
                      if not passes_alone(server, folder, version, name)]
        same(failed, [], "failed scenarios at " + version)
        note("%s: %d of %d scenarios" % (version, sum(result.values()), len(result)))


def test_suite_2025_11_25():
    judge("2025-11-25", 30, ())


# The extension for tasks: what has the tools for them is another program.
TASKS = ("tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields",
         "tasks-request-state-removal", "tasks-mrtr-input", "tasks-request-headers",
         "tasks-dispatch-and-envelope", "tasks-required-task-error", "tasks-mrtr-composition")


def test_suite_2026_07_28():
    judge("2026-07-28", 37, TASKS)


def test_suite_of_tasks():
    need(NODE, SUITE)
    with Folder() as folder, Everything(program="mcp-tasks") as server:
        failed = list(TASKS)
        for _ in range(ATTEMPTS):
            failed = [name for name in failed
                      if not passes_alone(server, folder, "2026-07-28", name)]
        same(failed, [], "failed scenarios of tasks")


# ---- the protocol's own libraries ----

SAID = {
    "test_simple_text": "This is a simple text response for testing.",
    "test_multiple_content_types": "Multiple content types test:",
    "test_error_handling": "This tool intentionally returns an error for testing",
    "test_tool_with_logging": "Done in three steps.",
    "test_tool_with_progress": "Done in three steps.",
    "test_reconnection": "Reconnection test completed successfully.",
    "test_sampling": "LLM response: Paris",
    "test_missing_capability": "LLM response: Paris",
    "test_streaming_elicitation": "Hello, Ada!",
    "test_logging_tool": "Logged, if you wanted it.",
    "test_trigger_tool_change": "Told everybody that tools have changed.",
    "test_trigger_prompt_change": "Told everybody that prompts have changed.",
    "test_trigger_resource_update": "Told those who watch it.",
    "test_input_required_result_elicitation": "Hello, Ada!",
    "test_input_required_result_sampling": "LLM response: Paris",
    "test_input_required_result_list_roots": 'Roots: [{"uri":"file:///work","name":"work"}]',
    "test_input_required_result_request_state": "state-ok",
    "test_input_required_result_tampered_state": "state-ok",
    "test_input_required_result_multiple_inputs": "Hello, Ada!",
    "test_input_required_result_multi_round": "Hello, Ada!",
    "test_input_required_result_capabilities": "Nothing more to ask.",
    "sum": '{"sum":42}',
    "json_schema_2020_12_tool": "Ada",
    "test_header": "Ada",
}
KINDS = {"test_image_content": ["image"], "test_audio_content": ["audio"],
         "test_embedded_resource": ["resource"],
         "test_multiple_content_types": ["text", "image", "resource"]}


def check_tools(tools):
    same(len(tools), 31, "tools")
    for name, got in tools.items():
        same(got["kinds"], KINDS.get(name, ["text"]), name)
        same(got["isError"], name == "test_error_handling", name)
        if name in SAID:
            same(got.get("text"), SAID[name], name)
        elif name.startswith("test_elicitation"):
            check('"action":"accept"' in got["text"], "%s: %s", name, got)
    same(tools["sum"]["structured"], {"sum": 42})


def check_rest(out):
    same(out["server"]["name"], "mcp-everything")
    same((out["wrong"]["isError"], out["wrong"]["text"]), (True, "a must be a number, not string"))
    same(out["unknown"], -32602)
    same(out["resources"]["test://static-text"],
         ["This is the content of the static text resource."])
    same(out["template"], '{"id":"7","templateTest":true,"data":"Data for ID: 7"}')
    same((out["templates"], out["completion"]),
         (["test://template/{id}/data"], ["paris", "park", "party"]))
    same(out["prompts"], {
        "test_simple_prompt": ["This is a simple prompt for testing."],
        "test_prompt_with_arguments": ["Prompt with arguments: arg1='one', arg2='two'"],
        "test_prompt_with_embedded_resource":
            ["resource", "Please process the embedded resource above."],
        "test_prompt_with_image": ["image", "Please analyze the image above."],
        "test_input_required_result_prompt": ['Use this context: {"context":"tests"}']})
    check(out["progress"][:2] == [0, 50], "progress is %s", out["progress"])


def run_client(library, era, *place):
    out = run_script("mcp_client.mjs", library, era, *place)
    check_tools(out["tools"])
    check_rest(out)
    if era == "legacy":
        same(out["heard"], ["notifications/" + name for name in (
            "message", "prompts/list_changed", "resources/updated", "tools/list_changed")])
    if library == "sdk":
        same(out["missing"], -32002)


def clients(library, *eras):
    need(NODE, os.path.join(PACKAGES, "node_modules", "@modelcontextprotocol", library))
    for era in eras:
        run_client(library, era, "stdio", EVERYTHING)
        with Everything() as server:
            run_client(library, era, "http", server.url)
            note("%s, %s: %.1f MB resident" % (library, era, rss(server.pid) / 1e6))


def test_every_tool_by_the_first_library():
    clients("sdk", "legacy")


def test_every_tool_by_the_second_library():
    clients("client", "legacy", "modern", "auto")


if __name__ == "__main__":
    main(globals())
