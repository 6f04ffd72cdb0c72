// Package starter makes a first set of questions from a collection of documents, for people
// to correct: each with the words that answer it, and some that the documents do not
// answer. [Make] turns sentences into questions by their grammar, without a model; with a
// [Writer] a language model writes them from passages. What comes out is no measure of
// anything before somebody has looked at it.
package starter

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval"
	"github.com/assay-rag/assay/store"
)

// Options say what set is made. Zero fields mean the defaults.
type Options struct {
	Questions    int     // in all; 50
	Unanswerable float64 // share of them that the documents do not answer, in [0, 1); 0.2, below 0: none
	Writer       Writer  // writes questions for passages; nil: grammar does
}

// A Writer writes a question that a passage answers. It is asked for one passage after the
// other.
type Writer interface {
	// Write returns a question with its answer and the words of the passage that give it;
	// ok is false where the passage is good for none. The error is the end of ctx or of the
	// service.
	Write(ctx context.Context, p Passage) (q Written, ok bool, err error)
}

// Written is what a Writer wrote.
type Written struct {
	Question string
	Answer   string
	Quote    string // stands in the passage as it is
}

// A Passage is what a question is written from.
type Passage struct {
	Title    string
	Headings []string
	Text     string

	document string // URI
	start    int    // of the text in its document
}

// A candidate is a question that was made.
type candidate struct {
	eval.Case
	kind  string
	score float64 // greater is better
	words map[string]bool
}

// Make reads the documents, each of which comes with its chunks, and makes a set of them:
// questions about as many documents as there are, of many kinds, no two alike. The same
// documents give the same set, where no Writer is asked. It may be smaller than was asked
// for, and then has fewer unanswerable questions, too; documents that give no question at
// all give an empty one. The documents are read twice.
func Make(ctx context.Context, entries iter.Seq2[store.Entry, error], opts Options) ([]eval.Case, error) {
	opts.Questions = cmp.Or(opts.Questions, 50)
	switch {
	case opts.Unanswerable == 0:
		opts.Unanswerable = 0.2
	case opts.Unanswerable < 0:
		opts.Unanswerable = 0
	}
	g := newGathering(opts)
	for e, err := range entries {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		g.read(e)
	}
	lacking, err := g.lacking(ctx, entries, int(opts.Unanswerable*float64(opts.Questions)+0.5))
	if err != nil {
		return nil, err
	}
	var made []candidate
	if opts.Writer != nil {
		made, err = g.write(ctx, opts.Writer, opts.Questions-len(lacking))
	} else {
		made = choose(g.candidates, opts.Questions-len(lacking))
	}
	if err != nil {
		return nil, err
	}
	// Where fewer are found than are asked for, the share stays what it is.
	share := opts.Unanswerable / (1 - opts.Unanswerable)
	lacking = lacking[:min(len(lacking), int(share*float64(len(made))+0.5))]
	cases := make([]eval.Case, 0, len(made)+len(lacking))
	for _, c := range append(made, lacking...) {
		for i := range c.Gold {
			c.Gold[i].Document = g.shortName(c.Gold[i].Document)
		}
		c.ID = fmt.Sprintf("q%03d", len(cases)+1)
		cases = append(cases, c.Case)
	}
	return cases, nil
}

// A gathering is what is kept of the documents while they are read: the best questions of
// each, or passages to write from, and the words that occur.
type gathering struct {
	opts       Options
	candidates [][]candidate // by document
	passages   [][]Passage   // by document; where a Writer is asked
	names      []name        // subjects of statements, for what is asked in vain
	seen       map[string]bool
	capital    map[string]int // words, in small letters, by how often they have a capital one
	small      map[string]int // and how often not
	bases      map[string]int // documents by the last part of their URI
}

func newGathering(opts Options) *gathering {
	return &gathering{opts: opts, seen: map[string]bool{}, capital: map[string]int{}, small: map[string]int{}, bases: map[string]int{}}
}

// perDocument is how many questions of a document are kept to choose from.
const perDocument = 24

// read takes what a document is good for.
func (g *gathering) read(e store.Entry) {
	d := e.Document
	g.bases[path.Base(d.URI)]++
	g.note(d.Text)
	var made []candidate
	var passages []Passage
	for _, c := range e.Chunks {
		if c.Kind == assay.ChunkSection || c.Start < 0 || c.End > len(d.Text) || c.Start >= c.End {
			continue
		}
		p := Passage{Title: d.Title, Headings: c.Headings, Text: d.Text[c.Start:c.End], document: d.URI, start: c.Start}
		if g.opts.Writer != nil {
			passages = append(passages, p)
		}
		if c.Kind == assay.ChunkProse {
			made = append(made, g.ask(p)...)
			made = append(made, g.askHeading(p)...)
		}
	}
	slices.SortStableFunc(made, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	if made = made[:min(len(made), perDocument)]; len(made) > 0 {
		g.candidates = append(g.candidates, made)
	}
	if len(passages) > 0 {
		g.passages = append(g.passages, passages)
	}
}

// choose takes questions from documents in turn, of kinds that were not taken as often, so
// that no document and no kind crowds out the others.
func choose(documents [][]candidate, n int) []candidate {
	var chosen []candidate
	kinds := map[string]int{}
	left := make([][]candidate, len(documents))
	for i := range documents {
		left[i] = slices.Clone(documents[i])
	}
	for took := true; took && len(chosen) < n; {
		took = false
		for _, i := range spread(len(left), n-len(chosen)) {
			if len(chosen) == n {
				break
			}
			for len(left[i]) > 0 {
				at := best(left[i], kinds)
				c := left[i][at]
				left[i] = slices.Delete(left[i], at, at+1)
				if alike(c, chosen) {
					continue
				}
				chosen = append(chosen, c)
				kinds[c.kind]++
				took = true
				break
			}
		}
	}
	slices.SortStableFunc(chosen, func(a, b candidate) int {
		return cmp.Or(strings.Compare(a.Gold[0].Document, b.Gold[0].Document), cmp.Compare(a.Gold[0].Start, b.Gold[0].Start))
	})
	return chosen
}

// spread returns the places of n documents of so many, evenly apart, and then of the
// others.
func spread(documents, n int) []int {
	var order []int
	taken := make([]bool, documents)
	for i := range min(n, documents) {
		at := i * documents / min(n, documents)
		order, taken[at] = append(order, at), true
	}
	for at := range documents {
		if !taken[at] {
			order = append(order, at)
		}
	}
	return order
}

// tired is how much a kind loses for each question of it that was chosen.
const tired = 0.15

func best(of []candidate, kinds map[string]int) int {
	at := 0
	worth := func(c candidate) float64 { return c.score - tired*float64(kinds[c.kind]) }
	for i, c := range of {
		if worth(c) > worth(of[at]) {
			at = i
		}
	}
	return at
}

// alike reports whether a question is near to one of others: from the same words, or with
// most of its own.
func alike(c candidate, others []candidate) bool {
	return slices.ContainsFunc(others, func(o candidate) bool {
		if len(c.Gold) > 0 && len(o.Gold) > 0 && c.Gold[0].Document == o.Gold[0].Document && c.Gold[0].Start == o.Gold[0].Start {
			return true
		}
		both := 0
		for w := range c.words {
			if o.words[w] {
				both++
			}
		}
		return 3*both >= 2*max(len(c.words), 1)
	})
}

// shortName is the end of a document's URI that no other document has: its last part, where
// that will do.
func (g *gathering) shortName(uri string) string {
	if base := path.Base(uri); g.bases[base] == 1 && !strings.Contains(uri, "://") {
		return base
	}
	return uri
}
