package prompted_test

import (
	"context"
	"regexp"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/ground/groundtest"
	"github.com/assay-rag/assay/internal/role/prompted"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// A checker is a caller whose model judges the claims of the contract correctly, except for its
// fault.
type checker struct {
	t     *testing.T
	fault groundtest.Fault
}

var claimShown = regexp.MustCompile(`(?s)<claim number="(\d+)" id="\w+">\n(.*?)\n</claim`)

func (c checker) Call(ctx context.Context, call role.Call) (llm.Response, error) {
	reply := llm.Response{Finish: llm.FinishStop}
	m := call.Request.Messages[0]
	var verdicts []any
	for i, shown := range claimShown.FindAllStringSubmatch(m.Text, -1) {
		v := map[string]any{"claim": i + 1, "reason": "as it says", "quotes": []string{}, "verdict": "unsupported", "score": 0.1}
		if groundtest.Truth(shown[2]) == assay.Supported {
			v["verdict"], v["score"], v["quotes"] = "supported", 0.9, []string{shown[2]}
		}
		switch c.fault {
		case groundtest.NoScore:
			delete(v, "score")
		case groundtest.Beyond:
			v["score"] = 7
		}
		verdicts = append(verdicts, v)
	}
	switch c.fault {
	case groundtest.Fails:
		return llm.Response{}, down
	case groundtest.Hangs:
		<-ctx.Done()
		return llm.Response{}, ctx.Err()
	case groundtest.Junk:
		reply.Text = "All of them are supported, I promise: 1.0"
	case groundtest.Nothing:
	case groundtest.None:
		verdicts = []any{}
		fallthrough
	default:
		reply.Text = mustJSON(c.t, map[string]any{"verdicts": verdicts})
	}
	return reply, ctx.Err()
}

func (checker) Check(context.Context, ground.Service, role.Claim) (ground.Judgement, error) {
	panic("no prompted role checks with a service")
}

func TestVerifierContract(t *testing.T) {
	judge := func(t *testing.T, fault groundtest.Fault) groundtest.Judge {
		return func(ctx context.Context, claims []groundtest.Claim) ([]ground.Judgement, error) {
			in := make([]role.Claim, len(claims))
			for i, c := range claims {
				in[i] = role.Claim{Text: c.Text, Cited: c.Cited}
			}
			return prompted.Verifier{Config: config()}.Verify(ctx, checker{t, fault}, in)
		}
	}
	groundtest.Run(t, groundtest.Subject{
		Open:  func(t *testing.T) groundtest.Judge { return judge(t, "") },
		Break: func(t *testing.T, fault groundtest.Fault) (groundtest.Judge, bool) { return judge(t, fault), true },
	})
}
