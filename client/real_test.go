package client_test

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/client"
)

// TestRealServer calls methods of a real server: documents are uploaded, found, asked about and
// removed.
func TestRealServer(t *testing.T) {
	url, stop := serve()
	defer stop()
	c, err := client.New(url, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if r, err := c.ServiceReady(ctx); err != nil || r.Status != "ready" {
		t.Errorf("ServiceReady: %+v, %v", r, err)
	}
	put, err := c.DocumentsPut(ctx, "notes", "rooms/printer.md", strings.NewReader("# Printer\n\nThe printer is on the second floor.\n"), client.DocumentsPutParams{ContentType: "text/markdown"})
	if err != nil {
		t.Fatalf("DocumentsPut: %v", err)
	}
	id := put.Documents[0].ID
	upload(t, c)
	text, err := c.DocumentsText(ctx, id, client.DocumentsTextParams{})
	if err != nil {
		t.Fatalf("DocumentsText: %v", err)
	}
	data, err := io.ReadAll(text)
	if err := errors.Join(err, text.Close()); err != nil || !bytes.Contains(data, []byte("second floor")) {
		t.Errorf("DocumentsText: %q, %v", data, err)
	}
	a, err := c.Answer(ctx, client.Request{Question: "Where is the printer?", Strategy: "static", Collections: []string{"notes"}})
	if err != nil || a.Status != assay.Answered || !strings.Contains(a.Text, "second floor") {
		t.Fatalf("Answer: %+v, %v", a, err)
	}
	if run, err := c.RunsShow(ctx, a.Run); err != nil || run.Answer == nil || run.Answer.Text != a.Text {
		t.Errorf("RunsShow: %+v, %v", run, err)
	}
	steps := 0
	for ev, err := range c.Follow(ctx, a.Run, 0) {
		if err != nil {
			t.Fatalf("Follow: %v", err)
		}
		if ev.Kind == client.StepEnded && ev.Step.Ordinal > 0 {
			steps++
		}
	}
	if steps == 0 {
		t.Error("Follow: no steps of the journal")
	}
	seen, err := c.RunsEventsStream(ctx, a.Run, client.RunsEventsParams{Last: "end"})
	if err != nil {
		t.Fatalf("RunsEventsStream after the end: %v", err)
	}
	if m, err := seen.Next(); err != io.EOF {
		t.Errorf("RunsEventsStream after the end: %+v, %v, want EOF", m, err)
	}
	if err := seen.Close(); err != nil {
		t.Error(err)
	}
	if r, err := c.SearchGet(ctx, client.SearchGetParams{Text: "printer"}); err != nil || len(r.Hits) == 0 {
		t.Errorf("SearchGet: %+v, %v", r, err)
	}
	if err := c.DocumentsDelete(ctx, id, client.DocumentsDeleteParams{}); err != nil {
		t.Errorf("DocumentsDelete: %v", err)
	}
	if _, err := c.DocumentsShow(ctx, id); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("DocumentsShow of a removed document: %v, want ErrNotFound", err)
	}
	if _, err := c.Answer(ctx, client.Request{}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("an empty question: %v, want ErrInvalid", err)
	}
}

// upload uploads two documents in a form.
func upload(t *testing.T, c *client.Client) {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for name, text := range map[string]string{"a.md": "The canteen opens at noon.", "b.md": "The garage closes at ten."} {
		w, err := form.CreateFormFile("file", name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := c.DocumentsUpload(t.Context(), "notes", &body, form.Boundary())
	if err != nil {
		t.Fatalf("DocumentsUpload: %v", err)
	}
	if len(r.Files) != 2 {
		t.Errorf("DocumentsUpload: %+v, want two files", r)
	}
}
