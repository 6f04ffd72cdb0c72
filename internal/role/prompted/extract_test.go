package prompted

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
)

func TestExtract(t *testing.T) {
	good := `{"missing":[],"reason":"r","reformulated_query":"","relevant_chunks":[1],"verdict":"partly"}`
	tests := []struct {
		text, want, problem string
	}{
		{good, good, ""},
		{"  \n" + good + "\n", good, ""},
		{"```json\n" + good + "\n```", good, ""},
		{"Here: {it} is\n" + good + " {}", good, ""},
		{"<think>{\"relevant_chunks\":[2],\"verdict\":\"partly\"}</think>\n" + good, good, ""},
		{"perhaps {\"relevant_chunks\":[2],\"verdict\":\"partly\"}\n</think>\n" + good, good, ""},
		{"<think>perhaps " + good, "", "no JSON object"},
		{`{'relevant_chunks': [1], 'verdict': 'partly', 'reason': 'r', "missing": [], reformulated_query: ""}`, good, ""},
		{strings.TrimSuffix(good, "}"), good, ""},
		{"[" + good + "]", good, ""},
		{good + good, good, ""},
		{`{"reason":"a } in { a string","relevant_chunks":[],"verdict":"partly"}`, `{"reason":"a } in { a string","relevant_chunks":[],"verdict":"partly"}`, ""},
		{`{"relevant_chunks":"","verdict":" PARTLY "}`, `{"relevant_chunks":[],"verdict":"partly"}`, ""},
		{`{"relevant_chunks":"[2]","verdict":"partly","more":{"a":1}}`, `{"relevant_chunks":[2],"verdict":"partly"}`, ""},
		{good + strings.Replace(good, "partly", "sufficient", 1), "", "two different JSON objects"},
		{"no", "", "no JSON object"},
		{"", "", "no JSON object"},
		{"{}", "", `lacks the field "relevant_chunks"`},
		{`{"relevant_chunks":[1]}`, "", `lacks the field "verdict"`},
		{`{"relevant_chunks":[1.5],"verdict":"partly"}`, "", `entry 1 of "relevant_chunks" is 1.5; want a whole number`},
		{`{"relevant_chunks":["one"],"verdict":"partly"}`, "", `is the text "one"; want a whole number`},
		{`{"relevant_chunks":[1],"verdict":"great"}`, "", `"verdict" is "great"; want one of ["sufficient" "partly" "insufficient"]`},
		{`{"relevant_chunks":[1],"verdict":"partly","verdict":"sufficient"}`, "", `the field "verdict" twice`},
		{`{"relevant_chunks":[1],"verdict":["partly"]}`, "", "is a list; want text"},
		{`{"relevant_chunks":[1e30],"verdict":"partly"}`, "", "whole number"},
		{strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100), "", "nest deeper"},
		{strings.Repeat("x", maxReply+1), "", "the limit is"},
	}
	for _, tt := range tests {
		got, err := extract(tt.text, gradeOutput())
		if tt.problem == "" && (err != nil || string(got) != tt.want) {
			t.Errorf("extract(%.80q) = %s, %v; want %s", tt.text, got, err, tt.want)
		}
		if tt.problem != "" && (err == nil || !strings.Contains(err.Error(), tt.problem)) {
			t.Errorf("extract(%.80q) = %s, %v; want %q", tt.text, got, err, tt.problem)
		}
	}
}

// FuzzExtract checks that an extracted object has the requested form, and that the same text gives
// the same result or error.
func FuzzExtract(f *testing.F) {
	f.Add(`{"relevant_chunks":[1],"verdict":"partly"}`)
	f.Add("```json\n{'relevant_chunks': [\"1\",], verdict: partly\n```")
	f.Add(`{"a":"\ud800","a":[[[{`)
	f.Add("{{{{'\"\\")
	f.Add("<think>{</think>{\"verdict\":\"x\"}")
	f.Fuzz(func(t *testing.T, text string) {
		raw, err := extract(text, gradeOutput())
		again, err2 := extract(text, gradeOutput())
		if string(raw) != string(again) || (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() {
			t.Errorf("extract(%q) is %s, %v and %s, %v", text, raw, err, again, err2)
		}
		if err != nil {
			return
		}
		var r gradeReply
		if err := json.Unmarshal(raw, &r); err != nil {
			t.Fatalf("extract(%q) = %s: %v", text, raw, err)
		}
		if r.Verdict != assay.Sufficient && r.Verdict != assay.Partly && r.Verdict != assay.Insufficient {
			t.Errorf("extract(%q) = %s", text, raw)
		}
	})
}
