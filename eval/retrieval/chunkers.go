package retrieval

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/internal/chunk"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/parse"
)

// Budgets are the tokens of retrieved text at which chunkers are compared. Chunks of different sizes
// are comparable only by the text that a reader gets.
var Budgets = [...]int{500, 1000, 2000}

// A ChunkerReport compares chunkers on one set.
type ChunkerReport struct {
	Set       string       `json:"set"`
	Documents int          `json:"documents"`
	Queries   int          `json:"queries"`
	Model     string       `json:"model,omitempty"` // of the vectors; empty: text alone
	Rows      []ChunkerRow `json:"rows"`
}

// A ChunkerRow is the result of one chunker. Recall is the share of the relevant passages' text in
// the best chunks that fit into a budget, as a mean over the queries with its 95% bootstrap bounds
// (Smith and Troynikov, "Evaluating Chunking Strategies for Retrieval", Chroma 2024, with a budget
// of tokens in place of a number of chunks).
type ChunkerRow struct {
	Chunker  string          `json:"chunker"`
	Options  string          `json:"options"` // sizes
	Chunks   int             `json:"chunks"`
	Tokens   float64         `json:"tokens"` // of a chunk, mean
	Recall   []ChunkerRecall `json:"recall"` // by Budgets
	PerQuery [][]float64     `json:"-"`      // by Budgets, in the order of the set's queries
}

// A ChunkerRecall is the recall at one budget.
type ChunkerRecall struct {
	Budget int `json:"budget"` // tokens
	stat.Interval
	// Against is the difference from the first row, with its bounds; nil in the first row.
	Against *stat.Interval `json:"against,omitempty"`
}

// Chunkers measures chunkers on the documents of a set. Passages whose IDs differ only after the
// last "#" are sections of one document, in their order; their texts are the labelled passages.
func Chunkers(ctx context.Context, set testset.Set, parts Parts, options []chunk.Options) (ChunkerReport, error) {
	docs, err := wholeDocuments(ctx, set)
	if err != nil {
		return ChunkerReport{}, err
	}
	report := ChunkerReport{Set: set.Name, Documents: len(docs), Queries: len(set.Queries)}
	for _, opts := range options {
		row, err := measureChunker(ctx, set, parts, docs, opts)
		if err != nil {
			return report, fmt.Errorf("%s: %s: %w", set.Name, opts, err)
		}
		if len(report.Rows) > 0 {
			row.compare(report.Rows[0])
		}
		report.Rows = append(report.Rows, row)
	}
	if parts.Embedder != nil {
		report.Model = parts.Embedder.Model()
	}
	return report, nil
}

// A wholeDocument is a document with the places of its labelled passages.
type wholeDocument struct {
	id     string
	parsed parse.Document
	at     map[string][2]int // passage ID → start and end in the text
}

// wholeDocuments joins the passages of each document. If their titles differ, each passage is a
// section under its title.
func wholeDocuments(ctx context.Context, set testset.Set) ([]*wholeDocument, error) {
	var docs []*wholeDocument
	byID := map[string]*wholeDocument{}
	sections := map[string][]testset.Passage{}
	for _, p := range set.Passages {
		id := p.ID
		if i := strings.LastIndexByte(id, '#'); i > 0 {
			id = id[:i]
		}
		if byID[id] == nil {
			byID[id] = &wholeDocument{id: id, at: map[string][2]int{}}
			docs = append(docs, byID[id])
		}
		sections[id] = append(sections[id], p)
	}
	for _, d := range docs {
		if err := d.join(ctx, sections[d.id]); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// join parses the passages as plain text and puts them behind one another.
func (d *wholeDocument) join(ctx context.Context, passages []testset.Passage) error {
	titled := slices.ContainsFunc(passages, func(p testset.Passage) bool { return p.Title != passages[0].Title })
	d.parsed = parse.Document{Type: "text"}
	if !titled {
		d.parsed.Title = passages[0].Title
	}
	for _, p := range passages {
		doc, err := parse.Parse(ctx, parse.Input{Name: "passage.txt", Data: []byte(p.Text)})
		if err != nil {
			return fmt.Errorf("passage %s: %w", p.ID, err)
		}
		if titled && p.Title != "" {
			d.append(p.Title, []parse.Block{{Kind: parse.Heading, End: len(p.Title), Level: 1, Label: p.Title}})
		}
		start := d.append(doc.Text, doc.Blocks)
		d.at[p.ID] = [2]int{start, len(d.parsed.Text)}
	}
	return nil
}

// append adds text with its blocks and returns its start.
func (d *wholeDocument) append(text string, blocks []parse.Block) int {
	if d.parsed.Text != "" {
		d.parsed.Text += "\n\n"
	}
	start := len(d.parsed.Text)
	d.parsed.Text += text
	for _, b := range blocks {
		b.Start, b.End = b.Start+start, b.End+start
		d.parsed.Blocks = append(d.parsed.Blocks, b)
	}
	return start
}

func measureChunker(ctx context.Context, set testset.Set, parts Parts, docs []*wholeDocument, opts chunk.Options) (_ ChunkerRow, err error) {
	row := ChunkerRow{Chunker: cmp.Or(opts.Chunker, chunk.Structure), Options: opts.String()}
	o, err := open(ctx, set, parts, func(e llm.Embedder) (*corpus, error) {
		if e != nil {
			opts.Embed, opts.Model = embedTexts(e), e.Model()
		}
		return chunkCorpus(ctx, set.Name, docs, opts)
	})
	if err != nil {
		return row, err
	}
	defer func() { err = cmp.Or(err, o.Close()) }()
	for _, ch := range o.Content.(*corpus).chunks {
		if ch.Kind != assay.ChunkSection {
			row.Chunks++
			row.Tokens += float64(ch.Tokens)
		}
	}
	row.Tokens /= float64(max(row.Chunks, 1))
	return row, row.measure(ctx, o, set, docs)
}

// embedTexts returns the encoder in the form that chunk.Options takes.
func embedTexts(e llm.Embedder) func(context.Context, []string) ([][]float32, error) {
	return func(ctx context.Context, texts []string) ([][]float32, error) {
		return e.Embed(ctx, llm.Passage, texts)
	}
}

func chunkCorpus(ctx context.Context, set string, docs []*wholeDocument, opts chunk.Options) (*corpus, error) {
	c := &corpus{byChunk: map[string]int{}, byDoc: map[string]int{}}
	for _, d := range docs {
		doc := newDocument(set, d.id, d.parsed.Title, d.parsed.Text)
		chunks, err := chunk.Split(ctx, d.parsed, doc.ID, doc.Version, opts)
		if err != nil {
			return nil, err
		}
		c.add(doc, chunks)
	}
	return c, nil
}

// measure searches for every query and fills in the recalls.
func (row *ChunkerRow) measure(ctx context.Context, o *Opened, set testset.Set, docs []*wholeDocument) error {
	owner := map[string]*wholeDocument{} // by passage ID
	for _, d := range docs {
		for id := range d.at {
			owner[id] = d
		}
	}
	row.PerQuery = make([][]float64, len(Budgets))
	retriever := o.Retriever(Ranking{})
	report := o.Stage(row.Chunker)
	for i, q := range set.Queries {
		found, err := retriever.Retrieve(ctx, assay.Local().Access(), assay.Query{Text: q.Text, Limit: Depth})
		if err != nil {
			return fmt.Errorf("query %s: %w", q.ID, err)
		}
		for b, budget := range Budgets {
			row.PerQuery[b] = append(row.PerQuery[b], recallWithin(found.Hits, budget, q.Relevant, owner))
		}
		report(i+1, len(set.Queries))
	}
	for b, budget := range Budgets {
		row.Recall = append(row.Recall, ChunkerRecall{Budget: budget, Interval: stat.Bootstrap(row.PerQuery[b])})
	}
	return nil
}

// compare sets the differences from another row.
func (row *ChunkerRow) compare(other ChunkerRow) {
	for b := range Budgets {
		differences := make([]float64, len(row.PerQuery[b]))
		for i := range differences {
			differences[i] = row.PerQuery[b][i] - other.PerQuery[b][i]
		}
		in := stat.Bootstrap(differences)
		row.Recall[b].Against = &in
	}
}

// recallWithin returns the share of the relevant passages' bytes that the first hits cover, up to a
// budget of tokens. The hit that exceeds the budget counts with its first tokens.
func recallWithin(hits []assay.Hit, budget int, relevant map[string]int, owner map[string]*wholeDocument) float64 {
	read := map[string][][2]int{} // by document
	for _, h := range hits {
		start, end := h.Chunk.Start, h.Chunk.End
		if h.Chunk.Tokens > budget {
			end = start + (end-start)*budget/h.Chunk.Tokens
		}
		read[h.URI] = append(read[h.URI], [2]int{start, end})
		if budget -= h.Chunk.Tokens; budget <= 0 {
			break
		}
	}
	covered, all := 0, 0
	for id := range relevant {
		d := owner[id]
		span := d.at[id]
		all += span[1] - span[0]
		covered += coveredBytes(read[d.id], span)
	}
	return float64(covered) / float64(max(all, 1))
}

// coveredBytes returns how many bytes of span lie in one of the others.
func coveredBytes(spans [][2]int, span [2]int) int {
	slices.SortFunc(spans, func(a, b [2]int) int { return a[0] - b[0] })
	n, at := 0, span[0]
	for _, s := range spans {
		start, end := max(s[0], at), min(s[1], span[1])
		if start < end {
			n += end - start
			at = end
		}
	}
	return n
}
