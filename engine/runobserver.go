package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/strategy"
)

// runObserver collects, from the steps of a run or its replay, what the answer reports about the
// run itself: its active time and which model did each role's jobs.
type runObserver struct {
	active  time.Duration
	calls   map[string][]run.Event // finished model calls by the path of their job
	uses    map[use]assay.Usage
	served  map[string][]string // models that did each role; "": local
	observe func(run.Event)     // also receives each event; may be nil
}

// A use is a role's model and its prompt.
type use struct{ role, model, prompt string }

func (w *runObserver) stepEvent(ev run.Event) {
	// Time after the last step is not counted, so that a replay reports the same time.
	w.active = max(w.active, ev.Active)
	if ev.Phase == run.StepEnd {
		w.stepEnded(ev)
	}
	if w.observe != nil {
		w.observe(ev)
	}
}

// jobOf returns the path of the job that the model call at path belongs to; empty: no job.
func jobOf(path string) string {
	i := strings.LastIndex(path, "/call[")
	return path[:max(i, 0)]
}

// roleOf returns the role of the step at a path; empty: no role.
func roleOf(kind assay.StepKind, at string) string {
	switch kind {
	case assay.StepRole:
		return role.Of(path.Base(at))
	case assay.StepPlan:
		return role.PlannerRole
	case assay.StepGrade:
		return role.GraderRole
	case assay.StepGenerate:
		return role.GeneratorRole
	case assay.StepVerify:
		return role.VerifierRole
	}
	return ""
}

// stepEnded records a step that has ended. The calls of a job end before the job.
func (w *runObserver) stepEnded(ev run.Event) {
	if job := jobOf(ev.Path); ev.Kind == assay.StepModel && job != "" {
		if w.calls == nil {
			w.calls = map[string][]run.Event{}
		}
		w.calls[job] = append(w.calls[job], ev)
		return
	}
	if w.uses == nil {
		w.uses, w.served = map[use]assay.Usage{}, map[string][]string{}
	}
	if ev.Kind == assay.StepSearch && ev.Model != "" && ev.Usage.Calls > 0 {
		u, spent := use{role: assay.SearchRole, model: ev.Model}, ev.Usage
		spent.Searches = 0
		w.uses[u] = w.uses[u].Add(spent)
	}
	if ev.Kind == assay.StepModel && path.Base(ev.Path) == managedStep {
		u := use{role: assay.ManagedRole, model: ev.Model}
		w.uses[u] = w.uses[u].Add(ev.Usage)
	}
	name := roleOf(ev.Kind, ev.Path)
	if name == "" {
		return
	}
	if path.Base(ev.Path) == role.AnswerGraderTask && len(w.calls[ev.Path]) == 0 {
		return // every answer is graded locally
	}
	quoted := strategy.Quoted(ev.Path) // quotations are always local
	if !quoted && !slices.Contains(w.served[name], ev.Model) {
		w.served[name] = append(w.served[name], ev.Model)
	}
	calls := w.calls[ev.Path]
	for _, call := range calls {
		u := use{role: name, model: call.Model, prompt: callOf(call.Input).Prompt}
		w.uses[u] = w.uses[u].Add(call.Usage)
	}
	if ev.Model == "" || ev.Err == nil && stoodIn(ev, calls) {
		u := use{role: name, model: assay.LocalModel}
		w.uses[u] = w.uses[u].Add(assay.Usage{})
	}
}

// stoodIn reports whether the local role completed a job whose last model call failed.
func stoodIn(job run.Event, calls []run.Event) bool {
	if len(calls) == 0 || calls[len(calls)-1].Err == nil || job.Kind == assay.StepVerify {
		return false
	}
	outcome := decode[role.Outcome](job.Output)
	return outcome != nil && outcome.Failure == ""
}

// A modelCall is the recorded input of a model call (see role.Call).
type modelCall struct {
	Role   string `json:"role"`
	Prompt string `json:"prompt"`
}

// template returns the name of the call's prompt template. It is empty for a verifier that is a
// service.
func (c modelCall) template() string {
	template, _, _ := strings.Cut(c.Prompt, "@")
	return template
}

func callOf(input json.RawMessage) modelCall {
	if c := decode[modelCall](input); c != nil {
		return *c
	}
	return modelCall{}
}

// complete adds the collected data to the answer of a run that began with req.
func (w *runObserver) complete(a *assay.Answer, req storedRequest) {
	a.ElapsedMS = w.active.Milliseconds()
	order := func(u use) int {
		return slices.Index(append(slices.Clone(roleNames), assay.SearchRole), u.role)
	}
	for _, u := range slices.SortedFunc(maps.Keys(w.uses), func(a, b use) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a.model, b.model), cmp.Compare(a.prompt, b.prompt))
	}) {
		a.Roles = append(a.Roles, assay.RoleUse{Role: u.role, Model: u.model, Prompt: u.prompt, Usage: w.uses[u]})
	}
	for _, name := range roleNames {
		var others []string
		for _, model := range w.served[name] {
			bySmall := name == role.GeneratorRole && model != "" && model == req.Models[strategy.SmallGenerator]
			ofStandIn := name == role.VerifierRole && model == "" && w.wroteLocally() // no model judges quotations
			inherited := req.ForkedFrom.did(name, model)
			if model != req.Models[name] && !bySmall && !ofStandIn && !inherited {
				others = append(others, cmp.Or(model, assay.LocalModel))
			}
		}
		if slices.Sort(others); len(others) > 0 {
			began := cmp.Or(req.Models[name], assay.LocalModel)
			text := fmt.Sprintf("%s: %s when the run began, %s when it was resumed", name, began, strings.Join(others, ", "))
			a.Notes = append(a.Notes, assay.Note{Kind: assay.NoteRole, Text: text})
		}
	}
}

// wroteLocally reports whether the local generator wrote a draft.
func (w *runObserver) wroteLocally() bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(w.uses)), func(u use) bool {
		return u.role == role.GeneratorRole && u.model == assay.LocalModel
	})
}

// checkInterrupted returns assay.ErrInvalid if a run was interrupted in the middle of a job whose
// model or prompt has changed since. The inputs of its calls would differ from those in the
// journal.
func checkInterrupted(records []assay.Record, models Models) error {
	finished := map[string]bool{}
	for _, rec := range records {
		finished[rec.Path] = true
	}
	now := models.named()
	for _, rec := range records {
		job := jobOf(rec.Path)
		if rec.Kind != assay.StepModel || job == "" || finished[job] {
			continue
		}
		call := callOf(rec.Input)
		name := cmp.Or(call.Role, role.VerifierRole) // verifier services have no prompt
		bySmall := name == role.GeneratorRole && rec.Model == now[strategy.SmallGenerator]
		if today := cmp.Or(now[name], assay.LocalModel); today != rec.Model && !bySmall {
			return fmt.Errorf("it was interrupted while %s was the %s, which is %s now; restore that configuration, or ask again: %w", rec.Model, name, today, assay.ErrInvalid)
		}
		if today := models.prompted(name, call.template()); today != call.Prompt {
			return fmt.Errorf("it was interrupted while the %s was asked with the prompt %s, which is %s now; ask again: %w", name, call.Prompt, today, assay.ErrInvalid)
		}
	}
	return nil
}
