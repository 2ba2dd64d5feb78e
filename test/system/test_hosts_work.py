"""What several hosts do for people: tasks and their output, sessions, approvals, rules, conversations, memory."""
import hosts_chat
import hosts_circles
import hosts_memory
import hosts_output
import hosts_tasks
import hosts_work
from test_hosts import run

if __name__ == "__main__":
    run([hosts_tasks, hosts_output, hosts_work, hosts_circles, hosts_chat, hosts_memory])
