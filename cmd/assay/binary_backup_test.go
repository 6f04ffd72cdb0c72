//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestBackupMeanwhile backs up a data directory while other processes ingest a changing folder and
// ask. Each backup restores to a store that doctor passes and whose runs replay to the same answers.
func TestBackupMeanwhile(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.want(exitAnswered, "2 added", "ingest", "handbook")
	done := make(chan struct{})
	var busy sync.WaitGroup
	loop := func(fn func(i int)) {
		busy.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
					fn(i)
				}
			}
		})
	}
	loop(func(i int) {
		s.write("handbook/travel.md", fmt.Sprintf("# Travel\n\nTravel to a customer is approved by the head of department %d.\n", i))
		s.want(exitAnswered, "", "ingest", "handbook")
	})
	loop(func(int) { s.want(exitAnswered, "head of", "ask", "--no-cache", "Who approves travel to a customer?") })
	backups := 12
	if testing.Short() {
		backups = 2
	}
	for i := range backups {
		dir, data := fmt.Sprint("copies/", i), fmt.Sprint("restored/", i)
		s.want(exitAnswered, "1 tenant", "backup", dir)
		s.want(exitAnswered, "restored", "restore", dir, "--data", data)
	}
	close(done)
	busy.Wait()
	for i := range backups {
		data := fmt.Sprint("restored/", i)
		s.want(exitAnswered, "databases", "doctor", "--offline", "--data", data)
		s.replayEnded(data)
	}
}

// replayEnded replays the runs that have an answer and checks that there is one.
func (s *sandbox) replayEnded(data string) {
	s.t.Helper()
	out, err := s.command("runs", "--json", "--limit", "0", "--data", data).Output()
	if err != nil {
		s.t.Fatal(err)
	}
	var runs []struct{ ID, State string }
	if err := json.Unmarshal(out, &runs); err != nil {
		s.t.Fatal(err)
	}
	replayed := 0
	for _, r := range runs {
		if r.State == "done" {
			s.want(exitAnswered, "the same answer", "replay", r.ID, "--data", data)
			s.want(exitAnswered, "approved by the head of", "show", r.ID, "--data", data)
			replayed++
		}
	}
	s.t.Logf("%s: %d runs, %d replayed", data, len(runs), replayed)
}

// TestKilledBackup kills backups and restores at random moments. Afterwards the backup and the restored
// data directory are either complete or do not exist.
func TestKilledBackup(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	kills := 40
	switch {
	case os.Getenv("ASSAY_LONG") != "":
		kills = 400
	case testing.Short():
		kills = 6
	}
	s.write("handbook/long.md", "# Long\n\n"+strings.Repeat("A line about pumps, valves and the boiler.\n\n", 20_000))
	s.want(exitAnswered, "3 added", "ingest", "handbook")
	s.want(exitAnswered, "head of the department", "ask", "Who approves travel to a customer?")
	s.want(exitAnswered, "1 tenant", "backup", "whole")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	took := map[string]time.Duration{}
	for _, command := range []string{"backup", "restore"} {
		began := time.Now()
		s.want(exitAnswered, "1 tenant", killedCommand(command, "timed-"+command)...)
		took[command] = time.Since(began)
	}
	for _, command := range []string{"backup", "restore"} {
		killed, complete := 0, 0
		for i := range kills {
			name := fmt.Sprintf("%s-%d", command, i)
			if s.kill(killedCommand(command, name), time.Duration(rng.Int64N(int64(took[command])))) {
				killed++
			}
			if _, err := os.Stat(filepath.Join(s.dir, name)); err != nil {
				continue
			}
			complete++
			if command == "backup" {
				s.want(exitAnswered, "verified", "restore", "--verify", name)
			} else {
				s.want(exitAnswered, "databases", "doctor", "--offline", "--data", name)
			}
			if err := os.RemoveAll(filepath.Join(s.dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%s: %d of %d killed, %d complete", command, killed, kills, complete)
	}
	s.want(exitAnswered, "approved by the head", "ask", "Who approves travel to a customer?")
	s.want(exitAnswered, "databases", "doctor", "--offline")
}

func killedCommand(command, name string) []string {
	if command == "backup" {
		return []string{"backup", name}
	}
	return []string{"restore", "whole", "--data", name}
}

// kill runs a command and kills it after a time. It reports whether the command was killed.
func (s *sandbox) kill(args []string, after time.Duration) bool {
	s.t.Helper()
	cmd := s.command(args...)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
	defer timer.Stop()
	return cmd.Wait() != nil
}

// TestKilledErasure kills commands that erase, hold and prune runs at random moments. After each kill
// the audit log extends the last checkpoint, the stored data matches the log, and every run that a
// command reported as erased is erased.
func TestKilledErasure(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	kills := 40
	switch {
	case os.Getenv("ASSAY_LONG") != "":
		kills = 150
	case testing.Short():
		kills = 5
	}
	s.want(exitAnswered, "2 added", "ingest", "handbook")
	s.want(exitAnswered, "+", "audit", "key", "new", "audit.key")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 4))
	killed, erased := 0, 0
	for i := range kills {
		s.want(exitAnswered, "approved", "ask", "--no-cache", "Who approves travel to a customer?")
		s.want(exitAnswered, "entries", "audit", "checkpoint", "--key", "audit.key", "--to", "checkpoints")
		commands := [][]string{
			{"runs", "erase", "last", "--reason", "killed", "--yes"},
			{"hold", "add", fmt.Sprint("hold", i), "--run", "last", "--reason", "killed"},
			{"hold", "remove", fmt.Sprint("hold", i-1), "--reason", "killed", "--yes"},
			{"retention", "set", "runs", "1"},
			{"runs", "prune", "--before", "2099-01-01", "--reason", "killed"},
			{"retention", "apply", "--yes"},
		}
		command := commands[rng.IntN(len(commands))]
		if i%2 == 0 {
			command = commands[0]
		}
		if s.kill(command, time.Duration(rng.IntN(250))*time.Millisecond) {
			killed++
		} else if command[1] == "erase" {
			erased++
			s.want(exitAnswered, "erased", "show", "last")
		}
		if i%5 == 0 {
			s.want(exitAnswered, "nothing differs", "doctor", "--offline")
		}
	}
	s.want(exitAnswered, "nothing differs", "doctor", "--offline")
	t.Logf("%d of %d killed, %d erasures acknowledged", killed, kills, erased)
}
