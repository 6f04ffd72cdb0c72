package ui

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An adminForm is what was typed into a form of the area, and what is wrong with it.
type adminForm struct {
	ID     string // prefix of the IDs of its fields
	Error  string // that belongs to no field
	values url.Values
	wrong  map[string]string // by field
}

// newForm returns a form with these values.
func newForm(id string, values url.Values) *adminForm {
	return &adminForm{ID: id, values: values, wrong: map[string]string{}}
}

// sentForm returns the form that the request sent.
func (q *request) sentForm(id string) (*adminForm, error) {
	if err := q.parseForm(); err != nil {
		return nil, err
	}
	return newForm(id, q.r.PostForm), nil
}

// again reports how to render a form that was refused: with err of the engine, or if err is nil with
// what is wrong with its fields. Failures of the server are returned.
func (q *request) again(f *adminForm, err error, render func(status int) error) error {
	if err == nil {
		return render(http.StatusBadRequest)
	}
	detail, status, ok := q.inputError(err)
	if !ok {
		return err
	}
	f.Error = detail
	return render(status)
}

// Value returns a field without spaces around it.
func (f *adminForm) Value(name string) string { return strings.TrimSpace(f.values.Get(name)) }

// On reports whether a field has a value, as the boxes that are checked have.
func (f *adminForm) On(name, value string) bool { return slices.Contains(f.values[name], value) }

// fail records what is wrong with a field.
func (f *adminForm) fail(name, text string) {
	if f.wrong[name] == "" {
		f.wrong[name] = text
	}
}

// ok reports whether nothing is known to be wrong.
func (f *adminForm) ok() bool { return f.Error == "" && len(f.wrong) == 0 }

// Wrong returns what is wrong with a field; empty: nothing.
func (f *adminForm) Wrong(name string) string { return f.wrong[name] }

// Any reports whether something is wrong.
func (f *adminForm) Any() bool { return !f.ok() }

// need returns a field that must not be empty.
func (f *adminForm) need(name, what string) string {
	v := f.Value(name)
	if v == "" {
		f.fail(name, what+" is missing.")
	}
	return v
}

// list returns the parts of a field that are separated by commas or lines.
func (f *adminForm) list(name string) []string {
	var parts []string
	for _, p := range strings.FieldsFunc(f.values.Get(name), func(r rune) bool { return r == ',' || r == '\n' }) {
		if p = strings.TrimSpace(p); p != "" {
			parts = append(parts, p)
		}
	}
	return parts
}

// lines returns the lines of a field that are not empty.
func (f *adminForm) lines(name string) []string {
	var lines []string
	for line := range strings.Lines(f.values.Get(name)) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// number returns a field that is a number, or nil if it is empty.
func (f *adminForm) number(name string) *float64 {
	text := f.Value(name)
	if text == "" {
		return nil
	}
	n, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", "."), 64)
	if err != nil {
		f.fail(name, "This is not a number.")
		return nil
	}
	return &n
}

// whole returns a field that is a whole number, or 0 if it is empty.
func (f *adminForm) whole(name string) int {
	text := f.Value(name)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		f.fail(name, "This is not a whole number.")
	}
	return n
}

// date returns the end of the day that a field names; zero: it is empty.
func (f *adminForm) date(name string) time.Time {
	text := f.Value(name)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		f.fail(name, "This is not a date such as 2027-01-31.")
		return time.Time{}
	}
	return t.Add(24*time.Hour - time.Second)
}

// An adminField is a field of a form, as the template admin-field shows it.
type adminField struct {
	ID, Name, Label, Hint, Value, Error string
	Type                                string // of the input; "lines": several lines
	Needed                              bool
	Options                             []adminOption // of a list; nil: it is none
}

// An adminOption is an element of a list to choose from.
type adminOption struct {
	Value, Label string
	Chosen       bool
}

// Field returns a field of the form for one line of text.
func (f *adminForm) Field(name, label, hint string) adminField {
	return adminField{ID: f.ID + "-" + name, Name: name, Label: label, Hint: hint, Value: f.values.Get(name), Error: f.wrong[name], Type: "text"}
}

// Required returns the field as one that must not be empty.
func (a adminField) Required() adminField { a.Needed = true; return a }

// As returns the field with another type of input.
func (a adminField) As(kind string) adminField { a.Type = kind; return a }

// Of returns the field as a list of values to choose from: pairs of a value and its label.
func (a adminField) Of(pairs ...string) adminField {
	for i := 0; i+1 < len(pairs); i += 2 {
		a.Options = append(a.Options, adminOption{pairs[i], pairs[i+1], pairs[i] == a.Value})
	}
	return a
}

// Reason returns the field for the reason of a change.
func (f *adminForm) Reason() adminField {
	return f.Field("reason", "Reason", "Kept in the audit log with your name.")
}
