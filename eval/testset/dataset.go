package testset

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/stat"
)

// A Dataset is a set of questions for a whole system, with the labels of their answers.
type Dataset struct {
	Name   string
	Cases  []Case // each with an ID of its own
	Hash   string // of the questions, their labels and the passages; it identifies the set
	Corpus *Set   // the passages that come with the questions; nil: the caller has the documents
	Golden bool   // read from golden questions, whose only labels are sections
	Unseen int    // exported runs without a correction, which are left out
}

// ReadDataset reads questions. The format depends on path:
//
//   - a folder in the BEIR layout, see ReadSet: the relevant passages are gold. The metadata of a
//     query may have the reference answers, the conversation before it, the type of the question,
//     and whether it is answerable;
//   - a file with one JSON object per line, each a Case. The field names of common sets are
//     accepted as well;
//   - golden questions, which have only a question, the end of a document's path and headings in
//     it, any of which is right. A question without these is unanswerable;
//   - exported runs that were corrected by hand, see Exported.
//
// A malformed line is assay.ErrInvalid, and the error names the line. In a file, so is a line with
// an unknown field (*UnknownFieldError). Additional properties of a set belong in metadata.
func ReadDataset(path string) (Dataset, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Dataset{}, fmt.Errorf("%w: %w", err, assay.ErrInvalid)
	}
	var d Dataset
	if info.IsDir() {
		d, err = readBEIR(path)
	} else {
		d, err = readCases(path)
	}
	if err != nil {
		return Dataset{}, err
	}
	if len(d.Cases) == 0 {
		if d.Unseen > 0 {
			return Dataset{}, fmt.Errorf("%s: of its %d runs none is judged: set \"correct\", or fill in \"answers\" or \"gold\": %w", path, d.Unseen, assay.ErrInvalid)
		}
		return Dataset{}, fmt.Errorf("%s holds no question: %w", path, assay.ErrInvalid)
	}
	d.Hash, err = d.hash()
	return d, err
}

// Labelled returns the number of labelled cases among the first limit (0: all).
func (d Dataset) Labelled(limit int) int {
	n := 0
	for _, c := range d.First(limit) {
		n += stat.One(c.Labelled())
	}
	return n
}

// First returns the first limit cases; 0 returns all.
func (d Dataset) First(limit int) []Case {
	if limit > 0 {
		return d.Cases[:min(limit, len(d.Cases))]
	}
	return d.Cases
}

// hash returns the identity of the set.
func (d Dataset) hash() (string, error) {
	h := sha256.New()
	encoder := json.NewEncoder(h)
	for _, c := range d.Cases {
		if err := encoder.Encode(c); err != nil {
			return "", err
		}
	}
	if d.Corpus != nil {
		for _, p := range d.Corpus.Passages {
			if err := encoder.Encode(p); err != nil {
				return "", err
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// ParseCases reads questions, each in the form of a line of a file; see ReadDataset. A malformed one is
// assay.ErrInvalid, and the error names its number from 1.
func ParseCases(name string, lines []json.RawMessage) (Dataset, error) {
	c := newCaseReader(name)
	for i, line := range lines {
		if err := c.add(line); err != nil {
			return Dataset{}, fmt.Errorf("question %d: %w: %w", i+1, readable(err), assay.ErrInvalid)
		}
	}
	d := c.dataset()
	if len(d.Cases) == 0 {
		return Dataset{}, fmt.Errorf("%s holds no question: %w", name, assay.ErrInvalid)
	}
	var err error
	d.Hash, err = d.hash()
	return d, err
}

// readCases reads a file with one case per line.
func readCases(path string) (Dataset, error) {
	c := newCaseReader(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
	err := readLines(path, c.add)
	return c.dataset(), err
}

// A caseReader reads cases one after the other.
type caseReader struct {
	d    Dataset
	seen map[string]int // number of the case with an ID
	line int
}

func newCaseReader(name string) *caseReader {
	return &caseReader{d: Dataset{Name: name, Golden: true}, seen: map[string]int{}}
}

func (c *caseReader) add(text []byte) error {
	c.line++
	var r caseRecord
	if err := cmp.Or(json.Unmarshal(text, &r), knownFields(text, r)); err != nil {
		return err
	}
	if r.Given != nil && !r.judged() {
		c.d.Unseen++
		return nil
	}
	read, err := r.asCase(strconv.Itoa(c.line))
	if err != nil {
		return err
	}
	if before, twice := c.seen[read.ID]; twice {
		return fmt.Errorf("the ID %q is that of question %d already", read.ID, before)
	}
	c.seen[read.ID] = c.line
	c.d.Golden = c.d.Golden && r.golden()
	c.d.Cases = append(c.d.Cases, read)
	return nil
}

// dataset returns the cases that were read.
func (c *caseReader) dataset() Dataset {
	d := c.d
	if d.Golden && !slices.ContainsFunc(d.Cases, func(c Case) bool { return len(c.Gold) > 0 }) {
		d.Golden = false // they may as well be unlabelled
	}
	if !d.Golden {
		for i := range d.Cases {
			d.Cases[i].Unanswerable = d.Cases[i].Unanswerable && !d.Cases[i].presumed
		}
	}
	return d
}

// A caseRecord is a line of a set, with the fields of a Case and their names in common sets.
type caseRecord struct {
	ID         recordID `json:"id"`
	Underscore recordID `json:"_id"`
	Question   string   `json:"question"`
	Query      string   `json:"query"`

	Conversation turns      `json:"conversation"`
	Filter       filterText `json:"filter"`
	Tenant       string     `json:"tenant"`
	Collections  textList   `json:"collections"`

	Answer     textList  `json:"answer"`
	Answers    textList  `json:"answers"`
	Gold       goldList  `json:"gold"`
	AllGold    bool      `json:"all_gold"`
	Documents  goldList  `json:"documents"`
	Document   string    `json:"document"`
	Sections   *textList `json:"sections"`
	Answerable *bool     `json:"answerable"`

	Unanswerable bool  `json:"unanswerable"`
	Conflicting  *bool `json:"conflicting"`

	Slices   scalars `json:"slices"`
	Metadata scalars `json:"metadata"`

	Given   *Given `json:"given"`
	Correct *bool  `json:"correct"`
}

// golden reports whether a line has only fields of golden questions.
func (r caseRecord) golden() bool {
	return r.Given == nil && len(r.Answer)+len(r.Answers)+len(r.Gold)+len(r.Documents) == 0 && r.Answerable == nil && !r.Unanswerable &&
		r.ID == "" && r.Underscore == "" && len(r.Conversation) == 0
}

// asCase converts the line to a Case. id is the fallback for a line without an ID.
func (r caseRecord) asCase(id string) (Case, error) {
	c := Case{
		ID: cmp.Or(string(r.ID), string(r.Underscore), id), Question: strings.TrimSpace(cmp.Or(r.Question, r.Query)),
		History: r.Conversation, Filter: assay.Filter(r.Filter), Tenant: r.Tenant, Collections: r.Collections,
		Answers: append(slices.Clone(r.Answer), r.Answers...), Gold: append(slices.Clone(r.Gold), r.Documents...), AllGold: r.AllGold,
		Unanswerable: r.Unanswerable || r.Answerable != nil && !*r.Answerable, Conflicting: r.Conflicting,
		Slices: map[string]string{},
	}
	if c.Question == "" {
		return c, errors.New("no question")
	}
	for _, from := range []scalars{r.Metadata, r.Slices} {
		for k, v := range from {
			if len(v) <= maxSliceName {
				c.Slices[k] = v
			}
		}
	}
	if r.Sections != nil {
		for _, s := range *r.Sections {
			c.Gold = append(c.Gold, Gold{Document: r.Document, Section: s})
		}
	} else if r.Document != "" {
		c.Gold = append(c.Gold, Gold{Document: r.Document})
	}
	if r.Given != nil {
		r.Given.label(&c, r.Correct)
	}
	if r.golden() && len(c.Gold) == 0 {
		c.Unanswerable, c.presumed = true, true
	}
	for _, g := range c.Gold {
		if err := g.check(); err != nil {
			return c, err
		}
	}
	if c.Unanswerable && (len(c.Gold) > 0 || len(c.Answers) > 0) {
		return c, errors.New("it is said to be unanswerable, and has an answer or gold")
	}
	return c, nil
}

// check reports an error if a place is invalid.
func (g Gold) check() error {
	switch {
	case g.Document == "" && g.Section == "":
		return errors.New("gold without a document")
	case g.Start < 0 || g.End < 0 || g.End > 0 && g.End <= g.Start || g.End == 0 && g.Start > 0:
		return fmt.Errorf("gold in %s from byte %d to %d", g.Document, g.Start, g.End)
	case g.Grade < 0 || g.Grade > maxGrade:
		return fmt.Errorf("gold of grade %d, want 1 to %d", g.Grade, maxGrade)
	}
	return nil
}

// A textList is a text or a list of texts in JSON.
type textList []string

// UnmarshalJSON implements json.Unmarshaler. It drops empty texts.
func (l *textList) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*l = nil
		if one != "" {
			*l = textList{one}
		}
		return nil
	}
	var all []string
	if err := json.Unmarshal(data, &all); err != nil {
		return fmt.Errorf("want a text or a list of texts: %w", err)
	}
	*l = slices.DeleteFunc(all, func(s string) bool { return s == "" })
	return nil
}

// A goldList is a list of places in JSON. A text in it is a whole document.
type goldList []Gold

// UnmarshalJSON implements json.Unmarshaler.
func (l *goldList) UnmarshalJSON(data []byte) error {
	var places []json.RawMessage
	if json.Unmarshal(data, &places) != nil {
		places = []json.RawMessage{data} // a single place
	}
	*l = nil
	for _, p := range places {
		var g Gold
		if json.Unmarshal(p, &g.Document) != nil {
			if err := cmp.Or(json.Unmarshal(p, &g), knownFields(p, g)); err != nil {
				return fmt.Errorf("gold: %w", err)
			}
		}
		*l = append(*l, g)
	}
	return nil
}

// A filterText is a filter, either in its JSON form or as a filter expression.
type filterText assay.Filter

// UnmarshalJSON implements json.Unmarshaler.
func (f *filterText) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		if text == "" {
			return nil
		}
		parsed, err := assay.ParseFilter(text)
		*f = filterText(parsed)
		return err
	}
	return json.Unmarshal(data, (*assay.Filter)(f))
}

// scalars are the texts, numbers and truth values of a JSON object, as texts. A list with only one
// member counts as that member.
type scalars map[string]string

// UnmarshalJSON implements json.Unmarshaler. It drops values of other kinds.
func (s *scalars) UnmarshalJSON(data []byte) error {
	var all map[string]json.RawMessage
	if json.Unmarshal(data, &all) != nil {
		return nil
	}
	*s = scalars{}
	for k, v := range all {
		var list []json.RawMessage
		if json.Unmarshal(v, &list) == nil && len(list) == 1 {
			v = list[0]
		}
		var text string
		var number json.Number
		var yes bool
		switch {
		case json.Unmarshal(v, &text) == nil && text != "":
			(*s)[k] = text
		case json.Unmarshal(v, &number) == nil && number != "":
			(*s)[k] = number.String()
		case json.Unmarshal(v, &yes) == nil && string(v) != "null":
			(*s)[k] = strconv.FormatBool(yes)
		}
	}
	return nil
}

// turns are a conversation, either as pairs of question and answer or as messages of two speakers.
type turns []assay.Turn

// UnmarshalJSON implements json.Unmarshaler.
func (t *turns) UnmarshalJSON(data []byte) error {
	var all []struct {
		assay.Turn
		Speaker string `json:"speaker"`
		Role    string `json:"role"`
		Text    string `json:"text"`
		Content string `json:"content"`
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return fmt.Errorf("conversation: %w", err)
	}
	*t = nil
	for i, m := range all {
		who, said := cmp.Or(m.Speaker, m.Role), cmp.Or(m.Text, m.Content)
		switch {
		case m.Question != "":
			*t = append(*t, m.Turn)
		case who == "user" || who == "human":
			*t = append(*t, assay.Turn{Question: said})
		case said != "" && len(*t) > 0:
			last := &(*t)[len(*t)-1]
			last.Answer = strings.TrimSpace(last.Answer + "\n" + said)
		case said != "":
			return fmt.Errorf("conversation: part %d answers no question", i+1)
		}
	}
	return nil
}
