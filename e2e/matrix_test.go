package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// openHandbook opens an engine over the handbook with the given models in its roles.
func openHandbook(t *testing.T, models map[string]llm.Model) *engine.Engine {
	t.Helper()
	config := engine.Config{Dir: t.TempDir(), Models: engine.Models{Roles: models, LocalVerifier: models[role.VerifierRole] == nil}}
	e, err := engine.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close the engine: %v", err)
		}
	})
	report, err := e.Ingest(t.Context(), engine.IngestRequest{Paths: []string{"../engine/testdata/handbook"}})
	if err != nil || len(report.Skipped) > 0 {
		t.Fatalf("ingest the handbook: %v, skipped %v", err, report.Skipped)
	}
	return e
}

// TestSameAnswerByEveryWire checks that both strategies give the same answer in every format, whole
// and streamed, with each role on a model of its own. The answer must depend on the models' replies
// and not on the wire format. With -short one strategy is whole and the other streamed.
func TestSameAnswerByEveryWire(t *testing.T) {
	want := map[string]assay.Answer{} // by strategy: the answer of the first format
	for i, f := range formats() {
		for mode, stream := range modes {
			t.Run(f.name+"/"+mode, func(t *testing.T) {
				for j, strategy := range []string{"static", "corrective"} {
					if testing.Short() && ((i+j)%2 == 0) != stream {
						continue
					}
					testWire(t, strategy, stream, func(string) format { return f }, want)
				}
			})
		}
	}
	t.Run("mixed", func(t *testing.T) {
		all := formats()
		for turn := range all {
			formatOf := func(name string) format { return all[(turn+4*slices.Index(roleNames, name))%len(all)] }
			for _, strategy := range []string{"static", "corrective"} {
				testWire(t, strategy, turn%2 == 0, formatOf, want)
			}
		}
	})
}

// testWire asks with the given formats of the roles, and compares with the answer of other formats.
func testWire(t *testing.T, strategy string, stream bool, formatOf func(string) format, want map[string]assay.Answer) {
	t.Helper()
	checkGoroutines(t)
	c := stage(t, newPlay(), stream, formatOf, attack{})
	e := openHandbook(t, c.models)
	got, err := e.Answer(t.Context(), assay.Local(), engine.Request{Question: parentalLeave, NoCache: true, Strategy: strategy})
	if err != nil {
		t.Fatalf("%s: %v", strategy, err)
	}
	checkPlay(t, strategy, got)
	checkRoles(t, strategy, c, got)
	again, err := e.Replay(t.Context(), assay.Local(), got.Run)
	if err != nil {
		t.Fatalf("%s: replay: %v", strategy, err)
	}
	if diff := cmp.Diff(plain(got), plain(again)); diff != "" {
		t.Errorf("%s: replayed (-first +again):\n%s", strategy, diff)
	}
	if _, ok := want[strategy]; !ok {
		want[strategy] = got
	}
	if diff := cmp.Diff(plain(want[strategy]), plain(got)); diff != "" {
		t.Errorf("%s: not the answer of another wire (-other +this):\n%s", strategy, diff)
	}
}

// plain returns an answer without the fields that vary by run or by the models' transport.
func plain(a assay.Answer) assay.Answer {
	a.Run, a.ElapsedMS, a.Usage, a.Roles = "", 0, assay.Usage{}, nil
	return a
}

// checkPlay checks the answer of a play.
func checkPlay(t *testing.T, strategy string, got assay.Answer) {
	t.Helper()
	if got.Strategy != strategy {
		t.Errorf("the strategy is %q, want %q", got.Strategy, strategy)
	}
	for _, words := range []string{"up to 26 weeks", "eight weeks before it begins"} {
		if !strings.Contains(got.Text, words) {
			t.Errorf("%s: the answer does not say %q:\n%s", strategy, words, got.Text)
		}
	}
	if strings.Contains(got.Text, "80 percent") {
		t.Errorf("%s: the answer says what no document does:\n%s", strategy, got.Text)
	}
	for _, c := range got.Claims {
		if c.Verdict != assay.Supported || len(c.Citations) == 0 {
			t.Errorf("%s: the answer has a claim that is not verified: %+v", strategy, c)
		}
	}
	if len(got.Claims) != 2 || len(got.Citations) < 2 {
		t.Errorf("%s: %d claims and %d citations, want 2 of each", strategy, len(got.Claims), len(got.Citations))
	}
	if strategy == "corrective" && len(got.Searched) < 4 {
		t.Errorf("%d searches, want two for each part, for the first is not sufficient", len(got.Searched))
	}
}

// checkRoles checks that the answer reports the model and cost of each role, with as many calls as
// its server has counted.
func checkRoles(t *testing.T, strategy string, c cast, got assay.Answer) {
	t.Helper()
	total := assay.Usage{Searches: got.Usage.Searches}
	for _, name := range roleNames {
		calls := int(c.hosts[name].requests.Load())
		i := slices.IndexFunc(got.Roles, func(u assay.RoleUse) bool { return u.Role == name })
		switch {
		case i < 0 && calls > 0:
			t.Errorf("%s: the answer does not say who the %s was", strategy, name)
		case i < 0:
		case got.Roles[i].Model != c.models[name].Model() || !strings.HasPrefix(got.Roles[i].Prompt, name+"@") || got.Roles[i].Usage.Calls != calls:
			t.Errorf("%s: the %s is %+v, want %s with %d calls", strategy, name, got.Roles[i], c.models[name].Model(), calls)
		default:
			total = total.Add(got.Roles[i].Usage)
		}
	}
	if diff := cmp.Diff(total, got.Usage); diff != "" {
		t.Errorf("%s: what the roles have cost is not what the run has (-roles +run):\n%s", strategy, diff)
	}
}
