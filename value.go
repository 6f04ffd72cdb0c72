package assay

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A ValueKind is the type of a metadata value.
type ValueKind string

// The kinds of a metadata value.
const (
	KindString  ValueKind = "string"
	KindNumber  ValueKind = "number"
	KindBoolean ValueKind = "boolean"
	KindTime    ValueKind = "time"
	KindList    ValueKind = "list" // a list of strings
)

// A Value is one typed metadata value. Only the field named by Kind is
// meaningful; the others are zero. The zero Value has no kind and is not valid.
type Value struct {
	Kind    ValueKind
	String  string
	Number  float64
	Boolean bool
	Time    time.Time // UTC
	List    []string
}

// StringValue returns s as a Value.
func StringValue(s string) Value { return Value{Kind: KindString, String: s} }

// NumberValue returns n as a Value. n must be finite.
func NumberValue(n float64) Value { return Value{Kind: KindNumber, Number: n} }

// BooleanValue returns b as a Value.
func BooleanValue(b bool) Value { return Value{Kind: KindBoolean, Boolean: b} }

// ValidTime reports whether t, in UTC, is in one of the years 0 to 9999, which RFC 3339 can write.
// Other times are not valid values.
func ValidTime(t time.Time) bool {
	year := t.UTC().Year()
	return 0 <= year && year <= 9999
}

// TimeValue returns t, in UTC, as a Value. t must be a ValidTime.
func TimeValue(t time.Time) Value { return Value{Kind: KindTime, Time: t.UTC()} }

// dateLayouts are the forms in which documents and people write dates and times.
var dateLayouts = []string{
	time.DateOnly, time.RFC3339Nano, "2006-01-02T15:04:05", time.DateTime,
	"2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05Z07:00",
	"2006-01-02T15:04:05-0700", "2006-01-02 15:04 -0700", "2006/01/02",
}

// ParseDate parses a date or a time, as in 2006-01-02, 2006/01/02, 2006-01-02 15:04 and RFC 3339. A
// time without a zone is in UTC. The year must be 1 or later.
func ParseDate(s string) (t time.Time, ok bool) {
	const longest = 40
	if len(s) < len(time.DateOnly) || len(s) > longest || s[0] < '0' || s[0] > '9' {
		return time.Time{}, false
	}
	for _, layout := range dateLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), t.Year() > 0 && ValidTime(t)
		}
	}
	return time.Time{}, false
}

// when returns the time of v if v is a time or a string with a date.
func (v Value) when() (time.Time, bool) {
	switch v.Kind {
	case KindTime:
		return v.Time, true
	case KindString:
		return ParseDate(v.String)
	}
	return time.Time{}, false
}

// sameAs reports whether v and w are equal. A time equals a string with the same date.
func (v Value) sameAs(w Value) bool {
	if v.Kind == w.Kind || v.Kind != KindTime && w.Kind != KindTime {
		return v.Equal(w)
	}
	a, isTime := v.when()
	b, areTimes := w.when()
	return isTime && areTimes && a.Equal(b)
}

// ListValue returns the strings as a Value.
func ListValue(l ...string) Value { return Value{Kind: KindList, List: l} }

// Text renders v for people: a string unchanged, a list joined by ", ".
func (v Value) Text() string {
	switch v.Kind {
	case KindString:
		return v.String
	case KindNumber:
		return strconv.FormatFloat(v.Number, 'f', -1, 64)
	case KindBoolean:
		return strconv.FormatBool(v.Boolean)
	case KindTime:
		return v.Time.Format(time.RFC3339Nano)
	case KindList:
		return strings.Join(v.List, ", ")
	}
	return ""
}

// Equal reports whether v and w have the same kind and value. Times are equal if they are the same
// instant.
func (v Value) Equal(w Value) bool {
	if v.Kind != w.Kind {
		return false
	}
	switch v.Kind {
	case KindString:
		return v.String == w.String
	case KindNumber:
		return v.Number == w.Number
	case KindBoolean:
		return v.Boolean == w.Boolean
	case KindTime:
		return v.Time.Equal(w.Time)
	case KindList:
		return slices.Equal(v.List, w.List)
	}
	return true
}

// MarshalJSON writes strings, numbers, booleans and lists as their JSON counterparts and a time as
// {"time": "2006-01-02T15:04:05Z"}, so that UnmarshalJSON returns the same kind. A value without a
// kind, a number that is not finite and a time that is not a ValidTime are errors.
func (v Value) MarshalJSON() ([]byte, error) {
	switch v.Kind {
	case KindString:
		return json.Marshal(v.String)
	case KindNumber:
		return json.Marshal(v.Number)
	case KindBoolean:
		return json.Marshal(v.Boolean)
	case KindTime:
		if !ValidTime(v.Time) {
			return nil, fmt.Errorf("metadata time in the year %d: %w", v.Time.Year(), ErrInvalid)
		}
		return json.Marshal(map[string]string{"time": v.Time.UTC().Format(time.RFC3339Nano)})
	case KindList:
		if v.List == nil {
			return []byte("[]"), nil
		}
		return json.Marshal(v.List)
	}
	return nil, fmt.Errorf("metadata value without a kind: %w", ErrInvalid)
}

// UnmarshalJSON reads the form that MarshalJSON writes. Anything else (null, nested objects, lists
// with members other than strings) is ErrInvalid.
func (v *Value) UnmarshalJSON(data []byte) error {
	var raw any
	if err := json.Unmarshal(data, &raw); err != nil {
		return fmt.Errorf("metadata value: %w: %w", ErrInvalid, err)
	}
	switch x := raw.(type) {
	case string:
		*v = StringValue(x)
	case float64:
		*v = NumberValue(x)
	case bool:
		*v = BooleanValue(x)
	case []any:
		list := make([]string, 0, len(x))
		for _, e := range x {
			s, ok := e.(string)
			if !ok {
				return fmt.Errorf("metadata list holds a %T, want strings: %w", e, ErrInvalid)
			}
			list = append(list, s)
		}
		*v = ListValue(list...)
	case map[string]any:
		s, ok := x["time"].(string)
		if !ok || len(x) != 1 {
			return fmt.Errorf("metadata value is an object, want a string, number, boolean, list of strings or {\"time\": …}: %w", ErrInvalid)
		}
		t, err := time.Parse(time.RFC3339Nano, s)
		if err != nil || !ValidTime(t) {
			return fmt.Errorf("metadata time %q: %w", s, ErrInvalid)
		}
		*v = TimeValue(t)
	default:
		return fmt.Errorf("metadata value is %s: %w", data, ErrInvalid)
	}
	return nil
}

// Metadata holds a document's typed keys. Keys are case sensitive.
type Metadata map[string]Value

// Keys that assay fills in itself if the source has them. A user's own metadata (front matter,
// sidecar) takes precedence over derived values.
const (
	MetaSource   = "source"   // kind of source: "file", "stdin"
	MetaType     = "type"     // document type: "markdown", "html", "go", …
	MetaTitle    = "title"    // string
	MetaAuthor   = "author"   // string, or list if there are several
	MetaCreated  = "created"  // time
	MetaModified = "modified" // time
	MetaLanguage = "language" // ISO 639-1 code of the text's language: "en"
	MetaPath     = "path"     // list: the parts of the path below the ingested folder, and inside a container

	// MetaContainer is the URI of the archive, mail or other source that contains the document.
	MetaContainer = "container"
)
