package bedrock_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground/groundtest"
	"github.com/assay-rag/assay/provider/bedrock"
	"github.com/assay-rag/assay/provider/bedrock/bedrocktest"
)

// assess returns a guardrail for the contract tests, whose grounding check is correct except for
// its fault.
func assess(t *testing.T, fault groundtest.Fault) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Content []struct {
				Text struct {
					Text       string
					Qualifiers []string
				}
			}
		}
		if data, err := io.ReadAll(r.Body); err != nil || json.Unmarshal(data, &asked) != nil {
			t.Errorf("asked %s, %v", data, err)
		}
		score, action := "0.1", "BLOCKED"
		for _, c := range asked.Content {
			if c.Text.Qualifiers[0] == "guard_content" && groundtest.Truth(c.Text.Text) == assay.Supported {
				score, action = "0.95", "NONE"
			}
		}
		whole := map[string]string{"BLOCKED": "GUARDRAIL_INTERVENED", "NONE": "NONE"}[action]
		filter := grounding(score, "0.7", action)
		w.Header().Set("Content-Type", "application/json")
		switch fault {
		case groundtest.Fails:
			w.WriteHeader(http.StatusInternalServerError)
			return
		case groundtest.Hangs:
			<-r.Context().Done()
			return
		case groundtest.Junk:
			_, _ = io.WriteString(w, "grounded, all of it")
			return
		case groundtest.Nothing:
			return
		case groundtest.None:
			filter = ""
		case groundtest.NoScore:
			filter = fmt.Sprintf(`{"type":"GROUNDING","threshold":0.7,"action":%q}`, action)
		case groundtest.Beyond:
			filter = grounding("1.7", "0.7", action)
		}
		_, _ = fmt.Fprintf(w, assessment, whole, filter, "")
	}
}

func TestVerifierContract(t *testing.T) {
	open := func(t *testing.T, fault groundtest.Fault) groundtest.Judge {
		server := httptest.NewServer(assess(t, fault))
		t.Cleanup(server.Close)
		v, err := bedrocktest.Open(t, server.URL).Verifier(bedrock.Grounding{Guardrail: bedrock.Guardrail{ID: "gr12345", Version: "3"}})
		if err != nil {
			t.Fatal(err)
		}
		return groundtest.Of(v)
	}
	groundtest.Run(t, groundtest.Subject{
		Open:  func(t *testing.T) groundtest.Judge { return open(t, "") },
		Break: func(t *testing.T, fault groundtest.Fault) (groundtest.Judge, bool) { return open(t, fault), true },
	})
}
