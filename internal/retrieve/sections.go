package retrieve

import (
	"context"
	"fmt"

	"github.com/assay-rag/assay"
)

// sectionTokens is the most tokens of a section that replaces its passages, so that several
// sections fit into a prompt. A section replaces its passages if at least two of them are hits that
// together cover at least half of it.
const sectionTokens = 1000

// collapse replaces the hits of one section by the section. The section takes the rank of the best
// of them and the best of each of their scores, and also absorbs lower-ranked candidates of the
// section. A section is a chunk, so citations of it work as for any other hit.
func (s *search) collapse(ctx context.Context) error {
	children := map[string][]*candidate{} // section → its hits
	var ids []string
	for _, c := range s.found[:min(len(s.found), s.query.Limit)] {
		p := c.hit.Chunk.Parent
		if p == "" {
			continue
		}
		children[p] = append(children[p], c)
		if len(children[p]) == 2 {
			ids = append(ids, p)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	passages, err := s.Content.Passages(ctx, ids)
	if err != nil {
		return fmt.Errorf("read the sections of the passages found: %w", err)
	}
	sections := map[string]*candidate{}
	for i, id := range ids {
		if p := passages[i]; p.Chunk.Tokens <= sectionTokens && covers(children[id], p.Chunk) {
			sections[id] = nil
			for _, c := range children[id] {
				c.section = &passages[i]
			}
		}
	}
	var list []*candidate
	for _, c := range s.found {
		section, collapses := sections[c.hit.Chunk.Parent]
		switch {
		case !collapses:
			list = append(list, c)
		case section == nil:
			section = c.widened()
			sections[c.hit.Chunk.Parent] = section
			list = append(list, section)
		default:
			section.absorb(c)
		}
	}
	s.found = list
	return nil
}

// covers reports whether chunks cover at least half of a section. The chunks may be in any order
// and may overlap.
func covers(list []*candidate, section assay.Chunk) bool {
	held := 0
	for i, c := range list {
		held += c.hit.Chunk.End - c.hit.Chunk.Start
		for _, o := range list[:i] {
			held -= max(0, min(c.hit.Chunk.End, o.hit.Chunk.End)-max(c.hit.Chunk.Start, o.hit.Chunk.Start))
		}
	}
	return 2*held >= section.End-section.Start
}

// widened returns the candidate for c's section.
func (c *candidate) widened() *candidate {
	w := *c
	w.hit = hitOf(*c.section)
	w.hit.Scores, w.hit.Matched = c.hit.Scores, c.hit.Matched
	w.hit.Children = []assay.Chunk{c.hit.Chunk}
	return &w
}

// absorb adds another passage of its section to w.
func (w *candidate) absorb(c *candidate) {
	w.hit.Children = append(w.hit.Children, c.hit.Chunk)
	mine, its := &w.hit.Scores, c.hit.Scores
	mine.BM25, mine.Vector, mine.Graph = better(mine.BM25, its.BM25), better(mine.Vector, its.Vector), better(mine.Graph, its.Graph)
	mine.Fused, mine.Rerank = better(mine.Fused, its.Fused), better(mine.Rerank, its.Rerank)
	mine.Relevance = max(mine.Relevance, its.Relevance)
	w.hit.Matched = union(w.hit.Matched, c.hit.Matched)
}

func better(a, b *float64) *float64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// union returns the distinct elements of a, followed by those that only b has.
func union(a, b []string) []string {
	held := map[string]bool{}
	var all []string
	for _, x := range append(append([]string{}, a...), b...) {
		if !held[x] {
			held[x] = true
			all = append(all, x)
		}
	}
	return all
}
