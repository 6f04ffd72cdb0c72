package s3vectors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3vectors"
	"github.com/aws/aws-sdk-go-v2/service/s3vectors/document"
	"github.com/aws/aws-sdk-go-v2/service/s3vectors/types"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/resilient"
)

// A Chunk is what moves between the tiers.
type Chunk struct {
	assay.Passage
	Collection string
	ACL        assay.ACL
	Metadata   assay.Metadata // of its document; keys of the sharing and of the passage are overwritten
	Vector     llm.Vector
	Revision   string // changes whenever the hot index changes the chunk
}

// A Hot is the index above the cold tier. Using a chunk, which makes it hot, is up to the index: being
// found, or being put.
type Hot interface {
	assay.Retriever

	// Idle returns up to n chunks that were last used before a time, least recently used first.
	Idle(ctx context.Context, before time.Time, n int) ([]Chunk, error)

	// Drop removes a chunk if it has the revision and was not used since before. It reports whether
	// it did.
	Drop(ctx context.Context, id, revision string, before time.Time) (bool, error)
}

// A Catalogue has the current documents, whichever tier their chunks are in. The store is one.
type Catalogue interface {
	// Current returns the current version of a document, and its ACL; assay.ErrNotFound if there is
	// none.
	Current(ctx context.Context, id string) (version string, acl assay.ACL, err error)
}

// A Policy decides what is cold, and when the cold tier is asked.
type Policy struct {
	Idle  time.Duration // chunks that were not used for so long move to the cold tier; required
	Batch int           // chunks that move at once; 0: 500

	// The cold tier is asked if the hot index finds fewer hits than Fewer, or if its most relevant one
	// is less relevant than Below. If both are 0, it is asked by every search.
	Fewer int
	Below float64
}

// A Tier is a hot index and the cold one below it. It implements assay.Retriever.
//
// A chunk is put into the cold tier before it is dropped from the hot index, so a process that is killed
// between the two leaves it in both, never in neither. A search returns it once, and the next Move
// repeats both steps, which are idempotent. A chunk of the cold tier whose document was changed,
// deleted or hidden since is not returned, whatever the cold tier holds. An access that is narrowed to
// collections sees nothing of the cold tier.
type Tier struct {
	hot       Hot
	cold      *Retriever
	catalogue Catalogue
	policy    Policy
	now       func() time.Time
}

// NewTier returns a tier. now may be nil. A policy without Idle is assay.ErrInvalid.
func NewTier(hot Hot, cold *Retriever, catalogue Catalogue, p Policy, now func() time.Time) (*Tier, error) {
	if p.Idle <= 0 || p.Batch < 0 || p.Batch > maxBatch || p.Fewer < 0 || !(p.Below >= 0 && p.Below <= 1) {
		return nil, fmt.Errorf("policy %+v of a cold tier: idle must be positive, a batch has at most %d chunks, and below is in [0, 1]: %w", p, maxBatch, assay.ErrInvalid)
	}
	if now == nil {
		now = time.Now
	}
	p.Batch = cmp.Or(p.Batch, maxBatch)
	return &Tier{hot, cold, catalogue, p, now}, nil
}

// Retrieve implements assay.Retriever. Hits of the hot index come first. If the cold tier fails, a note
// reports it.
func (t *Tier) Retrieve(ctx context.Context, access assay.Access, q assay.Query) (assay.Results, error) {
	found, err := t.hot.Retrieve(ctx, access, q)
	if err != nil || !t.asksCold(found) {
		return found, err
	}
	below := q
	if len(q.Collections) > 0 {
		of := assay.Filter{Op: assay.OpIn, Key: keyCollection, Value: assay.ListValue(q.Collections...)}
		below.Filter, below.Collections = assay.And(q.Filter, of), nil
	}
	cold, err := t.cold.Retrieve(ctx, access, below)
	if err != nil {
		if ctx.Err() != nil {
			return assay.Results{}, ctx.Err()
		}
		found.Notes = append(found.Notes, assay.Note{Kind: assay.NoteSearch, Text: "the cold tier was not searched: " + err.Error()})
		return found, nil
	}
	known := map[string]bool{}
	for _, h := range found.Hits {
		known[h.Chunk.ID] = true
	}
	for _, h := range cold.Hits {
		h, ok, err := t.current(ctx, access, h)
		if err != nil {
			return assay.Results{}, err
		}
		if ok && !known[h.Chunk.ID] && len(found.Hits) < q.Limit {
			known[h.Chunk.ID] = true
			found.Hits = append(found.Hits, h)
			found.Chunks, found.Total = found.Chunks+1, min(found.Total+1, assay.MaxTotal)
		}
	}
	found.Notes = append(found.Notes, cold.Notes...)
	return found, nil
}

// asksCold reports whether the policy asks the cold tier after what the hot index found.
func (t *Tier) asksCold(found assay.Results) bool {
	p := t.policy
	if p.Fewer == 0 && p.Below == 0 || len(found.Hits) < p.Fewer {
		return true
	}
	best := 0.0
	for _, h := range found.Hits {
		best = max(best, h.Scores.Relevance)
	}
	return best < p.Below
}

// The keys of a chunk's metadata in the cold tier.
const (
	keyChunk      = "assay_chunk"
	keyDocument   = "assay_document"
	keyVersion    = "assay_version"
	keyStart      = "assay_start"
	keyCollection = "assay_collection"
)

// current returns a hit of the cold tier as the chunk that it is. ok is false if its document no longer
// has the version, or access may not see it.
func (t *Tier) current(ctx context.Context, access assay.Access, h assay.Hit) (assay.Hit, bool, error) {
	doc, err := t.cold.Version(ctx, h.Chunk.Document, h.Chunk.Version)
	if errors.Is(err, assay.ErrNotFound) {
		return h, false, nil
	}
	if err != nil {
		return h, false, err
	}
	m := doc.Metadata
	version, acl, err := t.catalogue.Current(ctx, m[keyDocument].String)
	if errors.Is(err, assay.ErrNotFound) {
		return h, false, nil
	}
	if err != nil {
		return h, false, err
	}
	collection, start := m[keyCollection].String, int(m[keyStart].Number)
	if version != m[keyVersion].String || start < 0 || !access.Allows(collection, acl) {
		return h, false, nil
	}
	h.Origin, h.Collection, h.Children = assay.FromDocuments, collection, nil
	h.Chunk.ID, h.Chunk.Document, h.Chunk.Version = m[keyChunk].String, m[keyDocument].String, version
	h.Chunk.Start, h.Chunk.End = start, start+len(h.Text)
	return h, true, nil
}

// Move moves chunks that the policy calls cold, batch by batch, and returns how many it moved. After an
// error, or if it is killed, it can be repeated.
func (t *Tier) Move(ctx context.Context) (moved int, err error) {
	before := t.now().Add(-t.policy.Idle)
	for {
		chunks, err := t.hot.Idle(ctx, before, t.policy.Batch)
		if err != nil || len(chunks) == 0 {
			return moved, err
		}
		if err := t.cold.Put(ctx, chunks); err != nil {
			return moved, err
		}
		n, err := t.drop(ctx, chunks, before)
		moved += n
		if err != nil || n == 0 { // all of them were used meanwhile
			return moved, err
		}
	}
}

// drop drops chunks from the hot index, and returns how many it dropped. Those that were used or changed
// meanwhile stay, and leave the cold tier again.
func (t *Tier) drop(ctx context.Context, chunks []Chunk, before time.Time) (dropped int, err error) {
	var kept []string
	for _, c := range chunks {
		ok, err := t.hot.Drop(ctx, c.Chunk.ID, c.Revision, before)
		if err != nil {
			return dropped, err
		}
		if ok {
			dropped++
		} else {
			kept = append(kept, c.Chunk.ID)
		}
	}
	if len(kept) == 0 {
		return dropped, nil
	}
	return dropped, t.cold.Delete(ctx, kept)
}

// Put stores chunks under their IDs. Chunks that are stored are replaced. A chunk whose ACL the sharing
// of the index cannot express, because it names no key of ACLs, is assay.ErrInvalid.
func (r *Retriever) Put(ctx context.Context, chunks []Chunk) error {
	var vectors []types.PutInputVector
	for _, c := range chunks {
		v, err := r.vector(c)
		if err != nil {
			return err
		}
		vectors = append(vectors, v)
	}
	for from := 0; from < len(vectors); from += maxBatch {
		in := &s3vectors.PutVectorsInput{VectorBucketName: &r.config.Bucket, IndexName: &r.config.Index, Vectors: vectors[from:min(from+maxBatch, len(vectors))]}
		err := r.write(ctx, func(ctx context.Context, c *s3vectors.Client, http func(*s3vectors.Options)) error {
			_, err := c.PutVectors(ctx, in, http)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Delete removes chunks by their IDs. It is no error if one does not exist.
func (r *Retriever) Delete(ctx context.Context, ids []string) error {
	for from := 0; from < len(ids); from += maxBatch {
		in := &s3vectors.DeleteVectorsInput{VectorBucketName: &r.config.Bucket, IndexName: &r.config.Index, Keys: ids[from:min(from+maxBatch, len(ids))]}
		err := r.write(ctx, func(ctx context.Context, c *s3vectors.Client, http func(*s3vectors.Options)) error {
			_, err := c.DeleteVectors(ctx, in, http)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// write makes a request that may be repeated, through the guard if there is one.
func (r *Retriever) write(ctx context.Context, do func(context.Context, *s3vectors.Client, func(*s3vectors.Options)) error) error {
	if r.config.Guard == nil {
		return r.call(ctx, do)
	}
	read := resilient.Read{Name: r.name, Bulk: true}
	_, _, err := resilient.Do(ctx, r.config.Guard, read, func(ctx context.Context) (struct{}, error) { return struct{}{}, r.call(ctx, do) })
	return err
}

// vector returns a chunk in the form of S3 Vectors.
func (r *Retriever) vector(c Chunk) (types.PutInputVector, error) {
	s := r.config.Sharing
	if s.ACLKey == "" || s.TenantKey != "" && s.Tenant == "" {
		return types.PutInputVector{}, fmt.Errorf("%s: a cold tier needs a sharing with a key of ACLs: %w", r.name, assay.ErrInvalid)
	}
	meta := map[string]any{}
	for key, v := range c.Metadata {
		switch v.Kind {
		case assay.KindString:
			meta[key] = v.String
		case assay.KindNumber:
			meta[key] = v.Number
		case assay.KindBoolean:
			meta[key] = v.Boolean
		case assay.KindList:
			meta[key] = v.List
		}
	}
	meta[s.ACLKey] = []string{"*"}
	if c.ACL.Restricted {
		meta[s.ACLKey] = append([]string{}, c.ACL.Allow...)
	}
	if s.TenantKey != "" {
		meta[s.TenantKey] = s.Tenant
	}
	text := strings.TrimSpace(c.Text) // as a passage is returned
	meta[KeyText], meta[KeyURI], meta[KeyTitle] = text, c.URI, c.Title
	meta[keyChunk], meta[keyDocument], meta[keyVersion], meta[keyCollection] = c.Chunk.ID, c.Chunk.Document, c.Chunk.Version, c.Collection
	meta[keyStart] = c.Chunk.Start + strings.Index(c.Text, text)
	return types.PutInputVector{Key: &c.Chunk.ID, Data: &types.VectorDataMemberFloat32{Value: c.Vector}, Metadata: document.NewLazyDocument(meta)}, nil
}
