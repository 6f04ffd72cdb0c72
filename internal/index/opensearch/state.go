package opensearch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/assay-rag/assay"
)

// stateID is the ID of the state document, which is its routing as well.
const stateID = "state"

// A state is the state of a tenant's index. It is a document of the index, replaced by
// compare-and-set.
type state struct {
	Version  int    `json:"version"`  // of the layout and the analysis
	Tenant   string `json:"tenant"`   // digest of its name
	Identity string `json:"identity"` // of the source; empty: it has none

	Sequence  int64                 `json:"sequence"`         // of the source; its text is complete up to it
	Committed int64                 `json:"committed"`        // last claim whose rows count
	Claim     int64                 `json:"claim"`            // last claim that was made
	Void      [][2]int64            `json:"void,omitempty"`   // first and last of claims that were never committed
	Models    map[string]modelState `json:"models,omitempty"` // by name
	Fields    int                   `json:"fields,omitempty"` // number of fields of vectors that were made

	Replaced []replacement `json:"replaced,omitempty"` // rows that no longer count and are not deleted yet

	// Nonce is unique to each claim, so that a writer recognises its own writes.
	Nonce string `json:"nonce"`

	index              string // name of the index, not of the alias
	seqNo, primaryTerm int64  // of the document; 0: not written yet
}

// A modelState is the state of the vectors of one model.
type modelState struct {
	Field      string `json:"field"` // empty: there is no vector yet
	Dimensions int    `json:"dimensions"`
	Sequence   int64  `json:"sequence"` // of the source; the vectors are complete up to it
	// Equal reports whether all vectors have about the same norm, so that the order by cosine is that
	// by the other metrics.
	Norm  float64 `json:"norm"` // of the first vector
	Equal bool    `json:"equal"`
}

// A replacement lists rows that do not count from a claim on: those of older claims that are of one
// of the documents, have one of the owners or are in one of the fields.
type replacement struct {
	Claim     int64     `json:"claim"`
	Time      time.Time `json:"time"` // of the commit, by the writer's clock
	Documents []string  `json:"documents,omitempty"`
	Owners    []string  `json:"owners,omitempty"` // of vectors
	Fields    []string  `json:"fields,omitempty"` // of vectors
}

func (r *replacement) size() int { return len(r.Documents) + len(r.Owners) + len(r.Fields) }

// query returns the query for the rows.
func (r *replacement) query() object {
	var parts []object
	for field, values := range map[string][]string{"document": r.Documents, "owner": r.Owners, "field": r.Fields} {
		if len(values) > 0 {
			parts = append(parts, termsQuery(field, values))
		}
	}
	return all(object{"range": object{"claim": object{"lt": r.Claim}}}, anyOf(parts...))
}

func claimsQuery(claims [2]int64) object {
	return object{"range": object{"claim": object{"gte": claims[0], "lte": claims[1]}}}
}

// maxVoid is the largest number of ranges of void claims that a state remembers. A writer that was
// superseded so often does not write any more.
const maxVoid = 200

// avoid makes the claims void that were made and not committed. It returns false if there are none.
func (s *state) avoid() (claims [2]int64, ok bool) {
	claims = [2]int64{s.Committed + 1, s.Claim}
	if claims[0] > claims[1] {
		return claims, false
	}
	if n := len(s.Void); n > 0 && s.Void[n-1][1] >= s.Committed {
		s.Void[n-1][1] = s.Claim
	} else {
		s.Void = append(s.Void, claims)
	}
	s.Void = s.Void[max(0, len(s.Void)-maxVoid):]
	return claims, true
}

// current returns the query for the rows that count in the state.
func (s *state) current() object {
	var without []object
	for _, claims := range s.Void {
		without = append(without, claimsQuery(claims))
	}
	for i := range s.Replaced {
		without = append(without, s.Replaced[i].query())
	}
	return object{"bool": object{
		"filter":   []object{{"range": object{"claim": object{"lte": s.Committed}}}},
		"must_not": append(without, termQuery("kind", kindState)),
	}}
}

// scope returns the query for the rows of documents that access may see, without those of the changed
// documents. Every query for hits, counts and vectors is within a scope. The access must not be zero.
func (s *state) scope(access assay.Access, changed []string) object {
	filters := []object{s.current(), termsQuery("acl", accessTokens(access))}
	if collections := access.Collections(); collections != nil {
		filters = append(filters, termsQuery("collection", keywords(collections)))
	}
	if len(changed) > 0 {
		filters = append(filters, not(termsQuery("document", changed)))
	}
	return all(filters...)
}

// clone returns a copy that can be changed.
func (s *state) clone() *state {
	c := *s
	c.Void, c.Replaced, c.Models = slices.Clone(s.Void), slices.Clone(s.Replaced), maps.Clone(s.Models)
	if c.Models == nil {
		c.Models = make(map[string]modelState)
	}
	return &c
}

// replacedRows returns the number of entries of Replaced.
func (s *state) replacedRows() int {
	n := 0
	for i := range s.Replaced {
		n += s.Replaced[i].size()
	}
	return n
}

// A stateAnswer is what OpenSearch returns for the state document.
type stateAnswer struct {
	Index       string `json:"_index"`
	SeqNo       int64  `json:"_seq_no"`
	PrimaryTerm int64  `json:"_primary_term"`
	Found       bool   `json:"found"`
	Source      struct {
		State *state `json:"state"`
	} `json:"_source"`
}

// readState returns the state of the index with this name or alias. It returns known if that is still
// the state, and nil if there is no index. known may be nil.
func (c *Cluster) readState(ctx context.Context, name string, known *state) (*state, error) {
	if known != nil {
		a, err := c.getState(ctx, name, "?realtime=true&_source=false")
		if err != nil || !a.Found {
			return nil, err
		}
		if a.Index == known.index && a.SeqNo == known.seqNo && a.PrimaryTerm == known.primaryTerm {
			return known, nil
		}
	}
	a, err := c.getState(ctx, name, "?realtime=true")
	if err != nil || !a.Found {
		return nil, err
	}
	s := a.Source.State
	if s == nil {
		return nil, fmt.Errorf("index %s has no state in its state document: %w", a.Index, assay.ErrForeign)
	}
	s.index, s.seqNo, s.primaryTerm = a.Index, a.SeqNo, a.PrimaryTerm
	return s, nil
}

func (c *Cluster) getState(ctx context.Context, name, options string) (stateAnswer, error) {
	var a stateAnswer
	err := c.do(ctx, http.MethodGet, "/"+url.PathEscape(name)+"/_doc/"+stateID+options, nil, &a)
	if refused(err, http.StatusNotFound) {
		return stateAnswer{}, nil
	}
	return a, err
}

// writeState replaces the state of s.index, which must be the one that s was read from. If it is not,
// the error wraps assay.ErrLocked.
func (c *Cluster) writeState(ctx context.Context, s *state) error {
	path := fmt.Sprintf("/%s/_doc/%s?if_seq_no=%d&if_primary_term=%d", s.index, stateID, s.seqNo, s.primaryTerm)
	if s.primaryTerm == 0 {
		path = fmt.Sprintf("/%s/_create/%s", s.index, stateID)
	}
	var a stateAnswer
	err := c.do(ctx, http.MethodPut, path, object{"kind": kindState, "state": s}, &a)
	if refused(err, http.StatusConflict) {
		// The answer of an attempt before may have been lost.
		if again, readErr := c.readState(ctx, s.index, nil); readErr == nil && again != nil && again.equal(s) {
			s.seqNo, s.primaryTerm = again.seqNo, again.primaryTerm
			return nil
		}
		return fmt.Errorf("write the state of index %s: another process writes it: %w", s.index, assay.ErrLocked)
	}
	if err != nil {
		return fmt.Errorf("write the state of index %s: %w", s.index, err)
	}
	s.seqNo, s.primaryTerm = a.SeqNo, a.PrimaryTerm
	return nil
}

// equal reports whether two states are those of the same write. Claims are never made twice.
func (s *state) equal(other *state) bool {
	return s.Nonce == other.Nonce && s.Claim == other.Claim && s.Committed == other.Committed && s.Sequence == other.Sequence
}

// errGone means that the index was removed, because the alias has moved to another one.
var errGone = errors.New("the index was replaced")

// query sends a search to the index of s. A failure of a shard is an error.
func (c *Cluster) query(ctx context.Context, s *state, body object, out any) error {
	err := c.do(ctx, http.MethodPost, "/"+s.index+"/_search?allow_partial_search_results=false&request_cache=false", body, out)
	if refused(err, http.StatusNotFound) {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return err
}
