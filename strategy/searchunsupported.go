package strategy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// Limits of the search for unsupported claims: claims of a draft, and words of each.
const (
	maxSought = 2
	maxWords  = 24
)

// searchesUnsupported reports whether a strategy searches for the unsupported claims of its draft.
// Strategies that search once by design, use a managed service or have a fixed number of passages
// do not.
func (e Env) searchesUnsupported(strategy string) bool {
	return e.Limits.Passages == 0 && strategy != "static" && strategy != "managed"
}

// searchUnsupported searches for unsupported claims by their own words, if the part of the question
// that they belong to has iterations left, and verifies them against the hits. A claim that these
// support cites them and is marked. It returns w with the claims, and the evidence with the new
// hits.
func (e Env) searchUnsupported(ctx context.Context, s run.Scope, found []subQuestion, parts []role.Part, w checkedDraft, evidence []assay.Evidence, notes *noteList) (checkedDraft, []assay.Evidence, error) {
	var which []int
	var open []checkedClaim
	var of []int // indexes of their sub-questions
	for at, c := range w.checked {
		if c.statement < 0 || c.Failed || c.Verdict != assay.Unsupported || c.row != nil || len(which) == maxSought {
			continue
		}
		i := max(0, slices.IndexFunc(parts, c.restsOn))
		hits, err := e.searchClaim(ctx, s.Sub("claim", at), &found[i], c, evidence)
		if stop := stopOf(err); stop != "" {
			notes.say(assay.NoteLimit, fmt.Sprintf("the run had no budget left to search for a statement that is not supported (%s)", stop))
			w.ended = stop
			break
		}
		if err != nil {
			return w, evidence, err
		}
		if len(hits) == 0 {
			continue
		}
		named := c.Evidence
		c.Evidence = nil
		for _, h := range hits {
			evidence = append(evidence, assay.Evidence{Number: len(evidence) + 1, Hit: h})
			c.Evidence = append(c.Evidence, len(evidence))
		}
		c.Evidence = append(c.Evidence, named...) // these may contradict the new ones
		which, open, of = append(which, at), append(open, c), append(of, i)
	}
	if len(open) == 0 {
		return w, evidence, nil
	}
	passages, err := e.read(ctx, s, evidence)
	if err != nil {
		return w, evidence, err
	}
	w.evidence, w.passages = evidence, passages
	for k, c := range open {
		open[k].cited = cite(c.Claim, cmp.Or(c.standalone, c.Text), evidence, passages).cited
	}
	err = e.judge(ctx, s, open, evidence, passages, notes)
	if stop := stopOf(err); stop != "" {
		notes.say(assay.NoteLimit, fmt.Sprintf("verifier: the run had no budget left to judge what was found for statements that are not supported (%s)", stop))
		w.ended = stop
		return w, evidence, nil
	}
	if err != nil {
		return w, evidence, err
	}
	w.checked = slices.Clone(w.checked)
	for k, at := range which {
		if c := open[k]; c.repairs() {
			c.repaired = true
			w.checked[at] = c
			parts[of[k]].Evidence = append(slices.Clone(parts[of[k]].Evidence), c.Evidence...)
		}
	}
	return w, evidence, nil
}

// searchClaim searches for a claim and returns the best hits that are not yet evidence.
func (e Env) searchClaim(ctx context.Context, s run.Scope, sq *subQuestion, c checkedClaim, evidence []assay.Evidence) ([]assay.Hit, error) {
	q := assay.Query{Text: strings.Join(c.searchWords(), " "), Filter: sq.lastFilter()}
	ended := sq.cutShort() || sq.iterations >= e.Limits.Iterations
	searchable := q.Text != "" && len(q.Text) <= maxQuery && !sq.wasSearched(q.Text, q.Filter)
	if ended || !searchable {
		return nil, nil
	}
	found, err := e.search(ctx, s, q)
	if err != nil {
		return nil, err
	}
	sq.iterations++
	sq.searchKeys = append(sq.searchKeys, searchKeyOf(q.Text, q.Filter))
	sq.ladder.ungraded += sq.addResults(e, q, found)
	sq.searched[len(sq.searched)-1].Grade = cmp.Or(sq.grade.Verdict, assay.Insufficient)
	var hits []assay.Hit
	for _, h := range found.Hits {
		known := slices.ContainsFunc(evidence, func(ev assay.Evidence) bool {
			a, b := h.Chunk, ev.Hit.Chunk
			return a.ID == b.ID || a.Document == b.Document && a.Version == b.Version && a.Start < b.End && b.Start < a.End
		})
		if !known && len(hits) < maxPassages && sharedWords(q.Text, h.Text) >= minBearing {
			hits = append(hits, h)
		}
	}
	return hits, nil
}

// searchWords returns the first words of a claim.
func (c checkedClaim) searchWords() []string {
	words := strings.Fields(visible.Line(cmp.Or(c.standalone, c.Text)))
	return words[:min(len(words), maxWords)]
}

// query returns the search for the evidence that a refused claim should have had: its words, and the
// content words of the question that it lacks.
func (c checkedClaim) query(question string) string {
	words := c.searchWords()
	held := lexical.Content(strings.Join(words, " "))
	for _, w := range lexical.Words(visible.Line(question)) {
		if stems := lexical.Content(w); len(stems) == 1 && !slices.Contains(held, stems[0]) && len(words) < 2*maxWords {
			held, words = append(held, stems[0]), append(words, w)
		}
	}
	return strings.Join(words, " ")
}
