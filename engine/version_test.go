package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/strategy"
)

// askAs asks as a program of an earlier version of the ways of strategies did: with the
// request that it stored, which this one goes on with and replays in the same way.
func askAs(ctx context.Context, e *Engine, version int, req Request) (assay.Answer, error) {
	req, err := e.check(ctx, assay.Local(), req)
	if err != nil {
		return assay.Answer{}, err
	}
	models := e.config.Models.unless(req.Local)
	began := stored{
		Request: req, Version: version, Models: models.named(), ContextTokens: models.contextTokens(), Keep: models.keep(),
		Searcher: e.searcherName(req),
	}
	if req.Strategy == "managed" {
		began.Managed = e.managedName()
	}
	request, err := json.Marshal(began)
	if err != nil {
		return assay.Answer{}, err
	}
	r := assay.Run{
		ID: fmt.Sprintf("v%d%s%d", version, req.Strategy, len(models.Roles)), Principal: assay.Local(), Question: req.Question,
		Request: request, State: assay.RunActive, Created: e.config.Now().UTC(),
	}
	lease, err := e.runs.Create(ctx, r)
	if err != nil {
		return assay.Answer{}, err
	}
	answer, err := e.drive(ctx, r, began, lease, nil, nil)
	return answer, errors.Join(err, lease.Close())
}

// Runs that were begun before a way of strategies came in go without it and come to their
// answers again, by whatever models are there today.
func TestEveryVersionReplays(t *testing.T) {
	e, _, _ := openEvery(t)
	for version := range currentVersion + 1 {
		for _, name := range strategy.Names() {
			for _, way := range everyWay {
				everyModels(e, way)
				a, err := askAs(t.Context(), e, version, everyRequest(name))
				if err != nil {
					t.Fatalf("version %d, %s, %s: %v", version, name, way, err)
				}
				proven := version >= withProof
				judged := false
				for _, path := range stepsByPath(t, e, a.Run) {
					judged = judged || strings.Contains(path, role.AnswerGraderRole)
					for _, added := range []string{"/repair[", "/sentences[", `"said":`} {
						if !proven && strings.Contains(path, added) {
							t.Errorf("version %d, %s, %s: step %.300s", version, name, way, path)
						}
					}
				}
				if shown := len(a.Claims) > 0; judged != (proven && shown) || (a.Relevance != nil) != (proven && shown) {
					t.Errorf("version %d, %s, %s: relevance %v of %d claims, judged in a step: %v", version, name, way, a.Relevance, len(a.Claims), judged)
				}
				for _, today := range everyWay {
					everyModels(e, today)
					again, err := e.Replay(t.Context(), assay.Local(), a.Run)
					if err == nil {
						err = compare(a, again)
					}
					if err != nil {
						t.Errorf("version %d, %s, %s, replayed with %s: %v", version, name, way, today, err)
					}
				}
			}
		}
	}
}
