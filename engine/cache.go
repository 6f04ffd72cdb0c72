package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/role/prompted"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/strategy"
)

// maxEarlier is how many earlier questions under the same cache key a question is compared with,
// the newest first.
const maxEarlier = 500

// maxSame is how many earlier runs with the same question a run considers.
const maxSame = 8

// cacheInputs holds everything besides the question that an answer depends on. The cache key is
// its hash, so a cached answer is reused only if all of it is equal.
type cacheInputs struct {
	Tenant   string            `json:"tenant"` // a secret word, so that the key, which runs show, does not tell Sequence
	Program  string            `json:"program"`
	Access   string            `json:"access"`
	Request  storedRequest     `json:"request"` // without the question
	Sequence int64             `json:"sequence"`
	Encoder  string            `json:"encoder"` // model whose vectors are searched; empty: none
	Prompts  map[string]string `json:"prompts"` // by role
	Domain   string            `json:"domain"`
	Verifier string            `json:"verifier"`
	Reranker string            `json:"reranker"`
	Local    bool              `json:"local_verifier"`
	Reader   string            `json:"reader"` // empty: none
}

// program identifies the running build, so that two builds that may answer differently never
// share a cache key. It combines the build information, which in development builds holds no
// versions, with the size, the modification time and the first 64 KiB of the executable, which
// include the linker's build ID. It is empty if the executable cannot be read; then answers are
// not cached.
var program = sync.OnceValue(func() string {
	const begins = 64 << 10
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	about, err := f.Stat()
	if err != nil {
		return ""
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.LimitReader(f, begins)); err != nil {
		return ""
	}
	name := fmt.Sprintf("%d %d %x", about.Size(), about.ModTime().UnixNano(), sum.Sum(nil))
	if info, ok := debug.ReadBuildInfo(); ok {
		name += " " + info.String() // includes the versions of this module and its dependencies
	}
	return name
})

// cacheKey returns the key under which the answer to a request is looked up and offered. It is
// empty if the answer must not be cached: the answer depends on a conversation, on sources other
// than the documents or on the caller's own code, or the cache is disabled. If the content cannot be read it is empty
// too; the run's own first step reports that error.
func (e *Engine) cacheKey(ctx context.Context, principal assay.Principal, req storedRequest) string {
	if e.config.NoCache || e.config.extended(req.Strategy) || principal.User == "" || program() == "" {
		return ""
	}
	if len(req.History) > 0 || req.Follows != "" || req.beyondDocuments() {
		return ""
	}
	sequence, err := e.content.Sequence(ctx)
	if err != nil {
		return ""
	}
	tenant, err := e.content.Identity(ctx)
	if err != nil {
		return ""
	}
	if lags, err := e.lags(ctx); err != nil || lags { // the answer may lack the latest documents
		return ""
	}
	chosen, err := e.encoderSelector.selection(ctx)
	if err != nil || chosen.problem != nil {
		return ""
	}
	models := e.config.Models.unless(req.Local)
	if !models.verifierNamed() {
		return ""
	}
	d := cacheInputs{
		Tenant: tenant, Program: program(), Access: principal.Access().Key(), Request: req, Sequence: sequence, Encoder: chosen.serving,
		Prompts: map[string]string{},
	}
	d.Request.Question, d.Request.Key, d.Request.Earlier, d.Request.NoCache = "", "", nil, false
	d.Request.Review, d.Request.Guarded = "", false // they decide who sees the answer
	d.Request.Outline = nil                         // it follows from the question
	d.Request.Nodes = ""                            // it decides who drives the run
	d.Request.NamedCollections = nil                // it follows from the question and the collections
	d.Request.Local = req.Local && !e.config.Models.none()
	d.Request.Collections = slices.Compact(slices.Sorted(slices.Values(req.Collections)))
	for _, task := range prompted.Tasks() {
		if models.Roles[role.Of(task)] != nil {
			d.Prompts[task] = models.prompt(task)
		}
	}
	if models.Domain != nil {
		d.Domain = models.Domain.Hash()
	}
	if models.Verifier != nil {
		d.Verifier = fmt.Sprintf("%T %s", models.Verifier, models.named()["verifier"])
	}
	if models.Reranker != nil {
		d.Reranker = models.Reranker.Model()
	}
	d.Local = models.LocalVerifier
	reader, err := e.reader()
	if err != nil {
		return ""
	}
	if reader != nil {
		d.Reader = reader.Model()
	}
	data, err := json.Marshal(d)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// beyondDocuments reports whether an answer may use sources other than the documents.
func (s storedRequest) beyondDocuments() bool { return s.Web || s.Strategy == "managed" }

// earlierRuns returns the runs under the key with the same question, newest first.
func (e *Engine) earlierRuns(ctx context.Context, key, question string) ([]strategy.Earlier, error) {
	offers, err := e.runs.Offers(ctx, key, maxEarlier)
	if err != nil {
		return nil, err
	}
	var same []strategy.Earlier
	for _, o := range offers {
		if strategy.SameQuestion(question, o.Question) && len(same) < maxSame {
			same = append(same, strategy.Earlier{Run: o.Run, Question: o.Question})
		}
	}
	return same, nil
}

// offerToCache adds the answer of a run to the cache if it may be reused: documents support every
// claim, each job was done by its configured model, no vector was missing, and the cache key is the
// same as when the run began.
func (e *Engine) offerToCache(ctx context.Context, r assay.Run, req storedRequest, a assay.Answer) error {
	chosen, err := e.encoderSelector.selection(ctx)
	if err != nil || a.Index.Model != chosen.serving {
		return err
	}
	if req.Key == "" || !cacheable(a) || usedFallback(a, req.Models) || e.cacheKey(ctx, r.Principal, req) != req.Key {
		return nil
	}
	return e.runs.Offer(ctx, r.ID, req.Key)
}

// cacheable reports whether an answer cannot improve while the documents stay the same.
func cacheable(a assay.Answer) bool {
	unsupported := func(c assay.Claim) bool { return c.Verdict != assay.Supported }
	foreign := func(c assay.Citation) bool { return c.Origin != assay.FromDocuments }
	elsewhere := func(s assay.Searched) bool { return s.Origin != assay.FromDocuments }
	return a.Status == assay.Answered && a.Stop == assay.StopSufficient && a.Cached == nil && a.AskBack == "" &&
		len(a.Claims) > 0 && !slices.ContainsFunc(a.Claims, unsupported) && !slices.ContainsFunc(a.Citations, foreign) &&
		!slices.ContainsFunc(a.Searched, elsewhere) && (a.Index.Model == "" || a.Index.Coverage == 1)
}

// usedFallback reports whether a job was not done by the model that had it when the run began: a
// model or reranker failed and a fallback did the job, or the run was resumed with another model.
func usedFallback(a assay.Answer, models map[string]string) bool {
	if slices.ContainsFunc(a.Notes, func(n assay.Note) bool { return n.Kind == assay.NoteReranker }) {
		return true
	}
	return slices.ContainsFunc(a.Roles, func(u assay.RoleUse) bool {
		small := u.Role == role.GeneratorRole && u.Model == models[strategy.SmallGenerator]
		return u.Role != assay.SearchRole && u.Model != cmp.Or(models[u.Role], assay.LocalModel) && !small
	})
}

// A cacheStep is the output of a lookup in the answer cache.
type cacheStep struct {
	Answer *struct {
		Cached assay.Cached `json:"cached"`
	} `json:"answer"`
	Documents []string `json:"documents"`
}

func (r cacheStep) String() string {
	if r.Answer == nil {
		return "no earlier answer can be reused"
	}
	return fmt.Sprintf("the answer of run %s to %q", r.Answer.Cached.Run, r.Answer.Cached.Question)
}

// An answerCache implements strategy.Cache for one run.
type answerCache struct {
	e         *Engine
	principal assay.Principal
	req       storedRequest
}

// Answer implements strategy.Cache. It checks the earlier run's journal and the access to every
// document that run read.
func (r answerCache) Answer(ctx context.Context, id string) (*assay.Answer, []string, error) {
	earlier, records, err := r.e.journal(ctx, r.principal, id)
	switch {
	case errors.Is(err, assay.ErrNotFound), errors.Is(err, assay.ErrDamaged):
		return nil, nil, nil // deleted, no longer visible, or damaged; show and replay report damage
	case err != nil:
		return nil, nil, err
	}
	if earlier.Answer == nil || !cacheable(*earlier.Answer) {
		return nil, nil, nil
	}
	read, err := documentsOf(earlier, records)
	if err != nil {
		return nil, nil, err
	}
	if r.e.cacheKey(ctx, r.principal, r.req) != r.req.Key {
		return nil, nil, nil // the documents have changed since
	}
	return earlier.Answer, slices.Sorted(maps.Keys(read)), nil
}
