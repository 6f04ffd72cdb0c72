package parse

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/datekey"
	"github.com/assay-rag/assay/internal/safeyaml"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/goccy/go-yaml"
)

// frontMatter reads the front matter at the start of src: YAML between "---" lines, plain TOML
// pairs between "+++" lines, or JSON in an initial HTML comment. It returns the offset of the body.
// Front matter that cannot be parsed is kept as a code block.
func frontMatter(src *source, b *builder) (body int) {
	if fields, n := commentFields(src.text); n > 0 {
		setFields(b, "", fields, 0)
		return n
	}
	fence, raw, n := fenced(src.text)
	if n == 0 {
		return 0
	}
	parse := yamlFields
	if fence == "+++" {
		parse = tomlFields
	}
	fields, err := parse(raw)
	if err != nil {
		b.puts(Code, strings.TrimRight(raw, "\n"), 2)
		return n
	}
	setFields(b, "", fields, 0)
	return n
}

// largestFront is the largest size of front matter in bytes.
const largestFront = 64 << 10

// fenced returns the fence and the content of the front matter at the start of text, and the offset
// of the body. n is 0 if there is none.
func fenced(text string) (fence, raw string, n int) {
	fence, rest, ok := strings.Cut(text[:min(len(text), largestFront)], "\n")
	fence = strings.TrimRight(fence, " \t")
	if !ok || fence != "---" && fence != "+++" {
		return "", "", 0
	}
	at := len(text[:min(len(text), largestFront)]) - len(rest)
	for from := at; from < len(text) && from < largestFront; {
		line, _, _ := strings.Cut(text[from:], "\n")
		next := min(from+len(line)+1, len(text))
		if end := strings.TrimRight(line, " \t"); end == fence || fence == "---" && end == "..." {
			return fence, text[at:from], next
		}
		from = next
	}
	return "", "", 0
}

// commentFields parses a JSON object in an HTML comment at the start of text.
func commentFields(text string) (map[string]any, int) {
	inner, ok := strings.CutPrefix(text[:min(len(text), largestFront)], "<!--")
	if !ok {
		return nil, 0
	}
	inner, _, ok = strings.Cut(inner, "-->")
	if !ok || !strings.HasPrefix(strings.TrimSpace(inner), "{") {
		return nil, 0
	}
	var fields map[string]any
	if json.Unmarshal([]byte(inner), &fields) != nil {
		return nil, 0
	}
	return fields, len("<!--") + len(inner) + len("-->")
}

func yamlFields(raw string) (fields map[string]any, err error) {
	if err := safeyaml.Check([]byte(raw)); err != nil {
		return nil, fmt.Errorf("front matter: %w", err)
	}
	// The library parses untrusted bytes. A panic in it must affect only the front matter.
	defer func() {
		if p := recover(); p != nil {
			fields, err = nil, fmt.Errorf("front matter: %v", p)
		}
	}()
	if err := yaml.Unmarshal([]byte(raw), &fields); err != nil {
		return nil, err
	}
	return fields, nil
}

// tomlFields parses `key = value` lines of TOML; tables give dotted keys. Unsupported values are an
// error.
func tomlFields(raw string) (map[string]any, error) {
	fields := map[string]any{}
	prefix := ""
	for line := range strings.SplitSeq(raw, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '[' {
			prefix = strings.Trim(line, "[] ") + "."
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		v, err := tomlValue(strings.TrimSpace(value))
		if !ok || err != nil {
			return nil, fmt.Errorf("front matter line %q is not key = value", line)
		}
		fields[prefix+strings.Trim(strings.TrimSpace(key), `"'`)] = v
	}
	return fields, nil
}

func tomlValue(s string) (any, error) {
	if len(s) > 1 && s[0] == '\'' && s[len(s)-1] == '\'' {
		return s[1 : len(s)-1], nil
	}
	var v any
	if err := json.Unmarshal([]byte(s), &v); err == nil {
		return v, nil
	}
	if t, ok := assay.ParseDate(s); ok {
		return t, nil
	}
	return nil, fmt.Errorf("value %q", s)
}

// setFields stores fields as metadata, with dotted keys for nested objects. Values without a typed
// form (null, lists of objects) are dropped.
func setFields(b *builder, prefix string, fields map[string]any, depth int) {
	const deepest = 4
	keys := make([]string, 0, len(fields))
	for k := range fields {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		if nested, ok := fields[k].(map[string]any); ok {
			if depth < deepest {
				setFields(b, prefix+k+".", nested, depth+1)
			}
			continue
		}
		if v, ok := metaValue(fields[k]); ok {
			setField(b, visible.Text(prefix+k), v)
		}
	}
}

// setField stores one field, under assay's own key if it has that meaning. A date is also stored
// under its original key.
func setField(b *builder, key string, v assay.Value) {
	switch strings.ToLower(strings.NewReplacer("_", "", "-", "", ":", "", ".", "").Replace(key)) {
	case "title":
		if b.title == "" {
			b.title = v.Text()
		}
		return
	case "author", "authors", "creator", "dccreator", "articleauthor":
		if v.Kind == assay.KindString || v.Kind == assay.KindList {
			key = assay.MetaAuthor
		}
	case "lang", "language", "locale", "oglocale", "dclanguage":
		if v.Kind == assay.KindString {
			key, v = assay.MetaLanguage, assay.StringValue(languageCode(v.String))
		}
	}
	if v.Kind == assay.KindString && v.String == "" {
		return
	}
	if own, ok := datekey.Standard(key); ok && v.Kind == assay.KindTime {
		b.set(own, v)
	}
	b.set(key, v)
}

// languageCode returns the language part of a language tag: "en" for "en-US".
func languageCode(tag string) string {
	tag, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
	tag, _, _ = strings.Cut(tag, "_")
	return tag
}

// metaValue converts v to a value of the same type as in the source. A string that is a date or
// time becomes a time.
func metaValue(v any) (assay.Value, bool) {
	switch x := v.(type) {
	case string:
		if t, ok := assay.ParseDate(x); ok {
			return assay.TimeValue(t), true
		}
		return assay.StringValue(visible.Text(x)), true
	case bool:
		return assay.BooleanValue(x), true
	case int64:
		return assay.NumberValue(float64(x)), true
	case uint64:
		return assay.NumberValue(float64(x)), true
	case int:
		return assay.NumberValue(float64(x)), true
	case float64:
		return assay.NumberValue(x), !math.IsNaN(x) && !math.IsInf(x, 0)
	case time.Time:
		return assay.TimeValue(x), assay.ValidTime(x)
	case []any:
		list := make([]string, 0, len(x))
		for _, e := range x {
			s, ok := scalar(e)
			if !ok {
				return assay.Value{}, false
			}
			list = append(list, visible.Text(s))
		}
		return assay.ListValue(list...), len(list) > 0
	}
	return assay.Value{}, false
}

func scalar(v any) (string, bool) {
	switch x := v.(type) {
	case string:
		return x, true
	case bool:
		return strconv.FormatBool(x), true
	case int64, uint64, int:
		return fmt.Sprint(x), true
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64), true
	case time.Time:
		return x.Format(time.RFC3339), true
	}
	return "", false
}
