package parse

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
)

// parseJSON parses one JSON value. The members of an object become "key: value" lines, with dotted
// keys for nested members. A large member that is an object or a list of objects gets a heading. A
// list of objects becomes records, see writeRecord.
func parseJSON(src *source, b *builder) bool {
	values, err := jsonValues(b, src.text, 1, func(v *jsonValue) { writeRecord(b, v, 1) })
	if err != nil || len(values) != 1 {
		return false
	}
	top := values[0]
	if top.kind == jsonScalar {
		return false
	}
	if s := top.member("title", "name"); s != nil && s.kind == jsonScalar && top.kind == jsonObject {
		b.title = s.text
	}
	writeJSON(b, top, 1)
	return true
}

// parseJSONL parses one JSON value per line, each of which becomes a record. A line that is not
// JSON is kept unchanged. If there are many of these, the source is not JSON lines.
func parseJSONL(src *source, b *builder) bool {
	records, broken := 0, 0
	for i, l := range src.lines() {
		if isBlank(l) {
			continue
		}
		if b.canceled() {
			return false
		}
		values, err := jsonValues(b, l, i+1, nil)
		if err != nil || len(values) != 1 || values[0].kind == jsonScalar {
			broken++
			if broken > 5+records/10 {
				return false
			}
			b.puts(Code, l, i+1)
			continue
		}
		records++
		writeRecord(b, values[0], 1)
	}
	return records > 1
}

type jsonKind int

const (
	jsonScalar jsonKind = iota
	jsonObject
	jsonList
)

// A jsonValue is a value and the source line on which it starts.
type jsonValue struct {
	kind    jsonKind
	key     string // in an object
	text    string // scalars: strings without quotes, others as in the source
	line    int
	members []*jsonValue // in source order
}

// member returns the first member with one of the keys, or nil.
func (v *jsonValue) member(keys ...string) *jsonValue {
	for _, k := range keys {
		for _, m := range v.members {
			if strings.EqualFold(m.key, k) {
				return m
			}
		}
	}
	return nil
}

// size returns the number of bytes of the text in v, counted up to about limit.
func (v *jsonValue) size(limit int) int {
	n := len(v.key) + len(v.text)
	for _, m := range v.members {
		if n > limit {
			break
		}
		n += m.size(limit - n)
	}
	return n
}

var errJSONDepth = errors.New("nested too deeply")

// jsonValues parses the consecutive values in text. Its first line is the given source line. The
// members of lists at the outermost level are passed to each instead of being kept, if each is not
// nil.
func jsonValues(b *builder, text string, line int, each func(*jsonValue)) ([]*jsonValue, error) {
	const deepest = 100
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	root := &jsonValue{kind: jsonList}
	stack := []*jsonValue{root}
	key, at := "", 0
	for tokens := 0; ; tokens++ {
		token, err := d.Token()
		if errors.Is(err, io.EOF) && len(stack) == 1 {
			return root.members, nil
		}
		if err != nil {
			return nil, err
		}
		if tokens%4096 == 0 && b.canceled() {
			return nil, b.ctx.Err()
		}
		end := int(d.InputOffset())
		start := at
		for start < end && strings.IndexByte(" \t\r\n,:", text[start]) >= 0 {
			start++
		}
		line += strings.Count(text[at:start], "\n") // tokens contain no line ends
		at = end
		top := stack[len(stack)-1]
		v := &jsonValue{key: key, line: line}
		switch t := token.(type) {
		case json.Delim:
			if t == '}' || t == ']' {
				stack = stack[:len(stack)-1]
				if each != nil && isRecord(stack) {
					each(top)
				}
				continue
			}
			v.kind = jsonList
			if t == '{' {
				v.kind = jsonObject
			}
			if stack = append(stack, v); len(stack) > deepest {
				return nil, errJSONDepth
			}
		case string:
			if top.kind == jsonObject && key == "" && !afterColon(text, start) {
				if key = t; key == "" {
					key = `""`
				}
				continue
			}
			v.text = t
		case json.Number:
			v.text = t.String()
		case bool:
			v.text = strconv.FormatBool(t)
		case nil:
			v.text = "null"
		}
		key = ""
		switch {
		case each == nil || !isRecord(parents(stack, v)):
			top.members = append(top.members, v)
		case v.kind == jsonScalar:
			each(v)
		}
	}
}

// isRecord reports whether the values that stack contains are members of a list at the outermost
// level. stack[0] is the list of all values.
func isRecord(stack []*jsonValue) bool { return len(stack) == 2 && stack[1].kind == jsonList }

// parents returns stack without v.
func parents(stack []*jsonValue, v *jsonValue) []*jsonValue {
	if stack[len(stack)-1] == v {
		return stack[:len(stack)-1]
	}
	return stack
}

// afterColon reports whether the token at text[at:] is a member's value.
func afterColon(text string, at int) bool {
	for at--; at >= 0; at-- {
		if c := text[at]; c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c == ':'
		}
	}
	return false
}

// largeMember is the size in bytes from which a nested value gets a heading.
const largeMember = 400

// writeJSON writes a value that is not a scalar; headings start at level.
func writeJSON(b *builder, v *jsonValue, level int) {
	const deepest = 6
	if v.kind == jsonList {
		for _, m := range v.members {
			if b.canceled() {
				return
			}
			writeRecord(b, m, level)
		}
		return
	}
	var small []*jsonValue
	flush := func() {
		writeLines(b, small)
		small = nil
	}
	for _, m := range v.members {
		if m.kind == jsonScalar || level > deepest || m.size(largeMember) < largeMember {
			small = append(small, m)
			continue
		}
		flush()
		b.heading(level, m.key, m.line)
		writeJSON(b, m, level+1)
	}
	flush()
}

// Keys of the title, the identity and the text of records.
var (
	titleKeys = []string{"title", "heading", "headline", "name", "subject"}
	idKeys    = []string{"_id", "id", "url", "path", "key"}
	textKeys  = []string{"text", "content", "contents", "body", "markdown", "passage", "abstract", "description"}
)

// writeRecord writes one record of a list. A record with a text is a section: its title, or else
// its identity, is the heading, its other members are lines, and its text is paragraphs. Any other
// record is a row of "key: value" lines.
func writeRecord(b *builder, v *jsonValue, level int) {
	text := textMember(v)
	if text == nil {
		if v.kind == jsonScalar {
			putRow(b, []*jsonValue{v})
			return
		}
		if v.size(10*largeMember) >= 10*largeMember && level < 6 {
			if t := nameMember(v); t != nil {
				b.heading(level, t.text, t.line)
				level++
			}
			writeJSON(b, v, level)
			return
		}
		putRow(b, v.members)
		return
	}
	title := nameMember(v)
	if title != nil {
		b.heading(level, title.text, title.line)
	}
	var rest []*jsonValue
	for _, m := range v.members {
		if m != text && m != title && !(m.kind == jsonScalar && isBlank(m.text)) {
			rest = append(rest, m)
		}
	}
	writeLines(b, rest)
	if title == nil {
		level--
	}
	b.embed(text.line, level, func() { writeDocument(b, tidy(text.text)) })
}

// textMember returns the member that contains v's text, or nil.
func textMember(v *jsonValue) *jsonValue {
	if v.kind != jsonObject {
		return nil
	}
	for _, k := range textKeys {
		if m := v.member(k); m != nil && m.kind == jsonScalar && strings.Contains(strings.TrimSpace(m.text), " ") {
			return m
		}
	}
	return nil
}

// nameMember returns the member with v's title or identity, or nil.
func nameMember(v *jsonValue) *jsonValue {
	if v.kind != jsonObject {
		return nil
	}
	for _, keys := range [][]string{titleKeys, idKeys} {
		if m := v.member(keys...); m != nil && m.kind == jsonScalar && !isBlank(m.text) && len(m.text) <= 300 {
			return m
		}
	}
	return nil
}

// writeDocument writes the text of a record as Markdown or HTML if it is in that format, and
// otherwise as paragraphs.
func writeDocument(b *builder, text string) {
	src := newText(text)
	switch {
	case isHTML(src):
		writeHTMLFragment(b, text, 1)
		return
	case isMarkdown(src) && !tangled(text):
		_, raw, n := fenced(text)
		b.puts(Code, raw, 1)
		writeMarkdown(src, n, b)
		return
	}
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		b.puts(Paragraph, strings.TrimSpace(paragraph), 1)
	}
}

// putOnLine puts text whose lines all come from one source line.
func putOnLine(b *builder, text string, line int) {
	for i, l := range strings.Split(text, "\n") {
		if i > 0 {
			b.newline()
		}
		b.put(strings.TrimRight(l, " \t"), line)
	}
}

// writeLines writes members as one block of lines.
func writeLines(b *builder, members []*jsonValue) {
	if len(members) > 0 {
		putRow(b, members)
	}
}

func putRow(b *builder, members []*jsonValue) {
	b.begin(TableRow)
	first := true
	for _, m := range members {
		putMember(b, m, m.key, &first)
	}
	b.end()
}

// longestKey is the most bytes of a dotted key, which is repeated for each value below it. A longer
// key is written once on its own line.
const longestKey = 500

// putMember puts "key: value" lines for v and its nested values.
func putMember(b *builder, v *jsonValue, key string, first *bool) {
	if v.kind == jsonScalar {
		if !*first {
			b.newline()
		}
		*first = false
		if key != "" {
			key += ": "
		}
		putOnLine(b, key+tidy(v.text), v.line)
		return
	}
	if v.kind == jsonList && allScalars(v) {
		for i, m := range v.members {
			if i == 0 {
				putMember(b, m, key, first)
				continue
			}
			b.glue(", ")
			putOnLine(b, tidy(m.text), m.line)
		}
		return
	}
	for i, m := range v.members {
		name := m.key
		if v.kind == jsonList {
			name = strconv.Itoa(i + 1)
		}
		if key != "" {
			name = key + "." + name
		}
		if len(name) > longestKey {
			putMember(b, &jsonValue{text: name, line: m.line}, "", first)
			name = "…"
		}
		putMember(b, m, name, first)
	}
}

func allScalars(v *jsonValue) bool {
	for _, m := range v.members {
		if m.kind != jsonScalar {
			return false
		}
	}
	return true
}
