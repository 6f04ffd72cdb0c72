package telemetry

import (
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
)

// other replaces each value of a label that is not known beforehand, and none an absent one.
const (
	other = "other"
	none  = "none"
)

// maxNames is the largest number of values of a label that is filled from a configuration, or from the
// patterns of a server.
const maxNames = 200

// A bounded is the set of values that a label may have.
type bounded struct {
	mu    sync.RWMutex
	known map[string]bool
}

func newBounded[T ~string](values ...T) *bounded {
	b := &bounded{known: map[string]bool{}}
	for _, v := range values {
		b.add(string(v))
	}
	return b
}

// add makes a value known, unless there are too many.
func (b *bounded) add(value string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if value != "" && len(b.known) < maxNames {
		b.known[value] = true
	}
}

// of returns value if it is known, none if it is empty, and otherwise other.
func (b *bounded) of(value string) string {
	if value == "" {
		return none
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.known[value] {
		return value
	}
	return other
}

var (
	statuses = newBounded(assay.Answered, assay.Incomplete, assay.Conflicting, assay.NotFound, assay.PendingReview, assay.Rejected)
	stops    = newBounded(
		assay.StopSufficient, assay.StopIterationLimit, assay.StopDeadline, assay.StopTokenBudget, assay.StopCallBudget, assay.StopMoneyBudget,
		assay.StopQuota, assay.StopStopped, assay.StopNoProgress, assay.StopCircular, assay.StopMalformed, assay.StopAmbiguous,
	)
	kinds = newBounded(
		assay.StepPlan, assay.StepSearch, assay.StepRead, assay.StepGrade, assay.StepGenerate, assay.StepVerify, assay.StepModel, assay.StepRerank,
		assay.StepRole, assay.StepReader, assay.StepTool, assay.StepWeb, assay.StepCache, assay.StepRung, assay.StepHuman, assay.StepClock,
	)
	roles   = newBounded(append(role.Names(), assay.SearchRole, assay.ManagedRole)...)
	methods = newBounded(
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
	)
)

// states are the words for the states of runs. A run that is active when it is no longer driven was
// interrupted.
var states = map[assay.RunState]string{
	assay.RunDone: "done", assay.RunFailed: "failed", assay.RunSuspended: "suspended", assay.RunActive: "interrupted",
}

// codeOf returns the label of a status of HTTP.
func codeOf(status int) string {
	if status < 100 || status > 599 {
		return other
	}
	return strconv.Itoa(status)
}

// encoderModel returns the model of an encoder, whose name ends in its number of dimensions, as in
// "gte-small/384".
func encoderModel(name string) string {
	if i := strings.LastIndexByte(name, '/'); i > 0 {
		if _, err := strconv.Atoi(name[i+1:]); err == nil {
			return name[:i]
		}
	}
	return name
}

// splitModel splits the full name of a model into the provider, in the words of the semantic
// conventions, and the model. A name without a provider is a model of this process.
func splitModel(name string) (provider, model string) {
	provider, model, ok := strings.Cut(name, "/")
	if !ok {
		return assay.LocalModel, name
	}
	switch provider {
	case "bedrock":
		provider = "aws.bedrock"
	case "gemini":
		provider = "gcp.gemini"
	}
	return provider, model
}
