package neptune

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/assay-rag/assay/internal/awssign"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/secret"
)

// A fakeNeptune executes the statements of this package, and no others, over nodes and edges in
// memory. It has the documented form of requests, replies and errors.
type fakeNeptune struct {
	*httptest.Server

	mu    sync.Mutex
	nodes map[string]*node
	edges map[edgeKey]object // properties
	calls int

	// before is called before a statement is executed, and may answer in its place.
	before func(call int, statement string, w http.ResponseWriter) (answered bool)
	// record is called with each statement before it is executed.
	record func(statement string, p object)
	// after may change the rows of a reply.
	after func(statement string, rows []object) any
}

type object = map[string]any

type node struct {
	label string
	props object
}

type edgeKey struct{ kind, from, to string }

const fakeGraph = "g-12345abcde"

// newFake returns a fake and a connection to it.
func newFake(t testing.TB) (*fakeNeptune, *Graph) {
	t.Helper()
	f := &fakeNeptune{nodes: make(map[string]*node), edges: make(map[edgeKey]object)}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f, connect(t, f.Server)
}

// connect returns a connection to a server, whatever the host of a request.
func connect(t testing.TB, s *httptest.Server) *Graph {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
	}}
	t.Cleanup(transport.CloseIdleConnections)
	g, err := Connect(t.Context(), Config{
		Graph: fakeGraph, BaseURL: "http://neptune-graph.test", HTTP: &http.Client{Transport: transport},
		Credentials: awssign.Credentials{Region: "eu-central-1", AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: secret.New("wJalrXUtnFEMIexamplekey"), SessionToken: secret.New("FwoGZXIvYXdzEexampletoken")},
	})
	if err != nil {
		t.Fatal(err)
	}
	g.pause = func(ctx context.Context, _ int) error { return ctx.Err() }
	return g
}

// open returns the index of a source whose graph is in Neptune.
func open(t testing.TB, g *Graph, source index.Source, dir string) *Index {
	t.Helper()
	texts, err := index.Open(t.Context(), dir, source)
	if err != nil {
		t.Fatal(err)
	}
	x, err := g.open(t.Context(), source, texts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

var parameterNames = regexp.MustCompile(`\$(\w+)`)

func (f *fakeNeptune) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Query, Language          string
		Parameters               object
		QueryTimeoutMilliseconds int
	}
	body := json.NewDecoder(r.Body)
	body.UseNumber()
	if err := body.Decode(&in); err != nil {
		refuse(w, http.StatusBadRequest, "ValidationException", err.Error())
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if problem := check(r, in.Query, in.Language, in.Parameters, in.QueryTimeoutMilliseconds); problem != "" {
		refuse(w, http.StatusBadRequest, "ValidationException", problem)
		return
	}
	if f.before != nil && f.before(f.calls, in.Query, w) {
		return
	}
	if f.record != nil {
		f.record(in.Query, in.Parameters)
	}
	var results any
	rows := f.execute(in.Query, in.Parameters)
	if results = rows; f.after != nil {
		results = f.after(in.Query, rows)
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(object{"results": results})
}

// check returns what is wrong with a request.
func check(r *http.Request, statement, language string, p object, timeout int) string {
	var wanted []string
	for _, m := range parameterNames.FindAllStringSubmatch(statement, -1) {
		wanted = append(wanted, m[1])
	}
	slices.Sort(wanted)
	wanted = slices.Compact(wanted)
	auth := r.Header.Get("Authorization")
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/queries" || language != "OPEN_CYPHER" || timeout <= 0:
		return fmt.Sprint("request ", r.Method, r.URL.Path, language, timeout)
	case r.Host != fakeGraph+".neptune-graph.test" || r.Header.Get("Graphidentifier") != fakeGraph:
		return "host " + r.Host
	case !strings.Contains(auth, "AKIDEXAMPLE/") || !strings.Contains(auth, "/eu-central-1/neptune-graph/aws4_request"):
		return "signature"
	case !slices.Contains(statements, statement):
		return "unknown statement"
	case !slices.Equal(wanted, slices.Sorted(maps.Keys(p))):
		return fmt.Sprint("parameters ", slices.Sorted(maps.Keys(p)), ", want ", wanted)
	}
	return ""
}

// refuse answers with an error.
//
// Source: Smithy, "AWS restJson1 protocol", operation error serialization.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("X-Amzn-ErrorType", code)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(object{"message": message})
}

var statements = []string{
	readState, countPassages, readMetadata, readPassages, readNamed, countNamed, countLeft, createState, claimState, removePassages, removeDocuments,
	writeDocuments, writeReaders, writePassages, writeNames, commitState, clearTenant, removeState,
}

func text(v any) string { return v.(string) }

func number(v any) int64 {
	n, err := v.(json.Number).Int64()
	if err != nil {
		panic(err)
	}
	return n
}

func texts(v any) []string {
	out := []string{}
	for _, s := range v.([]any) {
		out = append(out, s.(string))
	}
	return out
}

// execute executes one of the statements.
func (f *fakeNeptune) execute(statement string, p object) []object {
	switch statement {
	case readState, createState, claimState, commitState, removeState:
		return f.executeState(statement, p)
	case removePassages, removeDocuments, writeDocuments, writeReaders, writePassages, writeNames, clearTenant:
		if s := f.guarded(p); s == nil {
			if strings.HasSuffix(statement, " AS written") {
				return []object{{"written": 0}}
			}
			return []object{}
		}
		return f.executeWrite(statement, p)
	case countLeft:
		n := 0
		for _, x := range f.nodes {
			if x.props["tenant"] == text(p["tenant"]) {
				n++
			}
		}
		return []object{{"left": n}}
	}
	return f.executeRead(statement, p)
}

// guarded returns the state if the guard of a statement holds.
func (f *fakeNeptune) guarded(p object) *node {
	s := f.nodes[text(p["state"])]
	if s == nil || s.label != "State" || s.props["claim"] != text(p["claim"]) || s.props["step"].(int64) > number(p["step"]) {
		return nil
	}
	s.props["step"] = number(p["step"])
	return s
}

func (f *fakeNeptune) executeState(statement string, p object) []object {
	id := text(p["state"])
	s := f.nodes[id]
	switch statement {
	case readState:
		if s == nil {
			return []object{}
		}
		return []object{maps.Clone(s.props)}
	case createState:
		if s == nil {
			f.nodes[id] = &node{"State", object{"version": int64(0), "sequence": int64(0), "claim": "", "step": int64(0)}}
		}
	case claimState:
		if s == nil || s.props["claim"] != text(p["before"]) && s.props["claim"] != text(p["claim"]) {
			return []object{{"written": 0}}
		}
		s.props["claim"] = text(p["claim"])
	case commitState:
		if s = f.guarded(p); s == nil {
			return []object{{"written": 0}}
		}
		s.props["version"], s.props["sequence"] = number(p["version"]), number(p["sequence"])
	case removeState:
		if s != nil && s.props["claim"] == text(p["claim"]) {
			f.detach(id)
		}
		return []object{}
	}
	return []object{{"written": 1}}
}

// detach deletes a node with its edges.
func (f *fakeNeptune) detach(id string) {
	delete(f.nodes, id)
	maps.DeleteFunc(f.edges, func(e edgeKey, _ object) bool { return e.from == id || e.to == id })
}

// merge returns the node of an ID, which it makes if there is none.
func (f *fakeNeptune) merge(label, id string, props object) {
	x := f.nodes[id]
	if x == nil {
		x = &node{label, object{}}
		f.nodes[id] = x
	}
	maps.Copy(x.props, props)
}

func (f *fakeNeptune) mergeEdge(kind, from, to string, props object) {
	e := edgeKey{kind, from, to}
	if f.edges[e] == nil {
		f.edges[e] = object{}
	}
	maps.Copy(f.edges[e], props)
}

// clearLimit is the LIMIT of clearTenant.
const clearLimit = 1000

func (f *fakeNeptune) executeWrite(statement string, p object) []object {
	switch statement {
	case removePassages:
		documents := texts(p["documents"])
		for e := range maps.Clone(f.edges) {
			if e.kind == "PART_OF" && slices.Contains(documents, e.to) {
				f.detach(e.from)
			}
		}
		return []object{}
	case removeDocuments:
		for _, id := range texts(p["documents"]) {
			f.detach(id)
		}
		return []object{}
	case clearTenant:
		n := 0
		for id, x := range f.nodes {
			if x.props["tenant"] == text(p["tenant"]) && n < clearLimit {
				f.detach(id)
				n++
			}
		}
		return []object{}
	}
	written := 0
	for _, r := range p["rows"].([]any) {
		if f.writeRow(statement, text(p["tenant"]), r.(object)) {
			written++
		}
	}
	return []object{{"written": written}}
}

func (f *fakeNeptune) writeRow(statement, tenant string, row object) bool {
	switch statement {
	case writeDocuments:
		f.merge("Document", text(row["id"]), object{
			"tenant": tenant, "document": text(row["document"]), "collection": text(row["collection"]), "sequence": number(row["sequence"]),
			"passages": number(row["passages"]), "metadata": text(row["metadata"]),
		})
	case writeReaders, writePassages:
		d, id := text(row["document"]), text(row["id"])
		if f.nodes[d] == nil {
			return false
		}
		if statement == writeReaders {
			f.merge("Reader", id, object{"tenant": tenant, "name": text(row["name"])})
			f.mergeEdge("SHOWN_TO", d, id, nil)
			break
		}
		f.merge("Passage", id, object{"tenant": tenant, "chunk": text(row["chunk"])})
		f.mergeEdge("PART_OF", id, d, nil)
	case writeNames:
		passage, entity := text(row["passage"]), text(row["entity"])
		if f.nodes[passage] == nil {
			return false
		}
		f.merge("Entity", entity, object{"tenant": tenant})
		f.mergeEdge("NAMES", passage, entity, object{"key": text(row["key"]), "title": row["title"].(bool)})
	}
	return true
}

// visible returns the documents of a scope, each with the names of the readers that were matched.
func (f *fakeNeptune) visible(p object) map[string][]string {
	found := make(map[string][]string)
	readers, collections, changed, documents := texts(p["readers"]), texts(p["collections"]), texts(p["changed"]), texts(p["documents"])
	for e := range f.edges {
		if e.kind != "SHOWN_TO" || !slices.Contains(readers, e.to) {
			continue
		}
		d := f.nodes[e.from].props
		switch {
		case d["tenant"] != text(p["tenant"]), d["sequence"].(int64) > number(p["sequence"]):
		case !p["everywhere"].(bool) && !slices.Contains(collections, text(d["collection"])):
		case slices.Contains(changed, text(d["document"])):
		case !p["unfiltered"].(bool) && !slices.Contains(documents, text(d["document"])):
		default:
			found[e.from] = append(found[e.from], text(f.nodes[e.to].props["name"]))
		}
	}
	return found
}

// shownOf returns the columns of the constant shown.
func (f *fakeNeptune) shownOf(d string, readers []string, more object) object {
	row := object{"readers": readers}
	for _, name := range []string{"tenant", "document", "collection", "sequence"} {
		row[name] = f.nodes[d].props[name]
	}
	maps.Copy(row, more)
	return row
}

func (f *fakeNeptune) executeRead(statement string, p object) []object {
	documents := f.visible(p)
	rows := []object{}
	of := make(map[string]string) // documents by passage
	for e := range f.edges {
		if e.kind == "PART_OF" && documents[e.to] != nil {
			of[e.from] = e.to
		}
	}
	switch statement {
	case countPassages:
		sum := int64(0)
		for d := range documents {
			sum += f.nodes[d].props["passages"].(int64)
		}
		return []object{{"passages": sum}}
	case readMetadata:
		for d, readers := range documents {
			rows = append(rows, f.shownOf(d, readers, object{"metadata": f.nodes[d].props["metadata"]}))
		}
	case readPassages:
		for _, id := range texts(p["passages"]) {
			if d, ok := of[id]; ok {
				rows = append(rows, f.shownOf(d, documents[d], object{"chunk": f.nodes[id].props["chunk"], "names": f.names(id)}))
			}
		}
	case readNamed, countNamed:
		counts, entities := make(map[string]int), texts(p["entities"])
		for e, props := range f.edges {
			if d, ok := of[e.from]; ok && e.kind == "NAMES" && slices.Contains(entities, e.to) {
				counts[text(props["key"])]++
				rows = append(rows, f.shownOf(d, documents[d], object{"key": props["key"], "title": props["title"], "chunk": f.nodes[e.from].props["chunk"]}))
			}
		}
		if statement == countNamed {
			rows = []object{}
			for key, n := range counts {
				rows = append(rows, object{"key": key, "passages": n})
			}
		}
	}
	return rows
}

// names returns what a passage names. OPTIONAL MATCH gives a row of nulls if there is nothing.
func (f *fakeNeptune) names(passage string) []object {
	list := []object{}
	for e, props := range f.edges {
		if e.kind == "NAMES" && e.from == passage {
			list = append(list, object{"key": props["key"], "title": props["title"]})
		}
	}
	if len(list) == 0 {
		return []object{{"key": nil, "title": nil}}
	}
	slices.SortFunc(list, func(a, b object) int { return cmp.Compare(text(b["key"]), text(a["key"])) })
	return list
}

// flush flushes an index.
func flush(t testing.TB, x *Index) {
	t.Helper()
	if err := x.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}
