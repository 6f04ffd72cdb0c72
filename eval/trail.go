package eval

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/role"
)

// A trail is what the journal of a run says of the way to its answer.
type trail struct {
	searches [][]assay.Hit // of each search what it brought, in its order
	grades   []graded
	handed   []assay.Evidence // to the generator, the last time that it wrote
	wrote    bool             // the generator was asked
	drafts   []role.Draft
	checked  []checked
}

// Graded is what a grader was shown, and what of it is relevant to it, by chunk.
type graded struct {
	shown, relevant []string
}

// Checked is a claim that the verifier was asked about.
type checked struct {
	claim     role.Claim
	judgement ground.Judgement
}

// trailOf reads a journal. Steps that failed have brought nothing.
func trailOf(steps []engine.Step) (trail, error) {
	var t trail
	for _, s := range steps {
		var err error
		switch {
		case s.Error != nil && s.Kind != assay.StepGenerate:
		case s.Kind == assay.StepSearch:
			err = t.search(s)
		case s.Kind == assay.StepGrade:
			err = t.grade(s)
		case s.Kind == assay.StepGenerate:
			err = t.generate(s)
		case s.Kind == assay.StepVerify:
			err = t.verify(s)
		}
		if err != nil {
			return t, fmt.Errorf("step %s: %w: %w", s.Path, assay.ErrDamaged, err)
		}
	}
	return t, nil
}

func (t *trail) search(s engine.Step) error {
	var found assay.Results
	err := json.Unmarshal(s.Output, &found)
	t.searches = append(t.searches, found.Hits)
	return err
}

func (t *trail) grade(s engine.Step) error {
	var in role.GradeInput
	var out role.Grade
	if err := json.Unmarshal(s.Input, &in); err != nil {
		return err
	}
	err := json.Unmarshal(s.Output, &out)
	g := graded{relevant: out.Relevant}
	for _, h := range in.Hits {
		g.shown = append(g.shown, h.Chunk.ID)
	}
	t.grades = append(t.grades, g)
	return err
}

func (t *trail) generate(s engine.Step) error {
	var in role.GenerateInput
	if err := json.Unmarshal(s.Input, &in); err != nil {
		return err
	}
	t.wrote, t.handed = true, in.Evidence
	if s.Error != nil {
		return nil
	}
	var draft role.Draft
	err := json.Unmarshal(s.Output, &draft)
	t.drafts = append(t.drafts, draft)
	return err
}

func (t *trail) verify(s engine.Step) error {
	var claims []role.Claim
	if err := json.Unmarshal(s.Input, &claims); err != nil {
		return err
	}
	var judgements []ground.Judgement
	if err := json.Unmarshal(s.Output, &judgements); err != nil {
		return err
	}
	for i := range min(len(claims), len(judgements)) {
		t.checked = append(t.checked, checked{claims[i], judgements[i]})
	}
	return nil
}

// ranked returns the hits of all searches, each chunk once: those first that a search
// put first, of equals those of the earlier search.
func (t trail) ranked() []assay.Hit {
	var hits []assay.Hit
	seen := map[string]bool{}
	for place, more := 0, true; more; place++ {
		more = false
		for _, found := range t.searches {
			if place >= len(found) {
				continue
			}
			more = true
			if h := found[place]; !seen[h.Chunk.ID] {
				seen[h.Chunk.ID] = true
				hits = append(hits, h)
			}
		}
	}
	return hits
}

// shown reports whether a grader was shown a chunk.
func (t trail) shown(chunk string) bool {
	return slices.ContainsFunc(t.grades, func(g graded) bool { return slices.Contains(g.shown, chunk) })
}

// taken reports whether a grader took a chunk for relevant.
func (t trail) taken(chunk string) bool {
	return slices.ContainsFunc(t.grades, func(g graded) bool { return slices.Contains(g.relevant, chunk) })
}
