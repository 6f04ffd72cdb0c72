package role

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
)

// ByClaim returns a role that judges claims one by one with v. Each call of a
// [ground.Service] is a step of its own. A claim whose judgement fails is Unsupported, with
// the failure as its reason.
func ByClaim(v ground.Verifier) Verifier { return byClaim{v} }

type byClaim struct{ verifier ground.Verifier }

func (b byClaim) Verify(ctx context.Context, c Caller, claims []Claim) ([]ground.Judgement, error) {
	limited, cancel := within(ctx, c)
	defer cancel()
	judge := func(claim Claim) (ground.Judgement, error) {
		if claim.Row != nil {
			return Ask(limited, b.verifier, claim.Row.Claim(), claim.Cited)
		}
		return Ask(limited, b.verifier, claim.Alone(), claim.Cited)
	}
	s, serves := b.verifier.(ground.Service)
	if serves {
		judge = func(claim Claim) (ground.Judgement, error) { return c.Check(ctx, s, claim) }
	}
	out := make([]ground.Judgement, len(claims))
	for i, claim := range claims {
		if len(claim.Cited) == 0 {
			out[i] = ground.Judgement{Verdict: assay.Unsupported, Reason: "cites nothing"}
			continue
		}
		j, err := judge(claim)
		if !serves && limited.Err() != nil && ctx.Err() == nil {
			err = errSlow // regardless of the judgement
		}
		switch {
		case Ends(ctx, err):
			return nil, err
		case err != nil:
			j = ground.Judgement{Verdict: assay.Unsupported, Reason: "the verifier failed: " + reason(err), Failed: true}
		}
		out[i] = j
	}
	return out, nil
}

// errSlow is the failure of a verifier that did not return in time.
var errSlow = errors.New("the time limit for verification has expired")

// within returns a context with the time limit of the caller's job, if it has one. A verifier
// that hangs fails, and the run continues.
func within(ctx context.Context, c Caller) (context.Context, context.CancelFunc) {
	if timed, ok := c.(interface {
		Within(context.Context) (context.Context, context.CancelFunc)
	}); ok {
		return timed.Within(ctx)
	}
	return ctx, func() {}
}

// Ask calls v, and returns a panic as an error: a verifier may come from the caller's own
// program, and the run continues without it.
func Ask(ctx context.Context, v ground.Verifier, claim string, cited []ground.Passage) (j ground.Judgement, err error) {
	defer func() {
		if p := recover(); p != nil {
			j, err = ground.Judgement{}, fmt.Errorf("it panicked: %v", p)
		}
	}()
	return v.Verify(ctx, claim, cited)
}

// AskService is Ask for a service. A claim with a question is judged for it.
func AskService(ctx context.Context, s ground.Service, claim Claim) (ground.Judgement, error) {
	if claim.Question == "" {
		return Ask(ctx, s, claim.Alone(), claim.Cited)
	}
	return Ask(ctx, forQuestion{s, claim.Question}, claim.Alone(), claim.Cited)
}

// forQuestion is a service as a verifier of what answers one question.
type forQuestion struct {
	ground.Service
	question string
}

// Verify implements ground.Verifier.
func (f forQuestion) Verify(ctx context.Context, claim string, cited []ground.Passage) (ground.Judgement, error) {
	return f.VerifyFor(ctx, f.question, claim, cited)
}

// reason returns the text of an error without its step, so that claims which fail alike have
// the same reason.
func reason(err error) string {
	text := err.Error()
	if rest, ok := strings.CutPrefix(text, "step "); ok {
		if _, said, ok := strings.Cut(rest, ": "); ok {
			return said
		}
	}
	return text
}
