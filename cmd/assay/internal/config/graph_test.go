package config

import (
	"errors"
	"testing"
)

func TestGraph(t *testing.T) {
	awsOfThisTest(t)
	c := mustLoad(t, "graph:\n  neptune: {id: g-12345abcde, base_url: \"https://neptune.example.com\"}\n", nil)
	if g, err := c.Open().Graph(t.Context()); err != nil || g == nil {
		t.Errorf("Graph = %v, %v", g, err)
	}
	if g, err := mustLoad(t, "cache: false\n", nil).Open().Graph(t.Context()); err != nil || g != nil {
		t.Errorf("without a section: %v, %v", g, err)
	}
	for name, text := range map[string]string{
		"nothing":    "graph: {}\n",
		"no ID":      "graph:\n  neptune: {base_url: \"https://neptune.example.com\"}\n",
		"an ID":      "graph:\n  neptune: {id: handbook}\n",
		"a provider": "graph:\n  neptune: {provider: openai, id: g-12345abcde}\n",
		"an unknown": "graph:\n  neptune: {id: g-12345abcde, colour: red}\n",
		"a URL":      "graph:\n  neptune: {id: g-12345abcde, base_url: neptune}\n",
	} {
		c, err := load(t, text, nil)
		if err == nil {
			_, err = c.Open().Graph(t.Context())
		}
		if e, ok := errors.AsType[*Error](err); !ok || e.Line == 0 {
			t.Errorf("%s: %v, want an error with its line", name, err)
		}
	}
}
