/* Words that dates are made of; see inner.h. */
#include "search/date/inner.h"

#include <pthread.h>

#define IN(name)     (UINT32_C(1) << LANGUAGE_##name)
#define EXCEPT(name) (~IN(name))

/* A word of several languages is in a list for each. */
static const struct date_list {
	const char *words;
	uint32_t languages; /* 0: no other language has such a word; otherwise in these alone */
	uint32_t kinds;
	int16_t value;
} date_lists[] = {
	{"enero janner januar january janvier", 0, DATE_MONTH, 1},
	{"jan", IN(ENGLISH), DATE_MONTH, 1},
	{"febrero februar february fevrier", 0, DATE_MONTH, 2},
	{"feb", IN(ENGLISH), DATE_MONTH, 2},
	{"marz marzo", 0, DATE_MONTH, 3},
	{"mars", IN(FRENCH), DATE_MONTH, 3},
	{"abril april avril", 0, DATE_MONTH, 4},
	{"apr", IN(ENGLISH), DATE_MONTH, 4},
	{"mai", 0, DATE_MONTH, 5},
	{"mayo", IN(SPANISH), DATE_MONTH, 5},
	{"juin june juni junio", 0, DATE_MONTH, 6},
	{"jun", IN(ENGLISH), DATE_MONTH, 6},
	{"juillet juli july", 0, DATE_MONTH, 7},
	{"jul", IN(ENGLISH), DATE_MONTH, 7},
	{"julio", IN(SPANISH), DATE_MONTH, 7},
	{"agosto aout august", 0, DATE_MONTH, 8},
	{"aug", IN(ENGLISH), DATE_MONTH, 8},
	{"september septembre septiembre", 0, DATE_MONTH, 9},
	{"sep sept", IN(ENGLISH), DATE_MONTH, 9},
	{"october octobre octubre oktober", 0, DATE_MONTH, 10},
	{"oct", IN(ENGLISH), DATE_MONTH, 10},
	{"november novembre noviembre", 0, DATE_MONTH, 11},
	{"nov", IN(ENGLISH), DATE_MONTH, 11},
	{"december decembre dezember diciembre", 0, DATE_MONTH, 12},
	{"dec", IN(ENGLISH), DATE_MONTH, 12},
	{"ene janv", 0, DATE_MONTH | DATE_DOUBTFUL, 1},
	{"jan", EXCEPT(ENGLISH), DATE_MONTH | DATE_DOUBTFUL, 1},
	{"fevr", 0, DATE_MONTH | DATE_DOUBTFUL, 2},
	{"feb", EXCEPT(ENGLISH), DATE_MONTH | DATE_DOUBTFUL, 2},
	{"mar mrz", 0, DATE_MONTH | DATE_DOUBTFUL, 3},
	{"march", IN(ENGLISH), DATE_MONTH | DATE_DOUBTFUL, 3},
	{"abr avr", 0, DATE_MONTH | DATE_DOUBTFUL, 4},
	{"apr", EXCEPT(ENGLISH), DATE_MONTH | DATE_DOUBTFUL, 4},
	{"may", IN(ENGLISH), DATE_MONTH | DATE_DOUBTFUL, 5},
	{"jun", EXCEPT(ENGLISH), DATE_MONTH | DATE_DOUBTFUL, 6},
	{"juil", 0, DATE_MONTH | DATE_DOUBTFUL, 7},
	{"jul", EXCEPT(ENGLISH), DATE_MONTH | DATE_DOUBTFUL, 7},
	{"aug", EXCEPT(ENGLISH), DATE_MONTH | DATE_DOUBTFUL, 8},
	{"sep sept", EXCEPT(ENGLISH), DATE_MONTH | DATE_DOUBTFUL, 9},
	{"okt", 0, DATE_MONTH | DATE_DOUBTFUL, 10},
	{"oct", EXCEPT(ENGLISH), DATE_MONTH | DATE_DOUBTFUL, 10},
	{"nov", EXCEPT(ENGLISH), DATE_MONTH | DATE_DOUBTFUL, 11},
	{"dez dic", 0, DATE_MONTH | DATE_DOUBTFUL, 12},
	{"dec", EXCEPT(ENGLISH), DATE_MONTH | DATE_DOUBTFUL, 12},
	{"lundi lunes monday montag", 0, DATE_WEEKDAY, 0},
	{"dienstag mardi martes tuesday", 0, DATE_WEEKDAY, 1},
	{"mercredi miercoles mittwoch wednesday", 0, DATE_WEEKDAY, 2},
	{"donnerstag jeudi jueves thursday", 0, DATE_WEEKDAY, 3},
	{"freitag friday vendredi viernes", 0, DATE_WEEKDAY, 4},
	{"sabado samedi samstag saturday sonnabend", 0, DATE_WEEKDAY, 5},
	{"dimanche domingo sonntag sunday", 0, DATE_WEEKDAY, 6},
	{"fruhjahr fruhling primavera printemps spring", 0, DATE_SEASON, 3},
	{"sommer summer verano", 0, DATE_SEASON, 6},
	{"ete", IN(FRENCH), DATE_SEASON, 6},
	{"automne autumn herbst otono", 0, DATE_SEASON, 9},
	{"fall", IN(ENGLISH), DATE_SEASON, 9},
	{"hiver invierno winter", 0, DATE_SEASON, 12},
	{"day days dia dias jour jours tage tagen", 0, DATE_UNIT, UNIT_DAY},
	{"tag", IN(GERMAN), DATE_UNIT, UNIT_DAY},
	{"abend afternoon evening matin morning nachmittag nacht night noche nuit soir "
	 "vormittag",
	 0, DATE_UNIT, UNIT_NIGHT},
	{"tarde", IN(SPANISH), DATE_UNIT, UNIT_NIGHT},
	{"semaine semaines semana semanas week weeks woche wochen", 0, DATE_UNIT, UNIT_WEEK},
	{"weekend weekends wochenende wochenenden", 0, DATE_UNIT, UNIT_WEEKEND},
	{"meses mois monat monate monaten month months", 0, DATE_UNIT, UNIT_MONTH},
	{"mes", IN(SPANISH), DATE_UNIT, UNIT_MONTH},
	{"quartal quarter trimestre", 0, DATE_UNIT, UNIT_QUARTER},
	{"annee ano jahr jahre jahren year years", 0, DATE_UNIT, UNIT_YEAR},
	{"an ans", IN(FRENCH), DATE_UNIT, UNIT_YEAR},
	{"decada decade decennie jahrzehnt", 0, DATE_UNIT, UNIT_DECADE},
	{"annees anos", 0, DATE_UNIT | DATE_DECADES, UNIT_YEAR},
	{"eine einem einer one", 0, DATE_NUMBER, 1},
	{"a an", IN(ENGLISH), DATE_NUMBER, 1},
	{"un une", IN(FRENCH), DATE_NUMBER, 1},
	{"ein", IN(GERMAN), DATE_NUMBER, 1},
	{"un una", IN(SPANISH), DATE_NUMBER, 1},
	{"deux dos two zwei", 0, DATE_NUMBER, 2},
	{"couple", IN(ENGLISH), DATE_NUMBER, 2},
	{"drei three tres trois", 0, DATE_NUMBER, 3},
	{"few", IN(ENGLISH), DATE_NUMBER, 3},
	{"cuatro four quatre vier", 0, DATE_NUMBER, 4},
	{"cinco cinq five funf", 0, DATE_NUMBER, 5},
	{"sechs seis six", 0, DATE_NUMBER, 6},
	{"seven sieben siete", 0, DATE_NUMBER, 7},
	{"acht eight huit ocho", 0, DATE_NUMBER, 8},
	{"neuf neun nine nueve", 0, DATE_NUMBER, 9},
	{"diez dix ten zehn", 0, DATE_NUMBER, 10},
	{"eleven elf onze", 0, DATE_NUMBER, 11},
	{"once", IN(SPANISH), DATE_NUMBER, 11},
	{"doce douze twelve zwolf", 0, DATE_NUMBER, 12},
	{"second", IN(ENGLISH), DATE_ORDINAL, 2},
	{"third", IN(ENGLISH), DATE_ORDINAL, 3},
	{"fourth", IN(ENGLISH), DATE_ORDINAL, 4},
	{"first", IN(ENGLISH), DATE_FIRST | DATE_ORDINAL, 1},
	{"earliest initially oldest originally", IN(ENGLISH), DATE_FIRST, 0},
	{"erste erstem ersten erster erstes premier premiere primer primera primero", 0, DATE_FIRST,
	 1},
	{"aktuelle aktuellen dernierement neueste neuesten neuester ultimamente zuletzt", 0,
	 DATE_LATEST, 0},
	{"latest newest", IN(ENGLISH), DATE_LATEST, 0},
	{"anteayer antier vorgestern", 0, DATE_DAY, -2},
	{"anoche ayer gestern yesterday", 0, DATE_DAY, -1},
	{"hier", IN(FRENCH), DATE_DAY, -1},
	{"aujourdhui heute hoy today tonight", 0, DATE_DAY, 0},
	{"demain manana tomorrow", 0, DATE_DAY, 1},
	{"morgen", IN(GERMAN), DATE_DAY, 1},
	{"ubermorgen", 0, DATE_DAY, 2},
	{"twenties", 0, DATE_DECADE, 1920},
	{"thirties", 0, DATE_DECADE, 1930},
	{"forties", 0, DATE_DECADE, 1940},
	{"fifties", 0, DATE_DECADE, 1950},
	{"sixties", 0, DATE_DECADE, 1960},
	{"seventies", 0, DATE_DECADE, 1970},
	{"eighties", 0, DATE_DECADE, 1980},
	{"nineties", 0, DATE_DECADE, 1990},
	{"apres despues nach tras", 0, DATE_AFTER, 0},
	{"after", IN(ENGLISH), DATE_AFTER, 0},
	{"ago", 0, DATE_AGO, 0},
	{"hace", 0, DATE_AGO_FRONT, 0},
	{"vor", 0, DATE_AGO_FRONT | DATE_BEFORE, 0},
	{"und", 0, DATE_AND, 0},
	{"and", IN(ENGLISH), DATE_AND, 0},
	{"et", IN(FRENCH), DATE_AND, 0},
	{"y", IN(SPANISH), DATE_AND, 0},
	{"antes", 0, DATE_BEFORE, 0},
	{"before", IN(ENGLISH), DATE_BEFORE, 0},
	{"avant", IN(FRENCH), DATE_BEFORE, 0},
	{"entre zwischen", 0, DATE_BETWEEN, 0},
	{"between", IN(ENGLISH), DATE_BETWEEN, 0},
	{"from", IN(ENGLISH), DATE_FROM, 0},
	{"de du", IN(FRENCH), DATE_FROM | DATE_LINK, 0},
	{"vom von", IN(GERMAN), DATE_FROM | DATE_LINK, 0},
	{"de del", IN(SPANISH), DATE_FROM | DATE_LINK, 0},
	{"around by during early late mid", IN(ENGLISH), DATE_IN, 0},
	{"en", IN(FRENCH), DATE_IN, 0},
	{"im", IN(GERMAN), DATE_IN, 0},
	{"in", IN(ENGLISH), DATE_IN | DATE_HENCE, 0},
	{"dans", IN(FRENCH), DATE_IN | DATE_HENCE, 0},
	{"in", IN(GERMAN), DATE_IN | DATE_HENCE, 0},
	{"en", IN(SPANISH), DATE_IN | DATE_HENCE, 0},
	{"dernier derniere dernieres derniers letzte letztem letzten letzter letztes "
	 "pasada pasadas pasado pasados ultima ultimas ultimo ultimos vergangene "
	 "vergangenen vergangenes vorige vorigen voriges",
	 0, DATE_LAST, 0},
	{"last past previous", IN(ENGLISH), DATE_LAST, 0},
	{"passe passee", IN(FRENCH), DATE_LAST, 0},
	{"of the", IN(ENGLISH), DATE_LINK, 0},
	{"des l la les", IN(FRENCH), DATE_LINK, 0},
	{"das dem den der des", IN(GERMAN), DATE_LINK, 0},
	{"la las los", IN(SPANISH), DATE_LINK, 0},
	{"kommende kommenden nachste nachsten nachster nachstes prochain prochaine "
	 "prochaines prochains proxima proximas proximo proximos",
	 0, DATE_NEXT, 0},
	{"coming next upcoming", IN(ENGLISH), DATE_NEXT, 0},
	{"viene", IN(SPANISH), DATE_NEXT, 0},
	{"on", IN(ENGLISH), DATE_ON, 0},
	{"am", IN(GERMAN), DATE_ON, 0},
	{"le", IN(FRENCH), DATE_ON | DATE_LINK, 0},
	{"el", IN(SPANISH), DATE_ON | DATE_LINK, 0},
	{"depuis seit", 0, DATE_SINCE, 0},
	{"since", IN(ENGLISH), DATE_SINCE, 0},
	{"ab", IN(GERMAN), DATE_SINCE, 0},
	{"desde", 0, DATE_SINCE | DATE_FROM, 0},
	{"diese diesem diesen dieser dieses", 0, DATE_THIS, 0},
	{"this", IN(ENGLISH), DATE_THIS, 0},
	{"ce cet cette", IN(FRENCH), DATE_THIS, 0},
	{"esta este", IN(SPANISH), DATE_THIS, 0},
	{"fois vez", 0, DATE_TIME, 0},
	{"time", IN(ENGLISH), DATE_TIME, 0},
	{"mal", IN(GERMAN), DATE_TIME, 0},
	{"through to", IN(ENGLISH), DATE_TO, 0},
	{"a au", IN(FRENCH), DATE_TO | DATE_LINK, 0},
	{"a al", IN(SPANISH), DATE_TO | DATE_LINK, 0},
	{"bis hasta jusqu", 0, DATE_UNTIL | DATE_TO, 0},
	{"till until", IN(ENGLISH), DATE_UNTIL | DATE_TO, 0},
};

enum { SLOTS = 1024 };
static struct word_slot slots[SLOTS];
static const struct word_lists table = {date_lists, sizeof(date_lists[0]),
					sizeof(date_lists) / sizeof(date_lists[0]), slots, SLOTS};

static void learn(void)
{
	word_lists_fill(&table);
}

bool date_words_find(struct text folded, enum language l, uint32_t *ret_kinds, int *ret_value)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const struct word_slot *slot = NULL;

	pthread_once(&once, learn);
	while ((slot = word_lists_find(&table, folded, slot))) {
		const struct date_list *list = &date_lists[slot->list];

		if (list->languages && !(list->languages >> l & 1))
			continue;
		*ret_kinds = list->kinds;
		*ret_value = list->value;
		return true;
	}
	return false;
}
