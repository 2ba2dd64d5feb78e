/*
 * koine-hash: vectors for clients that need some, where there is no model. It knows words, not
 * what they mean: only texts that share words, stems or pieces of words are close to each other.
 * koine's own search does not use it, since words alone rank better.
 *
 * Every word (folded, stemmed; see words.h) and every run of three and of four of its characters
 * is hashed to one of the axes and a sign, and adds its weight there:
 *
 *	a word 64, one that means little by itself 8, a run of characters 16
 *
 * The sum is then normalised to length one. Runs are taken from the word before stemming, enclosed
 * in "<" and ">"; words that mean little by themselves have none. The hash is 64-bit FNV-1a over a
 * letter for the kind ('w' or 'g') and the bytes, multiplied once more; see hash_embed.c. All sums
 * are of integers, so every machine makes the same vectors from the same stems. A text without
 * words becomes the first axis.
 */
#pragma once

#include "search/words.h"

#define HASH_EMBED_NAME "koine-hash"

enum { HASH_EMBED_DIM = 256 };

void hash_embed(struct words *w, struct text text, float ret_vector[HASH_EMBED_DIM]);
