package main

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay/eval/testset"
)

const source = `package p

// Open opens the file that path names. It fails where there is none.
func Open(path string) error {
	// A comment.
	if path == "" { /* another */
		return errors.New("there is no path to open")
	}
	return nil // and one more
}

// Short says something of five words.
func Short() {}

// Close closes it.
func Close(path string) error {
	return errors.New("nothing can be closed, whatever it is called")
}

func undocumented(path string) error {
	return errors.New("nothing says what this is about, in any comment")
}

// A Mode says in which ways one may open a file.
type Mode struct {
	Name     string // of the mode
	Read     bool
	Write    bool
	Truncate bool
}
`

func TestReadGo(t *testing.T) {
	tree := fstest.MapFS{}
	for _, name := range []string{"p/p.go", "q/q.go", "p/p_test.go", "p/testdata/x.go"} {
		tree[name] = &fstest.MapFile{Data: []byte(source)}
	}
	var sets []testset.Set
	for half := range 2 {
		set, err := readGo("set", tree, bounds{passages: 10, queries: 1, half: half})
		if err != nil {
			t.Fatal(err)
		}
		sets = append(sets, set)
	}
	texts, queries := map[string]string{}, 0
	for _, set := range sets {
		for _, p := range set.Passages {
			texts[p.ID] = p.Text
		}
		queries += len(set.Queries)
	}
	open := "func Open(path string) error {\n\n\tif path == \"\" {\n\t\treturn errors.New(\"there is no path to open\")\n\t}\n\treturn nil\n}"
	mode := "type Mode struct {\n\tName     string\n\tRead     bool\n\tWrite    bool\n\tTruncate bool\n}"
	want := map[string]string{"p/p.go:Open": open, "p/p.go:Mode": mode, "q/q.go:Open": open, "q/q.go:Mode": mode}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("passages (-want +got):\n%s", diff)
	}
	if queries != 2 {
		t.Errorf("%d queries, want one of each half", queries)
	}
}

func TestQueryOf(t *testing.T) {
	for comment, want := range map[string]string{
		"Open opens the file that path names. It fails.": "opens the file that path names.",
		"Open opens it.": "",
		"Deprecated: use the function of os for that.": "",
		"": "",
	} {
		if got := queryOf(comment, "Open"); got != want {
			t.Errorf("queryOf(%q) = %q, want %q", comment, got, want)
		}
	}
}
