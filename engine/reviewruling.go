package engine

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/review"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/strategy"
)

// The rulings of reviewers follow the steps of the strategy in a run's journal. The i-th is the step
// "review_ruling[i]/ruling"; if it edits the text, the verification follows in the same scope.
const (
	rulingScope = "review_ruling"
	rulingStep  = "ruling"
)

// MaxReviewText is the most bytes of an edited answer, and MaxReviewReason of the reason of a rejection.
const (
	MaxReviewText   = 64 << 10
	MaxReviewReason = 4 << 10
)

// A rulingInput is the input of the step of a ruling.
type rulingInput struct {
	Text string `json:"text"` // SHA-256 of the text that the ruling is about
}

// A recordedRuling is the output of the step of a ruling.
type recordedRuling struct {
	review.Ruling
	Evidence []assay.Evidence `json:"evidence,omitempty"` // that an edit was verified by
}

// isRuling reports whether a record belongs to a ruling.
func isRuling(rec assay.Record) bool { return strings.HasPrefix(rec.Path, rulingScope+"[") }

// rulingOf returns the ruling that a record holds, or nil.
func rulingOf(rec assay.Record) *recordedRuling {
	if !isRuling(rec) || rec.Kind != assay.StepHuman || path.Base(rec.Path) != rulingStep {
		return nil
	}
	return decode[recordedRuling](rec.Output)
}

// splitRulings separates the records of the strategy from those of rulings.
func splitRulings(records []assay.Record) (strategy, rulings []assay.Record) {
	for _, rec := range records {
		if isRuling(rec) {
			rulings = append(rulings, rec)
		} else {
			strategy = append(strategy, rec)
		}
	}
	return strategy, rulings
}

// A ruledAnswer is an answer in the course of its review.
type ruledAnswer struct {
	answer assay.Answer
	text   string // hash of the text to rule about
	edited bool
	ruling review.Ruling // the last one
}

// A roundOfReview is one ruling in a run's journal.
type roundOfReview struct {
	number  int
	records []assay.Record  // of a replay
	journal *run.Memory     // of a live ruling; nil: a replay
	given   *recordedRuling // the live ruling
	ledger  run.Ledger      // of a live edit, whose verification may cost something
}

// rule takes the steps of one ruling, live or in a replay, and returns the answer after it.
func (e *Engine) rule(ctx context.Context, r assay.Run, req storedRequest, round roundOfReview, before ruledAnswer) (after ruledAnswer, err error) {
	observer := runObserver{}
	config := run.Config{Run: r.ID, Records: round.records, Budget: assay.Budget{Wall: modelWall}, Now: e.config.Now, Observe: observer.stepEvent}
	begin := run.Replay
	if round.journal != nil {
		begin, config.Journal = run.New, round.journal
		var observed *observedRun
		ctx, observed = e.observeReview(ctx, r, req)
		defer func() { observed.end(after.answer, err) }()
		observer.observe, config.Within = observed.step, observed.within()
	}
	if round.ledger != nil {
		stopped, end := e.untilStopped(context.WithoutCancel(ctx))
		defer end()
		config.Ledger, config.Stop = round.ledger, stopped
		ctx = e.outgoing(ctx)
	}
	session, err := begin(config)
	if err != nil {
		return before, err
	}
	after, err = e.ruleIn(ctx, r, req, session, round, before)
	if stopped := session.Finish(); stopped != nil {
		err = stopped
	}
	if err != nil || after.ruling.Kind != assay.DecisionEdited {
		return after, err
	}
	var verified assay.Answer
	observer.complete(&verified, req)
	after.answer.Usage = before.answer.Usage.Add(session.Scope().Spent())
	after.answer.Roles = addRoles(before.answer.Roles, verified.Roles)
	return after, nil
}

// addRoles returns the sum of two lists.
func addRoles(a, b []assay.RoleUse) []assay.RoleUse {
	sum := slices.Clone(a)
	for _, u := range b {
		same := func(v assay.RoleUse) bool { return v.Role == u.Role && v.Model == u.Model && v.Prompt == u.Prompt }
		if i := slices.IndexFunc(sum, same); i >= 0 {
			sum[i].Usage = sum[i].Usage.Add(u.Usage)
		} else {
			sum = append(sum, u)
		}
	}
	return sum
}

func (e *Engine) ruleIn(ctx context.Context, r assay.Run, req storedRequest, session *run.Run, round roundOfReview, before ruledAnswer) (ruledAnswer, error) {
	scope := session.Scope().Sub(rulingScope, round.number)
	step := run.Step{Name: rulingStep, Kind: assay.StepHuman}
	ruling, err := run.Do(ctx, scope, step, rulingInput{Text: before.text}, func(context.Context, rulingInput) (recordedRuling, assay.Usage, error) {
		return *round.given, assay.Usage{}, nil
	})
	if err != nil {
		return before, err
	}
	after := before
	after.ruling = ruling.Ruling
	switch ruling.Kind {
	case assay.DecisionRejected, assay.DecisionExpired:
		after.answer = rejectedAnswer(before.answer, ruling.Ruling)
		return after, nil
	case assay.DecisionEdited:
		checked, err := e.checkText(ctx, r, req, scope, ruling, before.answer, round.journal != nil)
		if err != nil {
			return before, err
		}
		after.answer, after.edited, after.text = editedAnswer(before.answer, checked, ruling.Ruling), true, hashOf(ruling.Text)
	}
	if ruling.Final {
		o := assay.Oversight{Decision: assay.DecisionApproved, By: ruling.Reviewers, At: ruling.At}
		if after.edited {
			o.Decision = assay.DecisionEdited
		}
		after.answer.Oversight = &o
	}
	return after, nil
}

// checkText verifies an edited text in the scope of its ruling.
func (e *Engine) checkText(ctx context.Context, r assay.Run, req storedRequest, scope run.Scope, ruling recordedRuling, before assay.Answer, live bool) (strategy.CheckedText, error) {
	tools := runTools{}
	if live {
		builtin, err := e.search(ctx)
		if err != nil {
			return strategy.CheckedText{}, err
		}
		tools.retriever = builtin
	}
	env, err := e.environment(r, req, tools, nil)
	if err != nil {
		return strategy.CheckedText{}, err
	}
	return strategy.CheckText(ctx, scope, env, ruling.By, ruling.Text, ruling.Evidence, before)
}

// editedAnswer returns an answer with a checked text in place of its own.
func editedAnswer(a assay.Answer, checked strategy.CheckedText, r review.Ruling) assay.Answer {
	a.Text, a.Claims, a.Citations = checked.Text, checked.Claims, checked.Citations
	a.Status, a.Reason = assay.Answered, assay.ReasonSupported
	a.Justification = fmt.Sprintf("%s edited the answer; the documents support all of its statements", r.By)
	if checked.Unsupported > 0 {
		a.Status, a.Reason = assay.Incomplete, assay.ReasonReviewerStatement
		a.Justification = fmt.Sprintf("%s edited the answer; the documents do not support %d of its %s", r.By, checked.Unsupported, counted(len(checked.Claims), "statement"))
	}
	if checked.Unsupported == len(checked.Claims) {
		a.Justification = fmt.Sprintf("%s edited the answer; the documents support none of its statements", r.By)
	}
	a.Relevance, a.Review, a.Cached = nil, nil, nil // they are about the text before
	a.Missing, a.Closest, a.Readings, a.AskBack = nil, nil, nil, ""
	a.Notes = slices.Clone(a.Notes)
	for _, n := range checked.Notes {
		if !slices.Contains(a.Notes, n) {
			a.Notes = append(a.Notes, n)
		}
	}
	return withLists(a)
}

// Approve approves the present text of an answer. The reviewer must hold the claim and have seen the
// answer. If the policies need two reviewers, the first approval leaves it open.
func (e *Engine) Approve(ctx context.Context, principal assay.Principal, id string) (ReviewSummary, error) {
	return e.decide(ctx, principal, id, func(c review.Case, now time.Time) (review.Case, review.Ruling, error) {
		if _, seen := c.Opened[principal.User]; !seen && c.ClaimedBy(now) == principal.User {
			return c, review.Ruling{}, fmt.Errorf("run %s: look at the present text and its evidence first: %w", id, assay.ErrInvalid)
		}
		return c.Approve(principal, "", now)
	})
}

// Edit replaces the text of an answer by the reviewer's, which is verified by the evidence that it
// cites as [n]. A statement that is not supported stays, marked as the reviewer's own. An edit is also
// the reviewer's approval of the new text, and ends the approvals of the text before. The model calls
// of the verification are charged to the run and counted for its asker. If a limit or a stop refuses one
// of them, the error is assay.ErrQuota or assay.ErrStopped and the text stays as it was. A text, or
// evidence, of a canary is assay.ErrForbidden, for Approve too.
func (e *Engine) Edit(ctx context.Context, principal assay.Principal, id, text string) (ReviewSummary, error) {
	text, err := editedText(id, text)
	if err != nil {
		return ReviewSummary{}, err
	}
	return e.decide(ctx, principal, id, func(c review.Case, now time.Time) (review.Case, review.Ruling, error) {
		return c.Edit(principal, text, hashOf(text), now)
	})
}

// editedText returns a text for Edit without spaces around it.
func editedText(id, text string) (string, error) {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > MaxReviewText {
		return "", fmt.Errorf("run %s: an edited answer has 1 to %d bytes: %w", id, MaxReviewText, assay.ErrInvalid)
	}
	return text, nil
}

// An EditCheck is the result of the verification of an edited text.
type EditCheck struct {
	Answer  assay.Answer    `json:"answer"`  // as Edit would make it
	Changes []review.Change `json:"changes"` // of words, from the present text
}

// CheckEdit verifies a text as Edit does, and stores nothing of it. The errors are those of Edit.
func (e *Engine) CheckEdit(ctx context.Context, principal assay.Principal, id, text string) (check EditCheck, err error) {
	text, err = editedText(id, text)
	if err != nil {
		return EditCheck{}, err
	}
	o, r, err := e.reviewer(ctx, principal, id)
	if err != nil {
		return EditCheck{}, err
	}
	_, ruling, err := o.c.Edit(principal, text, hashOf(text), e.config.Now().UTC())
	if err == nil {
		err = e.checkSeesAll(ctx, principal, o, r)
	}
	if err != nil {
		return EditCheck{}, err
	}
	ruling.Final = false
	req, err := questionOf(r)
	if err != nil {
		return EditCheck{}, err
	}
	after, _, end, err := e.ruleLive(ctx, o, r, req, ruling)
	if err = errors.Join(err, end(false)); err != nil {
		return EditCheck{}, err
	}
	return EditCheck{after.answer, review.Words(o.draft.present().Text, after.answer.Text)}, nil
}

// Reject rejects an answer. The asker sees the reason.
func (e *Engine) Reject(ctx context.Context, principal assay.Principal, id, reason string) (ReviewSummary, error) {
	reason = strings.TrimSpace(reason)
	if len(reason) > MaxReviewReason {
		return ReviewSummary{}, fmt.Errorf("run %s: the reason has more than %d bytes: %w", id, MaxReviewReason, assay.ErrInvalid)
	}
	return e.decide(ctx, principal, id, func(c review.Case, now time.Time) (review.Case, review.Ruling, error) {
		return c.Deny(principal, reason, now)
	})
}

// decide stores the ruling that fn makes. If someone else changes the case meanwhile, fn is called again.
func (e *Engine) decide(ctx context.Context, principal assay.Principal, id string, fn func(review.Case, time.Time) (review.Case, review.Ruling, error)) (s ReviewSummary, err error) {
	err = retry(func() error {
		o, r, err := e.reviewer(ctx, principal, id)
		if err != nil {
			return err
		}
		c, ruling, err := fn(o.c, e.config.Now().UTC())
		if err == nil {
			err = e.checkSeesAll(ctx, principal, o, r) // an ACL may have changed since the claim
		}
		if err != nil {
			return err
		}
		s = e.summarise(c)
		return e.storeRuling(ctx, o, r, c, principal, ruling)
	})
	if err != nil {
		return ReviewSummary{}, err
	}
	return s, nil
}

// reviewDecided is the detail of the act "review.decided", and of "review.approved" and
// "review.edited", which leave the answer open.
type reviewDecided struct {
	Policies []string       `json:"policies"`
	Decision assay.Decision `json:"decision"` // of this ruling
	Outcome  assay.Decision `json:"outcome"`  // of the review
	By       []string       `json:"by,omitempty"`
	DwellMS  int64          `json:"dwell_ms"`
	OpenMS   int64          `json:"open_ms"` // negative: the evidence was not opened
	WaitedMS int64          `json:"waited_ms"`
	Status   assay.Status   `json:"status,omitempty"` // of the answer, if it is decided
}

// storeRuling records a ruling in the journal and stores what follows from it: the new text, or the end
// of the run.
func (e *Engine) storeRuling(ctx context.Context, o openReview, r assay.Run, c review.Case, principal assay.Principal, ruling review.Ruling, acts ...store.Act) (err error) {
	req, err := questionOf(r)
	if err != nil {
		return err
	}
	after, ruled, end, err := e.ruleLive(ctx, o, r, req, ruling)
	defer func() { err = errors.Join(err, end(err == nil)) }()
	if err != nil {
		return err
	}
	detail := reviewDecided{
		Policies: policyNames(c.Matches), Decision: ruling.Kind, Outcome: c.Decision, By: c.By,
		DwellMS: ruling.Dwell.Milliseconds(), OpenMS: ruling.Open.Milliseconds(), WaitedMS: ruling.At.Sub(c.Created).Milliseconds(),
	}
	if ruling.Open < 0 {
		detail.OpenMS = -1
	}
	kind := "review.approved" // the first of two; a rejection is final
	if ruling.Kind == assay.DecisionEdited {
		kind = "review.edited"
	}
	with := ruled
	if ruling.Final {
		kind, detail.Status, with.Answer = "review.decided", after.answer.Status, &after.answer
	}
	if ruling.Kind == assay.DecisionEdited {
		shown := after.answer
		o.draft.Edited = &shown
	}
	act, err := reviewAct(kind, principal, detail)
	if err != nil {
		return err
	}
	with.Acts = append(acts, act)
	return e.change(ctx, o, c, with)
}

// ruleLive is ruleScreened on the present answer of a review. ruled has the records of the ruling and the
// account of its model calls. end closes the account; it must be called, with whether ruled was stored.
func (e *Engine) ruleLive(ctx context.Context, o openReview, r assay.Run, req storedRequest, ruling review.Ruling) (after ruledAnswer, ruled store.ReviewChange, end func(stored bool) error, err error) {
	end = func(bool) error { return nil }
	if err := e.screenRuling(ctx, r.ID, o.draft.present(), ruling); err != nil {
		return after, ruled, end, fmt.Errorf("run %s: %w", r.ID, err)
	}
	journal := &run.Memory{}
	given := recordedRuling{Ruling: ruling}
	round := roundOfReview{number: o.c.Rounds, journal: journal, given: &given}
	if ruling.Kind == assay.DecisionEdited {
		given.Evidence = o.draft.Evidence
		account, err := e.tenant.Ledger().Admit(ctx, store.Admission{Principal: r.Principal})
		if err != nil {
			return after, ruled, end, err
		}
		end = func(stored bool) error { return e.settleRuling(ctx, account, journal, stored) }
		round.ledger, ruled.Account = runLedger{e, r.Principal, account}, account
	}
	before := ruledAnswer{answer: o.draft.present(), text: o.c.Text, edited: o.c.Edited != ""}
	if after, err = e.ruleScreened(ctx, r, req, round, before); err != nil {
		return after, ruled, end, fmt.Errorf("run %s: %w", r.ID, err)
	}
	ruled.Records = journal.Records()
	return after, ruled, end, nil
}

// ruleScreened is rule for a live ruling. The error is assay.ErrForbidden if the answer after it, or a
// call of its verification, has the text of a canary, and assay.ErrQuota or assay.ErrStopped if that
// refused a call.
func (e *Engine) ruleScreened(ctx context.Context, r assay.Run, req storedRequest, round roundOfReview, before ruledAnswer) (ruledAnswer, error) {
	ctx, canaries, err := e.watched(ctx, r.ID)
	if err != nil {
		return before, err
	}
	defer canaries.end()
	after, err := e.rule(ctx, r, req, round, before)
	if err == nil {
		_, err = canaries.screenAnswer(ctx, after.answer)
	}
	if canaries.tripped() {
		return before, errors.Join(errCanary, err)
	}
	if err != nil {
		return before, err
	}
	return after, checkVerified(round.journal.Records())
}

// checkVerified returns an error if a limit or a stop refused a call of a verification.
func checkVerified(records []assay.Record) error {
	for _, rec := range records {
		for _, kind := range []error{assay.ErrQuota, assay.ErrStopped} {
			if rec.Error != nil && rec.Error.Kind == kind.Error() {
				return fmt.Errorf("the text cannot be verified now: %w", kind)
			}
		}
	}
	return nil
}

// settleRuling closes the account of a ruling. If the ruling was not stored, the calls of its
// verification are counted without a record.
func (e *Engine) settleRuling(ctx context.Context, account store.Account, journal *run.Memory, stored bool) (err error) {
	ctx = context.WithoutCancel(ctx)
	if !stored {
		for _, rec := range journal.Records() {
			err = errors.Join(err, account.Settle(ctx, rec.Path, rec.Usage))
		}
	}
	return errors.Join(err, account.Close())
}

// screenRuling looks for canaries in the text of a ruling, and in the answer that an approval releases,
// since one may be newer than the answer. The error is assay.ErrForbidden.
func (e *Engine) screenRuling(ctx context.Context, id string, present assay.Answer, ruling review.Ruling) error {
	w, err := e.watch(ctx)
	if err != nil || w.set.Empty() {
		return err
	}
	w.run = id
	texts := []string{ruling.Text, ruling.Reason}
	if ruling.Kind == assay.DecisionApproved || ruling.Kind == assay.DecisionEdited {
		present.Oversight = nil
		if ruling.Kind == assay.DecisionEdited {
			present.Text, present.Claims, present.Citations = "", nil, nil // they are replaced
		}
		shown, err := answerTexts(present)
		if err != nil {
			return err
		}
		texts = append(texts, shown...)
	}
	return w.screen(ctx, "review", texts...)
}

// replayRulings repeats the rulings on an answer that a replay has reached.
func (e *Engine) replayRulings(ctx context.Context, r assay.Run, req storedRequest, answer assay.Answer, records []assay.Record) (assay.Answer, error) {
	ruled := ruledAnswer{answer: answer, text: hashOf(answer.Text)}
	for round := 0; len(records) > 0; round++ {
		prefix := fmt.Sprintf("%s[%d]/", rulingScope, round)
		n := 0
		for n < len(records) && strings.HasPrefix(records[n].Path, prefix) {
			n++
		}
		if n == 0 || ruled.ruling.Final {
			return answer, fmt.Errorf("the record %s does not follow from the review: %w", records[0].Path, assay.ErrDamaged)
		}
		var err error
		ruled, err = e.rule(ctx, r, req, roundOfReview{number: round, records: records[:n]}, ruled)
		if err != nil {
			return answer, err
		}
		records = records[n:]
	}
	if !ruled.ruling.Final {
		return answer, fmt.Errorf("the review has no final ruling: %w", assay.ErrDamaged)
	}
	return ruled.answer, nil
}
