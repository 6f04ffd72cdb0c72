package retrieve_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/retrieve"
)

var update = flag.Bool("update", false, "write the golden ranks anew")

// A function is source code without comments. Some have a query: the first sentence of the doc
// comment, without the function's name.
type function struct{ ID, Query, Text string }

func readFunctions(t *testing.T) []function {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "functions.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []function
	for d := json.NewDecoder(f); d.More(); {
		var fn function
		if err := d.Decode(&fn); err != nil {
			t.Fatal(err)
		}
		all = append(all, fn)
	}
	return all
}

// TestCode compares the ranking of functions by words with golden ranks; rank 0 means not found.
func TestCode(t *testing.T) {
	l := newLibrary()
	functions := readFunctions(t)
	for _, fn := range functions {
		l.put(fn.ID, "", "", assay.ACL{}, fn.Text)
	}
	r := l.open(t, retrieve.Config{})
	var got strings.Builder
	gain, byBM25, queries := 0.0, 0.0, 0
	for _, fn := range functions {
		if fn.Query == "" {
			continue
		}
		found := retrieved(t, r, assay.Query{Text: fn.Query, Mode: assay.ModeText})
		rank := slices.Index(uris(found), fn.ID) + 1
		fmt.Fprintf(&got, "%2d %s\n", rank, fn.ID)
		gain += ndcg10(rank)
		slices.SortStableFunc(found.Hits, func(a, b assay.Hit) int { return -compare(a.Scores.BM25, b.Scores.BM25) })
		byBM25 += ndcg10(slices.Index(uris(found), fn.ID) + 1)
		queries++
	}
	fmt.Fprintf(&got, "nDCG@10 %.3f, of BM25 %.3f\n", gain/float64(queries), byBM25/float64(queries))
	golden := filepath.Join("testdata", "functions.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the ranks are not those of %s; got\n%s\nwant\n%s", golden, got.String(), want)
	}
}

// ndcg10 returns the nDCG@10 of a query whose only relevant passage is at the given rank.
func ndcg10(rank int) float64 {
	if rank < 1 || rank > 10 {
		return 0
	}
	return 1 / math.Log2(float64(rank)+1)
}

func compare(a, b *float64) int {
	switch {
	case *a < *b:
		return -1
	case *a > *b:
		return 1
	}
	return 0
}

// TestCodeAmongProse checks that code ranks below prose with the same words if most candidates are
// prose, and level with it if most are code.
func TestCodeAmongProse(t *testing.T) {
	const query = "close the listener"
	for _, tt := range []struct {
		name, rest string
		want       string
	}{
		{"prose", "The listener number %d has a name and an address.", "/prose"},
		{"code", "func name%d(listener string) {\n\tx := f(y)\n}", "/code"},
	} {
		l := newLibrary()
		l.put("/code", "", "", assay.ACL{}, "func closeAll() {\n\tclose(listener)\n\tclose(listener)\n}")
		l.put("/prose", "", "", assay.ACL{}, "You close what was opened before and then no listener is left any more in the process.")
		for i := range 8 {
			l.put(fmt.Sprint("/", i), "", "", assay.ACL{}, fmt.Sprintf(tt.rest, i))
		}
		found := retrieved(t, l.open(t, retrieve.Config{}), assay.Query{Text: query})
		if got := uris(found)[0]; got != tt.want {
			t.Errorf("among %s %s is first, want %s", tt.name, got, tt.want)
		}
	}
}
