/* What is known about single English words; see lexicon.h. */
#include "search/lexicon.h"

#include <stdlib.h>
#include <string.h>

#include "search/mix.h"

/* They occur in most sentences, or only ask: they say nothing about what is asked for. */
static const char stops[] =
	"a an the and or but if of to in on at for by from with about as into "
	"i me my you your he him his she her it its we us our they them their "
	"this that these those there "
	"is are was were be been am do does did has have had will would can could should "
	"not dont didnt doesnt isnt wasnt so than then "
	"what when where who whom whose which why how any some";

static const char questions[] =
	"what when where who whom whose which why how "
	"is are was were do does did has have had will would can could should shall am";

static const char times[] =
	"monday tuesday wednesday thursday friday saturday sunday "
	"january february march april may june july august september october november december "
	"jan feb mar apr jun jul aug sep sept oct nov dec "
	"yesterday today tomorrow tonight ago morning afternoon evening night noon midnight "
	"second seconds minute minutes hour hours day days week weeks weekend weekends "
	"month months year years decade decades century "
	"spring summer autumn winter season birthday christmas easter anniversary "
	"since until till before after during recently lately soon later earlier "
	"last next daily weekly monthly yearly annual annually am pm oclock date";

/* form=base, where Porter's stemmer would not find the base. */
static const char irregular[] =
	"went=go gone=go goes=go ate=eat eaten=eat bought=buy brought=bring thought=think "
	"caught=catch taught=teach fought=fight sought=seek found=find felt=feel kept=keep "
	"left=leave lost=lose made=make met=meet paid=pay said=say sold=sell told=tell sent=send "
	"spent=spend lent=lend bent=bend built=build slept=sleep swept=sweep wept=weep "
	"dealt=deal dreamt=dream leapt=leap meant=mean heard=hear held=hold stood=stand "
	"understood=understand sat=sit won=win shot=shoot stuck=stick struck=strike "
	"dug=dig hung=hang swung=swing spun=spin led=lead fed=feed bled=bleed bred=breed "
	"sped=speed fled=flee read=read lit=light slid=slide hid=hide hidden=hide "
	"came=come became=become ran=run began=begin begun=begin drank=drink drunk=drink "
	"sang=sing sung=sing swam=swim swum=swim rang=ring rung=ring sank=sink sunk=sink "
	"shrank=shrink shrunk=shrink sprang=spring gave=give given=give forgave=forgive "
	"forgiven=forgive took=take taken=take mistook=mistake mistaken=mistake shook=shake "
	"shaken=shake saw=see seen=see wrote=write written=write drove=drive driven=drive "
	"rode=ride ridden=ride rose=rise risen=rise arose=arise arisen=arise chose=choose "
	"chosen=choose froze=freeze frozen=freeze spoke=speak spoken=speak broke=break "
	"broken=break woke=wake woken=wake awoke=awake stole=steal stolen=steal wore=wear "
	"worn=wear tore=tear torn=tear bore=bear borne=bear swore=swear sworn=swear "
	"beaten=beat bit=bite bitten=bite blew=blow blown=blow drew=draw drawn=draw flew=fly "
	"flown=fly flies=fly grew=grow grown=grow knew=know known=know threw=throw "
	"thrown=throw showed=show shown=show fell=fall fallen=fall forgot=forget "
	"forgotten=forget got=get gotten=get lay=lie lain=lie laid=lay lying=lie dying=die "
	"tying=tie shone=shine sewn=sew sown=sow woven=weave wove=weave "
	"knelt=kneel learnt=learn burnt=burn spelt=spell spilt=spill spoilt=spoil smelt=smell "
	"withdrew=withdraw withdrawn=withdraw overcame=overcome undertook=undertake "
	"undertaken=undertake upheld=uphold rebuilt=rebuild rewrote=rewrite rewritten=rewrite "
	"clung=cling flung=fling strung=string stung=sting wound=wind ground=grind "
	"bound=bind crept=creep swollen=swell shaven=shave proven=prove forbade=forbid "
	"forbidden=forbid trodden=tread trod=tread "
	"children=child men=man women=woman people=person persons=person feet=foot "
	"teeth=tooth geese=goose mice=mouse lives=life wives=wife knives=knife leaves=leave "
	"halves=half shelves=shelf wolves=wolf loaves=loaf thieves=thief calves=calf selves=self "
	"oxen=ox dice=die "
	"better=good best=good worse=bad worst=bad further=far farther=far "
	"elder=old eldest=old bigger=big biggest=big cheaper=cheap cheapest=cheap "
	"favourite=favorite favourites=favorite colour=color colours=color neighbour=neighbor "
	"neighbours=neighbor centre=center theatre=theater organise=organize organised=organize "
	"cancelled=cancel travelled=travel travelling=travel grey=gray programme=program "
	"mum=mother mom=mother mama=mother dad=father papa=father kids=child kid=child "
	"bike=bicycle bikes=bicycle fridge=refrigerator phone=telephone "
	"jan=january feb=february mar=march apr=april jun=june jul=july aug=august "
	"sep=september sept=september oct=october nov=november dec=december";

enum { SLOTS = 2048, ENTRIES_MAX = 768, TEXT_BYTES = 8192 };

struct lexicon {
	struct lexicon_entry entries[ENTRIES_MAX];
	uint16_t slots[SLOTS]; /* entry + 1 */
	char text[TEXT_BYTES]; /* a copy of the lists, cut into strings */
	size_t n_entries;
	size_t used;
};

static size_t slot_of(const struct lexicon *l, const char *word, size_t len)
{
	size_t at = (size_t)mix_bytes(word, len, 0) & (SLOTS - 1);

	while (l->slots[at]) {
		const char *other = l->entries[l->slots[at] - 1].word;

		if (strncmp(other, word, len) == 0 && other[len] == 0)
			break;
		at = (at + 1) & (SLOTS - 1);
	}
	return at;
}

/* A word may be in several lists. */
static void enter(struct lexicon *l, const char *word, const char *base, uint8_t flags)
{
	size_t at = slot_of(l, word, strlen(word));
	struct lexicon_entry *entry;

	if (!l->slots[at]) {
		if (l->n_entries == ENTRIES_MAX)
			return;
		l->entries[l->n_entries++].word = word;
		l->slots[at] = (uint16_t)l->n_entries;
	}
	entry = &l->entries[l->slots[at] - 1];
	entry->flags |= flags;
	if (base)
		entry->base = base;
}

static void enter_list(struct lexicon *l, const char *list, size_t size, uint8_t flags)
{
	char *text = l->text + l->used;
	char *rest = NULL;

	memcpy(text, list, size);
	l->used += size;
	for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		char *base = strchr(word, '=');

		if (base)
			*base++ = 0;
		enter(l, word, base, flags);
	}
}

struct lexicon *lexicon_new(void)
{
	_Static_assert(sizeof(stops) + sizeof(questions) + sizeof(times) + sizeof(irregular) <=
			       TEXT_BYTES,
		       "the lists fit");
	struct lexicon *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	enter_list(l, stops, sizeof(stops), WORD_STOP);
	enter_list(l, questions, sizeof(questions), WORD_QUESTION);
	enter_list(l, times, sizeof(times), WORD_TIME);
	enter_list(l, irregular, sizeof(irregular), WORD_IRREGULAR);
	return l;
}

void lexicon_free(struct lexicon *l)
{
	free(l);
}

const struct lexicon_entry *lexicon_find(const struct lexicon *l, const char *word, size_t len)
{
	size_t at = slot_of(l, word, len);

	return l->slots[at] ? &l->entries[l->slots[at] - 1] : NULL;
}
