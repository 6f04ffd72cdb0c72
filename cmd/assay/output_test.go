package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOutput(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, want string }{
		{"", ""},
		{"plain\n\ttext, naïve › 日本語 👩‍🚀", "plain\n\ttext, naïve › 日本語 👩‍🚀"},
		{"\x1b[2J\x07", `\u001b[2J\u0007`},
		{"a\r\x08b\x7f", `a\u000d\u0008b\u007f`},
		{"\u009b31m\u202e\u2067", `\u009b31m\u202e\u2067`},
		{"a\x9b31m", "a\ufffd31m"},
	} {
		var b strings.Builder
		o := &output{w: &b}
		if n, err := fmt.Fprint(o, test.text); n != len(test.text) || err != nil {
			t.Errorf("Write(%q) = %d, %v", test.text, n, err)
		}
		if got := b.String(); got != test.want {
			t.Errorf("Write(%q) wrote %q, want %q", test.text, got, test.want)
		}
	}
}

// TestOutputJSON checks that an output preserves the meaning of JSON.
func TestOutputJSON(t *testing.T) {
	t.Parallel()
	want := map[string]string{"a\x1b\u009b\u202e\u2028": "\x00\x7f\r\n\t\\ \"é"}
	var b strings.Builder
	if err := writeJSON(&output{w: &b}, want); err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatalf("%v in %q", err, b.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// TestOutputFails checks that a failed write makes the command fail, even if the error was ignored.
func TestOutputFails(t *testing.T) {
	t.Parallel()
	full := errors.New("no space")
	var complaint strings.Builder
	for _, args := range [][]string{{"--help"}, {"version"}, {"ask", "--help"}, {"completion", "bash"}, {"doctor", "--data", t.TempDir()}} {
		complaint.Reset()
		a := newApp()
		a.stdout, a.stderr = &output{w: failing{full}}, &output{w: &complaint}
		a.cacheDir = func() (string, error) { return t.TempDir(), nil }
		if code := a.run(t.Context(), args); code != exitError || !strings.Contains(complaint.String(), "no space") {
			t.Errorf("assay %s = %d, %q; want 1 and the reason", strings.Join(args, " "), code, complaint.String())
		}
	}
}

// TestFaint checks that faint adds its own escape sequences and escapes those in the text.
func TestFaint(t *testing.T) {
	t.Parallel()
	for faintly, want := range map[bool]string{false: "by \\u001b[31mx [secret]\n", true: "\x1b[2mby \\u001b[31mx [secret]\n\x1b[0m"} {
		var b strings.Builder
		o := &output{w: &b, scrub: func(s string) string { return strings.ReplaceAll(s, "hunter2hunter2", "[secret]") }}
		if err := o.faint("by \x1b[31mx hunter2hunter2\n", faintly); err != nil || b.String() != want {
			t.Errorf("faint(%v) wrote %q, %v; want %q", faintly, b.String(), err, want)
		}
	}
}
