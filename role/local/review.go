package local

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/role"
)

// A review is what judge and critic see of a draft.
type review struct {
	covering
	unsupported  []flawed // statements that their own evidence does not say
	contradicted []flawed
	offTopic     []int // statements, by index, that share no word with the question
	unclear      []int // that cannot be read by themselves
}

// A flawed is a statement, by index, and what is wrong with it.
type flawed struct {
	statement int
	reason    string
}

// reviewed looks at a draft: each statement against its own evidence, by the local
// verifier, and all of them against the question.
func reviewed(ctx context.Context, in role.DraftInput) (review, error) {
	q := read(in.Question, nil)
	var r review
	var texts []string
	for i, st := range in.Draft.Statements {
		var cited []ground.Passage
		text, language := st.Text, ""
		for _, ev := range in.Evidence {
			if slices.Contains(st.Evidence, ev.Number) {
				cited = append(cited, ground.Passage{Quote: ev.Hit.Text, Context: ev.Hit.Text, Heading: append([]string{ev.Hit.Title}, ev.Hit.Chunk.Headings...)})
				text, language = under(ev.Hit, text), ev.Hit.Language
			}
		}
		texts = append(texts, text)
		j, err := ground.Local{}.Verify(ctx, st.Text, cited)
		if err != nil {
			return review{}, err
		}
		switch j.Verdict {
		case assay.Unsupported:
			r.unsupported = append(r.unsupported, flawed{i, j.Reason})
		case assay.Contradicted:
			r.contradicted = append(r.contradicted, flawed{i, j.Reason})
		}
		if q.coverage(stems(language, text)) == 0 {
			r.offTopic = append(r.offTopic, i)
		}
		if leaning.MatchString(st.Text) && i == 0 {
			r.unclear = append(r.unclear, i)
		}
	}
	r.covering = covered(q, texts)
	return r, nil
}

// Judge accepts a draft when the local verifier finds each statement in its own evidence,
// together they speak of every name and number of the question, of half of the weight of
// its words and of what its question word asks for, and a critic, where there is one,
// finds it neither ungrounded nor incomplete nor off the point. What it accepts may still
// be wrong: it reads words.
type Judge struct{}

// Judge implements role.Judge. It returns an error only when ctx has ended.
func (Judge) Judge(ctx context.Context, _ role.Caller, in role.DraftInput) (role.Judgement, error) {
	if err := ctx.Err(); err != nil {
		return role.Judgement{}, err
	}
	r, err := reviewed(ctx, in)
	if err != nil {
		return role.Judgement{}, err
	}
	out := role.Judgement{Verdict: role.Accept, Revise: []string{}}
	if len(in.Draft.Statements) == 0 {
		out.Revise = append(out.Revise, "the draft says nothing")
	} else {
		out.Revise = append(r.faults(), poor(in.Critique)...)
	}
	if len(out.Revise) > 0 {
		out.Verdict, out.Reason = role.Revise, out.Revise[0]
		return out, nil
	}
	out.Reason = fmt.Sprintf("every statement is found in its evidence, and they speak of %.0f%% of the question", 100*r.share)
	return out, nil
}

// faults lists why a draft may not go out; none: it may.
func (r review) faults() []string {
	out := []string{}
	for _, f := range slices.Concat(r.contradicted, r.unsupported) {
		out = append(out, fmt.Sprintf("statement %d is not what its evidence says: %s", f.statement+1, f.reason))
	}
	if len(r.names) > 0 {
		out = append(out, "no statement speaks of "+strings.Join(r.names, ", "))
	}
	if r.lacks != anything {
		out = append(out, fmt.Sprintf("the question asks for %s, and no statement has one", r.lacks))
	}
	if r.share < minCoverage && len(r.names) == 0 {
		out = append(out, "no statement speaks of "+strings.Join(r.missing, ", "))
	}
	return out
}

// poor lists what a critic says of what it finds poor; of one that finds nothing poor
// nothing, for a judge lets through what is fair.
func poor(k *role.Critique) []string {
	if k == nil || k.Grounded != role.Poor && k.Complete != role.Poor && k.Relevant != role.Poor {
		return nil
	}
	var out []string
	for _, r := range k.Remarks {
		if !slices.Contains(out, r.Advice) && r.Advice != "" {
			out = append(out, r.Advice)
		}
	}
	if len(out) == 0 {
		out = append(out, "the critic finds it poor and does not say why")
	}
	return out
}

// Critic rates a draft by what Judge goes by: grounded by the share of statements that
// the local verifier finds in their evidence, complete by the share of the question that
// they speak of, relevant by how many share a word with it, clear by whether the draft
// begins with a sentence that needs another one before it.
type Critic struct{}

// Criticise implements role.Critic. It returns an error only when ctx has ended.
func (Critic) Criticise(ctx context.Context, _ role.Caller, in role.DraftInput) (role.Critique, error) {
	if err := ctx.Err(); err != nil {
		return role.Critique{}, err
	}
	r, err := reviewed(ctx, in)
	if err != nil {
		return role.Critique{}, err
	}
	n := len(in.Draft.Statements)
	out := role.Critique{
		Grounded: rated(n-len(r.unsupported)-2*len(r.contradicted), n),
		Complete: role.Poor,
		Relevant: rated(n-len(r.offTopic), n),
		Clear:    rated(n-len(r.unclear), n),
		Remarks:  []role.Remark{},
	}
	switch {
	case n == 0 || len(r.names) > 0 || r.share < minCoverage:
	case r.lacks != anything || r.share < role.DefaultThreshold:
		out.Complete = role.Fair
	default:
		out.Complete = role.Good
	}
	remark := func(statement int, flaw role.Flaw, advice string) {
		out.Remarks = append(out.Remarks, role.Remark{Statement: statement, Flaw: flaw, Advice: advice})
	}
	for _, f := range r.contradicted {
		remark(f.statement, role.FlawContradicted, "say what the evidence says: "+f.reason)
	}
	for _, f := range r.unsupported {
		remark(f.statement, role.FlawUnsupported, "say it in the evidence's words, or leave it out: "+f.reason)
	}
	for _, missing := range r.missing {
		remark(-1, role.FlawMissing, "say something about "+missing)
	}
	if r.lacks != anything {
		remark(-1, role.FlawMissing, "the question asks for "+string(r.lacks))
	}
	for _, i := range r.offTopic {
		remark(i, role.FlawOffTopic, "leave it out: it has no word of the question")
	}
	for _, i := range r.unclear {
		remark(i, role.FlawUnclear, "say what it is about: it goes on from a sentence that is not there")
	}
	return out, nil
}

// rated rates how many of all are right: all good, half fair.
func rated(right, all int) role.Rating {
	switch {
	case all > 0 && right == all:
		return role.Good
	case 2*right >= all && all > 0:
		return role.Fair
	}
	return role.Poor
}
