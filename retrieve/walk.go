package retrieve

import (
	"context"
	"math"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/graph"
)

// A Walker finds passages that others lead to; a graph.Walker is one.
type Walker interface {
	// Walk returns the passages that the seeds, best first, and what q.Text names
	// lead to, the most first, of those that a search for q by access may find.
	Walk(ctx context.Context, access assay.Access, q assay.Query, seeds []graph.Seed) ([]graph.Score, error)
}

// graphWeight is what the root of a passage's share of the walk's mass weighs
// against all else of its fused score. Mean nDCG@10 of eight shared sets in English
// (300 questions of each at most), by weight: none 0.870, 0.25 0.882, 0.5 0.887,
// 0.7 0.889, 1 0.890; above 0.7 scifact and anthropic-docs begin to lose. The mass
// itself is worse at each weight: 0.885 at its best.
const graphWeight = 0.7

// farWeight is that of a far walk; see graph.Walker.
const farWeight = 1.3

// seeds is how many of the best candidates a walk is offered to start from; how many
// of them it takes is its own affair.
const seeds = 10

// led is how many of the passages that a walk leads to are candidates: those with
// the most mass.
const led = 40

// maxFrom is how many passages a query may have followed beside the best candidates.
const maxFrom = 16

// allNouns are the languages in which not only names are capitalised. What links
// their passages is often a word like any other: of 300 questions of xquad-de a walk
// took nDCG@10 from 0.933 to 0.921.
var allNouns = map[string]bool{"de": true, "lb": true}

// walk follows what the best candidates and the question name, and adds what they
// lead to. One that fails has led nowhere, and a note says so.
func (s *search) walk(ctx context.Context) error {
	if s.Graph == nil || len(s.found) == 0 || s.query.Mode == assay.ModeVector || allNouns[s.language()] {
		return nil
	}
	var from []graph.Seed
	for _, id := range s.query.From {
		from = append(from, graph.Seed{Chunk: id, Score: s.found[0].fused})
	}
	for _, c := range s.found[:min(len(s.found), seeds)] {
		if !slices.Contains(s.query.From, c.hit.Chunk.ID) {
			from = append(from, graph.Seed{Chunk: c.hit.Chunk.ID, Score: c.fused})
		}
	}
	reached, err := s.Graph.Walk(ctx, s.access, s.query, from)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		s.note("nothing that the best hits lead to was looked for: " + trimmed(err))
		return nil
	}
	s.ended("graph")
	for i, r := range reached[:min(len(reached), led)] {
		c := s.add(r.Chunk)
		c.mass, c.path, c.places.Graph = r.Mass, r.Path, i+1
	}
	if err := s.read(ctx); err != nil {
		return err
	}
	if s.wordings[0].vector != nil {
		if err := s.settled(ctx, s.compare(ctx)); err != nil {
			return err
		}
	}
	s.fuse()
	s.join()
	return nil
}

// join adds what the walk says to the fused scores: the root of the mass, for a
// passage that gets half of what another does is not half as likely to matter,
// normalised by the greatest.
func (s *search) join() {
	most, weight := 0.0, graphWeight
	if s.query.Walk == assay.WalkFar {
		weight = farWeight
	}
	for _, c := range s.found {
		most = max(most, c.mass)
	}
	for _, c := range s.found {
		if c.places.Graph == 0 {
			continue
		}
		c.hit.Scores.Graph = &c.mass
		c.terms.Graph = weight * math.Sqrt(c.mass/most)
		if s.query.Fusion == assay.FusionRRF {
			c.terms.Graph = 1 / float64(rrfK+c.places.Graph)
		}
		c.fused += c.terms.Graph
	}
	s.byFused()
}
