package local

import (
	"cmp"
	"context"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/layout"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// Generator quotes the likeliest answer to each part of a question: the sentence with the
// answer and the list that it announces, an item with the lead of its list, a definition with
// its term, or a row. It quotes a second sentence if that makes an answer more likely. Every
// statement is a verbatim part of the evidence that it cites.
type Generator struct {
	Reader llm.Reader // nil: the sentence with most of the question's words is quoted
}

// Generate implements role.Generator. Sub-answers are joined without repetition, and the parts of
// the question without one are answered after them. It returns an error only when ctx has ended.
func (g Generator) Generate(ctx context.Context, _ role.Caller, in role.GenerateInput) (role.Draft, error) {
	draft, said := joined(in.SubAnswers)
	for _, part := range in.Parts {
		if slices.ContainsFunc(in.SubAnswers, func(sub role.SubAnswer) bool { return sub.Question == part.Question }) {
			continue
		}
		quoted, err := g.answer(ctx, part, in.Evidence)
		if err == nil {
			err = g.decide(ctx, part.Question, in.Evidence, quoted)
		}
		if ctx.Err() != nil {
			return role.Draft{}, ctx.Err()
		}
		if err != nil {
			draft.Notes = append(draft.Notes, "generator: "+err.Error()+"; passages were read by word overlap only")
		}
		for _, st := range quoted {
			key := strings.ToLower(oneLine(st.Text))
			if said[key] {
				continue
			}
			said[key] = true
			if columns := st.columns; columns != nil && (draft.Columns == nil || slices.Equal(draft.Columns, columns)) {
				draft.Columns, st.Cells = columns, layout.Cells(st.Text) // a draft has one table
			}
			draft.Statements = append(draft.Statements, st.Statement)
		}
	}
	if len(draft.Statements) > 0 && draft.Statements[0].Item {
		draft.Shape = role.List
	}
	return draft, nil
}

// joined returns the draft that consists of sub-answers, in order, and the keys of its statements.
// Repeated statements are left out. A draft has one table, so the rows of others are sentences.
func joined(subs []role.SubAnswer) (role.Draft, map[string]bool) {
	draft, said := role.Draft{Statements: []role.Statement{}}, map[string]bool{}
	for _, sub := range subs {
		if draft.Columns == nil {
			draft.Columns = sub.Columns
		}
		for _, st := range sub.Statements {
			key := strings.ToLower(oneLine(st.Text))
			if said[key] {
				continue
			}
			said[key] = true
			if !slices.Equal(sub.Columns, draft.Columns) {
				st.Cells = nil
			}
			draft.Statements = append(draft.Statements, st)
		}
	}
	return draft, said
}

// A quotation is a statement in the words of its evidence.
type quotation struct {
	role.Statement
	columns []string // of its table, if it is a row
}

// A spot is a place in a passage where a question may be answered.
type spot struct {
	passage    int
	start, end int
	score      float64
}

// passages are the pieces of evidence for a question.
type passages struct {
	hits    []assay.Hit
	numbers []int // of the evidence
	layouts []layout.Layout
}

// passagesOf returns the evidence of these numbers.
func passagesOf(evidence []assay.Evidence, numbers []int) passages {
	var p passages
	for _, n := range numbers {
		if n >= 1 && n <= len(evidence) {
			p.add(evidence[n-1].Hit, n)
		}
	}
	return p
}

// add appends a piece of evidence.
func (p *passages) add(h assay.Hit, number int) {
	p.hits, p.numbers, p.layouts = append(p.hits, h), append(p.numbers, number), append(p.layouts, layout.Of(h.Text, h.Chunk.Kind))
}

// quotes returns the quotation of a spot.
func (p passages) quotes(s spot) []layout.Quote {
	return p.layouts[s.passage].Around(s.start, s.end, false)
}

// block returns the block of a spot.
func (p passages) block(s spot) layout.Block {
	l := p.layouts[s.passage]
	return l.Blocks[l.At(s.start)]
}

// answer quotes the answer to a part of a question. If the reader fails, answer returns its
// error with the quotations that were found without it.
func (g Generator) answer(ctx context.Context, part role.Part, evidence []assay.Evidence) ([]quotation, error) {
	p := passagesOf(evidence, part.Evidence)
	readings, err := ReadHits(ctx, g.Reader, part.Question, p.hits)
	q := read(part.Question, part.Terms)
	spots := p.byReading(readings)
	if readings == nil {
		spots = p.byWords(q)
	}
	if i := p.section(part.Question); i >= 0 {
		return p.quotations(i, p.gist(i, spots)), err
	}
	if len(spots) == 0 {
		return nil, err
	}
	if readings != nil && err == nil {
		spots, err = g.reread(ctx, q, p, spots)
	}
	quotes := p.answering(q, spots)
	out := p.quotations(spots[0].passage, quotes)
	if len(quotes) != 1 || p.block(spots[0]).Kind != layout.Paragraph {
		return out, err
	}
	var second *spot
	if readings == nil {
		second = p.secondByWords(q, spots)
	} else if second, err = g.second(ctx, part.Question, p, spots, quotes[0]); err != nil {
		return out, err
	}
	if second == nil {
		return out, err
	}
	more := p.quotations(second.passage, []layout.Quote{{Start: second.start, End: second.end}})
	if second.passage == spots[0].passage && second.start < quotes[0].Start {
		return append(more, out...), err
	}
	return append(out, more...), err
}

// decides is the least probability that quotations support or contradict a yes-no question
// for a "Yes" or "No".
const decides = 0.8

// decide sets Decides of the first quotation if the quotations together answer a yes-no
// question.
func (g Generator) decide(ctx context.Context, question string, evidence []assay.Evidence, quoted []quotation) error {
	claim := asClaim(question)
	if claim == "" || len(quoted) == 0 || g.Reader == nil {
		return nil
	}
	var texts []string
	for _, q := range quoted {
		texts = append(texts, readable(q.Text, q.columns))
	}
	h := evidence[quoted[0].Evidence[0]-1].Hit
	if foreign(g.Reader, []assay.Hit{h}) {
		return nil
	}
	said, err := g.Reader.Entail(ctx, []llm.ClaimPair{{Claim: claim, Passage: llm.Excerpt{Heading: h.Under(), Text: strings.Join(texts, "\n")}}})
	switch {
	case err != nil:
		return err
	case len(said) != 1:
		return assay.ErrUnavailable
	case said[0].Supported >= decides:
		quoted[0].Decides = role.Yes
	case said[0].Contradicted >= decides:
		quoted[0].Decides = role.No
	}
	return nil
}

// alsoAnswers is the least share of the best spot's score with which another spot counts as an
// answer.
const alsoAnswers = 0.3

// The spots that are read again: at most maxReread, with at least leastReread of the best
// spot's score.
const (
	maxReread   = 4
	leastReread = 0.1
)

// reread reads the quotations of the best spots and puts the spot with the best quotation
// first. Words may look like an answer only because of the text around them.
func (g Generator) reread(ctx context.Context, q question, p passages, spots []spot) ([]spot, error) {
	n := 1
	for n < min(len(spots), maxReread) && spots[n].score >= leastReread*spots[0].score {
		n++
	}
	if n == 1 {
		return spots, nil
	}
	texts := make([]llm.Excerpt, n)
	for i := range texts {
		at := spots[i].passage
		var quoted []string
		for _, quote := range p.answering(q, first(spots, i)) {
			quoted = append(quoted, readable(p.layouts[at].Shown(quote), quote.Heads))
		}
		texts[i] = llm.Excerpt{Heading: p.hits[at].Under(), Text: strings.Join(quoted, "\n")}
	}
	readings, err := readTexts(ctx, g.Reader, q.text, texts)
	if err != nil {
		return spots, err
	}
	best := 0
	for i, r := range readings {
		if p.block(spots[i]).Kind == layout.Code {
			continue // by itself it looks like an answer to much
		}
		if r.Answerable*spots[i].score > readings[best].Answerable*spots[best].score {
			best = i
		}
	}
	return first(spots, best), nil
}

// first returns spots with the spot at i moved to the front.
func first(spots []spot, i int) []spot {
	return slices.Concat(spots[i:i+1], spots[:i], spots[i+1:])
}

// readable returns the text of a quotation for the reader: a row with heads has each cell
// behind its head.
func readable(text string, heads []string) string {
	if heads == nil {
		return text
	}
	return layout.Labelled(heads, layout.Cells(text))
}

// answering quotes the best of the spots. It quotes the whole list or table if the question
// asks for all of it, and the whole list if another item answers as well. Of a table or
// definition list it adds the rows or entries that answer as well.
func (p passages) answering(q question, spots []spot) []layout.Quote {
	best := spots[0]
	l, kind := p.layouts[best.passage], p.block(best).Kind
	if lead, members := l.Whole(best.start); p.asksForAll(q, best.passage, lead, members) {
		return layout.Distinct(append(lead, members...))
	}
	if parent, ok := l.Announcing(best.start); ok && !p.tellsApart(q, best, parent) {
		return l.Around(parent, parent+1, false)
	}
	out := l.Around(best.start, best.end, false)
	for _, s := range spots[1:] {
		if s.score < alsoAnswers*best.score || s.passage != best.passage || !l.Together(best.start, s.start) {
			continue
		}
		if kind != layout.Table && kind != layout.Entry {
			return l.Around(best.start, best.end, true)
		}
		out = append(out, p.quotes(s)...)
	}
	return layout.Distinct(out)
}

// maxMembers bounds the lists and tables that are quoted as a whole because a question asks for
// all members.
const maxMembers = 20

// minAsked is the least share of a question's words that the headings, the lead and the heads
// of a list must hold for the question to ask for all of it.
const minAsked = 0.3

// asksForAll reports whether a question asks for all members of a list or table: its words are
// in the headings, the lead and the heads, and no member has further ones.
func (p passages) asksForAll(q question, passage int, lead, members []layout.Quote) bool {
	if len(members) < 2 || len(members) > maxMembers {
		return false
	}
	h, l := p.hits[passage], p.layouts[passage]
	over := append(slices.Clone(h.Chunk.Headings), members[0].Heads...)
	for _, m := range lead {
		over = append(over, l.Shown(m))
	}
	held := stems(h.Language, over...)
	if q.coverage(held) < minAsked {
		return false
	}
	maps.Copy(held, stems(h.Language, h.Title))
	known := q.coverage(held)
	for _, m := range members {
		with := stems(h.Language, l.Shown(m))
		maps.Copy(with, held)
		if q.coverage(with) > known {
			return false
		}
	}
	return true
}

// tellsApart reports whether a question has a word of the item that a spot is in which the
// item that announces it, begins at parent, and what stands over both do not have.
func (p passages) tellsApart(q question, s spot, parent int) bool {
	h, l := p.hits[s.passage], p.layouts[s.passage]
	over := append(slices.Clone(h.Chunk.Headings), h.Title)
	for _, m := range l.Around(parent, parent+1, false) {
		if m.End <= p.block(s).Start {
			over = append(over, l.Shown(m))
		}
	}
	held := stems(h.Language, over...)
	known := q.coverage(held)
	b := p.block(s)
	maps.Copy(held, stems(h.Language, h.Text[b.Start:b.End]))
	return q.coverage(held) > known
}

// byReading returns the spots that the reader finds, likeliest first. The score of a spot is
// the probability that its passage answers, times the relevance of the passage, times the
// spot's share of the scores in the passage. Scores of spots are comparable only within a
// passage.
func (p passages) byReading(readings []llm.Reading) []spot {
	var out []spot
	for i, r := range readings {
		all := 0.0
		for _, s := range r.Spans {
			all += s.Score
		}
		weight := r.Answerable * probability(p.hits[i].Scores.Relevance) * prior(p.hits[i]) / max(all, math.SmallestNonzeroFloat64)
		for _, s := range r.Spans {
			at := spot{i, s.Start, s.End, weight * s.Score}
			if p.codeBesideProse(at) {
				at.score *= ofCode
			}
			out = append(out, at)
		}
	}
	return p.ordered(out)
}

// ofCode is what the score of a spot in code is multiplied with where its passage has prose,
// too. Code holds the words of a question more often than it answers it, and readers were not
// trained on code. Chosen on questions about packages of the Go library.
const ofCode = 0.3

func (p passages) codeBesideProse(s spot) bool {
	prose := func(b layout.Block) bool { return b.Kind == layout.Paragraph }
	return p.block(s).Kind == layout.Code && slices.ContainsFunc(p.layouts[s.passage].Blocks, prose)
}

// ordered merges the spots with the same quotation, adds up their scores, and returns the best
// first.
func (p passages) ordered(spots []spot) []spot {
	type place struct{ passage, start int }
	at := map[place]int{}
	var out []spot
	for _, s := range spots {
		quotes := p.quotes(s)
		if len(quotes) == 0 || !(s.score > 0) {
			continue
		}
		key := place{s.passage, quotes[len(quotes)-1].Start}
		if i, ok := at[key]; ok {
			out[i].score += s.score
			continue
		}
		at[key] = len(out)
		out = append(out, s)
	}
	slices.SortStableFunc(out, func(a, b spot) int { return cmp.Compare(b.score, a.score) })
	return out
}

// byWords returns the sentences with words of the question, scored by their share of these
// words and half the share of their headings.
func (p passages) byWords(q question) []spot {
	var out []spot
	for i, h := range p.hits {
		above := q.coverage(stems(h.Language, append(slices.Clone(h.Chunk.Headings), h.Title)...))
		for _, b := range p.layouts[i].Blocks {
			isProse := b.Kind != layout.Code && b.Kind != layout.Label
			if !isProse && len(p.layouts[i].Blocks) > 1 {
				continue
			}
			for _, s := range p.layouts[i].Sentences(b) {
				if own := q.coverage(stems(h.Language, h.Text[s.Start:s.End])); own > 0 {
					out = append(out, spot{i, s.Start, s.End, (own + above/2) * h.Scores.Relevance * prior(h)})
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b spot) int { return cmp.Compare(b.score, a.score) })
	return out
}

// minGain is the least share of the question's words that a second sentence must add if there
// is no reader.
const minGain = 0.2

// secondByWords returns the sentence that adds most of the question's words to the first, or
// nil if none adds enough.
func (p passages) secondByWords(q question, spots []spot) (second *spot) {
	held := func(s spot) map[string]bool {
		h := p.hits[s.passage]
		return stems(h.Language, h.Text[s.start:s.end])
	}
	first := held(spots[0])
	least := q.coverage(first) + minGain
	for _, s := range spots[1:] {
		both := held(s)
		maps.Copy(both, first)
		if share := q.coverage(both); share >= least {
			least, second = share, &s
		}
	}
	return second
}

// aboutChanges matches the names of documents about changes: release notes, change logs, news.
var aboutChanges = lazyregexp.New(`(?i)\b(?:change ?logs?|changes|release(?: ?notes?|s)?|news|blog|history|what'?s ?new|upgrading)\b`)

// changesUnder matches the headings of sections about changes.
var changesUnder = lazyregexp.New(`(?i)\b(?:change ?logs?|changes (?:in|since|from|between)|release notes?|what'?s ?new|new in|version history|upgrading from)\b`)

// ofChanges is the weight of hits about changes, so that the page about a thing comes before
// its release notes if both answer.
const ofChanges = 0.7

// prior returns the weight of a hit by the kind of its text, which its title, folder, file name
// and headings may show.
func prior(h assay.Hit) float64 {
	dir, file := path.Split(h.URI)
	name := strings.NewReplacer("-", " ", "_", " ", ".", " ").Replace(path.Base(dir) + " " + file + " " + h.Title)
	if aboutChanges.MatchString(name) || slices.ContainsFunc(h.Chunk.Headings, changesUnder.MatchString) {
		return ofChanges
	}
	return 1
}

// raises is the least increase of the probability of an answer that a second sentence must
// bring.
const raises = 0.1

// second returns the sentence that, together with the first, increases the probability of an
// answer most, or nil if none increases it enough. It is a neighbour of the first sentence or
// holds another answer.
func (g Generator) second(ctx context.Context, question string, p passages, spots []spot, first layout.Quote) (second *spot, err error) {
	at := spots[0].passage
	said := p.layouts[at].Shown(first)
	texts := []llm.Excerpt{{Heading: p.hits[at].Under(), Text: said}}
	candidates := p.beside(spots, first)
	for _, s := range candidates {
		text := p.layouts[s.passage].Shown(layout.Quote{Start: s.start, End: s.end})
		if s.passage == at && s.start < first.Start {
			text = text + " " + said
		} else {
			text = said + " " + text
		}
		texts = append(texts, llm.Excerpt{Heading: texts[0].Heading, Text: text})
	}
	readings, err := readTexts(ctx, g.Reader, question, texts)
	if err != nil {
		return nil, err
	}
	best := readings[0].Answerable + raises
	for i, s := range candidates {
		if answers := readings[i+1].Answerable; answers >= best {
			best, second = answers, &s
		}
	}
	return second, nil
}

// beside lists the candidates for a second sentence: the neighbours in the same paragraph, and
// the sentence with the next likeliest answer.
func (p passages) beside(spots []spot, first layout.Quote) []spot {
	at := spots[0].passage
	var out []spot
	for _, s := range p.layouts[at].Sentences(p.block(spots[0])) {
		if s.End <= first.Start {
			out = []spot{{passage: at, start: s.Start, end: s.End}} // the last before it
		} else if s.Start >= first.End {
			out = append(out, spot{passage: at, start: s.Start, end: s.End})
			break
		}
	}
	for _, s := range spots[1:] {
		quotes := p.quotes(s)
		apart := s.passage != at || quotes[0].Start >= first.End || quotes[0].End <= first.Start
		isSentence := len(quotes) == 1 && !quotes[0].Verbatim
		if apart && isSentence && s.score >= alsoAnswers*spots[0].score {
			s.start, s.end = quotes[0].Start, quotes[0].End
			return append(out, s)
		}
	}
	return out
}

// quotations returns quotes from a passage as statements.
func (p passages) quotations(passage int, quotes []layout.Quote) []quotation {
	var out []quotation
	for _, q := range quotes {
		if text := p.layouts[passage].Shown(q); text != "" {
			out = append(out, quotation{role.Statement{Text: text, Evidence: []int{p.numbers[passage]}, Item: q.Item && len(quotes) > 1}, q.Heads})
		}
	}
	return out
}
