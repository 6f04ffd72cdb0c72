// Command codeset makes a labelled set of source code for `assay eval retrieval`, in the BEIR
// layout. The passages are the functions and types of a tree of Go packages, without comments. The
// queries are the first sentences of their doc comments, without the name of the function, since
// questions seldom contain it.
//
//	go run ./eval/codeset -out godev "$(go env GOROOT)/src"
//
// The same tree gives the same set. python.py does the same for a tree of Python modules.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/assay-rag/assay/eval/testset"
)

func main() {
	var b bounds
	out := flag.String("out", "", "write to this `folder`")
	flag.IntVar(&b.half, "half", 0, "`half` of the packages, 0 or 1")
	flag.IntVar(&b.passages, "passages", 1500, "at most `n` passages")
	flag.IntVar(&b.queries, "queries", 400, "at most `n` queries")
	flag.Parse()
	if flag.NArg() != 1 || *out == "" {
		fmt.Fprintln(os.Stderr, "usage: codeset -out FOLDER [flags] TREE")
		flag.PrintDefaults()
		os.Exit(2)
	}
	set, err := readGo(filepath.Base(*out), os.DirFS(flag.Arg(0)), b)
	if err == nil {
		err = write(*out, set)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "codeset:", err)
		os.Exit(1)
	}
}

// write writes a set in the layout that testset.ReadSet reads.
func write(folder string, set testset.Set) error {
	type entry struct {
		ID    string `json:"_id"`
		Title string `json:"title,omitempty"`
		Text  string `json:"text"`
	}
	var passages, queries []entry
	for _, p := range set.Passages {
		passages = append(passages, entry{p.ID, p.Title, p.Text})
	}
	for _, q := range set.Queries {
		queries = append(queries, entry{ID: q.ID, Text: q.Text})
	}
	lines := func(entries []entry) func(*bufio.Writer) error {
		return func(w *bufio.Writer) error {
			e := json.NewEncoder(w)
			for _, x := range entries {
				if err := e.Encode(x); err != nil {
					return err
				}
			}
			return nil
		}
	}
	judgements := func(w *bufio.Writer) error {
		fmt.Fprintln(w, "query-id\tcorpus-id\tscore")
		for _, q := range set.Queries {
			for id, grade := range q.Relevant {
				fmt.Fprintf(w, "%s\t%s\t%d\n", q.ID, id, grade)
			}
		}
		return nil
	}
	return errors.Join(
		os.MkdirAll(folder, 0o777),
		writeFile(filepath.Join(folder, "corpus.jsonl"), lines(passages)),
		writeFile(filepath.Join(folder, "queries.jsonl"), lines(queries)),
		writeFile(filepath.Join(folder, "qrels.tsv"), judgements),
	)
}

func writeFile(path string, content func(*bufio.Writer) error) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f)
	return errors.Join(content(w), w.Flush())
}
