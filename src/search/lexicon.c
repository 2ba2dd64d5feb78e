/*
 * What is known about single words; see language.h.
 *
 * The lists become one table, with the first word that anybody looks up.
 */
#include "search/language.h"

#include <pthread.h>
#include <string.h>

#include "search/mix.h"

/* They occur in most sentences, or only ask: they say nothing about what is asked for. */
static const char stops[] =
	"a an the and or but if of to in on at for by from with about as into i me my you your he "
	"him his she her it its we us our they them their this that these those there is are was "
	"were be been am do does did has have had will would can could should not dont didnt "
	"doesnt isnt wasnt so than then what when where who whom whose which why how any some";

static const char questions[] =
	"what when where who whom whose which why how "
	"is are was were do does did has have had will would can could should shall am";

static const char times[] =
	"monday tuesday wednesday thursday friday saturday sunday january february march april may "
	"june july august september october november december jan feb mar apr jun jul aug sep sept "
	"oct nov dec yesterday today tomorrow tonight ago morning afternoon evening night noon "
	"midnight second seconds minute minutes hour hours day days week weeks weekend weekends "
	"month months year years decade decades century spring summer autumn winter season "
	"birthday christmas easter anniversary since until till before after during recently "
	"lately soon later earlier last next daily weekly monthly yearly annual annually am pm "
	"oclock date montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar "
	"marz mai juni juli oktober dezember gestern heute vorgestern lundi mardi mercredi jeudi "
	"vendredi samedi dimanche janvier fevrier avril juin juillet aout septembre octobre "
	"novembre decembre aujourdhui demain lunes martes miercoles jueves viernes sabado domingo "
	"enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre "
	"ayer hoy";

/* Words of English that look like small words of others. */
static const char english[] =
	"die hat war man mal gut bald sin con no come una son plus comment pour van era men over "
	"under den sit mine dig var ten her hun ton sur may might must just also very too more "
	"most one two out up get got all im its ive here now said were who bin dir par ai ca hay "
	"soy per ci io ate com os door bent ben tot hem hoe till kim once ok volt cat care fi";

/* What German compounds are made of; longer words are taken apart around these. */
static const char parts[] =
	"abend abfall abschluss adresse akte alter amt analyse anfang angebot anlage anmeldung "
	"anruf anschluss antrag anwalt anzeige apfel apotheke arbeit art arzt auftrag auge ausflug "
	"ausgabe auskunft ausstellung ausweis auto autobahn baby bad bahn bahnhof balkon ball bank "
	"bau baum beamter becken begleitung behorde beitrag benutzer berater beratung berg bericht "
	"beruf bescheid besuch betreuung betrieb bett bewerbung bezirk bibliothek bild bildung "
	"birne blatt blume blut boden bogen boot brand brief brille brot bruder brucke buch buchse "
	"bund burg burger buro bus butter computer dach dame daten datum decke dienst doktor "
	"dokument dom dorf dose drucker druck ecke ehe ei eigentum eingang einkauf einladung "
	"einrichtung eis eisen eltern empfang ende energie enkel entscheidung entwicklung erbe "
	"erde erfahrung ergebnis erklarung essen fabrik fach fahrer fahrkarte fahrplan fahrrad "
	"fahrt fall familie farbe fehler feier feld fenster ferien fernseh fest feuer fieber film "
	"finanz firma fisch flasche fleisch flug flughafen fluss folge form forschung foto frage "
	"frau freund freundin frist frucht fruhstuck fuhrung fuss fussball gabel garage garten gas "
	"gast gebaude gebiet gebuhr geburt gefahr gehalt geld gemeinde gemeinschaft gemuse gerat "
	"gericht geschaft geschenk geschichte gesellschaft gesetz gesprach gesundheit getrank "
	"gewicht glas gleis gold grenze grippe grund gruppe gurtel gutschein haar hafen hahn halle "
	"hals haltestelle hand handel handler handschuh handtuch handy haupt haus haut heft heim "
	"heizung hemd herbst herr herz hilfe himmel hochzeit hof hohe holz honig hose hotel hund "
	"husten hutte impf impfung information insel institut instrument internet jacke jahr job "
	"jugend kaffee kalender kamera kammer kanal karte kartoffel kasse kasten katze keller "
	"kette kind kinder kirche kirsch kiste klasse kleid kleidung klima klinik koffer kohle "
	"konto kontrolle konzert kopf korb korper kosten kraft kranken krankheit kreis krieg "
	"kuchen kuche kugel kuh kunde kundigung kunst kurs lack laden lager lampe land landschaft "
	"lauf leben leder lehre lehrer lehrerin leistung leitung lern licht liebe lied liste "
	"loffel lohn losung luft mantel markt maschine maus medizin meer mehl meister messer miete "
	"mieter milch minute mitglied mittag mittel mobel monat mond motor mull museum musik "
	"mutter mutze nachricht nacht nagel name nase natur nebel netz note nummer nuss ober obst "
	"ofen ohr oma onkel opa oper ordnung ort oster pass passwort patient pause pferd pflanze "
	"pflege plan platz polizei post praxis preis presse priester problem produkt projekt "
	"programm prozess prufung punkt quelle quittung rad radio rat raum rechner rechnung recht "
	"regal regen regel regierung reifen reihe reis reise reparatur rente rest restaurant ring "
	"rock rolle rose rucken saal sache saft salat salz sammlung sand satz schach schaden schaf "
	"schalter schein schere schicht schiff schirm schlaf schlussel schmerz schnee schrank "
	"schreib schrift schuh schule schuler schutz schwanz schwester schwimm see segel seife "
	"seil seite seminar sender sessel sicherheit sicherung sitz sohn sommer sonne spiel "
	"spieler spielzeug sport sprache spritze stadt stamm stand stein stelle stern steuer "
	"stiefel stift stimme stoff strand strasse strom stuck student studium stuhl stunde suche "
	"suppe system tabelle tablette tafel tag tanne tante tanz tasche tasse taxi tee teil "
	"telefon teller tennis termin test theater tier tisch titel tochter tomate ton topf tor "
	"torte trainer training traube treffen treppe tuch tur turm ubung uhr umschlag umzug "
	"unfall unterlage unterricht unterkunft unterschrift unternehmen urlaub vater verband "
	"verbindung verein verfahren verkauf verkehr verletzung vermieter versammlung versand "
	"versicherung versorgung vertrag vertreter verwaltung vogel vorlesung vorstand wache wachs "
	"waffe wagen wahl wald wand wander wanderung ware wasche wasser wechsel weg weihnacht wein "
	"welt werk werkstatt werkzeug wert wetter wiese wind winter wirtschaft wissen wissenschaft "
	"woche wohnung wolle wort wunsch wurst zahl zahlung zahn zaun zeichen zeit zeitung zelt "
	"zentrum zettel zeug zeugnis ziel zimmer zins zitrone zoll zoo zucker zug zunge";

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

enum { SLOTS = 8192, ENTRIES_MAX = 4096, TEXT_BYTES = 32768 };

static struct lexicon {
	struct lexicon_entry entries[ENTRIES_MAX];
	uint16_t slots[SLOTS]; /* entry + 1 */
	char text[TEXT_BYTES]; /* a copy of the lists, cut into strings */
	size_t n_entries;
	size_t used;
} lexicon;

static pthread_once_t lexicon_once = PTHREAD_ONCE_INIT;

static size_t slot_of(const char *word, size_t len)
{
	size_t at = (size_t)mix_bytes(word, len, 0) & (SLOTS - 1);

	while (lexicon.slots[at]) {
		const char *other = lexicon.entries[lexicon.slots[at] - 1].word;

		if (strncmp(other, word, len) == 0 && other[len] == 0)
			break;
		at = (at + 1) & (SLOTS - 1);
	}
	return at;
}

/* A word may be in several lists. */
static struct lexicon_entry *lexicon_enter(const char *word)
{
	size_t at = slot_of(word, strlen(word));

	if (!lexicon.slots[at]) {
		if (lexicon.n_entries == ENTRIES_MAX)
			return NULL;
		lexicon.entries[lexicon.n_entries++].word = word;
		lexicon.slots[at] = (uint16_t)lexicon.n_entries;
	}
	return &lexicon.entries[lexicon.slots[at] - 1];
}

static void enter_list(const char *list, struct lexicon_entry what)
{
	size_t size = strlen(list) + 1;
	char *text = lexicon.text + lexicon.used;
	char *rest = NULL;

	if (size > TEXT_BYTES - lexicon.used)
		return;
	memcpy(text, list, size);
	lexicon.used += size;
	for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		char *base = strchr(word, '=');
		struct lexicon_entry *entry;

		if (base)
			*base++ = 0;
		entry = lexicon_enter(word);
		if (!entry)
			return;
		entry->flags |= what.flags;
		entry->is_part |= what.is_part;
		entry->small_in |= what.small_in;
		if (base)
			entry->base = base;
	}
}

static void lexicon_fill(void)
{
	const uint32_t in_english = UINT32_C(1) << LANGUAGE_ENGLISH;

	enter_list(stops, (struct lexicon_entry) {.flags = WORD_STOP, .small_in = in_english});
	enter_list(english, (struct lexicon_entry) {.small_in = in_english});
	enter_list(questions, (struct lexicon_entry) {.flags = WORD_QUESTION});
	enter_list(times, (struct lexicon_entry) {.flags = WORD_TIME});
	enter_list(irregular, (struct lexicon_entry) {.flags = WORD_IRREGULAR});
	enter_list(parts, (struct lexicon_entry) {.is_part = true});
	for (unsigned l = 1; l < LANGUAGES; l++)
		enter_list(language_stops(l),
			   (struct lexicon_entry) {.small_in = UINT32_C(1) << l});
}

const struct lexicon_entry *lexicon_find(const char *word, size_t len)
{
	size_t at;

	pthread_once(&lexicon_once, lexicon_fill);
	at = slot_of(word, len);
	return lexicon.slots[at] ? &lexicon.entries[lexicon.slots[at] - 1] : NULL;
}

/* ---- lists of words ---- */

void word_lists_fill(const struct word_lists *l)
{
	for (unsigned i = 0; i < l->n; i++) {
		const char *const *list = (const void *)((const char *)l->lists + i * l->size);
		struct text rest = text_of(*list), word;

		while (text_next(&rest, ' ', &word)) {
			size_t at = mix_bytes(word.data, word.len, 0);

			while (l->slots[at & (l->n_slots - 1)].word)
				at++;
			l->slots[at & (l->n_slots - 1)] =
				(struct word_slot) {word.data, (uint16_t)word.len, (uint16_t)i};
		}
	}
}

const struct word_slot *word_lists_find(const struct word_lists *l, struct text word,
					const struct word_slot *after)
{
	size_t at = after ? (size_t)(after - l->slots) + 1 : mix_bytes(word.data, word.len, 0);

	for (;; at++) {
		const struct word_slot *s = &l->slots[at & (l->n_slots - 1)];

		if (!s->word)
			return NULL;
		if (s->len == word.len && memcmp(s->word, word.data, word.len) == 0)
			return s;
	}
}
