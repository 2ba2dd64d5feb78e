/*
 * The end of everything that carries a mark of one owner, wherever it came from: after a crash, or
 * when nobody may run any more.
 */
#pragma once

/*
 * One round. Returns about how many processes and cgroups there were, or 0: nobody is left, and
 * nobody was while this looked. Those whose limit carries the mark end first, since nothing that
 * hangs can keep us from finding them.
 */
unsigned sweep(const char *owner);

/* Rounds until nobody is left, for a second or so. Returns what the last one did. */
unsigned sweep_all(const char *owner);
