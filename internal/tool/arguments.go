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

// maxNesting limits the nesting of brackets in arguments. The schemas have 2 levels.
const maxNesting = 8

// A Refusal is the error of a call that was not made. Its text is for the caller and lists valid
// alternatives.
type Refusal struct{ Reason string }

func (r *Refusal) Error() string { return r.Reason }

// Unwrap returns assay.ErrInvalid.
func (*Refusal) Unwrap() error { return assay.ErrInvalid }

// A Call is a call whose arguments follow the tool's schema. Its JSON describes it completely.
type Call struct {
	Tool string `json:"tool"`
	// Arguments are the arguments in canonical form, with defaults filled in: equivalent calls have
	// equal Arguments.
	Arguments json.RawMessage `json:"arguments"`

	search   searchArguments
	document documentArguments
	chunks   chunksArguments
	compare  compareArguments
	graph    graphArguments
}

// Key identifies a call. Equivalent calls have equal keys.
func (c Call) Key() string { return c.Tool + " " + string(c.Arguments) }

type searchArguments struct {
	Query   string `json:"query"`
	Filters string `json:"filters,omitempty"`

	filter assay.Filter
}

type documentArguments struct {
	ID   string `json:"id"`
	Page int    `json:"page,omitempty"` // 0: the whole document, or its first page
}

type chunksArguments struct {
	Chunks     []int  `json:"chunks"`
	EntityType string `json:"entity_type,omitempty"` // of Extract
}

type compareArguments struct {
	IDs    []string `json:"ids"`
	Aspect string   `json:"aspect"`
}

type graphArguments struct {
	Entities []string `json:"entities"`
}

// Parse parses a call. The arguments must be a JSON object that follows the tool's schema exactly;
// otherwise the error is a *[Refusal]. Parse does not check that the named chunks and documents
// exist; [Session.Parse] does.
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
	plain, err := json.Marshal(value) // whole numbers lose their decimal point
	if err == nil {
		err = c.take(plain)
	}
	if err != nil {
		return Call{}, d.refuse(err)
	}
	return c, nil
}

// refuse returns a Refusal with the error and the parameters that the tool accepts.
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

// describe describes the values that a schema accepts in a few words.
func describe(s *jsonschema.Schema) string {
	switch s.Type {
	case "string":
		return fmt.Sprintf("text of %d to %d characters", *s.MinLength, *s.MaxLength)
	case "integer":
		return fmt.Sprintf("a whole number from %.0f to %.0f", *s.Minimum, *s.Maximum)
	default:
		return fmt.Sprintf("a list of %d to %d, each %s", *s.MinItems, *s.MaxItems, describe(s.Items))
	}
}

// take decodes arguments that follow the schema, and sets c.Arguments to their canonical form. The
// canonical form lowercases what is searched for, because search ignores case.
func (c *Call) take(plain []byte) error {
	var spelled any
	var err error
	switch c.Tool {
	case Search:
		spelled, err = c.takeSearch(plain)
	case GetDocument:
		a := &c.document
		if err = json.Unmarshal(plain, a); err == nil {
			a.ID = visible.Line(a.ID)
			spelled, err = *a, requireText("id", a.ID, maxReference)
		}
	case Summarise:
		a := &c.chunks
		err = json.Unmarshal(plain, a)
		slices.Sort(a.Chunks)
		spelled = *a
	case Extract:
		spelled, err = c.takeExtract(plain)
	case Compare:
		a := &c.compare
		if err = json.Unmarshal(plain, a); err == nil {
			a.Aspect = visible.Line(a.Aspect)
			a.IDs, err = distinctLines("ids", a.IDs, maxReference)
			spelled, err = *a, cmp.Or(err, requireText("aspect", a.Aspect, maxQuery))
		}
	case Graph:
		spelled, err = c.takeGraph(plain)
	}
	if err != nil {
		return err
	}
	c.Arguments, err = journal.Canonical(spelled)
	return err
}

// takeSearch decodes the arguments of a search.
func (c *Call) takeSearch(plain []byte) (any, error) {
	a := &c.search
	if err := json.Unmarshal(plain, a); err != nil {
		return nil, err
	}
	var err error
	if a.filter, err = assay.ParseFilter(a.Filters); err != nil {
		return nil, fmt.Errorf("filters: %s", strings.TrimSuffix(err.Error(), ": "+assay.ErrInvalid.Error()))
	}
	if err := a.filter.Check(nil); err != nil {
		return nil, fmt.Errorf("filters: %s", strings.TrimSuffix(err.Error(), ": "+assay.ErrInvalid.Error()))
	}
	a.Query, a.Filters = visible.Line(a.Query), a.filter.String()
	spelled := *a
	spelled.Query = folded(a.Query)
	return spelled, cmp.Or(requireText("query", a.Query, maxQuery), requireText("query", spelled.Query, maxQuery))
}

// takeExtract decodes the arguments of an extraction.
func (c *Call) takeExtract(plain []byte) (any, error) {
	a := &c.chunks
	if err := json.Unmarshal(plain, a); err != nil {
		return nil, err
	}
	slices.Sort(a.Chunks)
	a.EntityType = folded(a.EntityType)
	return *a, requireText("entity_type", a.EntityType, maxKind)
}

// takeGraph decodes the arguments of a walk.
func (c *Call) takeGraph(plain []byte) (any, error) {
	a := &c.graph
	if err := json.Unmarshal(plain, a); err != nil {
		return nil, err
	}
	var err error
	if a.Entities, err = distinctLines("entities", a.Entities, maxQuery); err != nil {
		return nil, err
	}
	spelled := graphArguments{}
	for _, name := range a.Entities {
		spelled.Entities = append(spelled.Entities, folded(name))
	}
	spelled.Entities, err = distinctLines("entities", spelled.Entities, maxQuery)
	return spelled, err
}

// folded returns text on one line in lower case.
func folded(text string) string { return visible.Line(strings.ToLower(text)) }

// distinctLines returns the texts of a list on one line each, sorted. Texts that differ only in
// white space or invisible characters are an error, as are empty ones.
func distinctLines(name string, texts []string, most int) ([]string, error) {
	lines := make([]string, len(texts))
	for i, text := range texts {
		lines[i] = visible.Line(text)
		if err := requireText(name, lines[i], most); err != nil {
			return nil, err
		}
	}
	slices.Sort(lines)
	if len(slices.Compact(slices.Clone(lines))) < len(lines) {
		return nil, fmt.Errorf("%s has an entry twice", name)
	}
	return lines, nil
}

// requireText returns an error if text has no visible characters, or has more than most. The length
// needs this second check because visible.Line writes some characters as two.
func requireText(name, text string, most int) error {
	switch n := utf8.RuneCountInString(text); {
	case n == 0:
		return fmt.Errorf("%s is empty", name)
	case n > most:
		return fmt.Errorf("%s has %d characters", name, n)
	}
	return nil
}

// strictJSON decodes exactly one JSON value. It rejects duplicate fields, invalid UTF-8 and nesting
// deeper than maxNesting.
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
		return nil, errors.New("extra data follows the arguments' object")
	}
	return value, nil
}

// readValue decodes the next value.
func readValue(d *json.Decoder, depth int) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, errors.New("the arguments are not valid JSON")
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
				return nil, errors.New("the arguments are not valid JSON")
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
	if _, err := d.Token(); err != nil { // the closing bracket
		return nil, errors.New("the arguments are not valid JSON")
	}
	if open == '{' {
		return fields, nil
	}
	return items, nil
}

// mismatch returns an error that describes the first place, in schema order, at which value does
// not follow s. It supports only the keywords that the schemas of this package use.
func mismatch(at string, value any, s *jsonschema.Schema) error {
	if at == "" {
		at = "the value"
	}
	switch s.Type {
	case "object":
		fields, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is not an object", at)
		}
		return fieldMismatch(fields, s)
	case "array":
		items, ok := value.([]any)
		if !ok {
			return fmt.Errorf("%s is not a list", at)
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
			return fmt.Errorf("%s is not a text", at)
		}
		if n := utf8.RuneCountInString(text); n < *s.MinLength || n > *s.MaxLength {
			return fmt.Errorf("%s has %d characters", at, n)
		}
	case "integer":
		n, ok := value.(float64)
		if !ok || n != math.Trunc(n) {
			return fmt.Errorf("%s is not a whole number", at)
		}
		if n < *s.Minimum || n > *s.Maximum {
			return fmt.Errorf("%s is %.0f", at, n)
		}
	}
	return nil
}

// fieldMismatch is mismatch for the fields of an object.
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

// brief returns untrusted text on one line, cut to at most n bytes.
func brief(text string, n int) string {
	if text = visible.Line(text[:min(len(text), 8*n)]); len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}
