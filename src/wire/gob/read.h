/* Reading one value, message by message: what decode.c and read.c tell each other. */
#pragma once

#include "wire/gob/decode.h"

/* From a reading: the message is over and the value is not. */
enum { GOB_WAIT = N_REFUSALS };

void gob_reading_begin(struct gob_reading *r, struct arena *a);
void gob_reading_done(struct gob_reading *r);

/*
 * Goes on with d->in. 0: the value has ended. GOB_WAIT, a refusal or a fault otherwise; only
 * after GOB_WAIT may it go on.
 */
int gob_read_on(struct gob_decoder *d, struct gob_reading *r, struct why *why);
