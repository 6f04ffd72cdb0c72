package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/strategy"
)

// A NodeCall names a node of a run of the strategy reflect that is driven node by node, as by a state
// machine.
type NodeCall struct {
	Run   string // its ID
	Node  strategy.Node
	Round int // reflections before the node
	Steps int // steps of the run before the node

	// Request begins the run. It is required by the first planner and ignored by all other nodes. Its
	// ID and its strategy are not used, and its rounds must be unset or strategy.MaxRoutes.
	Request *Request
}

// A NodeResult is the state of a run after a node.
type NodeResult struct {
	strategy.Progress
	Steps  int           // steps of the run so far
	Answer *assay.Answer // of the finaliser
}

// Node drives a run through one node and gives back its lease, so that another process can drive the
// next one. The first planner stores the run, of which hosts drive no part. The finaliser ends the run
// as Answer does.
//
// A call may be repeated at any time: a node whose steps are in the journal takes none again and has the
// result that it had. One that was interrupted continues after its last step. If the rounds end before a
// node, because the budget is spent, no query is left or the answer is known, the node has no steps and
// its result is that of the last one, with Ended set.
//
// The error is assay.ErrLeased while a live process drives the run. It is assay.ErrInvalid if the node is
// not the next one or one before, or if the run has failed, and assay.ErrReused if the run was begun by
// another request. Otherwise the errors are those of Answer and Resume.
func (e *Engine) Node(ctx context.Context, principal assay.Principal, c NodeCall) (NodeResult, error) {
	var p *preparedRun
	var err error
	if c.Node == strategy.PlannerNode && c.Round == 0 {
		p, err = e.prepareNodes(ctx, principal, c)
	}
	if err == nil && p == nil {
		var known *NodeResult
		if known, err = e.knownNode(ctx, principal, c); known != nil {
			return *known, nil
		}
		if err == nil {
			p, err = e.prepareNode(ctx, principal, c.Run)
		}
		if err != nil && !errors.Is(err, assay.ErrLeased) { // another process may have ended the run meanwhile
			if known, failed := e.knownNode(ctx, principal, c); failed == nil && known != nil {
				return *known, nil
			}
		}
	}
	if err != nil {
		return NodeResult{}, err
	}
	until := &nodeEnd{call: c}
	p.req.until = until
	answer, err := p.drive(ctx, nil)
	if err == nil && c.Node == strategy.FinaliserNode {
		return e.finalised(ctx, principal, c.Run)
	}
	return until.outcome(answer, err)
}

// prepareNodes stores the run that a call begins. It returns nil if the run exists.
func (e *Engine) prepareNodes(ctx context.Context, principal assay.Principal, c NodeCall) (*preparedRun, error) {
	if c.Run == "" || c.Request == nil {
		return nil, fmt.Errorf("the first planner needs the ID of a run and a request: %w", assay.ErrInvalid)
	}
	req := *c.Request
	rounds := &req.Settings.Reflect.Rounds
	if n := cmp.Or(*rounds, strategy.MaxRoutes); n != strategy.MaxRoutes {
		return nil, fmt.Errorf("run %s: a run that is driven node by node has %d rounds, not %d: %w", c.Run, strategy.MaxRoutes, n, assay.ErrInvalid)
	}
	if n := req.Mode.Settings(e.config.Settings).Reflect.Rounds; n != 0 && n != strategy.MaxRoutes {
		*rounds = strategy.MaxRoutes
	}
	req.ID, req.Strategy = c.Run, "reflect"
	asked := askedOf("nodes", c.Request)
	exists, err := e.begunNodes(ctx, principal, c.Run, asked)
	if exists || err != nil {
		return nil, err
	}
	p, err := e.prepare(ctx, principal, req, nil, asked)
	if err != nil {
		if exists, _ := e.begunNodes(context.WithoutCancel(ctx), principal, c.Run, asked); exists { // it was begun meanwhile
			return nil, nil
		}
	}
	return p, err
}

// begunNodes reports whether a run was begun by the request with a hash. If another has its ID, the error is
// assay.ErrReused.
func (e *Engine) begunNodes(ctx context.Context, principal assay.Principal, id, asked string) (bool, error) {
	r, err := e.runs.Run(ctx, id)
	if errors.Is(err, assay.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	stored, err := requestOf(r)
	if err != nil || !owns(principal, r) || stored.Nodes != asked {
		return false, fmt.Errorf("run %q is that of another request: %w", id, assay.ErrReused)
	}
	return true, nil
}

// knownNode returns the result of a node whose steps are all in the journal; nil: they are not.
func (e *Engine) knownNode(ctx context.Context, principal assay.Principal, c NodeCall) (*NodeResult, error) {
	r, records, err := e.journal(ctx, principal, c.Run)
	if err != nil {
		return nil, err
	}
	req, err := questionOf(r)
	switch {
	case err != nil:
		return nil, err
	case req.Nodes == "":
		return nil, fmt.Errorf("run %s is not driven node by node: %w", c.Run, assay.ErrInvalid)
	case r.State == assay.RunFailed:
		return nil, fmt.Errorf("run %s has failed: %s: %w", c.Run, r.Error, assay.ErrInvalid)
	case len(records) < c.Steps:
		return nil, fmt.Errorf("run %s has %d steps, and the %s follows %d: %w", c.Run, len(records), c.Node, c.Steps, assay.ErrInvalid)
	}
	ended := r.State != assay.RunActive
	if c.Node == strategy.FinaliserNode && ended {
		result, err := e.finalised(ctx, principal, c.Run)
		return &result, err
	}
	if r.Answer != nil && r.Answer.Reason == assay.ReasonWithheld { // its journal leads to no answer
		result := c.ended(*r.Answer)
		return &result, nil
	}
	if c.Node == strategy.FinaliserNode || len(records) == c.Steps && !ended {
		return nil, nil
	}
	steps, _ := splitRulings(records)
	session, err := run.Replay(run.Config{Run: r.ID, Records: steps, Budget: req.Budget})
	if err != nil {
		return nil, err
	}
	until := &nodeEnd{call: c}
	req.until = until
	answer, err := e.answer(ctx, r, req, session, runTools{}, nil)
	if !ended && errors.Is(err, assay.ErrDiverged) { // the node was interrupted
		return nil, nil
	}
	result, err := until.outcome(answer, err)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", c.Run, err)
	}
	return &result, nil
}

// finalised returns the result of the finaliser of a run that has ended.
func (e *Engine) finalised(ctx context.Context, principal assay.Principal, id string) (NodeResult, error) {
	r, _, err := e.Run(ctx, principal, id)
	if err == nil && r.Answer != nil && r.Answer.Oversight != nil {
		*r.Answer, err = e.underReview(ctx, principal, id)
	}
	if err == nil && r.Answer == nil {
		err = fmt.Errorf("run %s has no answer: %w", id, assay.ErrDamaged)
	}
	if err != nil {
		return NodeResult{}, err
	}
	return NodeResult{Progress: strategy.Progress{Node: strategy.FinaliserNode, Stop: r.Answer.Stop}, Steps: r.Steps, Answer: r.Answer}, nil
}

// prepareNode takes the lease of a run between two of its nodes. It counts as no other request, and no
// limit of requests refuses it.
func (e *Engine) prepareNode(ctx context.Context, principal assay.Principal, id string) (*preparedRun, error) {
	account, err := e.tenant.Ledger().Admit(ctx, store.Admission{Principal: principal, Run: id})
	if err != nil {
		return nil, err
	}
	p := &preparedRun{e: e, account: &admission{account}}
	if err := p.acquire(ctx, principal, id); err != nil {
		return nil, p.abandon(err)
	}
	return p, nil
}

// errNodeEnded ends a drive at the end of its node. The run can be resumed.
var errNodeEnded = errors.New("the node has ended; another process drives the next one")

// notTaken reports whether a session ended because the journal holds more steps, those of later nodes.
func notTaken(err error) bool {
	diverged, ok := errors.AsType[*run.DivergenceError](err)
	return ok && diverged.Reason == run.NotTaken
}

// A nodeEnd stops a run at the end of a node.
type nodeEnd struct {
	call   NodeCall
	result *NodeResult
	refuse error // the call does not fit the run
}

// places are the nodes of a round.
var places = []strategy.Node{strategy.PlannerNode, strategy.RetrieverNode, strategy.AnalystNode, strategy.ReflectorNode}

// placeOf returns the position of a node among those of all rounds.
func placeOf(node strategy.Node, round int) int {
	return len(places)*round + slices.Index(places, node)
}

// after implements strategy.Env.After for a run.
func (u *nodeEnd) after(session *run.Run) func(context.Context, strategy.Progress) error {
	if u == nil {
		return nil
	}
	return func(_ context.Context, p strategy.Progress) error {
		if !u.ends(p, session.Taken()) {
			return nil
		}
		return errNodeEnded
	}
}

// ends reports whether the drive ends after a node, and sets the result or the refusal.
func (u *nodeEnd) ends(p strategy.Progress, taken int) bool {
	c := u.call
	over := p.Stop != ""
	refuse := func(format string, args ...any) bool {
		u.refuse = fmt.Errorf("run %s: the %s of round %d %s: %w", c.Run, c.Node, c.Round+1, fmt.Sprintf(format, args...), assay.ErrInvalid)
		return true
	}
	if c.Node == strategy.FinaliserNode {
		switch {
		case over && taken != c.Steps:
			return refuse("follows step %d, not %d", taken, c.Steps)
		case !over && p.Node == strategy.ReflectorNode && taken >= c.Steps:
			return refuse("does not follow, because the rounds have not ended")
		}
		return false
	}
	at, want := placeOf(p.Node, p.Round), placeOf(c.Node, c.Round)
	switch {
	case at == want, p.Ended && at < want && p.Round == c.Round:
		p.Node = c.Node
		u.result = &NodeResult{Progress: p, Steps: taken}
		return true
	case over:
		return refuse("does not follow, because the rounds have ended")
	case at == want-1 && taken != c.Steps:
		return refuse("follows step %d, not %d", taken, c.Steps)
	}
	return false
}

// outcome returns the result of a drive that ended with an answer or an error.
func (u *nodeEnd) outcome(answer assay.Answer, err error) (NodeResult, error) {
	switch {
	case u.refuse != nil && errors.Is(err, errNodeEnded):
		return NodeResult{}, u.refuse
	case u.result != nil && errors.Is(err, errNodeEnded):
		return *u.result, nil
	case err != nil:
		return NodeResult{}, err
	}
	return u.call.ended(answer), nil
}

// ended returns the result of a node of a run that ended before it, as with an earlier answer.
func (c NodeCall) ended(answer assay.Answer) NodeResult {
	stop := cmp.Or(answer.Stop, assay.StopSufficient)
	return NodeResult{Progress: strategy.Progress{Node: c.Node, Round: c.Round, Routes: c.Round, Ended: true, Stop: stop}, Steps: c.Steps}
}
