package neptune

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/awssign"
	"github.com/assay-rag/assay/internal/index/indextest"
)

// TestForeignRows changes the rows of replies so that they have something that was not asked for. The
// walk must fail and find nothing.
func TestForeignRows(t *testing.T) {
	t.Parallel()
	set := func(column string, v any) func(object) { return func(r object) { r[column] = v } }
	for name, test := range map[string]struct {
		statement string
		change    func(object)
	}{
		"another tenant":             {readPassages, set("tenant", string(namespaceOf("b")))},
		"another tenant's naming":    {readNamed, set("tenant", string(namespaceOf("b")))},
		"another reader":             {readNamed, set("readers", []string{digest("reader", "user:bob")})},
		"a further reader":           {readPassages, set("readers", []string{everyone, digest("reader", "user:bob")})},
		"no reader":                  {readPassages, set("readers", []string{})},
		"another collection":         {readNamed, set("collection", "secret")},
		"a later document":           {readNamed, set("sequence", 99)},
		"a sequence of 0":            {readPassages, set("sequence", 0)},
		"a document without ID":      {readPassages, set("document", "")},
		"a chunk not asked for":      {readPassages, set("chunk", strings.Repeat("0", 32))},
		"an entity not asked for":    {readNamed, set("key", "charles babbage")},
		"a count not asked for":      {countNamed, set("key", "charles babbage")},
		"an excluded document":       {readMetadata, set("collection", "secret")},
		"a count below 1":            {countNamed, set("passages", 0)},
		"a count above all":          {countNamed, set("passages", 40)},
		"a count of a fraction":      {countNamed, set("passages", 1.5)},
		"a negative total":           {countPassages, set("passages", -1)},
		"no total":                   {countPassages, set("passages", nil)},
		"a title that is a string":   {readNamed, set("title", "yes")},
		"a title that is null":       {readNamed, set("title", nil)},
		"no chunk":                   {readNamed, set("chunk", nil)},
		"a chunk that is an object":  {readPassages, set("chunk", object{"a": 1})},
		"names that are a string":    {readPassages, set("names", "ada lovelace")},
		"a name without title":       {readPassages, set("names", []object{{"key": "x", "title": nil}})},
		"metadata that is no object": {readMetadata, set("metadata", "[1]")},
		"a sequence that is huge":    {readState, set("sequence", 1e30)},
		"a negative sequence":        {readState, set("sequence", -1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _, _, x, entries := world(t)
			changed := false
			f.mu.Lock()
			f.after = func(statement string, rows []object) any {
				if statement == test.statement {
					for _, r := range rows {
						test.change(r)
						changed = true
					}
				}
				return rows
			}
			f.mu.Unlock()
			q := assay.Query{Text: "Ada Lovelace", Collections: []string{"c"}}
			if test.statement == readMetadata {
				q.Filter = assay.Filter{Op: assay.OpEquals, Key: "none", Value: assay.NumberValue(1)}
			}
			chunks, err := walkedBy(t.Context(), x, assay.Principal{User: "ann"}, q, entries...)
			f.mu.Lock()
			defer f.mu.Unlock()
			if !changed || len(chunks) > 0 || !errors.Is(err, assay.ErrUnavailable) {
				t.Errorf("changed %v, %d chunks, %v; want ErrUnavailable", changed, len(chunks), err)
			}
		})
	}
}

// TestMoreRows checks that a reply that repeats rows is refused.
func TestMoreRows(t *testing.T) {
	t.Parallel()
	f, _, _, x, entries := world(t)
	f.mu.Lock()
	f.after = func(statement string, rows []object) any {
		if statement == readNamed {
			return append(rows, rows...)
		}
		return rows
	}
	f.mu.Unlock()
	if chunks, err := walked(t.Context(), x, assay.Local(), entries...); !errors.Is(err, assay.ErrUnavailable) || len(chunks) > 0 {
		t.Errorf("%d chunks, %v", len(chunks), err)
	}
}

// TestFailures checks errors and replies that are not of the documented form, of reads and of writes.
func TestFailures(t *testing.T) {
	t.Parallel()
	reply := func(status int, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	refusal := func(status int, code string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			refuse(w, status, code, "the key wJalrXUtnFEMIexamplekey of AKIDEXAMPLE is wrong")
		}
	}
	for name, test := range map[string]struct {
		answer func(http.ResponseWriter)
		again  bool // the request is sent again
	}{
		"throttled":         {refusal(http.StatusTooManyRequests, "ThrottlingException"), true},
		"conflict":          {refusal(http.StatusConflict, "ConflictException"), true},
		"internal":          {refusal(http.StatusInternalServerError, "InternalServerException"), true},
		"timeout":           {refusal(http.StatusUnprocessableEntity, "UnprocessableException"), false},
		"denied":            {refusal(http.StatusForbidden, "AccessDeniedException"), false},
		"invalid":           {refusal(http.StatusBadRequest, "ValidationException"), false},
		"no graph":          {refusal(http.StatusNotFound, "ResourceNotFoundException"), false},
		"gateway":           {reply(http.StatusBadGateway, "<html>"), true},
		"redirect":          {func(w http.ResponseWriter) { w.Header().Set("Location", "http://evil.test/"); w.WriteHeader(302) }, false},
		"empty":             {reply(200, ""), false},
		"no results":        {reply(200, "{}"), false},
		"null":              {reply(200, `{"results":null}`), false},
		"an object":         {reply(200, `{"results":{"a":1}}`), false},
		"rows of strings":   {reply(200, `{"results":["a"]}`), false},
		"truncated":         {reply(200, `{"results":[{"version":1`), false},
		"not JSON":          {reply(200, `<html></html>`), false},
		"two values":        {reply(200, `{"results":[]}{"results":[]}`), false},
		"huge":              {func(w http.ResponseWriter) { hugeReply(w) }, false},
		"connection closed": {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _, source, x, entries := world(t)
			var failing bool
			sent := 0
			f.mu.Lock()
			f.before = func(_ int, statement string, w http.ResponseWriter) bool {
				if failing {
					sent++
					test.answer(w)
				}
				return failing
			}
			f.mu.Unlock()
			set := func(v bool) { f.mu.Lock(); defer f.mu.Unlock(); failing, sent = v, 0 }
			set(true)
			chunks, err := walked(t.Context(), x, assay.Local(), entries...)
			if len(chunks) > 0 || !errors.Is(err, assay.ErrUnavailable) {
				t.Errorf("Walk = %d chunks, %v, want ErrUnavailable", len(chunks), err)
			}
			f.mu.Lock()
			requests := sent
			f.mu.Unlock()
			if again := requests > 1; again != test.again || requests > readAttempts {
				t.Errorf("%d requests", requests)
			}
			for _, credential := range []string{"wJalrXUtnFEMI", "AKIDEXAMPLE", "FwoGZXIvYXdz", "http://"} {
				if err != nil && strings.Contains(err.Error(), credential) {
					t.Errorf("the error contains %s: %v", credential, err)
				}
			}
			source.Put(indextest.NewEntry("c", "d9", "Engines", "there is Lord Byron."))
			if err := x.Flush(t.Context()); !errors.Is(err, assay.ErrUnavailable) {
				t.Errorf("Flush = %v, want ErrUnavailable", err)
			}
			if result, err := x.Search(t.Context(), assay.Local().Access(), assay.Query{Text: "Byron", Limit: 5}); err != nil || len(result.Hits) != 1 {
				t.Errorf("without Neptune, a search finds %d hits, %v", len(result.Hits), err)
			}
			set(false)
			flush(t, x)
			compare(t, x, source)
		})
	}
}

func hugeReply(w http.ResponseWriter) {
	part := strings.Repeat(" ", 1<<20)
	io.WriteString(w, `{"results":[`)
	for range maxReply>>20 + 1 {
		if _, err := io.WriteString(w, part); err != nil {
			return
		}
	}
	io.WriteString(w, `]}`)
}

// TestRecovers checks that a request that was throttled, or whose reply was lost, is sent again.
func TestRecovers(t *testing.T) {
	t.Parallel()
	f, _, source, x, _ := world(t)
	answers := []func(http.ResponseWriter){
		func(w http.ResponseWriter) { refuse(w, http.StatusTooManyRequests, "ThrottlingException", "slow down") },
		func(w http.ResponseWriter) { refuse(w, http.StatusConflict, "ConflictException", "concurrent") },
		func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	}
	f.mu.Lock()
	f.before = func(call int, _ string, w http.ResponseWriter) bool {
		if call%2 == 0 {
			answers[call/2%len(answers)](w)
		}
		return call%2 == 0
	}
	f.record = func(statement string, p object) { f.execute(statement, p) } // the reply of the first is lost
	f.mu.Unlock()
	for i := range 5 {
		source.Put(indextest.NewEntry("c", fmt.Sprint("d", i), "Engines", "there is Lord Byron."))
		flush(t, x)
	}
	compare(t, x, source)
}

func TestInvalid(t *testing.T) {
	t.Parallel()
	good := awssign.Credentials{Region: "eu-central-1"}
	for name, c := range map[string]Config{
		"no graph": {Credentials: good}, "host": {Credentials: good, Graph: "g-12345abcde.evil.test/"}, "URL": {Credentials: good, Graph: fakeGraph, BaseURL: "neptune"},
		"user": {Credentials: good, Graph: fakeGraph, BaseURL: "https://user:hunter2@host"},
	} {
		if _, err := Connect(t.Context(), c); !errors.Is(err, assay.ErrInvalid) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: Connect = %v", name, err)
		}
	}
}
