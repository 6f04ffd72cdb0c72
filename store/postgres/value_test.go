package postgres

import (
	"testing"
	"unicode/utf8"
)

func TestNumbered(t *testing.T) {
	for query, want := range map[string]string{
		`SELECT ? WHERE a = ?`:          `SELECT $1 WHERE a = $2`,
		`SELECT ?2, ?1, ?2`:             `SELECT $2, $1, $2`,
		`SELECT '?', '''?' WHERE a = ?`: `SELECT '?', '''?' WHERE a = $1`,
		`SELECT 1`:                      `SELECT 1`,
	} {
		if got := numbered(query); got != want {
			t.Errorf("numbered(%s) = %s, want %s", query, got, want)
		}
	}
}

// FuzzEscape checks that every text survives, that what is stored is UTF-8 without NUL, and that the order
// of two texts that are UTF-8 stays.
func FuzzEscape(f *testing.F) {
	f.Add("a", "b")
	f.Add("\x00", "\x01")
	f.Add("a\x00b\x01c\xff", "a\x01\x01\x01\x02\x01\x03ff")
	f.Add("\x01\x03zz", "ü\x00中")
	f.Fuzz(func(t *testing.T, a, b string) {
		ea, eb := escape(a), escape(b)
		if got := unescape(ea); got != a {
			t.Errorf("%q is read as %q", a, got)
		}
		for _, c := range []byte(ea) {
			if c == 0 {
				t.Errorf("%q is stored with NUL", a)
			}
		}
		if !utf8.ValidString(ea) {
			t.Errorf("%q is stored as %q", a, ea)
		}
		if utf8.ValidString(a) && utf8.ValidString(b) && (a < b) != (ea < eb) {
			t.Errorf("the order of %q and %q changes", a, b)
		}
	})
}
