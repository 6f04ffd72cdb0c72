package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/retrieve"
	"github.com/assay-rag/assay/llm"
)

// A SearchService is a remote service with passages of its own, such as a knowledge base. It is
// searched beside the engine's documents, as a collection of its own. It is safe for concurrent use.
type SearchService interface {
	// Model returns the name of the service in notes and budgets.
	Model() string

	// Collection returns the name of the service's collection.
	Collection() string

	// Visible reports whether access may see any of its passages. A service that access may not see
	// is not searched, and its collection does not exist for access.
	Visible(access assay.Access) bool

	// Check returns assay.ErrInvalid if the service cannot apply a filter.
	Check(f assay.Filter) error

	// Search returns the hits for a query, best first, without relevance. It never returns a passage
	// that access may not see.
	Search(ctx context.Context, access assay.Access, q assay.Query) (assay.Results, error)

	// ACL returns the ACL of a document that a search has returned, or assay.ErrNotFound. The engine
	// checks each hit against it again.
	ACL(ctx context.Context, id string) (assay.ACL, error)
}

// checkServices returns assay.ErrInvalid if two services have the same collection or one has no name.
func (c Config) checkServices() error {
	seen := map[string]bool{}
	for _, s := range c.Services {
		name := s.Collection()
		if name == "" || seen[name] {
			return fmt.Errorf("the collection %q of the service %s is empty or that of another service: %w", name, s.Model(), assay.ErrInvalid)
		}
		seen[name] = true
	}
	return nil
}

// asksService reports whether a search of the named collections, or of all if there are none, covers
// a service that access may see.
func asksService(s SearchService, access assay.Access, collections []string) bool {
	return (len(collections) == 0 || slices.Contains(collections, s.Collection())) && s.Visible(access)
}

// isServiceCollection reports whether a collection is that of a service which access may see.
func (e *Engine) isServiceCollection(access assay.Access, name string) bool {
	return slices.ContainsFunc(e.config.Services, func(s SearchService) bool { return s.Collection() == name && s.Visible(access) })
}

// filterOfService reports whether a service that a request covers can apply its filter, though no
// document of the engine has its keys.
func (e *Engine) filterOfService(access assay.Access, req Request) bool {
	return !req.Local && slices.ContainsFunc(e.config.Services, func(s SearchService) bool {
		return asksService(s, access, req.Collections) && s.Check(req.Filter) == nil
	})
}

// withServices returns the built-in retriever together with the services; the built-in one alone if
// there are none or the request is to be answered locally.
func (e *Engine) withServices(builtin assay.Retriever, local bool) assay.Retriever {
	if len(e.config.Services) == 0 || local {
		return builtin
	}
	return federation{builtin: builtin, services: e.config.Services, reader: e.reader, screen: e.screenCall}
}

// serviceNames joins the names of the services that a search may call, those of the encoder and
// reranker first.
func (e *Engine) serviceNames(builtin string, local bool) string {
	var names []string
	if builtin != "" {
		names = append(names, builtin)
	}
	if !local {
		for _, s := range e.config.Services {
			names = append(names, s.Model())
		}
	}
	return strings.Join(names, " + ")
}

// A federation searches the engine's documents and services, and merges what they find.
type federation struct {
	builtin  assay.Retriever
	services []SearchService
	reader   func() (llm.Reader, error)
	screen   func(ctx context.Context, place string, texts ...string) error
}

// A part is what one of the searches of a federation found.
type part struct {
	name  string
	found assay.Results
	err   error
}

// Retrieve implements assay.Retriever. The searches take turns in the results: the best hit of each,
// the second of each, and so on; among hits of a rank the more relevant comes first. The relevance of
// all hits is the engine's own. A search that fails is reported in a note if another succeeds.
func (f federation) Retrieve(ctx context.Context, access assay.Access, q assay.Query) (assay.Results, error) {
	asked := slices.DeleteFunc(slices.Clone(f.services), func(s SearchService) bool { return !asksService(s, access, q.Collections) })
	if len(asked) == 0 {
		return f.builtin.Retrieve(ctx, access, q)
	}
	if err := f.screen(ctx, "search service", append([]string{q.Text}, q.Rewrites...)...); err != nil {
		return assay.Results{}, err
	}
	parts := make([]part, len(asked)+1)
	var wait sync.WaitGroup
	for i, s := range asked {
		wait.Go(func() {
			found, err := f.search(ctx, s, access, q)
			parts[i+1] = part{s.Model(), found, err}
		})
	}
	ofServices := func(name string) bool {
		return slices.ContainsFunc(asked, func(s SearchService) bool { return s.Collection() == name })
	}
	own := slices.DeleteFunc(slices.Clone(q.Collections), ofServices)
	covered := len(q.Collections) == 0 || len(own) > 0 // the documents
	if covered {
		mine := q
		mine.Collections = own
		found, err := f.builtin.Retrieve(ctx, access, mine)
		parts[0] = part{"the documents", found, err}
	}
	wait.Wait()
	switch {
	case ctx.Err() != nil:
		return assay.Results{}, ctx.Err()
	case !covered:
		parts = parts[1:]
	}
	return merge(parts, q.Limit)
}

// search searches one service, drops what its own ACLs do not let access see, and rates the rest.
func (f federation) search(ctx context.Context, s SearchService, access assay.Access, q assay.Query) (assay.Results, error) {
	found, err := s.Search(ctx, access, q)
	if err != nil {
		return assay.Results{}, err
	}
	hits := make([]assay.Hit, 0, len(found.Hits))
	for _, h := range found.Hits {
		if !serves(ctx, s, access, h) {
			continue
		}
		h.Origin, h.Collection = assay.FromService, s.Collection()
		hits = append(hits, h)
	}
	found.Hits = hits
	reader, err := f.reader()
	if err != nil {
		return assay.Results{}, err
	}
	return found, retrieve.Rate(ctx, reader, q.Text, &found)
}

// serves reports whether a service shows a hit to access.
func serves(ctx context.Context, s SearchService, access assay.Access, h assay.Hit) bool {
	acl, err := s.ACL(ctx, h.Chunk.Document)
	return err == nil && h.Text != "" && access.Allows("", acl)
}

// merge returns the results of the parts that did not fail. If all failed, it returns their errors.
func merge(parts []part, limit int) (assay.Results, error) {
	var failed []error
	var done []part
	var notes []assay.Note
	for _, p := range parts {
		if p.err == nil {
			done = append(done, p)
			continue
		}
		failed = append(failed, p.err)
		notes = append(notes, searchNote(fmt.Sprintf("%s were not searched: %s", p.name, strings.Join(strings.Fields(p.err.Error()), " "))))
	}
	if len(done) == 0 {
		return assay.Results{}, errors.Join(failed...)
	}
	out := done[0].found
	out.Notes = append(slices.Clone(out.Notes), notes...)
	for _, p := range done[1:] {
		out.Chunks, out.Total = out.Chunks+p.found.Chunks, min(out.Total+p.found.Total, assay.MaxTotal)
		out.Notes = append(out.Notes, p.found.Notes...)
		if len(out.Terms) == 0 {
			out.Terms = p.found.Terms
		}
	}
	out.Hits = takeTurns(done)
	out.Hits = out.Hits[:min(len(out.Hits), limit)]
	return out, nil
}

// takeTurns merges the hits of parts by rank.
func takeTurns(parts []part) []assay.Hit {
	hits := []assay.Hit{}
	for rank := 0; ; rank++ {
		var row []assay.Hit
		for _, p := range parts {
			if rank < len(p.found.Hits) {
				row = append(row, p.found.Hits[rank])
			}
		}
		if len(row) == 0 {
			return hits
		}
		slices.SortStableFunc(row, func(a, b assay.Hit) int { return cmp.Compare(b.Scores.Relevance, a.Scores.Relevance) })
		hits = append(hits, row...)
	}
}
