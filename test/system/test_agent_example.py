#!/usr/bin/env python3
"""
README's scene by hand: a shell script as a session's agent, followed in one terminal, its question
decided in another, whereupon it goes on.
"""
import contextlib
import os

from harness import SOURCE, Daemon, main
from test_chat_cli import Terminal, of
from test_task_cli import frame_with

SCRIPT = os.path.join(SOURCE, "examples", "agent.sh")


@contextlib.contextmanager
def two_terminals():
    """One that follows the session until it waits, and one with the list of what waits."""
    with Daemon("--set", "session.program=" + SCRIPT) as d:
        with Terminal(of(d), "approvals", "-w") as list_, \
                Terminal(of(d), "session", "add", "--follow", 'ship the "release"') as session:
            session.expect('> ship the "release"')
            session.expect('You want me to ship the "release". I will ask first.')
            session.expect("deploy waits for approval: koine approve ")
            id = session.expect(", or koine deny ")
            frame_with(list_, id + " ", "deploy", '{"to":"production"}')
            yield session, list_


def test_the_script_goes_on_when_it_may():
    with two_terminals() as (session, list_):
        # It has just come: whoever is that quick has to choose it.
        list_.type("ka")
        session.expect("deploy was approved by human")
        session.expect("deployed")
        session.expect("Done: deployed to production.")
        session.leave()
        list_.type("q")
        list_.leave()


def test_the_script_is_told_when_it_may_not():
    with two_terminals() as (session, list_):
        list_.type("d")
        list_.type("not on a Friday\r")
        session.expect("deploy was denied by human")
        session.expect("not allowed")
        session.expect("Then not.")
        session.leave()
        list_.type("q")
        list_.leave()


if __name__ == "__main__":
    main(globals())
