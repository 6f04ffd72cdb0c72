package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A llama is a llama-server that serves the model of scripts/tinymodel. Its replies follow the
// requested schema but have no meaning.
type llama struct {
	base string // URL of its API: "http://127.0.0.1:PORT/v1"
	stop func() // stops it and waits until it has exited; nil if the test did not start it
}

// startLlama returns a llama-server: the one at the URL in ASSAY_LLAMA, or one that is started for
// the test. In the second case the server is one that scripts/llama-server has fetched before, into
// the folder that ASSAY_LLAMA names or the script's own. The test is skipped if there is none, with
// -short, and if ASSAY_LLAMA is "off". args are further arguments of llama-server.
func startLlama(t *testing.T, args ...string) *llama {
	t.Helper()
	place := os.Getenv("ASSAY_LLAMA")
	switch {
	case testing.Short():
		t.Skip("a real model server takes its time: not with -short")
	case place == "off":
		t.Skip("ASSAY_LLAMA is off")
	case strings.Contains(place, "://") && len(args) > 0:
		t.Skip("needs a llama-server of its own, and ASSAY_LLAMA names one that is running")
	case strings.Contains(place, "://"):
		return &llama{base: strings.TrimSuffix(place, "/")}
	case place == "":
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Skip("no cache folder: ", err)
		}
		place = filepath.Join(cache, "assay", "llama")
	}
	if _, err := os.Stat(filepath.Join(place, "edition")); err != nil {
		t.Skipf("no llama-server in %s: scripts/llama-server fetch brings it there", place)
	}
	cmd := exec.Command("../scripts/llama-server", "start")
	// A folder of another version is not downloaded again, since a test must not do that.
	cmd.Env = append(os.Environ(), "ASSAY_LLAMA="+place, "ASSAY_LLAMA_ARCHIVES="+t.TempDir(), "ASSAY_LLAMA_ARGS="+strings.Join(args, " "))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	stop := sync.OnceFunc(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	})
	t.Cleanup(stop)
	if line == "" {
		err := cmd.Wait()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 3 {
			t.Skipf("no llama-server of the script's edition in %s: scripts/llama-server fetch brings it there", place)
		}
		t.Fatalf("scripts/llama-server start: %v\n%s", err, &stderr)
	}
	return &llama{base: strings.TrimSpace(line), stop: stop}
}

// own skips a test that has to stop the server if the test did not start it.
func (l *llama) own(t *testing.T) *llama {
	t.Helper()
	if l.stop == nil {
		t.Skip("stops the llama-server, and ASSAY_LLAMA names one that is not the test's")
	}
	return l
}

// A slot is the server's report on its current or last request.
type slot struct {
	Busy  bool `json:"is_processing"`
	Task  int  `json:"id_task"`
	Token []struct {
		Decoded int `json:"n_decoded"`
	} `json:"next_token"`
}

// decoded returns the number of tokens that the server has generated for the reply so far.
func (s slot) decoded() int {
	if len(s.Token) == 0 {
		return 0
	}
	return s.Token[0].Decoded
}

// slot returns the state of the server's slot.
func (l *llama) slot(t *testing.T) slot {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(l.base, "/v1")+"/slots", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var slots []slot
	if err := json.NewDecoder(resp.Body).Decode(&slots); err != nil || len(slots) != 1 {
		t.Fatalf("the server says %d slots, %v", len(slots), err)
	}
	return slots[0]
}

// until polls a condition each period and fails the test if it does not hold in time.
func until(t *testing.T, what string, period time.Duration, holds func() bool) {
	t.Helper()
	const patience = 3 * time.Minute // for a slow machine
	for end := time.Now().Add(patience); !holds(); time.Sleep(period) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}
