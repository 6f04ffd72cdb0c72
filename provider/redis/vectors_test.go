package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
)

// A counting encoder counts the texts that it embeds.
type counting struct {
	*llmtest.Hashing
	texts []string
	fail  error // of the last text
}

func (c *counting) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	c.texts = append(c.texts, texts...)
	if c.fail != nil {
		made, err := c.Hashing.Embed(ctx, p, texts[:len(texts)-1])
		return made, errors.Join(err, c.fail)
	}
	return c.Hashing.Embed(ctx, p, texts)
}

// asked returns the texts since the last call.
func (c *counting) asked() []string {
	texts := c.texts
	c.texts = nil
	return texts
}

// embedAll embeds texts and checks the vectors.
func embedAll(t *testing.T, e llm.Embedder, texts ...string) {
	t.Helper()
	made, err := llm.Embed(t.Context(), e, llm.Passage, texts)
	if err != nil {
		t.Fatal(err)
	}
	want, err := llm.Embed(t.Context(), &llmtest.Hashing{}, llm.Passage, texts)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if !slices.Equal(made[i], want[i]) {
			t.Fatalf("the vector of %q differs", texts[i])
		}
	}
}

// TestVectors checks which texts are asked of the encoder.
func TestVectors(t *testing.T) {
	t.Parallel()
	r := startServer(t)
	s, inner := r.open("", nil), &counting{Hashing: &llmtest.Hashing{}}
	a := s.Vectors("acme", inner)
	wantAsked := func(what string, want ...string) {
		t.Helper()
		if got := inner.asked(); !slices.Equal(got, want) {
			t.Errorf("%s: the encoder was asked for %q, want %q", what, got, want)
		}
	}
	embedAll(t, a, "one", "two")
	wantAsked("at first", "one", "two")
	embedAll(t, a, "two", "three", "one", "four")
	wantAsked("then", "three", "four")

	other := r.open("", nil)
	embedAll(t, other.Vectors("acme", inner), "one", "two", "three")
	wantAsked("another server")
	embedAll(t, other.Vectors("globex", inner), "one")
	wantAsked("another tenant", "one")
	embedAll(t, other.Vectors("acme", &counting{Hashing: &llmtest.Hashing{Name: "another"}}), "five")
	embedAll(t, a, "five")
	wantAsked("another model", "five")

	if _, err := a.Embed(t.Context(), llm.Query, []string{"one"}); err != nil {
		t.Fatal(err)
	}
	wantAsked("a query", "one")

	var many []string
	for i := range 3*perCall + 1 {
		many = append(many, fmt.Sprint("text ", i))
	}
	embedAll(t, a, many...)
	wantAsked("many", many...)
	embedAll(t, a, many...)
	wantAsked("many again")

	if counter, ok := a.(llm.TokenCounter); !ok || counter.Tokens("two words") != 4 {
		t.Error("tokens are not counted")
	}
	without := openConfig(t, Config{URL: "redis://redis.invalid"})
	if without.Vectors("acme", inner) != llm.Embedder(inner) {
		t.Error("without a key vectors are shared")
	}
}

// TestKept checks that what is in Redis can be read with the key alone, and expires.
func TestKept(t *testing.T) {
	t.Parallel()
	r := startServer(t)
	s := r.open("", nil)
	embedAll(t, s.Vectors("acme", &llmtest.Hashing{}), "a secret passage")
	names, err := s.client.Keys(t.Context(), "*").Result()
	if err != nil || len(names) != 1 {
		t.Fatalf("%q, %v", names, err)
	}
	value, err := s.client.Get(t.Context(), names[0]).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"secret", "acme", "hashing"} {
		if strings.Contains(names[0]+value, word) {
			t.Errorf("Redis has the word %s", word)
		}
	}
	if left, err := s.client.TTL(t.Context(), names[0]).Result(); err != nil || left <= 0 || left > keepVectors {
		t.Errorf("it expires in %v, %v", left, err)
	}
	foreign := openConfig(t, Config{URL: "redis://redis.invalid", Key: "another key of thirty-two bytes, or more", Dial: r.dial})
	inner := &counting{Hashing: &llmtest.Hashing{}}
	embedAll(t, foreign.Vectors("acme", inner), "a secret passage")
	if len(inner.asked()) != 1 {
		t.Error("another key reads the vector")
	}
}

// TestTampered overwrites vectors: with junk, those of other texts and of other tenants. Each is a
// miss, which is reported, and made again.
func TestTampered(t *testing.T) {
	t.Parallel()
	r := startServer(t)
	var said reports
	s, inner := r.open("", said.add), &counting{Hashing: &llmtest.Hashing{}}
	a := s.Vectors("acme", inner)
	embedAll(t, a, "one", "two")
	embedAll(t, s.Vectors("globex", inner), "one")
	acme, globex := newBox(testKey, "acme"), newBox(testKey, "globex")
	one, two := acme.name("hashing/32", "one"), acme.name("hashing/32", "two")
	genuine := func(name string) string {
		value, err := s.client.Get(t.Context(), name).Result()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	value := genuine(one)
	flipped := []byte(value)
	flipped[len(flipped)/2] ^= 1
	foreign := newBox("another key of thirty-two bytes, or more", "acme")
	for what, planted := range map[string]string{
		"empty": "", "short": "x", "junk": strings.Repeat("x", len(value)), "one bit": string(flipped), "cut": value[:len(value)-4],
		"another text": genuine(two), "another tenant": genuine(globex.name("hashing/32", "one")), "another key": foreign.seal(one, make(llm.Vector, 32)),
	} {
		if err := s.client.Set(t.Context(), one, planted, time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		inner.asked()
		said.take()
		s.tampered = time.Time{}
		embedAll(t, a, "one", "two")
		if got := inner.asked(); !slices.Equal(got, []string{"one"}) {
			t.Errorf("%s: the encoder was asked for %q", what, got)
		}
		if seen := said.take(); len(seen) != 1 || !errors.Is(seen[0], errTampered) {
			t.Errorf("%s: reported %q", what, seen)
		}
		embedAll(t, a, "one", "two")
		if got := inner.asked(); len(got) > 0 {
			t.Errorf("%s: not made again: %q", what, got)
		}
	}
	if err := s.client.Del(t.Context(), one).Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.client.LPush(t.Context(), one, "a list").Err(); err != nil {
		t.Fatal(err)
	}
	embedAll(t, a, "one")
	if got := inner.asked(); !slices.Equal(got, []string{"one"}) {
		t.Errorf("a list: the encoder was asked for %q", got)
	}
}

// TestVectorsWithoutServer kills the server: everything is asked of the encoder, and nothing fails.
func TestVectorsWithoutServer(t *testing.T) {
	t.Parallel()
	r := startServer(t)
	var said reports
	s, inner := r.open("", said.add), &counting{Hashing: &llmtest.Hashing{}}
	a := s.Vectors("acme", inner)
	embedAll(t, a, "one")
	r.kill()
	for range 3 {
		inner.asked()
		embedAll(t, a, "one", "two")
		if got := inner.asked(); !slices.Equal(got, []string{"one", "two"}) {
			t.Errorf("without the server the encoder was asked for %q", got)
		}
	}
	if seen := said.take(); len(seen) != 1 || seen[0] == nil {
		t.Errorf("reported %q, want the failure once", seen)
	}
	if !r.start() {
		t.Fatal("the server does not start again")
	}
	s.now = func() time.Time { return time.Now().Add(2 * rest) }
	embedAll(t, a, "one", "two")
	inner.asked()
	embedAll(t, a, "one", "two")
	if got := inner.asked(); len(got) > 0 {
		t.Errorf("with the server again the encoder was asked for %q", got)
	}
}

// TestVectorsHostile asks servers that send nonsense. Nothing fails.
func TestVectorsHostile(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]string{
		"large text": "$2000000000\r\n", "large list": "*200000000\r\n", "deep": "*1\r\n", "true": "+OK\r\n", "none": "*0\r\n",
		"one": "*1\r\n$1\r\nx\r\n", "integers": "*2\r\n:1\r\n:2\r\n", "too many": "*3\r\n$1\r\nx\r\n$1\r\nx\r\n$1\r\nx\r\n", "error": "-ERR no\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := openConfig(t, Config{URL: "redis://redis.invalid", Key: testKey, wait: time.Second, Dial: pipe(func(c net.Conn) {
				for {
					if _, err := c.Write([]byte(reply)); err != nil {
						return
					}
				}
			})})
			inner := &counting{Hashing: &llmtest.Hashing{}}
			embedAll(t, s.Vectors("acme", inner), "one", "two")
			if got := inner.asked(); !slices.Equal(got, []string{"one", "two"}) {
				t.Errorf("the encoder was asked for %q", got)
			}
		})
	}
}

// TestEncoderErrors checks that errors are about the right text, and that what was made is kept.
func TestEncoderErrors(t *testing.T) {
	t.Parallel()
	r := startServer(t)
	s := r.open("", nil)
	inner := &counting{Hashing: &llmtest.Hashing{}}
	a := s.Vectors("acme", inner)
	embedAll(t, a, "b", "d")
	inner.fail = &llm.TooLongError{Model: inner.Model(), Text: 1, Tokens: 9, Limit: 8}
	made, err := llm.Embed(t.Context(), a, llm.Passage, []string{"a", "b", "c", "d"})
	if long, ok := errors.AsType[*llm.TooLongError](err); !ok || long.Text != 2 || len(made) != 2 {
		t.Errorf("%d vectors, %v; want 2, and an error about text 2", len(made), err)
	}
	inner.fail = nil
	inner.asked()
	embedAll(t, a, "a", "b", "c", "d")
	if got := inner.asked(); !slices.Equal(got, []string{"c"}) {
		t.Errorf("then the encoder was asked for %q", got)
	}

	wide := &llmtest.Hashing{Name: inner.Model(), Dimensions: 64} // breaks the promise of its name
	vectors, err := llm.Embed(t.Context(), s.Vectors("acme", wide), llm.Passage, []string{"a", "e"})
	if err != nil || len(vectors) != 2 || len(vectors[0]) != 64 {
		t.Errorf("%d vectors, %v", len(vectors), err)
	}
}

// FuzzBox checks that a vector is what it was, and that nothing else can be opened.
func FuzzBox(f *testing.F) {
	f.Add("name", []byte("value"), float32(0.5))
	b := newBox(testKey, "acme")
	f.Fuzz(func(t *testing.T, name string, value []byte, x float32) {
		if _, err := b.open(name, string(value)); !errors.Is(err, errTampered) {
			t.Errorf("open = %v", err)
		}
		v, err := b.open(name, b.seal(name, llm.Vector{x, 1}))
		if err != nil || len(v) != 2 || math.Float32bits(v[0]) != math.Float32bits(x) {
			t.Errorf("%v, %v", v, err)
		}
		if _, err := b.open(name+rand.Text(), b.seal(name, llm.Vector{x})); !errors.Is(err, errTampered) {
			t.Errorf("under another name: %v", err)
		}
	})
}

// TestContract checks that an encoder with shared vectors keeps the contract of encoders.
func TestContract(t *testing.T) {
	t.Parallel()
	s := startServer(t).open("", nil)
	llmtest.TestEmbedder(t, s.Vectors("acme", &llmtest.Hashing{}))
}
