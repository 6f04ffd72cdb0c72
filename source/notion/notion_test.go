package notion

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/parse"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/source/internal/resttest"
	"github.com/assay-rag/assay/source/sourcetest"
)

type object = resttest.Object

const (
	secretToken = "ntn_1234567890abcdefgh"
	pageSize    = 2
)

// A workspace imitates Notion.
//
// Shapes: "Search", "Retrieve block children", "Retrieve a block", "Retrieve a page", "Page
// properties", "Block", "File object" and "Status codes" of the Notion API, version 2022-06-28, as
// of 2025.
type workspace struct {
	mu       sync.Mutex
	pages    map[string]object
	children map[string][]object
	blocks   map[string]object
	clock    time.Time
	gone     map[string]bool
	conflict int // answers with 409
	next     string
	count    int
	storage  string
}

func newWorkspace() *workspace {
	return &workspace{pages: map[string]object{}, children: map[string][]object{}, blocks: map[string]object{}, gone: map[string]bool{}, clock: time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)}
}

func richText(words string) []object {
	return []object{{"type": "text", "plain_text": words, "text": object{"content": words}, "annotations": object{"bold": false}}}
}

func paragraph(words string) object {
	return object{"object": "block", "id": "p-" + words, "type": "paragraph", "paragraph": object{"rich_text": richText(words)}}
}

func (w *workspace) put(id string, blocks ...object) object {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock = w.clock.Add(time.Minute)
	p := object{"object": "page", "id": id, "created_time": "2025-01-01T00:00:00.000Z", "last_edited_time": w.clock.Format("2006-01-02T15:04:05.000Z"),
		"archived": false, "in_trash": false, "parent": object{"type": "workspace"}, "url": "https://www.notion.so/Title-" + id,
		"properties": object{"Name": object{"id": "title", "type": "title", "title": richText("About " + id)}}}
	w.pages[id] = p
	w.set(id, blocks)
	return p
}

func (w *workspace) set(parent string, blocks []object) {
	w.children[parent] = blocks
	for _, b := range blocks {
		w.blocks[b["id"].(string)] = b
	}
}

func (w *workspace) search(out http.ResponseWriter, r *http.Request) {
	var query struct {
		StartCursor string `json:"start_cursor"`
		Filter      struct{ Value string }
	}
	if err := json.NewDecoder(r.Body).Decode(&query); err != nil || query.Filter.Value != "page" {
		panic("not the expected search")
	}
	var all []object
	for _, p := range w.pages {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b object) int {
		return cmp.Compare(b["last_edited_time"].(string), a["last_edited_time"].(string))
	})
	w.list(out, all, query.StartCursor)
}

func (w *workspace) list(out http.ResponseWriter, all []object, cursor string) {
	start, _ := strconv.Atoi(cursor)
	end := min(start+pageSize, len(all))
	reply := object{"object": "list", "results": append([]object{}, all[min(start, end):end]...), "has_more": end < len(all), "next_cursor": nil}
	if end < len(all) {
		reply["next_cursor"] = strconv.Itoa(end)
	}
	if w.next != "" {
		w.count++
		reply["has_more"], reply["next_cursor"] = true, strings.ReplaceAll(w.next, "COUNT", strconv.Itoa(w.count))
	}
	resttest.JSON(out, reply)
}

func fail(out http.ResponseWriter, status int, code string) {
	out.WriteHeader(status)
	resttest.JSON(out, object{"object": "error", "status": status, "code": code, "message": "failed"})
}

func (w *workspace) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.Header.Get("Notion-Version") != "2022-06-28":
		fail(out, http.StatusBadRequest, "missing_version")
	case w.conflict > 0:
		w.conflict--
		fail(out, http.StatusConflict, "conflict_error")
	case r.URL.Path == "/v1/search":
		w.search(out, r)
	case w.gone[parts[2]]:
		fail(out, http.StatusNotFound, "object_not_found")
	case strings.HasSuffix(r.URL.Path, "/children"):
		w.list(out, w.children[parts[2]], r.FormValue("start_cursor"))
	case parts[1] == "blocks" && w.blocks[parts[2]] != nil:
		resttest.JSON(out, w.blocks[parts[2]])
	case parts[1] == "pages" && w.pages[parts[2]] != nil:
		resttest.JSON(out, w.pages[parts[2]])
	default:
		fail(out, http.StatusNotFound, "object_not_found")
	}
}

func config(url string) source.Config {
	return source.Config{Target: "notion:acme", HTTP: http.DefaultClient, Options: map[string]string{"endpoint": url, "readers": "group:staff"},
		Credential: resttest.Credentials(map[string]string{"token": secretToken})}
}

func (w *workspace) start(t *testing.T) *resttest.Service {
	storage := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.Header.Get("Notion-Version") != "" {
			t.Error("the host of files got the credentials")
		}
		_, _ = io.WriteString(out, "content of "+r.URL.Path)
	}))
	t.Cleanup(storage.Close)
	w.storage = storage.URL
	return resttest.New(t, "Bearer "+secretToken, w)
}

func TestContract(t *testing.T) {
	t.Parallel()
	sourcetest.Run(t, func(t *testing.T) sourcetest.World {
		w := newWorkspace()
		s := w.start(t)
		return sourcetest.World{
			Kind: Kind(), Config: config(s.URL),
			Put:      func(name, text string) { w.put(name, paragraph(text)) },
			Delete:   func(name string) { w.mu.Lock(); defer w.mu.Unlock(); delete(w.pages, name) },
			URI:      uri,
			Throttle: s.Throttle,
			Vanish:   func(name string) { w.mu.Lock(); defer w.mu.Unlock(); w.gone[name] = true },
			Refuse:   s.Refuse,
		}
	})
}

func TestHostile(t *testing.T) {
	t.Parallel()
	resttest.Hostile(t, Kind(), secretToken, config, nil)
	for what, next := range map[string]string{"endless": "900COUNT", "repeated": "900"} {
		w := newWorkspace()
		w.next = next
		s, _ := resttest.Open(t, Kind(), config(w.start(t).URL))
		if err := resttest.Sweep(t.Context(), s).Err; !errors.Is(err, assay.ErrUnavailable) {
			t.Errorf("%s: %v, want it refused", what, err)
		}
	}
}

// TestRecent checks that a page edited in the last minutes has no version and stays behind the
// cursor, because another edit may get the same time.
func TestRecent(t *testing.T) {
	t.Parallel()
	w := newWorkspace()
	w.put("old", paragraph("a"))
	w.clock = time.Date(2025, 12, 31, 23, 58, 0, 0, time.UTC) // the clock stands at 2026-01-01
	w.put("new", paragraph("b"))
	s, clock := resttest.Open(t, Kind(), config(w.start(t).URL))
	first := resttest.Changes(t.Context(), s, "")
	if first.Items[uri("old")].Version == "" || first.Items[uri("new")].Version != "" {
		t.Errorf("versions %+v", first.Items)
	}
	second := resttest.Changes(t.Context(), s, first.Cursor)
	if len(second.Items) != 1 || second.Items[uri("new")].URI == "" {
		t.Errorf("%+v, want the recent page again", second)
	}
	clock.Advance(time.Hour)
	third := resttest.Changes(t.Context(), s, second.Cursor)
	if third.Items[uri("new")].Version == "" {
		t.Errorf("%+v, want a version", third)
	}
	if last := resttest.Changes(t.Context(), s, third.Cursor); len(last.Items) != 0 {
		t.Errorf("%+v, want nothing", last)
	}
}

func TestTrash(t *testing.T) {
	t.Parallel()
	w := newWorkspace()
	w.put("a", paragraph("a"))
	s, _ := resttest.Open(t, Kind(), config(w.start(t).URL))
	first := resttest.Changes(t.Context(), s, "")
	w.put("a", paragraph("a"))["in_trash"] = true
	got := resttest.Changes(t.Context(), s, first.Cursor)
	if !got.Deleted[uri("a")] || len(resttest.Sweep(t.Context(), s).Items) != 0 {
		t.Errorf("%+v, want the page deleted", got)
	}
	_, err := s.Fetch(t.Context(), first.Items[uri("a")])
	if skip, ok := source.AsSkip(err); !ok || skip.Reason != source.Vanished {
		t.Errorf("%v, want it vanished", err)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	w := newWorkspace()
	service := w.start(t)
	held := func(name string) object {
		return object{"type": "file", "file": object{"url": w.storage + "/" + name + "?X-Amz-Signature=secret"}}
	}
	pdf := object{"object": "block", "id": "b-1", "type": "pdf", "last_edited_time": "2025-01-01T00:00:00.000Z", "pdf": held("a.pdf")}
	outside := object{"object": "block", "id": "b-2", "type": "image", "image": object{"type": "external", "external": object{"url": "https://elsewhere.example/x.png"}}}
	column := object{"object": "block", "id": "b-3", "type": "column", "has_children": true, "column": object{}}
	copied := object{"object": "block", "id": "b-4", "type": "synced_block", "has_children": true, "synced_block": object{"synced_from": object{"block_id": "b-9"}}}
	w.gone["b-4"] = true
	p := w.put("a", column, outside, copied)
	w.set("b-3", []object{pdf})
	p["properties"].(object)["Contract"] = object{"id": "p%3A1", "type": "files", "files": []object{held("x.txt"), {"name": "Signed.txt", "type": "file", "file": held("y.txt")["file"]}}}
	s, _ := resttest.Open(t, Kind(), config(service.URL))
	got := resttest.Sweep(t.Context(), s)
	for at, want := range map[string]string{"#b1": "a.pdf", "#p%253A1-0": "x.txt", "#p%253A1-1": "y.txt"} {
		item := got.Items[uri("a")+at]
		if item.URI == "" {
			t.Errorf("no file %s in %v", at, got.Items)
			continue
		}
		if text := resttest.Fetch(t, s, item); text != "content of /"+want || !slices.Equal(item.ACL.Allow, []string{"group:staff"}) {
			t.Errorf("%s: %q, %v", at, text, item.ACL)
		}
	}
	if len(got.Items) != 4 || got.Err != nil {
		t.Errorf("%d items, %v", len(got.Items), got.Err)
	}
	if text := resttest.Fetch(t, s, got.Items[uri("a")]); strings.Contains(text, "secret") || !strings.Contains(text, "https://elsewhere.example/x.png") {
		t.Errorf("%s", text)
	}
	w.gone["b-1"] = true
	_, err := s.Fetch(t.Context(), got.Items[uri("a")+"#b1"])
	if skip, ok := source.AsSkip(err); !ok || skip.Reason != source.Vanished {
		t.Errorf("%v, want it vanished", err)
	}
	w.conflict = 2
	if got := resttest.Sweep(t.Context(), s); got.Err != nil || len(got.Items) != 4 {
		t.Errorf("after conflicts: %v", got.Err)
	}
}

// TestTooDeep checks that blocks that contain each other end as an item that is too large, whose
// files are not known.
func TestTooDeep(t *testing.T) {
	t.Parallel()
	w := newWorkspace()
	loop := object{"object": "block", "id": "b-1", "type": "toggle", "has_children": true, "toggle": object{}}
	w.put("a", loop)
	w.set("b-1", []object{loop})
	s, _ := resttest.Open(t, Kind(), config(w.start(t).URL))
	got := resttest.Sweep(t.Context(), s)
	if skip := got.Skips[uri("a")+"#files"]; skip == nil || !skip.Folder || skip.Reason != source.TooLarge || got.Err != nil {
		t.Errorf("%v, %v", got.Skips, got.Err)
	}
}

func TestPageHTML(t *testing.T) {
	t.Parallel()
	const properties = `{
		"Name": {"type": "title", "title": [{"plain_text": "T & U"}]},
		"Count": {"type": "number", "number": 3.5}, "Done": {"type": "checkbox", "checkbox": true},
		"Kind": {"type": "select", "select": {"name": "Report"}}, "Tags": {"type": "multi_select", "multi_select": [{"name": "a"}, {"name": "b"}]},
		"When": {"type": "date", "date": {"start": "2026-01-01", "end": "2026-01-02"}}, "Who": {"type": "people", "people": [{"object": "user", "name": "Ann"}]},
		"ID": {"type": "unique_id", "unique_id": {"prefix": "T", "number": 7}}, "Sum": {"type": "formula", "formula": {"type": "string", "string": "x"}},
		"Roll": {"type": "rollup", "rollup": {"type": "array", "array": [{"type": "rich_text", "rich_text": [{"plain_text": "r"}]}]}},
		"Notes": {"type": "rich_text", "rich_text": [{"plain_text": "n1"}, {"plain_text": "n2"}]}, "Empty": {"type": "url", "url": null}}`
	const blocks = `[
		{"type": "heading_1", "heading_1": {"rich_text": [{"plain_text": "H"}]}},
		{"type": "paragraph", "paragraph": {"rich_text": [{"plain_text": "a<b", "annotations": {"bold": true, "code": true}}, {"plain_text": "link", "href": "https://x?a&b"}]}},
		{"type": "bulleted_list_item", "bulleted_list_item": {"rich_text": [{"plain_text": "one"}]}}, {"type": "bulleted_list_item", "bulleted_list_item": {"rich_text": [{"plain_text": "two"}]}},
		{"type": "numbered_list_item", "numbered_list_item": {"rich_text": [{"plain_text": "first"}]}},
		{"type": "to_do", "to_do": {"checked": true, "rich_text": [{"plain_text": "do"}]}},
		{"type": "code", "code": {"language": "go", "rich_text": [{"plain_text": "a < b"}], "caption": [{"plain_text": "cap"}]}},
		{"type": "callout", "callout": {"icon": {"emoji": "💡"}, "rich_text": [{"plain_text": "idea"}]}},
		{"type": "equation", "equation": {"expression": "x^2"}}, {"type": "divider", "divider": {}}, {"type": "child_page", "child_page": {"title": "Child"}},
		{"type": "bookmark", "bookmark": {"url": "https://y", "caption": []}}, {"type": "unheard", "unheard": {"rich_text": [{"plain_text": "kept"}], "title": "too"}},
		{"type": "paragraph", "in_trash": true, "paragraph": {"rich_text": [{"plain_text": "deleted"}]}},
		{"type": "table", "table": {"has_column_header": true}}]`
	const want = `<!DOCTYPE html>
<html><head><meta charset="utf-8"><title>T &amp; U</title></head><body><main>
<ul>
<li>Count: 3.5</li>
<li>Done: true</li>
<li>ID: T-7</li>
<li>Kind: Report</li>
<li>Notes: n1n2</li>
<li>Roll: r</li>
<li>Sum: x</li>
<li>Tags: a, b</li>
<li>When: 2026-01-01 – 2026-01-02</li>
<li>Who: Ann</li>
</ul>
<h2>H</h2>
<p><strong><code>a&lt;b</code></strong><a href="https://x?a&amp;b">link</a></p>
<ul>
<li>one</li>
<li>two</li>
</ul>
<ol>
<li>first</li>
</ol>
<ul>
<li>[x] do</li>
</ul>
<pre>a &lt; b</pre>
<p>cap</p>
<blockquote><p>💡 idea</p>
</blockquote>
<p><code>x^2</code></p>
<hr>
<p>Child</p>
<p>https://y</p>
<p>kept too</p>
<table>
<tr><th>k</th><th>v</th></tr>
<tr><td>1</td><td>2</td></tr>
</table>
</main></body></html>
`
	var p map[string]any
	var b []block
	if err := errors.Join(json.Unmarshal([]byte(properties), &p), json.Unmarshal([]byte(blocks), &b)); err != nil {
		t.Fatal(err)
	}
	rows := `[{"type":"table_row","table_row":{"cells":[[{"plain_text":"k"}],[{"plain_text":"v"}]]}},{"type":"table_row","table_row":{"cells":[[{"plain_text":"1"}],[{"plain_text":"2"}]]}}]`
	if err := json.Unmarshal([]byte(rows), &b[len(b)-1].children); err != nil {
		t.Fatal(err)
	}
	if got := pageHTML(p, b); got != want {
		t.Errorf("got:\n%s", got)
	}
}

func FuzzPage(f *testing.F) {
	f.Add(`{"a":{"type":"rollup","rollup":{"type":"array","array":[{"type":"number","number":1}]}}}`, `[{"type":"table","table":{}},{"type":"image","image":{"file":{"url":"x/y"}}}]`)
	f.Fuzz(func(t *testing.T, properties, blocks string) {
		var p map[string]any
		var b []block
		if json.Unmarshal([]byte(properties), &p) != nil || json.Unmarshal([]byte(blocks), &b) != nil {
			return
		}
		propertyFiles(p)
		if got := pageHTML(p, b); len(got) > 500+50*(len(properties)+len(blocks)) {
			t.Errorf("%d bytes from %d", len(got), len(properties)+len(blocks))
		}
	})
}

func TestInvalid(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*source.Config){
		"target":      func(c *source.Config) { c.Target = "acme" },
		"no readers":  func(c *source.Config) { c.Options["readers"] = " , " },
		"bad readers": func(c *source.Config) { c.Options["readers"] = "ann" },
		"files":       func(c *source.Config) { c.Options["files"] = "maybe" },
		"no token":    func(c *source.Config) { c.Credential = resttest.Credentials(nil) },
		"not https":   func(c *source.Config) { c.Options["endpoint"] = "http://api.notion.com" },
	} {
		c := config("https://api.notion.com")
		c.Options["files"] = "true"
		change(&c)
		if _, err := Kind().Open(t.Context(), c); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestParsed checks that the parser of HTML reads all words of a page.
func TestParsed(t *testing.T) {
	t.Parallel()
	const words = "title Kind Report para one nested code quote head cell link"
	var properties map[string]any
	var blocks []block
	err := errors.Join(
		json.Unmarshal([]byte(`{"Name": {"type": "title", "title": [{"plain_text": "title"}]}, "Kind": {"type": "select", "select": {"name": "Report"}}}`), &properties),
		json.Unmarshal([]byte(`[{"type": "paragraph", "paragraph": {"rich_text": [{"plain_text": "para"}, {"plain_text": " link", "href": "https://x"}]}},
			{"type": "bulleted_list_item", "bulleted_list_item": {"rich_text": [{"plain_text": "one"}]}}, {"type": "code", "code": {"rich_text": [{"plain_text": "code"}]}},
			{"type": "quote", "quote": {"rich_text": [{"plain_text": "quote"}]}}, {"type": "table", "table": {"has_column_header": true}}]`), &blocks),
		json.Unmarshal([]byte(`[{"type": "paragraph", "paragraph": {"rich_text": [{"plain_text": "nested"}]}}]`), &blocks[1].children),
		json.Unmarshal([]byte(`[{"type": "table_row", "table_row": {"cells": [[{"plain_text": "head"}]]}}, {"type": "table_row", "table_row": {"cells": [[{"plain_text": "cell"}]]}}]`), &blocks[4].children))
	if err != nil {
		t.Fatal(err)
	}
	data := []byte(pageHTML(properties, blocks))
	d, err := parse.Parse(t.Context(), parse.Input{Name: "x.html", Type: "text/html", Data: data})
	if err != nil {
		t.Fatal(err)
	}
	read := d.Title + " " + d.Text
	for word := range strings.FieldsSeq(words) {
		if !strings.Contains(read, word) {
			t.Errorf("no %q in %q", word, read)
		}
	}
}
