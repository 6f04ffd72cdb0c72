package ground_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
)

// TestLocalOnPublicClaims holds the local verifier against claims by others that are
// not supported by what they cite, many of them made by a small change of one that is:
// it must support none of these. Of those that are supported it finds next to none,
// since they are put into other words.
func TestLocalOnPublicClaims(t *testing.T) {
	data := os.Getenv("ASSAY_TESTDATA")
	if data == "" {
		t.Skip("ASSAY_TESTDATA is not set: it names a folder that holds data/grounding")
	}
	for _, tt := range []struct{ file, label string }{
		{"scifact-train.jsonl", "SUPPORT"},
		{"wice-claim-dev.jsonl", "supported"},
		{"summedits.jsonl", "consistent"},
	} {
		f, err := os.Open(filepath.Join(data, "data", "grounding", tt.file))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var found, wrong, are, all int
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			var c struct {
				Claim, Label string
				Evidence     json.RawMessage // a text or sentences
			}
			if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
				t.Fatal(err)
			}
			var text string
			var sentences []string
			if json.Unmarshal(c.Evidence, &text) != nil {
				if err := json.Unmarshal(c.Evidence, &sentences); err != nil {
					t.Fatal(err)
				}
				text = strings.Join(sentences, "\n")
			}
			all++
			if c.Label == tt.label {
				are++
			}
			if j := verdict(t, c.Claim, text, nil); j.Verdict == assay.Supported {
				if c.Label == tt.label {
					found++
				} else {
					wrong++
					t.Errorf("%s: %q is called supported", tt.file, c.Claim)
				}
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d claims; %d of the %d that are supported are called so, %d of the others", tt.file, all, found, are, wrong)
	}
}
