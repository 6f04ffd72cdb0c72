//go:build unix

package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-rag/assay/llm"
)

// TestCanaries gives each credential a unique value and makes the servers echo their requests. None
// of the values may be in what assay prints or stores.
func TestCanaries(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs the built program some eighty times")
	}
	k := newCanaries()
	for _, setting := range canarySettings(k) {
		t.Run(setting.name, func(t *testing.T) {
			t.Parallel() // they mostly wait
			testCanaries(t, k, setting)
		})
	}
}

// canaries holds the values by the names of their places.
type canaries map[string]string

func newCanaries() canaries {
	k := canaries{}
	for i, name := range []string{
		"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "COHERE_API_KEY", "JINA_API_KEY", "AZURE_OPENAI_API_KEY", "LAB_KEY", "LAB_TOKEN",
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK",
		"key_file", "key", "header", "url_password", "proxy_password",
	} {
		k[name] = fmt.Sprintf("canary%02dXq7Zr2Tm9Kw4Lp8", i)
	}
	return k
}

// found returns the names of the canaries that a text contains whole, encoded or in large part.
func (k canaries) found(text []byte) []string {
	var names []string
	for name, value := range k {
		for _, form := range []string{value, value[:16], value[6:], url.QueryEscape(value), base64.StdEncoding.EncodeToString([]byte(value))} {
			if bytes.Contains(text, []byte(form)) {
				names = append(names, name+" as "+form)
				break
			}
		}
	}
	return names
}

// A canarySetting is an environment with a configuration and a server.
type canarySetting struct {
	name, format string
	fail         llm.ErrorKind // empty: the server replies
	env          func(url string) []string
	config       func(url string) string // empty: no file
}

func canarySettings(k canaries) []canarySetting {
	none := func(string) string { return "" }
	vector := "embedding: %s/text-embedding-3-small\nmodels: {%[1]s/text-embedding-3-small: {dimensions: 32}}\n"
	var all []canarySetting
	fails := []llm.ErrorKind{"", llm.BadKey}
	if os.Getenv("ASSAY_LONG") != "" {
		fails = append(fails, llm.BadRequest, llm.RateLimited)
	}
	for _, fail := range fails {
		name := "answers"
		if fail != "" {
			name = string(fail)
		}
		all = append(all,
			canarySetting{"openai, " + name, "openai", fail, func(u string) []string { return []string{"OPENAI_BASE_URL=" + u, "ASSAY_MODEL=openai"} }, func(string) string { return fmt.Sprintf(vector, "openai") }},
			canarySetting{"anthropic, " + name, "anthropic", fail, func(u string) []string { return []string{"ANTHROPIC_BASE_URL=" + u, "ASSAY_MODEL=anthropic"} }, none},
			canarySetting{"gemini, " + name, "gemini", fail, func(u string) []string { return []string{"GEMINI_BASE_URL=" + u, "ASSAY_MODEL=gemini"} }, none},
			canarySetting{"bedrock, " + name, "bedrock", fail, func(string) []string {
				return []string{"AWS_REGION=eu-central-1", "ASSAY_MODEL=bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0", "AWS_BEARER_TOKEN_BEDROCK="}
			}, func(u string) string {
				return "providers: {bedrock: {base_url: '" + u + "'}}\n"
			}},
			canarySetting{"file, " + name, "openai", fail, func(string) []string { return nil }, func(u string) string {
				key := "key_file: key"
				if fail != "" {
					key = "key: !command 'cat key'"
				}
				return fmt.Sprintf("large: lab/gpt-6-luna\n"+vector+`providers:
  lab:
    type: openai
    base_url: %s
    %s
    headers_env: {X-Token: LAB_TOKEN}
  plain: {type: openai, base_url: 'http://127.0.0.1:1/v1', key: !env LAB_KEY}
`, "lab", u, key)
			}},
		)
	}
	return all
}

func testCanaries(t *testing.T, k canaries, setting canarySetting) {
	server, err := newFakeModel(setting.format)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	server.behave(setting.fail, true)
	u := server.URL
	if setting.format == "openai" {
		u += "/v1"
	}
	s := newSandbox(t)
	env := []string{}
	for name, value := range k {
		if strings.ToUpper(name) == name {
			env = append(env, name+"="+value)
		}
	}
	env = append(env, "HTTPS_PROXY=http://user:"+k["proxy_password"]+"@127.0.0.1:1", "NO_PROXY=127.0.0.1")
	env = append(env, setting.env(u)...)
	s.write("key", k["key_file"]+"\n")
	args := []string{}
	if text := setting.config(u); text != "" {
		s.write("config.yaml", text)
		args = append(args, "--config", "config.yaml")
	}
	const question = "Who approves travel to a customer?"
	printed := 0
	lines := [][]string{
		{"doctor"}, {"ingest", "--wait", "handbook"}, {"search", "--json", question},
		{"ask", "--json", "--trace", "--strategy", "corrective", question}, {"show", "last", "--inputs"},
	}
	if setting.fail == "" {
		lines = append(lines, []string{"doctor", "--json"}, []string{"search", question}, []string{"ask", "--trace", question},
			[]string{"show", "last", "--json"}, []string{"replay", "last"}, []string{"models", "list"})
	}
	for _, line := range lines {
		cmd := s.command(append(line, args...)...)
		cmd.Env = append(cmd.Env, env...)
		out, _ := cmd.CombinedOutput()
		printed += len(out)
		if line[0] == "show" && setting.fail == "" && !bytes.Contains(out, []byte("[secret]")) {
			t.Errorf("assay %s does not show that something was taken out:\n%s", strings.Join(line, " "), out)
		}
		if names := k.found(out); len(names) > 0 {
			t.Errorf("assay %s prints %q:\n%s", strings.Join(line, " "), names, out)
		}
	}
	if calls := server.count(); calls < 3 || printed < 1000 {
		t.Errorf("the server got %d calls and %d bytes were printed: that tests nothing", calls, printed)
	}
	k.checkStored(t, s.dir)
}

// checkStored checks the files of a folder but those that hold the canaries.
func (k canaries) checkStored(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == filepath.Join(dir, "key") || path == filepath.Join(dir, "config.yaml") {
			return err
		}
		data, err := os.ReadFile(path)
		if names := k.found(data); len(names) > 0 {
			t.Errorf("%s holds %q", path, names)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCanariesOfProxy checks that errors name an unreachable proxy without its password.
func TestCanariesOfProxy(t *testing.T) {
	t.Parallel()
	k := newCanaries()
	s := newSandbox(t)
	for _, line := range [][]string{{"doctor"}, {"ask", "--docs", "handbook", "--trace", "--max-calls", "2", "Who approves travel to a customer?"}} {
		cmd := s.command(line...)
		cmd.Env = append(cmd.Env, "OPENAI_API_KEY="+k["OPENAI_API_KEY"], "HTTPS_PROXY=http://user:"+k["proxy_password"]+"@127.0.0.1:1")
		out, _ := cmd.CombinedOutput()
		if names := k.found(out); len(names) > 0 || !bytes.Contains(out, []byte("proxyconnect")) {
			t.Errorf("assay %s prints %q:\n%s", line[0], names, out)
		}
	}
}

// TestCanariesInConfigErrors checks that configuration errors do not show misplaced credentials.
func TestCanariesInConfigErrors(t *testing.T) {
	t.Parallel()
	k := newCanaries()
	s := newSandbox(t)
	s.write("key", k["key_file"]+"\n"+k["key_file"]+"\n")
	for name, text := range map[string]string{
		"an open quote":         "providers:\n  openai:\n    key: \"%s\n",
		"a key as a model":      "large: %s\n",
		"a key as a variable":   "providers:\n  openai:\n    key_env: %s\n",
		"a key as a provider":   "providers:\n  %s: {type: openai}\n",
		"a key as a key":        "providers:\n  openai:\n    %s: x\n",
		"a key as a type":       "providers:\n  openai:\n    type: %s\n",
		"a key as an effort":    "providers:\n  openai:\n    timeout: %s\n",
		"a key as a number":     "providers:\n  openai:\n    limits: {concurrency: %s}\n",
		"a key as a role":       "roles: {%s: local}\n",
		"a password in a URL":   "providers:\n  openai:\n    base_url: https://user:%s@x.example/v1\n",
		"a query in a URL":      "providers:\n  openai:\n    base_url: https://x.example/v1?key=%s\n",
		"a key beside a key":    "providers:\n  openai: {key: %s, key_env: X}\n",
		"a key in the file":     "providers:\n  openai: {key: %s}\n",
		"a key as a header":     "providers:\n  openai:\n    headers: {X-Gateway: %s}\n",
		"a key of the web":      "web: {provider: brave, key: %s}\n",
		"an unknown tag":        "providers:\n  openai: {key: !secret %s}\n",
		"a key as an !env":      "providers:\n  openai: {key: !env %s}\n",
		"a failing command":     "providers:\n  openai: {key: !command \"sh -c 'echo %[1]s; echo %[1]s >&2; exit 1'\"}\nlarge: openai/x\n",
		"a key as a program":    "providers:\n  openai: {key: !command \"%s\"}\nlarge: openai/x\n",
		"a key as a rule":       "egress: {allow: [\"https://%s@x.example\"]}\n",
		"a header of two lines": "providers:\n  openai:\n    headers: {X: \"a\\n%s\"}\n",
		"a key file with two":   "# %s\nproviders:\n  openai: {key_file: key}\n",
	} {
		s.write("config.yaml", fmt.Sprintf(text, k["key"]))
		for _, line := range [][]string{{"ask", "x"}, {"doctor"}} {
			out, err := s.command(append(line, "--config", "config.yaml")...).CombinedOutput()
			if names := k.found(out); len(names) > 0 || err == nil && line[0] == "ask" {
				t.Errorf("%s: assay %s shows %q, %v:\n%s", name, line[0], names, err, out)
			}
		}
	}
	cmd := s.command("doctor")
	cmd.Env = append(cmd.Env, "OPENAI_BASE_URL=https://user:"+k["url_password"]+"@x.example/v1", "OPENAI_API_KEY="+k["OPENAI_API_KEY"])
	if out, _ := cmd.CombinedOutput(); len(k.found(out)) > 0 {
		t.Errorf("a password in OPENAI_BASE_URL:\n%s", out)
	}
}

// TestCanariesOfSourcesAndWebhooks checks that the credentials of sources and webhooks, which are read
// from everywhere that they can be read from, are neither printed nor stored.
func TestCanariesOfSourcesAndWebhooks(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs the built program some thirty times")
	}
	t.Parallel()
	k := newCanaries()
	s := newSandbox(t)
	s.write("key", k["key_file"]+"\n")
	s.write("config.yaml", "commands: {printed: 'echo "+k["key"]+"'}\n")
	env := []string{"LAB_TOKEN=" + k["LAB_TOKEN"], "HOOK=http://127.0.0.1:1/" + k["LAB_KEY"], "BAD=not-an-address-" + k["LAB_KEY"]}
	printed := 0
	for _, line := range [][]string{
		{"ingest", "handbook"},
		{"webhook", "add", "a", "http://127.0.0.1:1/x", "--event", "run.ended", "--secret", "env:LAB_TOKEN"},
		{"webhook", "add", "b", "http://127.0.0.1:1/x", "--event", "run.ended", "--secret", "file:key"},
		{"webhook", "add", "c", "http://127.0.0.1:1/x", "--event", "run.ended", "--secret", "command:echo " + "whsec_short", "--secret", "command:sh -c 'cat key; cat key >&2; exit 1'"},
		{"webhook", "add", "d", "env:HOOK", "--form", "slack", "--event", "run.*"},
		{"webhook", "add", "e", "env:BAD", "--form", "slack", "--event", "run.*"},
		{"webhook", "add", "f", "http://127.0.0.1:1/x", "--event", "run.ended", "--secret", k["header"]},
		{"source", "add", "git", "g1", "https://127.0.0.1:1/x.git", "--credential", "token=env:LAB_TOKEN"},
		{"source", "add", "git", "g2", "https://127.0.0.1:1/x.git", "--credential", "token=file:key"},
		{"source", "add", "git", "g3", "https://127.0.0.1:1/x.git", "--credential", "token=command:printed", "--config", "config.yaml"},
		{"source", "add", "git", "g4", "https://127.0.0.1:1/x.git", "--credential", "token=" + k["url_password"]},
		{"ask", "Who approves travel to a customer?"},
		{"webhook", "test", "a"}, {"webhook", "test", "b"}, {"webhook", "test", "c"}, {"webhook", "test", "d"}, {"webhook", "test", "e"},
		{"webhook", "deliver"}, {"webhook", "list", "--json"}, {"webhook", "failed", "--json"},
		{"source", "sync", "g1", "--config", "config.yaml"}, {"source", "sync", "g2", "--config", "config.yaml"}, {"source", "sync", "g3", "--config", "config.yaml"},
		{"source", "list", "--json"}, {"audit", "log", "--json"}, {"egress", "list", "--json"}, {"doctor", "--offline"},
	} {
		cmd := s.command(line...)
		cmd.Env = append(cmd.Env, env...)
		out, _ := cmd.CombinedOutput()
		printed += len(out)
		if names := k.found(out); len(names) > 0 {
			t.Errorf("assay %s prints %q:\n%s", strings.Join(line[:2], " "), names, out)
		}
	}
	if printed < 1000 {
		t.Errorf("%d bytes were printed: that tests nothing", printed)
	}
	k.checkStored(t, s.dir)
}
