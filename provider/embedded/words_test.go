package embedded

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEncode: each word has a token with its bytes and a vector that knows its sentence.
func TestEncode(t *testing.T) {
	e, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{"The café's leave-policy: 1,000 days.", "", "the name [SEP] is special", "日本 and naïveté²", "a\u200bb"}
	all, err := e.Encode(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"The", "café", "'", "s", "leave", "-", "policy", ":", "1", ",", "000", "days", "."}, nil, nil, nil, nil,
	}
	for i, tokens := range all {
		var words []string
		end := 0
		for _, tok := range tokens {
			if tok.Start < end || tok.End <= tok.Start || tok.End > len(texts[i]) {
				t.Fatalf("%q has the token [%d, %d) after %d", texts[i], tok.Start, tok.End, end)
			}
			end = tok.End
			words = append(words, texts[i][tok.Start:tok.End])
			square := 0.0
			for _, x := range tok.Vector {
				square += float64(x) * float64(x)
			}
			if math.Abs(square-1) > 1e-3 {
				t.Errorf("%q of %q has a vector of length %g", words[len(words)-1], texts[i], math.Sqrt(square))
			}
		}
		if want[i] != nil {
			if d := cmp.Diff(want[i], words); d != "" {
				t.Error(d)
			}
		}
		t.Logf("%q", words)
	}
	if len(all[1]) != 0 || len(all[2]) == 0 || len(all[3]) == 0 {
		t.Errorf("%d, %d and %d tokens", len(all[1]), len(all[2]), len(all[3]))
	}
}
