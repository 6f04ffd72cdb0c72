package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay"
)

// A Divergence is a way in which a run left the path recorded in its journal.
type Divergence string

// The ways to diverge.
const (
	OtherInput  Divergence = "the input differs"
	OtherKind   Divergence = "the kind differs"
	OtherResult Divergence = "the recorded result cannot be read"
	NotRecorded Divergence = "the journal does not hold it"
	NotTaken    Divergence = "the journal holds it but it was not taken"
)

// A DivergenceError is the first difference between a resumed or replayed run and its journal. It
// wraps assay.ErrDiverged.
type DivergenceError struct {
	Path     string // of the step
	Reason   Divergence
	Recorded json.RawMessage // the input in the journal; nil for NotRecorded
	Given    json.RawMessage // the input now; nil for NotTaken

	// Diff is, for OtherInput, the first difference, the journal's side first:
	//
	//	in.filter.keys[2]: "author" != "source"
	//
	// Long values are cut around the difference. For OtherKind it is both kinds, and for
	// OtherResult the error.
	Diff string

	Steps int // for NotTaken: the number of steps not taken; Path names the first

	// Before is, for NotRecorded, the path of the recorded step that was due instead. It is empty
	// in a replay and if no recorded step is left.
	Before string
}

func (e *DivergenceError) Error() string {
	s := fmt.Sprintf("step %s: %v: %s", e.Path, assay.ErrDiverged, e.Reason)
	if e.Diff != "" {
		s += ": " + e.Diff
	}
	if e.Steps > 1 {
		s += fmt.Sprintf(" (nor were %d after it)", e.Steps-1)
	}
	return s
}

// Unwrap returns assay.ErrDiverged.
func (e *DivergenceError) Unwrap() error { return assay.ErrDiverged }

// diff describes the first difference between two JSON values, in the order of their canonical
// form. name is the name of both values.
func diff(name string, a, b json.RawMessage) string {
	x, errA := decodeNumbers(a)
	y, errB := decodeNumbers(b)
	if errA != nil || errB != nil {
		return name + ": " + sides(string(a), string(b))
	}
	if d := diffValues(name, x, y); d != "" {
		return d
	}
	return name + ": the same value in other bytes"
}

func decodeNumbers(raw json.RawMessage) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

// missing is a value that one side lacks.
type missing struct{}

// diffValues returns the first difference between a and b, or "" if they are equal.
func diffValues(path string, a, b any) string {
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			return diffObjects(path, x, y)
		}
	case []any:
		if y, ok := b.([]any); ok {
			return diffLists(path, x, y)
		}
	default:
		if a == b {
			return ""
		}
	}
	return path + ": " + sides(render(a), render(b))
}

func diffObjects(path string, a, b map[string]any) string {
	keys := slices.Collect(maps.Keys(a))
	keys = slices.AppendSeq(keys, maps.Keys(b))
	slices.Sort(keys)
	at := func(m map[string]any, key string) any {
		if v, ok := m[key]; ok {
			return v
		}
		return missing{}
	}
	for _, key := range slices.Compact(keys) {
		if d := diffValues(path+member(key), at(a, key), at(b, key)); d != "" {
			return d
		}
	}
	return ""
}

func diffLists(path string, a, b []any) string {
	at := func(list []any, i int) any {
		if i < len(list) {
			return list[i]
		}
		return missing{}
	}
	for i := range max(len(a), len(b)) {
		if d := diffValues(path+"["+strconv.Itoa(i)+"]", at(a, i), at(b, i)); d != "" {
			return d
		}
	}
	return ""
}

// member renders a key as part of a path.
func member(key string) string {
	plain := func(c rune) bool {
		return c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	}
	if key != "" && strings.IndexFunc(key, func(c rune) bool { return !plain(c) }) < 0 {
		return "." + key
	}
	return "[" + strconv.Quote(key) + "]"
}

func render(v any) string {
	if (v == missing{}) {
		return "(nothing)"
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSpace(buf.String())
}

const (
	diffBefore = 30  // bytes shown before the first difference
	diffShown  = 120 // bytes shown of each side
)

// sides renders two different texts, cut around their first difference.
func sides(a, b string) string {
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	from := 0
	if max(len(a), len(b)) > diffShown {
		from = max(0, same-diffBefore)
	}
	return window(a, from) + " != " + window(b, from)
}

// window returns up to diffShown bytes of s from the offset from, in whole runes, with … for the
// parts cut off.
func window(s string, from int) string {
	from = min(from, len(s))
	to := min(len(s), from+diffShown)
	for from > 0 && from < len(s) && !utf8.RuneStart(s[from]) {
		from--
	}
	for to < len(s) && !utf8.RuneStart(s[to]) {
		to++
	}
	out := s[from:to]
	if from > 0 {
		out = "…" + out
	}
	if to < len(s) {
		out += "…"
	}
	return out
}
