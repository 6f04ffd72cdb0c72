package schema

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay/llm"
)

var few = Dialect{
	Keep: func(keyword string, value json.RawMessage) bool {
		return slices.Contains([]string{"type", "properties", "items", "description", "enum", "anyOf", "required", "additionalProperties", "$defs", "$ref"}, keyword)
	},
	Rename: map[string]string{"oneOf": "anyOf", "const": "enum"},
	Closed: true,
}

func TestFit(t *testing.T) {
	tests := []struct{ name, schema, want string }{
		{"order stays", `{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"number"}},"required":["z"]}`,
			`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"number"}},"required":["z"],"additionalProperties":false}`},
		{"told instead", `{"type":"array","maxItems":3,"items":{"type":"integer","minimum":1,"description":"a number"}}`,
			`{"type":"array","items":{"type":"integer","description":"a number (minimum: 1)"},"description":"(maxItems: 3)"}`},
		{"closed once", `{"additionalProperties":true,"properties":{}}`, `{"properties":{},"additionalProperties":false}`},
		{"a map", `{"type":"object","additionalProperties":{"const":1}}`, `{"type":"object","additionalProperties":{"enum":[1]}}`},
		{"renamed", `{"oneOf":[{"const":"a"},{"type":"null"}]}`, `{"anyOf":[{"enum":["a"]},{"type":"null"}]}`},
		{"no comment of ours", `{"$schema":"x","$defs":{"d":{"pattern":"a"}},"$ref":"#/$defs/d"}`, `{"$defs":{"d":{"description":"(pattern: \"a\")"}},"$ref":"#/$defs/d"}`},
		{"a member named as a keyword", `{"properties":{"pattern":{"type":"string"}}}`, `{"properties":{"pattern":{"type":"string"}},"additionalProperties":false}`},
		{"true", `true`, `true`},
		{"large number", `{"enum":[12345678901234567890]}`, `{"enum":[12345678901234567890]}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := Fit(json.RawMessage(test.schema), few)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFitRefuses(t *testing.T) {
	for _, schema := range []string{``, `{`, `{"a":`, `[1,`, `{} {}`, strings.Repeat("[", 1000)} {
		if got, err := Fit(json.RawMessage(schema), few); err == nil {
			t.Errorf("Fit(%.20q) = %s, want an error", schema, got)
		}
	}
}

func TestInWords(t *testing.T) {
	if got := InWords(llm.Schema{Schema: json.RawMessage(`{"type":"object"}`)}); !strings.HasSuffix(got, "\n{\"type\":\"object\"}") {
		t.Errorf("InWords = %q", got)
	}
}

func FuzzFit(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"const":1,"maxLength":2}}}`)
	f.Fuzz(func(t *testing.T, schema string) {
		if got, err := Fit(json.RawMessage(schema), few); err == nil && !json.Valid(got) {
			t.Errorf("Fit(%q) = %q, which is no JSON", schema, got)
		}
	})
}
