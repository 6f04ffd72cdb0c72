package strategy

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/retrieve"
	"github.com/assay-rag/assay/role"
)

// numberEvidence numbers the accepted hits of the sub-questions and returns, for each sub-question,
// the numbers of its evidence. A hit gets the number of another if it is the same, lies in it, as a
// passage in its section, or is a near-duplicate of it.
//
// If the number of passages is fixed, the sub-questions take turns until it is reached: each with
// its best accepted hit, each with its second, and so on. The best of the other hits fill remaining
// places.
func (e Env) numberEvidence(found []subQuestion) (evidence []assay.Evidence, parts []role.Part) {
	m := newEvidenceBuilder(found, e.Limits.Passages)
	if hit, ok := e.onlyHit(found); ok {
		m.accepted[0] = []assay.Hit{hit}
	}
	if e.Limits.Passages == 0 {
		for i := range found {
			for k := 0; k < len(m.accepted[i]) && len(m.parts[i].Evidence) < e.Limits.Keep; k++ {
				m.add(i, m.accepted[i][k])
			}
		}
		return m.evidence, m.parts
	}
	for k, more := 0, true; more && len(m.evidence) < e.Limits.Passages; k++ {
		more = false
		for i, hits := range m.accepted {
			if k < len(hits) && len(m.evidence) < e.Limits.Passages {
				m.add(i, hits[k])
				more = true
			}
		}
	}
	for _, h := range m.others(found) {
		if len(m.evidence) == e.Limits.Passages {
			break
		}
		m.add(h.part, h.Hit)
	}
	return m.evidence, m.parts
}

// evidenceBuilder collects and numbers evidence.
type evidenceBuilder struct {
	accepted [][]assay.Hit // by sub-question, best first
	all      []assay.Hit   // all accepted hits
	deduper  retrieve.Deduper
	evidence []assay.Evidence
	parts    []role.Part
}

func newEvidenceBuilder(found []subQuestion, passages int) *evidenceBuilder {
	m := &evidenceBuilder{}
	for _, sq := range found {
		hits := sq.accepted(len(sq.hits))
		if sq.hopHits != nil && passages > 0 {
			hits = sq.hopHits
		}
		m.accepted, m.all = append(m.accepted, hits), append(m.all, hits...)
		m.parts = append(m.parts, role.Part{Question: sq.question, Terms: sq.terms, Evidence: []int{}})
	}
	return m
}

// add adds a hit to the evidence of a sub-question.
func (m *evidenceBuilder) add(part int, h assay.Hit) {
	h = widest(h, m.all)
	i, known := m.deduper.Add(h)
	if !known {
		m.evidence = append(m.evidence, assay.Evidence{Number: i + 1, Hit: h})
	}
	if p := &m.parts[part]; !slices.Contains(p.Evidence, i+1) {
		p.Evidence = append(p.Evidence, i+1)
	}
}

// A foundHit is a hit with the index of its sub-question.
type foundHit struct {
	assay.Hit
	part  int
	place int // best rank in any search, from 0
}

// others returns the hits that no sub-question accepted, in the order in which searches ranked
// them. That order accounts for links from one hit to another; the relevance of a single hit does
// not.
func (m *evidenceBuilder) others(found []subQuestion) []foundHit {
	known := map[string]bool{}
	for _, h := range m.all {
		known[h.Chunk.ID] = true
	}
	var others []foundHit
	for i, sq := range found {
		for _, h := range sq.hits {
			if !known[h.Chunk.ID] {
				known[h.Chunk.ID] = true
				others = append(others, foundHit{h, i, sq.bestRank[h.Chunk.ID]})
			}
		}
	}
	hop := func(h foundHit) int { // a hop has already handed on its best hits, so the rest come last
		if found[h.part].hopHits != nil {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(others, func(a, b foundHit) int { return cmp.Or(hop(a)-hop(b), cmp.Compare(a.place, b.place)) })
	return others
}

// widest returns the longest hit that contains h, or h itself.
func widest(h assay.Hit, all []assay.Hit) assay.Hit {
	best := h
	for _, o := range all {
		a, b := h.Chunk, o.Chunk
		holds := a.Document == b.Document && a.Version == b.Version && b.Start <= a.Start && a.End <= b.End
		if holds && b.End-b.Start > best.Chunk.End-best.Chunk.Start {
			best = o
		}
	}
	return best
}

// assemble selects the excerpts of the evidence that a generator reads, within
// Limits.ContextTokens.
func (e Env) assemble(evidence []assay.Evidence, parts []role.Part) []role.Excerpt {
	hits := make([]assay.Hit, len(evidence))
	for i, ev := range evidence {
		hits[i] = ev.Hit
	}
	var terms []assay.Term
	for _, p := range parts {
		for _, t := range p.Terms {
			if !slices.ContainsFunc(terms, func(o assay.Term) bool { return o.Stem == t.Stem }) {
				terms = append(terms, t)
			}
		}
	}
	excerpts, _ := retrieve.Assemble(hits, terms, e.Limits.ContextTokens) // the full hits remain evidence
	context := make([]role.Excerpt, len(excerpts))
	for i, x := range excerpts {
		context[i].Evidence = evidence[x.Hit].Number
		for _, s := range x.Spans {
			context[i].Spans = append(context[i].Spans, role.Span(s))
		}
	}
	return context
}

// sayCut notes which of the evidence does not fit into Limits.ContextTokens.
func (e Env) sayCut(in role.GenerateInput, notes *noteList) {
	whole, read := 0, 0
	for _, ev := range in.Evidence {
		whole += len(ev.Hit.Text)
	}
	for _, x := range in.Context {
		for _, sp := range x.Spans {
			read += sp.End - sp.Start
		}
	}
	switch left := len(in.Evidence) - len(in.Context); {
	case len(in.Context) == 0: // then all of it is read
	case left > 0:
		notes.say(assay.NoteLeftOut, fmt.Sprintf("of %s to answer from, %d are left out: more than %d tokens of them are not read",
			count(len(in.Evidence), "passage", "passages"), left, e.Limits.ContextTokens))
	case read < whole:
		notes.say(assay.NoteLeftOut, fmt.Sprintf("%s shortened: more than %d tokens of the evidence are not read",
			count(len(in.Evidence), "passage to answer from is", "passages to answer from are"), e.Limits.ContextTokens))
	}
}
