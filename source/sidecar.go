package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/datekey"
)

// SidecarSuffix is appended to a document's name to form its sidecar's. Its case does not matter.
const SidecarSuffix = ".metadata.json"

// MaxSidecarBytes is the largest size of a sidecar that is used. Bedrock's own limit is 10 KiB; a
// long ACL needs more.
const MaxSidecarBytes = 256 << 10

// documentOf returns the name of the document that a sidecar with this name belongs to.
func documentOf(name string) (document string, ok bool) {
	n := len(name) - len(SidecarSuffix)
	if n <= 0 || !strings.EqualFold(name[n:], SidecarSuffix) {
		return "", false
	}
	return name[:n], true
}

// A Sidecar holds the metadata and the ACL stored beside a document.
type Sidecar struct {
	Metadata assay.Metadata // nil: none
	ACL      assay.ACL
}

// ParseSidecar parses a sidecar in one of these forms:
//
//	{"team": "legal", "year": 2023, "tags": ["a"], "acl": ["group:legal"]}
//	{"metadataAttributes": {"team": "legal", "year": 2023}, "acl": ["group:legal"]}
//	{"metadataAttributes": {"team": {"value": {"type": "STRING", "stringValue": "legal"}, "includeForEmbedding": true}}}
//
// The second and third are those of Bedrock knowledge bases and may be mixed. The types are STRING,
// NUMBER, BOOLEAN and STRING_LIST. includeForEmbedding and documentStructureConfiguration are
// accepted and ignored.
//
// "acl", beside the metadata or as an attribute, is a list of "user:NAME", "group:NAME" and "*"; an
// empty list denies access to everyone. It is not metadata. Values are strings, finite numbers,
// booleans, lists of strings and {"time": "2006-01-02T15:04:05Z"}. A string stays a string, except
// under keys that name a date, such as "date", "created_at" and "modified". There a date or time
// becomes a time, under that key and under "created" or "modified". The forms are RFC 3339,
// "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02" and "2006-01", in UTC. Other keys
// known to assay have fixed kinds: "path" is a list, "author" is a string or a list, the rest are
// strings.
//
// Everything else is assay.ErrInvalid, including duplicate keys, because a partly understood
// sidecar could grant access that it is meant to deny.
func ParseSidecar(data []byte) (Sidecar, error) {
	s, err := parseSidecar(data)
	switch {
	case errors.Is(err, assay.ErrInvalid):
		return Sidecar{}, err
	case err != nil:
		return Sidecar{}, fmt.Errorf("%w: %w", err, assay.ErrInvalid)
	}
	return s, nil
}

func parseSidecar(data []byte) (Sidecar, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		return Sidecar{}, fmt.Errorf("not valid UTF-8")
	}
	top, err := members(data)
	if err != nil {
		return Sidecar{}, err
	}
	var s Sidecar
	attributes := top
	if i := indexOf(top, "metadataAttributes"); i >= 0 {
		if attributes, err = members(top[i].value); err != nil {
			return Sidecar{}, fmt.Errorf("metadataAttributes: %w", err)
		}
		for _, m := range top {
			switch m.key {
			case "metadataAttributes", "documentStructureConfiguration":
			case "acl":
				attributes = append(attributes, m)
			default:
				return Sidecar{}, fmt.Errorf("key %q beside metadataAttributes", m.key)
			}
		}
	}
	hasACL := false
	for _, m := range attributes {
		raw, err := plainValue(m.value)
		if err != nil {
			return Sidecar{}, fmt.Errorf("key %q: %w", m.key, err)
		}
		switch {
		case m.key == "":
			return Sidecar{}, fmt.Errorf("empty key")
		case m.key == "acl" && hasACL:
			return Sidecar{}, fmt.Errorf("two acl")
		case m.key == "acl":
			if s.ACL, err = parseACL(raw); err != nil {
				return Sidecar{}, err
			}
			hasACL = true
		case strings.EqualFold(strings.TrimSpace(m.key), "acl"):
			return Sidecar{}, fmt.Errorf("key %q is not \"acl\"", m.key)
		default:
			v, err := metadataValue(m.key, raw)
			if err != nil {
				return Sidecar{}, fmt.Errorf("key %q: %w", m.key, err)
			}
			if s.Metadata == nil {
				s.Metadata = assay.Metadata{}
			}
			s.Metadata[m.key] = v
		}
	}
	for _, m := range attributes { // in their order
		own, ok := datekey.Standard(m.key)
		if v := s.Metadata[m.key]; ok && v.Kind == assay.KindTime {
			if _, given := s.Metadata[own]; !given {
				s.Metadata[own] = v
			}
		}
	}
	return s, nil
}

// A member is one key of a JSON object with its unparsed value.
type member struct {
	key   string
	value json.RawMessage
}

// members parses one JSON object whose keys are distinct. Unlike decoding into a map, it detects
// duplicate keys.
func members(data []byte) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	open, err := dec.Token()
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if open != json.Delim('{') {
		return nil, fmt.Errorf("not a JSON object")
	}
	var ms []member
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("not JSON: %w", err)
		}
		m := member{key: key.(string)} // the decoder returns only string keys here
		if err := dec.Decode(&m.value); err != nil {
			return nil, fmt.Errorf("not JSON: %w", err)
		}
		if indexOf(ms, m.key) >= 0 {
			return nil, fmt.Errorf("key %q is given twice", m.key)
		}
		ms = append(ms, m)
	}
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("something follows the JSON object")
	}
	return ms, nil
}

func indexOf(ms []member, key string) int {
	for i := range ms {
		if ms[i].key == key {
			return i
		}
	}
	return -1
}

// plainValue unwraps Bedrock's typed form and returns other values unchanged.
func plainValue(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 || raw[0] != '{' {
		return raw, nil
	}
	outer, err := members(raw)
	if err != nil {
		return nil, err
	}
	i := indexOf(outer, "value")
	if i < 0 {
		return raw, nil
	}
	for _, m := range outer {
		if m.key != "value" && m.key != "includeForEmbedding" {
			return nil, fmt.Errorf("unknown member %q", m.key)
		}
	}
	typed, err := members(outer[i].value)
	if err != nil {
		return nil, fmt.Errorf("value: %w", err)
	}
	t := indexOf(typed, "type")
	if t < 0 {
		return nil, fmt.Errorf("value without a type")
	}
	var name string
	if err := json.Unmarshal(typed[t].value, &name); err != nil {
		return nil, fmt.Errorf("the type is not a string")
	}
	field, ok := map[string]string{
		"STRING": "stringValue", "NUMBER": "numberValue", "BOOLEAN": "booleanValue", "STRING_LIST": "stringListValue",
	}[name]
	if !ok {
		return nil, fmt.Errorf("unknown type %q", name)
	}
	v := indexOf(typed, field)
	if v < 0 || len(typed) != 2 {
		return nil, fmt.Errorf("type %s needs %s and nothing else", name, field)
	}
	return typed[v].value, sameType(name, typed[v].value)
}

// sameType checks a value against its declared type.
func sameType(name string, raw json.RawMessage) error {
	var v assay.Value
	if err := v.UnmarshalJSON(raw); err != nil {
		return err
	}
	want := map[string]assay.ValueKind{
		"STRING": assay.KindString, "NUMBER": assay.KindNumber, "BOOLEAN": assay.KindBoolean, "STRING_LIST": assay.KindList,
	}[name]
	if v.Kind != want {
		return fmt.Errorf("type %s with a %s", name, v.Kind)
	}
	return nil
}

func parseACL(raw json.RawMessage) (assay.ACL, error) {
	var names []string
	if err := json.Unmarshal(raw, &names); err != nil || names == nil {
		return assay.ACL{}, fmt.Errorf("acl is not a list of strings")
	}
	var whole []any
	if err := json.Unmarshal(raw, &whole); err != nil {
		return assay.ACL{}, fmt.Errorf("acl: %w", err)
	}
	for _, e := range whole {
		if _, ok := e.(string); !ok { // null becomes "" in a []string
			return assay.ACL{}, fmt.Errorf("acl is not a list of strings")
		}
	}
	return assay.RestrictTo(names...)
}

// metadataValue parses a value and checks the kind of keys that assay knows.
func metadataValue(key string, raw json.RawMessage) (assay.Value, error) {
	var v assay.Value
	if err := v.UnmarshalJSON(raw); err != nil {
		return v, err
	}
	if v.Kind == assay.KindNumber && math.Abs(v.Number) >= 1<<53 && !bytes.ContainsAny(raw, ".eE") {
		return v, fmt.Errorf("%s does not fit a float64 exactly; write it as a string", raw)
	}
	switch key {
	case assay.MetaCreated, assay.MetaModified:
		if v.Kind == assay.KindString {
			t, ok := ParseTime(v.String)
			if !ok {
				return v, fmt.Errorf("%q is not a time as in 2006-01-02 or 2006-01-02T15:04:05Z", v.String)
			}
			return assay.TimeValue(t), nil
		}
		return v, wantKind(v, assay.KindTime)
	case assay.MetaPath:
		return v, wantKind(v, assay.KindList)
	case assay.MetaAuthor:
		return v, wantKind(v, assay.KindString, assay.KindList)
	case assay.MetaSource, assay.MetaType, assay.MetaTitle, assay.MetaLanguage:
		return v, wantKind(v, assay.KindString)
	}
	if _, ok := datekey.Standard(key); ok && v.Kind == assay.KindString {
		if t, ok := ParseTime(v.String); ok {
			return assay.TimeValue(t), nil
		}
	}
	return v, nil
}

func wantKind(v assay.Value, kinds ...assay.ValueKind) error {
	for _, k := range kinds {
		if v.Kind == k {
			return nil
		}
	}
	return fmt.Errorf("it is a %s, want a %s", v.Kind, kinds[0])
}

// ParseTime parses a time in one of the forms that ParseSidecar accepts.
func ParseTime(s string) (t time.Time, ok bool) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateTime, time.DateOnly, "2006-01"} {
		if t, err := time.Parse(layout, s); err == nil && assay.ValidTime(t) {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}
