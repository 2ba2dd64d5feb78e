/*
 * Hashes for tables in memory. They also are in files of indexes (file/image.h), which another
 * version of them would not read.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t mix_u64(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93U;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93U;
	return x ^ x >> 32;
}

/* For words from strangers, use a seed that they cannot know. */
static inline uint64_t mix_bytes(const char *data, size_t len, uint64_t seed)
{
	uint64_t hash = seed + len * 0x9e3779b97f4a7c15U;
	uint64_t word;

	for (; len >= 8; data += 8, len -= 8) {
		memcpy(&word, data, 8);
		hash = mix_u64(hash ^ word);
	}
	word = 0;
	/* Copy byte by byte: memcpy of a few bytes, unknown in number, is a call. */
	for (size_t i = 0; i < len; i++)
		word |= (uint64_t)(unsigned char)data[i] << (8 * i);
	return mix_u64(hash ^ word);
}
