package engine

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/webhook"
)

// Webhooks configure the delivery of webhooks.
type Webhooks struct {
	// Client sends the messages; nil: they wait until another process delivers them.
	Client *http.Client

	// Background delivers messages from Open to Close. Programs that do one thing and exit leave
	// that to a longer-lived one.
	Background bool

	// Report is called after each delivery in the background that did something or failed; it may be
	// nil.
	Report func(webhook.Report, error)
}

// webhookPoll is how often a deliverer in the background looks for new acts.
const webhookPoll = 2 * time.Second

// A WebhookState is a target with the counts of its messages.
type WebhookState struct {
	webhook.Named
	store.TargetCount
}

// SetWebhook stores a target under a name and replaces one of that name; see webhook.Add.
func (e *Engine) SetWebhook(ctx context.Context, principal assay.Principal, name string, t webhook.Target, reason string) error {
	return webhook.Add(ctx, e.tenant, name, t, principal, reason)
}

// RemoveWebhook removes a target and the messages that wait for it.
func (e *Engine) RemoveWebhook(ctx context.Context, principal assay.Principal, name, reason string) error {
	return webhook.Remove(ctx, e.tenant, name, principal, reason)
}

// Webhooks returns the targets by name.
func (e *Engine) Webhooks(ctx context.Context) ([]WebhookState, error) {
	targets, err := webhook.Targets(ctx, e.tenant.Registry())
	if err != nil {
		return nil, err
	}
	counts, err := e.tenant.Outbox().Targets(ctx)
	if err != nil {
		return nil, err
	}
	byName := map[string]store.TargetCount{}
	for _, c := range counts {
		byName[c.Target] = c
	}
	var all []WebhookState
	for _, t := range targets {
		all = append(all, WebhookState{t, byName[t.Name]})
	}
	return all, nil
}

// TestWebhook sends one message to a target now. The error is assay.ErrUnavailable if the receiver
// does not accept it.
func (e *Engine) TestWebhook(ctx context.Context, name string) error {
	d, err := e.deliverer()
	if err != nil {
		return err
	}
	return d.Test(e.outgoing(ctx), name)
}

// DeliverWebhooks makes the messages of new acts and sends those that are due. A receiver that fails is
// no error. The error is assay.ErrLocked while another process delivers.
func (e *Engine) DeliverWebhooks(ctx context.Context) (webhook.Report, error) {
	d, err := e.deliverer()
	if err != nil {
		return webhook.Report{}, err
	}
	return d.Deliver(e.outgoing(ctx))
}

// WatchWebhooks delivers until ctx ends. See webhook.Deliverer.Watch.
func (e *Engine) WatchWebhooks(ctx context.Context, report func(webhook.Report, error)) error {
	d, err := e.deliverer()
	if err != nil {
		return err
	}
	return d.Watch(e.outgoing(ctx), webhookPoll, report)
}

// DeadWebhooks returns the messages that are not sent any more, in the order of their acts.
func (e *Engine) DeadWebhooks(ctx context.Context) ([]store.Message, error) {
	return e.tenant.Outbox().Dead(ctx)
}

// RetryWebhooks makes dead messages due again and returns their number. No ID: all. The error is
// assay.ErrNotFound if one of the IDs is of no dead message.
func (e *Engine) RetryWebhooks(ctx context.Context, ids ...string) (int, error) {
	return e.tenant.Outbox().Retry(ctx, ids...)
}

func (e *Engine) deliverer() (*webhook.Deliverer, error) {
	if e.config.Webhooks.Client == nil {
		return nil, fmt.Errorf("deliver webhooks: the engine has no client for them: %w", assay.ErrInvalid)
	}
	return &webhook.Deliverer{
		Tenant: e.tenant, Client: e.config.Webhooks.Client, Credential: webhook.Resolve(e.config.Getenv), Now: e.config.Now,
	}, nil
}

// startWebhooks starts the delivery in the background if it is configured. stop ends it.
func (e *Engine) startWebhooks() (stop func()) {
	c := e.config.Webhooks
	if c.Client == nil || !c.Background || e.tenant.ReadOnly() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { _ = e.WatchWebhooks(ctx, c.Report) }) // it ends with ctx only
	return func() {
		cancel()
		done.Wait()
	}
}
