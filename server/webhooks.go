package server

import (
	"context"
	"time"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/webhook"
)

// webhookRoutes are about the messages to other programs.
func webhookRoutes() []Route {
	return []Route{
		route("GET", "/api/v1/webhooks", "webhooks.list", "Webhooks", "List webhooks with the counts of their messages",
			func(ctx context.Context, s *engine.Session, _ none) (webhookList, error) {
				all, err := s.Webhooks(ctx)
				return webhookList{all}, err
			}),
		route("PUT", "/api/v1/webhooks/{name}", "webhooks.set", "SetWebhook", "Set a webhook", setWebhook),
		route("DELETE", "/api/v1/webhooks/{name}", "webhooks.remove", "RemoveWebhook", "Remove a webhook",
			func(ctx context.Context, s *engine.Session, in removeIn) (none, error) {
				return none{}, s.RemoveWebhook(ctx, in.Name, in.Reason)
			}),
		route("POST", "/api/v1/webhooks/{name}/test", "webhooks.test", "TestWebhook", "Send a message to a webhook now",
			func(ctx context.Context, s *engine.Session, in namedIn) (none, error) {
				return none{}, s.TestWebhook(ctx, in.Name)
			}),
		route("GET", "/api/v1/webhook-messages", "webhooks.dead", "DeadWebhooks", "List the messages that are not sent any more", deadWebhooks),
		route("POST", "/api/v1/webhook-messages/retry", "webhooks.retry", "RetryWebhooks", "Send dead messages again", retryWebhooks),
	}
}

type webhookList struct {
	Webhooks []engine.WebhookState `json:"webhooks"`
}

type setWebhookIn struct {
	Name   string         `path:"name"`
	Reason string         `query:"reason"` // for the audit log
	Body   webhook.Target `body:"application/json"`
}

func setWebhook(ctx context.Context, s *engine.Session, in setWebhookIn) (none, error) {
	return none{}, s.SetWebhook(ctx, in.Name, in.Body, in.Reason)
}

type deadList struct {
	Messages []deadMessage `json:"messages"`
}

// A deadMessage is a message that is not sent any more.
type deadMessage struct {
	ID       string    `json:"id"`
	Act      int64     `json:"act"`  // its sequence in the audit log
	Kind     string    `json:"kind"` // of the act
	Webhook  string    `json:"webhook"`
	Made     time.Time `json:"made"`
	Attempts int       `json:"attempts"`
	Error    string    `json:"error"` // of the last attempt
}

func deadWebhooks(ctx context.Context, s *engine.Session, _ none) (list deadList, err error) {
	all, err := s.DeadWebhooks(ctx)
	for _, m := range all {
		list.Messages = append(list.Messages, deadMessage{m.ID, m.Act, m.Kind, m.Target, m.Made, m.Attempts, m.Error})
	}
	return list, err
}

type retryIn struct {
	Body retrySelection `body:"application/json"`
}

// A retrySelection names dead messages.
type retrySelection struct {
	IDs []string `json:"ids,omitempty"` // none: all
}

type retried struct {
	Retried int `json:"retried"` // messages
}

func retryWebhooks(ctx context.Context, s *engine.Session, in retryIn) (retried, error) {
	n, err := s.RetryWebhooks(ctx, in.Body.IDs...)
	return retried{n}, err
}
