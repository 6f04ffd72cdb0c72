package judge_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/assay-rag/assay/eval/judge"
)

// FuzzReply checks that for any reply of a model a measure is in [0, 1] or is not judged.
func FuzzReply(f *testing.F) {
	for _, reply := range []string{
		good, "", "{", `{"claims":[]}`, `{"claims":[{"claim":1,"alone":[9]},{"claim":2,"needed":[-1]}]}`, `{"relevance":{"score":1e300}}`,
		"```json\n" + good + "\n```", `{"claims":null,"reference":[{"statement":0}],"correctness":{"score":"7"},"harmfulness":{"score":-0.0}}`,
	} {
		f.Add(reply)
	}
	f.Fuzz(func(t *testing.T, reply string) {
		got, err := judge.Prompted{Model: model(t, reply)}.Judge(t.Context(), asked())
		if err != nil {
			t.Fatal(err)
		}
		for name, x := range of(got) {
			if !(x >= 0 && x <= 1) {
				t.Errorf("%s = %v", name, x)
			}
		}
		for _, name := range []string{judge.Correctness, judge.Completeness, judge.Harmfulness, judge.Relevance} {
			if _, scored := got.Scores[name]; scored == (got.NotJudged[name] != "") {
				t.Errorf("%s: scored %v, not judged %q", name, scored, got.NotJudged[name])
			}
		}
		if n := len(got.Claims); (n == len(asked().Claims)) == (got.NotJudged[judge.ClaimMeasures] != "") {
			t.Errorf("%d claims are judged, not judged %q", n, got.NotJudged[judge.ClaimMeasures])
		}
	})
}

// FuzzPrompts checks that every prompt read from a file can be used.
func FuzzPrompts(f *testing.F) {
	for _, text := range []string{"name: tone\nprompt: x", "- {name: a, prompt: b, scale: [1, 5]}", "[]", "- - -", "&a [*a]", "name: {a: b}", "{name: a, prompt: x, scale: [1]}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(t.TempDir(), "measures.yaml")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		prompts, err := judge.ReadPrompts(file)
		if err != nil {
			return
		}
		var custom []judge.Custom
		for _, p := range prompts {
			c, err := p.By(model(t, `{"reason":"x","score":5}`), nil)
			if err != nil {
				t.Fatalf("%+v: %v", p, err)
			}
			custom = append(custom, c)
		}
		if _, err := judge.With(judge.Local{}, custom...); err != nil {
			t.Fatal(err)
		}
	})
}
