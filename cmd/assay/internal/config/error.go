package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// An Error describes a problem of the configuration, its place and a remedy. It wraps
// assay.ErrInvalid and never shows a credential.
type Error struct {
	Where  string // a file or an environment variable
	Line   int    // in the file, from 1; 0: no particular line
	Detail string
	Hint   string // remedy; empty: obvious
}

func (e *Error) Error() string {
	where := e.Where
	if e.Line > 0 {
		where = fmt.Sprintf("%s:%d", where, e.Line)
	}
	return fmt.Sprintf("%s: %s", where, e.Detail)
}

// Unwrap returns assay.ErrInvalid.
func (e *Error) Unwrap() error { return assay.ErrInvalid }

// variableForm matches the names of environment variables.
var variableForm = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// withoutKind returns the text of an error without that of its kind, which an Error adds.
func withoutKind(err error) string {
	return strings.TrimSuffix(err.Error(), ": "+assay.ErrInvalid.Error())
}

// keyForm matches the prefixes of the keys of common vendors.
var keyForm = lazyregexp.New(`(?:^|[^A-Za-z0-9])(sk-|AKIA|ASIA|AIza|jina_|ABSK|eyJ|assay_[a-z2-7]{16}_)`)

// run matches a long run of letters and digits, as in a key. Names are words with separators
// between them.
var run = lazyregexp.New(`[A-Za-z0-9]{16,}`)

// likeKey reports whether a value may be a misplaced credential.
func likeKey(value string) bool {
	if keyForm.MatchString(value) {
		return true
	}
	for _, r := range run.FindAllString(value, -1) {
		if strings.ContainsAny(r, "0123456789") && strings.Trim(r, "0123456789") != "" {
			return true
		}
	}
	return false
}

// shown quotes a value of the configuration, unless it may be a credential.
func shown(value string) string {
	if likeKey(value) {
		return "a value that may be a key (not shown)"
	}
	return fmt.Sprintf("%q", value)
}

// dotted joins a path of keys, without parts that may be credentials.
func dotted(path []string) string {
	parts := slices.Clone(path)
	for i, p := range parts {
		if likeKey(p) {
			parts[i] = "(not shown, may be a key)"
		}
	}
	return strings.Join(parts, ".")
}

// Similar returns at most three of names that resemble name, the closest first. A name resembles
// another if one begins with or contains the other, or if they are a typing error apart.
func Similar(name string, names []string) []string {
	type near struct {
		name     string
		distance int
	}
	var found []near
	low := strings.ToLower(name)
	for _, n := range names {
		other := strings.ToLower(n)
		d := distance(low, other)
		switch {
		case len(other) < 3: // a short name occurs in many others
			d *= 2
		case strings.HasPrefix(other, low) || strings.HasPrefix(low, other):
			d = min(d, 1)
		case strings.Contains(other, low) || strings.Contains(low, other):
			d = min(d, 2)
		}
		if d <= max(2, len(low)/3) {
			found = append(found, near{n, d})
		}
	}
	slices.SortStableFunc(found, func(a, b near) int { return a.distance - b.distance })
	var out []string
	for _, n := range found[:min(3, len(found))] {
		out = append(out, n.name)
	}
	return out
}

// distance returns the edit distance of a and b, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
