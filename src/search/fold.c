/* Letters without case and diacritics; see fold.h. */
#include "search/fold.h"

#include "base/utf8.h"
#include "search/fold_table.h"

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

struct fold_range {
	uint32_t first;
	uint32_t last;
	enum char_kind kind;
};

/* Characters that are not letters, or not of words with spaces between them; sorted. */
static const struct fold_range ranges[] = {
	{0x0080, 0x00a9, CHAR_GAP},        {0x00ab, 0x00ac, CHAR_GAP},
	{0x00ad, 0x00ad, CHAR_NOTHING},    {0x00ae, 0x00b4, CHAR_GAP},
	{0x00b6, 0x00b9, CHAR_GAP},        {0x00bb, 0x00bf, CHAR_GAP},
	{0x00d7, 0x00d7, CHAR_GAP},        {0x00f7, 0x00f7, CHAR_GAP},
	{0x02b9, 0x02bb, CHAR_NOTHING},    {0x02bc, 0x02bc, CHAR_APOSTROPHE},
	{0x02bd, 0x02df, CHAR_NOTHING},    {0x0300, 0x036f, CHAR_NOTHING},
	{0x037a, 0x037a, CHAR_NOTHING},    {0x037e, 0x037e, CHAR_GAP},
	{0x0387, 0x0387, CHAR_GAP},        {0x0483, 0x0489, CHAR_NOTHING},
	{0x055a, 0x055f, CHAR_GAP},        {0x0589, 0x058f, CHAR_GAP},
	{0x0591, 0x05bd, CHAR_NOTHING},    {0x05be, 0x05be, CHAR_GAP},
	{0x05bf, 0x05bf, CHAR_NOTHING},    {0x05c0, 0x05c0, CHAR_GAP},
	{0x05c1, 0x05c2, CHAR_NOTHING},    {0x05c3, 0x05c3, CHAR_GAP},
	{0x05c4, 0x05c5, CHAR_NOTHING},    {0x05c6, 0x05c6, CHAR_GAP},
	{0x05c7, 0x05c7, CHAR_NOTHING},    {0x05f3, 0x05f4, CHAR_NOTHING},
	{0x0600, 0x060f, CHAR_GAP},        {0x0610, 0x061a, CHAR_NOTHING},
	{0x061b, 0x061f, CHAR_GAP},        {0x0640, 0x0640, CHAR_NOTHING},
	{0x064b, 0x065f, CHAR_NOTHING},    {0x0660, 0x0669, CHAR_DIGIT},
	{0x066a, 0x066d, CHAR_GAP},        {0x0670, 0x0670, CHAR_NOTHING},
	{0x06d4, 0x06d4, CHAR_GAP},        {0x06d6, 0x06ed, CHAR_NOTHING},
	{0x06f0, 0x06f9, CHAR_DIGIT},      {0x0964, 0x0965, CHAR_GAP},
	{0x0966, 0x096f, CHAR_DIGIT},      {0x0970, 0x0970, CHAR_GAP},
	{0x09e6, 0x09ef, CHAR_DIGIT},      {0x0e01, 0x0e3a, CHAR_PIECE},
	{0x0e3f, 0x0e3f, CHAR_GAP},        {0x0e40, 0x0e4e, CHAR_PIECE},
	{0x0e4f, 0x0e4f, CHAR_GAP},        {0x0e50, 0x0e59, CHAR_DIGIT},
	{0x0e5a, 0x0e5b, CHAR_GAP},        {0x0e81, 0x0ecf, CHAR_PIECE},
	{0x0ed0, 0x0ed9, CHAR_DIGIT},      {0x0edc, 0x0edf, CHAR_PIECE},
	{0x0f01, 0x0f14, CHAR_GAP},        {0x0f40, 0x0fbc, CHAR_PIECE},
	{0x1000, 0x103f, CHAR_PIECE},      {0x1040, 0x1049, CHAR_DIGIT},
	{0x104a, 0x104f, CHAR_GAP},        {0x1050, 0x109f, CHAR_PIECE},
	{0x10fb, 0x10fb, CHAR_GAP},        {0x1361, 0x1368, CHAR_GAP},
	{0x1780, 0x17d3, CHAR_PIECE},      {0x17d4, 0x17db, CHAR_GAP},
	{0x17e0, 0x17e9, CHAR_DIGIT},      {0x1800, 0x180a, CHAR_GAP},
	{0x1ab0, 0x1aff, CHAR_NOTHING},    {0x1dc0, 0x1dff, CHAR_NOTHING},
	{0x1fbd, 0x1fbd, CHAR_GAP},        {0x1fbf, 0x1fc1, CHAR_GAP},
	{0x1fcd, 0x1fcf, CHAR_GAP},        {0x1fdd, 0x1fdf, CHAR_GAP},
	{0x1fed, 0x1fef, CHAR_GAP},        {0x1ffd, 0x1fff, CHAR_GAP},
	{0x2000, 0x200a, CHAR_GAP},        {0x200b, 0x200b, CHAR_GAP},
	{0x200c, 0x200f, CHAR_NOTHING},    {0x2010, 0x2018, CHAR_GAP},
	{0x2019, 0x2019, CHAR_APOSTROPHE}, {0x201a, 0x2029, CHAR_GAP},
	{0x202a, 0x202e, CHAR_NOTHING},    {0x202f, 0x205f, CHAR_GAP},
	{0x2060, 0x206f, CHAR_NOTHING},    {0x2070, 0x20cf, CHAR_GAP},
	{0x20d0, 0x20ff, CHAR_NOTHING},    {0x2100, 0x2115, CHAR_GAP},
	{0x2117, 0x2121, CHAR_GAP},        {0x2123, 0x25ff, CHAR_GAP},
	{0x2600, 0x27bf, CHAR_SIGN},       {0x27c0, 0x2b4f, CHAR_GAP},
	{0x2b50, 0x2b55, CHAR_SIGN},       {0x2b56, 0x2bff, CHAR_GAP},
	{0x2e00, 0x2e7f, CHAR_GAP},        {0x2e80, 0x2fd5, CHAR_PIECE},
	{0x2ff0, 0x3004, CHAR_GAP},        {0x3005, 0x3007, CHAR_PIECE},
	{0x3008, 0x3029, CHAR_GAP},        {0x302a, 0x302f, CHAR_NOTHING},
	{0x3030, 0x3040, CHAR_GAP},        {0x3041, 0x3096, CHAR_PIECE},
	{0x3099, 0x309a, CHAR_NOTHING},    {0x309b, 0x30a0, CHAR_GAP},
	{0x30a1, 0x30fa, CHAR_PIECE},      {0x30fb, 0x30fb, CHAR_GAP},
	{0x30fc, 0x312f, CHAR_PIECE},      {0x3130, 0x318f, CHAR_PIECE},
	{0x31a0, 0x31bf, CHAR_PIECE},      {0x31c0, 0x33ff, CHAR_GAP},
	{0x3400, 0x4dbf, CHAR_PIECE},      {0x4dc0, 0x4dff, CHAR_GAP},
	{0x4e00, 0x9fff, CHAR_PIECE},      {0xa000, 0xa48f, CHAR_PIECE},
	{0xac00, 0xd7a3, CHAR_PIECE},      {0xd800, 0xf8ff, CHAR_GAP},
	{0xf900, 0xfaff, CHAR_PIECE},      {0xfb1e, 0xfb1e, CHAR_NOTHING},
	{0xfd3e, 0xfd3f, CHAR_GAP},        {0xfe00, 0xfe0f, CHAR_NOTHING},
	{0xfe10, 0xfe1f, CHAR_GAP},        {0xfe20, 0xfe2f, CHAR_NOTHING},
	{0xfe30, 0xfe6f, CHAR_GAP},        {0xfeff, 0xfeff, CHAR_NOTHING},
	{0xff5f, 0xff65, CHAR_GAP},        {0xff66, 0xff9f, CHAR_PIECE},
	{0xffe0, 0xffff, CHAR_GAP},        {0x1f000, 0x1f1e5, CHAR_SIGN},
	{0x1f1e6, 0x1f1ff, CHAR_PIECE},    {0x1f200, 0x1f3fa, CHAR_SIGN},
	{0x1f3fb, 0x1f3ff, CHAR_NOTHING},  {0x1f400, 0x1faff, CHAR_SIGN},
	{0x20000, 0x323af, CHAR_PIECE},    {0xe0000, 0xe0fff, CHAR_NOTHING},
	{0xf0000, 0x10ffff, CHAR_GAP},
};

static enum char_kind kind_of(uint32_t c)
{
	size_t low = 0;
	size_t high = N_OF(ranges);

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (c > ranges[mid].last)
			low = mid + 1;
		else
			high = mid;
	}
	return low < N_OF(ranges) && c >= ranges[low].first ? ranges[low].kind : CHAR_LETTER;
}

static size_t fold_to_several(uint32_t c, uint32_t *folded)
{
	size_t low = 0;
	size_t high = N_OF(fold_long);
	size_t n = 0;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (c > fold_long[mid].from)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == N_OF(fold_long) || fold_long[low].from != c)
		return 0;
	while (n < FOLD_MAX && fold_long[low].to[n]) {
		folded[n] = fold_long[low].to[n];
		n++;
	}
	return n;
}

/* The spellings of one letter that Arabic and Persian keyboards produce. */
static uint32_t fold_arabic(uint32_t c)
{
	switch (c) {
	case 0x0622:
	case 0x0623:
	case 0x0625:
	case 0x0671:
		return 0x0627;
	case 0x0629:
		return 0x0647;
	case 0x0649:
	case 0x06cc:
		return 0x064a;
	case 0x06a9:
		return 0x0643;
	default:
		return c;
	}
}

static uint32_t fold_digit(uint32_t c)
{
	static const uint32_t zeros[] = {0x0660, 0x06f0, 0x0966, 0x09e6,
					 0x0e50, 0x0ed0, 0x1040, 0x17e0};

	for (size_t i = 0; i < N_OF(zeros); i++) {
		if (c >= zeros[i] && c <= zeros[i] + 9)
			return '0' + c - zeros[i];
	}
	return c;
}

/* One letter for one; 0 when the table has several, or none. */
static uint32_t fold_letter(uint32_t c)
{
	if (c >= 0x00c0 && c <= 0x024f)
		return fold_00c0[c - 0x00c0];
	if (c >= 0x0370 && c <= 0x058f)
		return fold_0370[c - 0x0370];
	if (c >= 0x1e00 && c <= 0x1fff)
		return fold_1e00[c - 0x1e00];
	if (c >= 0x0600 && c <= 0x06ff)
		return fold_arabic(c);
	if (c == 0x2116 || c == 0x2122 || (c >= 0xfb00 && c <= 0xfb06))
		return 0;
	if (c >= 0x10400 && c <= 0x10427) /* Deseret, for completeness of case */
		return c + 0x28;
	return c;
}

static enum char_kind ascii_kind(unsigned char c)
{
	if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
		return CHAR_LETTER;
	if (c >= '0' && c <= '9')
		return CHAR_DIGIT;
	return c == '\'' ? CHAR_APOSTROPHE : CHAR_GAP;
}

static enum char_kind fold_ascii(unsigned char c, uint32_t *folded, size_t *ret_n)
{
	enum char_kind kind = ascii_kind(c);

	folded[0] = c >= 'A' && c <= 'Z' ? c + 32U : c;
	*ret_n = kind == CHAR_LETTER || kind == CHAR_DIGIT ? 1 : 0;
	return kind;
}

static enum char_kind fold_other(uint32_t c, uint32_t *folded, size_t *ret_n)
{
	enum char_kind kind;

	/* Full-width forms are wider variants of ASCII. */
	if (c >= 0xff01 && c <= 0xff5e)
		return fold_ascii((unsigned char)(c - 0xff01 + 0x21), folded, ret_n);
	kind = kind_of(c);
	*ret_n = 0;
	if (kind == CHAR_GAP || kind == CHAR_NOTHING || kind == CHAR_APOSTROPHE)
		return kind;
	*ret_n = 1;
	folded[0] = c;
	if (kind == CHAR_DIGIT)
		folded[0] = fold_digit(c);
	if (kind != CHAR_LETTER)
		return kind;
	folded[0] = fold_letter(c);
	if (folded[0] == 0)
		*ret_n = fold_to_several(c, folded);
	return *ret_n > 0 ? CHAR_LETTER : CHAR_NOTHING;
}

static uint32_t fold_decode(const unsigned char *p, size_t n)
{
	uint32_t c = p[0] & (0xffU >> (n + 1));

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (p[i] & 0x3f);
	return c;
}

size_t fold_next(const char *p, const char *end, enum char_kind *ret_kind,
		 uint32_t ret_folded[FOLD_MAX], size_t *ret_n)
{
	unsigned char first = (unsigned char)*p;
	size_t n;

	if (first < 0x80) {
		*ret_kind = fold_ascii(first, ret_folded, ret_n);
		return 1;
	}
	n = utf8_sequence(p, end);
	if (n == 0) {
		*ret_kind = CHAR_GAP;
		*ret_n = 0;
		return 1;
	}
	*ret_kind = fold_other(fold_decode((const unsigned char *)p, n), ret_folded, ret_n);
	return n;
}

uint32_t fold_lower(const char *p, size_t took)
{
	uint32_t c = took == 1 ? (unsigned char)*p : fold_decode((const unsigned char *)p, took);

	if (c < 0x80)
		return c >= 'A' && c <= 'Z' ? c + 32 : c;
	if ((c >= 0xc0 && c <= 0xde && c != 0xd7) || (c >= 0x410 && c <= 0x42f))
		return c + 32;
	if (c >= 0x400 && c <= 0x40f)
		return c + 80;
	if (c == 0x130)
		return 'i';
	if ((c >= 0x100 && c <= 0x137) || (c >= 0x14a && c <= 0x177) || (c >= 0x200 && c <= 0x21f))
		return c == 0x131 ? c : c | 1;
	if ((c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e))
		return c + (c & 1);
	return c;
}

bool fold_is_capital(const char *p, const char *end)
{
	unsigned char first = (unsigned char)*p;
	size_t n;
	uint32_t c;

	if (first < 0x80)
		return first >= 'A' && first <= 'Z';
	n = utf8_sequence(p, end);
	if (n != 2)
		return false;
	c = fold_decode((const unsigned char *)p, n);
	return (c >= 0x391 && c <= 0x3a9) || fold_lower(p, n) != c;
}

/* U+FF66 to U+FF9D in order. */
static const uint16_t wide_kana[] = {
	0x30f2, 0x30a1, 0x30a3, 0x30a5, 0x30a7, 0x30a9, 0x30e3, 0x30e5, 0x30e7, 0x30c3,
	0x30fc, 0x30a2, 0x30a4, 0x30a6, 0x30a8, 0x30aa, 0x30ab, 0x30ad, 0x30af, 0x30b1,
	0x30b3, 0x30b5, 0x30b7, 0x30b9, 0x30bb, 0x30bd, 0x30bf, 0x30c1, 0x30c4, 0x30c6,
	0x30c8, 0x30ca, 0x30cb, 0x30cc, 0x30cd, 0x30ce, 0x30cf, 0x30d2, 0x30d5, 0x30d8,
	0x30db, 0x30de, 0x30df, 0x30e0, 0x30e1, 0x30e2, 0x30e4, 0x30e6, 0x30e8, 0x30e9,
	0x30ea, 0x30eb, 0x30ec, 0x30ed, 0x30ef, 0x30f3,
};

/* What the kana becomes with a voiced (step 1) or half-voiced (step 2) mark; itself if none. */
static uint32_t sounded(uint32_t c, uint32_t step)
{
	uint32_t base = c >= 0x30a0 ? c - 0x60 : c; /* as hiragana */

	if (step == 1 && base == 0x3046)
		return c + 0x4e;
	if (base >= 0x306f && base <= 0x307b && (base - 0x306f) % 3 == 0)
		return c + step;
	if (step == 1 && ((base >= 0x304b && base <= 0x3061 && base % 2 == 1) ||
			  (base >= 0x3064 && base <= 0x3068 && base % 2 == 0)))
		return c + 1;
	return c;
}

size_t fold_kana(const char *p, const char *end, size_t took, uint32_t *c)
{
	const char *next = p + took;
	uint32_t mark;

	if (*c >= 0xff66 && *c <= 0xff9d)
		*c = wide_kana[*c - 0xff66];
	if (*c < 0x3041 || *c > 0x30fc || end - next < 3 || utf8_sequence(next, end) != 3)
		return took;
	mark = fold_decode((const unsigned char *)next, 3);
	if (mark == 0xff9e || mark == 0x3099)
		*c = sounded(*c, 1);
	else if (mark == 0xff9f || mark == 0x309a)
		*c = sounded(*c, 2);
	else
		return took;
	return took + 3;
}
