// Package testset reads labelled questions. A Set is a retrieval set in the BEIR layout: passages,
// queries and judgements. A Dataset is questions for whole answers, with their labels.
package testset

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
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
	Queries  []Query // with at least one relevant passage, in the file's order
	Dropped  int     // judgements that name an unknown query or passage

	// Unanswered are the queries without a relevant passage.
	Unanswered []Query
}

// A Passage is one entry of a corpus.
type Passage struct {
	ID    string
	Title string // may be empty
	Text  string
}

// A Query is a question with its relevant passages.
type Query struct {
	ID       string
	Text     string
	Relevant map[string]int // passage ID → grade, above 0
	Answers  []string       // reference answers, if the set has them
	Kind     string         // type of the question, as the set names it; may be empty
}

// maxGrade is the highest grade of a judgement. The gain doubles with each grade, and sums of gains
// have to stay exact.
const maxGrade = 30

// ReadSet reads a folder in the BEIR layout: corpus.jsonl {_id, title, text}, queries.jsonl {_id,
// text, metadata} and the judgements (query-id, corpus-id, score, with or without a header). The
// judgements are in qrels.tsv, qrels/test.tsv, qrels/dev.tsv or qrels/train.tsv, and the first of
// these that exists is read. IDs may be numbers, titles may be missing, and lines may be repeated.
// A line that does not parse and an ID with two texts are errors that name the file and line. A
// judgement that names an unknown query or passage is dropped and counted.
func ReadSet(dir string) (Set, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return Set{}, fmt.Errorf("%s is a file; a labelled set is a folder with corpus.jsonl, queries.jsonl and judgements: %w", dir, assay.ErrInvalid)
	}
	set := Set{Name: setName(dir)}
	at := map[string]int{} // passage ID → index
	err := readLines(filepath.Join(dir, "corpus.jsonl"), func(line []byte) error {
		var p record
		if err := json.Unmarshal(line, &p); err != nil {
			return err
		}
		passage := Passage{ID: string(p.ID), Title: p.Title, Text: p.Text}
		if i, twice := at[passage.ID]; twice && set.Passages[i] == passage {
			return nil
		} else if passage.ID == "" || twice {
			return fmt.Errorf("passage ID %q is empty or occurs twice, with two texts", passage.ID)
		}
		at[passage.ID] = len(set.Passages)
		set.Passages = append(set.Passages, passage)
		return nil
	})
	if err != nil {
		return Set{}, err
	}
	queries, err := readQueries(filepath.Join(dir, "queries.jsonl"))
	if err != nil {
		return Set{}, err
	}
	judgements, err := judgementsFile(dir)
	if err != nil {
		return Set{}, err
	}
	if set.Dropped, err = readJudgements(judgements, queries, at); err != nil {
		return Set{}, err
	}
	for _, q := range queries {
		if len(q.Relevant) > 0 {
			set.Queries = append(set.Queries, q)
		} else {
			set.Unanswered = append(set.Unanswered, q)
		}
	}
	if len(set.Queries) == 0 {
		return Set{}, fmt.Errorf("%s: no query has a relevant passage: %w", judgements, assay.ErrInvalid)
	}
	return set, nil
}

// setName returns the base name of the folder.
func setName(dir string) string {
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole
	}
	return filepath.Base(dir)
}

// A record is a line of corpus.jsonl or queries.jsonl.
type record struct {
	ID    recordID `json:"_id"`
	Title string   `json:"title"`
	Text  string   `json:"text"`

	Metadata json.RawMessage `json:"metadata"` // of a query; see answers for the fields that are read
}

// answers returns the reference answers and the type of the question from a query's metadata, under
// the field names that common sets use.
func (r record) answers() (answers []string, kind string) {
	var m map[string]json.RawMessage
	if json.Unmarshal(r.Metadata, &m) != nil {
		return nil, ""
	}
	for _, name := range []string{"answer", "answers", "answer_aliases"} {
		var one string
		var several []string
		if json.Unmarshal(m[name], &one) == nil && one != "" {
			answers = append(answers, one)
		} else if json.Unmarshal(m[name], &several) == nil {
			answers = append(answers, several...)
		}
	}
	for _, name := range []string{"hops", "type"} {
		if json.Unmarshal(m[name], &kind) == nil && kind != "" {
			break
		}
	}
	return answers, kind
}

// A recordID is a string, or a number in its original spelling.
type recordID string

// UnmarshalJSON implements json.Unmarshaler.
func (id *recordID) UnmarshalJSON(data []byte) error {
	var n json.Number
	if len(data) > 0 && data[0] != '"' && json.Unmarshal(data, &n) == nil {
		*id = recordID(n)
		return nil
	}
	return json.Unmarshal(data, (*string)(id))
}

func readQueries(path string) ([]Query, error) {
	var queries []Query
	at := map[string]int{}
	err := readLines(path, func(line []byte) error {
		var r record
		if err := json.Unmarshal(line, &r); err != nil {
			return err
		}
		q := Query{ID: string(r.ID), Text: r.Text, Relevant: map[string]int{}}
		q.Answers, q.Kind = r.answers()
		if i, twice := at[q.ID]; twice && queries[i].Text == q.Text {
			return nil
		} else if q.ID == "" || twice {
			return fmt.Errorf("query ID %q is empty or occurs twice, with two texts", q.ID)
		}
		at[q.ID] = len(queries)
		queries = append(queries, q)
		return nil
	})
	return queries, err
}

// judgementsFile returns the path of the judgements in a folder.
func judgementsFile(dir string) (string, error) {
	places := []string{"qrels.tsv", filepath.Join("qrels", "test.tsv"), filepath.Join("qrels", "dev.tsv"), filepath.Join("qrels", "train.tsv")}
	for _, place := range places {
		if _, err := os.Stat(filepath.Join(dir, place)); err == nil {
			return filepath.Join(dir, place), nil
		} else if !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
	}
	return "", fmt.Errorf("%s has none of %s: %w: %w", dir, strings.Join(places, ", "), os.ErrNotExist, assay.ErrInvalid)
}

// readJudgements fills in the relevant passages of the queries. If a pair is judged twice, the
// higher grade counts. It returns the number of judgements that name an unknown query or passage.
func readJudgements(path string, queries []Query, passages map[string]int) (dropped int, err error) {
	at := map[string]int{}
	for i, q := range queries {
		at[q.ID] = i
	}
	first := true
	err = readLines(path, func(line []byte) error {
		f := strings.Split(string(line), "\t")
		if len(f) == 1 {
			f = strings.Fields(string(line))
		}
		header := first
		first = false
		if len(f) < 3 {
			return fmt.Errorf("want query-id, corpus-id and score, separated by tabs")
		}
		query, passage := strings.TrimSpace(f[0]), strings.TrimSpace(f[len(f)-2])
		grade, err := strconv.ParseFloat(strings.TrimSpace(f[len(f)-1]), 64)
		if err != nil && header {
			return nil
		}
		if err != nil || grade != math.Trunc(grade) || grade > maxGrade {
			return fmt.Errorf("score %q is not a whole number up to %d", f[len(f)-1], maxGrade)
		}
		i, known := at[query]
		if _, found := passages[passage]; !known || !found {
			dropped++
			return nil
		}
		if grade > 0 {
			queries[i].Relevant[passage] = max(queries[i].Relevant[passage], int(grade))
		}
		return nil
	})
	return dropped, err
}

// readLines calls line for each non-blank line of a file.
func readLines(path string, line func([]byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%w: %w", err, assay.ErrInvalid)
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<20)
	for n := 1; ; n++ {
		text, err := r.ReadBytes('\n')
		if n == 1 {
			text = bytes.TrimPrefix(text, []byte("\uFEFF")) // a byte order mark
		}
		if len(strings.TrimSpace(string(text))) > 0 {
			if err := line([]byte(strings.TrimRight(string(text), "\r\n"))); err != nil {
				return fmt.Errorf("%s:%d: %w: %w", path, n, readable(err), assay.ErrInvalid)
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

// Sample returns at most n queries, evenly spread.
func Sample(queries []Query, n int) []Query {
	if len(queries) <= n {
		return queries
	}
	out := make([]Query, n)
	for i := range out {
		out[i] = queries[i*len(queries)/n]
	}
	return out
}
