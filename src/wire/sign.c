#include "wire/sign.h"

#include <nettle/base16.h>
#include <nettle/hmac.h>

void sign_hex(struct text key, struct text stamp, struct text body, char out[SIGN_HEX_LEN + 1])
{
	uint8_t mac[SHA256_DIGEST_SIZE];
	struct hmac_sha256_ctx ctx;

	hmac_sha256_set_key(&ctx, key.len, (const uint8_t *)key.data);
	hmac_sha256_update(&ctx, stamp.len, (const uint8_t *)stamp.data);
	hmac_sha256_update(&ctx, 1, (const uint8_t *)".");
	hmac_sha256_update(&ctx, body.len, (const uint8_t *)body.data);
	hmac_sha256_digest(&ctx, sizeof(mac), mac);
	base16_encode_update(out, sizeof(mac), mac);
	out[SIGN_HEX_LEN] = '\0';
}
