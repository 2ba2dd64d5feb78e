/*
 * Words that are used alike: a memory that lacks a word of the question may have another one in
 * its place, which counts for a part of its weight. A table says which words these are
 * (search/vector/word_table.h); without one nothing happens here.
 */
#pragma once

#include "search/rank/score.h"

/*
 * Adds them to the scores, after search_score. For each word of the question a memory gets credit
 * for one word at most, the most similar that it has. Names, numbers and dates are like no others.
 */
void search_score_alike(struct search *s);
