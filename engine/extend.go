package engine

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/strategy"
)

// extended reports whether the answers of a strategy depend on the caller's own code, whose changes
// the answer cache cannot detect.
func (c Config) extended(name string) bool {
	own := func(s strategy.Spec) bool { return s.Name == name }
	return c.Roles != nil || c.Retriever != nil || len(c.Services) > 0 || slices.ContainsFunc(c.Strategies, own)
}

// wrapper returns the function that makes the retriever of runs and searches from the built-in one.
func (c Config) wrapper(content store.Content) func(assay.Retriever) (assay.Retriever, error) {
	return func(builtin assay.Retriever) (assay.Retriever, error) {
		if c.Retriever == nil {
			return builtin, nil
		}
		own := c.Retriever(builtin)
		if own == nil {
			return nil, fmt.Errorf("Config.Retriever returned no retriever: %w", assay.ErrInvalid)
		}
		return guardedRetriever{own, content, c.Services}, nil
	}
}

// A guardedRetriever is a caller's retriever, without the hits that the access does not allow. A hit
// in a document that neither the store nor a service holds is not allowed either.
type guardedRetriever struct {
	assay.Retriever
	content  store.Content
	services []SearchService
}

// Retrieve implements assay.Retriever.
func (g guardedRetriever) Retrieve(ctx context.Context, access assay.Access, q assay.Query) (assay.Results, error) {
	r, err := g.Retriever.Retrieve(ctx, access, q)
	if err != nil {
		return r, err
	}
	allowed := map[string]bool{} // by document
	hits := make([]assay.Hit, 0, len(r.Hits))
	for _, h := range r.Hits {
		id := h.Chunk.Document
		if h.Origin == assay.FromService {
			if slices.ContainsFunc(g.services, func(s SearchService) bool { return serves(ctx, s, access, h) }) {
				hits = append(hits, h)
			}
			continue
		}
		ok, known := allowed[id]
		if !known {
			ok, err = mayRead(ctx, g.content, access, id)
			if err != nil && !errors.Is(err, assay.ErrNotFound) {
				return assay.Results{}, fmt.Errorf("check the access to what was found: %w", err)
			}
			allowed[id] = ok
		}
		if ok {
			hits = append(hits, h)
		}
	}
	r.Hits = hits
	return r, nil
}

// roles returns the roles of a run. builtin leaves Config.Roles out.
func (e *Engine) roles(m Models, how roleOptions, builtin bool) (strategy.Roles, error) {
	roles := m.roles(how)
	if e.config.Roles == nil || builtin {
		return roles, nil
	}
	own := e.config.Roles(roles)
	if name := removed(roles, own); name != "" {
		return own, fmt.Errorf("Config.Roles removed the role %s: %w", name, assay.ErrInvalid)
	}
	return own, nil
}

// removed returns the name of an interface field that is set in before and nil in after, or "".
func removed(before, after strategy.Roles) string {
	b, a := reflect.ValueOf(before), reflect.ValueOf(after)
	for i := range b.NumField() {
		f := b.Field(i)
		if f.Kind() == reflect.Interface && !f.IsNil() && a.Field(i).IsNil() {
			return b.Type().Field(i).Name
		}
	}
	return ""
}
