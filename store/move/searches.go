package move

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/internal/relational"
)

const (
	queryWords = 12 // of a passage
	hitsWanted = 10 // of each search
)

// A search is a question of the sample: the words of a passage, asked by one who may read it.
type search struct {
	text  string
	chunk string
	by    assay.Access
}

// compareSearches indexes both tenants and compares the hits of the same searches, by words and by the
// vectors of each model. The index of the target stays if its store keeps one. It returns the number of
// searches.
func compareSearches(ctx context.Context, g relational.Given, to store.Tenant, most int) (n int, err error) {
	sample, err := sampleOf(ctx, g, most)
	if err != nil {
		return 0, err
	}
	source, closeSource, err := indexOf(ctx, g.Tenant, "")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, closeSource()) }()
	target, closeTarget, err := indexOf(ctx, to, to.IndexDir())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, closeTarget()) }()
	models, err := to.Content().Models(ctx)
	if err != nil {
		return 0, err
	}
	for _, s := range sample {
		for _, model := range append([]string{""}, models...) {
			found, err := compareSearch(ctx, source, target, s, model)
			if err != nil {
				return n, err
			}
			n += found
		}
	}
	return n, target.Flush(ctx)
}

// compareSearch compares one search, by words if model is empty. It returns 0 if the chunk has no vector
// of the model.
func compareSearch(ctx context.Context, source, target *index.Searcher, s search, model string) (int, error) {
	q := assay.Query{Text: s.text, Limit: hitsWanted}
	ask := func(x *index.Searcher) (index.Result, error) { return x.Search(ctx, s.by, q) }
	if model != "" {
		vectors, err := source.Vectors(ctx, s.by, model, []string{s.chunk})
		if err != nil || vectors[0] == nil {
			return 0, err
		}
		v := index.Vector{Model: model, Metric: index.Cosine, Values: vectors[0]}
		ask = func(x *index.Searcher) (index.Result, error) { return x.Nearest(ctx, s.by, q, v) }
	}
	want, err := ask(source)
	if err != nil {
		return 0, err
	}
	got, err := ask(target)
	if err != nil {
		return 0, err
	}
	if got.Total != want.Total || !reflect.DeepEqual(got.Hits, want.Hits) {
		return 0, fmt.Errorf("a search for the words of chunk %s finds %d chunks in the copy, %d in the original, or others: %w",
			s.chunk, got.Total, want.Total, assay.ErrDamaged)
	}
	return 1, nil
}

// indexOf indexes a tenant in a folder; empty: a temporary one.
func indexOf(ctx context.Context, t store.Tenant, dir string) (*index.Searcher, func() error, error) {
	temp := ""
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "assay-move-"); err != nil {
			return nil, nil, err
		}
		temp = dir
	}
	remove := func() error {
		if temp == "" {
			return nil
		}
		return os.RemoveAll(temp)
	}
	x, err := index.Open(ctx, dir, t.Content())
	if err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return x, func() error { return errors.Join(x.Close(), remove()) }, nil
}

// nextChunk selects the chunk of a current version after an ID.
const nextChunk = `
SELECT c.id, v.acl FROM chunks c JOIN versions v ON v.number = c.version JOIN documents d ON d.version = v.number
WHERE c.id >= ? AND c.hash IS NOT NULL ORDER BY c.id LIMIT 1`

// sampleOf returns searches for passages that the identity of the tenant selects, so that another move
// compares the same.
func sampleOf(ctx context.Context, g relational.Given, most int) ([]search, error) {
	rng := rand.NewChaCha8(sha256.Sum256([]byte(g.Info.Identity)))
	chunks := map[string]assay.Access{}
	for range most {
		var start [16]byte
		_, _ = rng.Read(start[:])
		err := g.Content.Reader.Each(ctx, nextChunk, []any{start[:]}, func(scan func(...any) error) error {
			var id []byte
			var acl string
			if err := scan(&id, &acl); err != nil {
				return err
			}
			by, err := readerOf(acl)
			chunks[hex.EncodeToString(id)] = by
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	ids := slices.Sorted(maps.Keys(chunks))
	passages, err := g.Tenant.Content().Passages(ctx, ids)
	if err != nil {
		return nil, err
	}
	var sample []search
	for i, p := range passages {
		words := strings.Fields(p.Text)
		sample = append(sample, search{strings.Join(words[:min(len(words), queryWords)], " "), ids[i], chunks[ids[i]]})
	}
	return sample, nil
}

// readerOf returns the access of one who may see a document with this ACL, in JSON.
func readerOf(text string) (assay.Access, error) {
	var acl assay.ACL
	if err := json.Unmarshal([]byte(text), &acl); err != nil {
		return assay.Access{}, fmt.Errorf("ACL of a document: %w: %w", assay.ErrDamaged, err)
	}
	by := assay.Principal{User: "local"}
	if acl.Restricted {
		for _, name := range acl.Allow {
			if user, ok := strings.CutPrefix(name, "user:"); ok {
				by.User = user
			}
			if group, ok := strings.CutPrefix(name, "group:"); ok {
				by.Groups = []string{group}
			}
		}
	}
	return by.Access(), nil
}
