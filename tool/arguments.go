package tool

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/journal"
	"github.com/assay-rag/assay/internal/visible"
)

// maxNesting is how deep the brackets of arguments may be nested; the schemas have 2.
const maxNesting = 8

// A Refusal is why a call was not made. Its text is meant for whoever made the call,
// and says what can be called instead.
type Refusal struct{ Reason string }

func (r *Refusal) Error() string { return r.Reason }

// Unwrap returns assay.ErrInvalid.
func (*Refusal) Unwrap() error { return assay.ErrInvalid }

// A Call is a call whose arguments follow the tool's schema. Its JSON says all of it.
type Call struct {
	Tool string `json:"tool"`
	// Arguments are the call's in one spelling, with the defaults that were left out:
	// calls that ask for the same have the same.
	Arguments json.RawMessage `json:"arguments"`

	search   searchArguments
	document documentArguments
	results  resultsArguments
	compare  compareArguments
}

// Key identifies what a call asks for, whatever its spelling.
func (c Call) Key() string { return c.Tool + " " + string(c.Arguments) }

type searchArguments struct {
	Query       string   `json:"query"`
	Collections []string `json:"collections,omitempty"`
	Filter      string   `json:"filter,omitempty"`
	Limit       int      `json:"limit"`

	filter assay.Filter
}

type documentArguments struct {
	Document   string `json:"document"`
	Collection string `json:"collection,omitempty"`
	Offset     int    `json:"offset"`
	Limit      int    `json:"limit"`
}

type resultsArguments struct {
	Results  []int  `json:"results"`
	Question string `json:"question,omitempty"`
}

type compareArguments struct {
	Documents []string `json:"documents"`
	Question  string   `json:"question,omitempty"`
}

// Parse reads a call: the arguments are the JSON of an object that follows the tool's
// schema, exactly. What it does not take is a *[Refusal]. It knows no session: whether
// the results and documents that are named exist is for [Session.Parse].
func Parse(name, arguments string) (Call, error) {
	d, ok := define(name)
	if !ok {
		return Call{}, &Refusal{fmt.Sprintf("there is no tool %q; the tools are %s", brief(name, 64), strings.Join(Names(), ", "))}
	}
	value, err := strictJSON(arguments)
	if err == nil {
		err = mismatch("", value, d.schema)
	}
	if err == nil && d.held.Validate(value) != nil {
		err = errors.New("the arguments do not follow its schema")
	}
	if err != nil {
		return Call{}, d.refuse(err)
	}
	c := Call{Tool: name}
	plain, err := json.Marshal(value) // whole numbers are written without a point
	if err == nil {
		err = c.take(plain)
	}
	if err != nil {
		return Call{}, d.refuse(err)
	}
	return c, nil
}

// refuse says what is wrong with a call of the tool, and what the tool takes.
func (d definition) refuse(err error) *Refusal {
	var takes []string
	for _, name := range d.schema.PropertyOrder {
		p := d.schema.Properties[name]
		line := name + " (" + describe(p)
		if slices.Contains(d.schema.Required, name) {
			line += ", required"
		}
		takes = append(takes, line+")")
	}
	return &Refusal{fmt.Sprintf("%s was not called: %s. It takes one JSON object with %s", d.name, err, strings.Join(takes, ", "))}
}

// describe says in a few words what a schema takes.
func describe(s *jsonschema.Schema) string {
	switch s.Type {
	case "string":
		return fmt.Sprintf("text of 1 to %d characters", *s.MaxLength)
	case "integer":
		return fmt.Sprintf("a whole number from %.0f to %.0f", *s.Minimum, *s.Maximum)
	default:
		return fmt.Sprintf("a list of %d to %d, each %s", *s.MinItems, *s.MaxItems, describe(s.Items))
	}
}

// take reads arguments that follow the schema, and writes them in one spelling.
func (c *Call) take(plain []byte) error {
	var spelled any
	var err error
	switch c.Tool {
	case Search:
		spelled, err = c.takeSearch(plain)
	case GetDocument:
		a := &c.document
		if err = json.Unmarshal(plain, a); err == nil {
			a.Document, a.Collection = visible.Line(a.Document), visible.Line(a.Collection)
			or(&a.Limit, defaultPage)
			spelled, err = *a, said("document", a.Document, maxReference)
		}
	case Summarise, Extract:
		a := &c.results
		if err = json.Unmarshal(plain, a); err == nil {
			a.Question = visible.Line(a.Question)
			slices.Sort(a.Results)
			spelled, err = *a, said("question", cmp.Or(a.Question, "none"), maxQuery)
		}
	case Compare:
		a := &c.compare
		if err = json.Unmarshal(plain, a); err == nil {
			a.Question = visible.Line(a.Question)
			err = said("question", cmp.Or(a.Question, "none"), maxQuery)
			for i, d := range a.Documents {
				a.Documents[i] = visible.Line(d)
				err = errors.Join(err, said("documents", a.Documents[i], maxReference))
			}
			slices.Sort(a.Documents)
			spelled = *a
		}
	}
	if err != nil {
		return err
	}
	c.Arguments, err = journal.Canonical(spelled)
	return err
}

// takeSearch reads the arguments of a search. The query keeps its words and loses its
// case in the spelling alone: a search does not tell it.
func (c *Call) takeSearch(plain []byte) (any, error) {
	a := &c.search
	if err := json.Unmarshal(plain, a); err != nil {
		return nil, err
	}
	var err error
	if a.filter, err = assay.ParseFilter(a.Filter); err != nil {
		return nil, fmt.Errorf("filter: %s", strings.TrimSuffix(err.Error(), ": "+assay.ErrInvalid.Error()))
	}
	if err := a.filter.Check(nil); err != nil {
		return nil, fmt.Errorf("filter: %s", strings.TrimSuffix(err.Error(), ": "+assay.ErrInvalid.Error()))
	}
	a.Query, a.Filter = visible.Line(a.Query), a.filter.String()
	for i := range a.Collections {
		a.Collections[i] = visible.Line(a.Collections[i])
		if err := said("collections", a.Collections[i], maxName); err != nil {
			return nil, err
		}
	}
	slices.Sort(a.Collections)
	a.Collections = slices.Compact(a.Collections)
	or(&a.Limit, defaultResults)
	spelled := *a
	spelled.Query = strings.ToLower(a.Query)
	return spelled, said("query", a.Query, maxQuery)
}

// said refuses a text of which nothing is left to see, or more than most characters:
// some are written as two.
func said(name, text string, most int) error {
	switch n := utf8.RuneCountInString(text); {
	case n == 0:
		return fmt.Errorf("%s says nothing", name)
	case n > most:
		return fmt.Errorf("%s has %d characters", name, n)
	}
	return nil
}

func or(field *int, value int) {
	if *field == 0 {
		*field = value
	}
}

// strictJSON reads one JSON value and nothing else: no field twice, no bytes that are
// not UTF-8, no more brackets inside each other than arguments have.
func strictJSON(text string) (any, error) {
	switch {
	case len(text) > MaxArguments:
		return nil, fmt.Errorf("the arguments have %d bytes, at most %d are read", len(text), MaxArguments)
	case !utf8.ValidString(text):
		return nil, errors.New("the arguments are not UTF-8")
	case strings.TrimSpace(text) == "":
		return nil, errors.New("the arguments are empty")
	}
	d := json.NewDecoder(strings.NewReader(text))
	value, err := readValue(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("something follows the arguments' object")
	}
	return value, nil
}

// readValue reads the next value of a decoder.
func readValue(d *json.Decoder, depth int) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, errors.New("the arguments are no valid JSON")
	}
	open, ok := t.(json.Delim)
	if !ok {
		return t, nil
	}
	if depth == maxNesting {
		return nil, fmt.Errorf("the brackets of the arguments are nested deeper than %d", maxNesting)
	}
	fields, items := map[string]any{}, []any{}
	for d.More() {
		name := ""
		if open == '{' {
			t, err := d.Token()
			if err != nil {
				return nil, errors.New("the arguments are no valid JSON")
			}
			name, _ = t.(string)
			if _, twice := fields[name]; twice {
				return nil, fmt.Errorf("the arguments have %q twice", brief(name, 64))
			}
		}
		v, err := readValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		if open == '{' {
			fields[name] = v
		} else {
			items = append(items, v)
		}
	}
	if _, err := d.Token(); err != nil { // its end
		return nil, errors.New("the arguments are no valid JSON")
	}
	if open == '{' {
		return fields, nil
	}
	return items, nil
}

// mismatch says where a value is not of a schema, in words: the first place in the
// order of the schema. It knows the keywords that the schemas of this package use.
func mismatch(at string, value any, s *jsonschema.Schema) error {
	if at == "" {
		at = "what is given"
	}
	switch s.Type {
	case "object":
		fields, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is no object", at)
		}
		return fieldMismatch(fields, s)
	case "array":
		items, ok := value.([]any)
		if !ok {
			return fmt.Errorf("%s is no list", at)
		}
		if n := len(items); n < *s.MinItems || n > *s.MaxItems {
			return fmt.Errorf("%s has %d entries", at, n)
		}
		for i, v := range items {
			if err := mismatch(fmt.Sprintf("entry %d of %s", i+1, at), v, s.Items); err != nil {
				return err
			}
			if slices.Contains(items[:i], v) {
				return fmt.Errorf("%s has an entry twice", at)
			}
		}
	case "string":
		text, ok := value.(string)
		if !ok {
			return fmt.Errorf("%s is no text", at)
		}
		if n := utf8.RuneCountInString(text); n < *s.MinLength || n > *s.MaxLength {
			return fmt.Errorf("%s has %d characters", at, n)
		}
	case "integer":
		n, ok := value.(float64)
		if !ok || n != math.Trunc(n) {
			return fmt.Errorf("%s is no whole number", at)
		}
		if n < *s.Minimum || n > *s.Maximum {
			return fmt.Errorf("%s is %.0f", at, n)
		}
	}
	return nil
}

// fieldMismatch is mismatch of an object's fields.
func fieldMismatch(fields map[string]any, s *jsonschema.Schema) error {
	for _, name := range s.PropertyOrder {
		v, there := fields[name]
		if !there {
			if slices.Contains(s.Required, name) {
				return fmt.Errorf("%s is missing", name)
			}
			continue
		}
		if err := mismatch(name, v, s.Properties[name]); err != nil {
			return err
		}
	}
	var unknown []string
	for name := range fields {
		if s.Properties[name] == nil {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return fmt.Errorf("there is no parameter %q", brief(unknown[0], 64))
	}
	return nil
}

// brief is a text of others on one line, cut to at most n bytes.
func brief(text string, n int) string {
	if text = visible.Line(text[:min(len(text), 8*n)]); len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}
