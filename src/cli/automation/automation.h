/* koine rule and koine project: what they share. */
#pragma once

#include <stdint.h>
#include <stdio.h>

/* Says how many rules are too many to be used; nothing if none is. */
void automation_print_left_out(FILE *to, int64_t n);
