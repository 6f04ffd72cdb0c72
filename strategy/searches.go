package strategy

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
)

// searches are the searches of one run. A search that was made before is not made again: its query
// is not embedded and its hits are not reranked a second time. It remains a step of the run, which
// costs nothing.
type searches struct {
	mu   sync.Mutex
	made map[string]*madeSearch // by its input, as JSON
}

// A madeSearch is a search whose results are known once done is closed.
type madeSearch struct {
	done  chan struct{}
	ok    bool // it did not fail
	found assay.Results
}

// once makes a search, or returns the results of the same search made before. Of several at the same
// time one is made, and the others wait for it. A search that failed is made again by the next,
// because the failure may be that of its own branch.
func (s *searches) once(ctx context.Context, in searchInput, meter *llm.Meter, r assay.Retriever) (assay.Results, assay.Usage, error) {
	raw, err := json.Marshal(in)
	if err != nil {
		return assay.Results{}, assay.Usage{}, err
	}
	key := string(raw)
	for {
		mine, before := s.claim(key)
		if mine != nil {
			return s.search(ctx, key, mine, in, meter, r)
		}
		select {
		case <-before.done:
			if before.ok {
				return before.found, assay.Usage{}, nil
			}
		case <-ctx.Done():
			return assay.Results{}, assay.Usage{}, ctx.Err()
		}
	}
}

// claim returns the search for the key to be made by the caller, or the one made before.
func (s *searches) claim(key string) (mine, before *madeSearch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.made[key]; before != nil {
		return nil, before
	}
	if s.made == nil {
		s.made = map[string]*madeSearch{}
	}
	mine = &madeSearch{done: make(chan struct{})}
	s.made[key] = mine
	return mine, nil
}

// search makes a search. It forgets the search if that fails or panics.
func (s *searches) search(ctx context.Context, key string, m *madeSearch, in searchInput, meter *llm.Meter, r assay.Retriever) (assay.Results, assay.Usage, error) {
	defer func() {
		if !m.ok {
			s.mu.Lock()
			delete(s.made, key)
			s.mu.Unlock()
		}
		close(m.done)
	}()
	found, err := r.Retrieve(llm.WithMeter(ctx, meter), in.Access, in.Query)
	m.found, m.ok = found, err == nil
	usage := meter.Spent()
	usage.Searches = 1
	return found, usage, err
}
