package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/assay-rag/assay"
)

// Sets are the evaluation sets that were written by hand. README.md in eval/testdata
// describes their files.
type Sets struct {
	Dir         string
	Statements  []Statement
	NearMisses  []NearMiss
	Conflicts   []ConflictCase
	Everyday    []EverydayQuestion // over parts of the manuals of Parts
	Handbook    []EverydayQuestion // over the documents in everyday-docs
	Paraphrased []ParaphrasedAnswer
	Parts       map[string][]string // document IDs by corpus
}

// A Statement is a false statement or a fair paraphrase about a document.
type Statement struct {
	Document  string   `json:"document"` // file in statements, without its suffix
	Kind      string   `json:"kind"`
	Statement string   `json:"statement"`
	Label     string   `json:"label"` // "false" or "fair"
	Source    []string `json:"source"`
}

// A NearMiss is a question that a paragraph answers or only seems to answer.
type NearMiss struct {
	Paragraph  string  `json:"paragraph"`
	Question   string  `json:"question"`
	Answerable bool    `json:"answerable"`
	Answer     *string `json:"answer"` // span of the paragraph; nil: unanswerable
	Made       string  `json:"made"`
}

// A ConflictCase is a question over two documents that contradict each other or only
// seem to.
type ConflictCase struct {
	Question string `json:"question"`
	A        Text   `json:"a"`
	B        Text   `json:"b"`
	Conflict bool   `json:"conflict"`
	Kind     string `json:"kind"`
}

// A Text is a short document.
type Text struct {
	Title string `json:"title"`
	Text  string `json:"text"`
}

// An EverydayQuestion is a question over a manual, typed as a colleague would.
type EverydayQuestion struct {
	Corpus     string   `json:"corpus,omitempty"`   // of Everyday
	Document   string   `json:"document,omitempty"` // of Handbook: file in everyday-docs, without its suffix
	Question   string   `json:"question"`
	Answer     []string `json:"answer"`             // patterns, all of which match a right answer
	Complete   []string `json:"complete,omitempty"` // patterns, one per item of a list
	Section    string   `json:"section"`
	OtherWords bool     `json:"other_words"`
	Answerable bool     `json:"answerable"`
	Kind       string   `json:"kind"`
}

// A ParaphrasedAnswer is a right answer as a language model would write it.
type ParaphrasedAnswer struct {
	Document string   `json:"document"` // file in the folder of the sets
	Question string   `json:"question"`
	Answer   string   `json:"answer"`  // with citations [n]
	Sources  []string `json:"sources"` // the quoted words of the document for each [n]
}

// Read reads the sets in a folder. A missing or malformed file is
// assay.ErrInvalid.
func Read(dir string) (Sets, error) {
	w := Sets{Dir: dir}
	var err error
	read := func(name string, rows any) { err = errors.Join(err, readWritten(filepath.Join(dir, name), rows)) }
	read("statements.jsonl", &w.Statements)
	read("nearmiss.jsonl", &w.NearMisses)
	read("conflicts.jsonl", &w.Conflicts)
	read("everyday.jsonl", &w.Everyday)
	read("handbook.jsonl", &w.Handbook)
	read("paraphrased.jsonl", &w.Paraphrased)
	read("everyday-parts.json", &w.Parts)
	return w, err
}

// readWritten decodes a JSON file. A JSON Lines file is decoded as an array.
func readWritten(file string, into any) error {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", err, assay.ErrInvalid)
	}
	if err != nil {
		return err
	}
	if strings.HasSuffix(file, ".jsonl") {
		lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
		data = fmt.Appendf(nil, "[%s]", bytes.Join(lines, []byte(",")))
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("%s: %w: %w", file, err, assay.ErrInvalid)
	}
	return nil
}
