// Package judged tells from the journal of a run what became of the claims that were
// drafted in it. A claim that a verifier refused may be judged again: as a part of its whole
// sentence, by evidence that it does not cite, by what was searched for it. That is no
// further claim, but a later word on the same one.
package judged

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/assay-rag/assay"
)

// The scopes of a finish in which more is judged than what was first drafted in it.
const (
	Again     = "again"     // another draft, by a model that was told what did not stand
	Quoted    = "quoted"    // quotations, where nothing of what a model wrote stands
	Sentences = "sentences" // whole sentences of which a part was refused
	Repair    = "repair"    // holds Elsewhere and Opposed
	Elsewhere = "elsewhere" // claims by the evidence that they do not cite
	Opposed   = "opposed"   // sentences of the evidence that speak against a repaired claim
	Sought    = "sought"    // claims by what was searched for them
)

// RepairScore is the score from which on a source says what nobody named it for.
const RepairScore = 0.7

// A Step is a step of kind verify that has ended without an error, with its claims and its
// judgements as JSON.
type Step struct {
	Path          string
	Input, Output json.RawMessage
}

// A Claim is one that was drafted: where it was judged first, as the index of a step and
// that of the claim in it, and the last word on it.
type Claim struct {
	Step, At int
	Verdict  assay.Verdict
}

// Claims returns the claims of a run whose steps are given in their order, each once: of
// each finish those of the draft of which more stands, the first one of two that are equal.
// Quotations that stand in for a draft are none of it, unless nothing else was judged. The
// sentences of the evidence that were judged beside the claims for speaking against them
// count with them. A claim that a later finish drafts again in the same words is one, and the
// later word on it is the last.
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
	known := map[string]int{} // index in all, by what it says
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

// A finish is one drafting of an answer: the claims of its drafts by their scope, "" the
// first.
type finish struct{ drafts map[string][]claim }

// A claim is what the journal holds of one.
type claim struct {
	Claim
	Text  string
	Said  string
	Score float64
}

// words are what a claim says, and how it reads by itself.
func (c claim) words() string { return c.Text + "\x00" + c.Said }

// take takes up a step that judged claims of the draft under a scope of f, for the first
// time or, with a kind, again.
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

// scopesOf cuts the path of a step into the finish that it is of, the scope of the draft in
// it ("": the first) and what was judged there again ("": the draft itself).
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

// IsSought reports whether the step of that path is one that deals with what was searched for
// claims after they were drafted.
func IsSought(p string) bool {
	name, _, _ := strings.Cut(path.Base(path.Dir(p)), "[")
	return name == Sought
}

// read returns the claims of a step; the words of one that cannot be read are unknown.
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
