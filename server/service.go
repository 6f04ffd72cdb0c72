package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// The paths of the routes that tell how the server is doing, and the prefix of their names.
const (
	healthPath    = "/healthz"
	readyPath     = "/readyz"
	servicePrefix = "service."
)

// serviceRoutes are about the server itself and need no credential.
func serviceRoutes() []Route {
	return []Route{
		route("GET", healthPath, servicePrefix+"health", "", "Whether the process is alive",
			func(context.Context, *engine.Session, none) (Health, error) { return Health{"alive"}, nil }),
		raw("GET", readyPath, servicePrefix+"ready", "", "Whether the server can answer requests", ready).
			with(func(r *Route) { r.Out = reflect.TypeFor[Readiness]() }),
	}
}

// Health is the response of /healthz.
type Health struct {
	Status string `json:"status"` // alive
}

// Readiness is the response of /readyz. If a check fails, the response has the status 503 and names
// the check in its detail.
type Readiness struct {
	Status string            `json:"status"` // ready, or not ready
	Checks map[string]string `json:"checks"` // by name: ok, or failed
}

// The results of checks. Why a check failed is only logged.
const (
	passed = "ok"
	failed = "failed"
)

// readyFor is how long the result of the checks is used again, because everyone may ask for it.
const readyFor = time.Second

// checkTime is how long the checks may take.
const checkTime = 3 * time.Second

// readiness holds the last result of the checks.
type readiness struct {
	mu   sync.Mutex
	last Readiness
	at   time.Time
}

// ready answers whether the server can answer requests.
func ready(x *exchange, _ none) error {
	result := x.server.Ready(x.r.Context())
	if result.Status == "ready" {
		return x.reply(result)
	}
	var names []string
	for name, outcome := range result.Checks {
		if outcome == failed {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return fmt.Errorf("not ready: %s failed: %w", strings.Join(names, ", "), assay.ErrBusy)
}

// Ready checks whether the server can answer requests: it is not shutting down, its store can be read
// and written, and the default tenant can be searched.
func (s *Server) Ready(ctx context.Context) Readiness {
	if s.draining() {
		return Readiness{Status: "not ready", Checks: map[string]string{"shutdown": failed}}
	}
	r := &s.readiness
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.at.IsZero() && time.Since(r.at) < readyFor {
		return r.last
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTime)
	defer cancel()
	result := Readiness{Status: "ready", Checks: map[string]string{"shutdown": passed}}
	for _, c := range s.config.Host.Check(ctx) {
		result.Checks[c.Name] = passed
		if c.Err != nil {
			result.Checks[c.Name] = failed
			result.Status = "not ready"
			if r.last.Checks[c.Name] != failed {
				level := slog.LevelWarn
				if errors.Is(c.Err, assay.ErrBusy) { // as at each start, until the index is open
					level = slog.LevelInfo
				}
				s.config.Log.Log(ctx, level, "not ready", "check", c.Name, "error", c.Err)
			}
		}
	}
	r.last, r.at = result, time.Now()
	return result
}
