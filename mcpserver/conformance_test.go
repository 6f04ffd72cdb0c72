//lint:file-ignore SA1019 the conformance suite uses deprecated parts of the protocol

package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/assay-rag/assay/engine"
)

// node returns the command of a program of npm, which scripts/mcp-conformance fetches.
func node(t *testing.T, script string, arguments ...string) *exec.Cmd {
	t.Helper()
	folder := os.Getenv("ASSAY_MCP_CONFORMANCE")
	if folder == "" {
		t.Skip("ASSAY_MCP_CONFORMANCE is not set; to run this test: scripts/mcp-conformance go test ./mcpserver")
	}
	script = filepath.Join(folder, "node_modules", "@modelcontextprotocol", script)
	cmd := exec.CommandContext(t.Context(), os.Getenv("ASSAY_MCP_NODE"), append([]string{script}, arguments...)...)
	cmd.Dir = t.TempDir()
	return cmd
}

// TestConformance runs the protocol's conformance suite on the handler, with the fixtures that it
// calls.
func TestConformance(t *testing.T) {
	x := openWorld(t, func(_ *engine.HostConfig, c *Config) {
		c.adjust = func(o *mcp.ServerOptions) {
			o.Capabilities.Logging = &mcp.LoggingCapabilities{}
			o.SubscribeHandler = func(context.Context, *mcp.SubscribeRequest) error { return nil }
			o.UnsubscribeHandler = func(context.Context, *mcp.UnsubscribeRequest) error { return nil }
			ours := o.CompletionHandler
			o.CompletionHandler = func(ctx context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
				if strings.HasPrefix(req.Params.Ref.Name, "test_") {
					return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}, nil
				}
				return ours(ctx, req)
			}
		}
		c.Local = true // the suite sends no credential, and checks the Host
		c.Session = nil
	})
	mount(x.handler.stateless)
	mount(x.handler.stateful)
	for revision, option := range map[string]string{revisionStateless: "--requirements", revision2511: "--requirements", revision2506: "--spec-version"} {
		t.Run(revision, func(t *testing.T) {
			out, err := node(t, "conformance/dist/index.js", "server", "--url", x.url, option, revision).CombinedOutput()
			_, summary, _ := strings.Cut(string(out), "=== SUMMARY ===")
			if t.Logf("%s", summary); err != nil || summary == "" {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestInspector calls tools with the command line of the Inspector.
func TestInspector(t *testing.T) {
	x := openWorld(t, nil)
	inspect := func(arguments ...string) (result struct {
		Tools             []struct{ Name string }
		StructuredContent askOut
	}) {
		t.Helper()
		cmd := node(t, "inspector/clients/launcher/build/index.js", append([]string{"--cli", x.url, "--transport", "http", "--header", "Authorization: Bearer ann"}, arguments...)...)
		var errors bytes.Buffer
		cmd.Stderr = &errors
		out, err := cmd.Output()
		if err != nil || json.Unmarshal(out, &result) != nil {
			t.Fatalf("%v: %v: %s%s", arguments, err, out, &errors)
		}
		return result
	}
	if listed := inspect("--method", "tools/list"); len(listed.Tools) != len(tools) || listed.Tools[0].Name != "ask" {
		t.Errorf("tools/list: %+v", listed.Tools)
	}
	asked := inspect("--method", "tools/call", "--tool-name", "ask", "--tool-arg", "question=Who approves travel to a customer?").StructuredContent
	if asked.Status != "answered" || !strings.Contains(asked.Text, "head of the department") {
		t.Errorf("ask: %+v", asked)
	}
}
