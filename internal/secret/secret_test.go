package secret_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/secret"
)

const canary = "sk-canary/7f3a9c51+d2e84b06=="

// TestSecretIsNotShown checks that the text of a secret is never printed, even as a field of
// another value.
func TestSecretIsNotShown(t *testing.T) {
	type holder struct {
		Key    secret.Secret
		hidden secret.Secret
		list   []secret.Secret
		byName map[string]secret.Secret
	}
	s := secret.New(canary)
	h := holder{s, s, []secret.Secret{s}, map[string]secret.Secret{"a": s}}
	var shown []string
	for _, v := range []any{s, &s, h, &h, []secret.Secret{s}, map[string]any{"k": h}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			shown = append(shown, fmt.Sprintf(verb, v))
		}
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, string(data))
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "s", s, "h", h)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "s", s, "h", h)
	shown = append(shown, log.String(), fmt.Sprint(h.hidden, h.list, h.byName))
	for _, text := range shown {
		if strings.Contains(text, "canary") || strings.Contains(text, fmt.Sprintf("%x", "canary")) {
			t.Errorf("the secret is shown: %s", text)
		}
	}
	if s.Reveal() != canary || s.Empty() || s.String() != "[secret]" {
		t.Errorf("Reveal = %q, String = %q", s.Reveal(), s)
	}
	if none := secret.New(""); !none.Empty() || none.Reveal() != "" || none.String() != "" || none != (secret.Secret{}) {
		t.Errorf("the empty text is a secret: %q", none)
	}
}

func TestRedact(t *testing.T) {
	s := secret.New(canary)
	for name, text := range map[string]string{
		"as it is":             "the key " + canary + " is wrong",
		"in a URL":             "https://x/?key=" + url.QueryEscape(canary) + "&a=b",
		"in a path":            "https://x/" + url.PathEscape(canary),
		"in base64":            "Basic " + base64.StdEncoding.EncodeToString([]byte(canary)),
		"in part":              "the key 7f3a9c51+d2… is wrong",
		"its beginning":        "the key sk-canary/7f3a… is wrong",
		"in capitals":          strings.ToUpper(canary),
		"twice":                canary + canary,
		"with stars":           "sk-canary***************b06",
		"as a header":          "Authorization: Bearer " + canary,
		"as JSON":              `{"authorization":"Bearer ` + canary + `"}`,
		"among control letter": "\x00\n" + canary + "\x1b[31m",
	} {
		got := secret.Redact(text, s)
		if low := strings.ToLower(got); strings.Contains(low, "canary") || strings.Contains(low, "7f3a") || strings.Contains(low, "d2e84b06") {
			t.Errorf("%s: %q", name, got)
		}
		if !strings.Contains(got, "[secret]") {
			t.Errorf("%s: nothing shows where it was: %q", name, got)
		}
	}
}

// TestRedactEncoded checks that a header that a server echoes in base64, or backwards, does not
// reveal the secret in it.
func TestRedactEncoded(t *testing.T) {
	s := secret.New(canary)
	for _, before := range []string{"", "a", "ab", "user:", "Bearer ", "Token token="} {
		for _, after := range []string{"", "\n", "; q=1"} {
			for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawURLEncoding} {
				text := "bad key " + encoding.EncodeToString([]byte(before+canary+after)) + "."
				got := secret.Redact(text, s)
				// The rest must be letters of the surrounding text.
				left := strings.NewReplacer("bad key ", "", "[secret]", "", ".", "").Replace(got)
				if most := encoding.EncodedLen(len(before)) + encoding.EncodedLen(len(after)); !strings.Contains(got, "[secret]") || len(left) > most+3 {
					t.Errorf("base64 between %q and %q: %q", before, after, got)
				}
			}
		}
	}
	backwards := []rune("Bearer " + canary)
	slices.Reverse(backwards)
	if got := secret.Redact("bad key "+string(backwards), s); got != "bad key [secret] reraeB" {
		t.Errorf("backwards: %q", got)
	}
}

// TestRedactForeign checks that text that looks like any credential is removed, and that other
// words are kept.
func TestRedactForeign(t *testing.T) {
	tests := []struct{ text, want string }{
		{"Incorrect API key provided: sk-proj-****abcd. You can find it", "Incorrect API key provided: [secret] You can find it"},
		{"Authorization: Bearer abc.def.ghi", "Authorization: [secret]"},
		{`{"x-api-key": "0123456789", "model": "m"}`, `{"x-api-key": "[secret]", "model": "m"}`},
		{"GET https://x/v1?key=AIzaSyA-1234567890&alt=sse", "GET https://x/v1?key=[secret]&alt=sse"},
		{"the key AIzaSyA-1234567890abc", "the key [secret]"},
		{"AKIAIOSFODNN7EXAMPLE may not", "[secret] may not"},
		{"assay_7xk2m5qhd3vwbn4a_aaaaaaaaaaaaaaaa is unknown", "[secret] is unknown"},
		{"token eyJhbGciOiJIUzI1NiJ9.eyJzdWIi.c2ln expired", "token [secret] expired"},
		{"password=hunter2", "password=[secret]"},
		{"the model gpt-4.1 does not exist", "the model gpt-4.1 does not exist"},
		{"max_tokens: 100 is too large", "max_tokens: 100 is too large"},
		{"This model's maximum context length is 8192 tokens", "This model's maximum context length is 8192 tokens"},
		{"a\r\n\tb\x00c\u202ed", "a bcd"},
		{"bad \xff bytes", "bad \uFFFD bytes"},
		{"", ""},
	}
	for _, test := range tests {
		if got := secret.Redact(test.text); got != test.want {
			t.Errorf("Redact(%q) = %q, want %q", test.text, got, test.want)
		}
	}
	if got := secret.Redact(strings.Repeat("漢字", 1000)); len(got) > 500 || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
		t.Errorf("a long text: %d bytes, %q", len(got), got[len(got)-9:])
	}
	// A part of a secret at the cut must not be shown.
	for n := range 30 {
		got := secret.Redact(strings.Repeat(canary+" ", (4<<10)/len(canary)-n)+strings.Repeat(" ", n*31)+canary, secret.New(canary))
		if strings.Contains(got, "canary") || strings.Contains(got, "7f3a9c51") {
			t.Errorf("%q", got)
		}
	}
	// A placeholder for a local server must not mask adjacent words.
	if got := secret.Redact("key x of the box, x", secret.New("x")); got != "key [secret] of the box, [secret]" {
		t.Errorf("%q", got)
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("the key "+canary+" is wrong", canary)
	f.Add("Bearer \xff", "a")
	f.Add("000000\x0100", "00000000")
	f.Fuzz(func(t *testing.T, text, key string) {
		got := secret.Redact(text, secret.New(key))
		if len(got) > 500 || !utf8.ValidString(got) || strings.ContainsAny(got, "\r\n\x00") {
			t.Errorf("Redact(%q) = %q", text, got)
		}
		if len(key) >= 8 && utf8.ValidString(key) && !strings.Contains("[secret]…\uFFFD", key) && strings.Contains(strings.ReplaceAll(got, "[secret]", ""), key) {
			t.Errorf("Redact(%q, %q) = %q", text, key, got)
		}
	})
}
