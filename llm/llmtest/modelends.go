package llmtest

import (
	"compress/gzip"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assay-rag/assay/llm"
)

// testEnds checks that each call ends when its caller cancels it, when the server stalls, and when
// the reply is too large.
func (s suite) testEnds(t *testing.T) {
	t.Run("cancelled before", func(t *testing.T) {
		h := serve(t, s.reply(story()))
		ctx, cancel := context.WithCancel(bounded(t))
		cancel()
		o := ask(ctx, t, s.open(t, h, Setup{}), question())
		if requests, _ := h.seen(); !errors.Is(o.err, context.Canceled) || len(requests) > 0 {
			t.Errorf("%v and %d requests, want context.Canceled and none", o, len(requests))
		}
	})
	t.Run("cancelled before the reply", func(t *testing.T) {
		ctx, cancel := context.WithCancel(bounded(t))
		h := serve(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
			cancel()
			<-r.Context().Done()
		})
		if o := ask(ctx, t, s.open(t, h, Setup{}), question()); !errors.Is(o.err, context.Canceled) {
			t.Errorf("%v, want context.Canceled", o)
		}
	})
	t.Run("cancelled within the reply", s.testCancelWithin)
	t.Run("deadline", s.testTrickle)
	t.Run("silence before the reply", func(t *testing.T) {
		h := serve(t, silent)
		if o := ask(bounded(t), t, s.open(t, h, Setup{Idle: shortIdle}), question()); o.kind() != llm.TimedOut {
			t.Errorf("%v, want an error of the kind %q", o, llm.TimedOut)
		}
	})
	t.Run("silence within the reply", func(t *testing.T) {
		h := serve(t, s.half(func(*http.Request) {}))
		if o := ask(bounded(t), t, s.open(t, h, Setup{Idle: shortIdle}), question()); o.kind() != llm.TimedOut {
			t.Errorf("%v, want an error of the kind %q", o, llm.TimedOut)
		}
	})
	t.Run("too large", s.testTooLarge)
}

// shortIdle is the idle timeout that a suite gives to a model.
const shortIdle = 30 * time.Millisecond

// half answers with half of a reply, calls then, and stalls.
func (s suite) half(then func(*http.Request)) answerer {
	return func(w http.ResponseWriter, r *http.Request, body []byte) {
		b := s.Reply(story(), s.Streams(r, body))
		b.begin(w)
		all := b.Bytes()
		send(w, all[:len(all)/2])
		then(r)
		<-r.Context().Done()
	}
}

func (s suite) testCancelWithin(t *testing.T) {
	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()
	stop := func(*http.Request) { cancel() }
	if s.stream { // the stream's callback cancels
		stop = func(*http.Request) {}
	}
	h := serve(t, s.half(stop))
	var o outcome
	m := s.open(t, h, Setup{})
	o.response, o.err = m.Generate(ctx, question(), func(d llm.Delta) {
		o.told = append(o.told, d.Text)
		cancel()
	})
	checkOutcome(ctx, t, m, o)
	if !errors.Is(o.err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", o)
	}
	if s.stream && len(o.told) == 0 {
		t.Error("half of the stream was there, and nothing of it was handed on")
	}
}

// testTrickle checks that a deadline ends a reply that keeps trickling in.
func (s suite) testTrickle(t *testing.T) {
	ctx, cancel := context.WithTimeout(bounded(t), 2*shortIdle)
	defer cancel()
	h := serve(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		b := s.Reply(story(), s.Streams(r, body))
		b.begin(w)
		for _, part := range eachByte(b.Bytes()) {
			if !send(w, part) {
				return
			}
			select {
			case <-r.Context().Done():
				return
			case <-time.After(shortIdle / 10):
			}
		}
	})
	if o := ask(ctx, t, s.open(t, h, Setup{}), question()); !errors.Is(o.err, context.DeadlineExceeded) {
		t.Errorf("%v, want context.DeadlineExceeded", o)
	}
}

// testTooLarge checks that the amount read of a reply is bounded, for each way in which it can be
// too large.
func (s suite) testTooLarge(t *testing.T) {
	large := story()
	for range 10 {
		large.Pieces = append(large.Pieces, strings.Repeat("0123456789abcdef", 1<<16))
	}
	calls := errands()
	calls.Calls[0].Arguments = `{"query":"` + strings.Repeat("0123456789abcdef", 10<<16) + `"}`
	want := func(t *testing.T, o outcome) {
		t.Helper()
		if o.kind() != llm.TooLarge {
			t.Errorf("%v, want an error of the kind %q", o, llm.TooLarge)
		}
	}
	t.Run("10 MB of text", func(t *testing.T) { want(t, s.exchange(t, s.reply(large), question())) })
	t.Run("10 MB of arguments", func(t *testing.T) { want(t, s.exchange(t, s.reply(calls), conversation())) })
	t.Run("compressed", func(t *testing.T) {
		want(t, s.exchange(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
			b := s.Reply(large, s.Streams(r, body))
			if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
				w.Header().Set("Content-Encoding", "gzip")
				b.begin(w)
				z := gzip.NewWriter(w)
				z.Write(b.Bytes()) // the client disconnects early
				z.Close()
				return
			}
			always(fixed(b))(w, r, body)
		}, question()))
	})
	t.Run("an endless reply", func(t *testing.T) {
		h := serve(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
			b := s.Reply(story(), s.Streams(r, body))
			b.begin(w)
			all, noise := b.Bytes(), []byte(strings.Repeat(" ", 1<<10))
			if strings.HasPrefix(b.Type, "text/event-stream") {
				noise = []byte(strings.Repeat(": keep-alive\n\n", 1<<7))
			}
			send(w, all[:len(all)/2])
			for send(w, noise) {
			}
		})
		o := ask(bounded(t), t, s.open(t, h, Setup{MaxBytes: 1 << 16}), question())
		if o.kind() != llm.TooLarge && o.kind() != llm.BadReply {
			t.Errorf("%v, want an error of the kind %q or %q", o, llm.TooLarge, llm.BadReply)
		}
	})
	t.Run("an endless error", func(t *testing.T) {
		var sent atomic.Int64
		o := s.exchange(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
			w.WriteHeader(http.StatusBadRequest)
			for noise := []byte(strings.Repeat("no, ", 1<<10)); sent.Load() < 1<<30 && send(w, noise); sent.Add(int64(len(noise))) {
			}
		}, question())
		if o.kind() != llm.BadRequest || sent.Load() >= 1<<28 {
			t.Errorf("%v after %d bytes, want an error of the kind %q", o, sent.Load(), llm.BadRequest)
		}
	})
}
