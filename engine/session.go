package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/identity"
)

// A Session is the use of one tenant's engine with one grant. Every door to the engine uses
// sessions, and no method takes a tenant or a principal. Before a call does anything, it checks in
// this order:
//
//   - the grant: assay.ErrUnauthenticated if it is empty, has expired, was revoked, or has the user
//     of the command line, which no credential gives, and HostConfig.AllowLocal is not set
//   - the scope of the method, see SessionMethods: assay.ErrForbidden
//   - the tenant: assay.ErrNotFound if it does not exist any more, assay.ErrStopped if it is
//     suspended
//
// A grant with a scope in some collections has it for their documents only, as if there were no
// others. Naming another collection is assay.ErrNotFound. A method that is not divided by
// collections needs its scope in all of them. Roles never give sight of a document: ACLs decide.
//
// A Session is safe for concurrent use.
type Session struct {
	host     *Host
	grant    identity.Grant
	identity string // of the tenant
}

// A SessionMethod is the right that a method of Session needs.
type SessionMethod struct {
	Name  string
	Scope identity.Scope

	// PerCollection means that the scope may be limited to collections. Otherwise it must be granted
	// in all.
	PerCollection bool
}

// SessionMethods lists the methods of Session.
var SessionMethods = []SessionMethod{
	{"Ask", identity.ScopeAsk, true},
	{"Begin", identity.ScopeAsk, true},
	{"BeginResume", identity.ScopeAsk, true},
	{"BeginFork", identity.ScopeAsk, true},
	{"Follow", identity.ScopeAsk, true},
	{"Cancel", identity.ScopeAsk, true},
	{"Answer", identity.ScopeAsk, true},
	{"Resume", identity.ScopeAsk, true},
	{"Replay", identity.ScopeAsk, true},
	{"Fork", identity.ScopeAsk, true},
	{"Diff", identity.ScopeAsk, true},
	{"Runs", identity.ScopeAsk, true},
	{"ListRuns", identity.ScopeAsk, true},
	{"Run", identity.ScopeAsk, true},
	{"DeleteRun", identity.ScopeAsk, true},
	{"PruneRuns", identity.ScopeAsk, true},
	{"EraseRuns", identity.ScopeAsk, true},
	{"Prove", identity.ScopeAsk, true},
	{"CheckProof", identity.ScopeAsk, true},
	{"Await", identity.ScopeAsk, true},
	{"Observations", identity.ScopeAsk, true},
	{"CitedBy", identity.ScopeAsk, true},
	{"Share", identity.ScopeAsk, true},
	{"Shares", identity.ScopeAsk, true},
	{"Unshare", identity.ScopeAsk, true},
	{"SharedRun", identity.ScopeAsk, true},
	{"SetFeedback", identity.ScopeAsk, true},
	{"Feedback", identity.ScopeAsk, true},
	{"RemoveFeedback", identity.ScopeAsk, true},
	{"AskOptions", identity.ScopeAsk, true},

	{"Search", identity.ScopeSearch, true},
	{"Explain", identity.ScopeSearch, true},
	{"Documents", identity.ScopeSearch, true},
	{"Document", identity.ScopeSearch, true},
	{"FindDocument", identity.ScopeSearch, true},
	{"DocumentVersion", identity.ScopeSearch, true},
	{"DocumentVersions", identity.ScopeSearch, true},
	{"Original", identity.ScopeSearch, true},
	{"PageImage", identity.ScopeSearch, true},
	{"Entries", identity.ScopeSearch, true},
	{"Collections", identity.ScopeSearch, true},
	{"Coverage", identity.ScopeSearch, true},
	{"Suggestions", identity.ScopeSearch, true},
	{"EmbedTexts", identity.ScopeSearch, true},

	{"Ingest", identity.ScopeIngest, true},
	{"PlanIngest", identity.ScopeIngest, true},
	{"Upload", identity.ScopeIngest, true},
	{"UploadURL", identity.ScopeIngest, true},
	{"UploadState", identity.ScopeIngest, true},
	{"Put", identity.ScopeIngest, true},
	{"DeleteDocuments", identity.ScopeIngest, true},
	{"SetCollection", identity.ScopeIngest, true},
	{"FailedDocuments", identity.ScopeIngest, true},
	{"Sources", identity.ScopeIngest, true},
	{"SourceKinds", identity.ScopeIngest, true},
	{"Sync", identity.ScopeIngest, true},
	{"WatchSource", identity.ScopeIngest, true},

	// A source names credentials and files of this machine, and vectors and the names in
	// ACLs are counted over all documents.
	{"AddSource", identity.ScopeAdmin, false},
	{"RemoveSource", identity.ScopeAdmin, false},
	{"Vectors", identity.ScopeAdmin, false},
	{"Embed", identity.ScopeAdmin, false},
	{"UseEncoder", identity.ScopeAdmin, false},
	{"RoleModels", identity.ScopeAdmin, false},
	{"ACLSummary", identity.ScopeAdmin, false},

	{"Reviews", identity.ScopeReview, true},
	{"Review", identity.ScopeReview, true},
	{"Claim", identity.ScopeReview, true},
	{"Release", identity.ScopeReview, true},
	{"Approve", identity.ScopeReview, true},
	{"Edit", identity.ScopeReview, true},
	{"CheckEdit", identity.ScopeReview, true},
	{"Reject", identity.ScopeReview, true},

	{"Policies", identity.ScopeAdmin, false},
	{"SetPolicy", identity.ScopeAdmin, false},
	{"RemovePolicy", identity.ScopeAdmin, false},
	{"TestPolicies", identity.ScopeAdmin, false},
	{"Limits", identity.ScopeAdmin, false},
	{"LimitUsage", identity.ScopeAdmin, false},
	{"SetLimits", identity.ScopeAdmin, false},
	{"RemoveLimits", identity.ScopeAdmin, false},
	{"Stop", identity.ScopeAdmin, false},
	{"Start", identity.ScopeAdmin, false},
	{"Stops", identity.ScopeAdmin, false},
	{"Holds", identity.ScopeAdmin, false},
	{"AddHold", identity.ScopeAdmin, false},
	{"RemoveHold", identity.ScopeAdmin, false},
	{"RetentionPolicies", identity.ScopeAdmin, false},
	{"SetRetention", identity.ScopeAdmin, false},
	{"RemoveRetention", identity.ScopeAdmin, false},
	{"ApplyRetention", identity.ScopeAdmin, false},
	{"Webhooks", identity.ScopeAdmin, false},
	{"SetWebhook", identity.ScopeAdmin, false},
	{"RemoveWebhook", identity.ScopeAdmin, false},
	{"TestWebhook", identity.ScopeAdmin, false},
	{"DeadWebhooks", identity.ScopeAdmin, false},
	{"RetryWebhooks", identity.ScopeAdmin, false},
	{"Canaries", identity.ScopeAdmin, false},
	{"AddCanary", identity.ScopeAdmin, false},
	{"RemoveCanary", identity.ScopeAdmin, false},
	{"EgressRestriction", identity.ScopeAdmin, false},
	{"RestrictEgress", identity.ScopeAdmin, false},
	{"Keys", identity.ScopeAdmin, false},
	{"CreateKey", identity.ScopeAdmin, false},
	{"RotateKey", identity.ScopeAdmin, false},
	{"RevokeKey", identity.ScopeAdmin, false},
	{"Doctor", identity.ScopeAdmin, false},

	{"AuditRuns", identity.ScopeAudit, false},
	{"AuditRun", identity.ScopeAudit, false},
	{"AuditLog", identity.ScopeAudit, false},
	{"AuditSearch", identity.ScopeAudit, false},
	{"AuditProve", identity.ScopeAudit, false},
	{"AuditCheckProof", identity.ScopeAudit, false},
	{"AuditCheckpoints", identity.ScopeAudit, false},
	{"AuditCompare", identity.ScopeAudit, false},
	{"AuditReport", identity.ScopeAudit, false},
	{"AuditCheckpoint", identity.ScopeAudit, false},
	{"StartEvaluation", identity.ScopeAudit, false},
	{"Evaluations", identity.ScopeAudit, false},
	{"Evaluation", identity.ScopeAudit, false},
	{"CancelEvaluation", identity.ScopeAudit, false},
	{"FeedbackList", identity.ScopeAudit, false},
	{"LabelFeedback", identity.ScopeAudit, false},
	{"QuestionSets", identity.ScopeAudit, false},
	{"QuestionSet", identity.ScopeAudit, false},
	{"SetLabels", identity.ScopeAudit, false},
	{"RemoveQuestion", identity.ScopeAudit, false},
}

// checkGrant checks that the credential is still valid.
func (s *Session) checkGrant(ctx context.Context) error {
	now := s.host.config.Now()
	user := s.grant.Principal.User
	local := user == assay.Local().User // that of the command line
	if s.grant.Tenant == "" || user == "" || local && !s.host.current().AllowLocal {
		return assay.ErrUnauthenticated
	}
	if local {
		return nil
	}
	if !s.grant.Expires.IsZero() && !now.Before(s.grant.Expires) {
		return assay.ErrUnauthenticated
	}
	if err := s.host.keys.Recheck(ctx, s.grant); err != nil {
		return err
	}
	recheck := s.host.current().Recheck
	if recheck == nil {
		return nil
	}
	return recheck(ctx, s.grant)
}

// Allows returns assay.ErrForbidden unless a grant has the scope of a method, in some collection if
// the method is divided by collections. Each method checks it too. Doors call Allows before they read a
// request.
func Allows(g identity.Grant, method string) error {
	_, _, err := allows(g, method)
	return err
}

// allows returns the collections in which a grant has the scope of a method.
func allows(g identity.Grant, method string) (names []string, all bool, err error) {
	i := slices.IndexFunc(SessionMethods, func(m SessionMethod) bool { return m.Name == method })
	if i < 0 {
		return nil, false, fmt.Errorf("%s is not in the table of methods: %w", method, assay.ErrForbidden)
	}
	m := SessionMethods[i]
	names, all = g.Collections(m.Scope)
	if !all && (!m.PerCollection || len(names) == 0) {
		return nil, false, fmt.Errorf("it needs the scope %q: %w", m.Scope, assay.ErrForbidden)
	}
	return names, all, nil
}

// A sessionCall is one call of a method that was allowed.
type sessionCall struct {
	engine      *Engine
	principal   assay.Principal // narrowed to collections
	acting      assay.Principal // principal without the roles whose scope was not granted
	collections []string        // in which the scope was granted; nil: all
	done        func()

	// fence, if set, is called with the writer lock held before each change of an upload. An error means
	// that the change is not to be made.
	fence func(context.Context) error
}

// enter checks that a method may be called. The caller must call done.
func (s *Session) enter(ctx context.Context, method string) (*sessionCall, error) {
	if err := s.checkGrant(ctx); err != nil {
		return nil, err
	}
	names, all, err := allows(s.grant, method)
	if err != nil {
		return nil, err
	}
	info, err := s.host.tenant(ctx, s.grant.Tenant)
	if err == nil && info.Identity != s.identity { // it was deleted and created again
		err = fmt.Errorf("tenant %q: %w", s.grant.Tenant, assay.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	c := &sessionCall{principal: s.grant.Principal}
	if !all {
		c.collections, c.principal.Collections = names, names
	}
	c.acting = c.principal
	c.acting.Roles = s.rolesByScope()
	c.engine, c.done, err = s.host.acquire(ctx, info)
	return c, err
}

// rolesByScope returns the roles of the principal without those by which it could act beyond the
// rights of the grant. A token may give a role and leave its scopes out.
func (s *Session) rolesByScope() []string {
	scopes := map[string]identity.Scope{
		string(identity.Admin): identity.ScopeAdmin, string(identity.Auditor): identity.ScopeAudit, string(identity.Reviewer): identity.ScopeReview,
	}
	var roles []string
	for _, role := range s.grant.Principal.Roles {
		names, all := s.grant.Collections(scopes[role])
		if _, acts := scopes[role]; !acts || all || len(names) > 0 {
			roles = append(roles, role)
		}
	}
	return roles
}

// do is call for a method that returns nothing but an error.
func do(ctx context.Context, s *Session, method string, fn func(*sessionCall) error) error {
	_, err := call(ctx, s, method, func(c *sessionCall) (struct{}, error) { return struct{}{}, fn(c) })
	return err
}

// act is do for a method that is logged with the name of its object and a reason. It refuses those that
// are too long for the log.
func act(ctx context.Context, s *Session, method, name, reason string, fn func(*sessionCall) error) error {
	return do(ctx, s, method, func(c *sessionCall) error {
		if err := errors.Join(checkName("object", name), checkReason(reason)); err != nil {
			return err
		}
		return fn(c)
	})
}

// call runs fn as a method.
func call[T any](ctx context.Context, s *Session, method string, fn func(*sessionCall) (T, error)) (T, error) {
	c, err := s.enter(ctx, method)
	if err != nil {
		var none T
		return none, err
	}
	defer c.done()
	return fn(c)
}

// each is call for a method that yields values.
func each[T any](ctx context.Context, s *Session, method string, fn func(*sessionCall) (iter.Seq2[T, error], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		c, err := s.enter(ctx, method)
		if err != nil {
			yield(none, err)
			return
		}
		defer c.done()
		values, err := fn(c)
		if err != nil {
			yield(none, err)
			return
		}
		for v, err := range values {
			if !yield(v, err) {
				return
			}
		}
	}
}

// checkNamed returns assay.ErrNotFound for a collection in which the caller may see no document.
func (c *sessionCall) checkNamed(ctx context.Context, names []string) error {
	if err := checkCollectionNames(names); err != nil {
		return err
	}
	err := c.engine.checkCollections(ctx, c.principal.Access(), names)
	if errors.Is(err, assay.ErrInvalid) {
		return fmt.Errorf("a collection of %q: %w", names, assay.ErrNotFound)
	}
	return err
}

// checkWritable returns assay.ErrForbidden for a collection in which the scope was not granted.
func (c *sessionCall) checkWritable(collection string) error {
	if c.collections != nil && !slices.Contains(c.collections, collection) {
		return fmt.Errorf("collection %q: %w", collection, assay.ErrForbidden)
	}
	return nil
}

// checkTarget returns assay.ErrInvalid for a collection that no query can name, and assay.ErrForbidden
// for one in which the scope was not granted.
func (c *sessionCall) checkTarget(collection string) error {
	if err := checkName("collection", collection); err != nil {
		return err
	}
	return c.checkWritable(collection)
}

// checkRequest checks a request, and sets its review mode to what the rights of the grant allow.
func (c *sessionCall) checkRequest(ctx context.Context, req *Request) error {
	if req.ID != "" { // a run's ID that is taken would be an error, and reveal a run
		return fmt.Errorf("a session does not choose the ID of a run: %w", assay.ErrInvalid)
	}
	if req.Measuring && !isPrivileged(c.acting) { // it would hide the run from the statistics
		return fmt.Errorf("only administrators may ask for an evaluation: %w", assay.ErrForbidden)
	}
	if err := c.checkReviewMode(req); err != nil {
		return err
	}
	return c.checkNamed(ctx, req.Collections)
}

// checkReviewMode refuses a request without a review unless the grant has the scope of
// administrators. Roles alone do not decide.
func (c *sessionCall) checkReviewMode(req *Request) error {
	if isPrivileged(c.acting) {
		return nil
	}
	if req.Review == ReviewNever {
		return fmt.Errorf("only administrators may ask for an answer without a review: %w", assay.ErrForbidden)
	}
	req.Review = cmp.Or(req.Review, ReviewByPolicy)
	return nil
}
