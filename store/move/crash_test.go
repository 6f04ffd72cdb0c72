package move_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/ramdisk"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/move"
	"github.com/assay-rag/assay/store/postgres"
	"github.com/assay-rag/assay/store/sqlite"
)

// childVariable makes this binary a process that moves a tenant.
const childVariable = "ASSAY_MOVE_CHILD"

func TestMain(m *testing.M) {
	ramdisk.Use()
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	if err := runChild(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runChild moves a tenant, or all if it is empty, and kills itself at a step; 0: at none. It prints a line
// when it begins.
func runChild(from, to, tenant, step string) error {
	last, err := strconv.Atoi(step)
	if err != nil {
		return err
	}
	ctx := context.Background()
	source, err := openChild(ctx, from)
	if err != nil {
		return err
	}
	target, err := openChild(ctx, to)
	if err != nil {
		return err
	}
	fmt.Println("begun")
	n := 0
	_, err = move.Move(ctx, source, target, move.Options{Tenant: tenant, Searches: 2, Progress: func(string, string, int64) {
		if n++; n == last {
			p, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = p.Kill()
			}
			fmt.Fprintln(os.Stderr, err)
			select {}
		}
	}})
	return err
}

// openChild opens a store by its folder or its address.
func openChild(ctx context.Context, name string) (store.Store, error) {
	if !strings.HasPrefix(name, "postgres://") {
		return sqlite.Open(ctx, name)
	}
	return postgres.Open(ctx, name, postgres.WithFolder(os.TempDir()))
}

// child returns a command that moves a tenant.
func child(from, to, tenant string, step int) *exec.Cmd {
	cmd := exec.Command(os.Args[0], from, to, tenant, strconv.Itoa(step))
	cmd.Env = append(os.Environ(), childVariable+"=1")
	return cmd
}

// A killing is a source and a target between which moves are killed.
type killing struct {
	from, to *sqlite.Store
	tenant   string
	want     move.Report // of an undisturbed move to another target
}

func newKilling(t *testing.T, tenant string) *killing {
	k := &killing{from: open(t, t.TempDir()), tenant: tenant}
	world(t, k.from, "acme", 30)
	world(t, k.from, "other", 5)
	k.want = mustMove(t, k.from, open(t, t.TempDir()), move.Options{Tenant: tenant, Searches: 2})
	return k
}

// check checks the stores after a move was killed. It returns whether the target has everything. If not it
// has nothing, and a move is completed.
func (k *killing) check(t *testing.T) bool {
	t.Helper()
	ctx := t.Context()
	names, err := k.to.Tenants(ctx)
	if err != nil {
		t.Fatal(err)
	}
	done := len(names) > 0
	if done && len(names) != len(k.want.Tenants) {
		t.Fatalf("the target has %v", names)
	}
	if !done {
		r := mustMove(t, k.from, k.to, move.Options{Tenant: k.tenant, Searches: 2})
		if diff := cmp.Diff(k.want, r); diff != "" {
			t.Errorf("moved after a kill (-undisturbed +now):\n%s", diff)
		}
	} else if _, err := move.Move(ctx, k.from, k.to, move.Options{Tenant: k.tenant}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("moved again: %v", err)
	}
	for _, moved := range k.want.Tenants { // the first use finishes what was interrupted
		goesOn(t, k.to, moved.Name)
	}
	if _, err := k.to.Tenant(ctx, "nobody"); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("another tenant: %v", err)
	}
	if k.tenant == "" {
		if err := k.to.CreateTenant(ctx, "later", store.Act{}); err != nil {
			t.Error(err)
		}
	}
	wantSound(t, k.to)
	return done
}

// TestMoveKilledAtSteps kills a move at each of its steps.
func TestMoveKilledAtSteps(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes under the race detector; without -short it runs")
	}
	for _, tenant := range []string{"acme", ""} {
		t.Run("tenant "+tenant, func(t *testing.T) {
			k := newKilling(t, tenant)
			stride := 9
			if os.Getenv("ASSAY_LONG") != "" {
				stride = 1
			}
			killed := 0
			for step := 1; ; step += stride {
				k.to = open(t, filepath.Join(t.TempDir(), fmt.Sprint(step)))
				out, err := child(k.from.Dir(), k.to.Dir(), tenant, step).CombinedOutput()
				if err == nil {
					break
				}
				if text := strings.TrimSpace(string(out)); text != "begun" && text != "begun\n<nil>" {
					t.Fatalf("step %d: %v: %s", step, err, out)
				}
				killed++
				if k.check(t) {
					t.Errorf("step %d: the move was done before it was finished", step)
				}
				if t.Failed() {
					t.Fatalf("killed at step %d", step)
				}
			}
			t.Logf("%d moves were killed", killed)
			wantSound(t, k.from)
		})
	}
}

// TestMoveKilled kills moves at random moments.
func TestMoveKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes under the race detector; without -short it runs")
	}
	rounds := 12
	if os.Getenv("ASSAY_LONG") != "" {
		rounds = 300
	}
	for _, tenant := range []string{"acme", ""} {
		t.Run("tenant "+tenant, func(t *testing.T) {
			k := newKilling(t, tenant)
			k.to = open(t, t.TempDir())
			begun := time.Now()
			if out, err := child(k.from.Dir(), k.to.Dir(), tenant, 0).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			takes := time.Since(begun)
			rng := rand.New(rand.NewPCG(7, 7))
			done := 0
			for round := range rounds {
				k.to = open(t, filepath.Join(t.TempDir(), fmt.Sprint(round)))
				cmd := child(k.from.Dir(), k.to.Dir(), tenant, 0)
				out, err := cmd.StdoutPipe()
				if err == nil {
					err = cmd.Start()
				}
				if err == nil {
					_, err = io.ReadFull(out, make([]byte, len("begun\n")))
				}
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Duration(rng.Int64N(int64(takes))))
				_ = cmd.Process.Kill() // it may have ended
				_ = cmd.Wait()
				if k.check(t) {
					done++
				}
				if t.Failed() {
					t.Fatalf("in round %d", round)
				}
			}
			t.Logf("%d moves were killed, of which %d were done", rounds, done)
			wantSound(t, k.from)
		})
	}
}
