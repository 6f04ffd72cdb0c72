package recorded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"

	"github.com/gofrs/flock"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
)

// A Recorder calls models and records their replies. A request that is already recorded is not made
// again, so an interrupted recording can be continued, and equal requests get the same reply.
type Recorder struct {
	path string
	lock *flock.Flock
	head head
	by   map[string]llm.Model // by role

	mu     sync.Mutex
	file   *os.File
	known  map[string]completion
	failed error // of the file; after it nothing is recorded
	asked  int
}

// Record opens the recording at path. It creates a new one, or continues one that was recorded from
// the same models in the same roles. A torn last line is removed. A recording of other models, a
// compressed one, or one that another process is writing is assay.ErrInvalid. The file path.lock
// remains.
func Record(path string, roles map[string]llm.Model) (_ *Recorder, err error) {
	r := &Recorder{path: path, lock: flock.New(path + ".lock"), by: roles, known: map[string]completion{}, head: headOf(roles)}
	locked, err := r.lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if !locked {
		return nil, fmt.Errorf("recording %s: another process writes it: %w", path, assay.ErrInvalid)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("recording %s: %w", path, err), r.Close())
		}
	}()
	r.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := r.file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 {
		return r, r.append(r.head)
	}
	return r, r.goOn()
}

// headOf returns the head of a recording of these models.
func headOf(roles map[string]llm.Model) head {
	h := head{Format: format, Version: version, Roles: map[string]string{}, Models: map[string]llm.Facts{}}
	for role, model := range roles {
		h.Roles[role] = model.Model()
		h.Models[model.Model()] = llm.FactsOf(model)
	}
	return h
}

// goOn reads the existing recording and moves to its end.
func (r *Recorder) goOn() error {
	before, err := Read(r.file)
	if err != nil {
		return err
	}
	if !maps.Equal(before.head.Roles, r.head.Roles) || !maps.Equal(before.head.Models, r.head.Models) {
		return fmt.Errorf("it is of other models, or of other roles: %w", assay.ErrInvalid)
	}
	start := make([]byte, 1)
	if _, err := r.file.ReadAt(start, 0); err != nil || start[0] == 0x1f {
		return errors.Join(err, fmt.Errorf("it is compressed, and cannot be written to: %w", assay.ErrInvalid))
	}
	r.known = before.completions
	if err := r.file.Truncate(before.size); err != nil {
		return err
	}
	if _, err := r.file.Seek(before.size, 0); err != nil || before.size == 0 {
		return err
	}
	if _, err := r.file.ReadAt(start, before.size-1); err != nil || start[0] == '\n' {
		return err
	}
	_, err = r.file.Write([]byte("\n")) // the last line lacks only its newline
	return err
}

// append writes one line in a single call.
func (r *Recorder) append(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = r.file.Write(append(line, '\n'))
	return err
}

// Roles returns the models by role, wrapped so that their replies are recorded.
func (r *Recorder) Roles() map[string]llm.Model {
	roles := map[string]llm.Model{}
	for role, model := range r.by {
		roles[role] = taped{model, r}
	}
	return roles
}

// Asked returns the number of requests made to the models themselves.
func (r *Recorder) Asked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// Len returns the number of recorded requests.
func (r *Recorder) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.known)
}

// Close ends the recording. Its error is that of the file, including that of an earlier write,
// after which nothing was recorded.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	errs := []error{r.failed}
	if r.file != nil {
		errs = append(errs, r.file.Sync(), r.file.Close())
		r.file = nil
	}
	return errors.Join(append(errs, r.lock.Close())...)
}

// keep records a completion and returns the valid one, which is an earlier completion of the same
// request if there is one.
func (r *Recorder) keep(c completion) completion {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before, ok := r.known[c.Key]; ok {
		return before
	}
	r.known[c.Key] = c
	if r.failed == nil && r.file != nil {
		if err := r.append(c); err != nil {
			r.failed = fmt.Errorf("write the recording: %w", err)
		}
	}
	return c
}

// A taped model is one whose replies are recorded.
type taped struct {
	model llm.Model
	to    *Recorder
}

// Model implements llm.Model.
func (t taped) Model() string { return t.model.Model() }

// Facts implements llm.Described.
func (t taped) Facts() llm.Facts { return llm.FactsOf(t.model) }

// Generate implements llm.Model.
func (t taped) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Response, error) {
	key, err := KeyOf(t.model.Model(), req)
	if err != nil {
		return llm.Response{}, err
	}
	t.to.mu.Lock()
	c, known := t.to.known[key]
	if !known {
		t.to.asked++
	}
	t.to.mu.Unlock()
	if known {
		return spoken(c, stream)
	}
	reply, err := t.model.Generate(ctx, req, stream)
	c = completion{Key: key, Model: t.model.Model(), Response: &reply}
	if err != nil {
		failed, ok := errors.AsType[*llm.Error](err)
		if !ok || failed == nil || failed.Kind.Temporary() || ctx.Err() != nil {
			return reply, err
		}
		c.Response, c.Error = nil, &failure{Kind: failed.Kind, Status: failed.Status, Message: failed.Message, Usage: failed.Usage}
	}
	if counts := t.to.keep(c); err == nil {
		return counts.result()
	}
	return reply, err
}
