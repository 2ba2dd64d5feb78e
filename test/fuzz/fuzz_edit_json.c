/* Any bytes as a JSON file of an agent. The first chooses the dialect and the edit. */
#include "edit_feed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct edit edits[] = {
		{EDIT_MEMBER, "a/koine", "{\"command\":\"koine\",\"args\":[\"mcp\"]}"},
		{EDIT_ELEMENT, "h/E", "{\"hooks\":[{\"command\":\"koine hook\"}]}"},
		{EDIT_ELEMENT, "p", "\"w\""},
	};

	if (size == 0)
		return 0;
	edit_feed(data[0] & 1 ? &jsonc_editor : &json_editor, &edits[(data[0] >> 1) % 3], data + 1,
		  size - 1);
	return 0;
}
