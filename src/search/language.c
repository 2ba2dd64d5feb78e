/* Languages; see language.h. */
#include "search/language.h"

#include <stddef.h>

#define BIT(name)   (UINT32_C(1) << LANGUAGE_##name)
#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

enum { SMALL_WORD = 2, LETTER = 1, CLEAR = 6 };

struct language_words {
	const char *stemmer;
	const char *stops;
};

static const struct language_words languages[LANGUAGES] = {
	/* The stop words of English are in the lexicon, with everything else about its words. */
	[LANGUAGE_ENGLISH] = {"porter", ""},
	[LANGUAGE_GERMAN] =
		{"german", "der die das den dem des ein eine einen einem einer eines und oder aber "
			   "wenn ob von vom zu zum zur in im ins an am auf fur bei beim mit nach "
			   "aus uber um als wie ich du er sie es wir ihr mich dich sich mir dir "
			   "uns euch ihm ihn ihnen mein meine meinen meinem meiner dein deine "
			   "deinen deinem deiner sein seine seinen seinem seiner ihre ihren ihrem "
			   "ihrer unser unsere unseren dieser diese dieses diesen diesem da dort "
			   "ist sind war waren bin bist hat habe haben hatte hatten wird werden "
			   "wurde wurden kann konnen konnte muss mussen soll sollte will wollte "
			   "nicht kein keine keinen auch noch nur schon sehr so dann denn doch "
			   "dass was wann wo wer wen wem wessen welche welcher welches welchen "
			   "warum wieso weshalb woher wohin wieviel gibt man jetzt"},
	[LANGUAGE_FRENCH] =
		{"french", "le la les l un une des du de d et ou mais si ne n pas plus je j tu il "
			   "elle on nous vous ils elles me m te t se s moi toi lui leur leurs mon "
			   "ma mes ton ta tes son sa ses notre nos votre vos ce c cet cette ces "
			   "cela ca qui que qu quoi dont quand comment pourquoi combien quel "
			   "quelle quels quelles est sont etait etaient suis sommes etes etre ete "
			   "a ai as avons avez ont avait avoir au aux en dans sur sous avec sans "
			   "pour par chez entre vers y tres aussi comme peut doit va vont"},
	[LANGUAGE_SPANISH] =
		{"spanish", "el la los las lo un una unos unas de del al a y e o u pero si no que "
			    "quien quienes cual cuales como cuando donde cuanto cuanta cuantos "
			    "cuantas por para con sin sobre entre hasta desde en yo tu usted ella "
			    "nosotros ellos ellas me te se le les nos mi mis tus su sus nuestro "
			    "nuestra este esta estos estas ese esa eso esto aquel es son era eran "
			    "fue fueron soy eres somos ser estar estan estaba estoy ha han he hay "
			    "habia haber tiene tengo tienen tener muy mas ya tambien porque"},
	[LANGUAGE_ITALIAN] =
		{"italian", "il lo la i gli le un uno una di del dello della dei degli delle a al "
			    "allo alla ai agli alle da dal dalla in nel nella nei nelle con su sul "
			    "sulla per tra fra e ed o ma se che chi cui quale quali quando dove "
			    "come perche quanto quanta quanti non io tu lui lei noi voi loro mi ti "
			    "si ci vi mio mia miei mie tuo tua suo sua suoi nostro questo questa "
			    "questi quello quella sono era erano sei siamo ha ho hanno abbiamo "
			    "aveva avere essere anche piu molto gia"},
	[LANGUAGE_PORTUGUESE] =
		{"portuguese",
		 "o a os as um uma uns umas de do da dos das no na nos nas em ao aos pelo pela por "
		 "para com sem sobre entre ate desde e ou mas se nao que quem qual quais como "
		 "quando onde quanto quantos eu tu voce ele ela eles elas me te lhe meu minha meus "
		 "minhas seu sua seus suas nosso este esta esse essa isto isso aquele sao era foi "
		 "foram sou ser estar estava estou tem tenho tinha ter vai muito mais ja tambem "
		 "porque"},
	[LANGUAGE_DUTCH] =
		{"dutch", "de het een en of maar als van voor met op in aan bij naar uit over tot "
			  "om door ik jij je hij zij ze wij we jullie mij me hem haar ons hun "
			  "mijn jouw zijn onze dit dat deze die er is ben bent was waren heb hebt "
			  "heeft hebben had wordt worden werd kan kunnen moet wil zal zou niet "
			  "geen ook nog wel wat wie waar wanneer waarom hoe welke hoeveel te"},
	[LANGUAGE_SWEDISH] =
		{"swedish",
		 "och eller men om inte att det den de en ett som for pa i av med till "
		 "fran hos vid under over jag du han hon vi ni dem mig dig sig oss er "
		 "min mitt mina din ditt dina sin sitt sina hans hennes var vart vara "
		 "deras ar har hade ska skulle kan kunde blir blev finns vad vem nar hur "
		 "varfor vilken vilket vilka detta denna dessa ocksa mycket"},
	[LANGUAGE_DANISH] =
		{"danish", "og eller men hvis ikke at det den de en et som for pa i af med til fra "
			   "hos ved under over jeg du han hun vi dem mig dig sig os jer min mit "
			   "mine din dit dine sin sit sine hans hendes vores deres er har havde "
			   "skal skulle kan kunne bliver blev findes hvad hvem hvor hvornar "
			   "hvordan hvorfor hvilken hvilket denne dette disse ogsa meget"},
	[LANGUAGE_NORWEGIAN] =
		{"norwegian",
		 "og eller men hvis ikke a at det den de en et ei som for pa i av med "
		 "til fra hos ved under over jeg du han hun vi dere dem meg deg seg "
		 "oss min mitt mine din ditt dine sin sitt sine hans hennes var deres "
		 "er har hadde skal skulle kan kunne blir ble finnes hva hvem hvor nar "
		 "hvordan hvorfor hvilken hvilket denne dette disse ogsa mye"},
	[LANGUAGE_FINNISH] =
		{"finnish", "ja tai mutta jos kun etta ei en et on ovat oli olivat olen olet olla "
			    "mina sina han me te he minun sinun hanen meidan teidan heidan minulla "
			    "minua se ne tama nama tuo siina sita joka mika mita missa milloin "
			    "miksi miten kuka kenen kuinka nyt myos vain hyvin kanssa"},
	[LANGUAGE_TURKISH] =
		{"turkish", "ve veya ama bir bu su o ben sen biz siz onlar benim senin onun bizim "
			    "sizin onlarin bana sana ona ile icin gibi kadar daha cok en de da mi "
			    "mu ne neden niye nasil nerede nereye nereden kim kimin hangi kac var "
			    "yok degil ki cunku oldu olan olarak ise her sonra once"},
	[LANGUAGE_HUNGARIAN] = {"hungarian",
				"a az egy es vagy de ha hogy nem is meg csak mar en te o mi ti ok "
				"van vannak volt voltak lesz ki mit hol mikor miert hogyan melyik "
				"mennyi hany ez ezt azt nekem neked neki"},
	[LANGUAGE_ROMANIAN] =
		{"romanian", "si sau dar daca nu un o de la in pe cu din pentru prin despre eu tu "
			     "el ea noi voi ei ele ma te se imi iti ii mea meu mei tau ta lui "
			     "nostru este sunt era erau am ai are au avea fi ce cine unde cand cum "
			     "cat care acest aceasta foarte mai"},
	[LANGUAGE_RUSSIAN] =
		{"russian", "и или но если не что кто где когда как почему зачем сколько какои "
			    "какая какое какие чеи куда откуда я ты он она оно мы вы они меня тебя "
			    "его ее нас вас их мне тебе ему еи нам вам им мои моя мое твои своя "
			    "свои в во на с со к ко по из за от до у о об при для без под над "
			    "между это этот эта эти тот та те был была было были есть быть будет "
			    "бы же ли уже еще тоже так то а"},
	[LANGUAGE_GREEK] =
		{"greek",
		 "ο η το οι τα του τησ των τον την στο στη στον στην στα σε απο με για και "
		 "να θα δεν μη που τι ποιοσ ποια ποιο ποτε πωσ γιατι ποσο ειναι ηταν εχει "
		 "εχω μου σου μασ σασ τουσ αυτο αυτη αυτοσ"},
	/* Its stems are ours: see stems.c. */
	[LANGUAGE_ARABIC] = {NULL, "من ما ماذا متي اين كيف لماذا كم هل الذي التي الي في عن مع او و "
				   "ان انا انت هو هي نحن هم هذا هذه ذلك تلك لا لم لن كان كانت "
				   "يكون قد ثم حتي كل"},
	[LANGUAGE_ARMENIAN] = {"armenian", ""},
	[LANGUAGE_HINDI] = {"hindi", "का के की को में से पर है हैं था थी थे और या कि यह वह मैं हम तुम "
				     "आप क्या कब कहाँ कौन कैसे क्यों"},
	[LANGUAGE_TAMIL] = {"tamil", ""},
	[LANGUAGE_CHINESE] =
		{NULL,
		 "的 了 是 我 你 他 她 它 们 在 有 和 与 吗 呢 吧 啊 这 那 哪 什 么 谁 怎 为 不 也 "
		 "就 都 很 到 要 会 着 没 把 被 从 给 让 "
		 "个 一 里 什么 哪里 怎么 为什 是谁 谁的 是什 在哪 我们 你们 他们 她们 这个 那个 "
		 "的是 了吗 です ます した まし てい いま した すか です "
		 "ませ どこ なぜ なに だれ いつ から まで こと もの さん では には への との とは"},
};

struct letter {
	uint32_t c;
	uint32_t languages;
};

/* Lower case; sorted. */
static const struct letter letters[] = {
	{0x00df, BIT(GERMAN)},
	{0x00e0, BIT(FRENCH) | BIT(ITALIAN) | BIT(PORTUGUESE)},
	{0x00e1, BIT(SPANISH) | BIT(PORTUGUESE) | BIT(HUNGARIAN)},
	{0x00e2, BIT(FRENCH) | BIT(PORTUGUESE) | BIT(ROMANIAN)},
	{0x00e3, BIT(PORTUGUESE)},
	{0x00e4, BIT(GERMAN) | BIT(SWEDISH) | BIT(FINNISH)},
	{0x00e5, BIT(SWEDISH) | BIT(DANISH) | BIT(NORWEGIAN)},
	{0x00e6, BIT(DANISH) | BIT(NORWEGIAN)},
	{0x00e7, BIT(FRENCH) | BIT(PORTUGUESE) | BIT(TURKISH)},
	{0x00e8, BIT(FRENCH) | BIT(ITALIAN)},
	{0x00e9, BIT(FRENCH) | BIT(SPANISH) | BIT(PORTUGUESE) | BIT(HUNGARIAN)},
	{0x00ea, BIT(FRENCH) | BIT(PORTUGUESE)},
	{0x00eb, BIT(FRENCH) | BIT(DUTCH)},
	{0x00ec, BIT(ITALIAN)},
	{0x00ed, BIT(SPANISH) | BIT(PORTUGUESE) | BIT(HUNGARIAN)},
	{0x00ee, BIT(FRENCH) | BIT(ROMANIAN)},
	{0x00ef, BIT(FRENCH) | BIT(DUTCH)},
	{0x00f1, BIT(SPANISH)},
	{0x00f2, BIT(ITALIAN)},
	{0x00f3, BIT(SPANISH) | BIT(PORTUGUESE) | BIT(HUNGARIAN)},
	{0x00f4, BIT(FRENCH) | BIT(PORTUGUESE)},
	{0x00f5, BIT(PORTUGUESE)},
	{0x00f6, BIT(GERMAN) | BIT(SWEDISH) | BIT(FINNISH) | BIT(TURKISH) | BIT(HUNGARIAN)},
	{0x00f8, BIT(DANISH) | BIT(NORWEGIAN)},
	{0x00f9, BIT(FRENCH) | BIT(ITALIAN)},
	{0x00fa, BIT(SPANISH) | BIT(PORTUGUESE) | BIT(HUNGARIAN)},
	{0x00fb, BIT(FRENCH)},
	{0x00fc, BIT(GERMAN) | BIT(TURKISH) | BIT(HUNGARIAN)},
	{0x0103, BIT(ROMANIAN)},
	{0x011f, BIT(TURKISH)},
	{0x0131, BIT(TURKISH)},
	{0x0151, BIT(HUNGARIAN)},
	{0x0153, BIT(FRENCH)},
	{0x015f, BIT(TURKISH) | BIT(ROMANIAN)},
	{0x0163, BIT(ROMANIAN)},
	{0x0171, BIT(HUNGARIAN)},
	{0x0219, BIT(ROMANIAN)},
	{0x021b, BIT(ROMANIAN)},
};

const char *language_stemmer(enum language l)
{
	return languages[l].stemmer;
}

const char *language_stops(enum language l)
{
	return languages[l].stops;
}

enum language language_of_letter(uint32_t c)
{
	static const struct {
		uint32_t first;
		uint32_t last;
		enum language language;
	} scripts[] = {
		{0x0370, 0x03ff, LANGUAGE_GREEK},    {0x0400, 0x052f, LANGUAGE_RUSSIAN},
		{0x0531, 0x0587, LANGUAGE_ARMENIAN}, {0x0620, 0x06ff, LANGUAGE_ARABIC},
		{0x0900, 0x097f, LANGUAGE_HINDI},    {0x0b80, 0x0bff, LANGUAGE_TAMIL},
		{0x1f00, 0x1fff, LANGUAGE_GREEK},    {0x2e80, 0x9fff, LANGUAGE_CHINESE},
	};

	for (size_t i = 0; i < N_OF(scripts); i++) {
		if (c >= scripts[i].first && c <= scripts[i].last)
			return scripts[i].language;
	}
	return LANGUAGE_ENGLISH;
}

uint32_t language_letter_bits(uint32_t c)
{
	size_t low = 0;
	size_t high = N_OF(letters);

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (letters[mid].c == c)
			return letters[mid].languages;
		if (letters[mid].c < c)
			low = mid + 1;
		else
			high = mid;
	}
	return 0;
}

static void add_points(struct language_guess *g, uint32_t found, uint16_t points)
{
	for (found &= (UINT32_C(1) << LANGUAGES_LATIN) - 1; found; found &= found - 1)
		g->points[__builtin_ctz(found)] += points;
}

void language_note(struct language_guess *g, uint32_t small_in, uint32_t letters_of)
{
	add_points(g, small_in, SMALL_WORD);
	add_points(g, letters_of, LETTER);
}

enum language language_best(const struct language_guess *g)
{
	unsigned best = LANGUAGE_ENGLISH;

	for (unsigned l = 1; l < LANGUAGES_LATIN; l++) {
		if (g->points[l] >= SMALL_WORD && g->points[l] > g->points[best])
			best = l;
	}
	return best;
}

bool language_is_clearly_english(const struct language_guess *g)
{
	uint16_t most = 0;

	for (unsigned l = 1; l < LANGUAGES_LATIN; l++)
		most = g->points[l] > most ? g->points[l] : most;
	return g->points[LANGUAGE_ENGLISH] >= most + CLEAR;
}
