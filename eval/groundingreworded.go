package eval

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/mutate"
	"github.com/assay-rag/assay/internal/surface"
)

// How many cases of each kind of rewording are made of a set at most, of those that many
// sentences allow, and of those that only write a number in another way.
const (
	mostReworded = 60
	mostCommon   = 30
	mostSpelt    = 12
)

// ofAText is how many cases of a kind one text gives at most.
const ofAText = 2

// A reworded is a claim made of the sentences of a text.
type reworded struct {
	kind    string
	claim   string
	verdict assay.Verdict
}

func fairly(kind, claim string) reworded  { return reworded{kind, claim, assay.Supported} }
func beyond(kind, claim string) reworded  { return reworded{kind, claim, assay.Unsupported} }
func against(kind, claim string) reworded { return reworded{kind, claim, assay.Contradicted} }

// rewordings make claims of sentence i of a text, with the ones that are fair beside those
// of the same look that are not. They return none where they are not sure. Most is how
// many of each kind there may be.
var rewordings = []struct {
	most  int
	make  func(e *editor, t *seedText, i int) []reworded
	kinds []string
}{
	{mostReworded, (*editor).attribution, []string{"attribution dropped", "finding stated"}},
	{mostReworded, (*editor).condition, []string{"condition dropped"}},
	{mostCommon, (*editor).hedge, []string{"hedge dropped", "adverb left out"}},
	{mostCommon, (*editor).quantifier, []string{"all for some", "not all for all", "always for often"}},
	{mostReworded, (*editor).voice, []string{"active for passive", "passive for active", "sides of a verb exchanged"}},
	{mostReworded, (*editor).clauses, []string{"clauses in the other order", "clauses exchanged"}},
	{mostReworded, (*editor).apposition, []string{"apposition stated", "apposition left out", "apposition of another"}},
	{mostSpelt, (*editor).spelling, []string{"number in digits", "another number in digits", "number in words", "another number in words", "date in another form", "number without separators", "percent in words", "percent as a sign"}},
	{mostCommon, (*editor).abbreviation, []string{"abbreviation for the long form", "long form for the abbreviation"}},
	{mostCommon, (*editor).neighbours, []string{"pronoun resolved", "pronoun resolved, one thing changed", "two sentences in one", "two sentences in one, one thing changed"}},
	{mostCommon, (*editor).shorter, []string{"end clause left out", "second half alone", "list shortened"}},
	{mostCommon, (*editor).phrasing, []string{"phrase in other words", "phrase of the opposite"}},
}

// rewordedCases makes cases of sentences of a set's texts, so many of each kind, spread
// over the texts.
func (e *editor) rewordedCases() []GroundingCase {
	texts := slices.Clone(e.set.texts)
	slices.SortStableFunc(texts, func(a, b *seedText) int { return cmp.Compare(hashed("reword "+a.id), hashed("reword "+b.id)) })
	made := map[string]int{}
	var out []GroundingCase
	for _, t := range texts {
		taken := map[string]int{}
		for i, s := range t.sentences {
			if !wellFormed(s) || headed.MatchString(s) {
				continue
			}
			e.random, e.original = rand.New(rand.NewPCG(13, hashed(t.id+s))), seed{claim: s, text: t, alone: true}
			for _, w := range rewordings {
				if !slices.ContainsFunc(w.kinds, func(k string) bool { return made[k] < w.most && taken[k] < ofAText }) {
					continue
				}
				for _, r := range w.make(e, t, i) {
					if r.claim == s || made[r.kind] >= w.most || taken[r.kind] >= ofAText || !wellFormed(r.claim) {
						continue
					}
					made[r.kind]++
					taken[r.kind]++
					out = append(out, GroundingCase{
						ID: fmt.Sprintf("%s/reworded %s/%d/%d", e.set.name, t.id, i, len(out)), Claim: r.claim, Evidence: t.sentences, Verdict: r.verdict, Edits: []string{r.kind},
					})
				}
			}
		}
	}
	return out
}

// headed are sentences of abstracts behind a heading, which is no part of them.
var headed = regexp.MustCompile(`^(?:[A-Z]{5,}|[A-Z]{3,}(?:,? (?:AND )?[A-Z]{4,})+)\b`)

// wellFormed reports whether a text is a sentence of a size that a claim has.
func wellFormed(s string) bool {
	const least, most = 4, 60 // words
	n := strings.Count(s, " ") + 1
	first, _ := utf8.DecodeRuneInString(s)
	return n >= least && n <= most && strings.HasSuffix(s, ".") && strings.ToUpper(string(first)) == string(first) && !strings.ContainsAny(s, `:;?!|“”"[]`) &&
		strings.Count(s, "(") == strings.Count(s, ")") && !strings.Contains(s, " .") && !strings.Contains(s, "''")
}

// sentenceOf makes a sentence of a part of one.
func sentenceOf(part string) string {
	part = strings.TrimRight(strings.TrimSpace(part), " .,;")
	if part == "" {
		return ""
	}
	r, size := utf8.DecodeRuneInString(part)
	return strings.ToUpper(string(r)) + part[size:] + "."
}

// hasVerb reports whether words hold a finite verb.
func hasVerb(part string) bool {
	q := asked(strings.Fields(part))
	for i := 1; i < len(q); i++ {
		w := q.at(i)
		if q.inside(i) {
			continue
		}
		switch q.finite(i) {
		case "be", "have", "modal", "help", "third":
			return true
		case "past":
			if next := q.at(i + 1); !verbs.isParticiple(w) || determiners[next] || q.capital(i+1) || q.number(i+1) {
				return true
			}
		}
	}
	return false
}

// within has a sentence's beginning as it stands within one: in small letters, where its
// first word is one that the set has so.
func (e *editor) within(phrase string) string {
	word, rest, _ := strings.Cut(phrase, " ")
	lower := strings.ToLower(word)
	if next := (asked{rest}); len(word) > 1 && !(next.capital(0) && !surface.Function(lower)) && word[1:] == lower[1:] && lower != "i" && (e.small[lower] || surface.Function(lower)) {
		return lower + phrase[len(word):]
	}
	return phrase
}

// neighbours tells a sentence with the one before it: what "he" is, and both in one; with
// one thing changed, that is contradicted.
func (e *editor) neighbours(t *seedText, i int) []reworded {
	if i == 0 || !wellFormed(t.sentences[i-1]) || headed.MatchString(t.sentences[i-1]) {
		return nil
	}
	before, s := t.sentences[i-1], t.sentences[i]
	pronoun, rest, _ := strings.Cut(s, " ")
	name, ok := subjectName(before)
	var out []reworded
	switch pronoun {
	case "He", "She", "They", "It":
		if !ok || pronoun == "It" && !strings.Contains(before, name+" is ") && !strings.Contains(before, name+" was ") || strings.Contains(name, " and ") != (pronoun == "They") {
			return nil
		}
		if q := asked(strings.Fields(s)); q.finite(1) == "" && verbs.ofThird[q.at(1)] == "" || q.at(2) == "that" || pronoun == "It" && (slices.Contains(q[:min(len(q), 9)], "that") || slices.Contains(q[:min(len(q), 9)], "whether") || strings.Contains(s, " to ") && beings[q.at(1)]) {
			return nil
		}
		resolved := name + " " + rest
		out = append(out, fairly("pronoun resolved", resolved))
		if all := mutate.Of(resolved, e.near(4)); len(all) > 0 {
			out = append(out, against("pronoun resolved, one thing changed", all[e.random.IntN(len(all))].Claim))
		}
		s = strings.ToLower(pronoun) + " " + rest
	default:
		if w, _, _ := strings.Cut(s, " "); !determiners[strings.ToLower(w)] || w == "This" || w == "These" || w == "Another" || w == "Both" || len(before)+len(s) > 260 || strings.Contains(s, "however") || headed.MatchString(before) {
			return nil
		}
		s = e.within(s)
	}
	if len(before)+len(s) > 300 {
		return out
	}
	merged := strings.TrimRight(before, ".") + ", and " + s
	out = append(out, fairly("two sentences in one", merged))
	all := mutate.Of(merged, e.near(4))
	if len(all) > 0 {
		out = append(out, against("two sentences in one, one thing changed", all[e.random.IntN(len(all))].Claim))
	}
	return out
}

// subjectName is the name that a sentence begins with, before its verb.
func subjectName(s string) (string, bool) {
	q := asked(strings.Fields(s))
	n := 0
	for n < len(q) && n < 6 && !(n > 0 && strings.HasSuffix(q[n-1], ",")) && (q.capital(n) || q.at(n) == "of" || q.at(n) == "and") {
		n++
	}
	if n == 0 || n >= len(q) || q.finite(n) == "" && verbs.ofThird[q.at(n)] == "" || strings.HasSuffix(q[n-1], ",") {
		return "", false
	}
	if w := q.at(0); determiners[w] && n == 1 || pronouns[w] || prepositions[w] || relatives[w] || n == 1 && surface.Function(w) {
		return "", false
	}
	return q.text(0, n), true
}
