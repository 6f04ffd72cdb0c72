package retrieve_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/retrieve"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
)

var everyone = assay.Local().Access()

// encoder is the English-only embedder of the tests. It embeds by hashes of words.
type encoder struct{ *llmtest.Hashing }

func (encoder) Languages() []string { return []string{"en"} }

func newEncoder() encoder { return encoder{&llmtest.Hashing{Dimensions: 64}} }

// A library holds documents in memory and serves as both the source and the content of an index. It
// must be filled before the index is opened.
type library struct {
	changes []assay.Change
	chunks  map[string]assay.Passage
	vectors []assay.ChunkVector
	model   string
}

func newLibrary() *library { return &library{chunks: map[string]assay.Passage{}} }

// A leaf is one chunk of a document passed to putLeaves. Leaves with equal, non-empty sections are
// children of one section.
type leaf struct{ heading, text, section string }

// put adds a document with one prose chunk per text.
func (l *library) put(uri, title, language string, acl assay.ACL, texts ...string) {
	var leaves []leaf
	for _, t := range texts {
		leaves = append(leaves, leaf{text: t})
	}
	l.putLeaves(uri, title, language, acl, leaves...)
}

func (l *library) putLeaves(uri, title, language string, acl assay.ACL, leaves ...leaf) {
	var b strings.Builder
	var chunks []assay.Chunk
	m := assay.Metadata{}
	if language != "" {
		m[assay.MetaLanguage] = assay.StringValue(language)
	}
	sections := map[string]int{} // name → index into chunks
	for _, lf := range leaves {
		if _, known := sections[lf.section]; lf.section != "" && !known {
			sections[lf.section] = len(chunks)
			chunks = append(chunks, assay.Chunk{Kind: assay.ChunkSection, Start: b.Len()})
		}
		c := assay.Chunk{Kind: assay.ChunkProse, Start: b.Len(), End: b.Len() + len(lf.text), Tokens: len(strings.Fields(lf.text))}
		if lf.heading != "" {
			c.Headings = []string{lf.heading}
		}
		if i, ok := sections[lf.section]; ok {
			chunks[i].End, chunks[i].Headings = c.End, c.Headings
			chunks[i].Tokens += c.Tokens
			c.Parent = fmt.Sprint(i) // replaced by its ID below
		}
		chunks = append(chunks, c)
		b.WriteString(lf.text + "\n\n")
	}
	text := b.String()
	d := assay.Document{
		ID: assay.DocumentID("c", uri), Version: assay.DocumentVersion(text, m, "test"), Collection: "c",
		URI: uri, Title: title, Text: text, Metadata: m, ACL: acl,
	}
	for i := range chunks {
		c := &chunks[i]
		c.Document, c.Version, c.Ordinal, c.ID = d.ID, d.Version, i, assay.ChunkID(d.ID, d.Version, i)
	}
	for i := range chunks {
		c := &chunks[i]
		if c.Parent != "" {
			var n int
			fmt.Sscan(c.Parent, &n)
			c.Parent = chunks[n].ID
		}
		l.chunks[c.ID] = assay.Passage{Chunk: *c, Text: text[c.Start:c.End], Collection: "c", URI: uri, Title: title, Language: language, Line: 1}
	}
	l.changes = append(l.changes, assay.Change{Sequence: int64(len(l.changes) + 1), ID: d.ID, Document: &d, Chunks: chunks})
}

// embed adds vectors for the chunks for which covered returns true, in a fixed order.
func (l *library) embed(e *llmtest.Hashing, covered func(i int, p assay.Passage) bool) {
	l.model = e.Model()
	for i, p := range l.passages() {
		if covered(i, p) {
			l.vectors = append(l.vectors, assay.ChunkVector{Chunk: p.Chunk.ID, Values: e.Vector(p.Words())})
		}
	}
}

// passages returns the searchable chunks in the order in which they were added.
func (l *library) passages() []assay.Passage {
	var list []assay.Passage
	for _, c := range l.changes {
		for _, ch := range c.Chunks {
			if ch.Kind != assay.ChunkSection {
				list = append(list, l.chunks[ch.ID])
			}
		}
	}
	return list
}

func all(int, assay.Passage) bool { return true }

func (l *library) Sequence(context.Context) (int64, error) { return int64(len(l.changes)) + 1, nil }

func (l *library) Changes(_ context.Context, after int64) iter.Seq2[assay.Change, error] {
	return func(yield func(assay.Change, error) bool) {
		for _, c := range l.changes {
			if c.Sequence > after && !yield(c, nil) {
				return
			}
		}
	}
}

func (l *library) Models(context.Context) ([]string, error) {
	if l.model == "" {
		return nil, nil
	}
	return []string{l.model}, nil
}

func (l *library) Vectors(_ context.Context, model string, after int64) iter.Seq2[assay.ChunkVector, error] {
	return func(yield func(assay.ChunkVector, error) bool) {
		for _, v := range l.vectors {
			if model == l.model && !yield(v, nil) {
				return
			}
		}
	}
}

func (l *library) Passages(ctx context.Context, ids []string) ([]assay.Passage, error) {
	list := make([]assay.Passage, len(ids))
	for i, id := range ids {
		p, ok := l.chunks[id]
		if !ok {
			return nil, fmt.Errorf("chunk %s: %w", id, assay.ErrNotFound)
		}
		list[i] = p
	}
	return list, ctx.Err()
}

// open returns a retriever over the library.
func (l *library) open(t testing.TB, c retrieve.Config) *retrieve.Retriever {
	t.Helper()
	ix, err := index.Open(t.Context(), t.TempDir(), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ix.Close(); err != nil {
			t.Error(err)
		}
	})
	c.Index, c.Content = ix, l
	return retrieve.New(c)
}

func retrieved(t testing.TB, r assay.Retriever, q assay.Query) assay.Results {
	t.Helper()
	return retrievedBy(t, r, everyone, q)
}

func retrievedBy(t testing.TB, r assay.Retriever, access assay.Access, q assay.Query) assay.Results {
	t.Helper()
	q.Limit = cmp.Or(q.Limit, 100)
	found, err := r.Retrieve(t.Context(), access, q)
	if err != nil {
		t.Fatalf("Retrieve(%+v): %v", q, err)
	}
	return found
}

// uris returns the URIs of the hits, in order.
func uris(found assay.Results) []string {
	list := []string{}
	for _, h := range found.Hits {
		list = append(list, h.URI)
	}
	return list
}

// words is the vocabulary of random passages, the most frequent words first.
var words = strings.Fields(`river castle tower garden wolf copper silver letter winter summer bridge harbour
	ship engine pilot letterbox mountain valley painter novel poet soldier queen king council treaty
	battle island coast storm market bread barley miller farmer school teacher student lamp candle`)

func randomText(r *rand.Rand, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = words[min(r.IntN(len(words)), r.IntN(len(words)))]
	}
	return strings.Join(list, " ") + "."
}

// randomLibrary returns a library with the given number of one-passage documents, each with a
// distinct number in its text.
func randomLibrary(r *rand.Rand, documents int) *library {
	l := newLibrary()
	for i := range documents {
		l.put(fmt.Sprintf("/%03d", i), "", "en", assay.ACL{}, fmt.Sprintf("%s Number %d.", randomText(r, 12+r.IntN(30)), i))
	}
	return l
}

// fillerOf returns a Filler that embeds with e and records the passages that it was called with.
func fillerOf(e llm.Embedder, asked *[][]assay.Passage) retrieve.Filler {
	return func(ctx context.Context, model string, ps []assay.Passage) ([]llm.Vector, error) {
		*asked = append(*asked, slices.Clone(ps))
		texts := make([]string, len(ps))
		for i, p := range ps {
			texts[i] = p.Words()
		}
		return e.Embed(ctx, llm.Passage, texts)
	}
}
