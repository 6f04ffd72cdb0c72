// Package move copies tenants from one store to another, of whatever kind they are: documents with all
// kept versions, vectors, runs with their journals, ledgers, settings and keys, row by row, and the
// audit log byte for byte. A proof or a checkpoint made before verifies afterwards.
//
// The copy is compared with the original and checked by its audit log before anyone can see it. A
// process that is killed leaves the target as it was; the next move removes what it left.
package move

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/audit"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/internal/relational"
)

// Options say what Move moves.
type Options struct {
	// Tenant is moved with its API keys, into a store that has no tenant of the name. Empty: all
	// tenants, and everything that the store keeps about itself, into a new store.
	Tenant string

	Actor  assay.Principal // of the acts in the target's log
	Reason string

	// Searches is how many searches are compared for each tenant; 0: none.
	Searches int

	// Progress, which may be nil, is called with what is being done to a tenant and the bytes copied
	// so far, of all tenants. The tenant is empty for what the store keeps about itself.
	Progress func(tenant, doing string, bytes int64)
}

// A Report says what was moved.
type Report struct {
	Tenants []Tenant `json:"tenants"`
	System  *Log     `json:"system,omitempty"` // log of the store itself; nil: it was not moved
	Keys    int      `json:"keys"`             // API keys of a single tenant
	Bytes   int64    `json:"bytes"`            // copied
}

// A Tenant is a tenant that was moved. Both stores had the same.
type Tenant struct {
	Name     string            `json:"name"`
	State    store.TenantState `json:"state"`
	Log      Log               `json:"log"`
	Tables   []Table           `json:"tables"`
	Settings int               `json:"settings"`
	Searches int               `json:"searches"` // that were compared
}

// A Log is an audit log that was verified in the target.
type Log struct {
	Origin      string `json:"origin"`
	Size        int64  `json:"size"`
	Root        string `json:"root"` // hexadecimal
	Checkpoints int    `json:"checkpoints"`
}

// A Table is the state of a table. Its hash is the sum of the SHA-256 of all rows modulo 2^256.
type Table = relational.TableState

// Move copies tenants and makes them visible in the target once all of them were verified. Nothing can
// change a tenant of the source until Move returns, and Move does not change it.
//
// The error is assay.ErrInvalid if a store cannot be moved or the target has the tenant,
// assay.ErrNotFound if the source has it not, assay.ErrLocked and assay.ErrLeased if it is in use, and
// assay.ErrDamaged if the copy differs from the original or from its audit log. The target is then as
// it was.
func Move(ctx context.Context, from, to store.Store, o Options) (Report, error) {
	source, ok := from.(relational.Movable)
	if !ok {
		return Report{}, fmt.Errorf("tenants cannot be moved from a store of this kind: %w", assay.ErrInvalid)
	}
	target, ok := to.(relational.Movable)
	if !ok {
		return Report{}, fmt.Errorf("tenants cannot be moved to a store of this kind: %w", assay.ErrInvalid)
	}
	if o.Progress == nil {
		o.Progress = func(string, string, int64) {}
	}
	m := &move{o: o, from: source, to: target, source: source.Mover(), target: target.Mover()}
	names, err := from.Tenants(ctx)
	if err != nil {
		return Report{}, err
	}
	if o.Tenant != "" {
		if !slices.Contains(names, o.Tenant) { // opening the default tenant would create it
			return Report{}, fmt.Errorf("there is no tenant %s: %w", o.Tenant, assay.ErrNotFound)
		}
		names = []string{o.Tenant}
	}
	if err := m.next(ctx, names); err != nil {
		return Report{}, err
	}
	m.report.Bytes = m.bytes
	return m.report, nil
}

// A move is a move in progress.
type move struct {
	o              Options
	from, to       store.Store
	source, target relational.Mover

	report Report
	bytes  int64
	staged []*relational.Staged
}

// next copies the first tenant, and calls itself with the others while that is frozen.
func (m *move) next(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return m.finish(ctx)
	}
	return m.source.Give(ctx, names[0], func(g relational.Given) (err error) {
		if err := checkIdentity(g.Info.Identity); err != nil {
			return err
		}
		staged, err := m.target.Stage(ctx, g.Info)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, staged.Discard()) }()
		m.staged = append(m.staged, staged)
		t, err := m.tenant(ctx, g, staged)
		if err != nil {
			return err
		}
		m.report.Tenants = append(m.report.Tenants, t)
		return m.next(ctx, names[1:])
	})
}

// checkIdentity returns assay.ErrDamaged if a tenant's word is not one that rand.Text makes, because it
// becomes part of the names of folders and schemas of the target.
func checkIdentity(word string) error {
	const least = 26
	if len(word) < least || strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return fmt.Errorf("the word %q of the tenant is not one of this program: %w", word, assay.ErrDamaged)
	}
	return nil
}

// tenant copies and verifies one tenant.
func (m *move) tenant(ctx context.Context, g relational.Given, staged *relational.Staged) (Tenant, error) {
	t := Tenant{Name: g.Info.Name, State: g.Info.State}
	for _, part := range []struct {
		name   string
		tables []relational.Table
		from   relational.GivenTables
		to     relational.StagedTables
	}{
		{"runs", relational.RunsTables(), g.Runs, staged.Runs},
		{"content", relational.ContentTables(), g.Content, staged.Content},
	} {
		states, err := m.tables(ctx, t.Name, part.name, part.tables, part.from, part.to)
		if err != nil {
			return t, err
		}
		t.Tables = append(t.Tables, states...)
	}
	opened, err := staged.OpenTenant(ctx)
	if err != nil {
		return t, err
	}
	if err := copySettings(ctx, g.Settings, opened); err != nil {
		return t, err
	}
	t.Settings = len(g.Settings)
	m.o.Progress(t.Name, "checking the audit log", m.bytes)
	if t.Log, err = verifyLog(ctx, opened.Audit(), opened.Registry()); err != nil {
		return t, err
	}
	if m.o.Searches > 0 {
		m.o.Progress(t.Name, "comparing searches", m.bytes)
		t.Searches, err = compareSearches(ctx, g, opened, m.o.Searches)
	}
	return t, err
}

// tables copies tables and compares the copies with the originals.
func (m *move) tables(ctx context.Context, tenant, database string, tables []relational.Table, from relational.GivenTables, to relational.StagedTables) (states []Table, err error) {
	u, err := to.Database.Updater(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, u.Close()) }()
	for _, t := range tables {
		doing := "copying " + database + "." + t.Name
		m.o.Progress(tenant, doing, m.bytes)
		state, err := t.Copy(ctx, from, u, to.Numbers, func(n int64) {
			m.bytes += n
			m.o.Progress(tenant, doing, m.bytes)
		})
		if err != nil {
			return nil, err
		}
		m.o.Progress(tenant, "comparing "+database+"."+t.Name, m.bytes)
		if err := compareTable(ctx, t, state, to); err != nil {
			return nil, err
		}
		state.Table = database + "." + t.Name
		states = append(states, state)
	}
	return states, nil
}

// compareTable compares a copied table with the state of the original.
func compareTable(ctx context.Context, t relational.Table, want Table, to relational.StagedTables) error {
	var got Table
	err := to.Database.View(ctx, func(r relational.Reader) (err error) {
		got, err = t.State(ctx, r, to.Numbers.Newest)
		return err
	})
	if err == nil && got != want {
		err = fmt.Errorf("table %s: the copy has %d rows (hash %.8s, newest %d), the original %d (hash %.8s, newest %d): %w",
			t.Name, got.Rows, got.Hash, got.Newest, want.Rows, want.Hash, want.Newest, assay.ErrDamaged)
	}
	return err
}

func copySettings(ctx context.Context, settings map[string][]byte, to store.Tenant) error {
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if err := to.SetSetting(ctx, name, settings[name]); err != nil {
			return err
		}
		got, err := to.Setting(ctx, name)
		if err == nil && string(got) != string(settings[name]) {
			err = fmt.Errorf("the setting %s was not stored: %w", name, assay.ErrDamaged)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// verifyLog verifies a log with the checkpoints beside it, and what is stored with the log.
func verifyLog(ctx context.Context, a store.Audit, r store.Registry) (Log, error) {
	notes, err := audit.Published(ctx, r)
	if err != nil {
		return Log{}, err
	}
	report, err := audit.VerifyStore(ctx, a, notes, nil)
	if err != nil {
		return Log{}, err
	}
	const most = 3
	if n := len(report.Findings); n > 0 {
		errs := []error{fmt.Errorf("the data differs from its audit log, and is not moved: %w", assay.ErrDamaged)}
		for _, f := range report.Findings[:min(n, most)] {
			errs = append(errs, errors.New(f.String()))
		}
		if n > most {
			errs = append(errs, fmt.Errorf("and %d more", n-most))
		}
		return Log{}, errors.Join(errs...)
	}
	return Log{Origin: report.Origin, Size: report.Size, Root: hex.EncodeToString(report.Root[:]), Checkpoints: len(notes)}, nil
}

// finish makes what was copied visible.
func (m *move) finish(ctx context.Context) error {
	if m.o.Tenant == "" {
		return m.system(ctx)
	}
	b, err := m.belongings(ctx)
	if err != nil {
		return err
	}
	m.report.Keys = len(slices.DeleteFunc(slices.Clone(b.Items), func(i store.RegistryItem) bool { return i.Kind != store.KeyKind }))
	m.o.Progress(m.o.Tenant, "finishing", m.bytes)
	return m.target.Adopt(ctx, m.staged, nil, b)
}

// system copies what the store keeps about itself, and makes it visible with the tenants.
func (m *move) system(ctx context.Context) error {
	return m.source.GiveSystem(ctx, func(g relational.GivenTables) (err error) {
		names, err := m.from.Tenants(ctx)
		if err != nil {
			return err
		}
		if !slices.EqualFunc(m.report.Tenants, names, func(t Tenant, name string) bool { return t.Name == name }) {
			return fmt.Errorf("a tenant was created or deleted meanwhile; try again: %w", assay.ErrLocked)
		}
		staged, err := m.target.StageSystem(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, staged.Discard()) }()
		if _, err := m.tables(ctx, "", "system", relational.RunsTables(), g, staged.Runs); err != nil {
			return err
		}
		sys, err := staged.OpenSystem(ctx)
		if err != nil {
			return err
		}
		log, err := verifyLog(ctx, sys.Audit(), sys.Registry())
		if err != nil {
			return err
		}
		m.report.System = &log
		m.o.Progress("", "finishing", m.bytes)
		return m.target.Adopt(ctx, m.staged, staged, relational.Belongings{})
	})
}

// belongings returns what the source keeps about the tenant outside of it: its API keys, with what
// ended them and when they were last used.
func (m *move) belongings(ctx context.Context) (b relational.Belongings, err error) {
	t := m.report.Tenants[0]
	b = relational.Belongings{
		Act:  store.Act{Actor: m.o.Actor, Reason: m.o.Reason},
		Log:  map[string]any{t.Name: map[string]any{"name": t.Name, "log_size": t.Log.Size, "log_root": t.Log.Root}},
		Uses: map[string]time.Time{},
	}
	known, err := namesOf(ctx, m.to, store.RevocationKind)
	if err != nil {
		return b, err
	}
	sys, err := m.from.System(ctx)
	if errors.Is(err, assay.ErrNotFound) {
		return b, nil
	}
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, sys.Close()) }()
	keys, err := sys.Registry().Items(ctx, store.KeyKind)
	if err != nil {
		return b, err
	}
	used, err := sys.Uses().Last(ctx)
	if err != nil {
		return b, err
	}
	for _, key := range keys {
		var of struct{ Tenant string }
		if err := json.Unmarshal(key.Value, &of); err != nil {
			return b, fmt.Errorf("key %q: %w: %w", key.Name, assay.ErrDamaged, err)
		}
		if of.Tenant != t.Name {
			continue
		}
		b.Items = append(b.Items, key)
		if at, ok := used[key.Name]; ok {
			b.Uses[key.Name] = at
		}
		revocation, err := sys.Registry().Item(ctx, store.RevocationKind, key.Name)
		if err == nil && !known[key.Name] {
			b.Items = append(b.Items, revocation)
		}
		if err != nil && !errors.Is(err, assay.ErrNotFound) {
			return b, err
		}
	}
	return b, nil
}

// namesOf returns the names of the items of a kind in a store's registry.
func namesOf(ctx context.Context, s store.Store, kind string) (names map[string]bool, err error) {
	names = map[string]bool{}
	sys, err := s.System(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sys.Close()) }()
	items, err := sys.Registry().Items(ctx, kind)
	for _, item := range items {
		names[item.Name] = true
	}
	return names, err
}
