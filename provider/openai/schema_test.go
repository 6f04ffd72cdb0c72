package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/openai"
)

// TestSchemas checks that a schema is sent in OpenAI's strict form if it has one, with its members
// in order, and otherwise unchanged.
func TestSchemas(t *testing.T) {
	deep := `{"type":"string"}`
	for range 12 {
		deep = `{"type":"object","properties":{"a":` + deep + `},"required":["a"],"additionalProperties":false}`
	}
	tests := []struct {
		name, schema string
		want         string // "" means unchanged and not strict
	}{
		{"fits", `{"type":"object","properties":{"z":{"type":"string","enum":["x","y"]},"a":{"type":"array","items":{"type":"integer"},"minItems":1}},"required":["z","a"],"additionalProperties":false}`, `{"type":"object","properties":{"z":{"type":"string","enum":["x","y"]},"a":{"type":"array","items":{"type":"integer"},"minItems":1}},"required":["z","a"],"additionalProperties":false}`},
		{"open", `{"type":"object","properties":{"z":{"type":"object","properties":{},"required":[]}},"required":["z"]}`, `{"type":"object","properties":{"z":{"type":"object","properties":{},"required":[],"additionalProperties":false}},"required":["z"],"additionalProperties":false}`},
		{"closed in another way", `{"type":"object","properties":{"z":{"type":"null"}},"required":["z"],"additionalProperties":{"not": {}}}`, `{"type":"object","properties":{"z":{"type":"null"}},"required":["z"],"additionalProperties":false}`},
		{"narrowing keywords", `{"$schema":"x","title":"t","type":"object","properties":{"title":{"type":"string","maxLength":9,"pattern":"^a"}},"required":["title"]}`, `{"type":"object","properties":{"title":{"type":"string","pattern":"^a"}},"required":["title"],"additionalProperties":false}`},
		{"references", `{"type":"object","properties":{"z":{"$ref":"#/$defs/t"},"n":{"anyOf":[{"type":"null"},{"type":["object","null"],"properties":{"q":{"type":"boolean"}},"required":["q"]}]}},"required":["z","n"],"$defs":{"t":{"type":"number"}}}`, `{"type":"object","properties":{"z":{"$ref":"#/$defs/t"},"n":{"anyOf":[{"type":"null"},{"type":["object","null"],"properties":{"q":{"type":"boolean"}},"required":["q"],"additionalProperties":false}]}},"required":["z","n"],"$defs":{"t":{"type":"number"}},"additionalProperties":false}`},
		{"a property that may be missing", `{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}},"required":["z"]}`, ""},
		{"any object", `{"type":"object"}`, ""},
		{"other properties", `{"type":"object","properties":{},"additionalProperties":{"type":"string"}}`, ""},
		{"a keyword that is not known", `{"type":"object","properties":{"z":{"oneOf":[{"type":"string"}]}},"required":["z"]}`, ""},
		{"no object", `{"type":"array","items":{"type":"string"}}`, ""},
		{"a choice at the top", `{"type":"object","properties":{},"anyOf":[{"type":"string"}]}`, ""},
		{"true", `true`, ""},
		{"a property that may be anything", `{"type":"object","properties":{"z":true},"required":["z"]}`, ""},
		{"too deep", deep, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			req := request()
			req.Schema = &llm.Schema{Name: "s", Schema: json.RawMessage(test.schema)}
			want, strict := test.want, true
			if want == "" {
				want, strict = test.schema, false
			}
			for _, api := range []openai.API{openai.Chat, openai.Responses} {
				got := sentSchema(t, api, req)
				if got.Strict != strict || string(got.Schema) != strings.ReplaceAll(want, `{"not": {}}`, `{"not":{}}`) || got.Name != "s" {
					t.Errorf("%s: strict %v: %s\nwant %v: %s", api, got.Strict, got.Schema, strict, want)
				}
			}
		})
	}
}

type sent struct {
	Name   string
	Strict bool
	Schema json.RawMessage
}

// sentSchema returns the schema of a request as it was sent.
func sentSchema(t *testing.T, api openai.API, req llm.Request) sent {
	t.Helper()
	var raw []byte
	p := provider(t, openai.Config{API: api, BaseURL: serve(t, always(500, "", "")) + "/", HTTP: spy(func(body []byte) { raw = body })})
	_, _ = p.Model("m").Generate(t.Context(), req, nil) // only the request matters
	var body struct {
		Format struct {
			Schema sent `json:"json_schema"`
		} `json:"response_format"`
		Text struct{ Format sent }
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		t.Fatal(err)
	}
	if api == openai.Chat {
		return body.Format.Schema
	}
	return body.Text.Format
}
