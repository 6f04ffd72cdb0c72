// Package prompted does the roles with a language model: each has a prompt
// template (in prompts, embedded) and a typed output, and nothing of a reply is
// believed before it has been checked.
//
// # What a model is told
//
// The system part of a prompt is the same in every call of a role, so that
// providers can cache it; the domain file's part belongs to it. The user part
// holds the question and the passages, each between marks that no text can
// contain, and without invisible characters; it says that they are data. Passages
// have small numbers, which are the engine's; a model never sees an ID.
//
// What does not fit into the model's window is left out, the worst passages first,
// and the output's notes say so.
//
// # What a model replies
//
// One JSON object (typed.go): taken out of what surrounds it, repaired, held to
// its schema and to what it may mean: a number that was not given, a value that
// does not exist and a name that no source has are caught here. A reply that
// cannot be used is asked for again with what was wrong, three prompts in all.
// Then the role's cautious output stands, and says why.
//
// A provider that fails is another matter: where there is a local role it stands
// in, and a note says so.
package prompted

import (
	"context"
	"fmt"
	"strings"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// Config is what every prompted role has.
type Config struct {
	Model llm.Model

	// Domain adds a team's words and rules to the prompts; nil: there are none.
	Domain *Domain
}

// A stander is a role that has a local one behind it: what it takes to make its
// output when the model did not.
type stander[Out any] struct {
	role     string
	local    func() (Out, error)      // nil: there is none
	outcome  func(*Out) *role.Outcome // where an output has its outcome
	cautious func(role.Outcome) Out   // the output that stands for none
}

// without returns the output of a role whose provider failed: the local role's, or
// the cautious one. The error is the run's end.
func (s stander[Out]) without(ctx context.Context, failed error) (Out, error) {
	if s.local == nil {
		return s.cautious(without(s.role, failed)), nil
	}
	return s.standIn(ctx, role.Outcome{}, providerText(failed))
}

// unusable returns the output of a role whose model gave no reply that can be used: the local
// role's, or the cautious one. The error is the run's end.
func (s stander[Out]) unusable(ctx context.Context, o role.Outcome) (Out, error) {
	if s.local == nil {
		return s.cautious(o), nil
	}
	return s.standIn(ctx, o, o.Failure)
}

// standIn returns the output of the local role in place of a model's, whose outcome was o.
func (s stander[Out]) standIn(ctx context.Context, o role.Outcome, why string) (Out, error) {
	notes := append(o.Notes, fmt.Sprintf("%s: %s; the local %s stood in", s.role, why, s.role))
	out, err := s.local()
	switch {
	case role.Ends(ctx, err):
		return out, err
	case err != nil:
		return s.cautious(role.Outcome{Failure: fmt.Sprintf("the local %s failed: %v", s.role, err), Notes: notes}), nil
	}
	local := s.outcome(&out)
	local.Notes, local.StoodIn = append(notes, local.Notes...), true
	return out, nil
}

// instead returns the output of a role whose model gave none, done: the provider failed,
// or no reply could be used. It is done as well with an error that ends the run.
func (s stander[Out]) instead(ctx context.Context, o role.Outcome, err error) (out Out, ended error, done bool) {
	switch {
	case failed(ctx, err):
		out, ended = s.without(ctx, err)
		return out, ended, true
	case err != nil:
		return out, err, true
	case o.Failure != "":
		return s.cautious(o), nil, true
	}
	return out, nil, false
}

// providerText is the text of a call's error as it was when the call was made,
// also when it comes from the journal.
func providerText(err error) string {
	text := err.Error()
	if rest, ok := strings.CutPrefix(text, "step "); ok {
		if _, said, ok := strings.Cut(rest, ": "); ok {
			text = said
		}
	}
	return line(text)
}

// isKind reports whether a provider's error is of a kind. Its text tells, as
// llm.Error writes it: an error that comes from the journal has nothing else.
func isKind(err error, kind llm.ErrorKind) bool {
	_, said, _ := strings.Cut(providerText(err), ": ") // after the model's name
	return strings.HasPrefix(said, string(kind))
}
