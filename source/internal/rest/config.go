package rest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
)

// Invalid returns an assay.ErrInvalid for the configuration of a source.
func Invalid(kind, format string, args ...any) error {
	return fmt.Errorf("%s: %s: %w", kind, fmt.Sprintf(format, args...), assay.ErrInvalid)
}

// Secret returns a credential of a configuration without the space around it.
func Secret(kind string, c source.Config, name string) (string, error) {
	if c.Credential == nil {
		return "", Invalid(kind, "there is no credential %q", name)
	}
	value, err := c.Credential(name)
	if err != nil {
		return "", fmt.Errorf("%s: credential %s: %w", kind, name, err)
	}
	return strings.TrimSpace(value), nil
}

// Required returns a credential that must not be empty.
func Required(kind string, c source.Config, name string) (string, error) {
	value, err := Secret(kind, c, name)
	if err == nil && value == "" {
		err = Invalid(kind, "the credential %q is empty", name)
	}
	return value, err
}

// List returns the members of a comma-separated option.
func List(value string) []string {
	var out []string
	for part := range strings.SplitSeq(value, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// Bool returns an option that is "true" or "false".
func Bool(kind string, c source.Config, name string) (bool, error) {
	switch c.Options[name] {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, Invalid(kind, "the option %s is %q, not true or false", name, c.Options[name])
}

// Ref writes what Fetch needs to find an item.
func Ref(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic("rest: a reference that is no JSON: " + err.Error())
	}
	return string(data)
}

// Unref reads a reference that Ref wrote.
func Unref(item source.Item, into any) error {
	if err := json.Unmarshal([]byte(item.Ref), into); err != nil {
		return &source.Skip{URI: item.URI, Reason: source.Unreadable, Detail: "its reference is damaged", Err: err}
	}
	return nil
}

// User returns the principal of a user: the e-mail address in lower case, or the service's id if
// the address is not known. It is empty if both are.
func User(email, id string) string { return principal("user:", email, id) }

// Group returns the principal of a group: its e-mail address in lower case, or the service's id.
func Group(email, id string) string { return principal("group:", email, id) }

func principal(kind, email, id string) string {
	if email = strings.ToLower(strings.TrimSpace(email)); email != "" {
		return kind + email
	}
	if id != "" {
		return kind + id
	}
	return ""
}

// Metadata collects the metadata of an item.
type Metadata assay.Metadata

// Text sets a string that is not empty.
func (m Metadata) Text(key, value string) Metadata {
	if value != "" {
		m[key] = assay.StringValue(value)
	}
	return m
}

// Time sets a time that is known and valid.
func (m Metadata) Time(key string, t time.Time) Metadata {
	if !t.IsZero() && assay.ValidTime(t) {
		m[key] = assay.TimeValue(t)
	}
	return m
}

// Strings sets a list that is not empty.
func (m Metadata) Strings(key string, values []string) Metadata {
	if len(values) > 0 {
		m[key] = assay.ListValue(values...)
	}
	return m
}

// ParseTime parses the times that services write. It is zero if the text is none.
func ParseTime(text string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999-0700", "2006-01-02T15:04:05-0700"} {
		if t, err := time.Parse(layout, text); err == nil && assay.ValidTime(t) {
			return t.UTC()
		}
	}
	return time.Time{}
}

// FileName returns a name that is safe as a hint for a format: one line without slashes, with the
// extension.
func FileName(name, extension string) string {
	clean := func(r rune) rune {
		if r < ' ' || r == '/' || r == '\\' || r == 0x7f {
			return ' '
		}
		return r
	}
	name = strings.Join(strings.Fields(strings.Map(clean, name)), " ")
	if name == "" {
		name = "untitled"
	}
	return name + extension
}
