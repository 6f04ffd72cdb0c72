package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	marks "github.com/assay-rag/assay/internal/canary"
	"github.com/assay-rag/assay/store"
)

// A NewCanary describes a canary document to add.
type NewCanary struct {
	Collection string // empty: "default"
	Text       string // 12 to 2000 words that occur nowhere else; empty: one is generated
}

// A Canary is a canary document, without its text.
type Canary struct {
	Name       string    `json:"name"`
	Collection string    `json:"collection"`
	Document   string    `json:"document"` // ID
	URI        string    `json:"uri"`
	Words      int       `json:"words"`
	Added      time.Time `json:"added"`
}

// storedCanary is the registry's item of a canary. The System's holds the mark alone.
type storedCanary struct {
	Collection string     `json:"collection,omitempty"`
	Document   string     `json:"document,omitempty"`
	URI        string     `json:"uri,omitempty"`
	Mark       marks.Mark `json:"mark"`
}

// canaryKind is the kind of canaries in the registries.
const canaryKind = "canary"

// errCanary is wrapped by the error of a call that was not made because it held the text of a
// canary.
var errCanary = fmt.Errorf("it holds text that must not leave the store: %w", assay.ErrForbidden)

// AddCanary ingests a canary document and returns it with its text. From then on its text must not
// appear in an answer, in a request to a service, or in an answer of another tenant of the store:
// the request is not sent, the answer is withheld, and an alarm is raised.
//
// The text is not stored but in the document. The error is assay.ErrInvalid for a text with too few
// or too many words, and assay.ErrLocked while another process ingests.
func (e *Engine) AddCanary(ctx context.Context, principal assay.Principal, n NewCanary) (c Canary, text string, err error) {
	title, text := "Note", n.Text
	if text == "" {
		title, text = marks.Generate()
	}
	mark, err := marks.Of(text)
	if err != nil {
		return Canary{}, "", err
	}
	system, err := e.system(ctx)
	if err != nil {
		return Canary{}, "", err
	}
	c = Canary{Name: e.config.NewID(), Collection: cmp.Or(n.Collection, "default"), Words: mark.Words, Added: e.config.Now().UTC()}
	// The mark comes first, so that there is never a canary document without it.
	hashes, err := json.Marshal(storedCanary{Mark: mark})
	if err != nil {
		return Canary{}, "", err
	}
	act := store.Act{Kind: "canary.added", Subject: c.Name, Actor: principal, Detail: json.RawMessage(`{}`)}
	if err := system.Registry().Create(ctx, store.RegistryItem{Kind: canaryKind, Name: e.canaryName(c.Name), Value: hashes}, act); err != nil {
		return Canary{}, "", err
	}
	if err := e.ingestCanary(ctx, &c, title, text); err != nil {
		return Canary{}, "", errors.Join(err, system.Registry().Delete(context.WithoutCancel(ctx), canaryKind, e.canaryName(c.Name), store.Act{Kind: "canary.removed", Subject: c.Name, Actor: principal}))
	}
	value, err := json.Marshal(storedCanary{c.Collection, c.Document, c.URI, mark})
	if err != nil {
		return Canary{}, "", err
	}
	act.Detail, err = json.Marshal(map[string]any{"collection": c.Collection, "document": c.Document})
	if err != nil {
		return Canary{}, "", err
	}
	return c, text, e.tenant.Registry().Set(ctx, store.RegistryItem{Kind: canaryKind, Name: c.Name, Value: value}, act)
}

// canaryName is the name of a canary in the System's registry.
func (e *Engine) canaryName(name string) string { return e.config.Tenant + "/" + name }

// ingestCanary ingests the text of a canary like a document on standard input.
func (e *Engine) ingestCanary(ctx context.Context, c *Canary, title, text string) error {
	name := strings.ToLower(strings.ReplaceAll(title, " ", "-")) + "-" + c.Name[:min(4, len(c.Name))] + ".md"
	report, err := e.Ingest(ctx, IngestRequest{
		Paths: []string{"-"}, Collection: c.Collection, Stdin: strings.NewReader("# " + title + "\n\n" + text + "\n"), StdinName: name,
	})
	if err != nil {
		return err
	}
	if len(report.Skipped) > 0 {
		return fmt.Errorf("the canary is not ingested: %s: %w", report.Skipped[0].Detail, assay.ErrInvalid)
	}
	for d, err := range e.content.Documents(ctx, c.Collection) {
		if err != nil {
			return err
		}
		if strings.HasSuffix(d.URI, name) {
			c.Document, c.URI = d.ID, d.URI
		}
	}
	if c.Document == "" {
		return fmt.Errorf("the canary's document is not found: %w", assay.ErrDamaged)
	}
	return nil
}

// Canaries returns the tenant's canaries by name.
func (e *Engine) Canaries(ctx context.Context) ([]Canary, error) {
	items, err := e.tenant.Registry().Items(ctx, canaryKind)
	out := []Canary{}
	for _, item := range items {
		var s storedCanary
		if err := json.Unmarshal(item.Value, &s); err != nil {
			return nil, fmt.Errorf("canary %s: %w: %w", item.Name, assay.ErrDamaged, err)
		}
		out = append(out, Canary{item.Name, s.Collection, s.Document, s.URI, s.Mark.Words, item.Updated})
	}
	return out, err
}

// RemoveCanary removes a canary and its document. The error is assay.ErrNotFound if there is none of
// that name.
func (e *Engine) RemoveCanary(ctx context.Context, principal assay.Principal, name, reason string) error {
	all, err := e.Canaries(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(c Canary) bool { return c.Name == name })
	if i < 0 {
		return fmt.Errorf("canary %s: %w", name, assay.ErrNotFound)
	}
	system, err := e.system(ctx)
	if err != nil {
		return err
	}
	err = e.write(ctx, writerPatience, func(w store.Writer) error {
		if _, err := w.Delete(ctx, all[i].Document); err != nil && !errors.Is(err, assay.ErrNotFound) {
			return err
		}
		return e.flush(ctx)
	})
	if err != nil {
		return err
	}
	act := store.Act{Kind: "canary.removed", Subject: name, Actor: principal, Reason: reason}
	if err := e.tenant.Registry().Delete(ctx, canaryKind, name, act); err != nil {
		return err
	}
	err = system.Registry().Delete(ctx, canaryKind, e.canaryName(name), act) // last: until then its text is looked for
	if errors.Is(err, assay.ErrNotFound) {
		return nil
	}
	return err
}

// systemHandle is the store's System, opened at its first use.
type systemHandle struct {
	mu     sync.Mutex
	store  store.Store
	opened store.System
}

// system returns the store's System.
func (e *Engine) system(ctx context.Context) (store.System, error) {
	h := &e.systemStore
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.opened != nil {
		return h.opened, nil
	}
	var err error
	h.opened, err = h.store.System(ctx)
	return h.opened, err
}

func (h *systemHandle) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.opened == nil {
		return nil
	}
	return h.opened.Close()
}

// canaryCache holds the canaries of all tenants of the store as of a version of the registry.
type canaryCache struct {
	mu      sync.Mutex
	version int64
	set     *marks.Set // nil: not read yet
}

// canaries returns the canaries of all tenants of the store, as hashes; nil: the store keeps nothing
// about itself, and cannot.
func (e *Engine) canaries(ctx context.Context) (*marks.Set, error) {
	system, err := e.systemOrNone(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the canaries: %w", err)
	}
	if system == nil {
		return nil, nil
	}
	version, err := system.Registry().Version(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the canaries: %w", err)
	}
	c := &e.canaryMarks
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.set != nil && c.version == version {
		return c.set, nil
	}
	items, err := system.Registry().Items(ctx, canaryKind)
	if err != nil {
		return nil, fmt.Errorf("read the canaries: %w", err)
	}
	byName := map[string]marks.Mark{}
	for _, item := range items {
		var s storedCanary
		if err := json.Unmarshal(item.Value, &s); err != nil {
			return nil, fmt.Errorf("canary %s: %w: %w", item.Name, assay.ErrDamaged, err)
		}
		byName[item.Name] = s.Mark
	}
	set, err := marks.NewSet(byName)
	if err != nil {
		return nil, err
	}
	c.version, c.set = version, set
	return set, nil
}

// A canaryWatch looks for canaries in one run. Contexts carry it.
type canaryWatch struct {
	e    *Engine
	set  *marks.Set
	run  string // empty: outside of a run
	stop context.CancelCauseFunc

	mu    sync.Mutex
	found map[string]bool // canaries and places for which the alarm was raised
	err   error           // of raising it
}

type watchKey struct{}

// watched returns a context that carries a watch for a run. The run is cancelled when a canary is
// found.
func (e *Engine) watched(ctx context.Context, run string) (context.Context, *canaryWatch, error) {
	set, err := e.canaries(ctx)
	if err != nil {
		return ctx, nil, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	w := &canaryWatch{e: e, set: set, run: run, stop: stop, found: map[string]bool{}}
	return context.WithValue(ctx, watchKey{}, w), w, nil
}

// end releases the context of the watch.
func (w *canaryWatch) end() { w.stop(nil) }

// watch returns the watch of a context, or one outside of a run.
func (e *Engine) watch(ctx context.Context) (*canaryWatch, error) {
	if w, ok := ctx.Value(watchKey{}).(*canaryWatch); ok {
		return w, nil
	}
	set, err := e.canaries(ctx)
	return &canaryWatch{e: e, set: set, stop: func(error) {}, found: map[string]bool{}}, err
}

// tripped reports whether a canary was found.
func (w *canaryWatch) tripped() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.found) > 0
}

// screen looks for canaries in texts that are about to leave for a place. If it finds one, it raises
// the alarm and stops the run; the error wraps errCanary.
func (w *canaryWatch) screen(ctx context.Context, place string, texts ...string) error {
	found := w.set.Find(texts...)
	if len(found) == 0 {
		return nil
	}
	return w.raise(ctx, place, found)
}

// raise raises the alarm for canaries that were found.
func (w *canaryWatch) raise(ctx context.Context, place string, found []string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range found {
		if w.found[name+"\x00"+place] {
			continue
		}
		w.found[name+"\x00"+place] = true
		w.err = errors.Join(w.err, w.e.canaryAlarm(ctx, w.run, name, place))
	}
	w.stop(errCanary)
	return errors.Join(errCanary, w.err)
}

// canaryAlarm raises the alarm for one canary: in this tenant, and for a canary of another tenant in
// the System's log and in that tenant's as well. The System's log names both tenants; those of the
// tenants do not name the other one.
func (e *Engine) canaryAlarm(ctx context.Context, run, name, place string) error {
	owner, id, _ := strings.Cut(name, "/")
	detail, err := json.Marshal(map[string]any{"place": place, "foreign": owner != e.config.Tenant})
	if err != nil {
		return err
	}
	err = e.alarm(ctx, Alarm{Kind: AlarmCanary, Subject: id, Run: run, Detail: detail})
	if owner == e.config.Tenant {
		return err
	}
	system, openErr := e.system(ctx)
	if openErr != nil {
		return errors.Join(err, openErr)
	}
	detail, marshalErr := json.Marshal(map[string]any{"place": place, "owner": owner, "found_in": e.config.Tenant, "run": run})
	if marshalErr != nil {
		return errors.Join(err, marshalErr)
	}
	ctx = context.WithoutCancel(ctx)
	err = errors.Join(err, ignoreReadOnly(system.Audit().Append(ctx, store.Act{Kind: "canary.alarm", Subject: id, Detail: detail})))
	return errors.Join(err, e.tellOwner(ctx, owner, id, place))
}

// tellOwner appends the alarm for a canary that was found in this tenant to the log of its owner.
func (e *Engine) tellOwner(ctx context.Context, owner, id, place string) (err error) {
	tenant, err := e.systemStore.store.InspectTenant(ctx, owner)
	if errors.Is(err, assay.ErrNotFound) {
		return nil // it was deleted
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tenant.Close()) }()
	detail, err := alarmDetail(Alarm{Detail: json.RawMessage(fmt.Sprintf(`{"place":%q,"elsewhere":true}`, place))})
	if err != nil {
		return err
	}
	return ignoreReadOnly(tenant.Audit().Append(ctx, store.Act{Kind: "canary.alarm", Subject: id, Detail: detail}))
}

// foreign returns the canaries in texts that are not the tenant's own.
func (w *canaryWatch) foreign(texts []string) []string {
	return slices.DeleteFunc(w.set.Find(texts...), func(name string) bool { return strings.HasPrefix(name, w.e.config.Tenant+"/") })
}

// screenAnswer looks for canaries in an answer, except in the question itself, and returns the
// answer to show: the same, or one without text.
func (w *canaryWatch) screenAnswer(ctx context.Context, a assay.Answer) (assay.Answer, error) {
	if !w.tripped() && !w.set.Empty() {
		texts, err := answerTexts(a)
		if err != nil {
			return assay.Answer{}, err
		}
		if err := w.screen(ctx, "answer", texts...); err != nil && !errors.Is(err, errCanary) {
			return assay.Answer{}, err
		}
	}
	if !w.tripped() {
		return a, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return withheldAnswer(a), w.err
}

// withheldAnswer returns the answer that is shown instead of one with a canary. It has nothing of it but
// the question and the figures.
func withheldAnswer(a assay.Answer) assay.Answer {
	return withLists(assay.Answer{
		Run: a.Run, Question: a.Question, Strategy: a.Strategy, Status: assay.Rejected, Reason: assay.ReasonWithheld,
		Justification: "The answer was withheld because it rests on text that must not be shown. The administrators were told.",
		Roles:         a.Roles, Index: a.Index, Iterations: a.Iterations, Usage: a.Usage, ElapsedMS: a.ElapsedMS,
	})
}

// answerTexts returns all strings of an answer but its question.
func answerTexts(a assay.Answer) ([]string, error) {
	a.Question, a.Understood = "", ""
	return textsOf(a)
}

// textsOf returns all strings in the JSON form of a value, and the names of members.
func textsOf(value any) ([]string, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, err
	}
	var texts []string
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			texts = append(texts, v)
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for name, x := range v {
				texts = append(texts, name)
				walk(x)
			}
		}
	}
	walk(v)
	return texts, nil
}

// holdsCanary reports whether a value holds the text of a canary, or cannot be examined.
func holdsCanary(set *marks.Set, value any) bool {
	if set.Empty() {
		return false
	}
	texts, err := textsOf(value)
	return err != nil || len(set.Find(texts...)) > 0
}

// passing returns an emit that passes no text of a canary: events that hold one lose their content, as
// do all events after an alarm. Drafts are kept back until the words after them are known.
func (w *canaryWatch) passing(emit func(Event)) func(Event) {
	if emit == nil || w.set.Empty() {
		return emit
	}
	p := &canaryPass{watch: w, emit: emit, drafts: map[string]*marks.Stream{}}
	return p.event
}

// A canaryPass screens the events of a run.
type canaryPass struct {
	watch *canaryWatch
	emit  func(Event)

	mu     sync.Mutex
	drafts map[string]*marks.Stream // by path
}

func (p *canaryPass) event(ev Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ev.Kind == Draft {
		if p.drafts[ev.Path] == nil {
			p.drafts[ev.Path] = p.watch.set.Stream()
		}
		ready, found := p.drafts[ev.Path].Next(ev.Draft)
		p.draft(ev, ready, found)
		return
	}
	if ev.Kind == StepEnded && ev.Step != nil && p.drafts[ev.Step.Path] != nil {
		ready, found := p.drafts[ev.Step.Path].Rest()
		p.draft(Event{Kind: Draft, Run: ev.Run, Path: ev.Step.Path}, ready, found)
		delete(p.drafts, ev.Step.Path)
	}
	if p.watch.tripped() || holdsCanary(p.watch.set, ev) {
		ev = withheldEvent(ev, withheldCanaryText)
	}
	p.emit(ev)
}

// draft passes the part of a draft that is ready.
func (p *canaryPass) draft(ev Event, ready string, found []string) {
	if len(found) == 0 && ready != "" && !p.watch.tripped() {
		ev.Draft = ready
		p.emit(ev)
	}
}

// screenHits raises the alarm if a search found a canary. The results are not withheld, since the
// person may see the document, and withholding it would show which one it is.
func (e *Engine) screenHits(ctx context.Context, hits []assay.Hit) error {
	w, err := e.watch(ctx)
	if err != nil || w.set.Empty() {
		return err
	}
	var texts []string
	for _, h := range hits {
		texts = append(texts, h.Text)
	}
	if err := w.screen(ctx, "search", texts...); err != nil && !errors.Is(err, errCanary) {
		return err
	}
	return w.err
}
