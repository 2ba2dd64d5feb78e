/* HTTP responses, whole and in pieces; see fuzz_framing.h. */
#include "fuzz_framing.h"
#include "wire/http/http1_response.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_framing(&framing_http_response, data, size);
	return 0;
}
