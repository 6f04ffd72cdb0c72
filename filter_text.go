package assay

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// String renders f in the syntax of ParseFilter. The zero Filter is "".
func (f Filter) String() string {
	switch f.Op {
	case "":
		return ""
	case OpAndAll, OpOrAll:
		parts := make([]string, len(f.Filters))
		for i, part := range f.Filters {
			parts[i] = part.nested()
		}
		if f.Op == OpAndAll {
			return strings.Join(parts, " and ")
		}
		return strings.Join(parts, " or ")
	case OpNot:
		if len(f.Filters) != 1 {
			return "not"
		}
		return "not " + f.Filters[0].nested()
	case OpIn, OpNotIn:
		quoted := make([]string, len(f.Value.List))
		for i, s := range f.Value.List {
			quoted[i] = strconv.Quote(s)
		}
		return keyText(f.Key) + " " + comparisonText[f.Op] + " (" + strings.Join(quoted, ", ") + ")"
	}
	op, ok := comparisonText[f.Op]
	if !ok {
		op = string(f.Op)
	}
	return keyText(f.Key) + " " + op + " " + f.Value.literal()
}

// nested renders f as an operand of another operator.
func (f Filter) nested() string {
	if f.Op == OpAndAll || f.Op == OpOrAll {
		return "(" + f.String() + ")"
	}
	return f.String()
}

var comparisonText = map[FilterOp]string{
	OpEquals: "=", OpNotEquals: "!=", OpGreaterThan: ">", OpGreaterThanOrEquals: ">=", OpLessThan: "<", OpLessThanOrEquals: "<=",
	OpIn: "in", OpNotIn: "not in", OpStartsWith: "startsWith", OpStringContains: "contains", OpListContains: "has",
}

// literal renders a value in the filter syntax.
func (v Value) literal() string {
	switch v.Kind {
	case KindString:
		return strconv.Quote(v.String)
	case KindNumber:
		return strconv.FormatFloat(v.Number, 'g', -1, 64)
	case KindTime:
		t := v.Time.UTC()
		if t.Equal(t.Truncate(24 * time.Hour)) {
			return t.Format(time.DateOnly)
		}
		return t.Format(time.RFC3339Nano)
	case KindList:
		quoted := make([]string, len(v.List))
		for i, s := range v.List {
			quoted[i] = strconv.Quote(s)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	return v.Text()
}

// keyText renders a key, quoted if it would otherwise be read as something else.
func keyText(key string) string {
	for i, r := range key {
		if !isKeyRune(r, i == 0) {
			return strconv.Quote(key)
		}
	}
	if key == "" || filterWords[strings.ToLower(key)] {
		return strconv.Quote(key)
	}
	return key
}

// filterWords are the words of the syntax, in lower case. They must be quoted as keys.
var filterWords = map[string]bool{
	"and": true, "or": true, "not": true, "in": true, "startswith": true, "contains": true, "has": true, "true": true, "false": true,
}

func isKeyRune(r rune, first bool) bool {
	if r == utf8.RuneError {
		return false
	}
	return r == '_' || unicode.IsLetter(r) || !first && (r == '.' || r == '-' || unicode.IsDigit(r) || unicode.IsMark(r))
}

// ParseFilter parses a filter in the syntax for people:
//
//	team = "legal" and year >= 2022 and not tag in ("draft", "old")
//
// Comparisons are =, !=, <, <=, >, >=, in (...), not in (...), startsWith, contains (a part of a
// string) and has (a member of a list). They are joined by and, or, not and parentheses; not binds
// tighter than and, which binds tighter than or. Words are case-insensitive. A key is a word of
// letters, digits, "_", "." and "-", or quoted. Values are "strings" (with Go's escapes), numbers,
// true, false, dates (2024-01-31: its first instant, UTC), times (2024-01-31T15:04:05Z) and, after
// = and !=, lists of strings (["a", "b"]). The empty text is the zero Filter.
//
// A syntax error is ErrInvalid. The message gives the position, in characters from 1, and what was
// expected there.
func ParseFilter(s string) (Filter, error) {
	if len(s) > maxFilterBytes {
		return Filter{}, fmt.Errorf("filter has %d bytes, at most %d are read: %w", len(s), maxFilterBytes, ErrInvalid)
	}
	p := &filterParser{text: s}
	if err := p.next(); err != nil {
		return Filter{}, err
	}
	if p.kind == endToken {
		return Filter{}, nil
	}
	f, err := p.or(1)
	if err != nil {
		return Filter{}, err
	}
	if p.kind != endToken {
		return Filter{}, p.want("and, or, or the end")
	}
	return f, f.Check(nil)
}

type tokenKind int

const (
	endToken    tokenKind = iota
	wordToken             // a key or a word of the syntax
	stringToken           // a quoted string; value holds it unquoted
	valueToken            // a number, date or time, in value
	signToken             // an operator, parenthesis, bracket or comma
)

// A filterParser reads a filter by recursive descent, one token ahead.
type filterParser struct {
	text string
	end  int // of the current token

	kind  tokenKind
	start int
	word  string // the token's text
	value Value  // of stringToken and valueToken
}

func (p *filterParser) or(depth int) (Filter, error) {
	return p.joined(OpOrAll, "or", depth, p.and)
}

func (p *filterParser) and(depth int) (Filter, error) {
	return p.joined(OpAndAll, "and", depth, p.not)
}

// joined parses operands separated by a word.
func (p *filterParser) joined(op FilterOp, word string, depth int, operand func(int) (Filter, error)) (Filter, error) {
	first, err := operand(depth)
	if err != nil || !p.is(word) {
		return first, err
	}
	f := Filter{Op: op, Filters: []Filter{first}}
	for p.is(word) {
		if err := p.next(); err != nil {
			return Filter{}, err
		}
		part, err := operand(depth)
		if err != nil {
			return Filter{}, err
		}
		f.Filters = append(f.Filters, part)
	}
	return f, nil
}

func (p *filterParser) not(depth int) (Filter, error) {
	if depth > maxFilterDepth {
		return Filter{}, p.want(fmt.Sprintf("at most %d parentheses and nots inside each other", maxFilterDepth))
	}
	switch {
	case p.is("not"):
		if err := p.next(); err != nil {
			return Filter{}, err
		}
		f, err := p.not(depth + 1)
		return Filter{Op: OpNot, Filters: []Filter{f}}, err
	case p.is("("):
		if err := p.next(); err != nil {
			return Filter{}, err
		}
		f, err := p.or(depth + 1)
		if err != nil {
			return Filter{}, err
		}
		return f, p.skip(")")
	}
	return p.comparison()
}

func (p *filterParser) comparison() (Filter, error) {
	var key string
	switch {
	case p.kind == stringToken && p.value.String != "":
		key = p.value.String
	case p.kind == wordToken && !filterWords[strings.ToLower(p.word)]:
		key = p.word
	default:
		return Filter{}, p.want("a key, not or (")
	}
	if err := p.next(); err != nil {
		return Filter{}, err
	}
	op, err := p.operator()
	if err != nil {
		return Filter{}, err
	}
	if op == OpIn || op == OpNotIn {
		values, err := p.list("(", ")")
		return memberOf(key, values, op == OpNotIn), err
	}
	f := Filter{Op: op, Key: key}
	position := p.position(p.start)
	if f.Value, err = p.readValue(); err != nil {
		return Filter{}, err
	}
	f = f.dated()
	if err := f.checkComparison(); err != nil {
		return Filter{}, fmt.Errorf("filter, position %d: %w", position, err)
	}
	return f, nil
}

func (p *filterParser) operator() (FilterOp, error) {
	const wanted = "an operator: =, !=, <, <=, >, >=, in, not in, startsWith, contains or has"
	word := strings.ToLower(p.word)
	if p.kind != signToken && p.kind != wordToken {
		return "", p.want(wanted)
	}
	if word == "not" {
		if err := p.next(); err != nil {
			return "", err
		}
		return OpNotIn, p.skip("in")
	}
	if word == "==" {
		word = "="
	}
	for op, text := range comparisonText {
		if strings.ToLower(text) == word {
			return op, p.next()
		}
	}
	return "", p.want(wanted)
}

// list parses comma-separated values between the signs open and end.
func (p *filterParser) list(open, end string) ([]Value, error) {
	if err := p.skip(open); err != nil {
		return nil, err
	}
	values := []Value{}
	for !p.is(end) {
		if len(values) > 0 {
			if err := p.skip(","); err != nil {
				return nil, err
			}
		}
		v, err := p.readValue()
		if err != nil {
			return nil, err
		}
		if v.Kind == KindList {
			return nil, p.want("no list inside another before this")
		}
		values = append(values, v)
	}
	return values, p.next()
}

func (p *filterParser) readValue() (Value, error) {
	switch {
	case p.kind == stringToken || p.kind == valueToken:
		v := p.value
		return v, p.next()
	case p.is("true"), p.is("false"):
		v := BooleanValue(p.is("true"))
		return v, p.next()
	case p.is("["):
		values, err := p.list("[", "]")
		members := make([]string, len(values))
		for i, v := range values {
			if v.Kind != KindString {
				return Value{}, p.want("strings only in the list before this")
			}
			members[i] = v.String
		}
		return ListValue(members...), err
	}
	return Value{}, p.want(`a value: a "string", number, true, false, date, time or ["list"]`)
}

// is reports whether the current token is this word, in any case, or this sign.
func (p *filterParser) is(text string) bool {
	return (p.kind == wordToken || p.kind == signToken) && strings.EqualFold(p.word, text)
}

// skip consumes the current token, which must be text.
func (p *filterParser) skip(text string) error {
	if !p.is(text) {
		return p.want(text)
	}
	return p.next()
}

// want returns the error for an unexpected token.
func (p *filterParser) want(expected string) error {
	found := "the end"
	if p.kind != endToken {
		found = excerpt(p.word)
	}
	return p.fail(p.start, "found %s, want %s", found, expected)
}

func (p *filterParser) fail(at int, format string, args ...any) error {
	return fmt.Errorf("filter, position %d: %s: %w", p.position(at), fmt.Sprintf(format, args...), ErrInvalid)
}

// position returns the position in characters, from 1, of a byte offset.
func (p *filterParser) position(at int) int { return utf8.RuneCountInString(p.text[:at]) + 1 }

// next reads the next token.
func (p *filterParser) next() error {
	rest := strings.TrimLeft(p.text[p.end:], " \t\r\n")
	p.start = len(p.text) - len(rest)
	p.value = Value{}
	if rest == "" {
		p.kind, p.word, p.end = endToken, "", p.start
		return nil
	}
	switch c := rest[0]; {
	case c == '"':
		return p.quoted(rest)
	case strings.IndexByte("()[],", c) >= 0:
		p.take(signToken, rest[:1])
	case strings.IndexByte("=!<>", c) >= 0:
		n := 1
		if len(rest) > 1 && rest[1] == '=' {
			n = 2
		}
		p.take(signToken, rest[:n])
	case c == '-' || '0' <= c && c <= '9':
		return p.number(rest)
	default:
		n := len(rest)
		for i, r := range rest {
			if !isKeyRune(r, i == 0) {
				n = i
				break
			}
		}
		if n == 0 {
			_, n = utf8.DecodeRuneInString(rest)
			p.take(signToken, rest[:n])
			return p.want("a key, an operator or a value")
		}
		p.take(wordToken, rest[:n])
	}
	return nil
}

func (p *filterParser) take(kind tokenKind, word string) {
	p.kind, p.word, p.end = kind, word, p.start+len(word)
}

func (p *filterParser) quoted(rest string) error {
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return p.fail(p.start, "string %s does not end or has a wrong escape", excerpt(rest))
	}
	s, err := strconv.Unquote(quoted)
	if err != nil {
		return p.fail(p.start, "string %s: %v", excerpt(quoted), err)
	}
	p.take(stringToken, quoted)
	p.value = StringValue(s)
	return nil
}

// number reads a number, a date or a time.
func (p *filterParser) number(rest string) error {
	n := strings.IndexFunc(rest, func(r rune) bool {
		return r != '-' && r != '+' && r != '.' && r != ':' && !unicode.IsDigit(r) && !unicode.IsLetter(r)
	})
	if n < 0 {
		n = len(rest)
	}
	p.take(valueToken, rest[:n])
	for _, layout := range []string{time.DateOnly, time.RFC3339Nano} {
		if t, err := time.Parse(layout, p.word); err == nil && ValidTime(t) {
			p.value = TimeValue(t)
			return nil
		}
	}
	x, err := strconv.ParseFloat(p.word, 64)
	if err != nil {
		return p.fail(p.start, "%s is no number, date (2024-01-31) or time (2024-01-31T15:04:05Z)", excerpt(p.word))
	}
	p.value = NumberValue(x)
	return nil
}
