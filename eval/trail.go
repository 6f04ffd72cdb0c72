package eval

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

// A trail is what the journal of a run says of the way to its answer.
type trail struct {
	searches [][]assay.Hit // of each search what it brought, in its order
	grades   []graded
	handed   []assay.Evidence // to the generator, the last time that it wrote
	sought   []assay.Evidence // what was searched since then for claims that this does not say
	wrote    bool             // the generator was asked
	drafts   []role.Draft
	checked  []checked
}

// evidence is all that the answer could cite.
func (t trail) evidence() []assay.Evidence { return slices.Concat(t.handed, t.sought) }

// Graded is what a grader was shown, and what of it is relevant to it, by chunk.
type graded struct {
	shown, relevant []string
}

// Checked is a claim of a draft, as the verifier was first asked about it, with its last
// word (see judged.Claims).
type checked struct {
	claim     role.Claim
	judgement ground.Judgement
}

// trailOf reads a journal. Steps that failed have brought nothing.
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

// inOrder returns steps as if none had been taken side by side: the journal has those in
// the order in which they ended, which is another one each time. Of steps like sub[0]/… and
// sub[1]/… those of the lower number come first.
func inOrder(steps []engine.Step) []engine.Step {
	first := map[string]int{} // ordinal of the first step under a name, whatever its number
	named := func(parts []string, i int) (name string, number int) {
		name, in, _ := strings.Cut(parts[i], "[")
		number, _ = strconv.Atoi(strings.TrimSuffix(in, "]")) // 0: it has none
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
	t.wrote, t.handed, t.sought = true, in.Evidence, nil
	if s.Error != nil {
		return nil
	}
	var draft role.Draft
	err := json.Unmarshal(s.Output, &draft)
	t.drafts = append(t.drafts, draft)
	return err
}

// read takes up what was searched for claims after the generator wrote: the passages that
// are read for them are those that it was handed, and behind them what the searches brought.
// A step that does not begin with these is of another draft than the last one.
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

// verify takes up the claims that steps have judged, each once.
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
