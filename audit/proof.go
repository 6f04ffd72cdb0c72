package audit

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/journal"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/store"
)

const (
	proofProgram = "assay proof"
	proofFormat  = 1

	// MaxProof is the most bytes of a proof that CheckProof reads.
	MaxProof = 256 << 20
)

// A Proof is everything that the audit log has about one run, with the proof that each entry is under
// one signed checkpoint. Its JSON form is deterministic.
type Proof struct {
	Program    string   `json:"program"`    // "assay proof"
	Format     int      `json:"format"`     // 1
	Run        string   `json:"run"`        // ID
	Checkpoint string   `json:"checkpoint"` // a signed note
	Keys       []string `json:"keys"`       // verifier keys of its signatures, which a reader compares with those it trusts

	// Stored is false if the run was deleted. Withheld means that the payloads were left out,
	// because whoever made the proof may not see the documents that the run read.
	Stored   bool `json:"stored"`
	Withheld bool `json:"withheld"`

	// Question, Request and Answer are the texts whose hashes the acts have; nil: none, erased or
	// withheld.
	Question *string `json:"question"`
	Request  *string `json:"request"`
	Answer   *string `json:"answer"`

	Entries []ProofEntry `json:"entries"` // by Sequence
	Values  []string     `json:"values"`  // long values that the records refer to, by their hashes
}

// A ProofEntry is an entry of the log.
type ProofEntry struct {
	Sequence int64   `json:"sequence"`
	Header   string  `json:"header"`
	Payload  *string `json:"payload"` // nil: erased or withheld
	Salt     []byte  `json:"salt"`

	// Inclusion is the audit path of RFC 6962 from the leaf to the checkpoint's root.
	Inclusion []tlog.Hash `json:"inclusion"`
}

// Prove returns the proof of a run under a checkpoint of the log, which must cover all entries about
// the run. If withhold is true, the proof has no payloads of steps, no request and no answer. The
// error is assay.ErrNotFound if the log has nothing about the run, and assay.ErrInvalid if the
// checkpoint does not cover it or is of another log.
func Prove(ctx context.Context, a store.Audit, run string, c Signed, withhold bool) (Proof, error) {
	f, err := a.About(ctx, run)
	if err != nil {
		return Proof{}, err
	}
	if !f.Stored && !tellsOfRun(f.Entries) { // such as acts on a collection of that name
		return Proof{}, fmt.Errorf("run %q: %w", run, assay.ErrNotFound)
	}
	origin, err := Origin(ctx, a)
	if err != nil {
		return Proof{}, err
	}
	last := f.Entries[len(f.Entries)-1].Sequence
	switch {
	case origin != c.Origin:
		return Proof{}, fmt.Errorf("the checkpoint is of the log %s, this is %s: %w", c.Origin, origin, assay.ErrInvalid)
	case last > c.Size:
		return Proof{}, fmt.Errorf("the checkpoint covers %d entries, and entry %d is about the run %s; publish another: %w", c.Size, last, run, assay.ErrInvalid)
	}
	p := Proof{
		Program: proofProgram, Format: proofFormat, Run: run, Checkpoint: string(c.Note), Keys: c.Keys,
		Stored: f.Stored, Withheld: withhold, Entries: []ProofEntry{}, Values: []string{},
	}
	erased := f.Stored && isErased(f.Entries)
	if f.Stored && !erased {
		p.Question = &f.Question
	}
	if !withhold {
		p.Request, p.Answer = textOf(f.Request), textOf(f.Answer)
		for _, v := range f.Values {
			p.Values = append(p.Values, string(v))
		}
	}
	for _, e := range f.Entries {
		inclusion, err := Inclusion(ctx, a, e.Sequence, c.Size)
		if err != nil {
			return Proof{}, err
		}
		entry := ProofEntry{Sequence: e.Sequence, Header: string(e.Header), Inclusion: inclusion}
		if e.Payload != nil && !(withhold && withheldEntry(e)) {
			entry.Payload, entry.Salt = textOf(e.Payload), e.Salt
		}
		p.Entries = append(p.Entries, entry)
	}
	return p, nil
}

// tellsOfRun reports whether one of the entries is the begin of a run.
func tellsOfRun(entries []store.LogEntry) bool {
	return slices.ContainsFunc(entries, func(e store.LogEntry) bool {
		h, err := journal.OpenHeader(e.Header, e.Leaf)
		return err == nil && h.Act == store.KindRunBegun
	})
}

func textOf(data []byte) *string {
	if data == nil {
		return nil
	}
	text := string(data)
	return &text
}

// isErased reports whether one of the entries says that the run was erased.
func isErased(entries []store.LogEntry) bool {
	return slices.ContainsFunc(entries, func(e store.LogEntry) bool {
		h, err := journal.OpenHeader(e.Header, e.Leaf)
		return err == nil && h.Act == store.KindRunErased
	})
}

// withheldEntry reports whether the payload of an entry may have text of documents or name them: it is
// a record, the end of the run, which names the documents of its answer, or an act of another kind than
// those about the run itself.
func withheldEntry(e store.LogEntry) bool {
	h, err := journal.OpenHeader(e.Header, e.Leaf)
	ended := h.Act == store.KindRunEnded || h.Act == store.KindRunSuspended
	return err != nil || ended || !strings.HasPrefix(h.Act, "run.")
}

// Bytes returns the proof's JSON. It is safe to print: characters that control a terminal or change
// the direction of text are escaped.
func (p Proof) Bytes() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(p); err != nil {
		return nil, err
	}
	if !bytes.ContainsFunc(b.Bytes(), steers) {
		return b.Bytes(), nil
	}
	var escaped bytes.Buffer
	for _, r := range b.String() {
		if steers(r) {
			fmt.Fprintf(&escaped, `\u%04x`, r)
		} else {
			escaped.WriteRune(r)
		}
	}
	return escaped.Bytes(), nil
}

// steers reports whether a character is written as an escape, because it controls a terminal or the
// layout of text.
func steers(r rune) bool { return r != '\n' && visible.Steers(r) }

// ParseProof is the inverse of Bytes and accepts only what Bytes returns. It verifies nothing. The
// error is assay.ErrForeign for something that is no proof, assay.ErrNewer for one of a later
// format, and assay.ErrDamaged for one in another form.
func ParseProof(data []byte) (Proof, error) {
	if len(data) > MaxProof {
		return Proof{}, fmt.Errorf("proof of %d bytes, at most %d are read: %w", len(data), MaxProof, assay.ErrInvalid)
	}
	var head struct {
		Program string
		Format  int
	}
	if err := json.Unmarshal(data, &head); err != nil || head.Program != proofProgram {
		return Proof{}, fmt.Errorf("it is no proof of assay: %w", assay.ErrForeign)
	}
	if head.Format > proofFormat {
		return Proof{}, fmt.Errorf("proof of format %d, this program reads %d: %w", head.Format, proofFormat, assay.ErrNewer)
	}
	var p Proof
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return Proof{}, fmt.Errorf("proof: %w: %w", assay.ErrDamaged, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Proof{}, fmt.Errorf("proof is followed by more: %w", assay.ErrDamaged)
	}
	again, err := p.Bytes()
	if err != nil || !bytes.Equal(again, data) || p.Format != proofFormat {
		return Proof{}, fmt.Errorf("proof is not in the form in which it is written: %w", assay.ErrDamaged)
	}
	return p, nil
}

// An Account is what a proof shows. Everything in it was verified.
type Account struct {
	Run        string     `json:"run"`
	Checkpoint Checkpoint `json:"-"`
	Origin     string     `json:"origin"`
	Size       int64      `json:"size"` // of the checkpoint
	Keys       []string   `json:"keys"` // trusted keys that signed the checkpoint

	Stored   bool `json:"stored"`
	Withheld bool `json:"withheld"` // payloads were left out by whoever made the proof
	Erased   bool `json:"erased"`   // payloads were erased

	Principal *assay.Principal `json:"principal"` // who asked; nil: erased
	Question  *string          `json:"question"`
	State     assay.RunState   `json:"state"` // empty: not known, because it was erased or withheld
	Answer    *assay.Answer    `json:"answer"`
	Error     string           `json:"error,omitempty"`

	Acts     []ProvenAct      `json:"acts"`     // about the run, by Sequence
	Records  []assay.Record   `json:"-"`        // without Input and Output if they are erased or withheld
	Evidence []ProvenCitation `json:"evidence"` // one for each citation of the answer, in its order
}

// A ProvenAct is an act about a run. Without its payload, which was erased or withheld, it has no
// Actor, Reason and Detail.
type ProvenAct struct {
	Sequence int64           `json:"sequence"`
	Kind     string          `json:"kind"`
	Time     time.Time       `json:"time"` // UTC
	Actor    assay.Principal `json:"actor"`
	Reason   string          `json:"reason,omitempty"`
	Detail   json.RawMessage `json:"detail,omitempty"`
}

// A ProvenCitation is a citation whose quote is in the bytes that a recorded step returned.
type ProvenCitation struct {
	Citation assay.Citation `json:"citation"`
	Step     string         `json:"step"`     // path of the step
	Sequence int64          `json:"sequence"` // of its entry
	Text     string         `json:"text"`     // the text that the step returned and the quote is part of
}

// CheckProof verifies a proof without the store: the checkpoint's signature, that each entry is under
// it, the hashes of all payloads and values, that the steps are without a gap, that question,
// request and answer are those that the log recorded, and that the quote of each citation is in text
// that a recorded step returned. The error names the first thing that does not hold. It is
// assay.ErrDamaged, or one of ParseProof or Verifier.Open.
//
// A proof shows what happened. That nothing else did, such as a later act about the run, is shown by
// verifying the whole log.
func CheckProof(data []byte, v *Verifier) (Account, error) {
	p, err := ParseProof(data)
	if err != nil {
		return Account{}, err
	}
	signed, err := v.Open([]byte(p.Checkpoint))
	if err != nil {
		return Account{}, err
	}
	c := &proofChecker{p: p, values: map[string][]byte{}, used: map[string]bool{}, gone: map[int64]bool{}}
	c.account = Account{
		Run: p.Run, Checkpoint: signed.Checkpoint, Origin: signed.Origin, Size: signed.Size, Keys: signed.Keys,
		Stored: p.Stored, Withheld: p.Withheld, Evidence: []ProvenCitation{},
	}
	for _, step := range []func() error{c.checkKeys, c.checkIncluded, c.checkValues, c.openEntries, c.checkPayloads, c.checkRun, c.checkEvidence} {
		if err := step(); err != nil {
			return Account{}, fmt.Errorf("proof of run %s: %w", p.Run, err)
		}
	}
	return c.account, nil
}

// A proofChecker verifies one proof.
type proofChecker struct {
	p       Proof
	account Account
	values  map[string][]byte // by hash
	used    map[string]bool   // hashes of values that records refer to
	headers []journal.Header
	gone    map[int64]bool // entries whose payload another entry says was erased
	last    int64          // entry after which all payloads before are erased; 0: none
}

func broken(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, assay.ErrDamaged)...)
}

// checkKeys checks that the verifier keys in the proof are those whose names and hashes sign the
// checkpoint. They are not trusted.
func (c *proofChecker) checkKeys() error {
	claimed, err := NewVerifier(c.p.Keys...)
	if err != nil {
		return broken("its keys: %v", err)
	}
	signed, err := claimed.Open([]byte(c.p.Checkpoint))
	if err != nil {
		return broken("its keys: %v", err)
	}
	if len(signed.Keys) != len(c.p.Keys) {
		return broken("it names keys that did not sign the checkpoint")
	}
	return nil
}

// checkIncluded checks that each entry is under the checkpoint.
func (c *proofChecker) checkIncluded() error {
	if len(c.p.Entries) == 0 {
		return broken("it has no entries")
	}
	last := int64(0)
	for _, e := range c.p.Entries {
		if e.Sequence <= last {
			return broken("entry %d comes after entry %d", e.Sequence, last)
		}
		last = e.Sequence
		leaf := tlog.RecordHash([]byte(e.Header))
		if err := CheckInclusion(e.Inclusion, c.account.Checkpoint, e.Sequence, leaf); err != nil {
			return err
		}
		h, err := journal.OpenHeader([]byte(e.Header), leaf)
		if err != nil {
			return fmt.Errorf("entry %d: %w", e.Sequence, err)
		}
		if h.Sequence != e.Sequence {
			return broken("entry %d has the header of entry %d", e.Sequence, h.Sequence)
		}
		c.headers = append(c.headers, h)
	}
	return nil
}

// checkValues hashes the long values.
func (c *proofChecker) checkValues() error {
	last := ""
	for _, v := range c.p.Values {
		sum := sha256.Sum256([]byte(v))
		hash := hex.EncodeToString(sum[:])
		if hash <= last {
			return broken("value %s is out of order", hash)
		}
		last = hash
		c.values[hash] = []byte(v)
	}
	return nil
}

// value returns a long value by its hash.
func (c *proofChecker) value(hash string) ([]byte, error) {
	c.used[hash] = true
	if v, ok := c.values[hash]; ok {
		return v, nil
	}
	return nil, assay.ErrNotFound
}

// openEntries opens the records and acts. Steps must begin with 0 and have no gap.
func (c *proofChecker) openEntries() error {
	for i, e := range c.p.Entries {
		h, leaf := c.headers[i], [32]byte(tlog.RecordHash([]byte(e.Header)))
		var payload []byte
		if e.Payload != nil {
			payload = []byte(*e.Payload)
		}
		if (payload == nil) != (e.Salt == nil) {
			return broken("entry %d has a salt without a payload, or a payload without a salt", e.Sequence)
		}
		var err error
		if h.Act != "" {
			err = c.openAct(e, payload, leaf)
		} else {
			err = c.openRecord(e, h, payload, leaf)
		}
		if err != nil {
			return fmt.Errorf("entry %d: %w", e.Sequence, err)
		}
	}
	for hash := range c.values {
		if !c.used[hash] {
			return broken("value %s is used by no step", hash)
		}
	}
	return nil
}

func (c *proofChecker) openAct(e ProofEntry, payload []byte, leaf [32]byte) error {
	a, err := journal.OpenAct([]byte(e.Header), payload, e.Salt, leaf)
	if err != nil {
		return err
	}
	switch {
	case a.Kind == store.KindErased:
		for _, h := range c.headers {
			if fmt.Sprint(h.Sequence) == a.Subject {
				c.gone[h.Sequence] = true
				c.addAct(a)
				return nil
			}
		}
		return broken("it erased entry %s, which is not about the run", a.Subject)
	case a.Subject != c.p.Run:
		return broken("the act %s is about %q", a.Kind, a.Subject)
	case a.Kind == store.KindRunErased, a.Kind == store.KindRunDeleted, a.Kind == store.KindRunExpired:
		c.last = a.Sequence
	}
	c.addAct(a)
	return nil
}

func (c *proofChecker) addAct(a journal.Act) {
	c.account.Acts = append(c.account.Acts, ProvenAct{a.Sequence, a.Kind, a.Time, a.Actor, a.Reason, a.Detail})
}

func (c *proofChecker) openRecord(e ProofEntry, h journal.Header, payload []byte, leaf [32]byte) error {
	if h.Run != c.p.Run {
		return broken("the step %s is of run %s", h.Path, h.Run)
	}
	if h.Ordinal != len(c.account.Records) {
		return broken("the step %s is number %d, and %d come before it", h.Path, h.Ordinal, len(c.account.Records))
	}
	var rec assay.Record
	var err error
	if payload == nil {
		rec, err = journal.OpenErased([]byte(e.Header), leaf)
	} else {
		rec, err = journal.Open([]byte(e.Header), payload, e.Salt, leaf, c.value)
	}
	c.account.Records = append(c.account.Records, rec)
	return err
}

// checkPayloads checks that each payload which is not there was erased, by an act of the proof, or
// withheld.
func (c *proofChecker) checkPayloads() error {
	for _, e := range c.p.Entries {
		switch {
		case e.Payload != nil:
		case e.Sequence < c.last || c.gone[e.Sequence]:
			c.account.Erased = true
		case !c.p.Withheld:
			return broken("the payload of entry %d is missing, and no act erased it", e.Sequence)
		}
	}
	return nil
}

// runEnds are the details of the acts that the program itself appends.
type (
	begunDetail struct{ Question, Request, Principal string }
	endedDetail struct {
		State         assay.RunState
		Answer, Error string
	}
)

// checkRun checks that question, request and answer are those of the acts.
func (c *proofChecker) checkRun() error {
	var begun *begunDetail
	var ended endedDetail
	began := false
	for _, a := range c.account.Acts {
		switch a.Kind {
		case store.KindRunBegun:
			began = true
			if a.Detail == nil {
				continue
			}
			begun = new(begunDetail)
			if err := json.Unmarshal(a.Detail, begun); err != nil {
				return broken("entry %d: %v", a.Sequence, err)
			}
			c.account.Principal = &a.Actor
		case store.KindRunEnded, store.KindRunSuspended:
			answer := ended.Answer
			ended = endedDetail{}
			if a.Detail == nil {
				continue
			}
			if err := json.Unmarshal(a.Detail, &ended); err != nil {
				return broken("entry %d: %v", a.Sequence, err)
			}
			ended.Answer = cmp.Or(ended.Answer, answer)
		}
	}
	if !began || c.account.Acts[0].Kind != store.KindRunBegun {
		return broken("it does not begin with the act %s", store.KindRunBegun)
	}
	c.account.State, c.account.Error = ended.State, ended.Error
	if begun == nil || c.last > 0 {
		return c.checkEmpty()
	}
	return c.checkTexts(*begun, ended)
}

// checkEmpty checks the proof of a run that was erased or deleted, which has no texts.
func (c *proofChecker) checkEmpty() error {
	if c.p.Question != nil || c.p.Request != nil || c.p.Answer != nil {
		return broken("it has a question, a request or an answer of a run that was erased")
	}
	if c.last > 0 && c.p.Stored {
		c.account.State = assay.RunErased
	}
	return nil
}

// checkTexts compares the hashes of the question, the request and the answer.
func (c *proofChecker) checkTexts(begun begunDetail, ended endedDetail) error {
	if !c.p.Stored {
		return broken("it says that the run was deleted, and no act did that")
	}
	if c.p.Question == nil || sum(c.p.Question) != begun.Question {
		return broken("the question is not the one that the run began with")
	}
	c.account.Question = c.p.Question
	if c.p.Withheld {
		if c.p.Request != nil || c.p.Answer != nil {
			return broken("it has a request or an answer that it says is withheld")
		}
		return nil
	}
	if sum(c.p.Request) != begun.Request {
		return broken("the request is not the one that the run began with")
	}
	if ended.Answer == "" {
		if c.p.Answer != nil {
			return broken("it has an answer, and the log has none")
		}
		return nil
	}
	if c.p.Answer == nil || sum(c.p.Answer) != ended.Answer {
		return broken("the answer is not the one that the run ended with")
	}
	c.account.Answer = new(assay.Answer)
	if err := json.Unmarshal([]byte(*c.p.Answer), c.account.Answer); err != nil {
		return broken("the answer: %v", err)
	}
	return nil
}

// sum returns the SHA-256 of a text in hexadecimal; nil counts as empty.
func sum(text *string) string {
	if text == nil {
		text = new(string)
	}
	h := sha256.Sum256([]byte(*text))
	return hex.EncodeToString(h[:])
}

// checkEvidence finds each citation's quote in what a step returned.
func (c *proofChecker) checkEvidence() error {
	if c.account.Answer == nil {
		return nil
	}
	for _, cited := range c.account.Answer.Citations {
		found, err := findQuote(c.account.Records, cited)
		if err != nil {
			return err
		}
		if found == nil {
			return broken("citation [%d] quotes %q of %s, and no step returned that", cited.Number, cited.Quote, cited.URI)
		}
		c.account.Evidence = append(c.account.Evidence, *found)
	}
	return nil
}
