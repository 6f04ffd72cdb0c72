package retrieval

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/language"
	"github.com/assay-rag/assay/llm"
)

// A corpus holds documents and their chunks in memory. It is the source of an index, vectors
// included, and the content that a retriever reads.
type corpus struct {
	documents []assay.Document
	chunks    []assay.Chunk // by document
	docOf     []int         // for each chunk the index of its document
	byChunk   map[string]int
	byDoc     map[string]int

	model   string       // of the vectors; empty if there are none
	vectors []llm.Vector // one per chunk; nil for a chunk without one
}

// newCorpus makes a document of one chunk from each passage of a set, because the sets define
// relevance by passage. Detecting the languages of a large set takes seconds, and
// stops when ctx ends.
func newCorpus(ctx context.Context, set testset.Set) (*corpus, error) {
	c := &corpus{byChunk: map[string]int{}, byDoc: map[string]int{}}
	for _, p := range set.Passages {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		d := newDocument(set.Name, p.ID, p.Title, p.Text)
		c.add(d, []assay.Chunk{{
			ID:       assay.ChunkID(d.ID, d.Version, 0),
			Document: d.ID,
			Version:  d.Version,
			Kind:     assay.ChunkProse,
			End:      len(p.Text),
		}})
	}
	return c, nil
}

// newDocument makes a document of a set, with its language as ingest finds it.
func newDocument(set, uri, title, text string) assay.Document {
	m := assay.Metadata{}
	if code := language.Detect(text); code != "" {
		m[assay.MetaLanguage] = assay.StringValue(code)
	}
	return assay.Document{
		ID:         assay.DocumentID(set, uri),
		Version:    assay.DocumentVersion(text, m, "eval"),
		Collection: set,
		URI:        uri,
		Title:      title,
		Text:       text,
		Metadata:   m,
	}
}

// add adds a document with its chunks.
func (c *corpus) add(d assay.Document, chunks []assay.Chunk) {
	c.byDoc[d.ID] = len(c.documents)
	for _, ch := range chunks {
		c.byChunk[ch.ID] = len(c.chunks)
		c.chunks = append(c.chunks, ch)
		c.docOf = append(c.docOf, len(c.documents))
	}
	c.documents = append(c.documents, d)
}

// chunksOf returns the chunks of document i.
func (c *corpus) chunksOf(i int) []assay.Chunk {
	first, _ := slices.BinarySearch(c.docOf, i)
	end, _ := slices.BinarySearch(c.docOf, i+1)
	return c.chunks[first:end]
}

// embedBatch is the number of passages that are embedded between two progress reports. It is large
// enough to fill the encoder's batches, and small enough that an interruption loses little.
const embedBatch = 128

// embed computes the vectors of the chunks for which covered returns true, except sections. A nil
// covered selects all.
func (c *corpus) embed(ctx context.Context, e llm.Embedder, covered func(i int) bool, progress func(done, all int) time.Duration) error {
	var at []int
	for i, ch := range c.chunks {
		if ch.Kind != assay.ChunkSection && (covered == nil || covered(i)) {
			at = append(at, i)
		}
	}
	c.model, c.vectors = e.Model(), make([]llm.Vector, len(c.chunks))
	for first := 0; first < len(at); first += embedBatch {
		batch := at[first:min(first+embedBatch, len(at))]
		passages := make([]assay.Passage, len(batch))
		for i, j := range batch {
			passages[i] = c.passage(j)
		}
		vectors, err := llm.EmbedPassages(ctx, e, passages)
		if err != nil {
			return fmt.Errorf("embed passages %d to %d: %w", first+1, first+len(batch), err)
		}
		for i, j := range batch {
			c.vectors[j] = vectors[i]
		}
		progress(first+len(batch), len(at))
	}
	return nil
}

// Sequence implements index.Source. Each document is one change, with its vectors.
func (c *corpus) Sequence(context.Context) (int64, error) { return int64(len(c.documents)), nil }

// Changes implements index.Source.
func (c *corpus) Changes(ctx context.Context, after int64) iter.Seq2[assay.Change, error] {
	return func(yield func(assay.Change, error) bool) {
		for i := int(after); i < len(c.documents); i++ {
			if err := ctx.Err(); err != nil {
				yield(assay.Change{}, err)
				return
			}
			d := c.documents[i]
			if !yield(assay.Change{Sequence: int64(i + 1), ID: d.ID, Document: &d, Chunks: c.chunksOf(i)}, nil) {
				return
			}
		}
	}
}

// Models implements index.VectorSource.
func (c *corpus) Models(context.Context) ([]string, error) {
	if c.model == "" {
		return nil, nil
	}
	return []string{c.model}, nil
}

// Vectors implements index.VectorSource.
func (c *corpus) Vectors(ctx context.Context, model string, after int64) iter.Seq2[index.ChunkVector, error] {
	return func(yield func(index.ChunkVector, error) bool) {
		if model != c.model {
			return
		}
		for i, v := range c.vectors {
			if v == nil || int64(c.docOf[i]) < after {
				continue
			}
			if err := ctx.Err(); err != nil {
				yield(index.ChunkVector{}, err)
				return
			}
			if !yield(index.ChunkVector{Chunk: c.chunks[i].ID, Values: v}, nil) {
				return
			}
		}
	}
}

// Passages implements retrieve.Content.
func (c *corpus) Passages(_ context.Context, ids []string) ([]assay.Passage, error) {
	passages := make([]assay.Passage, len(ids))
	for i, id := range ids {
		at, ok := c.byChunk[id]
		if !ok {
			return nil, fmt.Errorf("chunk %s: %w", id, assay.ErrNotFound)
		}
		passages[i] = c.passage(at)
	}
	return passages, nil
}

// ACL implements strategy.Content. Every principal may read a set.
func (c *corpus) ACL(_ context.Context, id string) (assay.ACL, error) {
	if _, ok := c.byDoc[id]; !ok {
		return assay.ACL{}, fmt.Errorf("document %s: %w", id, assay.ErrNotFound)
	}
	return assay.ACL{}, nil
}

// Version implements strategy.Content.
func (c *corpus) Version(_ context.Context, id, version string) (assay.Document, error) {
	i, ok := c.byDoc[id]
	if !ok || c.documents[i].Version != version {
		return assay.Document{}, fmt.Errorf("version %s of document %s: %w", version, id, assay.ErrNotFound)
	}
	return c.documents[i], nil
}

func (c *corpus) passage(i int) assay.Passage {
	d, ch := c.documents[c.docOf[i]], c.chunks[i]
	return assay.Passage{
		Chunk: ch, Text: d.Text[ch.Start:ch.End], Collection: d.Collection, URI: d.URI, Title: d.Title,
		Language: d.Metadata[assay.MetaLanguage].String,
	}
}
