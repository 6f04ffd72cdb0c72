// Package prompted implements the roles with a language model. Each role has a prompt template (in
// prompts, embedded) and a typed output. No part of a reply is used before it has been checked.
//
// # Prompts
//
// The system part of a prompt, which includes the domain file's part, is the same in every call of
// a role, so that providers can cache it. The user part holds the question and the passages,
// without invisible characters. Each is between marks that no text can contain, and the prompt
// declares them to be data. Passages have small numbers, assigned by the engine; a model never sees
// an ID.
//
// If the prompt exceeds the model's window, the worst passages are left out first, and the output's
// notes report it.
//
// # Replies
//
// A reply is one JSON object (typed.go). It is extracted from the surrounding text, repaired, and
// checked against its schema and its meaning: numbers that were not given, values that do not exist
// and names that no source contains are rejected. An unusable reply is requested again with the
// problem, for at most three prompts. Then the role returns its cautious output with the reason.
// The planner and the grader use the local role instead, if there is one.
//
// If the provider fails, the local role is used if there is one, and a note reports it.
package prompted

import (
	"context"
	"fmt"
	"strings"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// Config is the common configuration of the prompted roles.
type Config struct {
	Model llm.Model

	// Domain adds a team's vocabulary and rules to the prompts; nil adds nothing.
	Domain *Domain
}

// A typed is one output of a role: how its model makes it, and what takes its place.
type typed[Reply, Out any] struct {
	job[Reply]
	finish   func(Reply, role.Outcome) Out // converts a usable reply
	cautious func(role.Outcome) Out        // the output of a role that failed
	local    func() (Out, error)           // used if the provider fails; nil: the cautious output

	// localIfUnusable is set if the local role also takes the place of a model without a usable
	// reply.
	localIfUnusable bool
}

// do returns the output. An error ends the run.
func (t typed[Reply, Out]) do(ctx context.Context, c role.Caller) (Out, error) {
	reply, outcome, err := ask(ctx, c, t.job)
	return t.finished(ctx, reply, outcome, err)
}

// finished converts the result of ask to the output.
func (t typed[Reply, Out]) finished(ctx context.Context, reply Reply, o role.Outcome, err error) (Out, error) {
	switch {
	case failed(ctx, err) && t.local == nil:
		return t.cautious(without(t.task, err)), nil
	case failed(ctx, err):
		return t.standIn(ctx, role.Outcome{}, providerText(err))
	case err != nil:
		var none Out
		return none, err
	case o.Failure != "" && t.localIfUnusable && t.local != nil:
		return t.standIn(ctx, o, o.Failure)
	case o.Failure != "":
		return t.cautious(o), nil
	}
	return t.finish(reply, o), nil
}

// standIn returns the output of the local role instead of a model's output with the outcome o.
func (t typed[Reply, Out]) standIn(ctx context.Context, o role.Outcome, why string) (Out, error) {
	notes := append(o.Notes, fmt.Sprintf("%s: %s; the local %s stood in", t.task, why, t.task))
	out, err := t.local()
	switch {
	case role.Ends(ctx, err):
		return out, err
	case err != nil:
		return t.cautious(role.Outcome{Failure: fmt.Sprintf("the local %s failed: %v", t.task, err), Notes: notes}), nil
	}
	local := role.OutcomeOf(&out)
	local.Notes, local.StoodIn = append(notes, local.Notes...), true
	return out, nil
}

// ifAny returns f, or nil if there is no local role.
func ifAny[Out any](local bool, f func() (Out, error)) func() (Out, error) {
	if !local {
		return nil
	}
	return f
}

// providerText returns the text of a call's error as at the time of the call, even if the error
// comes from the journal.
func providerText(err error) string {
	text := err.Error()
	if rest, ok := strings.CutPrefix(text, "step "); ok {
		if _, said, ok := strings.Cut(rest, ": "); ok {
			text = said
		}
	}
	return line(text)
}

// isKind reports whether a provider's error has a kind. It checks the text, as llm.Error writes it,
// because an error from the journal has only its text.
func isKind(err error, kind llm.ErrorKind) bool {
	_, said, _ := strings.Cut(providerText(err), ": ") // after the model's name
	return strings.HasPrefix(said, string(kind))
}
