package mcpserver

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// stages names the steps of a run that a client is told of.
var stages = map[assay.StepKind]string{
	assay.StepPlan:     "plan",
	assay.StepSearch:   "search",
	assay.StepWeb:      "search",
	assay.StepGrade:    "grade",
	assay.StepGenerate: "write",
	assay.StepVerify:   "verify",
}

// reporter returns a function that notifies the client of a step that starts, if it wants to be. A
// follower may miss the start of a step: it is then notified of its end.
func reporter(req *mcp.CallToolRequest) func(context.Context, engine.Step) {
	token := req.Params.GetProgressToken()
	done := 0.0
	reported := map[string]bool{} // paths of steps
	return func(ctx context.Context, step engine.Step) {
		stage := stages[step.Kind]
		if token == nil || stage == "" || reported[step.Path] {
			return
		}
		reported[step.Path] = true
		done++
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ // the client may be gone
			ProgressToken: token, Progress: done, Message: stage + ": " + step.Summary,
		})
	}
}
