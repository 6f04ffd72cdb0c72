package ground_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
)

// TestLocalOnPublicClaims holds the local verifier to its precision on claims by
// others: of those that it calls supported, how many are. It calls few so.
func TestLocalOnPublicClaims(t *testing.T) {
	data := os.Getenv("ASSAY_TESTDATA")
	if data == "" {
		t.Skip("ASSAY_TESTDATA is not set: it names a folder that holds data/grounding")
	}
	tests := []struct {
		file, label string
		precision   float64 // at least
	}{
		{"scifact-train.jsonl", "SUPPORT", 0.85},
		{"wice-claim-dev.jsonl", "supported", 0.9},
	}
	for _, tt := range tests {
		f, err := os.Open(filepath.Join(data, "data", "grounding", tt.file))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var supported, right, all int
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			var c struct {
				Claim    string
				Evidence []string
				Label    string
			}
			if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
				t.Fatal(err)
			}
			text := strings.Join(c.Evidence, "\n")
			start, end := ground.Locate(c.Claim, text)
			j, err := ground.Local{}.Verify(context.Background(), c.Claim, []ground.Passage{{Quote: text[start:end], Context: text}})
			if err != nil {
				t.Fatal(err)
			}
			if c.Label == tt.label {
				all++
			}
			if j.Verdict == assay.Supported {
				supported++
				if c.Label == tt.label {
					right++
				}
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
		precision := float64(right) / float64(max(supported, 1))
		t.Logf("%s: %d called supported, precision %.2f, recall %.2f", tt.file, supported, precision, float64(right)/float64(all))
		if supported == 0 || precision < tt.precision {
			t.Errorf("%s: precision %.2f of %d, want %.2f", tt.file, precision, supported, tt.precision)
		}
	}
}
