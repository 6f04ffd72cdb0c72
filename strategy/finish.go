package strategy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/surface"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// finish turns findings into the answer: it mints evidence numbers, has the
// answer written, cuts it into claims, reads the cited bytes back, has each
// claim verified, keeps the supported ones and sets the status. It also returns
// the findings, by index, that were graded sufficient and of which nothing
// passed the verifier.
func (e Env) finish(ctx context.Context, s run.Scope, strategy string, found []finding) (answer assay.Answer, ungrounded []int, err error) {
	evidence, parts := e.mint(found)
	if len(evidence) == 0 {
		return notFound(strategy, e.Question, found), nil, nil
	}
	checked, err := e.write(ctx, s, parts, evidence)
	if stop := stopOf(err); stop != "" {
		for i := range found {
			found[i].stop = stop
		}
		answer = notFound(strategy, e.Question, found)
		answer.Status = assay.Incomplete
		answer.Text = "Passages were found, but the run ended before an answer was written and verified."
		return answer, nil, nil
	}
	if err != nil {
		return assay.Answer{}, nil, err
	}
	supported := slices.DeleteFunc(slices.Clone(checked), func(c checkedClaim) bool { return c.Verdict != assay.Supported })
	for i, p := range parts {
		if found[i].grade.Verdict == assay.Sufficient && !slices.ContainsFunc(supported, func(c checkedClaim) bool { return c.restsOn(p) }) {
			ungrounded = append(ungrounded, i)
		}
	}
	if len(supported) == 0 {
		answer = notFound(strategy, e.Question, found)
		if n := len(checked); n > 0 {
			answer.Justification = fmt.Sprintf("Passages were found, but none of the %d statements drafted from them is supported by what it cites.", n)
		}
		return answer, ungrounded, nil
	}
	return e.compose(strategy, found, parts, checked, supported), ungrounded, nil
}

// mint numbers what the findings accepted, each chunk once, and says which
// finding rests on which numbers.
func (e Env) mint(found []finding) (evidence []assay.Evidence, parts []role.Part) {
	number := map[string]int{}
	for _, f := range found {
		p := role.Part{Question: f.question, Terms: f.terms, Evidence: []int{}}
		for _, h := range f.accepted(e.Limits.Floor, e.Limits.Keep) {
			n, known := number[h.Chunk.ID]
			if !known {
				n = len(evidence) + 1
				number[h.Chunk.ID] = n
				evidence = append(evidence, assay.Evidence{Number: n, Hit: h})
			}
			p.Evidence = append(p.Evidence, n)
		}
		parts = append(parts, p)
	}
	return evidence, parts
}

// A checkedClaim is a claim with the words it cites and the verifier's word.
type checkedClaim struct {
	ground.Claim
	ground.Judgement
	cited []assay.Citation // without Claim, which is set when the answer is composed
}

// restsOn reports whether c cites evidence of the part.
func (c checkedClaim) restsOn(p role.Part) bool {
	return slices.ContainsFunc(c.cited, func(cit assay.Citation) bool { return slices.Contains(p.Evidence, cit.Number) })
}

// cites reports whether c cites the document.
func (c checkedClaim) cites(document string) bool {
	return slices.ContainsFunc(c.cited, func(cit assay.Citation) bool { return cit.Document == document })
}

// write has the answer drafted from the evidence, and its claims verified
// against the exact bytes that they cite.
func (e Env) write(ctx context.Context, s run.Scope, parts []role.Part, evidence []assay.Evidence) ([]checkedClaim, error) {
	draft, err := e.generate(ctx, s, role.GenerateInput{Question: e.Question, Parts: parts, Evidence: evidence})
	if err != nil {
		return nil, err
	}
	var claims []ground.Claim
	for _, st := range draft.Statements {
		for i, c := range ground.Cut(st.Text, st.Evidence) {
			c.Item = st.Item && i == 0
			claims = append(claims, c)
		}
	}
	passages, err := e.read(ctx, s, evidence)
	if err != nil {
		return nil, err
	}
	checked := make([]checkedClaim, len(claims))
	in := make([]verifyInput, len(claims))
	for i, c := range claims {
		checked[i] = checkedClaim{Claim: c}
		in[i] = verifyInput{Claim: c.Text, Cited: []ground.Passage{}}
		for _, n := range c.Evidence {
			if n < 1 || n > len(evidence) || passages[n-1].Text == "" {
				continue // a number that was never minted, or bytes that are not what was searched
			}
			ev, p := evidence[n-1], passages[n-1]
			start, end := ground.Locate(c.Text, p.Text)
			if start == end {
				continue
			}
			cit := citation(ev, p, start, end)
			checked[i].cited = append(checked[i].cited, cit)
			in[i].Cited = append(in[i].Cited, passageOf(cit, p))
		}
	}
	for i := range claims { // the evidence that says otherwise is heard too
		for n, ev := range evidence {
			other, p := ev.Hit.Chunk.Document, passages[n]
			if len(checked[i].cited) == 0 || checked[i].cites(other) {
				continue
			}
			start, end := ground.Opposing(claims[i].Text, p.Text, surface.Labels(e.Question))
			text := strings.Join(strings.Fields(p.Text[start:end]), " ")
			if start == end || slices.ContainsFunc(checked, func(c checkedClaim) bool { return c.Text == text }) {
				continue
			}
			cit := citation(ev, p, start, end)
			checked = append(checked, checkedClaim{
				Claim: ground.Claim{Text: text, Evidence: []int{ev.Number}},
				cited: []assay.Citation{cit},
			})
			in = append(in, verifyInput{Claim: text, Cited: []ground.Passage{passageOf(cit, p)}})
		}
	}
	judgements, err := e.verify(ctx, s, in)
	if err != nil {
		return nil, err
	}
	for i := range checked {
		checked[i].Judgement = judgements[i]
		if len(checked[i].cited) == 0 { // whatever the verifier says of it
			checked[i].Judgement = ground.Judgement{Verdict: assay.Unsupported, Reason: "cites nothing that can be read"}
		}
	}
	return checked, nil
}

// passageOf is what the verifier sees of a citation.
func passageOf(c assay.Citation, p passage) ground.Passage {
	return ground.Passage{Quote: c.Quote, Context: p.Text, Heading: append([]string{c.Title}, c.Heading...)}
}

// generate asks the generator. One that fails has written nothing.
func (e Env) generate(ctx context.Context, s run.Scope, in role.GenerateInput) (role.Draft, error) {
	step := run.Step{Name: "generate", Kind: assay.StepGenerate}
	return run.Do(ctx, s, step, in, func(ctx context.Context, in role.GenerateInput) (role.Draft, assay.Usage, error) {
		d, err := e.Roles.Generator.Generate(ctx, in)
		if ends(ctx, err) {
			return role.Draft{}, assay.Usage{}, err
		}
		if err != nil {
			d = role.Draft{}
		}
		return d, assay.Usage{}, nil
	})
}

// A span names the bytes [Start, End) of a document version.
type span struct {
	Document string `json:"document"`
	Version  string `json:"version"`
	Start    int    `json:"start"`
	End      int    `json:"end"`
}

// A passage is the stored text of one piece of evidence. Offsets of its anchors
// are relative to it.
type passage struct {
	Text    string         `json:"text"` // empty: gone, or not what the search returned
	Anchors []assay.Anchor `json:"anchors"`
}

// read reads the evidence's bytes from the stored documents: what a citation
// quotes is what is stored, not what a search returned. Evidence that is gone,
// may no longer be seen or differs from its hit has no text, and nothing can
// cite it.
func (e Env) read(ctx context.Context, s run.Scope, evidence []assay.Evidence) ([]passage, error) {
	spans := make([]span, len(evidence))
	for i, ev := range evidence {
		c := ev.Hit.Chunk
		spans[i] = span{Document: c.Document, Version: c.Version, Start: c.Start, End: c.End}
	}
	step := run.Step{Name: "read", Kind: assay.StepRead}
	passages, err := run.Do(ctx, s, step, spans, func(ctx context.Context, spans []span) ([]passage, assay.Usage, error) {
		passages := make([]passage, len(spans))
		documents := map[[2]string]assay.Document{} // those that are gone or hidden are empty
		for i, sp := range spans {
			key := [2]string{sp.Document, sp.Version}
			d, ok := documents[key]
			if !ok {
				var err error
				d, err = e.Content.Version(ctx, sp.Document, sp.Version)
				if ctx.Err() != nil {
					return nil, assay.Usage{}, ctx.Err()
				}
				if err != nil || !e.Access.Allows(d.ACL) {
					d = assay.Document{}
				}
				documents[key] = d
			}
			if 0 <= sp.Start && sp.Start <= sp.End && sp.End <= len(d.Text) {
				passages[i] = passage{Text: d.Text[sp.Start:sp.End], Anchors: d.AnchorsIn(sp.Start, sp.End)}
			}
		}
		return passages, assay.Usage{}, nil
	})
	if err != nil {
		return nil, err
	}
	if len(passages) != len(evidence) {
		return nil, fmt.Errorf("%d passages read for %d pieces of evidence: %w", len(passages), len(evidence), assay.ErrDamaged)
	}
	for i := range passages {
		if passages[i].Text != evidence[i].Hit.Text {
			passages[i] = passage{}
		}
	}
	return passages, nil
}

// verifyInput is one claim as the verifier gets it.
type verifyInput struct {
	Claim string           `json:"claim"`
	Cited []ground.Passage `json:"cited"`
}

// verify has each claim judged. It fails closed: a verifier that fails has not
// supported the claim.
func (e Env) verify(ctx context.Context, s run.Scope, in []verifyInput) ([]ground.Judgement, error) {
	step := run.Step{Name: "verify", Kind: assay.StepVerify}
	out, err := run.Do(ctx, s, step, in, func(ctx context.Context, in []verifyInput) ([]ground.Judgement, assay.Usage, error) {
		out := make([]ground.Judgement, len(in))
		for i, v := range in {
			j, err := e.Roles.Verifier.Verify(ctx, v.Claim, v.Cited)
			if ends(ctx, err) {
				return nil, assay.Usage{}, err
			}
			if err != nil {
				j = ground.Judgement{Verdict: assay.Unsupported, Reason: "the verifier failed: " + err.Error()}
			}
			out[i] = j
		}
		return out, assay.Usage{}, nil
	})
	if err == nil && len(out) != len(in) {
		err = fmt.Errorf("%d verdicts for %d claims: %w", len(out), len(in), assay.ErrDamaged)
	}
	return out, err
}

// citation cites the bytes [start, end) of a passage.
func citation(ev assay.Evidence, p passage, start, end int) assay.Citation {
	h := ev.Hit
	line, page := (&assay.Document{Text: p.Text, Anchors: p.Anchors}).Position(start)
	c := assay.Citation{
		Number:   ev.Number,
		Document: h.Chunk.Document,
		Version:  h.Chunk.Version,
		URI:      h.URI,
		Title:    h.Title,
		Heading:  slices.Clone(h.Chunk.Headings),
		Page:     page,
		Line:     line,
		Start:    h.Chunk.Start + start,
		End:      h.Chunk.Start + end,
		Quote:    p.Text[start:end],
	}
	if c.Heading == nil {
		c.Heading = []string{}
	}
	return c
}
