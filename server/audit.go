package server

import (
	"context"

	"github.com/assay-rag/assay/audit"
	"github.com/assay-rag/assay/engine"
)

// auditRoutes are about the audit log and the runs of all users.
func auditRoutes() []Route {
	return []Route{
		route("GET", "/api/v1/audit/log", "audit.log", "AuditLog", "Read the audit log", auditLog),
		route("GET", "/api/v1/audit/runs", "audit.runs", "AuditRuns", "List the runs of all users, without texts of documents", auditRuns),
		route("GET", "/api/v1/audit/runs/{id}", "audit.run", "AuditRun", "Show a run of any user, without texts of documents",
			func(ctx context.Context, s *engine.Session, in auditRunIn) (engine.AuditedRun, error) {
				return s.AuditRun(ctx, in.ID)
			}),
		route("POST", "/api/v1/audit/runs/{id}/proof", "audit.prove", "AuditProve", "Prove a run of any user by a signed checkpoint", auditProve),
		route("GET", "/api/v1/audit/checkpoint", "audit.checkpoint", "AuditCheckpoint", "Show the newest signed checkpoint",
			func(ctx context.Context, s *engine.Session, _ none) (checkpointView, error) {
				signed, err := s.AuditCheckpoint(ctx, "", "")
				return showCheckpoint(signed), err
			}),
	}
}

type auditLogIn struct {
	After int `query:"after"` // the sequence of the last entry that was read; 0: from the first
	Limit int `query:"limit"` // at most; 0: 100
}

// An auditPage is a page of the audit log.
type auditPage struct {
	Entries []engine.AuditEntry `json:"entries"`
	Next    int64               `json:"next,omitempty"` // after, for the next page; 0: there is none now
}

func auditLog(ctx context.Context, s *engine.Session, in auditLogIn) (auditPage, error) {
	const usual = 100
	if in.Limit == 0 {
		in.Limit = usual
	}
	entries, err := s.AuditLog(ctx, int64(in.After), in.Limit)
	page := auditPage{Entries: entries}
	if len(entries) == in.Limit {
		page.Next = int64(in.After + in.Limit)
	}
	return page, err
}

type auditRunsIn struct {
	Limit int `query:"limit"` // at most; 0: all
}

type auditedRunList struct {
	Runs []engine.AuditedRun `json:"runs"`
}

func auditRuns(ctx context.Context, s *engine.Session, in auditRunsIn) (auditedRunList, error) {
	if in.Limit < 0 {
		return auditedRunList{}, invalid("limit is %d", in.Limit)
	}
	all, err := s.AuditRuns(ctx, in.Limit)
	return auditedRunList{all}, err
}

type auditRunIn struct {
	ID string `path:"id"`
}

type auditProveIn struct {
	ID   string        `path:"id"`
	Body checkpointRef `body:"application/json"`
}

// A checkpointRef names the checkpoint of a proof.
type checkpointRef struct {
	Checkpoint string `json:"checkpoint,omitempty"` // a signed note; empty: the newest that is published
	Key        string `json:"key,omitempty"`        // verifier key of its signature; empty: the log's
}

func auditProve(ctx context.Context, s *engine.Session, in auditProveIn) (audit.Proof, error) {
	signed, err := s.AuditCheckpoint(ctx, in.Body.Checkpoint, in.Body.Key)
	if err != nil {
		return audit.Proof{}, err
	}
	return s.AuditProve(ctx, in.ID, signed)
}

// A checkpointView is a signed checkpoint of the audit log.
type checkpointView struct {
	Origin string   `json:"origin"`
	Size   int64    `json:"size"` // entries of the log under it
	Note   string   `json:"note"` // the signed note (C2SP tlog-checkpoint)
	Keys   []string `json:"keys"` // verifier keys of its signatures
}

func showCheckpoint(s audit.Signed) checkpointView {
	return checkpointView{s.Origin, s.Size, string(s.Note), s.Keys}
}
