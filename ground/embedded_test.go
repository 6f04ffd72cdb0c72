package ground

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay/internal/learn"
)

// A letters encoder gives words vectors that depend on their letters alone.
type letters struct{ dim int }

func (l letters) Encode(_ context.Context, texts []string) ([][]Token, error) {
	out := make([][]Token, len(texts))
	for i, text := range texts {
		at := 0
		for _, w := range strings.Fields(text) {
			at += strings.Index(text[at:], w)
			h := fnv.New64a()
			h.Write([]byte(strings.ToLower(strings.Trim(w, ".,"))))
			random := rand.New(rand.NewPCG(h.Sum64(), 1))
			v := make([]float32, l.dim)
			for k := range v {
				v[k] = float32(random.NormFloat64())
			}
			unit(v)
			out[i] = append(out[i], Token{at, at + len(w), v})
			at += len(w)
		}
	}
	return out, nil
}

func testEdits(dim int) *Edits {
	random := rand.New(rand.NewPCG(2, 2))
	space := func(width int) Space {
		s := Space{Mean: make([]float32, dim)}
		for range width {
			row := make([]float32, dim)
			for k := range row {
				row[k] = float32(random.NormFloat64())
			}
			s.Rows = append(s.Rows, row)
		}
		return s
	}
	e := &Edits{Context: space(EditWidth), Alone: space(EditWidth), Whole: space(WholeWidth)}
	shape := EditShape()
	bags := make([][][]float32, len(shape.Towers))
	for i := range bags {
		bags[i] = [][]float32{make([]float32, shape.Towers[i].ItemSize())}
	}
	bag := learn.TrainBag(shape, []learn.BagExample{{Bags: bags, Class: EditSupported, Weight: 1}}, learn.BagConfig{Epochs: 1, Batch: 1, Rate: 0.01, Seed: 1})
	e.Bags = []*learn.Bag{bag}
	return e
}

func cite(text string) []Passage { return []Passage{{Quote: text, Context: text}} }

func TestMeasureItems(t *testing.T) {
	ctx, e := context.Background(), testEdits(48)
	const claim, text = "The mill closed in 1950.", "Flour was sold there. The mill closed in 1951, they say."
	measured, err := Measure(ctx, letters{48}, e, claim, cite(text))
	if err != nil {
		t.Fatal(err)
	}
	items := measured.Items
	if len(items) != 3 || len(items[0]) != 4 || len(items[1]) != 4 || len(items[2]) != 2 {
		t.Fatalf("bags of %d, %d, %d items, want the four words that say something on both sides and two sentences", len(items[0]), len(items[1]), len(items[2]))
	}
	for k, bag := range items {
		for i, item := range bag {
			if want := EditShape().Towers[k].ItemSize(); len(item) != want {
				t.Errorf("item %d of bag %d has %d numbers, want %d", i, k, len(item), want)
			}
		}
	}
	scalars := func(i int) []float32 { return items[0][i][4*EditWidth:] }
	if s := scalars(0); s[0] < 0.999 || s[7] != 1 || s[11] != 0 {
		t.Errorf(`"mill" has %v, want its own word as the likest`, s)
	}
	if s := scalars(3); s[8] != 1 || s[11] != 1 || s[7] != 0 {
		t.Errorf(`"1950" has %v, want a number that the text has not`, s)
	}
	again, err := Measure(ctx, letters{48}, e, claim, cite(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(measured, again); diff != "" {
		t.Errorf("items differ the second time:\n%s", diff)
	}
}

// Where there is nothing to compare, or an encoder of another size, the networks say
// nothing.
func TestEditsSilent(t *testing.T) {
	for _, test := range []struct {
		name        string
		dim         int
		claim, text string
	}{
		{"no evidence", 48, "The mill closed.", ""},
		{"no word in the claim", 48, "…", "The mill closed."},
		{"another encoder", 16, "The mill closed.", "The mill closed."},
	} {
		e := testEdits(48)
		measured, err := Measure(context.Background(), letters{test.dim}, e, test.claim, cite(test.text))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		for i, name := range FeatureNames(true) {
			if strings.HasPrefix(name, "edit.") && measured.Features[i] != 0 {
				t.Errorf("%s: %s is %g, want 0", test.name, name, measured.Features[i])
			}
		}
	}
}

func TestEditsEncoded(t *testing.T) {
	e := testEdits(48)
	data, err := e.Encoded()
	if err != nil {
		t.Fatal(err)
	}
	back, err := DecodeEdits(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e, back); diff != "" {
		t.Errorf("decoded, they differ:\n%s", diff)
	}
	if _, err := DecodeEdits(data[:len(data)/2]); err == nil {
		t.Error("half of them decode without an error")
	}
	e.Bags[0].Layers[1] = e.Bags[0].Layers[1][1:]
	if data, err = e.Encoded(); err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeEdits(data); err == nil {
		t.Error("a network that lacks a row decodes without an error")
	}
}
