package ingest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/store/sqlite"
)

// childEmbed is the environment variable that makes this test binary embed the store at that path
// as the process to be killed.
const childEmbed = "ASSAY_INGEST_CHILD_EMBED"

// embedAsChild writes the hash of each passage whose vector was acknowledged to standard output,
// one per line.
func embedAsChild(data string) error {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, data)
	if err != nil {
		return err
	}
	tenant, err := s.Tenant(ctx, "default")
	if err != nil {
		return err
	}
	defer tenant.Close()
	w, err := tenant.Writer(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	_, err = Embed(ctx, w, new(llmtest.Hashing), EmbedOptions{Batch: 4, Progress: func(p EmbedProgress) {
		if len(p.Hashes) > 0 {
			os.Stdout.WriteString(strings.Join(p.Hashes, "\n") + "\n")
		}
	}})
	return err
}

// TestKillDuringEmbed kills the embedding process at random moments. After each kill all
// acknowledged vectors are stored and correct. Together the processes embed little more than each
// passage once.
func TestKillDuringEmbed(t *testing.T) {
	rounds := 10
	if testing.Short() {
		rounds = 3
	}
	if os.Getenv("ASSAY_LONG") != "" {
		rounds = 200
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	data := t.TempDir()
	e := new(llmtest.Hashing)
	acknowledged := map[string]bool{}
	midway, kills, longest := 0, 0, 200*time.Millisecond
	for generation := 0; midway < rounds && kills < 20*rounds; generation++ {
		look(t, data, func(x *embedWorld) {
			files := map[string]string{}
			for i := range 150 {
				files[fmt.Sprintf("%d-%d.md", generation, i)] = fmt.Sprintf("The %d. text of generation %d.\n", i, generation)
			}
			x.ingest(files)
		})
		for ended := false; !ended && midway < rounds; {
			began, before := time.Now(), len(acknowledged)
			ended = embedAndKill(t, data, time.Duration(rng.Int64N(int64(longest))), rng.IntN(3) > 0, acknowledged)
			if ended {
				longest = max(time.Since(began)/2, 20*time.Millisecond)
			} else if kills++; len(acknowledged) > before {
				midway++
			}
			look(t, data, func(x *embedWorld) {
				for hash := range x.passages(e.Model()) {
					if acknowledged[hash] {
						t.Errorf("the vector of %s was acknowledged and is gone", hash)
					}
				}
				if c := x.check(e); ended && c.Embedded != c.Chunks {
					t.Errorf("after a whole run the coverage is %+v", c)
				}
			})
		}
	}
	t.Logf("%d killed, %d of them after the first vectors", kills, midway)
}

// look calls fn with the store open.
func look(t *testing.T, data string, fn func(*embedWorld)) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := s.Tenant(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	defer tenant.Close()
	w, err := tenant.Writer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	fn(&embedWorld{t, w})
}

// embedAndKill runs the child for at most after, counted from its start or from its first
// acknowledgement, and collects the hashes that it acknowledges. It reports whether the child
// exited by itself.
func embedAndKill(t *testing.T, data string, after time.Duration, fromFirst bool, acknowledged map[string]bool) (ended bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEmbed+"="+data)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { cmd.Process.Kill() })
	defer timer.Stop()
	if fromFirst {
		timer.Stop()
	}
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			break // a line without an end was cut off
		}
		if err != nil {
			t.Fatal(err)
		}
		acknowledged[strings.TrimSuffix(line, "\n")] = true
		if fromFirst {
			timer.Reset(after)
			fromFirst = false
		}
	}
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() < 0 {
		return false
	}
	if err != nil {
		t.Fatalf("child: %v\n%s", err, stderr.String())
	}
	return true
}
