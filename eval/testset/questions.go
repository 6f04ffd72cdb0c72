package testset

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// readBEIR reads a labelled retrieval set as questions.
func readBEIR(dir string) (Dataset, error) {
	set, err := ReadSet(dir)
	if err != nil {
		return Dataset{}, err
	}
	d := Dataset{Name: set.Name, Corpus: &set}
	relevant := map[string]map[string]int{}
	for _, q := range set.Queries {
		relevant[q.ID] = q.Relevant
	}
	seen := map[string]bool{}
	err = readLines(filepath.Join(dir, "queries.jsonl"), func(line []byte) error {
		var r struct {
			record
			Metadata queryMetadata `json:"metadata"`
		}
		if err := json.Unmarshal(line, &r); err != nil {
			return err
		}
		id := string(r.ID)
		if seen[id] {
			return nil
		}
		seen[id] = true
		c := r.Metadata.asCase(id, r.Text)
		for _, passage := range slices.Sorted(maps.Keys(relevant[id])) {
			c.Gold = append(c.Gold, Gold{Document: passage, Grade: relevant[id][passage]})
		}
		if c.Unanswerable {
			c.Answers, c.Gold = nil, nil // the right outcome is a refusal
		}
		if c.Labelled() {
			d.Cases = append(d.Cases, c)
		}
		return nil
	})
	return d, err
}

// queryMetadata holds the known fields of a query's metadata, under the names of common sets.
type queryMetadata struct {
	Answer        textList `json:"answer"`
	Answers       textList `json:"answers"`
	Aliases       textList `json:"answer_aliases"`
	Targets       textList `json:"targets"`
	LongAnswer    textList `json:"long_answer"`
	Conversation  turns    `json:"conversation"`
	Answerable    *bool    `json:"answerable"`
	Answerability textList `json:"answerability"`
	Hops          string   `json:"hops"`
	Facts         any      `json:"supporting_facts"`

	all scalars
}

// UnmarshalJSON implements json.Unmarshaler. It ignores fields of another type, because each set
// defines its own metadata.
func (m *queryMetadata) UnmarshalJSON(data []byte) error {
	if err := m.all.UnmarshalJSON(data); err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return nil
	}
	for name, into := range map[string]any{
		"answer": &m.Answer, "answers": &m.Answers, "answer_aliases": &m.Aliases, "targets": &m.Targets, "long_answer": &m.LongAnswer,
		"conversation": &m.Conversation, "answerable": &m.Answerable, "answerability": &m.Answerability, "hops": &m.Hops, "supporting_facts": &m.Facts,
	} {
		if value, ok := fields[name]; ok {
			_ = json.Unmarshal(value, into)
		}
	}
	return nil
}

// asCase returns the question with the labels in its metadata. A multi-hop question needs all of
// its passages.
func (m queryMetadata) asCase(id, question string) Case {
	c := Case{ID: id, Question: question, History: m.Conversation, Slices: map[string]string{}}
	for _, answers := range []textList{m.Answer, m.Answers, m.Aliases, m.Targets, m.LongAnswer} {
		c.Answers = append(c.Answers, answers...)
	}
	c.AllGold = m.Hops != "" || m.Facts != nil
	c.Unanswerable = m.Answerable != nil && !*m.Answerable || len(m.Answerability) == 1 && strings.EqualFold(m.Answerability[0], "unanswerable")
	for k, v := range m.all {
		if len(v) <= maxSliceName && !slices.Contains(c.Answers, v) {
			c.Slices[k] = v
		}
	}
	return c
}

// maxSliceName is the length in bytes of the longest value that is used for slices. Longer values
// are free text.
const maxSliceName = 40
