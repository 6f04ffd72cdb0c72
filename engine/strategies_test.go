package engine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/provider/embedded"
	"github.com/assay-rag/assay/strategy"
)

// TestStrategiesOnRealDocuments asks one question about real documents with each strategy, offline,
// with the encoder and the reader in the binary and with local roles. The managed service is a fake
// that quotes the same document.
func TestStrategiesOnRealDocuments(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes some seconds")
	}
	page := filepath.Join(goRoot(t), "doc", "go_mem.html")
	if _, err := os.Stat(page); err != nil {
		t.Skip("the document is Go's own, which is not here: ", err)
	}
	const said = "A receive from an unbuffered channel is synchronized before the completion of the corresponding send on that channel."
	e := openConfig(t, Config{
		Dir: t.TempDir(), Encoders: embeddedEncoder{}, Reader: embedded.OpenReader, NoBackground: true, NoCache: true,
		Managed: stillService{strategy.ManagedAnswer{Text: said, Parts: []strategy.ManagedPart{
			{Start: 0, End: len(said), Hits: []assay.Hit{retrieved("s3://bucket/memory.txt", said)}},
		}}},
	})
	ingestPaths(t, e, page)
	if v, err := e.Embed(t.Context(), nil); err != nil || v.Missing() > 0 {
		t.Fatalf("%+v, %v", v, err)
	}
	const whole = "What is a receive from an unbuffered channel synchronized before?"
	others := map[string]struct{ question, says string }{ // for the strategies that are made for other questions
		"adaptive": {"What is the difference between a buffered channel and an unbuffered channel?", "a buffered channel"},
	}
	tested := 0
	for _, name := range strategy.Names() {
		t.Run(name, func(t *testing.T) {
			question, says := whole, "unbuffered channel"
			if other, ok := others[name]; ok {
				question, says = other.question, other.says
			}
			a, err := e.Answer(t.Context(), assay.Local(), Request{Question: question, Strategy: name, Budget: assay.Budget{Wall: 10 * time.Minute}})
			if err != nil {
				t.Fatal(err)
			}
			if incomplete := a.Status != assay.Answered && name != "adaptive"; incomplete || len(a.Claims) == 0 {
				t.Errorf("%s, %s: %q (%s)", a.Strategy, a.Status, a.Text, a.Justification)
			}
			if !strings.Contains(a.Text, says) || !strings.Contains(a.Text, "[1]") {
				t.Errorf("the answer is %q", a.Text)
			}
			for _, c := range a.Citations {
				checkQuote(t, e, c)
			}
			if name == "adaptive" {
				checkSubAnswers(t, e, a)
			}
			if name != "managed" && !slices.ContainsFunc(a.Citations, func(c assay.Citation) bool { return strings.Contains(c.Quote, says) }) {
				t.Errorf("no citation quotes the words: %+v", a.Citations)
			}
			replays(t, e, a.Run)
			tested++
		})
	}
	if tested != 15 {
		t.Errorf("%d strategies were asked, want all fifteen", tested)
	}
}

// checkSubAnswers checks that an answer keeps the cited answers to both sides of a comparison.
func checkSubAnswers(t *testing.T, e *Engine, a assay.Answer) {
	t.Helper()
	if a.Review == nil || len(a.Review.SubAnswers) != 2 {
		t.Fatalf("review %+v, want two sub-answers", a.Review)
	}
	for _, sub := range a.Review.SubAnswers {
		if sub.Question == "" || sub.Answer == "" || len(sub.Claims) == 0 || len(sub.Citations) == 0 {
			t.Errorf("sub-answer %+v", sub)
		}
		for _, c := range sub.Citations {
			checkQuote(t, e, c)
		}
	}
}

// checkQuote checks that a citation quotes the stored bytes that it names.
func checkQuote(t *testing.T, e *Engine, c assay.Citation) {
	t.Helper()
	if c.Origin != assay.FromDocuments {
		return // not stored
	}
	d, err := e.content.Version(t.Context(), c.Document, c.Version)
	if err != nil {
		t.Fatal(err)
	}
	if c.Quote == "" || d.Text[c.Start:c.End] != c.Quote {
		t.Errorf("citation %d quotes %q, which is not at [%d, %d)", c.Number, c.Quote, c.Start, c.End)
	}
}
