package retrieve

import (
	"context"
	"math"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/graph"
)

// A Walker finds passages by following links from others; graph.Walker implements it.
type Walker interface {
	// Walk returns the passages reached from the seeds, best first, and from the entities of
	// q.Text, those with the most mass first. It returns only passages that a search for q by
	// access may find.
	Walk(ctx context.Context, access assay.Access, q assay.Query, seeds []graph.Seed) ([]graph.Score, error)
}

// graphWeight is the weight of the square root of a passage's share of the walk's mass in its fused
// score. The mean nDCG@10 over eight shared sets in English (at most 300 questions of each), by
// weight, is 0.870 without a walk, 0.25 0.882, 0.5 0.887, 0.7 0.889, 1 0.890. Above 0.7 scifact and
// anthropic-docs begin to lose. The mass itself is worse at every weight, 0.885 at best.
const graphWeight = 0.7

// farWeight is the graphWeight of a far walk; see graph.Walker.
const farWeight = 1.3

// seeds is how many of the best candidates are offered to the Walker as seeds. It may use fewer.
const seeds = 10

// maxWalked is how many of the passages that a walk reaches become candidates: those with the most
// mass.
const maxWalked = 40

// maxFrom is the most passages in a query's From.
const maxFrom = 16

// allNouns are the languages that capitalise all nouns, not only names. Links between their
// passages are often ordinary words: on 300 questions of xquad-de a walk lowered nDCG@10 from 0.933
// to 0.921.
var allNouns = map[string]bool{"de": true, "lb": true}

// walk walks the graph from the best candidates and the question, and adds the passages that it
// reaches. If the walk fails, it adds no passages and a note reports it.
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
		s.note("the graph was not walked: " + trimmed(err))
		return nil
	}
	s.endStage("graph")
	for i, r := range reached[:min(len(reached), maxWalked)] {
		c := s.add(r.Chunk)
		c.mass, c.path, c.places.Graph = r.Mass, r.Path, i+1
	}
	if err := s.read(ctx); err != nil {
		return err
	}
	if s.wordings[0].vector != nil {
		if err := s.endVectors(ctx, s.compare(ctx)); err != nil {
			return err
		}
	}
	s.fuse()
	s.addWalkScores()
	return nil
}

// addWalkScores adds the walk's contribution to the fused scores: the square root of the mass,
// normalised by the greatest. The root is used because a passage with half the mass of another is
// more than half as likely to be relevant.
func (s *search) addWalkScores() {
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
