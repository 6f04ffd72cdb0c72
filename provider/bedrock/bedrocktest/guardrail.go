package bedrocktest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A Guarded is the text that a request to a guardrail has in its blocks.
type Guarded struct {
	Sources []string // grounding_source
	Query   string   // query
	Content string   // guard_content
}

// A Guardrail is a server of one guardrail with a contextual grounding policy. It refuses a request
// whose blocks are not those of a contextual grounding check.
type Guardrail struct {
	Name string // "gr12345", whose version "3" is served

	// Score returns the grounding and the relevance score of a request. It may be nil: all is
	// grounded and relevant.
	Score func(Guarded) (grounding, relevance float64)

	// Grounding and Relevance are the guardrail's thresholds.
	Grounding, Relevance float64

	mu    sync.Mutex
	asked []Guarded
}

// Asked returns the requests so far.
func (g *Guardrail) Asked() []Guarded {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.asked)
}

// Serve starts the server and returns its address.
func (g *Guardrail) Serve(t testing.TB) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		in, err := guardedOf(r)
		if want := "/guardrail/" + g.Name + "/version/3/apply"; err == nil && r.URL.Path != want {
			err = fmt.Errorf("%s was asked, want %s", r.URL.Path, want)
		}
		if err != nil {
			t.Error(err)
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(object{"__type": "ValidationException", "message": err.Error()})
			return
		}
		g.mu.Lock()
		g.asked = append(g.asked, in)
		g.mu.Unlock()
		_ = json.NewEncoder(w).Encode(g.reply(in))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// guardedOf reads the blocks of a request: one or more sources, one query and one content to guard,
// in this order and each with one qualifier.
//
// Source: AWS, Amazon Bedrock API Reference, ApplyGuardrail, request syntax; User Guide, "Use
// contextual grounding check to filter hallucinations in responses".
func guardedOf(r *http.Request) (Guarded, error) {
	var body struct {
		Source  string
		Content []struct {
			Text struct {
				Text       string
				Qualifiers []string
			}
		}
	}
	var in Guarded
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return in, err
	}
	var order []string
	for _, block := range body.Content {
		if len(block.Text.Qualifiers) != 1 || strings.TrimSpace(block.Text.Text) == "" {
			return in, fmt.Errorf("a block has the qualifiers %q and the text %q", block.Text.Qualifiers, block.Text.Text)
		}
		order = append(order, block.Text.Qualifiers[0])
		switch block.Text.Qualifiers[0] {
		case "grounding_source":
			in.Sources = append(in.Sources, block.Text.Text)
		case "query":
			in.Query = block.Text.Text
		case "guard_content":
			in.Content = block.Text.Text
		}
	}
	want := append(slices.Repeat([]string{"grounding_source"}, len(in.Sources)), "query", "guard_content")
	if len(in.Sources) == 0 || !slices.Equal(order, want) || body.Source != "OUTPUT" {
		return in, fmt.Errorf("blocks %q of source %q, want %q of OUTPUT", order, body.Source, want)
	}
	return in, nil
}

func (g *Guardrail) reply(in Guarded) object {
	grounding, relevance := 1.0, 1.0
	if g.Score != nil {
		grounding, relevance = g.Score(in)
	}
	action := "NONE"
	filter := func(kind string, score, threshold float64) object {
		does := "NONE"
		if score < threshold {
			does, action = "BLOCKED", "GUARDRAIL_INTERVENED"
		}
		return object{"type": kind, "threshold": threshold, "score": score, "action": does}
	}
	filters := []object{filter("GROUNDING", grounding, g.Grounding), filter("RELEVANCE", relevance, g.Relevance)}
	return object{
		"action": action, "outputs": []any{}, "usage": object{"contextualGroundingPolicyUnits": 1},
		"assessments": []any{object{"contextualGroundingPolicy": object{"filters": filters}}},
	}
}
