// Package mutate turns a statement that its source supports into statements that it does not
// support: with another number, name, date or unit, with a negation, or with a reversed comparison.
// A useful verifier must reject these, however well it accepts honest paraphrases. The package is
// deterministic, works for English, and judges nothing.
package mutate

import (
	"hash/fnv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// A Kind is the kind of change that a mutation makes.
type Kind string

// The kinds of mutation. Of makes all but Source. For Source the statement stays the same
// and its citation is replaced.
const (
	Number     Kind = "number"
	Name       Kind = "name"
	Date       Kind = "date" // a year, month, day, weekday or time of day
	Unit       Kind = "unit"
	Negation   Kind = "negation"
	Comparison Kind = "comparison"
	Source     Kind = "source"
)

// Kinds lists the kinds in the order of reports.
var Kinds = []Kind{Number, Name, Date, Unit, Negation, Comparison, Source}

// A Mutation is a statement with one thing changed.
type Mutation struct {
	Kind  Kind
	Claim string
	Old   string // the text that was replaced
	New   string // its replacement
}

// Of returns the mutations of a claim that source supports, ordered by Kinds and then by position.
// It takes other numbers and names from source if there are any, so that source may contain all
// words of a mutated claim. It leaves out mutations that source contains verbatim.
func Of(claim, source string) []Mutation {
	m := mutator{claim: claim, source: source}
	m.dates()
	m.numbers()
	m.names()
	m.units()
	m.negations()
	m.comparisons()
	return m.inOrder()
}

type mutator struct {
	claim, source string
	dated         [][2]int // spans of claim that are part of a date
	found         []Mutation
}

// put adds the mutation that replaces claim[start:end] with text.
func (m *mutator) put(k Kind, start, end int, text string) {
	old := m.claim[start:end]
	mutated := m.claim[:start] + text + m.claim[end:]
	if start == 0 {
		r, size := utf8.DecodeRuneInString(mutated)
		if r != utf8.RuneError {
			mutated = string(unicode.ToUpper(r)) + mutated[size:]
		}
	}
	if text == old || mutated == m.claim || strings.Contains(folded(m.source), strings.TrimRight(folded(mutated), ".")) {
		return
	}
	m.found = append(m.found, Mutation{Kind: k, Claim: mutated, Old: old, New: text})
}

func (m *mutator) inOrder() []Mutation {
	var out []Mutation
	for _, k := range Kinds {
		for _, f := range m.found {
			if f.Kind == k {
				out = append(out, f)
			}
		}
	}
	return out
}

// choice returns a number below n that depends only on the claim and on the argument what.
func (m *mutator) choice(what string, n int) int {
	h := fnv.New32a()
	h.Write([]byte(m.claim + "\x00" + what))
	return int(h.Sum32() % uint32(n))
}

// all calls f with each match of re in the claim that is not part of a date.
func (m *mutator) all(re *lazyregexp.Regexp, f func(at []int)) {
	for _, at := range re.FindAllStringSubmatchIndex(m.claim, -1) {
		if !m.inDate(at[0], at[1]) {
			f(at)
		}
	}
}

func (m *mutator) inDate(start, end int) bool {
	for _, d := range m.dated {
		if start < d[1] && d[0] < end {
			return true
		}
	}
	return false
}

func folded(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }
