package analysis

import (
	"cmp"
	"slices"
)

// A QueryTerm is a word of a query in the forms that it is indexed in.
type QueryTerm struct {
	Text string // as it stands in the query where it comes first
	// Forms are the different terms that the languages make of the word, at least
	// one. No form is one of another QueryTerm of the same query.
	Forms []string
}

// QueryTerms returns the terms of a query over texts in some languages, named as
// for Tokens; no languages are English alone. A query has no language of its
// own: each word has the forms that it has in any text, English's first, the
// others' in the order of languages. A word that has a form of a word before it
// is the same term.
//
// A stop word of one language keeps the forms that other languages give it: the
// German article "die" is an English verb. But the stop words of the language
// that the query itself is evidently written in are no terms at all: in texts of
// other languages they are rare, and weigh much there. It is English where the
// query has a stop word of English, and of no other language more; another one
// where it has at least two, and more than of any other.
//
// For one language the terms are those of Tokens, each once, but for single
// characters of longer runs.
func QueryTerms(text string, languages []string) []QueryTerm {
	codes := distinctLanguages(languages)
	var words []queryWord
	at := map[span]int{} // place → words
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

// A queryWord is a place of a query and the terms that languages find there.
type queryWord struct {
	span
	forms []string
}

// distinctLanguages returns the languages that differ in their rules, English
// first.
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

// evidentStops returns the places of the stop words of the one language that a
// text is evidently written in, and nothing where there is none.
//
// On mtrag-un-reference, which is English but for six passages of 1,152, nDCG@10 by
// BM25 is 0.740 with this and 0.735 without; were all taken for English, 0.742.
func evidentStops(text string, codes []string) map[span]bool {
	if len(codes) < 2 {
		return nil // they are no terms anyway
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

// stopPlaces returns where a text has stop words.
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
