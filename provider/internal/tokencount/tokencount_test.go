package tokencount_test

import (
	"bufio"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-rag/assay/provider/embedded"
	"github.com/assay-rag/assay/provider/internal/tokencount"
)

// TestEstimate checks texts with many tokens for their length against lower bounds from the
// vocabularies of OpenAI, Google and BERT.
func TestEstimate(t *testing.T) {
	for text, least := range map[string]int{
		"": 0, "a": 1, "1234567890": 10, "2026-11-20T14:13:00Z": 19, "{}[]();:": 8, "漢字漢字": 4, "😀😀": 2,
		"deadbeef0123456789abcdef": 16, "aB3dE5fG7hI9jK1l": 12, "Donaudampfschifffahrtsgesellschaft": 9, "https://example.org/a/b?c=d&e=f": 16,
	} {
		if got := tokencount.Estimate(text); got < least {
			t.Errorf("Estimate(%q) = %d, want at least %d", text, got, least)
		}
	}
}

// TestEstimateOfPassages checks that the estimate is cautious: almost no passage of the shared
// corpora has more tokens with BERT's vocabulary, which yields more than larger vocabularies do. It
// also checks that the estimate for prose is at most twice the actual number.
func TestEstimateOfPassages(t *testing.T) {
	dir := os.Getenv("ASSAY_TESTDATA")
	if dir == "" {
		t.Skip("ASSAY_TESTDATA does not say where the corpora are")
	}
	encoder, err := embedded.Open()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "data", "corpora", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Skip("no corpora: ", err)
	}
	for _, file := range files {
		passages, under, estimated, real := 0, 0, 0, 0
		for _, text := range sample(t, file) {
			has, says := encoder.Tokens(text), tokencount.Estimate(text)
			passages, estimated, real = passages+1, estimated+says, real+has
			if says < has {
				under++
			}
		}
		t.Logf("%s: %d passages, %.2f of their tokens, %d under", filepath.Base(file), passages, float64(estimated)/float64(real), under)
		if under*200 > passages || estimated > 2*real {
			t.Errorf("%s: of %d passages %d have more tokens than estimated; in all %d, estimated %d", file, passages, under, real, estimated)
		}
	}
}

// sample returns passages of 1,500 bytes from documents of a corpus.
func sample(t *testing.T, file string) []string {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var texts []string
	rng := rand.New(rand.NewPCG(1, 2))
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() && len(texts) < 400 {
		var doc struct{ Text string }
		if rng.IntN(4) > 0 || json.Unmarshal(lines.Bytes(), &doc) != nil {
			continue
		}
		for n := 0; len(doc.Text) > 0 && n < 8; n++ {
			end := min(len(doc.Text), 1500)
			texts, doc.Text = append(texts, strings.ToValidUTF8(doc.Text[:end], "")), doc.Text[end:]
		}
	}
	return texts
}
