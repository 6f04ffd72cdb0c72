package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/assay-rag/assay"
)

// Canonical returns v as canonical JSON. Equal values give equal bytes, whatever their Go types,
// and Canonical of its own result returns the same bytes.
//
// The form is that of RFC 8785 with two differences, which avoid rounding. Object keys are sorted
// by their UTF-8 bytes, and numbers keep all their digits. There is no space between tokens.
// Strings escape only the quote, the backslash and control characters. Numbers are written as
// encoding/json writes a float64 (1e3 is 1000, 1.50 is 1.5, -0 is 0, 1e21 stays 1e+21).
//
// v is encoded as by encoding/json; a json.RawMessage is read as JSON. Each invalid UTF-8 byte
// becomes U+FFFD, as in encoding/json. The error is assay.ErrInvalid for NaN, an infinity, a type
// without a JSON form, malformed raw JSON, a repeated object key and nesting deeper than 1,000.
func Canonical(v any) (json.RawMessage, error) {
	if raw, ok := v.(json.RawMessage); ok && raw != nil {
		return canonicalJSON(raw)
	}
	buf := encodeBuffers.Get().(*bytes.Buffer)
	defer encodeBuffers.Put(buf)
	buf.Reset()
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("canonical JSON of a %T: %w: %w", v, assay.ErrInvalid, err)
	}
	return canonicalJSON(buf.Bytes())
}

var encodeBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func canonicalJSON(src []byte) (json.RawMessage, error) {
	t := transcoder{src: src, dst: make([]byte, 0, len(src))}
	if err := t.whole(); err != nil {
		return nil, fmt.Errorf("canonical JSON: %w: %w", assay.ErrInvalid, err)
	}
	return t.dst, nil
}

// maxDepth limits the nesting of JSON values, and so the recursion.
const maxDepth = 1000

// A transcoder reads JSON from src and appends its canonical form to dst, in one pass. With cut or
// fill set it also extracts long strings or restores them; see seal.go.
type transcoder struct {
	src []byte
	pos int
	dst []byte

	// cut, if set, receives the text of every long string value and returns the hash that replaces
	// it.
	cut func(text []byte) string
	// fill, if set, receives the hash of every reference and returns its text.
	fill func(hash string) ([]byte, error)

	depth   int
	members []member // of the objects being read, innermost last
	scratch []byte
}

// A member is one key and value of an object in dst. The key's canonical form without quotes is
// dst[key:keyEnd], and the value ends at end.
type member struct {
	start, key, keyEnd, end int
	text                    bool // its value is a string in src
}

func (t *transcoder) fail(format string, args ...any) error {
	return fmt.Errorf("at byte %d: %s", t.pos, fmt.Sprintf(format, args...))
}

// whole transcodes src, which must hold exactly one value.
func (t *transcoder) whole() error {
	if err := t.value(); err != nil {
		return err
	}
	if t.space(); t.pos < len(t.src) {
		return t.fail("%q after the value", t.src[t.pos])
	}
	return nil
}

// space skips white space.
func (t *transcoder) space() {
	for t.pos < len(t.src) {
		switch t.src[t.pos] {
		case ' ', '\t', '\n', '\r':
			t.pos++
		default:
			return
		}
	}
}

// next skips white space and returns the byte after it, or 0 at the end.
func (t *transcoder) next() byte {
	t.space()
	if t.pos == len(t.src) {
		return 0
	}
	return t.src[t.pos]
}

func (t *transcoder) value() error {
	limit := maxDepth
	if t.fill != nil {
		limit++ // for the reference that replaces an innermost string
	}
	if t.depth++; t.depth > limit {
		return t.fail("nested deeper than %d", maxDepth)
	}
	defer func() { t.depth-- }()
	switch c := t.next(); {
	case c == '{':
		return t.object()
	case c == '[':
		return t.array()
	case c == '"':
		return t.text()
	case c == '-' || '0' <= c && c <= '9':
		return t.number()
	}
	for _, word := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(t.src[t.pos:], []byte(word)) {
			t.pos += len(word)
			t.dst = append(t.dst, word...)
			return nil
		}
	}
	if t.pos == len(t.src) {
		return t.fail("a value is missing")
	}
	return t.fail("%q begins no value", t.src[t.pos])
}

func (t *transcoder) array() error {
	t.pos++
	t.dst = append(t.dst, '[')
	if t.next() == ']' {
		t.pos++
		t.dst = append(t.dst, ']')
		return nil
	}
	for {
		if err := t.value(); err != nil {
			return err
		}
		c := t.next()
		if c != ',' && c != ']' {
			return t.fail("an array element is followed by neither , nor ]")
		}
		t.pos++
		t.dst = append(t.dst, c)
		if c == ']' {
			return nil
		}
	}
}

func (t *transcoder) object() error {
	t.pos++
	base, start := len(t.members), len(t.dst)
	t.dst = append(t.dst, '{')
	if t.next() == '}' {
		t.pos++
		t.dst = append(t.dst, '}')
		return nil
	}
	for {
		if err := t.member(); err != nil {
			return err
		}
		c := t.next()
		if c != ',' && c != '}' {
			return t.fail("an object member is followed by neither , nor }")
		}
		t.pos++
		t.dst = append(t.dst, c)
		if c == '}' {
			break
		}
	}
	err := t.endObject(start, t.members[base:])
	t.members = t.members[:base]
	return err
}

func (t *transcoder) member() error {
	var m member
	m.start = len(t.dst)
	if t.next() != '"' {
		return t.fail("an object key is missing")
	}
	key, plain, err := t.token()
	if err != nil {
		return err
	}
	m.key = m.start + 1
	t.dst = appendString(t.dst, key, plain)
	m.keyEnd = len(t.dst) - 1
	if t.next() != ':' {
		return t.fail("an object key is followed by no :")
	}
	t.pos++
	t.dst = append(t.dst, ':')
	m.text = t.next() == '"'
	if err := t.value(); err != nil {
		return err
	}
	m.end = len(t.dst)
	t.members = append(t.members, m)
	return nil
}

// endObject sorts the members of the object that begins at dst[start], and handles references.
func (t *transcoder) endObject(start int, members []member) error {
	sorted := true
	for i := 1; i < len(members); i++ {
		switch c := compareKeys(t.key(members[i-1]), t.key(members[i])); {
		case c == 0:
			return t.fail("an object holds the key %q twice", t.key(members[i]))
		case c > 0:
			sorted = false
		}
	}
	if !sorted {
		return t.sort(start, members)
	}
	if len(members) == 1 && isReferenceKey(t.key(members[0])) {
		return t.reference(start, members[0])
	}
	return nil
}

func (t *transcoder) key(m member) []byte { return t.dst[m.key:m.keyEnd] }

// sort rewrites the object that begins at dst[start] with its members in order.
func (t *transcoder) sort(start int, members []member) error {
	slices.SortFunc(members, func(a, b member) int { return compareKeys(t.key(a), t.key(b)) })
	for i := 1; i < len(members); i++ {
		if bytes.Equal(t.key(members[i-1]), t.key(members[i])) {
			return t.fail("an object holds the key %q twice", t.key(members[i]))
		}
	}
	t.scratch = append(t.scratch[:0], t.dst[start:]...)
	at := start + 1
	for i, m := range members {
		if i > 0 {
			t.dst[at] = ','
			at++
		}
		at += copy(t.dst[at:], t.scratch[m.start-start:m.end-start])
	}
	return nil
}

// compareKeys compares keys, given in canonical form, by the bytes of their text.
func compareKeys(a, b []byte) int {
	if bytes.IndexByte(a, '\\') >= 0 || bytes.IndexByte(b, '\\') >= 0 {
		a, b = unescaped(a), unescaped(b)
	}
	return bytes.Compare(a, b)
}

func unescaped(key []byte) []byte {
	text, _ := unescape(nil, key) // canonical form has no invalid escapes
	return text
}

func (t *transcoder) text() error {
	s, plain, err := t.token()
	if err != nil {
		return err
	}
	if t.cut != nil && len(s) >= longString {
		t.dst = appendReference(t.dst, t.cut(s))
		return nil
	}
	t.dst = appendString(t.dst, s, plain)
	return nil
}

// token reads a string and returns its text. Plain text needs no escaping and is part of src.
func (t *transcoder) token() (text []byte, plain bool, err error) {
	start := t.pos + 1
	escaped := false
	for i := start; i < len(t.src); i++ {
		switch c := t.src[i]; {
		case c == '"':
			text = t.src[start:i]
			if escaped {
				if text, err = unescape(make([]byte, 0, len(text)), text); err != nil {
					return nil, false, t.fail("%v", err)
				}
			}
			if !utf8.Valid(text) {
				text, escaped = []byte(string(bytes.Runes(text))), true
			}
			t.pos = i + 1
			return text, !escaped, nil
		case c == '\\':
			escaped = true
			i++
		case c < ' ':
			t.pos = i
			return nil, false, t.fail("a string holds the control character %#02x", c)
		}
	}
	return nil, false, t.fail("a string has no end")
}

var (
	errEscape  = errors.New("a string holds an unknown escape")
	simpleText = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}
)

// unescape appends the text of s, the content of a JSON string, to dst. A lone surrogate becomes
// U+FFFD.
func unescape(dst, s []byte) ([]byte, error) {
	for {
		i := bytes.IndexByte(s, '\\')
		if i < 0 {
			return append(dst, s...), nil
		}
		dst = append(dst, s[:i]...)
		s = s[i+1:]
		if len(s) == 0 {
			return dst, errEscape
		}
		if c := simpleText[s[0]]; c != 0 {
			dst, s = append(dst, c), s[1:]
			continue
		}
		r, n := escapedRune(s)
		if n == 0 {
			return dst, errEscape
		}
		dst, s = utf8.AppendRune(dst, r), s[n:]
	}
}

// escapedRune returns the rune of an escape such as u0041 or ud83d\ude00 at the beginning of s, and
// its size in bytes, or 0 if s does not begin with one.
func escapedRune(s []byte) (rune, int) {
	r, ok := hex4(s)
	switch {
	case !ok:
		return 0, 0
	case r < 0xD800 || r > 0xDFFF:
		return r, 5
	case r <= 0xDBFF && len(s) >= 11 && s[5] == '\\':
		if low, ok := hex4(s[6:]); ok && 0xDC00 <= low && low <= 0xDFFF {
			return (r-0xD800)<<10 + (low - 0xDC00) + 0x10000, 11
		}
	}
	return utf8.RuneError, 5
}

// hex4 reads u and four hexadecimal digits.
func hex4(s []byte) (rune, bool) {
	if len(s) < 5 || s[0] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range s[1:5] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

const hexDigits = "0123456789abcdef"

// appendString appends the canonical form of valid UTF-8 text; plain text needs no escaping.
func appendString(dst, text []byte, plain bool) []byte {
	dst = append(dst, '"')
	if plain {
		return append(append(dst, text...), '"')
	}
	from := 0
	for i, c := range text {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, text[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(dst, text[from:]...), '"')
}
