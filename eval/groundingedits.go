package eval

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/mutate"
	"github.com/assay-rag/assay/internal/surface"
)

// How many cases are made of a seed at most, of those that say what it says and of those
// that do not.
const (
	mostFaithful = 2
	mostEdited   = 2
)

// MadeGrounding makes labelled claims to learn from: of statements that a text supports,
// which are answers with their gold passages, titles and sentences of the retrieval sets
// that lie under dir, and their questions put as statements with their answers, it makes others that say the same (words exchanged for others of
// their meaning, asides left out) and others that do not (numbers, names, dates, units,
// negations, comparisons, opposites, places of two names, words and phrases of other
// texts, two statements of which one rests on nothing), and gives the text without the
// sentences that say it, or another text. Sentences of the texts are put in other words,
// in other orders and in parts, fairly and so that more is said than the text does:
// without a condition, a hedge or who it is that says it. Edits names what was done.
//
// Texts that sets hold as evidence are left out, so that nothing is learned from what is
// judged. It is deterministic. An error is assay.ErrNotFound where there is no set.
func MadeGrounding(dir string, sets []GroundingSet) ([]GroundingCase, error) {
	known := map[string]bool{}
	for _, s := range sets {
		for _, c := range s.Cases {
			known[opening(strings.Join(c.Evidence, " "))] = true
		}
	}
	read, err := readSeeds(dir, known)
	if err != nil {
		return nil, err
	}
	var cases []GroundingCase
	for _, s := range read {
		e := newEditor(s)
		for i, d := range s.seeds {
			cases = append(cases, e.cases(i, d)...)
		}
		cases = append(cases, e.askedCases()...)
		cases = append(cases, e.rewordedCases()...)
	}
	return cases, nil
}

// An edit is a claim made of a seed's.
type edit struct {
	kind     string
	claim    string
	verdict  assay.Verdict
	evidence []string // nil: the seed's
}

// An editor makes cases of the seeds of one set, with words of its other texts.
type editor struct {
	set      *seedSet
	names    []string
	follow   map[string][]string // words by the word before and their ending
	phrases  []string            // that end a sentence
	stems    map[*seedText]map[string]bool
	small    map[string]bool // words that stand in small letters
	shortOf  *seedText
	short    []shortForm // of that text
	random   *rand.Rand
	original seed
}

func newEditor(set *seedSet) *editor {
	e := &editor{set: set, follow: map[string][]string{}, stems: map[*seedText]map[string]bool{}, small: map[string]bool{}}
	seen := map[string]bool{}
	for _, t := range set.texts {
		e.stems[t] = contentStems(t.String())
		for _, s := range t.sentences {
			for _, n := range surface.Names(s) {
				if !seen[n] {
					seen[n] = true
					e.names = append(e.names, n)
				}
			}
			for _, w := range surface.Words(s) {
				if w == strings.ToLower(w) {
					e.small[w] = true
				}
			}
			for _, w := range exchangeable(s) {
				const most = 400
				if len(e.follow[w.place]) < most {
					e.follow[w.place] = append(e.follow[w.place], w.text)
				}
			}
			if p := endPhrase(s); p != "" {
				e.phrases = append(e.phrases, p)
			}
		}
	}
	return e
}

// cases makes those of one seed.
func (e *editor) cases(i int, d seed) []GroundingCase {
	e.random, e.original = rand.New(rand.NewPCG(7, hashed(d.claim))), d
	var out []GroundingCase
	emit := func(list []edit) {
		for _, x := range list {
			if x.evidence == nil {
				x.evidence = d.text.sentences
			}
			out = append(out, GroundingCase{
				ID: fmt.Sprintf("%s/%d/%d", e.set.name, i, len(out)), Claim: x.claim, Evidence: x.evidence, Verdict: x.verdict, Edits: []string{x.kind},
			})
		}
	}
	emit(e.some(e.faithful(), mostFaithful))
	edited := e.some(e.edited(), mostEdited)
	for k := range edited {
		if e.random.IntN(4) == 0 { // an edit among honest ones
			edited[k].claim, _ = alike.swap(e.random, edited[k].claim, 2)
		}
	}
	emit(edited)
	emit(e.elsewhere())
	return out
}

// some draws so many.
func (e *editor) some(list []edit, most int) []edit {
	e.random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:min(most, len(list))]
}

// faithful are claims that say what the seed says, or a part of it.
func (e *editor) faithful() []edit {
	claim := e.original.claim
	out := []edit{{kind: "as it is", claim: claim, verdict: assay.Supported}}
	put := func(kind, text string, swaps int) {
		text, n := alike.swap(e.random, text, swaps)
		if text != claim && (n > 0 || swaps == 0) {
			out = append(out, edit{kind: kind, claim: text, verdict: assay.Supported})
		}
	}
	put("other words", claim, 1)
	put("other words", claim, 3)
	put("other words", claim, 5)
	if at := bracketed.FindStringIndex(claim); at != nil {
		put("aside left out", claim[:at[0]]+claim[at[1]:], 0)
	}
	if at := leading.FindStringSubmatchIndex(claim); at != nil {
		rest := claim[at[2]:]
		put("beginning left out", strings.ToUpper(rest[:1])+rest[1:], 0)
		put("beginning left out", strings.ToUpper(rest[:1])+rest[1:], 3)
	}
	if p := endPhrase(claim); p != "" && e.original.alone {
		rest := strings.TrimRight(claim[:strings.LastIndex(claim, p)], " ,")
		if last := lastOf(rest); !strings.HasSuffix(last, "ing") && !verbs.isParticiple(last) && !prepositions[last] {
			put("end left out", rest+".", 2)
		}
	}
	return out
}

var (
	bracketed = regexp.MustCompile(` \([^()]*\)`)
	leading   = regexp.MustCompile(`^(?:In|On|At|During|After|Following|As|Since|By|From|However|Moreover|Furthermore|Additionally)\b[^,.]{3,60}, ([a-z][^.]{30,})`)
)

// edited are claims that say something else.
func (e *editor) edited() []edit {
	claim := e.original.claim
	var out []edit
	put := func(kind, text string, v assay.Verdict) {
		if text != "" && text != claim {
			out = append(out, edit{kind: kind, claim: text, verdict: v})
		}
	}
	seen := map[mutate.Kind]int{}
	for _, m := range mutate.Of(claim, e.near(4)) {
		const ofKind = 2
		if seen[m.Kind]++; seen[m.Kind] <= ofKind {
			put(string(m.Kind), m.Claim, assay.Contradicted)
		}
	}
	for _, n := range []int{1, 2} {
		if text, done := unlike.swap(e.random, claim, n); done == n {
			put("opposite", text, assay.Contradicted)
		}
	}
	if names := surface.Names(claim); len(names) > 0 {
		put("foreign name", e.foreignName(names[e.random.IntN(len(names))]), assay.Unsupported)
		put("names turned", turnedNames(claim, names[0], names[len(names)-1]), assay.Contradicted)
	}
	put("foreign word", e.otherWord(claim, false), assay.Unsupported)
	put("foreign word", e.otherWord(claim, false), assay.Unsupported)
	put("word of elsewhere", e.otherWord(claim, true), assay.Unsupported)
	if len(e.phrases) > 0 {
		put("foreign end", strings.TrimRight(claim, ".!? ")+" "+e.phrases[e.random.IntN(len(e.phrases))]+".", assay.Unsupported)
	}
	if o := e.set.seeds[e.random.IntN(len(e.set.seeds))]; e.random.IntN(2) == 0 && o.text != e.original.text && len(claim)+len(o.claim) < 400 {
		put("foreign half", strings.TrimRight(claim, ".!? ")+", and "+o.claim, assay.Unsupported)
		put("foreign half", o.claim+" "+claim, assay.Unsupported)
	}
	return out
}

// near is the text of so many sentences that share the most with the claim, in order.
func (e *editor) near(most int) string {
	sentences := e.original.text.sentences
	claim := contentStems(e.original.claim)
	order := make([]int, len(sentences))
	score := make([]int, len(sentences))
	for i, s := range sentences {
		order[i] = i
		for stem := range contentStems(s) {
			if claim[stem] {
				score[i]++
			}
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return score[b] - score[a] })
	order = order[:min(most, len(order))]
	slices.Sort(order)
	var b strings.Builder
	for _, i := range order {
		b.WriteString(sentences[i] + "\n")
	}
	return b.String()
}

// foreignName is the claim with a name of another text, of as many words.
func (e *editor) foreignName(name string) string {
	const tries = 8
	text := e.original.text.String()
	for range tries {
		o := e.names[e.random.IntN(len(e.names))]
		if strings.Count(o, " ") == strings.Count(name, " ") && !strings.Contains(text, o) {
			return strings.Replace(e.original.claim, name, o, 1)
		}
	}
	return ""
}

// turnedNames puts two names of a claim in each other's place; empty where it cannot.
func turnedNames(claim, a, b string) string {
	if strings.ContainsAny(claim, "{}|<>") || titled(claim) {
		return ""
	}
	i, j := strings.Index(claim, a), strings.LastIndex(claim, b)
	if i < 0 || j < i+len(a) || strings.Contains(a, b) || strings.Contains(b, a) {
		return ""
	}
	return claim[:i] + b + claim[i+len(a):j] + a + claim[j+len(b):]
}

// titled reports whether most words of a text have a capital: its names are no names.
func titled(text string) bool {
	words := asked(strings.Fields(text))
	n := 0
	for i := range words {
		if words.capital(i) {
			n++
		}
	}
	return 2*n > len(words)
}

// otherWord is the claim with a word in the place of another of its kind: of the claim's
// own text, or one that is not in it.
func (e *editor) otherWord(claim string, own bool) string {
	words := exchangeable(claim)
	if len(words) == 0 {
		return ""
	}
	w := words[e.random.IntN(len(words))]
	list := e.follow[w.place]
	if own {
		list = nil
		for _, s := range e.original.text.sentences {
			for _, o := range exchangeable(s) {
				if o.place == w.place {
					list = append(list, o.text)
				}
			}
		}
	}
	held := contentStems(claim)
	text := e.stems[e.original.text]
	const tries = 6
	for range min(tries, len(list)) {
		o := list[e.random.IntN(len(list))]
		stem := stemOf(o)
		if held[stem] || !own && text[stem] || slices.Contains(alike.others[alike.plain[w.text]], alike.plain[o]) {
			continue
		}
		return claim[:w.start] + o + claim[w.end:]
	}
	return ""
}

// A slot is a word of content in small letters behind one of no content, and the place
// that it holds: the word before it and its own ending.
type slot struct {
	text, place string
	start, end  int
}

func exchangeable(text string) []slot {
	var out []slot
	before := ""
	for _, sp := range spansOfWords(text) {
		w := text[sp[0]:sp[1]]
		lower := strings.ToLower(w)
		if surface.Function(lower) {
			before = lower
			continue
		}
		const least = 4
		if before != "" && w == lower && len(w) >= least && !strings.ContainsAny(w, "0123456789-") {
			out = append(out, slot{w, before + " " + ending(w), sp[0], sp[1]})
		}
		before = ""
	}
	return out
}

func ending(word string) string {
	for _, e := range []string{"ing", "ed", "ly", "ion", "s"} {
		if strings.HasSuffix(word, e) {
			return e
		}
	}
	return ""
}

// endPhrase is the phrase that a sentence ends with: a preposition and what follows it.
func endPhrase(s string) string {
	words := spansOfWords(s)
	const mostWords, leastWords, before = 8, 3, 5
	for i := len(words) - leastWords; i > max(before, len(words)-mostWords); i-- {
		if endings[s[words[i][0]:words[i][1]]] && !strings.ContainsAny(s[words[i][0]:], `()"`) {
			return strings.TrimRight(s[words[i][0]:], ".!? ")
		}
	}
	return ""
}

var endings = wordsOf("in by for with after during because from through among")

// elsewhere gives the claim a text that does not say it: its own without the sentences
// that have much of it, and of some others that one which is most like it.
func (e *editor) elsewhere() []edit {
	claim := contentStems(e.original.claim)
	shared := func(held map[string]bool) int {
		n := 0
		for stem := range claim {
			if held[stem] {
				n++
			}
		}
		return n
	}
	var out []edit
	var rest []string
	for _, s := range e.original.text.sentences {
		if 10*shared(contentStems(s)) < 4*len(claim) {
			rest = append(rest, s)
		}
	}
	if len(rest) > 1 && len(rest) < len(e.original.text.sentences) && e.random.IntN(4) > 0 {
		out = append(out, edit{kind: "sentence left out", claim: e.original.claim, verdict: assay.Unsupported, evidence: rest})
	}
	var best *seedText
	most := -1
	const drawn = 60
	for range drawn {
		t := e.set.texts[e.random.IntN(len(e.set.texts))]
		if slices.Contains(e.original.text.sentences, t.sentences[0]) || t.title != "" && t.title == e.original.text.title || len(t.sentences) < 2 {
			continue
		}
		if n := shared(e.stems[t]); n > most {
			best, most = t, n
		}
	}
	if best != nil && 10*most < 8*len(claim) && e.random.IntN(2) == 0 {
		out = append(out, edit{kind: "other text", claim: e.original.claim, verdict: assay.Unsupported, evidence: best.sentences})
	}
	return out
}
