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

// reporter returns a function that notifies the client of a step that starts, if it wants to be.
func reporter(req *mcp.CallToolRequest) func(context.Context, engine.Step) {
	token := req.Params.GetProgressToken()
	done := 0.0
	return func(ctx context.Context, step engine.Step) {
		stage := stages[step.Kind]
		if token == nil || stage == "" {
			return
		}
		done++
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ // the client may be gone
			ProgressToken: token, Progress: done, Message: stage + ": " + step.Summary,
		})
	}
}
