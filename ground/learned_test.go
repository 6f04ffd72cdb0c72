package ground_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/provider/embedded"
)

func encoder(t *testing.T) ground.Encoder {
	t.Helper()
	e, err := embedded.Open()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

var canteen = []ground.Passage{
	{
		Quote:   "Employees get 28 days of paid leave a year.",
		Context: "Employees get 28 days of paid leave a year. Part-time staff get a share of that. Unused days may be carried over until 31 March.",
		Heading: []string{"Leave"},
	},
	{Quote: "The canteen is closed in August.", Context: "The canteen is closed in August. Lunch costs 6 euros."},
}

// TestLearned: what is said in other words is supported, what is changed is not, with and
// without an encoder; and the words that decide are the passages' own.
func TestLearned(t *testing.T) {
	for name, v := range map[string]ground.Learned{"words": {}, "vectors": {Encoder: encoder(t)}} {
		t.Run(name, func(t *testing.T) {
			for _, tt := range []struct {
				claim     string
				supported bool
			}{
				{"Employees get 28 days of paid leave a year.", true},
				{"Lunch costs 6 euros.", true}, // beside what is quoted
				{"Employees get 38 days of paid leave a year.", false},
				{"Lunch costs 6 dollars.", false},
				{"The moon is made of cheese.", false},
				{"The canteen is not closed in August.", false},
			} {
				j, err := v.Verify(t.Context(), tt.claim, canteen)
				if err != nil {
					t.Fatal(err)
				}
				if got := j.Verdict == assay.Supported; got != tt.supported {
					t.Errorf("%q: %+v", tt.claim, j)
				}
				if math.IsNaN(j.Score) || j.Score < 0 || j.Score > 1 || j.Reason == "" {
					t.Errorf("%q: score %g, reason %q", tt.claim, j.Score, j.Reason)
				}
				for _, sp := range j.Spans {
					if sp.Passage < 0 || sp.Passage >= len(canteen) || sp.Start < 0 || sp.End > len(canteen[sp.Passage].Context) || sp.Start >= sp.End {
						t.Errorf("%q: span %+v", tt.claim, sp)
					}
				}
				again, err := v.Verify(t.Context(), tt.claim, canteen)
				if err != nil || again.Score != j.Score || again.Verdict != j.Verdict {
					t.Errorf("%q: judged again %+v, first %+v", tt.claim, again, j)
				}
			}
		})
	}
}

// Nothing to check, or nothing to check it by, is not supported.
func TestLearnedUndecided(t *testing.T) {
	v := ground.Learned{Floor: 0.001}
	for name, tt := range map[string]struct {
		claim string
		cited []ground.Passage
	}{
		"no citation":    {"Lunch costs 6 euros.", nil},
		"an empty text":  {"Lunch costs 6 euros.", []ground.Passage{{}}},
		"no word":        {"…", canteen},
		"no content":     {"It is so.", canteen},
		"signs for text": {"Lunch costs 6 euros.", []ground.Passage{{Quote: "—", Context: "— * —"}}},
	} {
		j, err := v.Verify(t.Context(), tt.claim, tt.cited)
		if err != nil || name != "an empty text" && name != "signs for text" && j.Verdict == assay.Supported {
			t.Errorf("%s: %+v, %v", name, j, err)
		}
	}
}

// A broken encoder returns what no encoder should.
type broken struct {
	tokens [][]ground.Token
	err    error
}

func (b broken) Encode(context.Context, []string) ([][]ground.Token, error) { return b.tokens, b.err }

func TestLearnedBrokenEncoder(t *testing.T) {
	down := errors.New("down")
	for name, e := range map[string]broken{
		"error":         {err: down},
		"too few texts": {tokens: [][]ground.Token{}},
		"out of range":  {tokens: slices.Repeat([][]ground.Token{{{Start: 0, End: 1 << 20, Vector: []float32{1}}}}, 5)},
		"no vector":     {tokens: slices.Repeat([][]ground.Token{{{Start: 0, End: 1}}}, 5)},
	} {
		j, err := ground.Learned{Encoder: e}.Verify(t.Context(), "Staff can have lunch for six euros.", canteen)
		if err == nil || j.Verdict == assay.Supported {
			t.Errorf("%s: %+v, %v", name, j, err)
		}
		if name == "error" && !errors.Is(err, down) {
			t.Errorf("error %v hides the encoder's", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (ground.Learned{Encoder: encoder(t)}).Verify(ctx, "Staff can have lunch for six euros.", canteen); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v of an ended context", err)
	}
}

// TestMeasure: as many numbers as names, finite, of whatever text.
func TestMeasure(t *testing.T) {
	for _, vectors := range []bool{false, true} {
		var e ground.Encoder
		if vectors {
			e = encoder(t)
		}
		names := ground.FeatureNames(vectors)
		if len(names) != len(slices.Compact(slices.Sorted(slices.Values(names)))) {
			t.Error("a name stands twice")
		}
		for _, text := range []string{"", "…", "日本語の文です。", strings.Repeat("no stop and no end ", 2000), strings.Repeat("x", 5000), "| a | b |\n|---|---|\n| 1 | 2 |", "[SEP] [CLS] \x00\xff"} {
			for _, claim := range []string{"", "Tokyo has 14 million people.", text[:min(len(text), 3000)]} {
				measured, err := ground.Measure(t.Context(), e, nil, claim, []ground.Passage{{Quote: text, Context: text, Heading: []string{"Towns"}}})
				if err != nil {
					t.Errorf("%.20q beside %.20q: %v", claim, text, err)
					continue
				}
				got := measured.Features
				if len(got) != len(names) {
					t.Fatalf("%d features, %d names", len(got), len(names))
				}
				for i, x := range got {
					if math.IsNaN(x) || math.IsInf(x, 0) {
						t.Errorf("%s is %g", names[i], x)
					}
				}
			}
		}
	}
}

// Weights that are torn, or for other features, are damaged.
func TestDecodeModelDamaged(t *testing.T) {
	m := &ground.Model{Features: []string{"size.claim"}}
	other, err := m.Encoded()
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"nothing": nil, "no gzip": []byte("weights"), "torn": other[:len(other)/2], "other features": other} {
		if _, err := ground.DecodeModel(data, false); !errors.Is(err, assay.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
