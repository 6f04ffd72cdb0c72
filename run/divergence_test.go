package run

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestDiff(t *testing.T) {
	long := strings.Repeat("é", 200)
	tests := []struct{ a, b, want string }{
		{`1`, `2`, `in: 1 != 2`},
		{`{"a":1,"b":2,"c":3}`, `{"a":1,"b":3,"c":4}`, `in.b: 2 != 3`},
		{`{"a":1}`, `{}`, `in.a: 1 != (nothing)`},
		{`{}`, `{"a":{"b":"<"}}`, `in.a: (nothing) != {"b":"<"}`},
		{`{"a":null}`, `{}`, `in.a: null != (nothing)`},
		{`[1,[2,3]]`, `[1,[2,4]]`, `in[1][1]: 3 != 4`},
		{`[1]`, `[1,2]`, `in[1]: (nothing) != 2`},
		{`{"a b":1,"":2}`, `{"a b":2,"":2}`, `in["a b"]: 1 != 2`},
		{`[]`, `{}`, `in: [] != {}`},
		{`"1"`, `1`, `in: "1" != 1`},
		{`true`, `null`, `in: true != null`},
		{`9007199254740993`, `9007199254740992`, `in: 9007199254740993 != 9007199254740992`},
		{`1`, `1 `, `in: the same value in other bytes`},
		{`not JSON`, `1`, `in: not JSON != 1`},
		{`"` + long + `x` + long + `"`, `"` + long + `y"`,
			`in: …` + long[:30] + `x` + long[:90] + `… != …` + long[:30] + `y"`},
	}
	for _, tt := range tests {
		got := diff("in", json.RawMessage(tt.a), json.RawMessage(tt.b))
		if got != tt.want {
			t.Errorf("diff(%.60s, %.60s)\n got %s\nwant %s", tt.a, tt.b, got, tt.want)
		}
	}
}

func FuzzDiff(f *testing.F) {
	f.Add([]byte(`{"a":[1,"é"]}`), []byte(`{"a":[1,"è"]}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		got := diff("in", a, b)
		if utf8.Valid(a) && utf8.Valid(b) && !utf8.ValidString(got) {
			t.Errorf("diff(%q, %q) = %q, not UTF-8", a, b, got)
		}
		if !strings.HasPrefix(got, "in") {
			t.Errorf("diff(%q, %q) = %q", a, b, got)
		}
	})
}
