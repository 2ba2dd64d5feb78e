/* Any bytes as a TOML file of an agent. */
#include "edit_feed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct edit e = {EDIT_MEMBER, "m/koine",
				      "{\"command\":\"koine\",\"args\":[\"mcp\"]}"};

	edit_feed(&toml_editor, &e, data, size);
	return 0;
}
