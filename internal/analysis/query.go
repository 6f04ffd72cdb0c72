package analysis

import (
	"cmp"
	"slices"
)

// A QueryTerm is a word of a query in its indexed forms.
type QueryTerm struct {
	Text string // its first occurrence in the query, verbatim
	// Forms holds the different terms of the word in all the languages, at least one. No two
	// QueryTerms of a query share a form.
	Forms []string
}

// QueryTerms returns the terms of a query over texts in the given languages, named as for Tokens;
// no languages means English alone. The language of a query is unknown. Each word therefore has its
// forms in all languages, first the English ones and then the others in the order of languages. A
// word that shares a form with an earlier word belongs to the same term.
//
// A stop word of one language keeps its forms in other languages: the German article "die" is an
// English verb. The stop words of the query's evident language are dropped in all languages, since
// in texts of other languages they are rare and would have high weights. That language is English
// if the query has an English stop word and no other language has more. Otherwise it is the
// language with the most stop words, if there are at least two and no tie.
//
// For one language the terms are those of Tokens, without duplicates and without single characters
// of longer runs.
func QueryTerms(text string, languages []string) []QueryTerm {
	codes := distinctLanguages(languages)
	var words []queryWord
	at := map[span]int{} // position → index in words
	for _, code := range codes {
		a := borrow(code)
		a.Each(text, func(t Token) {
			if t.Character {
				return
			}
			place := span{t.Start, t.End}
			i, ok := at[place]
			if !ok {
				i = len(words)
				at[place] = i
				words = append(words, queryWord{span: place})
			}
			words[i].forms = append(words[i].forms, t.Term)
		})
		giveBack(a)
	}
	slices.SortStableFunc(words, func(a, b queryWord) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	stops := evidentStops(text, codes)
	var terms []QueryTerm
	taken := map[string]bool{}
	for _, w := range words {
		if stops[w.span] {
			continue
		}
		var forms []string
		for _, f := range w.forms {
			if !taken[f] {
				taken[f] = true
				forms = append(forms, f)
			}
		}
		if len(forms) > 0 {
			terms = append(terms, QueryTerm{Text: text[w.start:w.end], Forms: forms})
		}
	}
	return terms
}

// A queryWord is a position in a query and its terms in all languages.
type queryWord struct {
	span
	forms []string
}

// distinctLanguages returns the languages that differ in their rules, English first.
func distinctLanguages(languages []string) []string {
	var codes []string
	for _, l := range languages {
		if l = canonical(l); !slices.Contains(codes, l) {
			codes = append(codes, l)
		}
	}
	if len(codes) == 0 {
		return []string{"en"}
	}
	if i := slices.Index(codes, "en"); i > 0 {
		codes = slices.Insert(slices.Delete(codes, i, i+1), 0, "en")
	}
	return codes
}

// evidentStops returns the positions of the stop words of the language that a text is evidently
// written in, or nil if that is unclear.
//
// On mtrag-un-reference, which is English except for six passages of 1,152, nDCG@10 by BM25 is
// 0.740 with this and 0.735 without. If all texts are treated as English it is 0.742.
func evidentStops(text string, codes []string) map[span]bool {
	if len(codes) < 2 {
		return nil // they are not terms anyway
	}
	best, language, tie := rulesOf("en").stopPlaces(text), "en", false
	for _, code := range codes {
		stops := rulesOf(code).stopPlaces(text)
		switch {
		case code == "en":
		case len(stops) > len(best):
			best, language, tie = stops, code, false
		case len(stops) == len(best) && language != "en":
			tie = true
		}
	}
	if tie || language != "en" && len(best) < 2 {
		return nil
	}
	return best
}

// stopPlaces returns the positions of the stop words of a text.
func (ru rules) stopPlaces(text string) map[span]bool {
	places := map[span]bool{}
	for i := 0; i < len(text); {
		kind, size := classAt(text, i)
		if kind == letter {
			end := ru.compoundEnd(text, i)
			if ru.isStop(ru.fold(withoutApostrophes(text[i:end]))) {
				places[span{i, end}] = true
			}
			size = end - i
		}
		i += size
	}
	return places
}
