package strategy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/judged"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// A checkedDraft is a draft with the verdicts on its claims.
type checkedDraft struct {
	from       string // the generator's input, as JSON
	draft      role.Draft
	checked    []checkedClaim
	unusable   []int // the draft's statements, by index, that could not be shown
	evidence   []assay.Evidence
	passages   []passage         // of the evidence
	conflicts  []ground.Conflict // found in the evidence, about the question
	readable   bool              // the evidence has bytes to cite
	byModel    bool              // a model wrote it, not the local generator
	quoted     bool              // it consists of sentences of the passages
	notes      noteList          // about statements that could not be shown
	unfinished error             // why there was no room for another draft when no claim stands
	ended      assay.Stop        // budget that ran out while claims were judged again
}

// supported returns the claims with the verdict Supported.
func (w checkedDraft) supported() []checkedClaim {
	claims := slices.DeleteFunc(slices.Clone(w.checked), func(c checkedClaim) bool { return c.Verdict != assay.Supported })
	for i := range claims { // an item stays an item even if its beginning was refused
		first := i == 0 || claims[i-1].statement != claims[i].statement
		claims[i].Item = first && w.isItem(claims[i].statement)
	}
	return claims
}

func (w checkedDraft) isItem(statement int) bool {
	return statement >= 0 && w.draft.Statements[statement].Item
}

// supportedCount returns the number of supported claims of the draft.
func (w checkedDraft) supportedCount() int {
	n := 0
	for _, c := range w.checked {
		if c.statement >= 0 && c.Verdict == assay.Supported {
			n++
		}
	}
	return n
}

// state returns how the draft came about.
func (w checkedDraft) state() draftState {
	switch {
	case w.draft.Failure != "":
		return draftFailed
	case len(w.checked) == 0:
		return draftEmpty
	}
	return draftWritten
}

// refused returns the claims of the draft that the verifier judged and did not support.
func (w checkedDraft) refused() []checkedClaim {
	return slices.DeleteFunc(slices.Clone(w.checked), func(c checkedClaim) bool {
		return c.statement < 0 || c.Failed || c.Verdict == assay.Supported
	})
}

// nothingSupported reports whether no claim is supported although something was drafted or the
// generator failed. A failure of the verifier does not count.
func (w checkedDraft) nothingSupported() bool {
	attempted := len(w.checked) > 0 || w.draft.Failure != ""
	return w.wasVerified() && attempted && len(w.supported()) == 0
}

// wasVerified reports whether the evidence could be read and the verifier judged every claim.
func (w checkedDraft) wasVerified() bool { return w.readable && failedCount(w.checked) == 0 }

// canImprove reports whether a part of the draft was refused or unusable, so that another draft may
// word it better.
func (w checkedDraft) canImprove() bool {
	return w.wasVerified() && w.draft.Failure == "" && len(w.refused())+len(w.unusable) > 0
}

// replaces reports whether a second draft is better than the first: it has more supported claims, or
// as many as that of a small model and no shortcoming of it.
func (w checkedDraft) replaces(first checkedDraft, bySmall bool) bool {
	if w.supportedCount() != first.supportedCount() {
		return w.supportedCount() > first.supportedCount()
	}
	return bySmall && !w.needsLargeModel()
}

// write writes and verifies a draft. If some claims of a model's draft are refused, the model is
// asked once more, with the refused claims, and the draft with more supported claims wins. A small
// model that writes simple questions hands over to the large one in that case, and also if its
// draft reports open points. If the model's replies are unusable, the passages are quoted instead.
// If the input is the same as that of last, write returns last and asks no model. If the run had no
// room for one of these steps and no claim is supported, the draft is unfinished.
func (e Env) write(ctx context.Context, s run.Scope, in role.GenerateInput, notes *noteList, last *checkedDraft) (checkedDraft, error) {
	model := e.Roles.Models[role.GeneratorRole]
	if e.writer() == "" {
		w, err := e.draft(ctx, s, e.Roles.Generator, model, e.Managed == nil, in, notes)
		w.byModel = false // even if a model resumed the run
		if err == nil {
			*last = w
		}
		return w, err
	}
	from, err := json.Marshal(in)
	if err != nil {
		return checkedDraft{}, err
	}
	if last.from == string(from) {
		return *last, nil
	}
	first, err := e.writerFor(ctx, s, in, notes, last)
	if err != nil {
		return checkedDraft{}, err
	}
	w, err := e.draft(ctx, s, first.role, first.model, false, in, notes)
	if err != nil {
		return w, err
	}
	w.byModel = !w.draft.StoodIn
	var ended error
	if w.byModel && w.canImprove() || first.small && w.needsLargeModel() {
		again := in
		again.Rejected = rejected(w)
		second, err := e.draft(ctx, s.Sub(judged.Again, 0), e.Roles.Generator, model, false, again, notes)
		second.byModel = !second.draft.StoodIn
		switch {
		case err == nil && second.replaces(w, first.small):
			w = second
		case stopOf(err) != "":
			ended = err
			what := "not all"
			if w.nothingSupported() {
				what = "nothing"
			}
			notes.say(assay.NoteLimit, fmt.Sprintf("generator: %s of what %s wrote is supported by its citations, and the run had no budget left for another draft (%s)", what, first.name, stopOf(err)))
		case err != nil:
			return w, err
		}
	}
	if w.draft.Failure != "" && w.nothingSupported() && e.Roles.Quoter != nil {
		quoted, err := e.withQuoteVerifier().draft(ctx, s.Sub(quotedScope, 0), e.Roles.Quoter, "", true, in, notes)
		switch {
		case err == nil && len(quoted.supported()) > 0:
			notes.say(assay.NoteStoodIn, "generator: "+e.writer()+" wrote nothing usable; the passages are quoted instead")
			quoted.draft.Failure = w.draft.Failure
			w = quoted
		case stopOf(err) != "":
			ended = err
		case err != nil:
			return w, err
		}
	}
	if ended != nil && w.nothingSupported() {
		w.unfinished = ended
		return w, nil
	}
	w.from = string(from)
	*last = w
	return w, nil
}

// draft lets one generator write and verifies the result. Model names the model that the generator
// asks now, for the record, or is empty. Quotes means that the generator writes quotations only, as
// the local fallback does.
func (e Env) draft(ctx context.Context, s run.Scope, generator role.Generator, model string, quotes bool, in role.GenerateInput, notes *noteList) (checkedDraft, error) {
	var w checkedDraft
	var err error
	if w.draft, err = e.generate(ctx, s, generator, model, in); err != nil {
		return w, err
	}
	w.byModel = e.writer() != "" && !quotes && !w.draft.StoodIn // a replay has no model now
	w.quoted = quotes || w.draft.StoodIn
	notes.outcome(role.GeneratorRole, w.draft.Outcome)
	w.draft.Open = questionSources(e.Question).lines(w.draft.Open)
	if w.draft.StoodIn {
		e = e.withQuoteVerifier()
	}
	err = e.check(ctx, s, &w, in.Evidence, notes)
	return w, err
}

// remarks adds notes on replaced, corrected and omitted statements.
func (w checkedDraft) remarks(said []assay.Note) []assay.Note {
	all := noteList{texts: slices.Clone(said)}
	all.join(w.notes)
	repaired, quoted := 0, 0
	for _, c := range w.supported() {
		if c.repaired {
			repaired++
		}
		if c.quoted {
			quoted++
		}
	}
	if quoted > 0 {
		all.say(assay.NoteCorrected, fmt.Sprintf("verifier: %s refused and replaced by the source's own sentence", count(quoted, "statement was", "statements were")))
	}
	if repaired > 0 {
		all.say(assay.NoteCorrected, fmt.Sprintf("verifier: %s other evidence than the generator cited", count(repaired, "statement cites", "statements cite")))
	}
	if text := w.leftOut(); text != "" {
		all.say(assay.NoteLeftOut, text)
	}
	return all.texts
}

// dropped returns the claims of a model that are neither shown nor replaced.
func (w checkedDraft) dropped() []checkedClaim {
	if !w.byModel {
		return nil
	}
	return slices.DeleteFunc(w.refused(), func(c checkedClaim) bool { return c.replaced })
}

// droppedGaps returns a gap for each dropped claim, in the model's words.
func (w checkedDraft) droppedGaps() []assay.Gap {
	var gaps []assay.Gap
	for _, c := range w.dropped() {
		gaps = append(gaps, assay.Gap{Text: "a statement that its sources do not support: " + sources{}.line(c.Text), ByModel: true})
	}
	return gaps
}

// leftOut returns a note with the number of statements that are not shown and the reasons, or "" if
// all are shown.
func (w checkedDraft) leftOut() string {
	refused, failed, all := len(w.refused()), 0, len(w.unusable)
	for _, c := range w.checked {
		if c.statement >= 0 {
			all++
			if c.Failed {
				failed++
			}
		}
	}
	var why []string
	for _, r := range []struct {
		n         int
		one, many string
	}{
		{refused, "because its citation does not support it", "because their citations do not support them"},
		{failed, "because the verifier failed", "because the verifier failed"},
		{len(w.unusable), "because it cannot be shown as it is", "because they cannot be shown as they are"},
	} {
		switch r.n {
		case 0:
		case 1:
			why = append(why, "1 "+r.one)
		default:
			why = append(why, strconv.Itoa(r.n)+" "+r.many)
		}
	}
	n := refused + failed + len(w.unusable)
	switch len(why) {
	case 0:
		return ""
	case 1:
		_, reason, _ := strings.Cut(why[0], " ")
		return fmt.Sprintf("left out: %d of %s, %s", n, count(all, "statement", "statements"), reason)
	}
	return fmt.Sprintf("left out: %d of %s: %s", n, count(all, "statement", "statements"), strings.Join(why, ", "))
}

// leavesOutMember reports whether an item of a list, a row of a table or a side of a conflict was
// left out, so that the rest looks complete but is not.
func (w checkedDraft) leavesOutMember() bool {
	out := slices.Clone(w.unusable)
	for _, c := range w.checked {
		if c.statement >= 0 && c.Verdict != assay.Supported {
			out = append(out, c.statement)
		}
	}
	return w.draft.Torn || slices.ContainsFunc(out, func(i int) bool {
		return w.isItem(i) || w.draft.Statements[i].Cells != nil || slices.ContainsFunc(w.draft.Conflicts, func(pair [2]int) bool { return i == pair[0] || i == pair[1] })
	})
}

// quotedScope is the scope in which the local generator replaces a model.
const quotedScope = judged.Quoted

// Quoted reports whether a step path is one of the local generator replacing the model that the run
// began with.
func Quoted(path string) bool { return strings.Contains(path, quotedScope+"[") }

// maxRejected is the maximum number of rejected statements that a generator is given.
const maxRejected = 12

// rejected returns the refused claims and the unusable statements of a draft, for another attempt.
func rejected(w checkedDraft) []role.Rejected {
	var list []role.Rejected
	for _, c := range w.refused() {
		list = append(list, role.Rejected{Text: c.Text, Reason: c.Reason})
	}
	for _, i := range w.unusable {
		list = append(list, role.Rejected{Text: w.draft.Statements[i].Text, Reason: "it has a link, an image or markup that is not of its sources, or does not fit the table's columns"})
	}
	return list[:min(len(list), maxRejected)]
}

// generate asks a generator; model names the model it uses. If the generator fails, the draft is
// empty and records the failure.
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
