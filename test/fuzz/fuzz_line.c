/* Newline-delimited messages, whole and in pieces; see fuzz_framing.h. */
#include "fuzz_framing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_framing(&framing_line, data, size);
	return 0;
}
