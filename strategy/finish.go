package strategy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/judged"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// finish turns sub-questions into the answer. It numbers the evidence, has the draft written and
// cut into claims, reads the cited bytes back, has each claim verified, keeps the supported claims
// and decides the status. It also returns the parts of the draft that are not grounded.
func (e Env) finish(ctx context.Context, s run.Scope, strategy string, found []subQuestion) (r Result, ungrounded []ungroundedPart, err error) {
	for i := range found {
		if e.inLoop {
			break
		}
		if err := found[i].gradeAfterSkip(ctx, s.Sub("passed", i), e); err != nil {
			return Result{}, nil, err
		}
	}
	evidence, parts := e.numberEvidence(found)
	if len(evidence) == 0 || e.offTopic(found) {
		return e.notFound(strategy, found), nil, nil
	}
	notes := &found[0].notes // notes of the first sub-question appear in the answer
	if _, alone := e.onlyHit(found); alone {
		notes.say(assay.NoteLeftOut, "one passage is far more relevant than the others; only it was read")
	} else if e.writer() != "" {
		for _, sq := range found {
			if n := len(sq.accepted(len(sq.hits))) - e.Limits.Keep; n > 0 {
				notes.say(assay.NoteLeftOut, fmt.Sprintf("%d passages relevant to %q were left out: at most %d are read", n, questionSources(e.Question).line(sq.question), e.Limits.Keep))
			}
		}
	}
	question := e.Question
	if e.writer() != "" && e.fullQuestion != "" {
		question = e.fullQuestion // a model reads it and does not match its words
	}
	in := role.GenerateInput{Question: question, Parts: e.splitPartsByCollection(parts, evidence), Evidence: evidence, Context: e.assemble(evidence, parts), Advice: e.advice, SubAnswers: e.subs}
	if e.writer() != "" {
		e.sayCut(in, notes)
	}
	w, err := e.write(ctx, s, in, notes, &found[0].lastDraft)
	if stopOf(err) != "" {
		return e.unfinished(strategy, found, w, err), nil, nil
	}
	if err != nil {
		return Result{}, nil, err
	}
	if w.unfinished == nil && e.searchesUnsupported(strategy) {
		if w, evidence, err = e.searchUnsupported(ctx, s.Sub(judged.Sought, 0), found, parts, w, evidence, notes); err != nil {
			return Result{}, nil, err
		}
	}
	if err := e.replace(ctx, s, &w, notes); err != nil {
		return Result{}, nil, err
	}
	supported := w.supported()
	if w.unfinished != nil && len(supported) == 0 {
		return e.unfinished(strategy, found, w, w.unfinished), nil, nil
	}
	ungrounded = w.ungrounded(found, parts)
	r = e.compose(strategy, found, parts, w)
	r.stopped(w.ended)
	e.noteCitedPerCollection(&r, evidence)
	return r, ungrounded, nil
}

// An ungroundedPart is a part of the question whose claims were not verified.
type ungroundedPart struct {
	finding int            // its index
	claims  []checkedClaim // of a model's draft, refused and not replaced
}

// ungrounded returns the parts of the question that have a refused claim, or that were graded
// sufficient and have no supported one. A claim belongs to the first part whose evidence it cites,
// or else to the first part.
func (w checkedDraft) ungrounded(found []subQuestion, parts []role.Part) []ungroundedPart {
	supported := w.supported()
	refused := make([][]checkedClaim, len(parts))
	for _, c := range w.dropped() {
		i := max(0, slices.IndexFunc(parts, c.restsOn))
		refused[i] = append(refused[i], c)
	}
	var open []ungroundedPart
	for i, p := range parts {
		none := found[i].sufficient() && !slices.ContainsFunc(supported, func(c checkedClaim) bool { return c.restsOn(p) })
		if none || len(refused[i]) > 0 {
			open = append(open, ungroundedPart{i, refused[i]})
		}
	}
	return open
}

// unfinished returns the result of a run that ended before an answer was written and verified.
func (e Env) unfinished(strategy string, found []subQuestion, w checkedDraft, err error) Result {
	for i := range found {
		found[i].endSearch(stopOf(err), err)
	}
	r := e.notFound(strategy, found)
	r.evidence.found = foundFit
	if len(w.draft.Statements) > 0 {
		r.verdicts.draft = draftWritten
	}
	r.updateStatus()
	return r
}

// without returns the elements of list that are not in others.
func without[T comparable](list, others []T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(x T) bool { return slices.Contains(others, x) })
}

// appendNew appends those of others that lines does not contain.
func appendNew(lines []string, others ...string) []string {
	for _, l := range others {
		if !slices.Contains(lines, l) {
			lines = append(lines, l)
		}
	}
	return lines
}

// failedCount returns the number of claims for which the verifier failed.
func failedCount(checked []checkedClaim) int {
	n := 0
	for _, c := range checked {
		if c.Failed {
			n++
		}
	}
	return n
}

// A checkedClaim is a claim with its citations and the verifier's judgement.
type checkedClaim struct {
	ground.Claim
	ground.Judgement
	cited      []assay.Citation // without Claim, which is set when the answer is composed
	statement  int              // index in the draft of the statement that it is cut from; -1: none
	section    string           // heading of its section; empty: none
	row        *ground.Row      // of a table; nil: not a row
	standalone string           // standalone form; empty: same as its text
	repaired   bool             // it cites other words than the draft did
	replaced   bool             // refused and replaced by a sentence of the source
	quoted     bool             // it is such a sentence of the source
	inItem     bool             // its statement is an item of a list
	verbatim   bool             // word for word an item or a row of its source, shown with its lead or its heads
	decides    role.YesNo       // the yes or no that it answers with; empty: none
}

// restsOn reports whether c cites evidence of the part.
func (c checkedClaim) restsOn(p role.Part) bool {
	return slices.ContainsFunc(c.cited, func(cit assay.Citation) bool { return slices.Contains(p.Evidence, cit.Number) })
}

// cites reports whether c cites the document.
func (c checkedClaim) cites(document string) bool {
	return slices.ContainsFunc(c.cited, func(cit assay.Citation) bool { return cit.Document == document })
}

// check cuts a draft into claims and verifies each against the exact bytes that it cites. Sentences
// of the evidence that contradict a claim are added as claims of their own.
func (e Env) check(ctx context.Context, s run.Scope, w *checkedDraft, evidence []assay.Evidence, notes *noteList) error {
	passages, err := e.read(ctx, s, evidence)
	if err != nil {
		return err
	}
	w.readable = slices.ContainsFunc(passages, func(p passage) bool { return p.Text != "" })
	claims, unusable := e.claimsOf(w.draft, !w.byModel, evidence, passages, &w.notes)
	if !w.quoted {
		resolve(e.Question, claims)
	}
	for i, c := range claims {
		claims[i].verbatim = w.quoted && verbatim(w.draft.Statements[c.statement], passages)
	}
	w.evidence, w.passages = evidence, passages
	if w.conflicts, err = e.conflicts(ctx, s, evidence, passages, notes); err != nil {
		return err
	}
	claims = append(claims, w.opposing(claims, evidence, passages, e.ReaderModel != "")...)
	if err := e.judge(ctx, s, claims, evidence, passages, notes); err != nil {
		return err
	}
	if claims, err = e.repair(ctx, s.Sub(judged.Repair, 0), w, claims, evidence, passages, notes); err != nil {
		return err
	}
	refuseSwappedCells(claims)
	w.checked, w.unusable = claims, unusable
	return nil
}

// judge verifies claims by their citations. It does not ask the verifier about a verbatim item or
// row, which it would judge without the lead or the heads.
func (e Env) judge(ctx context.Context, s run.Scope, claims []checkedClaim, evidence []assay.Evidence, passages []passage, notes *noteList) error {
	in := []role.Claim{}
	for _, c := range claims {
		if c.verbatim {
			continue
		}
		claim := role.Claim{Text: c.Text, Said: c.standalone, Cited: []ground.Passage{}, Row: c.row, Question: cmp.Or(e.understood, e.Question)}
		for _, cit := range c.cited {
			claim.Cited = append(claim.Cited, passageOf(cit, passages[cit.Number-1]))
		}
		in = append(in, claim)
	}
	judgements, err := e.verify(ctx, s, in)
	if err != nil {
		return err
	}
	for i := range claims {
		if claims[i].verbatim {
			claims[i].Judgement = ground.Judgement{Verdict: assay.Supported, Score: 1, Reason: "verbatim in the source"}
		} else {
			claims[i].Judgement, judgements = judgements[0], judgements[1:]
		}
		if len(claims[i].cited) == 0 { // regardless of the verifier
			claims[i].Judgement = ground.Judgement{Verdict: assay.Unsupported, Reason: "its citations cannot be read"}
		}
		if claims[i].Failed {
			claims[i].Verdict = assay.Unsupported
			notes.outcome(role.VerifierRole, role.Outcome{Failure: claims[i].Reason})
		}
		if !claims[i].citeDeciding(evidence, passages) {
			claims[i].keepSupportingCitations(ctx, passages)
		}
		claims[i].citeHeads(evidence, passages)
	}
	return nil
}

// opposing returns the distinct sentences of the evidence that conflict with a claim resting on
// another document. If a reader has read the evidence, they are the conflicts it found. Otherwise
// they are sentences that differ in a number or a negation.
func (w checkedDraft) opposing(claims []checkedClaim, evidence []assay.Evidence, passages []passage, read bool) []checkedClaim {
	said := map[string]bool{}
	for _, c := range claims {
		said[c.Text] = true
	}
	var others []checkedClaim
	add := func(n, start, end int) {
		p := passages[n]
		if p.describes(evidence[n].Hit, start, end) {
			return
		}
		text := strings.Join(strings.Fields(p.Text[start:end]), " ")
		if said[text] {
			return
		}
		said[text] = true
		others = append(others, checkedClaim{
			Claim: ground.Claim{Text: text, Evidence: []int{evidence[n].Number}}, statement: -1,
			cited: []assay.Citation{citation(evidence[n], p, start, end)},
		})
	}
	cut := make([][]worded, len(evidence))
	sentencesOf := func(n int) []worded {
		if cut[n] == nil {
			cut[n] = wordedOf(passages[n].Text)
		}
		return cut[n]
	}
	for _, c := range claims {
		for _, x := range w.conflicts {
			if side, ok := c.opposite(x, evidence); ok {
				add(side.Passage, side.Start, side.End)
			}
		}
		if read || len(c.cited) == 0 {
			continue
		}
		wording := ground.NewWording(c.Text)
		for n, ev := range evidence {
			if c.restsOnly(ev.Hit.Chunk.Document) {
				continue
			}
			for _, sentence := range sentencesOf(n) {
				if wording.Differs(sentence.Wording) {
					add(n, sentence.start, sentence.end)
					break
				}
			}
		}
	}
	return others
}

// worded is a sentence of a text, prepared for comparison.
type worded struct {
	ground.Wording
	start, end int // byte range in the text
}

// wordedOf returns the sentences of a text. The result is not nil.
func wordedOf(text string) []worded {
	sentences := []worded{}
	for _, s := range ground.Cut(text, nil) {
		sentences = append(sentences, worded{ground.NewWording(s.Text), s.Start, s.End})
	}
	return sentences
}

// restsOnly reports whether a claim cites only the given document, which then cannot contradict it.
func (c checkedClaim) restsOnly(document string) bool {
	return !slices.ContainsFunc(c.cited, func(cit assay.Citation) bool { return cit.Document != document })
}

// passageOf returns a citation in the form that the verifier judges.
func passageOf(c assay.Citation, p passage) ground.Passage {
	return ground.Passage{
		Quote: c.Quote, Context: p.Text, Heading: append([]string{c.Title}, c.Heading...),
		Obtained: c.Provenance.Label(c.Confidence, c.Model),
	}
}

// A span names the bytes [Start, End) of a document version.
type span struct {
	Document string `json:"document"`
	Version  string `json:"version"`
	Start    int    `json:"start"`
	End      int    `json:"end"`
}

// A passage is the stored text of one piece of evidence. Offsets of its anchors and structure are
// relative to it.
type passage struct {
	Text      string          `json:"text"` // empty: deleted, hidden, or not what the search returned
	Anchors   []assay.Anchor  `json:"anchors"`
	Structure assay.Structure `json:"structure,omitzero"` // see assay.Structure.In
	Aliases   []string        `json:"aliases,omitempty"`
}

// described reports whether a hit is a model's description, which is not quoted as the words of the
// document.
func described(h assay.Hit) bool { return h.Chunk.Provenance == assay.ProvenanceDescribed }

// describes reports whether the bytes [start, end) of a hit's passage have words of a description. A
// page that an agent read may have both text of the document and descriptions.
func (p passage) describes(h assay.Hit, start, end int) bool {
	return described(h) || p.Structure.ProvenanceOf(start, end).Kind == assay.ProvenanceDescribed
}

// read reads the bytes of the evidence from the stored documents, so that a citation quotes the
// stored text and not the text that a search returned. Evidence that was deleted, may no longer be
// read or differs from its hit gets no text and cannot be cited. Evidence that is not from the
// documents keeps the text recorded by the step that found it.
func (e Env) read(ctx context.Context, s run.Scope, evidence []assay.Evidence) ([]passage, error) {
	spans := make([]span, len(evidence))
	for i, ev := range evidence {
		c := ev.Hit.Chunk
		if ev.Hit.Origin != assay.FromDocuments {
			continue // no span: the journal holds its text
		}
		spans[i] = span{Document: c.Document, Version: c.Version, Start: c.Start, End: c.End}
	}
	step := run.Step{Name: "read", Kind: assay.StepRead}
	passages, err := run.Do(ctx, s, step, spans, func(ctx context.Context, spans []span) ([]passage, assay.Usage, error) {
		passages := make([]passage, len(spans))
		documents := map[[2]string]assay.Document{} // empty if deleted or hidden
		for i, sp := range spans {
			if sp == (span{}) {
				continue
			}
			key := [2]string{sp.Document, sp.Version}
			d, ok := documents[key]
			if !ok {
				var err error
				if d, err = e.document(ctx, sp.Document, sp.Version); err != nil {
					return nil, assay.Usage{}, err
				}
				documents[key] = d
			}
			if 0 <= sp.Start && sp.Start <= sp.End && sp.End <= len(d.Text) {
				passages[i] = passage{
					Text: d.Text[sp.Start:sp.End], Anchors: d.AnchorsIn(sp.Start, sp.End), Structure: d.Structure.In(sp.Start, sp.End), Aliases: d.Aliases,
				}
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
		if h := evidence[i].Hit; h.Origin != assay.FromDocuments {
			passages[i] = passage{Text: h.Text}
		}
		if passages[i].Text != evidence[i].Hit.Text {
			passages[i] = passage{}
		}
	}
	return passages, nil
}

// document reads a version of a document. It returns an empty document if the version is gone or
// the current ACL denies access. For a deleted document the last ACL counts; without a known ACL
// access is denied.
func (e Env) document(ctx context.Context, id, version string) (assay.Document, error) {
	acl, err := e.Content.ACL(ctx, id)
	if errors.Is(err, assay.ErrNotFound) {
		return assay.Document{}, nil
	}
	if err != nil {
		return assay.Document{}, err
	}
	d, err := e.Content.Version(ctx, id, version)
	if errors.Is(err, assay.ErrNotFound) || err == nil && !e.Access.Allows(d.Collection, acl) {
		return assay.Document{}, nil
	}
	return d, err
}

// verify asks the verifier to judge each claim. It fails closed: if the verifier fails, no claim is
// supported.
func (e Env) verify(ctx context.Context, s run.Scope, in []role.Claim) ([]ground.Judgement, error) {
	step := run.Step{Name: "verify", Kind: assay.StepVerify, Model: e.Roles.Models[role.VerifierRole]}
	out, err := run.Group(ctx, s, step, in, func(ctx context.Context, s run.Scope, in []role.Claim) ([]ground.Judgement, error) {
		out, err := e.Roles.Verifier.Verify(ctx, e.caller(s, answerShare), in)
		if err == nil {
			err = ctx.Err() // a late judgement does not count
		}
		if role.Ends(ctx, err) {
			return nil, err
		}
		if err == nil && len(out) != len(in) {
			err = fmt.Errorf("%d verdicts for %d claims", len(out), len(in))
		}
		if err != nil {
			out = make([]ground.Judgement, len(in))
			for i := range out {
				out[i] = ground.Judgement{Verdict: assay.Unsupported, Reason: "the verifier failed: " + err.Error(), Failed: true}
			}
		}
		return e.grounded(validJudgements(in, out)), nil
	})
	if err == nil && len(out) != len(in) {
		err = fmt.Errorf("%d verdicts for %d claims: %w", len(out), len(in), assay.ErrDamaged)
	}
	return out, err
}

// grounded returns judgements in which a claim whose score is below the threshold is not supported.
func (e Env) grounded(judgements []ground.Judgement) []ground.Judgement {
	least := e.Settings.Verify.Grounding
	for i, j := range judgements {
		if j.Verdict == assay.Supported && !(j.Score >= least) {
			judgements[i].Verdict = assay.Unsupported
			judgements[i].Reason = fmt.Sprintf("its score of %.2f is below the threshold of %.2f", j.Score, least)
		}
	}
	return judgements
}

// citation returns a citation of the bytes [start, end) of a passage.
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
		Link:     assay.PageLink(h.URI, page),
		Line:     line,
		Start:    h.Chunk.Start + start,
		End:      h.Chunk.Start + end,
		Quote:    p.Text[start:end],
		Origin:   h.Origin,
		Boxes:    p.Structure.Rectangles(start, end),
		Aliases:  slices.Clone(p.Aliases),
	}
	from := p.Structure.ProvenanceOf(start, end)
	if h.Chunk.Provenance == assay.ProvenanceDescribed { // whatever the structure says
		from.Kind, from.Model = h.Chunk.Provenance, h.Chunk.Model
	}
	c.Provenance, c.Confidence, c.Model = from.Kind, from.Confidence, from.Model
	if c.Heading == nil {
		c.Heading = []string{}
	}
	return c
}
