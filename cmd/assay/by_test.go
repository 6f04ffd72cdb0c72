package main

import (
	"slices"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

func TestByLine(t *testing.T) {
	t.Parallel()
	use := func(role, model string) assay.RoleUse { return assay.RoleUse{Role: role, Model: model} }
	spent := assay.Usage{Calls: 5, InputTokens: 4000, OutputTokens: 312}
	used := func(role, model string) assay.RoleUse { return assay.RoleUse{Role: role, Model: model, Usage: spent} }
	priced := func(role, model string) assay.RoleUse {
		u := used(role, model)
		u.Usage.CostMicros = 600
		return u
	}
	shown := []assay.Claim{{}}
	tests := []struct {
		name   string
		roles  []assay.RoleUse
		claims []assay.Claim
		usage  assay.Usage
		want   string
	}{
		{"none", []assay.RoleUse{use("planner", "local"), use("generator", "local")}, shown, assay.Usage{}, ""},
		{"two", []assay.RoleUse{used("planner", "o/small"), used("grader", "o/small"), used("generator", "o/large"), use("verifier", "local")}, shown, spent,
			"Written by o/large, planned and graded by o/small, verified locally; 5 calls, 4,312 tokens"},
		{"with prices", []assay.RoleUse{priced("generator", "o/x"), priced("verifier", "o/y")}, shown, assay.Usage{Calls: 1, InputTokens: 1, CostMicros: 1200},
			"Written by o/x, verified by o/y; 1 call, 1 token, cost 0.0012"},
		{"with one price", []assay.RoleUse{priced("generator", "o/x"), used("grader", "o/y"), used("verifier", "o/y")}, shown, assay.Usage{Calls: 1, InputTokens: 1, CostMicros: 1200},
			"Written by o/x, graded and verified by o/y; 1 call, 1 token, cost 0.0012, excluding o/y"},
		{"a service that counts no tokens", []assay.RoleUse{used("generator", "o/x"), {Role: "verifier", Model: "b/guardrail", Usage: assay.Usage{Calls: 2}}}, shown, spent,
			"Written by o/x, verified by b/guardrail; 5 calls, 4,312 tokens"},
		{"stand-ins", []assay.RoleUse{use("grader", "o/x"), use("grader", "local"), use("generator", "local"), used("generator", "o/x")}, shown, spent,
			"Written and graded locally instead of by o/x; 5 calls, 4,312 tokens"},
		{"nothing shown", []assay.RoleUse{used("planner", "o/x"), used("generator", "o/x"), use("verifier", "local")}, nil, spent,
			"Drafted and planned by o/x, verified locally; 5 calls, 4,312 tokens"},
		{"ended before the answer", []assay.RoleUse{used("planner", "o/x"), used("grader", "o/x"), use("generator", "o/x")}, nil, spent,
			"Planned and graded by o/x; 5 calls, 4,312 tokens"},
		{"a service that failed", []assay.RoleUse{used("generator", "o/x"), {Role: "verifier", Model: "b/guardrail", Usage: assay.Usage{Calls: 2}}}, nil, spent,
			"Drafted by o/x; 5 calls, 4,312 tokens"},
		{"in rounds", []assay.RoleUse{used("grader", "o/small"), used("judge", "o/large"), used("generator", "o/large"), use("rewriter", "local"), use("verifier", "local")}, shown, spent,
			"Written and judged by o/large, reworded and verified locally, graded by o/small; 5 calls, 4,312 tokens"},
		{"a managed service", []assay.RoleUse{used("managed", "bedrock/kb"), use("generator", "local"), use("grader", "local"), use("verifier", "local")}, shown, spent,
			"Written by bedrock/kb, graded and verified locally; 5 calls, 4,312 tokens"},
		{"ended at once", []assay.RoleUse{use("planner", "o/x")}, nil, assay.Usage{}, "No model finished; 0 calls, 0 tokens"},
	}
	for _, test := range tests {
		if got := byLine(assay.Answer{Roles: test.roles, Claims: test.claims, Usage: test.usage}); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
	for _, name := range engine.RoleNames() {
		if !slices.ContainsFunc(deeds, func(d deed) bool { return d.role == name }) {
			t.Errorf("nothing says what the %s did", name)
		}
	}
	search := assay.RoleUse{Role: assay.SearchRole, Model: "o/vectors + c/rerank", Usage: assay.Usage{Calls: 2}}
	for want, roles := range map[string][]assay.RoleUse{
		"Searched with o/vectors + c/rerank; 5 calls, 4,312 tokens":                 {use("generator", "local"), search},
		"Written by o/x, searched with o/vectors + c/rerank; 5 calls, 4,312 tokens": {used("generator", "o/x"), search},
	} {
		if got := byLine(assay.Answer{Roles: roles, Claims: shown, Usage: spent}); got != want {
			t.Errorf("with services: %q, want %q", got, want)
		}
	}
	for micros, want := range map[int64]string{1: "0.000001", 10000: "0.01", 500000: "0.50", 12345678: "12.345678"} {
		if got := money(micros); got != want {
			t.Errorf("money(%d) = %s, want %s", micros, got, want)
		}
	}
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("thousands(%d) = %s, want %s", n, got, want)
		}
	}
}
