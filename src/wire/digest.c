#include "wire/digest.h"

#include <nettle/base16.h>
#include <nettle/sha2.h>

void digest_hex(struct text text, char out[DIGEST_HEX_LEN + 1])
{
	uint8_t digest[SHA256_DIGEST_SIZE];
	struct sha256_ctx sha;

	sha256_init(&sha);
	sha256_update(&sha, text.len, (const uint8_t *)text.data);
	sha256_digest(&sha, sizeof(digest), digest);
	base16_encode_update(out, sizeof(digest), digest);
	out[DIGEST_HEX_LEN] = '\0';
}
