package visible_test

import (
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/assay-rag/assay/internal/visible"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"":                           "",
		"plain\n\ttext":              "plain\n\ttext",
		"a\u202eb\u2066c":            "abc",
		"zero\u200bwidth\ufeff":      "zerowidth",
		"soft\u00adhyphen":           "softhyphen",
		"no\u00a0break\u2003space":   "no break space",
		"tags\U000e0041\U000e0042":   "tags",
		"filler\u3164\ufffc\ufe0f":   "filler",
		"bell\x07 nul\x00 del\x7f\r": "bell nul del",
		"e\u0301":                    "é",
		"bad\xff":                    "bad\ufffd",
		"lines\u2028and\u0085ends":   "lines and ends",
	} {
		if got := visible.Text(in); got != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
	}
	if got := visible.Line(" a\n\u200b b\tc "); got != "a b c" {
		t.Errorf("Line = %q", got)
	}
}

func FuzzText(f *testing.F) {
	f.Add("a\u202eb\xff\u0301\n")
	f.Fuzz(func(t *testing.T, s string) {
		got := visible.Text(s)
		if !utf8.ValidString(got) || !norm.NFC.IsNormalString(got) || visible.Text(got) != got {
			t.Errorf("Text(%q) = %q", s, got)
		}
		for _, r := range got {
			if !visible.Rune(r) {
				t.Errorf("Text(%q) has %U", s, r)
			}
		}
	})
}
