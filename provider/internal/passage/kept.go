package passage

import (
	"context"
	"fmt"
	"strings"

	"github.com/assay-rag/assay"
)

// keep stores a document. If the store is full, it replaces the oldest one.
func (r *Retriever) keep(d assay.Document) {
	key := d.ID + "/" + d.Version
	r.mu.Lock()
	defer r.mu.Unlock()
	r.acls[d.ID] = d.ACL
	if _, ok := r.texts[key]; ok {
		return
	}
	r.texts[key] = d
	r.order = append(r.order, key)
	if len(r.order) <= r.config.Keep {
		return
	}
	old := r.order[0]
	r.order = r.order[1:]
	delete(r.texts, old)
	id, _, _ := strings.Cut(old, "/")
	for _, key := range r.order {
		if strings.HasPrefix(key, id+"/") {
			return
		}
	}
	delete(r.acls, id)
}

// ACL returns the ACL of a document according to the latest retrieval. It returns assay.ErrNotFound
// if the document is not kept.
func (r *Retriever) ACL(_ context.Context, id string) (assay.ACL, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	acl, ok := r.acls[id]
	if !ok {
		return assay.ACL{}, fmt.Errorf("document %s of %s: %w", id, r.config.Name, assay.ErrNotFound)
	}
	return acl, nil
}

// Version returns a retrieved document version. It returns assay.ErrNotFound if the version is not
// kept.
func (r *Retriever) Version(_ context.Context, id, version string) (assay.Document, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, ok := r.texts[id+"/"+version]
	if !ok {
		return assay.Document{}, fmt.Errorf("version %s of document %s of %s: %w", version, id, r.config.Name, assay.ErrNotFound)
	}
	return d, nil
}
