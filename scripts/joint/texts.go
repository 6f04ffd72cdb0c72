//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sets are the data sets whose passages and questions are used, in this order.
var sets = []string{"clapnq-answerable", "hotpotqa-train100", "xquad-en", "musique-train100", "pubmedqa-1000", "mtrag-un-reference", "scifact-train"}

// passageWords is how many words of a text make a passage.
const passageWords = 90

// texts are real passages and questions.
type texts struct {
	passages  []string
	questions []string
}

// readTexts reads the data sets until there are enough passages.
func readTexts(folder string, passages, questions int) (*texts, error) {
	t := &texts{}
	for _, set := range sets {
		err := eachLine(filepath.Join(folder, set, "corpus.jsonl"), func(title, text string) {
			words := strings.Fields(text)
			t.passages = append(t.passages, strings.TrimSpace(title+"\n\n"+strings.Join(words[:min(len(words), passageWords)], " ")))
		})
		if err == nil {
			err = eachLine(filepath.Join(folder, set, "queries.jsonl"), func(_, text string) { t.questions = append(t.questions, text) })
		}
		if err != nil {
			return nil, err
		}
		if len(t.passages) >= passages && len(t.questions) >= questions {
			break
		}
	}
	if len(t.passages) < passages || len(t.questions) == 0 {
		return nil, fmt.Errorf("%s has %d passages, not %d", folder, len(t.passages), passages)
	}
	// Some of each set, in the order of the passages, so that many are about what is stored already.
	if all := t.questions; len(all) > questions {
		t.questions = make([]string, questions)
		for i := range t.questions {
			t.questions[i] = all[i*len(all)/questions]
		}
	}
	return t, nil
}

func eachLine(path string, fn func(title, text string)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var line struct{ Title, Text string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		fn(line.Title, line.Text)
	}
	return lines.Err()
}

// A document is one of a tenant. Both tenants have documents of the same names, with different passages.
type document struct {
	number  int
	version int // that is uploaded, or was acknowledged last
}

func (d document) name() string { return fmt.Sprintf("passages/%06d.txt", d.number) }

// token is a word that only this version of a tenant's document has.
func (d document) token(t *tenant) string {
	return fmt.Sprintf("%sn%dv%d", t.name, d.number, d.version)
}

// title has the tenant's canary and the version, so that lists show them.
func (d document) title(t *tenant) string { return t.canary + " " + d.token(t) }

// text is the passage with the tenant's canary.
func (d document) text(t *tenant, passage string) string {
	return fmt.Sprintf("%s\n\nThis is %s, kept by %s.\n", passage, d.token(t), t.canary)
}
