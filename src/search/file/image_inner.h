/* Internal to file/: the blocks of an image. */
#pragma once

#include "search/file/image.h"
#include "search/index_inner.h"

_Static_assert(SEARCH_BLOCKS == N_DOC_COLUMNS + 5, "all columns but one, and six others");

/* The blocks' lengths; -EBADMSG when no index has such numbers. */
int image_lengths(const struct search_head *head, size_t lens[SEARCH_BLOCKS]);

void image_blocks(const struct search_index *ix, const size_t lens[SEARCH_BLOCKS], uint64_t *chats,
		  struct search_block blocks[SEARCH_BLOCKS]);
