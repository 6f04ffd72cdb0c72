package mcpserver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/assay-rag/assay/engine"
)

// secrets are words that ann must never see: of documents hidden from her, and of another tenant.
var secrets = []string{"zanzibar", "nine million", "quokka", "nineteen"}

// leaked returns a secret in text that the request did not name itself.
func leaked(text, request string) string {
	for _, s := range secrets {
		if strings.Contains(strings.ToLower(text), s) && !strings.Contains(strings.ToLower(request), s) {
			return s
		}
	}
	return ""
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// TestMalformed sends messages that are wrong in form.
func TestMalformed(t *testing.T) {
	t.Parallel()
	x := openWorld(t, nil)
	deep := strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000)
	discover, header := modern("server/discover", "", "")
	for _, test := range []struct {
		name, body string
		header     map[string]string
		status     int
	}{
		{"empty", "", nil, 400},
		{"not JSON", "{", nil, 400},
		{"a number", "1", nil, 400},
		{"null", "null", nil, 400},
		{"a batch", "[" + initialize + "]", nil, 400},
		{"an empty batch", "[]", nil, 400},
		{"a batch after space", " \n[" + initialize + "]", nil, 400},
		{"a large batch", "[" + strings.Repeat(initialize+",", 5000) + initialize + "]", nil, 400},
		{"giant", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", maxBody) + `"}`, nil, 413},
		{"deep", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + deep + `}`, nil, 400},
		{"not a version of JSON-RPC", `{"id":1,"method":"ping"}`, nil, 400},
		{"an unknown method", `{"jsonrpc":"2.0","id":1,"method":"assay/drop"}`, nil, 400},
		{"before initialize", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil, 200}, // an error in it
		{"an unknown revision", discover, map[string]string{revisionHeader: "2099-01-01"}, 400},
		{"an old revision", initialize, map[string]string{revisionHeader: "2024-11-05"}, 400},
		{"a revision that is none", discover, map[string]string{revisionHeader: "zzz"}, 400},
		{"headers of another method", discover, map[string]string{revisionHeader: revisionStateless, "Mcp-Method": "tools/list"}, 400},
		{"another media type", initialize, map[string]string{"Content-Type": "text/plain"}, 415},
		{"no stream accepted", initialize, map[string]string{"Accept": "application/json"}, 400},
		{"an unknown session", initialize, map[string]string{sessionHeader: "x"}, 404},
		{"a foreign origin", discover, map[string]string{revisionHeader: revisionStateless, "Mcp-Method": "server/discover", "Origin": "https://evil.example.com"}, 403},
		{"the origin null", initialize, map[string]string{"Origin": "null"}, 403},
		{"its own origin", discover, map[string]string{revisionHeader: revisionStateless, "Mcp-Method": "server/discover", "Origin": strings.TrimSuffix(x.url, "/mcp")}, 200},
		{"the newest revision", discover, header, 200},
	} {
		status, _, text := x.post(t, "ann", test.body, test.header)
		if status != test.status || leaked(text, "") != "" {
			t.Errorf("%s: %d, want %d: %.300s", test.name, status, test.status, text)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPut, http.MethodOptions} {
		if status, _, _ := x.send(t, method, "ann", http.NoBody, nil); status < 400 || status >= 500 {
			t.Errorf("%s: %d", method, status)
		}
	}
	url := x.url
	x.url += "?access_token=ann"
	if status, _, _ := x.post(t, "ann", initialize, nil); status != http.StatusUnauthorized {
		t.Errorf("a token in the query: %d", status)
	}
	x.url = url
	if status, _, _ := x.post(t, "ann", initialize, map[string]string{"X-API-Key": "ann"}); status != http.StatusUnauthorized {
		t.Errorf("two credentials: %d", status)
	}
}

// TestRebinding checks that a local handler refuses other hosts.
func TestRebinding(t *testing.T) {
	t.Parallel()
	x := openWorld(t, func(_ *engine.HostConfig, c *Config) { c.Local = true })
	for host, want := range map[string]int{"evil.example.com": 403, "localhost:1": 200} {
		if status, _, text := x.post(t, "ann", initialize, map[string]string{"Host": host}); status != want {
			t.Errorf("host %s: %d: %s", host, status, text)
		}
	}
}

// TestSessionsAreBound checks that a session of the protocol is its owner's only.
func TestSessionsAreBound(t *testing.T) {
	t.Parallel()
	x := openWorld(t, nil)
	id := x.initialize(t, "ann")
	const initialized, ping = `{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	if status, _, text := x.post(t, "ann", initialized, map[string]string{sessionHeader: id}); status != http.StatusAccepted {
		t.Fatalf("initialized: %d: %s", status, text)
	}
	for _, test := range []struct {
		token, method string
		status        int
	}{
		{"ann", "POST", 200}, {"ann.2", "POST", 200}, // another token of the same user
		{"bob", "POST", 404}, {"zed", "POST", 404}, {"searcher", "POST", 200}, // ann with fewer rights
		{"bob", "GET", 404}, {"bob", "DELETE", 404}, {"nobody", "POST", 401}, {"", "POST", 401},
		{"ann", "POST", 200}, {"ann", "DELETE", 204}, {"ann", "POST", 404},
	} {
		status, _, text := x.send(t, test.method, test.token, strings.NewReader(ping), map[string]string{sessionHeader: id, revisionHeader: revision2511})
		if status != test.status {
			t.Errorf("%s %q: %d, want %d: %s", test.method, test.token, status, test.status, text)
		}
	}
}

// TestSessionRights checks that a call in a session has the rights of its own credential, not of the
// one that began the session.
func TestSessionRights(t *testing.T) {
	t.Parallel()
	x := openWorld(t, nil)
	id := x.initialize(t, "ann")
	header := map[string]string{sessionHeader: id, revisionHeader: revision2511}
	const ask = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"ask","arguments":{"question":"Who approves travel to a customer?"}}}`
	if status, _, _ := x.post(t, "ann", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, header); status != http.StatusAccepted {
		t.Fatal(status)
	}
	if status, _, _ := x.post(t, "searcher", ask, header); status != http.StatusForbidden {
		t.Errorf("a token without the scope: %d", status)
	}
	if status, _, text := x.post(t, "ann", ask, header); status != http.StatusOK || !strings.Contains(text, "head of the department") {
		t.Errorf("%d: %s", status, text)
	}
}

// TestAbandonedSessions opens a thousand sessions and leaves them.
func TestAbandonedSessions(t *testing.T) {
	t.Parallel()
	const most = 20
	x := openWorld(t, func(_ *engine.HostConfig, c *Config) { c.Sessions, c.Concurrent = most, 8 })
	first := x.initialize(t, "ann")
	for range 1000 {
		x.initialize(t, "ann")
	}
	count := func() (n int) {
		for range x.handler.stateful.Sessions() {
			n++
		}
		return n
	}
	if n := count(); n > 8 || n == 0 {
		t.Errorf("%d sessions of one caller are left, want at most 8", n)
	}
	if status, _, _ := x.post(t, "ann", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, map[string]string{sessionHeader: first}); status != http.StatusNotFound {
		t.Errorf("the first session: %d", status)
	}
	for range 8 {
		x.initialize(t, "bob")
		x.initialize(t, "zed")
		if count() == most {
			break
		}
	}
	if status, header, _ := x.post(t, "admin", initialize, nil); status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
		t.Errorf("a session beyond the bound: %d", status)
	}
	x.initialize(t, "ann") // in place of one of her own
	if n := count(); n > most {
		t.Errorf("%d sessions, want at most %d", n, most)
	}
}

// TestConcurrent bounds the requests of a caller at a time, and not those of others.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	g := newGate()
	x := openWorld(t, func(hc *engine.HostConfig, mc *Config) {
		gated(g)(hc, mc)
		mc.Concurrent = 2
	})
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			body, header := modern("tools/call", "ask", `"name":"ask","arguments":{"question":"How many days of leave may employees carry over?"}`)
			x.post(t, "ann", body, header)
		})
	}
	<-g.entered
	<-g.entered
	body, header := modern("tools/list", "", "")
	if status, h, _ := x.post(t, "ann", body, header); status != http.StatusTooManyRequests || h.Get("Retry-After") == "" {
		t.Errorf("a third request: %d", status)
	}
	if status, _, _ := x.post(t, "bob", body, header); status != http.StatusOK {
		t.Errorf("another caller's request: %d", status)
	}
	close(g.open)
	group.Wait()
	if status, _, _ := x.post(t, "ann", body, header); status != http.StatusOK {
		t.Errorf("a request after them: %d", status)
	}
}

// TestTenants calls everything with IDs of another tenant and of hidden documents. No answer has a
// word of them.
func TestTenants(t *testing.T) {
	t.Parallel()
	x := openWorld(t, nil)
	var foreign []string
	for _, token := range []string{"bob", "zed"} {
		cs := x.connect(t, token, revisionStateless, nil)
		a := call[askOut](t, cs, "ask", map[string]any{"question": "What does the project Zanzibar cost?"})
		foreign = append(foreign, a.Run)
		for r, err := range cs.Resources(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(r.Title, "Zanzibar") || strings.Contains(r.Title, "Quokka") {
				foreign = append(foreign, strings.TrimPrefix(r.URI, documentsURI))
			}
		}
	}
	if len(foreign) != 4 {
		t.Fatalf("%q, want two runs and two documents", foreign)
	}
	targets := append(foreign, "board", "quokka", "no-such-thing")
	calls := 0
	for _, revision := range Revisions {
		cs := x.connect(t, "ann", revision, nil)
		check := func(request string, result any, err error) {
			t.Helper()
			calls++
			text := string(encode(t, result)) + fmt.Sprint(err)
			if word := leaked(text, request); word != "" {
				t.Errorf("%s: leaks %q: %.500s", request, word, text)
			}
		}
		for _, arguments := range hostileCalls(targets) {
			name := arguments["tool"].(string)
			delete(arguments, "tool")
			r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
			check(fmt.Sprint(name, arguments), r, err)
		}
		for _, id := range targets {
			r, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: documentResource(id)})
			check("read "+id, r, err)
			if err == nil {
				t.Errorf("the resource of %s can be read", id)
			}
		}
		for _, uri := range []string{collectionsURI} {
			r, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			check("read", r, err)
		}
		list, err := cs.ListResources(t.Context(), nil)
		check("list", list, err)
		for _, prefix := range []string{"", "z", "q", "b", foreign[1][:4], foreign[3][:4]} {
			for _, p := range []*mcp.CompleteParams{
				{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: promptName}, Argument: mcp.CompleteParamsArgument{Name: "collection", Value: prefix}},
				{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: promptName}, Argument: mcp.CompleteParamsArgument{Name: "document", Value: prefix}},
				{Ref: &mcp.CompleteReference{Type: "ref/resource", URI: documentTemplate}, Argument: mcp.CompleteParamsArgument{Name: "id", Value: prefix}},
			} {
				r, err := cs.Complete(t.Context(), p)
				check("complete", r, err)
				if err == nil && strings.Contains(strings.Join(r.Completion.Values, " "), foreign[1]) {
					t.Errorf("the ID of a hidden document is completed")
				}
			}
		}
		prompt, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: promptName, Arguments: map[string]string{"question": "Why?", "document": "x"}})
		check("prompt", prompt, err)
	}
	t.Logf("%d calls", calls)
}

// hostileCalls are calls of tools with things that the caller may not see.
func hostileCalls(targets []string) (all []map[string]any) {
	for _, id := range targets {
		all = append(all,
			map[string]any{"tool": "fetch", "id": id},
			map[string]any{"tool": "get_document", "id": id + ".x.0"},
			map[string]any{"tool": "get_run", "run": id, "wait_seconds": 0},
			map[string]any{"tool": "ask", "question": "And how much is it?", "follows": id},
			map[string]any{"tool": "ask", "question": "What does the secret project cost?", "collections": []string{id}},
			map[string]any{"tool": "search", "query": "secret project leave", "collections": []string{id}},
		)
	}
	for _, query := range []string{"secret project cost million", "plan", "employees leave days", "*", "board"} {
		all = append(all, map[string]any{"tool": "search", "query": query, "limit": 50}, map[string]any{"tool": "ask", "question": query})
	}
	return all
}

// FuzzMessage sends any body with any revision. Nothing panics, and nothing hidden is answered.
func FuzzMessage(f *testing.F) {
	f.Add(initialize, "", "")
	for _, m := range [][3]string{
		{"tools/list", "", ""}, {"server/discover", "", ""}, {"tools/call", "search", `"name":"search","arguments":{"query":"leave"}`},
		{"tools/call", "ask", `"name":"ask","arguments":{"question":"Why?"}`}, {"resources/read", collectionsURI, `"uri":"assay://collections"`},
		{"completion/complete", "", `"ref":{"type":"ref/prompt","name":"cited_answer"},"argument":{"name":"document","value":""}`},
		{"prompts/get", promptName, `"name":"cited_answer","arguments":{"question":"x"}`}, {"resources/list", "", `"cursor":"YQ"`},
	} {
		body, _ := modern(m[0], m[1], m[2])
		f.Add(body, revisionStateless, m[0]+" "+m[1])
		f.Add(body, revision2511, "")
	}
	x := openWorld(f, func(_ *engine.HostConfig, c *Config) { c.Wait = time.Second })
	f.Fuzz(func(t *testing.T, body, revision, names string) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // of a stream that stays open
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/mcp", strings.NewReader(body))
		method, name, _ := strings.Cut(names, " ")
		for header, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "*/*", "Authorization": "Bearer ann", revisionHeader: revision, "Mcp-Method": method, "Mcp-Name": name,
		} {
			if value != "" {
				r.Header.Set(header, value)
			}
		}
		w := httptest.NewRecorder()
		x.handler.ServeHTTP(w, r)
		text, err := io.ReadAll(w.Result().Body)
		if err != nil {
			t.Fatal(err)
		}
		if word := leaked(string(text), body); word != "" {
			t.Errorf("leaks %q: %s", word, text)
		}
		if w.Code >= 500 {
			t.Errorf("%d: %s", w.Code, text)
		}
	})
}

// FuzzState opens any request state.
func FuzzState(f *testing.F) {
	s := &sealer{key: []byte("k"), now: time.Now}
	f.Add(s.seal("o", pending{Run: "r"}), "o")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, state, owner string) {
		p, err := s.open(owner, state)
		if err == nil && (owner != "o" || p.Run != "r") {
			t.Errorf("%q of %q opens: %+v", state, owner, p)
		}
	})
}

// TestIdleSessions checks that a session without requests ends.
func TestIdleSessions(t *testing.T) {
	t.Parallel()
	x := openWorld(t, func(_ *engine.HostConfig, c *Config) { c.Idle = 200 * time.Millisecond }) // as the session begins, too
	id := x.initialize(t, "ann")
	for s := range x.handler.stateful.Sessions() {
		_ = s.Wait() // its connection was closed by the handler
	}
	if status, _, _ := x.post(t, "ann", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, map[string]string{sessionHeader: id}); status != http.StatusNotFound {
		t.Errorf("a session after its idle time: %d", status)
	}
}
