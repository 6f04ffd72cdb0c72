package local

import (
	"context"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
)

// Summariser picks sentences of the evidence, verbatim, each citing where it stands:
// those that speak of the question, the best first; without a question the first
// sentence of each piece. It writes nothing of its own.
type Summariser struct{}

// maxSummary is how many sentences a summary has at most.
const maxSummary = 8

// Summarise implements role.Summariser. It returns an error only when ctx has ended.
func (Summariser) Summarise(ctx context.Context, _ role.Caller, in role.Reading) (role.Summary, error) {
	if err := ctx.Err(); err != nil {
		return role.Summary{}, err
	}
	out := role.Summary{Statements: []role.Statement{}}
	if in.Question == "" {
		out.Statements = append(out.Statements, leads(in.Evidence, maxSummary)...)
		return out, nil
	}
	for _, s := range saying(read(in.Question, nil), in.Evidence) {
		if len(out.Statements) < maxSummary {
			out.Statements = append(out.Statements, role.Statement{Text: s.text, Evidence: []int{s.number}})
		}
	}
	return out, nil
}

// leads returns the first sentence of each piece of evidence, each once, at most most.
func leads(evidence []assay.Evidence, most int) []role.Statement {
	var out []role.Statement
	for _, ev := range evidence {
		us := units(ev.Hit)
		i := slices.IndexFunc(us, func(u unit) bool { return u.kind == prose || u.kind == item })
		if i < 0 {
			continue // code and labels say nothing in short
		}
		same := func(s role.Statement) bool { return s.Text == us[i].text }
		if len(out) < most && !slices.ContainsFunc(out, same) {
			out = append(out, role.Statement{Text: us[i].text, Evidence: []int{ev.Number}})
		}
	}
	return out
}
