package engine

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// The kinds of alarm. The act in the audit log has the kind and the participle: "canary.alarm",
// "egress.refused".
const (
	AlarmCanary = "canary" // the text of a canary document appeared where it must not
	AlarmEgress = "egress" // a connection was refused
)

// An Alarm is something that an administrator should know at once.
type Alarm struct {
	Kind    string          `json:"kind"`          // AlarmCanary or AlarmEgress
	Subject string          `json:"subject"`       // name of the canary, or purpose of the connection
	Run     string          `json:"run,omitempty"` // empty: outside of a run
	Detail  json.RawMessage `json:"detail"`        // never holds the text of a document
}

// alarm appends an alarm to the tenant's audit log and calls Config.Alarm. It does so even if ctx
// has ended.
func (e *Engine) alarm(ctx context.Context, a Alarm) error {
	ctx = context.WithoutCancel(ctx)
	kind := map[string]string{AlarmCanary: "canary.alarm", AlarmEgress: "egress.refused"}[a.Kind]
	detail, err := alarmDetail(a)
	if err != nil {
		return err
	}
	act := store.Act{Kind: kind, Subject: a.Subject, Detail: detail}
	err = ignoreReadOnly(e.tenant.Audit().Append(ctx, act))
	if e.config.Alarm != nil {
		e.config.Alarm(ctx, a)
	}
	return err
}

// alarmDetail returns the detail of an alarm's act.
func alarmDetail(a Alarm) (json.RawMessage, error) {
	return json.Marshal(struct {
		Run    string          `json:"run,omitempty"`
		Detail json.RawMessage `json:"detail"`
	}{a.Run, a.Detail})
}

// ignoreReadOnly returns nil for assay.ErrReadOnly: what cannot be logged is refused all the same.
func ignoreReadOnly(err error) error {
	if errors.Is(err, assay.ErrReadOnly) {
		return nil
	}
	return err
}
