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
		role.RouterTask: func(ctx context.Context, c role.Caller, cfg prompted.Config) (any, error) {
			return prompted.Planner{Config: cfg, Local: local.Planner{}}.Route(ctx, c, asked)
		},
		role.QuerierTask: func(ctx context.Context, c role.Caller, cfg prompted.Config) (any, error) {
			return prompted.Rewriter{Config: cfg, Local: local.Rewriter{}}.Next(ctx, c, role.QueryInput{Question: asked})
		},
		role.AnalystTask: func(ctx context.Context, c role.Caller, cfg prompted.Config) (any, error) {
			return prompted.Judge{Config: cfg, Local: local.Judge{}}.Analyse(ctx, c, reading)
		},
		role.ReflectorTask: func(ctx context.Context, c role.Caller, cfg prompted.Config) (any, error) {
			return prompted.Judge{Config: cfg, Local: local.Judge{}}.Reflect(ctx, c, role.ReflectInput{Question: asked, Known: sources})
		},
		role.JudgeRole: func(ctx context.Context, c role.Caller, cfg prompted.Config) (any, error) {
			return prompted.Judge{Config: cfg, Local: local.Judge{}}.JudgeDraft(ctx, c, drafted)
		},
		role.CriticTask: func(ctx context.Context, c role.Caller, cfg prompted.Config) (any, error) {
			return prompted.Judge{Config: cfg, Local: local.Judge{}}.Criticise(ctx, c, drafted)
		},
		role.ScorerTask: func(ctx context.Context, c role.Caller, cfg prompted.Config) (any, error) {
			return prompted.Judge{Config: cfg, Local: local.Judge{}}.Score(ctx, c, asked, hits(sources...))
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
		if _, err := (prompted.Judge{Config: config()}).JudgeDraft(t.Context(), c, drafted); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"complete: poor", "statement 2: off_topic: leave it out", "the draft: missing: say until when"} {
			if said := c.last(0); strings.Contains(said, want) == failed {
				t.Errorf("critic failed: %v: the prompt is %q; does it say %q?", failed, said, want)
			}
		}
	}
}
