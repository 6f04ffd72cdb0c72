package eval

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
)

// A Dataset is questions that are asked of a whole system, with what is known of their
// answers.
type Dataset struct {
	Name   string
	Cases  []Case // each with an ID of its own
	Hash   string // of the questions, their labels and the passages: another set has another one
	Corpus *Set   // the passages that come with the questions; nil: other documents are asked
	Golden bool   // read from golden questions, which say no more than a section
	Unseen int    // exported runs that nobody has judged; they are left out
}

// ReadDataset reads questions, by what path is:
//
//   - a folder in the BEIR layout, see ReadSet: the relevant passages are gold, and a
//     query's metadata names right answers, the conversation before it, what sort of
//     question it is, and whether it can be answered;
//   - a file of JSON objects, one a line, each a Case, with the other names for its
//     fields that sets in use have;
//   - golden questions, which have nothing but a question, the end of a document's path and
//     headings in it, any of which will do; without those the documents do not answer them;
//   - exported runs that people have corrected, see Exported.
//
// A line that is wrong is assay.ErrInvalid, and the error names it; so is, in a file, one
// with a field that is not known (*UnknownFieldError). What a set wants to say besides goes
// into metadata.
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

// Labelled counts the cases, of the first limit (0: all), of whose answer anything is known.
func (d Dataset) Labelled(limit int) int {
	n := 0
	for _, c := range (AskOptions{Limit: limit}).cases(d) {
		n += one(c.Labelled())
	}
	return n
}

// hash returns what the set's identity is.
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

// readCases reads a file of one case a line.
func readCases(path string) (Dataset, error) {
	d := Dataset{Name: strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)), Golden: true}
	seen := map[string]int{}
	line := 0
	err := readLines(path, func(text []byte) error {
		line++
		var r caseRecord
		if err := cmp.Or(json.Unmarshal(text, &r), knownFields(text, r)); err != nil {
			return err
		}
		if r.Given != nil && !r.judged() {
			d.Unseen++
			return nil
		}
		c, err := r.asCase(strconv.Itoa(line))
		if err != nil {
			return err
		}
		if before, twice := seen[c.ID]; twice {
			return fmt.Errorf("the ID %q is that of question %d already", c.ID, before)
		}
		seen[c.ID] = line
		d.Golden = d.Golden && r.golden()
		d.Cases = append(d.Cases, c)
		return nil
	})
	if d.Golden && !slices.ContainsFunc(d.Cases, func(c Case) bool { return len(c.Gold) > 0 }) {
		d.Golden = false // nothing tells them from questions of which nothing is known
	}
	if !d.Golden {
		for i := range d.Cases {
			d.Cases[i].Unanswerable = d.Cases[i].Unanswerable && !d.Cases[i].presumed
		}
	}
	return d, err
}

// A caseRecord is a line of a set: the fields of a Case, and the names that sets in use
// have for them.
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

// golden reports whether a line says no more than golden questions do.
func (r caseRecord) golden() bool {
	return r.Given == nil && len(r.Answer)+len(r.Answers)+len(r.Gold)+len(r.Documents) == 0 && r.Answerable == nil && !r.Unanswerable &&
		r.ID == "" && r.Underscore == "" && len(r.Conversation) == 0
}

// asCase returns what the line says; id is that of a line without one.
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

// check says what is wrong with a place.
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

// A textList is a text, or several.
type textList []string

// UnmarshalJSON implements json.Unmarshaler. Empty texts are left out.
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

// A goldList is places, of which one that is a text is a whole document.
type goldList []Gold

// UnmarshalJSON implements json.Unmarshaler.
func (l *goldList) UnmarshalJSON(data []byte) error {
	var places []json.RawMessage
	if json.Unmarshal(data, &places) != nil {
		places = []json.RawMessage{data} // one alone
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

// A filterText is a filter in its JSON form, or in that for people.
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

// Scalars are what of an object is a text, a number, true or false, as texts; of a list
// its only member counts.
type scalars map[string]string

// UnmarshalJSON implements json.Unmarshaler. What is of another kind is left out.
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

// Turns are a conversation: its questions with their answers, or what each side said.
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
