package watch

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestFolders checks that files and folders that appear, change and vanish are noticed.
func TestFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	changes, ended := make(chan struct{}, 100), make(chan error, 1)
	go func() { ended <- Folders(ctx, []string{dir}, func() { changes <- struct{}{} }) }()
	do := func(name string, change func() error) {
		t.Helper()
		// A change just after a report may be part of it, so the change is repeated until it is noticed.
		for i := range 100 {
			if err := change(); err != nil {
				t.Fatal(err)
			}
			probe := filepath.Join(dir, "probe")
			if err := os.WriteFile(probe, []byte{byte(i)}, 0o600); err != nil {
				t.Fatal(err)
			}
			select {
			case <-changes:
				return
			case <-ctx.Done():
				t.Fatal(ctx.Err())
			case err := <-ended:
				t.Fatalf("%s: the watch ended: %v", name, err)
			case <-after():
			}
		}
		t.Fatalf("%s was not noticed", name)
	}
	<-changes // the watch has begun
	sub := filepath.Join(dir, "sub", "deep")
	do("a new folder", func() error { return os.MkdirAll(sub, 0o700) })
	drain(changes)
	if err := os.WriteFile(filepath.Join(sub, "a.md"), []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	<-changes // in a folder that did not exist at the start
	drain(changes)
	if err := os.RemoveAll(filepath.Join(dir, "sub")); err != nil {
		t.Fatal(err)
	}
	<-changes
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Folders = %v, want nil", err)
	}
}

func drain(c chan struct{}) {
	for {
		select {
		case <-c:
		case <-after():
			return
		}
	}
}

// after returns a channel that is ready after a burst of changes would have been reported.
func after() <-chan time.Time { return time.After(3 * quiet) }
