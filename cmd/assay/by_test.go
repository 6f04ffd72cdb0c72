package main

import (
	"testing"

	"github.com/assay-rag/assay"
)

func TestByLine(t *testing.T) {
	use := func(role, model string) assay.RoleUse { return assay.RoleUse{Role: role, Model: model} }
	spent := assay.Usage{Calls: 5, InputTokens: 4000, OutputTokens: 312}
	tests := []struct {
		name  string
		roles []assay.RoleUse
		usage assay.Usage
		want  string
	}{
		{"none", []assay.RoleUse{use("planner", "local"), use("generator", "local")}, assay.Usage{}, ""},
		{"two", []assay.RoleUse{use("planner", "o/small"), use("grader", "o/small"), use("generator", "o/large"), use("verifier", "local")}, spent,
			"Written by o/large, planned and graded by o/small, verified locally; 5 calls, 4,312 tokens"},
		{"one, with its price", []assay.RoleUse{use("generator", "o/x"), use("verifier", "o/y")}, assay.Usage{Calls: 1, InputTokens: 1, CostMicros: 1200},
			"Written by o/x, verified by o/y; 1 call, 1 tokens, cost 0.0012"},
		{"a stand-in", []assay.RoleUse{use("grader", "o/x"), use("grader", "local"), use("generator", "local")}, spent,
			"Written and graded locally; 5 calls, 4,312 tokens"},
		{"a stand-in for a part", []assay.RoleUse{{Role: "grader", Model: "o/x", Usage: spent}, use("grader", "local"), use("generator", "local")}, spent,
			"Written locally, graded by o/x and locally; 5 calls, 4,312 tokens"},
		{"another role", []assay.RoleUse{use("judge", "o/x")}, spent, "Models were asked; 5 calls, 4,312 tokens"},
	}
	for _, test := range tests {
		if got := byLine(assay.Answer{Roles: test.roles, Usage: test.usage}); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
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
