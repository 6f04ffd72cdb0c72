package safeyaml

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
)

// bomb returns YAML of 9 levels of 9 aliases each.
func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i <= 8; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), ", "))
	}
	return b.String()
}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       string // in the error; "": none
	}{
		{"empty", "", ""},
		{"plain", "large: openai\nroles:\n  grader: [a, b]\n", ""},
		{"asterisks in text", "note: " + strings.Repeat("a * b & c ** ", 40), ""},
		{"an anchor", "a: &a {x: 1}\nb: *a\nc: *a\n", ""},
		{"nested aliases", bomb(), "line 3: more than 16 aliases"},
		{"nested flow", "a: " + strings.Repeat("[", 70) + strings.Repeat("]", 70), "nested more than 64 levels deep"},
		{"a megabyte of brackets", strings.Repeat("[", 1<<20), "nested more than 64 levels deep"},
		{"nested flow after surplus ends", strings.Repeat("]", 100) + strings.Repeat("[", 100), "nested more than 64 levels deep"},
		{"many lists", "a: [" + strings.Repeat("[], ", 2001) + "]", "more than 2000 lists and maps"},
		{"nested dashes", "a:\n" + strings.Repeat("- ", 80) + "x", "line 2: nested more than 64 levels deep"},
		{"nested indents", strings.Repeat(" ", 90) + "a: b", "line 1: nested more than 64 levels deep"},
	} {
		err := Check([]byte(test.text))
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || !errors.Is(err, assay.ErrInvalid)):
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(bomb())
	f.Add("a: &a [1]\nb: *a")
	f.Fuzz(func(t *testing.T, text string) { _ = Check([]byte(text)) })
}
