package server

import (
	"context"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/limit"
)

// limitRoutes are about limits and their use.
func limitRoutes() []Route {
	return []Route{
		route("GET", "/api/v1/limits", "limits.list", "Limits", "List limits by subject",
			func(ctx context.Context, s *engine.Session, _ none) (limitTable, error) {
				table, err := s.Limits(ctx)
				return limitTable{table}, err
			}),
		route("PATCH", "/api/v1/limits/{subject}", "limits.set", "SetLimits", "Change limits of a subject", setLimits),
		route("DELETE", "/api/v1/limits/{subject}", "limits.remove", "RemoveLimits", "Remove all limits of a subject", removeLimits),
		route("GET", "/api/v1/usage", "limits.usage", "LimitUsage", "Show how far limits are used up", usage),
	}
}

type limitTable struct {
	Subjects limit.Table `json:"subjects"` // the limits of each
}

type setLimitsIn struct {
	Subject string       `path:"subject"` // tenant, users, keys, user:NAME or key:ID
	Reason  string       `query:"reason"` // for the audit log
	Body    limit.Limits `body:"application/json"`
}

func setLimits(ctx context.Context, s *engine.Session, in setLimitsIn) (none, error) {
	return none{}, s.SetLimits(ctx, in.Subject, in.Body, in.Reason)
}

type removeLimitsIn struct {
	Subject string `path:"subject"` // tenant, users, keys, user:NAME or key:ID
	Reason  string `query:"reason"` // for the audit log
}

func removeLimits(ctx context.Context, s *engine.Session, in removeLimitsIn) (none, error) {
	return none{}, s.RemoveLimits(ctx, in.Subject, in.Reason)
}

type usageIn struct {
	Subjects []string `query:"subject"` // only these; none: all
}

type useList struct {
	Uses []engine.LimitUse `json:"uses"`
}

func usage(ctx context.Context, s *engine.Session, in usageIn) (useList, error) {
	uses, err := s.LimitUsage(ctx, in.Subjects...)
	return useList{uses}, err
}
