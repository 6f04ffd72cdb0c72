package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/audit"
	"github.com/assay-rag/assay/governance"
	"github.com/assay-rag/assay/internal/journal"
	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/webhook"
)

// EraseRuns is Engine.EraseRuns. It counts no versions, which may be of documents that the principal
// may not see.
func (s *Session) EraseRuns(ctx context.Context, ids []string, reason string, related bool) (Erasure, error) {
	return call(ctx, s, "EraseRuns", func(c *sessionCall) (Erasure, error) {
		if err := checkReason(reason); err != nil {
			return Erasure{}, err
		}
		done, err := c.engine.EraseRuns(ctx, c.acting, ids, reason, related)
		done.Versions, done.Writing = 0, false
		return done, err
	})
}

// Prove is Engine.Prove for a run of the principal.
func (s *Session) Prove(ctx context.Context, id string, checkpoint audit.Signed) (audit.Proof, error) {
	return call(ctx, s, "Prove", func(c *sessionCall) (audit.Proof, error) {
		own := c.principal
		own.Roles = nil
		return c.engine.Prove(ctx, own, id, checkpoint)
	})
}

// AuditProve is Engine.Prove for a run of any principal.
func (s *Session) AuditProve(ctx context.Context, id string, checkpoint audit.Signed) (audit.Proof, error) {
	return call(ctx, s, "AuditProve", func(c *sessionCall) (audit.Proof, error) {
		return c.engine.Prove(ctx, c.acting, id, checkpoint)
	})
}

// AuditReport is Engine.GovernanceReport.
func (s *Session) AuditReport(ctx context.Context, o governance.Options) (governance.Report, error) {
	return call(ctx, s, "AuditReport", func(c *sessionCall) (governance.Report, error) {
		o.Tenant = s.grant.Tenant
		return c.engine.GovernanceReport(ctx, o)
	})
}

// An AuditEntry is an entry of the tenant's audit log without the text of documents: records have no
// payload, and acts on documents, runs and canaries, which name documents, no detail.
type AuditEntry struct {
	Sequence int64            `json:"sequence"`
	Time     time.Time        `json:"time"`
	Kind     string           `json:"kind"` // of the act, or "record"
	Subject  string           `json:"subject,omitempty"`
	Run      string           `json:"run,omitempty"`
	Step     string           `json:"step,omitempty"`
	Actor    *assay.Principal `json:"actor,omitempty"`
	Reason   string           `json:"reason,omitempty"`
	Detail   json.RawMessage  `json:"detail,omitempty"`
	Erased   bool             `json:"erased,omitempty"`
}

// MaxAuditEntries is the most entries that AuditLog returns.
const MaxAuditEntries = 10_000

// AuditLog returns at most limit entries of the tenant's audit log after a sequence, oldest first.
// The limit is 1 to MaxAuditEntries.
func (s *Session) AuditLog(ctx context.Context, after int64, limit int) ([]AuditEntry, error) {
	return call(ctx, s, "AuditLog", func(c *sessionCall) ([]AuditEntry, error) {
		if after < 0 || limit < 1 || limit > MaxAuditEntries {
			return nil, fmt.Errorf("entries after %d, at most %d: want a sequence and 1 to %d: %w", after, limit, MaxAuditEntries, assay.ErrInvalid)
		}
		log := c.engine.tenant.Audit()
		size, err := log.Size(ctx)
		if err != nil {
			return nil, err
		}
		entries := []AuditEntry{}
		if after >= size {
			return entries, nil
		}
		for e, err := range log.Entries(ctx, after, min(size, after+int64(limit))) {
			if err != nil {
				return nil, err
			}
			entry, err := auditEntry(e)
			if err != nil {
				return nil, fmt.Errorf("entry %d: %w", e.Sequence, err)
			}
			entries = append(entries, entry)
		}
		return entries, nil
	})
}

func auditEntry(e store.LogEntry) (AuditEntry, error) {
	if !journal.IsAct(e.Header) {
		h, err := journal.OpenHeader(e.Header, e.Leaf)
		return AuditEntry{Sequence: e.Sequence, Time: h.Time, Kind: "record", Run: h.Run, Step: h.Path, Erased: e.Payload == nil}, err
	}
	act, err := journal.OpenAct(e.Header, e.Payload, e.Salt, e.Leaf)
	if err != nil {
		return AuditEntry{}, err
	}
	entry := AuditEntry{Sequence: e.Sequence, Time: act.Time, Kind: act.Kind, Subject: act.Subject, Run: e.Run, Reason: act.Reason, Detail: act.Detail, Erased: e.Payload == nil}
	if act.Actor.User != "" {
		entry.Actor = &act.Actor
	}
	for _, object := range []string{"content.", "run.", "canary."} { // they name documents
		if strings.HasPrefix(act.Kind, object) {
			entry.Detail = nil
		}
	}
	return entry, nil
}

// Holds is Engine.Holds.
func (s *Session) Holds(ctx context.Context) ([]store.Hold, error) {
	return call(ctx, s, "Holds", func(c *sessionCall) ([]store.Hold, error) { return c.engine.Holds(ctx) })
}

// AddHold is Engine.AddHold.
func (s *Session) AddHold(ctx context.Context, h store.Hold) error {
	return act(ctx, s, "AddHold", h.Name, h.Reason, func(c *sessionCall) error { return c.engine.AddHold(ctx, c.acting, h) })
}

// RemoveHold is Engine.RemoveHold.
func (s *Session) RemoveHold(ctx context.Context, name, reason string) error {
	return act(ctx, s, "RemoveHold", name, reason, func(c *sessionCall) error { return c.engine.RemoveHold(ctx, c.acting, name, reason) })
}

// RetentionPolicies is Engine.RetentionPolicies.
func (s *Session) RetentionPolicies(ctx context.Context) ([]RetentionPolicy, error) {
	return call(ctx, s, "RetentionPolicies", func(c *sessionCall) ([]RetentionPolicy, error) { return c.engine.RetentionPolicies(ctx) })
}

// SetRetention is Engine.SetRetention.
func (s *Session) SetRetention(ctx context.Context, kind string, days int, reason string) error {
	return act(ctx, s, "SetRetention", kind, reason, func(c *sessionCall) error { return c.engine.SetRetention(ctx, c.acting, kind, days, reason) })
}

// RemoveRetention is Engine.RemoveRetention.
func (s *Session) RemoveRetention(ctx context.Context, kind, reason string) error {
	return act(ctx, s, "RemoveRetention", kind, reason, func(c *sessionCall) error { return c.engine.RemoveRetention(ctx, c.acting, kind, reason) })
}

// ApplyRetention is Engine.ApplyRetention.
func (s *Session) ApplyRetention(ctx context.Context, dry bool) (Retained, error) {
	return call(ctx, s, "ApplyRetention", func(c *sessionCall) (Retained, error) { return c.engine.ApplyRetention(ctx, c.acting, dry) })
}

// Limits is Engine.Limits.
func (s *Session) Limits(ctx context.Context) (limit.Table, error) {
	return call(ctx, s, "Limits", func(c *sessionCall) (limit.Table, error) { return c.engine.Limits(ctx) })
}

// LimitUsage is Engine.LimitUsage.
func (s *Session) LimitUsage(ctx context.Context, subjects ...string) ([]LimitUse, error) {
	return call(ctx, s, "LimitUsage", func(c *sessionCall) ([]LimitUse, error) { return c.engine.LimitUsage(ctx, subjects...) })
}

// SetLimits is Engine.SetLimits.
func (s *Session) SetLimits(ctx context.Context, subject string, change limit.Limits, reason string) error {
	return act(ctx, s, "SetLimits", subject, reason, func(c *sessionCall) error { return c.engine.SetLimits(ctx, c.acting, subject, change, reason) })
}

// RemoveLimits is Engine.RemoveLimits.
func (s *Session) RemoveLimits(ctx context.Context, subject, reason string) error {
	return act(ctx, s, "RemoveLimits", subject, reason, func(c *sessionCall) error { return c.engine.RemoveLimits(ctx, c.acting, subject, reason) })
}

// Stop is Engine.Stop for the session's tenant.
func (s *Session) Stop(ctx context.Context, reason string) error {
	return act(ctx, s, "Stop", "", reason, func(c *sessionCall) error { return c.engine.Stop(ctx, c.acting, false, reason) })
}

// Start is Engine.Start for the session's tenant. It does not lift a stop of all tenants.
func (s *Session) Start(ctx context.Context, reason string) error {
	return act(ctx, s, "Start", "", reason, func(c *sessionCall) error { return c.engine.Start(ctx, c.acting, false, reason) })
}

// Stops is Engine.Stops. It does not say who stopped all tenants, and why.
func (s *Session) Stops(ctx context.Context) ([]Stop, error) {
	return call(ctx, s, "Stops", func(c *sessionCall) ([]Stop, error) {
		all, err := c.engine.Stops(ctx)
		shown := []Stop{}
		for _, stop := range all {
			if stop.All {
				stop.By, stop.Reason = "", ""
			}
			shown = append(shown, stop)
		}
		return shown, err
	})
}

// checkTarget checks that a webhook names only what sessions of the tenant may use: its signing
// secrets and its address could be read from any file, variable or program of this machine.
func (s *Session) checkTarget(t webhook.Target) error {
	allow := s.host.current().AllowCredential
	for _, reference := range append([]string{t.URL}, t.Secrets...) {
		if strings.HasPrefix(reference, "https://") { // http is for this machine
			continue
		}
		if allow == nil || !allow(s.grant.Tenant, reference) {
			return fmt.Errorf("sessions may not use this credential of the machine: %w", assay.ErrForbidden)
		}
	}
	return nil
}

// SetWebhook is Engine.SetWebhook. The credentials that it names must be allowed by
// HostConfig.AllowCredential.
func (s *Session) SetWebhook(ctx context.Context, name string, t webhook.Target, reason string) error {
	return act(ctx, s, "SetWebhook", name, reason, func(c *sessionCall) error {
		if err := t.Check(); err != nil {
			return err
		}
		if err := s.checkTarget(t); err != nil {
			return err
		}
		return c.engine.SetWebhook(ctx, c.acting, name, t, reason)
	})
}

// RemoveWebhook is Engine.RemoveWebhook.
func (s *Session) RemoveWebhook(ctx context.Context, name, reason string) error {
	return act(ctx, s, "RemoveWebhook", name, reason, func(c *sessionCall) error { return c.engine.RemoveWebhook(ctx, c.acting, name, reason) })
}

// Webhooks is Engine.Webhooks.
func (s *Session) Webhooks(ctx context.Context) ([]WebhookState, error) {
	return call(ctx, s, "Webhooks", func(c *sessionCall) ([]WebhookState, error) { return c.engine.Webhooks(ctx) })
}

// TestWebhook is Engine.TestWebhook.
func (s *Session) TestWebhook(ctx context.Context, name string) error {
	return do(ctx, s, "TestWebhook", func(c *sessionCall) error { return c.engine.TestWebhook(ctx, name) })
}

// DeadWebhooks is Engine.DeadWebhooks.
func (s *Session) DeadWebhooks(ctx context.Context) ([]store.Message, error) {
	return call(ctx, s, "DeadWebhooks", func(c *sessionCall) ([]store.Message, error) { return c.engine.DeadWebhooks(ctx) })
}

// RetryWebhooks is Engine.RetryWebhooks.
func (s *Session) RetryWebhooks(ctx context.Context, ids ...string) (int, error) {
	return call(ctx, s, "RetryWebhooks", func(c *sessionCall) (int, error) { return c.engine.RetryWebhooks(ctx, ids...) })
}

// AddCanary is Engine.AddCanary. The text is generated: answers of every tenant with the text of a
// canary are withheld, so a tenant that chose the words could withhold the answers of others.
func (s *Session) AddCanary(ctx context.Context, n NewCanary) (canary Canary, text string, err error) {
	err = do(ctx, s, "AddCanary", func(c *sessionCall) error {
		if n.Text != "" {
			return fmt.Errorf("the text of a canary is generated: %w", assay.ErrInvalid)
		}
		canary, text, err = c.engine.AddCanary(ctx, c.acting, n)
		return err
	})
	return canary, text, err
}

// Canaries is Engine.Canaries.
func (s *Session) Canaries(ctx context.Context) ([]Canary, error) {
	return call(ctx, s, "Canaries", func(c *sessionCall) ([]Canary, error) { return c.engine.Canaries(ctx) })
}

// RemoveCanary is Engine.RemoveCanary.
func (s *Session) RemoveCanary(ctx context.Context, name, reason string) error {
	return act(ctx, s, "RemoveCanary", name, reason, func(c *sessionCall) error { return c.engine.RemoveCanary(ctx, c.acting, name, reason) })
}

// RestrictEgress is Engine.RestrictEgress.
func (s *Session) RestrictEgress(ctx context.Context, r EgressRules, reason string) error {
	return act(ctx, s, "RestrictEgress", "", reason, func(c *sessionCall) error { return c.engine.RestrictEgress(ctx, c.acting, r, reason) })
}

// EgressRestriction is Engine.EgressRestriction.
func (s *Session) EgressRestriction(ctx context.Context) (EgressRules, error) {
	return call(ctx, s, "EgressRestriction", func(c *sessionCall) (EgressRules, error) { return c.engine.EgressRestriction(ctx) })
}

// Doctor is the function Doctor for the data of the tenant. It checks neither the disk nor the log of
// the store, and does not say who stopped all tenants, and why.
func (s *Session) Doctor(ctx context.Context) ([]Check, error) {
	return call(ctx, s, "Doctor", func(*sessionCall) ([]Check, error) {
		config := s.host.current().Config
		config.Store, config.Dir, config.OpenStore = s.host.store, "", nil
		x := &examination{ctx: ctx, config: config, name: s.grant.Tenant, shared: true}
		x.store()
		x.reader()
		return x.checks, ctx.Err()
	})
}
