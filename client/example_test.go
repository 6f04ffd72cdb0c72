package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/client"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/server"
)

// Ask a question and show what happens meanwhile.
func Example() {
	url, stop := serve()
	defer stop()
	ctx := context.Background()

	c, err := client.New(url, client.Options{})
	check(err)
	for ev, err := range c.AskEvents(ctx, client.Request{Question: "How many days of leave may I carry over?", Strategy: "static"}) {
		check(err)
		switch ev.Kind {
		case client.StepEnded:
			if ev.Step.Kind == assay.StepVerify {
				fmt.Println(ev.Step.Summary)
			}
		case client.RunEnded:
			fmt.Println(ev.Answer.Status, ev.Answer.Text)
			fmt.Println(ev.Answer.Citations[0].Title, ev.Answer.Citations[0].Line)
		}
	}
	// Output:
	// 1 of 1 claim supported
	// answered Up to five days of unused leave may be carried over to the next year. [1]
	// Leave 10
}

// The kinds of errors are those of package assay.
func ExampleError() {
	url, stop := serve()
	defer stop()

	c, err := client.New(url, client.Options{})
	check(err)
	for _, err := range c.Follow(context.Background(), "aaaaaaaaaaaaaaaa", -1) {
		fmt.Println(errors.Is(err, assay.ErrNotFound))
		if e, ok := errors.AsType[*client.Error](err); ok {
			fmt.Println(e.Status)
		}
	}
	// Output:
	// true
	// 404
}

// serve starts a server with the handbook.
func serve() (url string, stop func()) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "client")
	check(err)
	host, err := engine.OpenHost(ctx, engine.HostConfig{Config: engine.Config{Dir: dir}, AllowLocal: true, Folders: []string{"../engine/testdata/handbook"}})
	check(err)
	local := identity.Local("default")
	session, err := host.Session(ctx, local)
	check(err)
	_, err = session.Ingest(ctx, engine.IngestRequest{Paths: []string{"../engine/testdata/handbook"}})
	check(err)
	handler, err := server.New(server.Config{Host: host, Local: local, Log: slog.New(slog.DiscardHandler)})
	check(err)
	s := httptest.NewServer(handler)
	return s.URL, func() {
		s.Close()
		check(host.Close())
		check(os.RemoveAll(dir))
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
