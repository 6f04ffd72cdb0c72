// Package eval measures assay: retrieval on labelled sets in the BEIR layout,
// and whole answers on golden questions. It also fits the calibrated relevance
// that searches report.
package eval

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
)

// A Set is a labelled retrieval set.
type Set struct {
	Name     string
	Passages []Passage
	Queries  []Query // those with at least one relevant passage, in the file's order
	Dropped  int     // judgements that name a query or passage that is not in the set
}

// A Passage is one entry of a corpus.
type Passage struct {
	ID    string `json:"_id"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

// A Query is a question and the passages that are relevant to it.
type Query struct {
	ID       string         `json:"_id"`
	Text     string         `json:"text"`
	Relevant map[string]int `json:"-"` // passage ID → grade, above 0
}

// ReadSet reads a folder in the BEIR layout: corpus.jsonl {_id, title, text},
// queries.jsonl {_id, text} and qrels.tsv (query-id, corpus-id, score, with a
// header), which may also stand in qrels/test.tsv. An ID that occurs twice or a
// line that does not parse is an error that names the file and line; a judgement
// that names an unknown query or passage is dropped and counted.
func ReadSet(dir string) (Set, error) {
	set := Set{Name: filepath.Base(filepath.Clean(dir))}
	known := map[string]bool{}
	err := readLines(filepath.Join(dir, "corpus.jsonl"), func(line []byte) error {
		var p Passage
		if err := json.Unmarshal(line, &p); err != nil {
			return err
		}
		if p.ID == "" || known[p.ID] {
			return fmt.Errorf("passage ID %q is empty or occurs twice", p.ID)
		}
		known[p.ID] = true
		set.Passages = append(set.Passages, p)
		return nil
	})
	if err != nil {
		return Set{}, err
	}
	var queries []Query
	at := map[string]int{}
	err = readLines(filepath.Join(dir, "queries.jsonl"), func(line []byte) error {
		var q Query
		if err := json.Unmarshal(line, &q); err != nil {
			return err
		}
		if _, twice := at[q.ID]; q.ID == "" || twice {
			return fmt.Errorf("query ID %q is empty or occurs twice", q.ID)
		}
		at[q.ID] = len(queries)
		q.Relevant = map[string]int{}
		queries = append(queries, q)
		return nil
	})
	if err != nil {
		return Set{}, err
	}
	qrels := filepath.Join(dir, "qrels.tsv")
	if _, err := os.Stat(qrels); errors.Is(err, os.ErrNotExist) {
		qrels = filepath.Join(dir, "qrels", "test.tsv")
	}
	header := true
	err = readLines(qrels, func(line []byte) error {
		f := strings.Split(string(line), "\t")
		if header {
			header = false
			if len(f) >= 3 && f[0] == "query-id" {
				return nil
			}
		}
		if len(f) < 3 {
			return fmt.Errorf("want query-id, corpus-id and score, separated by tabs")
		}
		grade, err := strconv.Atoi(strings.TrimSpace(f[len(f)-1]))
		if err != nil {
			return fmt.Errorf("score %q is not a whole number", f[len(f)-1])
		}
		i, ok := at[f[0]]
		if !ok || !known[f[len(f)-2]] {
			set.Dropped++
			return nil
		}
		if grade > 0 {
			queries[i].Relevant[f[len(f)-2]] = grade
		}
		return nil
	})
	if err != nil {
		return Set{}, err
	}
	for _, q := range queries {
		if len(q.Relevant) > 0 {
			set.Queries = append(set.Queries, q)
		}
	}
	if len(set.Queries) == 0 {
		return Set{}, fmt.Errorf("%s: no query has a relevant passage: %w", dir, assay.ErrInvalid)
	}
	return set, nil
}

// readLines calls line for each line of a file that is not blank.
func readLines(path string, line func([]byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%w: %w", err, assay.ErrInvalid)
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<20)
	for n := 1; ; n++ {
		text, err := r.ReadBytes('\n')
		if len(strings.TrimSpace(string(text))) > 0 {
			if err := line([]byte(strings.TrimRight(string(text), "\r\n"))); err != nil {
				return fmt.Errorf("%s:%d: %w: %w", path, n, err, assay.ErrInvalid)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
	}
}
