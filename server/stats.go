package server

import (
	"context"
	"fmt"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/stats"
)

// statsRoutes are about the quality of answers and the state of the data.
func statsRoutes() []Route {
	return []Route{
		route("GET", "/api/v1/stats", "stats.show", "Observations", "Report on the quality, latency and cost of one's own runs", showStats),
		route("GET", "/api/v1/doctor", "doctor.check", "Doctor", "Check the data", doctor),
	}
}

func invalid(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, assay.ErrInvalid)...)
}

type statsIn struct {
	Since  time.Time `query:"since"`          // only runs after this time
	Recent int       `query:"recent_seconds"` // the span of the recent runs; 0: a day
	Window int       `query:"window_seconds"` // the span of the runs that they are compared with; 0: a week
}

func showStats(ctx context.Context, s *engine.Session, in statsIn) (report stats.Report, err error) {
	o := stats.Options{Now: time.Now()}
	if o.Recent, err = seconds("recent_seconds", in.Recent); err != nil {
		return report, err
	}
	if o.Window, err = seconds("window_seconds", in.Window); err != nil {
		return report, err
	}
	all, err := s.Observations(ctx, in.Since)
	if err != nil {
		return report, err
	}
	return stats.Of(all, o), nil
}

type checkList struct {
	OK     bool           `json:"ok"` // all of them are
	Checks []engine.Check `json:"checks"`
}

func doctor(ctx context.Context, s *engine.Session, _ none) (checkList, error) {
	checks, err := s.Doctor(ctx)
	list := checkList{OK: true, Checks: checks}
	for _, c := range checks {
		list.OK = list.OK && c.OK
	}
	return list, err
}
