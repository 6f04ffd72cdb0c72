package prompted_test

import (
	"context"
	"strings"
	"testing"

	"github.com/assay-rag/assay/internal/role/local"
	"github.com/assay-rag/assay/internal/role/prompted"
	"github.com/assay-rag/assay/role"
)

// TestRoundsStandIn checks that the local roles are used if the provider fails, with a note.
func TestRoundsStandIn(t *testing.T) {
	roles := map[string]act{
		role.RouterRole: func(ctx context.Context, c role.Caller, cfg prompted.Config) (any, error) {
			return prompted.Router{Config: cfg, Local: local.Router{}}.Route(ctx, c, asked)
		},
		role.QuerierRole: func(ctx context.Context, c role.Caller, cfg prompted.Config) (any, error) {
			return prompted.Querier{Config: cfg, Local: local.Querier{}}.Next(ctx, c, role.QueryInput{Question: asked})
		},
		role.AnalystRole: func(ctx context.Context, c role.Caller, cfg prompted.Config) (any, error) {
			return prompted.Analyst{Config: cfg, Local: local.Analyst{}}.Analyse(ctx, c, reading)
		},
		role.ReflectorRole: func(ctx context.Context, c role.Caller, cfg prompted.Config) (any, error) {
			return prompted.Reflector{Config: cfg, Local: local.Reflector{}}.Reflect(ctx, c, role.ReflectInput{Question: asked, Known: sources})
		},
		role.JudgeRole: func(ctx context.Context, c role.Caller, cfg prompted.Config) (any, error) {
			return prompted.Judge{Config: cfg, Local: local.Judge{}}.Judge(ctx, c, drafted)
		},
		role.CriticRole: func(ctx context.Context, c role.Caller, cfg prompted.Config) (any, error) {
			return prompted.Critic{Config: cfg, Local: local.Critic{}}.Criticise(ctx, c, drafted)
		},
		role.ScorerRole: func(ctx context.Context, c role.Caller, cfg prompted.Config) (any, error) {
			return prompted.Scorer{Config: cfg, Local: local.Scorer{}}.Score(ctx, c, asked, hits(sources...))
		},
	}
	for name, do := range roles {
		out, err := do(t.Context(), replies(t, down), config())
		if err != nil {
			t.Fatal(err)
		}
		note := name + ": fake/small: rate limited (HTTP 429): slow down; the local " + name + " stood in"
		if o := outcome(out); !o.StoodIn || o.Failure != "" || len(o.Notes) != 1 || o.Notes[0] != note {
			t.Errorf("%s: %+v, want that the local one stood in", name, o)
		}
		// The local role does not replace an unusable reply.
		out, err = do(t.Context(), replies(t, "no"), config())
		if err != nil {
			t.Fatal(err)
		}
		if o := outcome(out); o.StoodIn || o.Failure == "" {
			t.Errorf("%s: %+v, want a failure", name, o)
		}
	}
}

// TestAdviceAndCritique checks that a generator sees the advice and a judge sees the critique.
func TestAdviceAndCritique(t *testing.T) {
	c := replies(t, everyRole[role.GeneratorRole].good)
	in := role.GenerateInput{Question: asked, Evidence: reading.Evidence, Advice: []string{"name the\nlandlord", strings.Repeat("x", 5000)}}
	if _, err := (prompted.Generator{Config: config()}).Generate(t.Context(), c, in); err != nil {
		t.Fatal(err)
	}
	if said := c.last(0); !strings.Contains(said, "- name the landlord\n") || strings.Contains(said, strings.Repeat("x", 1000)) {
		t.Errorf("the prompt is %q, want the advice in short", said)
	}
	critique := role.Critique{Grounded: role.Good, Complete: role.Poor, Relevant: role.Good, Clear: role.Fair, Remarks: []role.Remark{
		{Statement: 1, Flaw: role.FlawOffTopic, Advice: "leave it out"}, {Statement: -1, Flaw: role.FlawMissing, Advice: "say until when"},
	}}
	for _, failed := range []bool{false, true} {
		if failed {
			critique.Failure = "it broke"
		}
		drafted := drafted
		drafted.Critique = &critique
		c = replies(t, everyRole[role.JudgeRole].good)
		if _, err := (prompted.Judge{Config: config()}).Judge(t.Context(), c, drafted); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"complete: poor", "statement 2: off_topic: leave it out", "the draft: missing: say until when"} {
			if said := c.last(0); strings.Contains(said, want) == failed {
				t.Errorf("critic failed: %v: the prompt is %q; does it say %q?", failed, said, want)
			}
		}
	}
}
