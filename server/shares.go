package server

import (
	"context"
	"time"

	"github.com/assay-rag/assay/engine"
)

// shareRoutes are about links to answers.
func shareRoutes() []Route {
	return []Route{
		route("POST", "/api/v1/runs/{id}/shares", "runs.share", "Share", "Make a link to the answer of a run", share),
		route("GET", "/api/v1/runs/{id}/shares", "runs.shares", "Shares", "List the links to the answer of a run, newest first",
			func(ctx context.Context, s *engine.Session, in runIn) (shareList, error) {
				all, err := s.Shares(ctx, in.ID)
				return shareList{all}, err
			}),
		route("DELETE", "/api/v1/runs/{id}/shares/{share}", "runs.unshare", "Unshare", "Revoke a link to the answer of a run",
			func(ctx context.Context, s *engine.Session, in unshareIn) (none, error) {
				return none{}, s.Unshare(ctx, in.ID, in.Share)
			}),
		route("GET", "/api/v1/shared/{token}", "shared.show", "SharedRun", "Show the answer that a link opens, if the caller may see every document that it rests on",
			func(ctx context.Context, s *engine.Session, in sharedIn) (engine.SharedRun, error) {
				return s.SharedRun(ctx, in.Token)
			}),
	}
}

type shareIn struct {
	ID   string `path:"id"`
	Days int    `query:"days"` // until it expires; 0: 30
}

type shareList struct {
	Shares []engine.Share `json:"shares"`
}

type unshareIn struct {
	ID    string `path:"id"`
	Share string `path:"share"`
}

type sharedIn struct {
	Token string `path:"token"`
}

// maxShareDays is the longest life of a link.
const maxShareDays = int(engine.MaxShareLife / (24 * time.Hour))

func share(ctx context.Context, s *engine.Session, in shareIn) (engine.NewShare, error) {
	if in.Days < 0 || in.Days > maxShareDays {
		return engine.NewShare{}, invalid("days is %d, want 0 to %d", in.Days, maxShareDays)
	}
	return s.Share(ctx, in.ID, time.Duration(in.Days)*24*time.Hour)
}
