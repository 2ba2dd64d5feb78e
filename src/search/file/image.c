/* An index as bytes; see image.h. Reading them is in reading.c. */
#include "search/file/image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "search/index_inner.h"
#include "search/words.h"

/* ---- sums ---- */

static const uint64_t lane_factors[4] = {0x9e3779b97f4a7c15U, 0xc2b2ae3d27d4eb4fU,
					 0x165667b19e3779f9U, 0xd6e8feb86659fd93U};

void search_sum_init(struct search_sum *s)
{
	for (int i = 0; i < 4; i++)
		s->lanes[i] = lane_factors[i];
}

static inline uint64_t lane_add(uint64_t lane, uint64_t word, uint64_t factor)
{
	lane = (lane ^ word) * factor;
	return lane ^ lane >> 29;
}

/* Four lanes at once: a processor multiplies several numbers in the time of one. */
void search_sum_add(struct search_sum *s, const void *data, size_t len)
{
	const unsigned char *at = data;
	uint64_t words[4];
	uint64_t a = s->lanes[0], b = s->lanes[1], c = s->lanes[2], d = s->lanes[3];
	size_t rest = len % sizeof(words);

	for (size_t i = 0; i < len / sizeof(words); i++, at += sizeof(words)) {
		memcpy(words, at, sizeof(words));
		a = lane_add(a, words[0], lane_factors[0]);
		b = lane_add(b, words[1], lane_factors[1]);
		c = lane_add(c, words[2], lane_factors[2]);
		d = lane_add(d, words[3], lane_factors[3]);
	}
	s->lanes[0] = a;
	s->lanes[1] = b;
	s->lanes[2] = c;
	s->lanes[3] = d;
	for (size_t i = 0; i < rest; i++)
		s->lanes[i % 4] = lane_add(s->lanes[i % 4], at[i] + 1U, lane_factors[i % 4]);
}

uint64_t search_sum_end(const struct search_sum *s)
{
	uint64_t sum = 0;

	for (int i = 0; i < 4; i++)
		sum = lane_add(sum, s->lanes[i], lane_factors[i]);
	return sum;
}

/* ---- blocks ---- */

/* A power of two. Keys of the dead are in no table, so their number says nothing about its size. */
static bool is_table(uint64_t n_slots, uint64_t n)
{
	return n_slots <= 1ULL << 31 && (n_slots & (n_slots - 1)) == 0 && (n_slots > 0 || n == 0);
}

int image_lengths(const struct search_head *head, size_t lens[SEARCH_BLOCKS])
{
	size_t n = 0;

	if (head->n_docs > SEARCH_DOCS_MAX || head->n_terms > SEARCH_DOCS_MAX ||
	    head->n_chats > head->n_docs || head->names_len > UINT32_MAX ||
	    head->pool_len > UINT32_MAX || !is_table(head->n_key_slots, head->n_docs) ||
	    !is_table(head->n_term_slots, head->n_terms))
		return -EBADMSG;
	for (size_t i = 0; i < N_DOC_COLUMNS; i++) {
		if (!doc_columns[i].derived)
			lens[n++] = head->n_docs * doc_columns[i].item;
	}
	lens[n++] = head->n_terms * sizeof(struct term);
	lens[n++] = head->names_len;
	lens[n++] = head->pool_len * sizeof(uint64_t);
	lens[n++] = head->n_key_slots * sizeof(uint32_t);
	lens[n++] = head->n_term_slots * sizeof(struct term_slot);
	lens[n++] = head->n_chats * sizeof(uint64_t);
	return 0;
}

void image_blocks(const struct search_index *ix, const size_t lens[SEARCH_BLOCKS], uint64_t *chats,
		  struct search_block blocks[SEARCH_BLOCKS])
{
	size_t n = 0;

	for (size_t i = 0; i < N_DOC_COLUMNS; i++) {
		if (!doc_columns[i].derived)
			blocks[n++].data = *doc_column(ix, i);
	}
	blocks[n++].data = ix->terms;
	blocks[n++].data = ix->names;
	blocks[n++].data = ix->pool;
	blocks[n++].data = ix->key_slots;
	blocks[n++].data = ix->term_slots;
	blocks[n++].data = chats;
	for (size_t i = 0; i < SEARCH_BLOCKS; i++)
		blocks[i].len = lens[i];
}

int search_image(const struct search_index *ix, struct search_head *ret_head,
		 struct search_block ret_blocks[SEARCH_BLOCKS], uint64_t **ret_chats)
{
	size_t lens[SEARCH_BLOCKS];
	uint64_t *chats = malloc(((size_t)ix->n_chats + 1) * sizeof(*chats));
	int r;

	if (!chats)
		return -ENOMEM;
	for (uint32_t i = 0; i < ix->n_chats; i++)
		chats[i] = ix->chats[i].id;
	*ret_head = (struct search_head) {.n_docs = ix->n_docs,
					  .n_terms = ix->n_terms,
					  .n_chats = ix->n_chats,
					  .names_len = ix->names_len,
					  .pool_len = ix->pool_len,
					  .n_key_slots = ix->n_key_slots,
					  .n_term_slots = ix->n_term_slots,
					  .seed = ix->seed};
	r = image_lengths(ret_head, lens);
	if (r != 0) {
		free(chats);
		return r;
	}
	image_blocks(ix, lens, chats, ret_blocks);
	*ret_chats = chats;
	return 0;
}

/* ---- what images depend on ---- */

/* A bit of everything that words are made of: cases, endings, scripts, marks, dates, questions. */
static const char *const samples[] = {
	"The QUICK brown foxes were running, jumping and flying over lazier dogs' kennels.",
	"Where did Caroline's children go last Tuesday, 7 May 2023, at 10:30 pm?",
	"I bought two bicycles for 1,299.99 euros because mine was stolen in Zürich.",
	"getUserName() in snake_case_names and kebab-case of module.file.py, v2.10.3-rc1",
	"Der Schifffahrtsgesellschaftskapitän mag Äpfel, Öl und Übungen; die Häuser sind groß.",
	"L'été, nous aimons déjeuner près de l'église où habitaient nos grands-parents.",
	"Los niños pequeños corrían rápidamente hacia la estación del ferrocarril.",
	"Врачом работала её сестра, а врачи ушли на обед в больницу.",
	"猫的名字是小花。我们昨天在北京吃了饺子。",
	"東京タワーに行きました。ｶﾀｶﾅと ﾊﾝｶｸ の言葉。",
	"한국어를 공부합니다 그리고 서울에서 살았습니다",
	"الكتاب على الطاولة والمدرسة بعيدة",
	"İstanbul'da yaşıyorum; ılık çay içtim. ŞEHİR güzel.",
	"naïve café résumé ﬁnance ½ ² Ⅷ ＡＢＣ １２３ ǅ",
	"what was decided about the release \"Blue Harvest\"",
	"It rained for 3 weeks; he said: 'never again!' https://example.org/a?b=c me@example.com",
	"",
};

static int index_samples(struct search_index *ix, struct search_scratch *s)
{
	const struct text subject = TEXT("Ann-Marie O'Neill");
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(samples) / sizeof(samples[0]); i++) {
		const struct search_doc doc = {
			.key = i + 1,
			.text = text_of(samples[i]),
			.subjects = &subject,
			.n_subjects = i % 2,
			.chat = search_hash(TEXT("a chat")),
			.time_ms = (int64_t)i,
			.importance = 0.5f,
			.open = i % 3 == 0,
		};

		r = search_index_add(ix, s, &doc);
	}
	return r;
}

static int sum_image(const struct search_index *ix, uint64_t *ret_sum)
{
	struct search_block blocks[SEARCH_BLOCKS];
	struct search_head head;
	struct search_sum sum;
	uint64_t *chats;
	int r = search_image(ix, &head, blocks, &chats);

	if (r != 0)
		return r;
	search_sum_init(&sum);
	search_sum_add(&sum, &head, sizeof(head));
	for (size_t i = 0; i < SEARCH_BLOCKS; i++)
		search_sum_add(&sum, blocks[i].data, blocks[i].len);
	free(chats);
	*ret_sum = search_sum_end(&sum) | 1;
	return 0;
}

uint64_t search_fingerprint(struct search_scratch *s)
{
	struct search_index *ix = search_index_new(NULL);
	uint64_t sum = 0;

	/* The table of words is the same for the same seed. */
	if (ix)
		ix->seed = 1;
	if (ix && index_samples(ix, s) == 0)
		(void)sum_image(ix, &sum);
	search_index_free(ix);
	return sum;
}
