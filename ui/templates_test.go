package ui

import (
	"testing"
	"time"
)

func TestAgo(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		-time.Second:                    "just now",
		-90 * time.Second:               "1 min ago",
		-47 * time.Hour:                 "1 day ago",
		59*time.Minute + 50*time.Second: "in 1 h",
		day - time.Second:               "in 1 day",
		7*day - time.Second:             "in 7 days", // a link for 7 days that was just made
		30*day - time.Second:            "in 30 days",
	} {
		if got := ago(now().Add(d)); got != want {
			t.Errorf("ago(%v from now) = %q, want %q", d, got, want)
		}
	}
	if got := ago(time.Time{}); got != "never" {
		t.Errorf("the zero time: %q", got)
	}
}
