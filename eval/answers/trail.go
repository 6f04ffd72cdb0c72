package answers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/judged"
	"github.com/assay-rag/assay/role"
)

// A trail is the path of a run to its answer, as recorded in its journal.
type trail struct {
	searches [][]assay.Hit // the hits of each search, in order
	paths    []string      // of the steps of searches
	grades   []graded
	handed   []assay.Evidence // given to the generator for its last draft
	sought   []assay.Evidence // found since then for claims that handed does not support
	wrote    bool             // the generator was called
	drafts   []role.Draft
	checked  []checked
}

// evidence returns all passages that the answer could cite.
func (t trail) evidence() []assay.Evidence { return slices.Concat(t.handed, t.sought) }

// graded lists the chunks that a grader was shown and those that it found relevant.
type graded struct {
	shown, relevant []string
}

// checked is a claim of a draft as first given to the verifier, with its final verdict (see
// judged.Claims).
type checked struct {
	claim     role.Claim
	judgement ground.Judgement
}

// trailOf reads a journal. It ignores failed steps, except those of the generator.
func trailOf(steps []engine.Step) (trail, error) {
	var t trail
	var verified []engine.Step
	for _, s := range inOrder(steps) {
		var err error
		switch {
		case s.Error != nil && s.Kind != assay.StepGenerate:
		case s.Kind == assay.StepSearch:
			err = t.search(s)
		case s.Kind == assay.StepGrade:
			err = t.grade(s)
		case s.Kind == assay.StepGenerate:
			err = t.generate(s)
		case s.Kind == assay.StepRead:
			err = t.read(s)
		case s.Kind == assay.StepVerify:
			verified = append(verified, s)
		}
		if err != nil {
			return t, fmt.Errorf("step %s: %w: %w", s.Path, assay.ErrDamaged, err)
		}
	}
	return t, t.verify(verified)
}

// inOrder sorts the steps as if none had run concurrently. The journal has them in the order in
// which they ended, which varies between runs. Of steps like sub[0]/… and sub[1]/…, those with the
// lower number come first.
func inOrder(steps []engine.Step) []engine.Step {
	first := map[string]int{} // ordinal of the first step with a name, ignoring its number
	named := func(parts []string, i int) (name string, number int) {
		name, in, _ := strings.Cut(parts[i], "[")
		number, _ = strconv.Atoi(strings.TrimSuffix(in, "]")) // 0 if it has none
		return strings.Join(parts[:i], "/") + "/" + name, number
	}
	for _, s := range steps {
		parts := strings.Split(s.Path, "/")
		for i := range parts {
			name, _ := named(parts, i)
			if _, known := first[name]; !known {
				first[name] = s.Ordinal
			}
		}
	}
	sorted := slices.Clone(steps)
	slices.SortStableFunc(sorted, func(a, b engine.Step) int {
		x, y := strings.Split(a.Path, "/"), strings.Split(b.Path, "/")
		for i := range min(len(x), len(y)) {
			if x[i] == y[i] {
				continue
			}
			nameX, m := named(x, i)
			nameY, n := named(y, i)
			return cmp.Or(cmp.Compare(first[nameX], first[nameY]), cmp.Compare(m, n))
		}
		return cmp.Compare(a.Ordinal, b.Ordinal)
	})
	return sorted
}

func (t *trail) search(s engine.Step) error {
	var found assay.Results
	err := json.Unmarshal(s.Output, &found)
	t.searches, t.paths = append(t.searches, found.Hits), append(t.paths, s.Path)
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
	t.wrote, t.handed, t.sought = true, in.Evidence, nil
	if s.Error != nil {
		return nil
	}
	var draft role.Draft
	err := json.Unmarshal(s.Output, &draft)
	t.drafts = append(t.drafts, draft)
	return err
}

// read records the passages that were found for claims after the generator wrote. The step reads
// the passages that the generator was given, followed by results of the searches. A step that does
// not begin with the former belongs to another draft and is ignored.
func (t *trail) read(s engine.Step) error {
	if !judged.IsSought(s.Path) {
		return nil
	}
	var spans []struct {
		Document string
		Version  string
		Start    int
		End      int
	}
	if err := json.Unmarshal(s.Input, &spans); err != nil {
		return err
	}
	var sought []assay.Evidence
	for i, sp := range spans {
		is := func(h assay.Hit) bool {
			c := h.Chunk
			return c.Document == sp.Document && c.Version == sp.Version && c.Start == sp.Start && c.End == sp.End
		}
		if i < len(t.handed) {
			if h := t.handed[i].Hit; h.Origin == assay.FromDocuments && !is(h) {
				return nil
			}
			continue
		}
		for _, found := range t.searches {
			if at := slices.IndexFunc(found, is); at >= 0 {
				sought = append(sought, assay.Evidence{Number: i + 1, Hit: found[at]})
				break
			}
		}
	}
	if len(spans) >= len(t.handed) {
		t.sought = sought
	}
	return nil
}

// verify records each claim that the steps judged, once.
func (t *trail) verify(steps []engine.Step) error {
	claims := make([][]role.Claim, len(steps))
	judgements := make([][]ground.Judgement, len(steps))
	in := make([]judged.Step, len(steps))
	for i, s := range steps {
		err := json.Unmarshal(s.Input, &claims[i])
		if err == nil {
			err = json.Unmarshal(s.Output, &judgements[i])
		}
		if err == nil && len(claims[i]) != len(judgements[i]) {
			err = fmt.Errorf("%d judgements of %d claims", len(judgements[i]), len(claims[i]))
		}
		if err != nil {
			return fmt.Errorf("step %s: %w: %w", s.Path, assay.ErrDamaged, err)
		}
		in[i] = judged.Step{Path: s.Path, Input: s.Input, Output: s.Output}
	}
	for _, c := range judged.Claims(in) {
		j := judgements[c.Step][c.At]
		j.Verdict = c.Verdict
		t.checked = append(t.checked, checked{claims[c.Step][c.At], j})
	}
	return nil
}

// ranked returns the hits of all searches, each chunk once. They are ordered by their best rank in
// any search; for equal ranks the earlier search comes first.
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

// taken reports whether a grader found a chunk relevant.
func (t trail) taken(chunk string) bool {
	return slices.ContainsFunc(t.grades, func(g graded) bool { return slices.Contains(g.relevant, chunk) })
}
