package main

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/internal/pdftest"
	"github.com/assay-rag/assay/server"
	"github.com/assay-rag/assay/store"
)

// TestUploadInWorker checks that a document that is uploaded over HTTP is parsed in a process of its own.
func TestUploadInWorker(t *testing.T) {
	t.Parallel()
	pool := newParsers()
	pool.Workers = 1
	pool.Timeout = 10 * time.Minute // the first PDF waits until PDFium is compiled
	if underRace {
		pool.Memory = 2 << 30 // the race detector multiplies it
	}
	defer pool.Close()
	host, err := engine.OpenHost(t.Context(), engine.HostConfig{Config: engine.Config{Dir: t.TempDir(), NoBackground: true, Walk: pool.Walk}, AllowLocal: true})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	handler, err := server.New(server.Config{Host: host, Local: identity.Local(store.DefaultTenant), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	var pdf pdftest.File
	pdf.Page(595, 842).Text(72, 72, 12, false, "The code of the vault is 4711.")
	put := func(name string, body []byte, status int, want string) {
		t.Helper()
		w := httptest.NewRecorder()
		r := httptest.NewRequest("PUT", "http://localhost/api/v1/collections/c/documents/"+name, bytes.NewReader(body))
		handler.ServeHTTP(w, r)
		if data, err := io.ReadAll(w.Body); err != nil || w.Code != status || !strings.Contains(string(data), want) {
			t.Errorf("%s: %d %s, want %d and %s", name, w.Code, data, status, want)
		}
	}
	put("vault.pdf", pdf.Bytes(), http.StatusCreated, `"type":"pdf"`)
	put("broken.pdf", []byte("%PDF-1.7\nnothing"), http.StatusUnprocessableEntity, "/problems/unreadable")
	put("vault.pdf", pdf.Bytes(), http.StatusOK, `"unchanged"`)
	if n := pool.Started(); n != 1 {
		t.Errorf("%d processes parsed the documents, want 1", n)
	}
}
