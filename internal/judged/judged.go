// Package judged determines from the journal of a run the final verdicts on its drafted claims. A
// claim that a verifier rejected may be judged again: as part of its whole sentence, by evidence
// that it does not cite, or by the results of a search for it. This does not add a claim, but
// replaces the verdict on the first one.
package judged

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/assay-rag/assay"
)

// The scopes of a finish in which claims are judged after its first draft.
const (
	Again     = "again"     // another draft, by a model that was told the rejected claims
	Quoted    = "quoted"    // quotations, if no claim of a model's draft is supported
	Sentences = "sentences" // whole sentences of which a part was rejected
	Repair    = "repair"    // holds Elsewhere and Opposed
	Elsewhere = "elsewhere" // claims against evidence that they do not cite
	Opposed   = "opposed"   // sentences of the evidence that contradict a repaired claim
	Sought    = "sought"    // claims against the results of a search for them
)

// RepairScore is the least score at which evidence that was not cited supports a claim.
const RepairScore = 0.7

// A Step is a successful step of kind verify, with its claims and its judgements as JSON.
type Step struct {
	Path          string
	Input, Output json.RawMessage
}

// A Claim is a drafted claim with its final verdict. Step and At are the indexes of the step that
// first judged it and of the claim in that step.
type Claim struct {
	Step, At int
	Verdict  assay.Verdict
}

// Claims returns the distinct claims of a run, given its steps in order. Of each finish it takes
// the draft with the most supported claims, or the first of equal ones. Quotations that replace a
// draft do not count, unless nothing else was judged. Sentences of the evidence that were judged
// for contradicting claims count with the claims. If a later finish drafts a claim again in the
// same words, it counts once, with the later verdict.
func Claims(steps []Step) []Claim {
	var order []string
	finishes := map[string]*finish{}
	for i, s := range steps {
		at, under, kind := scopesOf(s.Path)
		f := finishes[at]
		if f == nil {
			f = &finish{drafts: map[string][]claim{}}
			finishes[at], order = f, append(order, at)
		}
		f.take(i, s, under, kind)
	}
	var all []claim
	known := map[string]int{} // index in all, by the claim's words
	for _, at := range order {
		for _, c := range finishes[at].standing() {
			k, again := known[c.words()]
			if again && c.Text != "" {
				all[k].Verdict = c.Verdict
				continue
			}
			known[c.words()] = len(all)
			all = append(all, c)
		}
	}
	out := make([]Claim, len(all))
	for i, c := range all {
		out[i] = c.Claim
	}
	return out
}

// A finish is one drafting of an answer. It holds the claims of its drafts by scope, with "" for
// the first.
type finish struct{ drafts map[string][]claim }

// A claim is a claim as recorded in the journal.
type claim struct {
	Claim
	Text  string
	Said  string
	Score float64
}

// words returns the text of a claim with its self-contained form.
func (c claim) words() string { return c.Text + "\x00" + c.Said }

// take adds a step that judged claims of the draft under a scope of f, for the first time or, with
// a kind, again.
func (f *finish) take(i int, s Step, under, kind string) {
	claims := read(i, s)
	if kind == "" {
		f.drafts[under] = append(f.drafts[under], claims...)
		return
	}
	for _, c := range claims {
		if c.Verdict != assay.Supported || kind == Opposed || kind != Sentences && c.Score < RepairScore {
			continue
		}
		for scope, draft := range f.drafts {
			if scope != under && kind != Sought {
				continue
			}
			for k, d := range draft {
				same := d.words() == c.words() || kind == Sentences && strings.Contains(c.Text, d.Text)
				if same && d.Text != "" && d.Verdict != assay.Supported {
					draft[k].Verdict = assay.Supported
				}
			}
		}
	}
}

// standing returns the claims of the draft that counts.
func (f *finish) standing() []claim {
	stand := func(draft []claim) int {
		n := 0
		for _, c := range draft {
			if c.Verdict == assay.Supported {
				n++
			}
		}
		return n
	}
	best := f.drafts[""]
	if again := f.drafts[Again]; len(best) == 0 || stand(again) > stand(best) {
		best = again
	}
	if len(best) == 0 {
		best = f.drafts[Quoted]
	}
	return best
}

// scopesOf splits the path of a step into its finish, the scope of the draft in it ("": the first)
// and the kind of the repeated judgement ("": the draft itself).
func scopesOf(p string) (finish, draft, kind string) {
	at := path.Dir(p)
	last := func() string {
		name, _, _ := strings.Cut(path.Base(at), "[")
		return name
	}
	switch name := last(); name {
	case Sentences, Sought:
		at, kind = path.Dir(at), name
	case Elsewhere, Opposed:
		at, kind = path.Dir(path.Dir(at)), name
	}
	if name := last(); name == Again || name == Quoted {
		at, draft = path.Dir(at), name
	}
	return at, draft, kind
}

// IsSought reports whether the step with that path handles the results of a search for claims after
// they were drafted.
func IsSought(p string) bool {
	name, _, _ := strings.Cut(path.Base(path.Dir(p)), "[")
	return name == Sought
}

// read returns the claims of a step. The words of an unreadable one are unknown.
func read(i int, s Step) []claim {
	var in []struct {
		Text string `json:"claim"`
		Said string `json:"said"`
	}
	var out []struct {
		Verdict assay.Verdict `json:"verdict"`
		Score   float64       `json:"score"`
	}
	_ = json.Unmarshal(s.Output, &out)
	if json.Unmarshal(s.Input, &in) != nil || len(in) != len(out) {
		in = nil
	}
	claims := make([]claim, len(out))
	for at, j := range out {
		claims[at] = claim{Claim: Claim{Step: i, At: at, Verdict: j.Verdict}, Score: j.Score}
		if in != nil {
			claims[at].Text, claims[at].Said = in[at].Text, in[at].Said
		}
	}
	return claims
}
