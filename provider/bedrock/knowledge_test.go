package bedrock_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/bedrock"
	"github.com/assay-rag/assay/provider/bedrock/bedrocktest"
)

// handbook returns a knowledge base with a public passage and restricted ones.
func handbook() *bedrocktest.Base {
	return &bedrocktest.Base{Passages: []bedrocktest.Passage{
		{Text: "The board has forty days of leave.", Location: bedrocktest.S3("s3://handbook/board.md"), Score: 0.9, Metadata: map[string]any{
			"groups": []string{"board"}, "year": 2023}},
		{Text: "Eve has no days of leave.", Location: bedrocktest.S3("s3://handbook/eve.md"), Score: 0.8, Metadata: map[string]any{
			"users": []string{"eve"}, "year": 2022}},
		{Text: "Everybody has thirty days of leave.", Location: bedrocktest.S3("s3://handbook/leave.md"), Score: 0.71, Metadata: map[string]any{
			"users": []string{"ann", "bob"}, "groups": []string{"staff"}, "x-amz-bedrock-kb-document-page-number": 3, "year": 2024, "x-amz-bedrock-kb-chunk-id": "1%3A0%3Aabc"}},
		{Text: "Nobody is named here: days of leave.", Location: bedrocktest.S3("s3://handbook/nobody.md"), Score: 0.6},
	}}
}

// byKey is a sharing by metadata.
var byKey = bedrock.Sharing{UsersKey: "users", GroupsKey: "groups"}

func texts(r assay.Results) []string {
	out := []string{}
	for _, h := range r.Hits {
		out = append(out, h.Text)
	}
	return out
}

// TestAccess checks that principals see only documents shared with them, whatever the knowledge
// base returns.
func TestAccess(t *testing.T) {
	const leave, board, eve, nobody = "Everybody has thirty days of leave.", "The board has forty days of leave.", "Eve has no days of leave.", "Nobody is named here: days of leave."
	all := []string{board, eve, leave, nobody}
	tests := []struct {
		name    string
		sharing bedrock.Sharing
		who     assay.Principal
		want    []string
		asked   bool
	}{
		{"by default", bedrock.Sharing{}, ann, nil, false},
		{"nobody asks", open, assay.Principal{}, nil, false},
		{"nobody asks, by key", byKey, assay.Principal{}, nil, false},
		{"open to all", open, ann, all, true},
		{"open to her", bedrock.Sharing{OpenTo: []string{"user:ann"}}, ann, all, true},
		{"open to a group", bedrock.Sharing{OpenTo: []string{"group:board"}}, ann, all, true},
		{"open to others", bedrock.Sharing{OpenTo: []string{"user:eve", "group:sales"}}, ann, nil, false},
		{"by key", byKey, ann, []string{board, leave}, true},
		{"by user", bedrock.Sharing{UsersKey: "users"}, ann, []string{leave}, true},
		{"by group", bedrock.Sharing{GroupsKey: "groups"}, ann, []string{board}, true},
		{"by group, without groups", bedrock.Sharing{GroupsKey: "groups"}, assay.Principal{User: "bob"}, nil, false},
		{"open to others, and by key", bedrock.Sharing{OpenTo: []string{"user:root"}, UsersKey: "users"}, ann, []string{leave}, true},
		{"a user called like a group", byKey, assay.Principal{User: "board"}, []string{}, true},
		{"a user called everybody", byKey, assay.Principal{User: "*"}, []string{}, true},
	}
	for _, test := range tests {
		for _, deaf := range []bool{false, true} {
			t.Run(test.name, func(t *testing.T) {
				b := handbook()
				b.Deaf = deaf
				r, err := search(t, b, bedrock.KnowledgeBase{Sharing: test.sharing}, test.who, assay.Query{})
				if err != nil {
					t.Fatal(err)
				}
				if got := texts(r); !slices.Equal(got, test.want) && len(got)+len(test.want) > 0 {
					t.Errorf("found %q, want %q", got, test.want)
				}
				if asked := len(b.Requests()) > 0; asked != test.asked {
					t.Errorf("asked: %v, want %v", asked, test.asked)
				}
				if r.Chunks != len(r.Hits) || r.Total != len(r.Hits) {
					t.Errorf("%d chunks and %d in all are counted, %d found", r.Chunks, r.Total, len(r.Hits))
				}
			})
		}
	}
}

// TestAccessAndFilter checks that a filter restricts the documents that a principal sees, and never
// extends them.
func TestAccessAndFilter(t *testing.T) {
	for text, want := range map[string][]string{
		"year >= 2024":                     {"Everybody has thirty days of leave."},
		`year < 2024`:                      {"The board has forty days of leave."},
		`users has "eve"`:                  {},
		`users has "eve" or year > 0`:      {"The board has forty days of leave.", "Everybody has thirty days of leave."},
		`not (users = "x" and groups = 1)`: {"The board has forty days of leave.", "Everybody has thirty days of leave."},
	} {
		f, err := assay.ParseFilter(text)
		if err != nil {
			t.Fatal(err)
		}
		r, err := search(t, handbook(), bedrock.KnowledgeBase{Sharing: byKey, Filter: assay.Filter{Op: assay.OpNotEquals, Key: "secret", Value: assay.BooleanValue(true)}}, ann, assay.Query{Filter: f})
		if err != nil {
			t.Fatal(err)
		}
		if got := texts(r); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestHits checks that results can be cited.
func TestHits(t *testing.T) {
	b := handbook()
	b.Passages[2].Text = "\ufeffThe de\u0301claration:\r\nthirty days\u200b of leave.\u202e"
	b.Serve(t)
	k, err := b.Provider.KnowledgeBase(bedrock.KnowledgeBase{ID: "arn:aws:bedrock:eu-west-1:123456789012:knowledge-base/KB12345678", Collection: "handbook", Sharing: byKey})
	if err != nil {
		t.Fatal(err)
	}
	r, err := k.Retrieve(t.Context(), ann.Access(), assay.Query{Text: "days of leave", Limit: 10})
	if err != nil || len(r.Hits) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	h := r.Hits[1]
	if h.Text != "The déclaration:\nthirty days of leave." || h.URI != "s3://handbook/leave.md" || h.Title != "leave.md" || h.Page != 3 || h.Collection != "handbook" ||
		h.Scores.Managed == nil || *h.Scores.Managed != 0.71 || h.Scores.Relevance != 0.71 || h.Scores.Rerank != nil || h.Scores.Vector != nil {
		t.Errorf("hit %+v", h)
	}
	if diff := cmp.Diff([]string{"days", "leave"}, h.Matched); diff != "" {
		t.Errorf("matched (-want +got):\n%s", diff)
	}
	doc, err := k.Version(t.Context(), h.Chunk.Document, h.Chunk.Version)
	if err != nil {
		t.Fatal(err)
	}
	if doc.Text[h.Chunk.Start:h.Chunk.End] != h.Text || doc.ID != assay.DocumentID("handbook", h.URI) || h.Chunk.ID != assay.ChunkID(doc.ID, doc.Version, 0) {
		t.Errorf("document %+v of hit %+v", doc, h)
	}
	if _, page := doc.Position(5); page != 3 {
		t.Errorf("page %d, want 3", page)
	}
	acl, err := k.ACL(t.Context(), h.Chunk.Document)
	if want, _ := assay.RestrictTo("user:ann", "user:bob", "group:staff"); err != nil || cmp.Diff(want, acl) != "" {
		t.Errorf("ACL %+v, %v, want %+v", acl, err, want)
	}
	if _, err := k.ACL(t.Context(), "other"); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("ACL of another document: %v", err)
	}
	if _, err := k.Version(t.Context(), h.Chunk.Document, "other"); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("another version: %v", err)
	}
	if len(r.Terms) != 2 || r.Terms[0].Chunks != 2 || !slices.ContainsFunc(r.Notes, func(n assay.Note) bool { return strings.Contains(n.Text, "calibrated") }) {
		t.Errorf("terms %+v, notes %q", r.Terms, r.Notes)
	}
}

// TestKeep checks the limit of kept documents.
func TestKeep(t *testing.T) {
	b := handbook()
	b.Serve(t)
	k, err := b.Provider.KnowledgeBase(bedrock.KnowledgeBase{ID: "KB12345678", Sharing: open, Keep: 2})
	if err != nil {
		t.Fatal(err)
	}
	r, err := k.Retrieve(t.Context(), ann.Access(), assay.Query{Text: "days of leave", Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for _, h := range r.Hits {
		_, aclErr := k.ACL(t.Context(), h.Chunk.Document)
		_, err := k.Version(t.Context(), h.Chunk.Document, h.Chunk.Version)
		if (err == nil) != (aclErr == nil) {
			t.Errorf("%s: version %v, ACL %v", h.URI, err, aclErr)
		}
		if err == nil {
			kept++
		}
	}
	if kept != 2 {
		t.Errorf("%d of %d documents are kept, want 2", kept, len(r.Hits))
	}
}

func TestLocations(t *testing.T) {
	tests := []struct {
		location map[string]any
		metadata map[string]any
		want     string
	}{
		{bedrocktest.S3("s3://b/a/k.pdf"), nil, "s3://b/a/k.pdf"},
		{map[string]any{"type": "WEB", "webLocation": map[string]any{"url": "https://example.com/a"}}, nil, "https://example.com/a"},
		{map[string]any{"type": "CONFLUENCE", "confluenceLocation": map[string]any{"url": "https://example.atlassian.net/wiki/1"}}, nil, "https://example.atlassian.net/wiki/1"},
		{map[string]any{"type": "SALESFORCE", "salesforceLocation": map[string]any{"url": "https://example.my.salesforce.com/x"}}, nil, "https://example.my.salesforce.com/x"},
		{map[string]any{"type": "SHAREPOINT", "sharePointLocation": map[string]any{"url": "https://example.sharepoint.com/x"}}, nil, "https://example.sharepoint.com/x"},
		{map[string]any{"type": "CUSTOM", "customDocumentLocation": map[string]any{"id": "doc-7"}}, nil, "custom:doc-7"},
		{map[string]any{"type": "KENDRA", "kendraDocumentLocation": map[string]any{"uri": "https://example.com/k"}}, nil, "https://example.com/k"},
		{map[string]any{"type": "SQL", "sqlLocation": map[string]any{"query": "SELECT 1"}}, nil, "sql:SELECT 1"},
		{nil, map[string]any{"x-amz-bedrock-kb-source-uri": "s3://b/meta"}, "s3://b/meta"},
		{map[string]any{"type": "MOON"}, map[string]any{"x-amz-bedrock-kb-chunk-id": "c1"}, "bedrock:KB12345678/c1"},
		{nil, nil, "bedrock:KB12345678/19ff87f136dd804a91c8f7e7bf0da2c5"},
	}
	for _, test := range tests {
		b := &bedrocktest.Base{Passages: []bedrocktest.Passage{{Text: "days of leave", Location: test.location, Metadata: test.metadata}}}
		r, err := search(t, b, bedrock.KnowledgeBase{Sharing: open}, ann, assay.Query{})
		if err != nil || len(r.Hits) != 1 || r.Hits[0].URI != test.want {
			t.Errorf("%v: %+v, %v, want %s", test.location, r.Hits, err, test.want)
		}
	}
}

// TestContents checks passages that are not text.
func TestContents(t *testing.T) {
	b := &bedrocktest.Base{Passages: []bedrocktest.Passage{
		{Content: map[string]any{"type": "IMAGE", "byteContent": "data:image/png;base64,AAAA"}, Location: bedrocktest.S3("s3://b/i.png")},
		{Content: map[string]any{"type": "ROW", "row": []any{
			map[string]any{"columnName": "name", "columnValue": "leave", "type": "STRING"}, map[string]any{"columnName": "days", "columnValue": "30", "type": "LONG"}}}},
		{Content: map[string]any{"type": "TEXT", "text": " \n "}},
		{Content: map[string]any{}},
		{Text: "days of leave", Score: 17.5, Metadata: map[string]any{"nested": map[string]any{"a": 1}, "null": nil, "list": []any{1, 2}, "ok": true, "time": map[string]any{"time": "2024-01-31T00:00:00Z"}}},
	}}
	r, err := search(t, b, bedrock.KnowledgeBase{Sharing: open}, ann, assay.Query{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"name: leave\ndays: 30", "days of leave"}, texts(r)); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
	if s := r.Hits[1].Scores; *s.Managed != 17.5 || s.Relevance != 1 {
		t.Errorf("scores %+v", s)
	}
	if s := r.Hits[0].Scores; s.Managed != nil || s.Relevance != 0 {
		t.Errorf("scores %+v of a hit without one", s)
	}
	if !slices.ContainsFunc(r.Notes, func(n assay.Note) bool { return strings.Contains(n.Text, "3 results without text") }) {
		t.Errorf("notes %q", r.Notes)
	}
}

// TestHierarchy checks passages that contain one another: parents and children.
func TestHierarchy(t *testing.T) {
	where := bedrocktest.S3("s3://handbook/leave.md")
	b := &bedrocktest.Base{Passages: []bedrocktest.Passage{
		{Text: "thirty days of leave", Location: where, Score: 0.9},
		{Text: "Everybody has thirty days of leave. Nobody has more.", Location: where, Score: 0.4},
		{Text: "Everybody has thirty days of leave. Nobody has more.", Location: where, Score: 0.5},
		{Text: "thirty days of leave", Location: bedrocktest.S3("s3://handbook/other.md"), Score: 0.6},
	}}
	r, err := search(t, b, bedrock.KnowledgeBase{Sharing: open}, ann, assay.Query{})
	if err != nil || len(r.Hits) != 2 {
		t.Fatalf("%+v, %v", r.Hits, err)
	}
	parent := r.Hits[0]
	if parent.Chunk.Kind != assay.ChunkSection || len(parent.Children) != 1 || *parent.Scores.Managed != 0.9 || parent.Scores.Relevance != 0.9 {
		t.Fatalf("the parent is %+v", parent)
	}
	child := parent.Children[0]
	if parent.Text[child.Start:child.End] != "thirty days of leave" || child.Version != parent.Chunk.Version || child.Parent != parent.Chunk.ID || child.ID == parent.Chunk.ID {
		t.Errorf("the child is %+v", child)
	}
	if r.Hits[1].Chunk.Kind != assay.ChunkProse || len(r.Hits[1].Children) != 0 {
		t.Errorf("another source's passage is %+v", r.Hits[1])
	}
}

// TestPages checks that pages are requested until there are enough results, up to the limit.
func TestPages(t *testing.T) {
	many := func() *bedrocktest.Base {
		b := &bedrocktest.Base{PageSize: 2}
		for i := range 9 {
			b.Passages = append(b.Passages, bedrocktest.Passage{Text: "days of leave, part " + string(rune('a'+i)), Location: bedrocktest.S3("s3://b/" + string(rune('a'+i)))})
		}
		return b
	}
	tests := []struct {
		limit, pages, hits, asked int
		more, note                bool
	}{
		{5, 0, 5, 3, false, false}, {9, 0, 9, 5, false, false}, {100, 0, 9, 5, false, false}, {9, 2, 4, 2, false, true}, {500, 3, 6, 3, true, true}, {1, 0, 1, 1, false, false},
	}
	for _, test := range tests {
		b := many()
		b.AlwaysMore = test.more
		r, err := search(t, b, bedrock.KnowledgeBase{Sharing: open, Pages: test.pages}, ann, assay.Query{Limit: test.limit})
		if err != nil {
			t.Fatal(err)
		}
		noted := slices.ContainsFunc(r.Notes, func(n assay.Note) bool { return strings.Contains(n.Text, "there are more results") })
		if len(r.Hits) != test.hits || len(b.Requests()) != test.asked || noted != test.note {
			t.Errorf("%+v: %d hits, asked %d times, notes %q", test, len(r.Hits), len(b.Requests()), r.Notes)
		}
		for i, h := range r.Hits {
			if want := "s3://b/" + string(rune('a'+i)); h.URI != want {
				t.Errorf("hit %d of %+v is %s, want %s", i, test, h.URI, want)
			}
		}
		for _, req := range b.Requests() {
			if req.Config.Vector.Results != min(test.limit, 100) {
				t.Errorf("limit %d asks for %d", test.limit, req.Config.Vector.Results)
			}
		}
	}
}

// TestSearchSettings checks the settings sent with a query.
func TestSearchSettings(t *testing.T) {
	const model = "arn:aws:bedrock:eu-west-1::foundation-model/anthropic.claude-haiku-4-5-20251001-v1:0"
	const reranker = "arn:aws:bedrock:eu-west-1::foundation-model/cohere.rerank-v3-5:0"
	b := handbook()
	b.Intervenes = true
	c := bedrock.KnowledgeBase{
		Sharing: open, Search: bedrock.SearchHybrid, ImplicitModel: model, RerankModel: reranker, Guardrail: bedrock.Guardrail{ID: "gr1", Version: "2"},
		Attributes: []bedrock.Attribute{{Key: "year", Type: "NUMBER", Description: "the year"}},
	}
	r, err := search(t, b, c, ann, assay.Query{})
	if err != nil {
		t.Fatal(err)
	}
	req := b.Requests()[0]
	v := req.Config.Vector
	if v.Override != "HYBRID" || req.Query.Text != "days of leave" || req.Path != "/knowledgebases/KB12345678/retrieve" || req.Guardrail["guardrailId"] != "gr1" || req.Guardrail["guardrailVersion"] != "2" ||
		compact(t, string(v.Implicit)) != `{"metadataAttributes":[{"description":"the year","key":"year","type":"NUMBER"}],"modelArn":"`+model+`"}` ||
		compact(t, string(v.Reranking)) != `{"bedrockRerankingConfiguration":{"modelConfiguration":{"modelArn":"`+reranker+`"}},"type":"BEDROCK_RERANKING_MODEL"}` {
		t.Errorf("asked %+v", req)
	}
	if s := r.Hits[0].Scores; s.Rerank == nil || s.Managed != nil {
		t.Errorf("scores %+v of what was reranked", s)
	}
	if !slices.ContainsFunc(r.Notes, func(n assay.Note) bool { return strings.Contains(n.Text, "guardrail") }) {
		t.Errorf("notes %q", r.Notes)
	}
	t.Run("vectors alone", func(t *testing.T) {
		b := handbook()
		if _, err := search(t, b, bedrock.KnowledgeBase{Sharing: open, Search: bedrock.SearchHybrid}, ann, assay.Query{Mode: assay.ModeVector}); err != nil || b.Requests()[0].Config.Vector.Override != "SEMANTIC" {
			t.Errorf("%+v, %v", b.Requests(), err)
		}
	})
	t.Run("words alone", func(t *testing.T) {
		if _, err := search(t, handbook(), bedrock.KnowledgeBase{Sharing: open}, ann, assay.Query{Mode: assay.ModeText}); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%v, want ErrInvalid", err)
		}
	})
	t.Run("what Bedrock has not", func(t *testing.T) {
		r, err := search(t, handbook(), bedrock.KnowledgeBase{Sharing: open}, ann, assay.Query{Rewrites: []string{"vacation"}, Feedback: true, Diversity: 0.5, Fusion: assay.FusionRRF})
		if err != nil || len(r.Notes) != 5 { // including the note on relevance
			t.Errorf("%q, %v", r.Notes, err)
		}
	})
	t.Run("other collections", func(t *testing.T) {
		b := handbook()
		r, err := search(t, b, bedrock.KnowledgeBase{Sharing: open, Collection: "handbook"}, ann, assay.Query{Collections: []string{"wiki"}})
		if err != nil || len(r.Hits) > 0 || len(b.Requests()) > 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("no term", func(t *testing.T) {
		b := handbook()
		r, err := search(t, b, bedrock.KnowledgeBase{Sharing: open}, ann, assay.Query{Text: "?!"})
		if err != nil || len(r.Hits) > 0 || len(b.Requests()) > 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestKnowledgeBaseRefused(t *testing.T) {
	p := bedrocktest.Open(t, "http://127.0.0.1:1")
	for name, c := range map[string]bedrock.KnowledgeBase{
		"no ID": {}, "wildcard": {ID: "*"}, "another ARN": {ID: "arn:aws:bedrock:eu-west-1:123456789012:guardrail/x"}, "no ARN": {ID: "arn:aws:s3:::bucket"},
		"sharing": {ID: "KB1", Sharing: bedrock.Sharing{OpenTo: []string{"ann"}}}, "search": {ID: "KB1", Search: "FAST"},
		"implicit": {ID: "KB1", ImplicitModel: "x"}, "attributes": {ID: "KB1", Attributes: []bedrock.Attribute{{Key: "a", Type: "STRING", Description: "d"}}},
		"attribute": {ID: "KB1", ImplicitModel: "x", Attributes: []bedrock.Attribute{{Key: "a", Type: "DATE", Description: "d"}}},
		"filter":    {ID: "KB1", Filter: assay.Filter{Op: assay.OpNot, Filters: []assay.Filter{{Op: assay.OpStartsWith, Key: "a", Value: assay.StringValue("b")}}}},
		"guardrail": {ID: "KB1", Guardrail: bedrock.Guardrail{Version: "1"}},
	} {
		if _, err := p.KnowledgeBase(c); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
}

// TestRetrieveFails checks the kinds of failures, and that their messages name what is missing.
func TestRetrieveFails(t *testing.T) {
	tests := []struct {
		status     int
		code, said string
		kind       llm.ErrorKind
		words      []string
	}{
		{404, "ResourceNotFoundException", "Knowledge Base with id KB12345678 does not exist", llm.NoModel, []string{"knowledge base KB12345678", "region eu-west-1"}},
		{403, "AccessDeniedException", "User is not authorized", llm.BadKey, []string{"KB12345678", "eu-west-1"}},
		{429, "ThrottlingException", "slow down", llm.RateLimited, []string{"slow down"}},
		{400, "ValidationException", "The filter is not valid", llm.BadRequest, []string{"The filter is not valid"}},
		{424, "DependencyFailedException", "the vector store is down", llm.ServerError, []string{"vector store"}},
		{502, "BadGatewayException", "x", llm.ServerError, nil},
	}
	for _, test := range tests {
		b := handbook()
		b.Refuse = func(w http.ResponseWriter) bool {
			bedrocktest.Refuse(w, test.status, test.code, test.said)
			return true
		}
		_, err := search(t, b, bedrock.KnowledgeBase{Sharing: open}, ann, assay.Query{})
		e, ok := errors.AsType[*llm.Error](err)
		if !ok || e.Kind != test.kind || e.Status != test.status || e.Model != "bedrock/knowledge-base/KB12345678" || !errors.Is(err, assay.ErrUnavailable) {
			t.Errorf("%s: %v", test.code, err)
			continue
		}
		for _, w := range test.words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v, want %q in it", test.code, err, w)
			}
		}
	}
	t.Run("budget", func(t *testing.T) {
		b := handbook()
		b.Serve(t)
		k, err := b.Provider.KnowledgeBase(bedrock.KnowledgeBase{ID: "KB12345678", Sharing: open})
		if err != nil {
			t.Fatal(err)
		}
		m := llm.NewMeter(assay.Usage{Calls: 1})
		ctx := llm.WithMeter(t.Context(), m)
		if _, err := k.Retrieve(ctx, ann.Access(), assay.Query{Text: "leave", Limit: 1}); err != nil || m.Spent().Calls != 1 {
			t.Errorf("%v, spent %+v", err, m.Spent())
		}
		if _, err := k.Retrieve(ctx, ann.Access(), assay.Query{Text: "leave", Limit: 1}); !errors.Is(err, assay.ErrBudget) {
			t.Errorf("%v, want ErrBudget", err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := k.Retrieve(ended, ann.Access(), assay.Query{Text: "leave", Limit: 1}); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want context.Canceled", err)
		}
	})
}
