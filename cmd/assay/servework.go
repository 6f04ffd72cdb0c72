package main

import (
	"context"
	"errors"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/assay-rag/assay"
)

// How often serve does work that no request starts.
const (
	housekeepEvery   = 5 * time.Minute
	certificateEvery = 10 * time.Second
	resumeEvery      = 3 * time.Second
)

// startBackground starts the work that no request starts. stop waits for it.
func (s *service) startBackground(ctx context.Context) {
	s.work.Go(func() { s.handler.Ready(ctx) }) // opens the index
	resume := func() {
		if err := s.host.ResumeInterrupted(ctx); err != nil && ctx.Err() == nil {
			s.log.Error("interrupted runs are not resumed", "error", err)
		}
	}
	if s.settings.at.remote.Remote() { // other servers may die
		s.every(ctx, resumeEvery, resume)
	} else {
		s.work.Go(resume)
	}
	s.every(ctx, housekeepEvery, func() {
		if err := s.host.Housekeep(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, assay.ErrReadOnly) {
			s.log.Warn("housekeeping", "error", err)
		}
	})
	if s.certificates != nil {
		failing := false
		s.every(ctx, certificateEvery, func() {
			changed, err := s.certificates.reload()
			if err != nil && !failing {
				s.log.Error("the new certificate is not used", "error", err)
			}
			failing = err != nil
			if changed {
				s.log.Info("the certificate is reloaded")
			}
		})
	}
	if interval, err := daemon.SdWatchdogEnabled(false); err == nil && interval > 0 {
		s.every(ctx, interval/2, func() { s.notify("WATCHDOG=1") })
	}
}

// every calls fn at once and then at each interval, until ctx ends.
func (s *service) every(ctx context.Context, interval time.Duration, fn func()) {
	s.work.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			fn()
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
}

// notify tells systemd about the state of the service, if systemd has started it.
func (s *service) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		s.log.Warn("systemd is not notified", "error", err)
	}
}

func (s *service) notifyReloading() { s.notify("RELOADING=1\n" + daemon.SdNotifyMonotonicUsec()) }
