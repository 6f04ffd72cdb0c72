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

// A stander makes a role's output if the model did not, with the local role as fallback.
type stander[Out any] struct {
	role     string
	local    func() (Out, error)      // nil: none
	outcome  func(*Out) *role.Outcome // the Outcome field of an output
	cautious func(role.Outcome) Out   // the output of a failed role
}

// without returns the output of a role whose provider failed: that of the local role or the
// cautious one. An error ends the run.
func (s stander[Out]) without(ctx context.Context, failed error) (Out, error) {
	if s.local == nil {
		return s.cautious(without(s.role, failed)), nil
	}
	return s.standIn(ctx, role.Outcome{}, providerText(failed))
}

// unusable returns the output of a role whose model gave no usable reply: that of the local role or
// the cautious one. An error ends the run.
func (s stander[Out]) unusable(ctx context.Context, o role.Outcome) (Out, error) {
	if s.local == nil {
		return s.cautious(o), nil
	}
	return s.standIn(ctx, o, o.Failure)
}

// standIn returns the output of the local role instead of a model's output with the outcome o.
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

// instead returns the output of a role if its model gave none because the provider failed or no
// reply was usable. done is then true. It is also true for an error that ends the run.
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
