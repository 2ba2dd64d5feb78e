/* What a fault (-errno) is called where a person reads it: in an answer, a log line, koine status. */
#pragma once

struct fault_name {
	int fault; /* 0 ends a list */
	const char *words;
};

/* Never NULL. Any thread. */
const char *fault_words(int fault);

/* From now on the faults in this list have its words, and all others those of strerror. NULL: all have
 * those. A store on a server calls it: its faults are not this machine's. */
void fault_set_names(const struct fault_name *names);
