package redis

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/assay-rag/assay/llm"
)

const (
	// keepVectors is how long a vector is kept.
	keepVectors = 7 * 24 * time.Hour
	// maxDimensions bounds a vector, so that its value is within maxBulk.
	maxDimensions = 8192
	// perCall is how many vectors are read or written at a time: less than maxReply.
	perCall = 64
	// rest is how long no vectors are asked for after the server has failed, so that not every batch waits.
	rest = 30 * time.Second
	// sayTampered is how often values of others are reported.
	sayTampered = time.Minute
)

// Vectors implements engine.SharedVectors. The vectors of passages that e returns are kept for a week,
// and those that are kept are not asked of e. Queries go to e alone. It returns e if the server has no
// key. The errors are those of e.
//
// A vector depends on the model and the text alone. Its name is a MAC of both by a key of the
// tenant, and its value is encrypted and authenticated with another (AES-256-GCM) together with
// the name: Redis holds no text, and no vector that can be read without Config.Key. A value that
// was written, altered or moved without that key is a miss, which is reported. Tenants do not
// find each other's.
func (s *Server) Vectors(tenant string, e llm.Embedder) llm.Embedder {
	if s.config.Key == "" {
		return e
	}
	shared := &embedder{Embedder: e, server: s, box: newBox(s.config.Key, tenant)}
	if counter, ok := e.(llm.TokenCounter); ok {
		return countingEmbedder{shared, counter}
	}
	return shared
}

// A countingEmbedder is an embedder that also counts tokens.
type countingEmbedder struct {
	*embedder
	llm.TokenCounter
}

// An embedder is an encoder whose vectors of passages are shared.
type embedder struct {
	llm.Embedder
	server *Server
	box    box
}

// Facts implements llm.Described.
func (e *embedder) Facts() llm.Facts { return llm.FactsOf(e.Embedder) }

// Embed implements llm.Embedder.
func (e *embedder) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	if p != llm.Passage || len(texts) == 0 {
		return e.Embedder.Embed(ctx, p, texts)
	}
	names := make([]string, len(texts))
	for i, text := range texts {
		names[i] = e.box.name(e.Model(), text)
	}
	vectors := e.server.get(ctx, e.box, names)
	if len(vectors) == 0 { // there are none, or not of one length
		vectors = make([]llm.Vector, len(texts))
	}
	var missing []int
	var unknown []string
	for i, v := range vectors {
		if v == nil {
			missing, unknown = append(missing, i), append(unknown, texts[i])
		}
	}
	if len(missing) == 0 {
		return vectors, ctx.Err()
	}
	made, err := llm.Embed(ctx, e.Embedder, p, unknown)
	fresh := map[string]llm.Vector{}
	for k, v := range made {
		vectors[missing[k]], fresh[names[missing[k]]] = v, v
	}
	if !sameLength(vectors) { // the encoder's vectors have another length than before
		return e.Embedder.Embed(ctx, p, texts)
	}
	e.server.put(ctx, e.box, fresh)
	if len(made) < len(missing) {
		vectors = vectors[:missing[len(made)]]
	}
	return vectors, ofTexts(err, missing)
}

// ofTexts returns an error about some of the texts as one about all of them.
func ofTexts(err error, of []int) error {
	if long, ok := errors.AsType[*llm.TooLongError](err); ok && long.Text >= 0 && long.Text < len(of) {
		about := *long
		about.Text = of[long.Text]
		return &about
	}
	if bad, ok := errors.AsType[*llm.BadOutputError](err); ok && bad.Text >= 0 && bad.Text < len(of) {
		about := *bad
		about.Text = of[bad.Text]
		return &about
	}
	return err
}

// sameLength reports whether all vectors that are there have the same length.
func sameLength(vectors []llm.Vector) bool {
	n := 0
	for _, v := range vectors {
		if v != nil && n != 0 && len(v) != n {
			return false
		}
		n = max(n, len(v))
	}
	return true
}

// get returns the vectors with these names, nil for each that is not there. It returns none if the
// server cannot be reached, or they have different lengths.
func (s *Server) get(ctx context.Context, b box, names []string) []llm.Vector {
	if s.resting() {
		return nil
	}
	vectors := make([]llm.Vector, 0, len(names))
	for len(names) > 0 {
		some := names[:min(perCall, len(names))]
		names = names[len(some):]
		asked, cancel := context.WithTimeout(ctx, s.config.wait)
		values, err := s.client.MGet(asked, some...).Result()
		cancel()
		if err == nil && len(values) != len(some) {
			err = errReply
		}
		if s.ended(ctx, err) {
			return nil
		}
		for i, value := range values {
			vectors = append(vectors, s.open(b, some[i], value))
		}
	}
	if !sameLength(vectors) {
		return nil
	}
	return vectors
}

// open returns the vector in a value; nil: there is none.
func (s *Server) open(b box, name string, value any) llm.Vector {
	if value == nil {
		return nil
	}
	text, _ := value.(string)
	v, err := b.open(name, text)
	if err != nil {
		s.reportTampered(err)
	}
	return v
}

// put keeps vectors by name.
func (s *Server) put(ctx context.Context, b box, vectors map[string]llm.Vector) {
	if s.resting() || len(vectors) == 0 || ctx.Err() != nil {
		return
	}
	asked, cancel := context.WithTimeout(ctx, s.config.wait)
	defer cancel()
	_, err := s.client.Pipelined(asked, func(p goredis.Pipeliner) error {
		for name, v := range vectors {
			if len(v) <= maxDimensions {
				p.Set(asked, name, b.seal(name, v), keepVectors)
			}
		}
		return nil
	})
	s.ended(ctx, err)
}

// ended notes the error of a call for vectors, and reports whether there is one.
func (s *Server) ended(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true
	}
	s.outcome(err)
	if err == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rested = s.now().Add(rest)
	return true
}

// resting reports whether the server failed a moment ago.
func (s *Server) resting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now().Before(s.rested)
}

func (s *Server) reportTampered(err error) {
	s.mu.Lock()
	say := s.tampered.IsZero() || s.now().Sub(s.tampered) >= sayTampered
	if say {
		s.tampered = s.now()
	}
	s.mu.Unlock()
	if say {
		s.config.Report(err)
	}
}

// errTampered is the error of a value that was not written with the key.
var errTampered = errors.New("redis: a shared vector was written or altered without the key of this configuration, and is ignored")

// A box has the keys of a tenant.
type box struct {
	names  []byte
	values cipher.AEAD
}

func newBox(key, tenant string) box {
	keys, err := hkdf.Key(sha256.New, []byte(key), nil, "assay shared vectors 1 of "+tenant, 2*sha256.Size)
	if err != nil {
		panic(err) // the length is one that HKDF has
	}
	block, err := aes.NewCipher(keys[sha256.Size:])
	if err != nil {
		panic(err) // the length is that of a key
	}
	values, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // the block is that of AES
	}
	return box{keys[:sha256.Size], values}
}

// name returns the key in Redis of a text's vector.
func (b box) name(model, text string) string {
	mac := hmac.New(sha256.New, b.names)
	fmt.Fprintf(mac, "%d %s%s", len(model), model, text)
	return "assay:vector:" + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// seal returns the value of a vector.
func (b box) seal(name string, v llm.Vector) string {
	plain := make([]byte, 0, 4*len(v))
	for _, x := range v {
		plain = binary.LittleEndian.AppendUint32(plain, math.Float32bits(x))
	}
	return string(b.values.Seal(nil, nil, plain, []byte(name)))
}

// open returns the vector in a value that seal has made for this name.
func (b box) open(name, value string) (llm.Vector, error) {
	plain, err := b.values.Open(nil, nil, []byte(value), []byte(name))
	if err != nil || len(plain) == 0 || len(plain)%4 != 0 {
		return nil, errTampered
	}
	v := make(llm.Vector, len(plain)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(plain[4*i:]))
	}
	return v, nil
}
