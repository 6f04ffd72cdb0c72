package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// An Error says what is wrong with the configuration, where, and what to do. It is
// assay.ErrInvalid and never shows a credential.
type Error struct {
	Where  string // a file, or a variable of the environment
	Line   int    // of the file, from 1; 0: not of one line
	Detail string
	Hint   string // what to do; empty: that is clear
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

// keyForm is how the keys of the common vendors begin.
var keyForm = lazyregexp.New(`(?:^|[^A-Za-z0-9])(sk-|AKIA|ASIA|AIza|jina_|ABSK|eyJ)`)

// run is a row of letters and digits. Names are words with something between them;
// keys are not.
var run = lazyregexp.New(`[A-Za-z0-9]{16,}`)

// likeKey reports whether a value may be a credential that stands in the wrong place.
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
		return "a value that is not shown, since it may be a key,"
	}
	return fmt.Sprintf("%q", value)
}

// dotted writes a path of keys, without what may be a credential.
func dotted(path []string) string {
	parts := slices.Clone(path)
	for i, p := range parts {
		if likeKey(p) {
			parts[i] = "(not shown, since it may be a key)"
		}
	}
	return strings.Join(parts, ".")
}

// Similar returns those of names that are like name, the likest first, at most
// three: one that begins with it, holds it, or is a slip of the pen away.
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

// distance is how many bytes have to be put in, taken out or changed to make b of a.
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
