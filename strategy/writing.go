package strategy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// A writing is what became of a draft.
type writing struct {
	from     string // what it was written from: the generator's input, as JSON
	draft    role.Draft
	checked  []checkedClaim
	readable bool // there are bytes of the evidence to cite
}

// supported returns the claims that the verifier let through.
func (w writing) supported() []checkedClaim {
	return slices.DeleteFunc(slices.Clone(w.checked), func(c checkedClaim) bool { return c.Verdict != assay.Supported })
}

// fell reports whether something was drafted, or should have been, and nothing of it
// stands; that the verifier failed is not the draft's fault.
func (w writing) fell() bool {
	return w.readable && failures(w.checked) == 0 && len(w.supported()) == 0 && (len(w.checked) > 0 || w.draft.Failure != "")
}

// write has an answer written and verified. A model of whose draft nothing stands is
// asked once more, and told what did not hold; when that is no better, or its replies
// could not be used at all, the passages are quoted instead. It is not asked again with
// what it was asked before: then last stands, which is what became of that. Where the run
// had no room for one of these and nothing stands, the error says of what.
func (e Env) write(ctx context.Context, s run.Scope, in role.GenerateInput, said *notes, last *writing) (writing, error) {
	model := e.Roles.Models[role.GeneratorRole]
	if e.Writer == "" {
		return e.draft(ctx, s, e.Roles.Generator, model, in, said)
	}
	from, err := json.Marshal(in)
	if err != nil {
		return writing{}, err
	}
	if last.from == string(from) {
		return *last, nil
	}
	w, err := e.draft(ctx, s, e.Roles.Generator, model, in, said)
	if err != nil {
		return w, err
	}
	var ended error
	if w.fell() && w.draft.Failure == "" {
		again := in
		again.Rejected = rejected(w.checked)
		second, err := e.draft(ctx, s.Sub("again", 0), e.Roles.Generator, model, again, said)
		switch {
		case err == nil && !second.fell() && len(second.checked) > 0:
			w = second
		case stopOf(err) != "":
			ended = err
			said.say(fmt.Sprintf("generator: nothing of what %s wrote is supported by what it cites, and the run had no room for another draft (%s)", e.Writer, stopOf(err)))
		case err != nil:
			return w, err
		}
	}
	if w.fell() && e.Roles.Quoter != nil {
		quoted, err := e.draft(ctx, s.Sub("quoted", 0), e.Roles.Quoter, "", in, said)
		switch {
		case err == nil && len(quoted.supported()) > 0:
			if w.draft.Failure == "" {
				said.say("generator: nothing of what " + e.Writer + " wrote is supported by what it cites; the passages are quoted instead")
			} else {
				said.say("generator: " + e.Writer + " wrote nothing that can be used; the passages are quoted instead")
			}
			quoted.draft.Failure = w.draft.Failure
			w = quoted
		case stopOf(err) != "":
			ended = err
		case err != nil:
			return w, err
		}
	}
	if ended != nil && w.fell() {
		return w, ended
	}
	w.from = string(from)
	*last = w
	return w, nil
}

// draft has one generator write, and what it writes verified.
func (e Env) draft(ctx context.Context, s run.Scope, generator role.Generator, model string, in role.GenerateInput, said *notes) (writing, error) {
	var w writing
	var err error
	if w.draft, err = e.generate(ctx, s, generator, model, in); err != nil {
		return w, err
	}
	said.outcome(role.GeneratorRole, w.draft.Outcome)
	w.draft.Open = asked(e.Question).lines(w.draft.Open)
	w.checked, w.readable, err = e.check(ctx, s, w.draft, in.Evidence, said)
	return w, err
}

// maxRejected is how many statements a generator is told of that did not hold.
const maxRejected = 12

// rejected lists the claims of a draft that were not let through.
func rejected(checked []checkedClaim) []role.Rejected {
	var list []role.Rejected
	for _, c := range checked {
		if c.statement >= 0 && c.Verdict != assay.Supported && len(list) < maxRejected {
			list = append(list, role.Rejected{Text: c.Text, Reason: c.Reason})
		}
	}
	return list
}

// generate asks a generator; model is the one that it asks. One that fails has written
// nothing, and the draft says so.
func (e Env) generate(ctx context.Context, s run.Scope, generator role.Generator, model string, in role.GenerateInput) (role.Draft, error) {
	step := run.Step{Name: "generate", Kind: assay.StepGenerate, Model: model}
	return run.Group(ctx, s, step, in, func(ctx context.Context, s run.Scope, in role.GenerateInput) (role.Draft, error) {
		d, err := generator.Generate(ctx, e.caller(s, answerShare), in)
		if role.Ends(ctx, err) {
			return role.Draft{}, err
		}
		if err != nil {
			d = role.Draft{Statements: []role.Statement{}, Outcome: role.Outcome{Failure: err.Error()}}
		}
		for i, st := range d.Statements {
			if !slices.Contains(e.Sections, st.Section) {
				d.Statements[i].Section = ""
			}
		}
		return d, nil
	})
}
