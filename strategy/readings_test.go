package strategy_test

import (
	"context"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

type clarifier func(role.ClarifyInput) (role.Clarity, error)

func (f clarifier) Clarify(_ context.Context, _ role.Caller, in role.ClarifyInput) (role.Clarity, error) {
	return f(in)
}

// TestReadingsStayIncomplete checks that an answer for each of several meanings is complete only if the
// answer that it replaces was not held back and did not end in an error state.
func TestReadingsStayIncomplete(t *testing.T) {
	bad := call("shell", `{}`)
	for _, tt := range []struct {
		strategy string
		judge    judge
		calls    []llm.ToolCall
		status   assay.Status
		reason   assay.Reason
	}{
		{"static", nil, nil, assay.Answered, assay.ReasonSupported},
		{"judge", accepts, nil, assay.Answered, assay.ReasonSupported},
		{"judge", revises("more"), nil, assay.Incomplete, assay.ReasonNotAccepted},
		{"react", nil, []llm.ToolCall{bad, bad, bad}, assay.Incomplete, assay.ReasonMalformed},
	} {
		l := newLibrary("The timeout of the widget is 30 seconds.", "The timeout of the widget is 40 seconds.")
		for i, uri := range []string{"red/widget.md", "blue/widget.md"} {
			l.documents[i].Title, l.documents[i].URI = "Widget", uri
		}
		roles := localRoles()
		roles.Grader, roles.Judge = grader(enough), tt.judge
		roles.Clarifier = clarifier(func(role.ClarifyInput) (role.Clarity, error) {
			return role.Clarity{Ambiguous: true, Readings: []int{0, 1}}, nil
		})
		e := env(l, "What is the timeout of the widget?", roles)
		e.Roles.Actor = actsBy{by: &scriptedActor{plan: goals("a?"), turns: [][]llm.ToolCall{tt.calls}}}
		a := askWith(t, e, tt.strategy)
		if len(a.Readings) != 2 || !strings.Contains(a.Text, "30 seconds") || a.Status != tt.status || a.Reason != tt.reason {
			t.Errorf("%s: %s (%s, %s) with readings %q, want %s (%s)", tt.strategy, a.Status, a.Reason, a.Stop, a.Readings, tt.status, tt.reason)
		}
	}
}

// TestWalksAreNoFirstSearch checks that the passages of a walk over the entity graph are not taken for
// those of the search for the question, which decide whether it is ambiguous.
func TestWalksAreNoFirstSearch(t *testing.T) {
	l := newLibrary("The timeout of the widget is 30 seconds.", "The timeout of the widget is 40 seconds.")
	for i, uri := range []string{"red/widget.md", "blue/widget.md"} {
		l.documents[i].Title, l.documents[i].URI = "Widget", uri
	}
	roles := localRoles()
	roles.Grader = grader(enough)
	roles.Clarifier = clarifier(func(role.ClarifyInput) (role.Clarity, error) {
		return role.Clarity{Ambiguous: true, Readings: []int{0, 1}}, nil
	})
	e := env(l, "What is the timeout of the widget?", roles)
	e.Roles.Actor = actsBy{by: &scriptedActor{plan: goals("a?"), turns: [][]llm.ToolCall{{call("graph", `{"entities":["widget"]}`)}}}}
	if a := askWith(t, e, "react"); len(a.Readings) != 2 {
		t.Errorf("%s (%s): %q with readings %q, want two", a.Status, a.Stop, a.Text, a.Readings)
	}
}
