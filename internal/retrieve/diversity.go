package retrieve

import "context"

// diversified is the most hits whose pairwise similarity is computed.
const diversified = 1000

// diversify reorders the best candidates by maximal marginal relevance. Each next candidate
// maximises (1-d)·score - d·likeness, where d is Query.Diversity, score falls from 1 for the first
// place towards 0, and likeness is that to the most similar candidate already taken. Likeness is
// the cosine of two vectors, normalised to [0, 1] over all pairs. If a vector is missing, it is the
// share of words that both texts have.
//
// Hits beyond the first diversified keep their order.
//
// Source: Carbonell and Goldstein, "The use of MMR, diversity-based reranking for reordering
// documents and producing summaries", SIGIR 1998.
func (s *search) diversify(ctx context.Context) error {
	d := s.query.Diversity
	best := s.found[:min(len(s.found), max(ranked, s.maxHits()), diversified)]
	if d == 0 || len(best) < 2 {
		return nil
	}
	like, err := s.likeness(ctx, best)
	if err != nil {
		return err
	}
	most := make([]float64, len(best)) // greatest likeness to a candidate taken so far
	var order []int
	taken := make([]bool, len(best))
	for range best {
		next, top := -1, 0.0
		for i := range best {
			if taken[i] {
				continue
			}
			score := 1 - float64(i)/float64(len(best))
			if x := (1-d)*score - d*most[i]; next < 0 || x > top {
				next, top = i, x
			}
		}
		order, taken[next] = append(order, next), true
		for i := range best {
			most[i] = max(most[i], like[i][next])
		}
	}
	list := make([]*candidate, len(best))
	for place, i := range order {
		list[place] = best[i]
	}
	copy(best, list)
	return nil
}

// likeness returns the pairwise likeness of the candidates, in [0, 1].
func (s *search) likeness(ctx context.Context, list []*candidate) ([][]float64, error) {
	if err := s.vectors(ctx, list); err != nil {
		return nil, err
	}
	said := make([]*fingerprint, len(list))
	like := make([][]float64, len(list))
	cosines := newScale()
	for i, c := range list {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		said[i], like[i] = fingerprintOf(c.hit), make([]float64, len(list))
		for j := range i {
			if x, ok := cosine(c.vector, list[j].vector); ok {
				cosines.add(x)
			}
		}
	}
	for i, c := range list {
		for j := range i {
			x, ok := cosine(c.vector, list[j].vector)
			if ok {
				x = cosines.of(x)
			} else {
				x = said[i].wordOverlap(said[j])
			}
			like[i][j], like[j][i] = x, x
		}
	}
	return like, nil
}
