// Package mutate makes of a statement that its source supports ones that it does not: with
// another number, name, date or unit, denied, or with a comparison turned round. A verifier
// that lets these through is of no use, whatever it makes of honest paraphrases. It is
// deterministic, knows English, and judges nothing.
package mutate

import (
	"hash/fnv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// A Kind says what a mutation changed.
type Kind string

// The kinds of mutation. Of makes all but Source: there the statement stays as it is, and
// what it cites is exchanged.
const (
	Number     Kind = "number"
	Name       Kind = "name"
	Date       Kind = "date" // a year, month, day, weekday or time of day
	Unit       Kind = "unit"
	Negation   Kind = "negation"
	Comparison Kind = "comparison"
	Source     Kind = "source"

	// Order has the two sides of "before" or of a comparison exchanged; Exchange makes it.
	Order Kind = "order"
)

// Kinds are all kinds, in the order in which they are reported.
var Kinds = []Kind{Number, Name, Date, Unit, Negation, Comparison, Source}

// A Mutation is a statement with one thing changed.
type Mutation struct {
	Kind  Kind
	Claim string
	Old   string // what was changed, as the statement had it
	New   string // what stands there now
}

// Of returns the mutations of a claim that source supports, in the order of Kinds, those
// of a kind by their place. Other numbers and names are taken from source where it has
// some, so that the words of a mutated claim may all stand in it. What is in source word
// for word is no mutation and left out.
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
	dated         [][2]int // what of claim is part of a date
	found         []Mutation
}

// put notes the mutation that has text in the place of claim[start:end].
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

// choice is a number below n that depends on the claim and on what is changed alone.
func (m *mutator) choice(what string, n int) int {
	h := fnv.New32a()
	h.Write([]byte(m.claim + "\x00" + what))
	return int(h.Sum32() % uint32(n))
}

// all calls f with each match of re in the claim, which is not part of a date unless
// dates is set.
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
