package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/assay-rag/assay/cmd/assay/internal/config"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/provider/redis"
)

// A sharedRedis is the Redis server of this process. It is opened once, and stays when the
// configuration is read again.
type sharedRedis struct {
	mu     sync.Mutex
	server *redis.Server // nil: none was configured
	report func(error)   // see redis.Config.Report
}

// open returns the configured server; nil: there is none.
func (r *sharedRedis) open(c config.Redis) (*redis.Server, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.server != nil || c.URL == "" {
		return r.server, nil
	}
	var err error
	r.server, err = redis.Open(redis.Config{URL: c.URL, Password: c.Password.Reveal(), Key: c.Key.Reveal(), Report: r.report})
	return r.server, err
}

// close closes the connections.
func (r *sharedRedis) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.server == nil {
		return nil
	}
	return r.server.Close()
}

// warnRedis prints a report of the Redis server.
func (a *app) warnRedis(err error) {
	if err != nil {
		fmt.Fprintln(a.stderr, "warning:", err)
	}
}

// logRedis logs a report of the Redis server.
func (s *service) logRedis(err error) {
	if err == nil {
		s.log.Info("Redis answers again")
		return
	}
	s.log.Warn("Redis", "error", err)
}

// useRedis gives an engine the limits and vectors that servers share.
func (a *app) useRedis(configured *config.Config, c *engine.Config) error {
	server, err := a.redis.open(configured.Redis)
	if err == nil && server != nil {
		c.SharedLimits, c.SharedVectors = server, server
	}
	return err
}

// checkRedis calls the configured Redis server.
func (a *app) checkRedis(ctx context.Context, offline bool) []config.Check {
	set, err := a.settings() // checkModels reports the error
	if err != nil || set.Config().Redis.URL == "" {
		return nil
	}
	c := set.Config().Redis
	check := config.Check{Name: "Redis", OK: true, Detail: c.URL + ": shares " + c.Shares()}
	if offline {
		check.Detail += ", not called"
		return []config.Check{check}
	}
	server, err := a.redis.open(c)
	var about string
	if err == nil {
		about, err = server.Check(ctx)
	}
	if err != nil {
		check.OK, check.Err, check.Detail = false, err, c.URL+": "+err.Error()
		check.Hint = "check that the server runs, and redis.url, the user and redis.password; requests with a limit per second or minute are refused meanwhile"
		return []config.Check{check}
	}
	check.Detail += "; " + about
	return []config.Check{check}
}
