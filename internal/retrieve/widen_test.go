package retrieve

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
)

const leave = "Leave is paid. Special leave is granted for:\n\n- moving (one day)\n- weddings (two days)\n- strikes\n\nAsk early. Nobody is refused."

// spanOf returns the part of a document from one word to another as a hit.
func spanOf(d assay.Document, from, to string) assay.Hit {
	start, end := strings.Index(d.Text, from), strings.Index(d.Text, to)+len(to)
	return assay.Hit{Chunk: assay.Chunk{ID: from, Document: d.ID, Version: d.Version, Start: start, End: end, Kind: assay.ChunkProse}, Text: d.Text[start:end], Line: 9}
}

func TestWidened(t *testing.T) {
	d := assay.Document{ID: "d", Version: "v", Text: leave, Anchors: []assay.Anchor{{Line: 1}}}
	for _, tt := range []struct{ from, to, want string }{
		{"Special", "granted for:", "Special leave is granted for:\n\n- moving (one day)\n- weddings (two days)\n- strikes"},
		{"Special", "one day)", "Special leave is granted for:\n\n- moving (one day)\n- weddings (two days)\n- strikes"},
		{"- weddings", "early.", "Special leave is granted for:\n\n- moving (one day)\n- weddings (two days)\n- strikes\n\nAsk early."},
		{"Ask", "refused.", "Ask early. Nobody is refused."},
		{"Leave", "paid.", "Leave is paid."},
	} {
		h := spanOf(d, tt.from, tt.to)
		if cutInList(h) {
			widened(&h, d)
		}
		if h.Text != tt.want || d.Text[h.Chunk.Start:h.Chunk.End] != h.Text {
			t.Errorf("%q to %q is widened to %q, want %q", tt.from, tt.to, h.Text, tt.want)
		}
		if strings.HasPrefix(h.Text, "Special") && tt.from == "- weddings" && h.Line != 1 {
			t.Errorf("it begins in line %d, want 1", h.Line)
		}
	}
	other := spanOf(d, "Special", "granted for:")
	other.Text = "another version"
	if widened(&other, d); other.Text != "another version" {
		t.Errorf("what the document does not say is widened to %q", other.Text)
	}
}

func FuzzWidened(f *testing.F) {
	f.Add(leave, 20, 60)
	f.Add("a:\n\n- ä\n- b\xff\n\n1. c", 0, 2)
	f.Fuzz(func(t *testing.T, text string, start, end int) {
		if start < 0 || end <= start || end > len(text) {
			return
		}
		h := assay.Hit{Chunk: assay.Chunk{Start: start, End: end, Kind: assay.ChunkProse}, Text: text[start:end]}
		cutInList(h)
		widened(&h, assay.Document{Text: text})
		if h.Chunk.Start > start || h.Chunk.End < end || h.Text != text[h.Chunk.Start:h.Chunk.End] {
			t.Errorf("[%d, %d) of %q is widened to [%d, %d)", start, end, text, h.Chunk.Start, h.Chunk.End)
		}
	})
}

// documentsOf is a Content of whole documents by ID.
type documentsOf map[string]assay.Document

func (d documentsOf) Passages(context.Context, []string) ([]assay.Passage, error) { return nil, nil }
func (d documentsOf) Version(_ context.Context, id, version string) (assay.Document, error) {
	if id == "broken" {
		return assay.Document{}, errors.New("broken")
	}
	if doc, ok := d[id]; ok && doc.Version == version {
		return doc, nil
	}
	return assay.Document{}, assay.ErrNotFound
}

func TestWiden(t *testing.T) {
	d := assay.Document{ID: "d", Version: "v", Text: leave}
	widen := func(h assay.Hit) (string, error) {
		s := &search{Config: Config{Content: documentsOf{"d": d}}, found: []*candidate{{hit: h}}}
		err := s.widen(t.Context())
		return s.found[0].hit.Text, err
	}
	h := spanOf(d, "Special", "granted for:")
	if got, err := widen(h); err != nil || !strings.HasSuffix(got, "- strikes") {
		t.Errorf("%q, %v", got, err)
	}
	h.Chunk.Version = "gone"
	if got, err := widen(h); err != nil || got != h.Text {
		t.Errorf("of a version that is gone: %q, %v", got, err)
	}
	h.Chunk.Document = "broken"
	if _, err := widen(h); err == nil {
		t.Error("an error of the store is lost")
	}
}

// TestReread checks that hits that were read get the Reader's relevance and are reordered by it.
func TestReread(t *testing.T) {
	hits := func() []*candidate {
		var out []*candidate
		for _, text := range []string{"bananas", "port 80", "port maybe"} {
			h := assay.Hit{Text: text, Scores: assay.Scores{Relevance: 0.5}}
			out = append(out, &candidate{hit: h})
		}
		return out
	}
	r := &llmtest.Reader{OnRead: func(_ string, p llm.Excerpt) (llm.Reading, error) {
		switch p.Text {
		case "port 80":
			return llm.Reading{Relevance: 0.99}, nil
		case "port maybe":
			return llm.Reading{Relevance: 0.6}, nil
		}
		return llm.Reading{Relevance: 0.01}, nil
	}}
	s := &search{Config: Config{Reader: r}, found: hits(), query: assay.Query{Text: "Which port?"}}
	if err := s.reread(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"port 80": 0.99, "port maybe": 0.6, "bananas": 0.01}
	for i, c := range s.found {
		if got := c.hit.Scores.Relevance; got != readRelevance(llm.Reading{Relevance: want[c.hit.Text]}, 0.5) {
			t.Errorf("%q has relevance %v", c.hit.Text, got)
		}
		if i > 0 && readScore(s.found[i-1].hit, want) < readScore(c.hit, want) {
			t.Errorf("%q is before %q", s.found[i-1].hit.Text, c.hit.Text)
		}
	}
	if got := ReadScore(assay.Hit{Scores: assay.Scores{Fused: new(0.5), Rerank: new(0.25)}}, 0.5, 0.5); got != 0.5 {
		t.Errorf("score %v of a reranked hit, want 0.5", got)
	}

	s = &search{Config: Config{Reader: r, Ranker: decider{}}, found: hits(), query: assay.Query{Text: "Which port?"}}
	if err := s.reread(t.Context()); err != nil || s.found[0].hit.Text != "bananas" || s.found[1].hit.Scores.Relevance < 0.9 {
		t.Errorf("after a ranker that decides: %v, first %q, the second's relevance %v", err, s.found[0].hit.Text, s.found[1].hit.Scores.Relevance)
	}
	found := hits()
	found[0].hit.Text = "func bananas() {\n\tport = 80\n}"
	s = &search{Config: Config{Reader: r}, found: found, query: assay.Query{Text: "Which port?"}}
	if err := s.reread(t.Context()); err != nil || s.found[0] != found[0] || s.found[0].hit.Scores.Relevance != 0.5 {
		t.Errorf("code: %v, first %q with relevance %v", err, s.found[0].hit.Text, s.found[0].hit.Scores.Relevance)
	}

	r.OnRead = func(string, llm.Excerpt) (llm.Reading, error) { return llm.Reading{}, errors.New("broken") }
	s = &search{Config: Config{Reader: r}, found: hits()}
	if err := s.reread(t.Context()); err != nil || s.found[0].hit.Text != "bananas" || s.found[0].hit.Scores.Relevance != 0.5 || len(s.results.Notes) != 1 {
		t.Errorf("by a reader that fails: %v, notes %q", err, s.results.Notes)
	}
	s = &search{Config: Config{Reader: r}, found: hits(), query: assay.Query{Unranked: true}}
	if err := s.reread(t.Context()); err != nil || len(s.results.Notes) > 0 {
		t.Errorf("unranked hits are read: %v, notes %q", err, s.results.Notes)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s = &search{Config: Config{Reader: &llmtest.Reader{}}, found: hits()}
	if err := s.reread(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

// A decider is a Ranker whose order is final.
type decider struct{ Ranker }

func (decider) Decides() bool { return true }

// readScore returns the ReadScore of a hit whose text maps to the given relevance.
func readScore(h assay.Hit, relevance map[string]float64) float64 {
	return ReadScore(h, relevance[h.Text], ReadWeight)
}
