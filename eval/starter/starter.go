// Package starter makes a first set of test questions from a collection of documents, for people to
// correct. Each question has the words that answer it, and some questions have no answer in the
// documents. [Make] turns sentences into questions by their grammar, without a model. With a
// [Writer], a language model writes the questions from passages. Review the set before you measure
// anything with it.
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
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/store"
)

// Options configure the set that Make returns. Zero fields select the defaults.
type Options struct {
	Questions    int     // in all; 50
	Unanswerable float64 // share of questions without an answer in the documents, in [0, 1); 0.2; below 0: none
	Writer       Writer  // writes questions for passages; nil: by grammar
}

// A Writer writes a question that a passage answers. Its calls are sequential.
type Writer interface {
	// Write returns a question with its answer and the words of the passage that give it. It
	// reports false if the passage suits no question. The error is the end of ctx or a failure of
	// the service.
	Write(ctx context.Context, p Passage) (q Written, ok bool, err error)
}

// Written is the result of a Writer.
type Written struct {
	Question string
	Answer   string
	Quote    string // verbatim from the passage
}

// A Passage is the text that a question is written from.
type Passage struct {
	Title    string
	Headings []string
	Text     string

	document string // URI
	start    int    // of the text in its document
}

// A candidate is a generated question with its score.
type candidate struct {
	testset.Case
	kind  string
	score float64 // greater is better
	words map[string]bool
}

// Make reads the documents, each with its chunks, and returns a set of questions. The questions
// cover as many documents and kinds as possible, and no two are alike. Without a Writer, the same
// documents give the same set. The set may be smaller than requested, and then has proportionally
// fewer unanswerable questions. Documents that yield no question give an empty set. Make reads the
// documents twice.
func Make(ctx context.Context, entries iter.Seq2[store.Entry, error], opts Options) ([]testset.Case, error) {
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
	// If too few questions are found, the share of unanswerable ones stays the same.
	share := opts.Unanswerable / (1 - opts.Unanswerable)
	lacking = lacking[:min(len(lacking), int(share*float64(len(made))+0.5))]
	cases := make([]testset.Case, 0, len(made)+len(lacking))
	for _, c := range append(made, lacking...) {
		for i := range c.Gold {
			c.Gold[i].Document = g.shortName(c.Gold[i].Document)
		}
		c.ID = fmt.Sprintf("q%03d", len(cases)+1)
		cases = append(cases, c.Case)
	}
	return cases, nil
}

// A gathering collects the best questions of each document, or passages to write from, and the
// words that occur, while the documents are read.
type gathering struct {
	opts       Options
	candidates [][]candidate // by document
	passages   [][]Passage   // by document; only with a Writer
	names      []name        // subjects of statements, for unanswerable questions
	seen       map[string]bool
	capital    map[string]int // lower-cased words, by how often they are capitalized
	small      map[string]int // and by how often they are not
	bases      map[string]int // documents by the last part of their URI
}

func newGathering(opts Options) *gathering {
	return &gathering{opts: opts, seen: map[string]bool{}, capital: map[string]int{}, small: map[string]int{}, bases: map[string]int{}}
}

// perDocument is the largest number of candidates kept for a document.
const perDocument = 24

// read collects the candidates or passages of a document.
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

// choose takes questions from documents in turn and prefers the kinds chosen least often, so that
// no document or kind dominates the set.
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

// spread returns the indexes of all documents: first n that are evenly spaced, then the others.
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

// tired is the score that a kind loses for each of its questions chosen so far.
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

// alike reports whether a question resembles one of the others: it comes from the same sentence, or
// shares most of its words.
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

// shortName returns the last part of a document's URI if no other document has it, else the whole
// URI.
func (g *gathering) shortName(uri string) string {
	if base := path.Base(uri); g.bases[base] == 1 && !strings.Contains(uri, "://") {
		return base
	}
	return uri
}
