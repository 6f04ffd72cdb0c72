package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// startCollector implements the script command collector. It starts a receiver of OTLP over HTTP and
// sets OTLP_URL. It appends a line to the file otlp.txt for each span, with its name, its links and
// the credential of the request, and for each export of metrics.
func startCollector(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: collector")
	}
	f, err := os.Create(ts.MkAbs("otlp.txt"))
	ts.Check(err)
	ts.Defer(func() { f.Close() })
	var mu sync.Mutex
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, err := io.ReadAll(r.Body)
		var in collectortrace.ExportTraceServiceRequest
		if err == nil && r.URL.Path == "/v1/traces" {
			err = proto.Unmarshal(body, &in)
		}
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		for _, resource := range in.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, span := range scope.Spans {
					fmt.Fprintf(f, "%s links=%d %s\n", span.Name, len(span.Links), r.Header.Get("Authorization"))
				}
			}
		}
		if r.URL.Path == "/v1/metrics" {
			fmt.Fprintln(f, "metrics")
		}
	}))
	ts.Defer(s.Close)
	ts.Setenv("OTLP_URL", s.URL)
}
