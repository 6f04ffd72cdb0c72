package audit_test

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"
	_ "modernc.org/sqlite"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/audit"
	"github.com/assay-rag/assay/internal/journal"
	"github.com/assay-rag/assay/internal/ramdisk"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
	"github.com/assay-rag/assay/store/storetest"
)

func sha256Of(text string) [32]byte { return sha256.Sum256([]byte(text)) }

func TestMain(m *testing.M) {
	ramdisk.Use()
	os.Exit(m.Run())
}

// coveredColumns are the columns that verify covers, by database and table. It leaves out keys of rows,
// which are covered by the rows that refer to them, derived data, and the state of leases and syncs.
// docs/audit.md lists all of these.
var coveredColumns = map[string]map[string][]string{
	"runs.db": {
		"store":       {"tenant", "sequence", "registry", "moved"},
		"log":         {"sequence", "header", "leaf"},
		"tree":        {"position", "hash"},
		"acts":        {"sequence", "kind", "subject", "salt", "payload"},
		"registry":    {"kind", "name", "value", "updated"},
		"runs":        {"number", "id", "principal", "question", "request", "created", "answer", "error"},
		"progress":    {"run", "state", "steps"},
		"records":     {"sequence", "run", "ordinal", "path", "salt", "payload"},
		"long_values": {"number", "hash", "data"},
		"value_uses":  {"value", "run"},
		"pins":        {"document", "version", "run"},
		"offers":      {"run", "key"},
		"reviews":     {"run", "open", "version", "created", "state", "draft"},
	},
	"content.db": {
		"store":        {"tenant"},
		"collections":  {"name", "require_acl", "chunker", "chunk_size", "chunk_overlap"},
		"documents":    {"number", "id", "collection", "uri", "container", "version", "sequence", "acl"},
		"versions":     {"number", "document", "version", "title", "metadata", "acl", "source_size", "source_modified", "source_hash", "pages", "replaced"},
		"pieces":       {"version", "start", "line", "page", "text", "anchors", "hash"},
		"structures":   {"version", "data", "hash"},
		"chunks":       {"version", "ordinal", "id", "kind", "start", "end", "headings", "parent", "tokens", "origin", "hash"},
		"sources":      {"collection", "uri", "path", "size", "modified", "hash", "acl", "same_as"},
		"failures":     {"source", "uri", "reason", "detail", "failed"},
		"sync_sources": {"name", "kind", "target", "collection", "options", "credentials"},
	},
}

// An auditedStore is a store with a checkpoint that is kept elsewhere.
type auditedStore struct {
	files map[string][]byte // of the tenant's folder
	older map[string][]byte // before the last changes, with an earlier checkpoint
	note  []byte
	key   audit.Key
	rand  *rand.Rand
	dir   string
}

func buildAudited(t testing.TB, seed uint64) *auditedStore {
	t.Helper()
	s := &auditedStore{key: newKey(t), rand: rand.New(rand.NewPCG(seed, 18)), dir: t.TempDir()}
	s.change(t, func(tenant store.Tenant) { populate(t, tenant, 1) })
	s.older = s.files
	s.change(t, func(tenant store.Tenant) {
		checkpoint(t, authority(tenant, s.key))
		populate(t, tenant, 2)
		s.note = checkpoint(t, authority(tenant, s.key)).Note
	})
	return s
}

// change changes the stored tenant by honest calls.
func (s *auditedStore) change(t testing.TB, fn func(store.Tenant)) {
	t.Helper()
	st, err := sqlite.Open(t.Context(), s.dir)
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := st.Tenant(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	fn(tenant)
	if err := errors.Join(tenant.Close(), st.Close()); err != nil {
		t.Fatal(err)
	}
	s.files = map[string][]byte{}
	for _, name := range []string{"content.db", "runs.db"} {
		data, err := os.ReadFile(s.path(name))
		if err != nil {
			t.Fatal(err)
		}
		s.files[name] = data
	}
}

func (s *auditedStore) path(name string) string {
	return filepath.Join(s.dir, "tenants", "default", name)
}

// restore writes files of the tenant.
func (s *auditedStore) restore(t testing.TB, files map[string][]byte) {
	t.Helper()
	for name, data := range files {
		for _, side := range []string{"-wal", "-shm", "-journal"} {
			if err := os.Remove(s.path(name) + side); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(s.path(name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// found verifies the store with the checkpoint that is kept elsewhere. A store that cannot be opened
// or read is found too.
func (s *auditedStore) found(t testing.TB) []string {
	t.Helper()
	st, err := sqlite.Open(t.Context(), s.dir)
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := st.Tenant(t.Context(), "default")
	if err != nil {
		return []string{err.Error()}
	}
	defer tenant.Close()
	c, err := audit.ParseCheckpoint(string(s.note[:bytes.Index(s.note, []byte("\n\n"))+1]))
	if err != nil {
		t.Fatal(err)
	}
	r, err := audit.VerifyStore(t.Context(), tenant.Audit(), [][]byte{s.note}, []string{s.key.Public(c.Origin)})
	if err != nil {
		return []string{err.Error()}
	}
	var all []string
	for _, f := range r.Findings {
		all = append(all, f.String())
	}
	if len(r.Checkpoints) == 0 && len(all) == 0 {
		all = []string{"no checkpoint"}
	}
	return all
}

// populate makes rows of every kind.
func populate(t testing.TB, tenant store.Tenant, round int) {
	t.Helper()
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	name := func(what string) string { return what + strconv.Itoa(round) }
	w, err := tenant.Writer(ctx)
	check(err)
	check(w.SetCollection(ctx, store.Collection{Name: name("secret"), RequireACL: true, ChunkSize: 100 + round}))
	check(w.SetSyncSource(ctx, store.SyncSource{Name: name("drive"), Kind: "s3", Target: "bucket", Collection: "docs", Credentials: map[string]string{"key": "env:KEY"}}))
	restricted := storetest.Entry(name("secret"), "/plan", "The plan of the year.\nIt is secret.\n")
	restricted.Document.ACL = assay.ACL{Restricted: true, Allow: []string{"group:board"}}
	rules := storetest.Entry("docs", "/rules", fmt.Sprintf("Rule %d: travel is approved by the head.\nRule two.\n", round))
	rules.Document.Structure = assay.Structure{Blocks: []assay.Block{{Kind: "paragraph", End: 10}}}
	failed := store.Failure{URI: name("/broken"), Reason: "damaged", Detail: "no text", Time: time.Unix(1e9, 0)}
	_, err = w.Apply(ctx, store.Batch{
		Put: []store.Entry{restricted, rules, storetest.Entry("docs", name("/page"), name("Words of page ")), storetest.Entry("docs", name("/gone"), "Soon deleted.")},
		Sources: []store.Source{
			{Collection: "docs", URI: "/rules", Path: []string{"rules"}, Info: assay.SourceInfo{SizeBytes: 9, Hash: name("h")}},
			{Collection: "docs", URI: name("/broken"), Info: assay.SourceInfo{SizeBytes: 3, Hash: "x"}, Failures: []store.Failure{failed}},
		},
	})
	check(err)
	_, err = w.Delete(ctx, assay.DocumentID("docs", name("/gone")))
	check(err)
	check(w.Close())
	act := func(kind string) store.Act {
		return store.Act{Kind: kind, Subject: name("s"), Actor: assay.Local(), Reason: "because"}
	}
	r := tenant.Registry()
	check(r.Set(ctx, store.RegistryItem{Kind: "policy", Name: "share", Value: json.RawMessage(fmt.Sprintf(`{"share":%d}`, round))}, act("policy.set")))
	check(r.Set(ctx, store.RegistryItem{Kind: "limit", Name: name("l"), Value: json.RawMessage(`{"day":5}`)}, act("limit.set")))
	check(r.Delete(ctx, "limit", name("l"), act("limit.deleted")))
	check(tenant.Audit().Append(ctx, act("ingest.done"), act("erasable.done")))
	size, err := tenant.Audit().Size(ctx)
	check(err)
	check(tenant.Audit().Erase(ctx, size, store.Act{Reason: "asked for"}))
	for i := range 3 {
		runs(t, tenant, name("run")+strconv.Itoa(i), rules.Document, i)
	}
	check(tenant.Runs().Delete(ctx, name("run")+"2", store.Act{Kind: store.KindRunDeleted, Reason: "asked for"}))
	for kind, value := range map[string]string{
		"hold": `{"run":"elsewhere","reason":"a case"}`, "retention": `{"days":900}`, "canary": `{"words":["x"]}`, "stop": `{"by":"local"}`,
	} {
		check(r.Set(ctx, store.RegistryItem{Kind: kind, Name: name(kind), Value: json.RawMessage(value)}, act(kind+".set")))
	}
	for i := range 3 {
		reviewed(t, tenant, name("review")+strconv.Itoa(i), rules.Document, i)
	}
	check(tenant.Runs().Erase(ctx, name("review")+"2", store.Act{Kind: store.KindRunErased, Reason: "asked for"}))
}

// reviewed stores a run that waits for a review: 0 is new, 1 was edited, 2 is decided.
func reviewed(t testing.TB, tenant store.Tenant, id string, cited assay.Document, i int) {
	t.Helper()
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	lease, err := tenant.Runs().Create(ctx, assay.Run{ID: id, Principal: assay.Local(), Question: "Who approves " + id + "?", Request: json.RawMessage(`{}`)})
	check(err)
	_, err = lease.Append(ctx, assay.Record{Path: "plan", Kind: assay.StepPlan, Input: json.RawMessage(`{}`), Output: json.RawMessage(`{}`)})
	check(err)
	shown := assay.Answer{Status: assay.PendingReview}
	r := store.Review{Case: json.RawMessage(`{"needed":1}`), Draft: json.RawMessage(`{"text":"The head of ` + id + `"}`)}
	pins := []store.Pin{{Document: cited.ID, Version: cited.Version}}
	check(lease.Suspend(ctx, shown, r, pins, store.Act{Kind: "review.needed"}))
	check(lease.Close())
	if i == 0 {
		return
	}
	r, err = tenant.Reviews().Review(ctx, id)
	check(err)
	r.Case, r.Draft = json.RawMessage(`{"needed":1,"claim":"ann"}`), json.RawMessage(`{"text":"edited"}`)
	check(tenant.Reviews().Change(ctx, r, store.ReviewChange{
		Records: []assay.Record{{Path: "review_ruling[0]/ruling", Kind: assay.StepHuman, Input: json.RawMessage(`{}`), Output: json.RawMessage(`{}`)}},
		Acts:    []store.Act{{Kind: "review.edited"}},
	}))
	if i == 1 {
		return
	}
	r, err = tenant.Reviews().Review(ctx, id)
	check(err)
	check(tenant.Reviews().Change(ctx, r, store.ReviewChange{Acts: []store.Act{{Kind: "review.decided"}}, Answer: &assay.Answer{Text: "edited"}}))
}

// runs stores a run: 0 and 2 are done and offered, 1 fails.
func runs(t testing.TB, tenant store.Tenant, id string, cited assay.Document, i int) {
	t.Helper()
	ctx := t.Context()
	lease, err := tenant.Runs().Create(ctx, assay.Run{ID: id, Principal: assay.Local(), Question: "Who approves " + id + "?", Request: json.RawMessage(`{"budget":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("the head of the department ", 12) + id
	for _, rec := range []assay.Record{
		{Path: "plan", Kind: assay.StepPlan, Input: json.RawMessage(`{"q":1}`), Output: json.RawMessage(`{"text":"` + long + `"}`)},
		{Path: "search", Kind: assay.StepSearch, Input: json.RawMessage(`{"text":"x"}`), Output: json.RawMessage(`[]`)},
	} {
		if _, err := lease.Append(ctx, rec); err != nil {
			t.Fatal(err)
		}
	}
	if i == 1 {
		err = lease.Finish(ctx, assay.RunFailed, nil, "the model failed")
	} else {
		err = lease.Finish(ctx, assay.RunDone, &assay.Answer{Text: "The head [1].", Citations: []assay.Citation{{Origin: assay.FromDocuments, Document: cited.ID, Version: cited.Version}}}, "")
	}
	if err = errors.Join(err, lease.Close()); err == nil && i != 1 {
		err = tenant.Runs().Offer(ctx, id, "key of "+id)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A tampering alters the files of the store. It reports false if it came to nothing.
type tampering struct {
	name string
	do   func(s *auditedStore, t testing.TB) bool
}

var tamperings = []tampering{
	{"cell", (*auditedStore).tamperCell},
	{"cell", (*auditedStore).tamperCell},
	{"cell", (*auditedStore).tamperCell},
	{"swap", (*auditedStore).tamperSwap},
	{"drop", (*auditedStore).tamperDrop},
	{"insert", (*auditedStore).tamperInsert},
	{"bytes", (*auditedStore).tamperBytes},
	{"truncate", (*auditedStore).tamperTruncate},
	{"rollback", (*auditedStore).tamperRollback},
	{"recompute", (*auditedStore).tamperRecomputed},
	{"recompute", (*auditedStore).tamperRecomputed},
	{"schema", (*auditedStore).tamperSchema},
}

// edit runs fn on a database of the store, without the store.
func (s *auditedStore) edit(t testing.TB, name string, fn func(*sql.DB) error) error {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+s.path(name))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF"); err != nil {
		return errors.Join(err, db.Close())
	}
	return errors.Join(fn(db), db.Close())
}

// pick returns a random database and table.
func (s *auditedStore) pick() (database, table string, columns []string) {
	database = "runs.db"
	if s.rand.IntN(2) == 0 {
		database = "content.db"
	}
	tables := slices.Sorted(maps.Keys(coveredColumns[database]))
	table = tables[s.rand.IntN(len(tables))]
	return database, table, coveredColumns[database][table]
}

// pickRow returns a condition that selects one random row.
func (s *auditedStore) pickRow(db *sql.DB, table string) (where string, args []any, err error) {
	rows, err := db.Query("SELECT name FROM pragma_table_info(?) WHERE pk > 0", table)
	if err != nil {
		return "", nil, err
	}
	var keys []string
	for rows.Next() {
		var key string
		if err := rows.Scan(&key); err != nil {
			return "", nil, err
		}
		keys = append(keys, key)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return "", nil, err
	}
	var n int
	if err := db.QueryRow("SELECT count(*) FROM " + table).Scan(&n); err != nil || n == 0 {
		return "", nil, cmpErr(err, errors.New("empty"))
	}
	dest := make([]any, len(keys))
	args = make([]any, len(keys))
	var terms []string
	for i, key := range keys {
		dest[i] = &args[i]
		terms = append(terms, key+" = ?")
	}
	err = db.QueryRow("SELECT "+strings.Join(keys, ", ")+" FROM "+table+" LIMIT 1 OFFSET ?", s.rand.IntN(n)).Scan(dest...)
	return strings.Join(terms, " AND "), args, err
}

func cmpErr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// mutate returns another value of the same type.
func (s *auditedStore) mutate(v any) any {
	switch v := v.(type) {
	case nil:
		return []any{int64(1), "x", []byte("x")}[s.rand.IntN(3)]
	case int64:
		return v + []int64{1, -1, 7, 1 << 20}[s.rand.IntN(4)]
	case string:
		b := []byte(v)
		if len(b) == 0 || s.rand.IntN(4) == 0 {
			return v + "x"
		}
		i := s.rand.IntN(len(b))
		b[i] = "abcxyz0123456789 {}"[s.rand.IntN(19)]
		return string(b)
	case []byte:
		b := bytes.Clone(v)
		if len(b) == 0 || s.rand.IntN(4) == 0 {
			return append(b, 1)
		}
		b[s.rand.IntN(len(b))] ^= byte(1 + s.rand.IntN(255))
		return b
	}
	return "x"
}

// coveredPrincipal is the principal of a run unless it was erased.
const coveredPrincipal = "CASE (SELECT state FROM progress WHERE run = runs.number) WHEN 'erased' THEN '' ELSE principal END"

// tamperCell alters one value.
func (s *auditedStore) tamperCell(t testing.TB) bool {
	database, table, columns := s.pick()
	column := columns[s.rand.IntN(len(columns))]
	return s.edit(t, database, func(db *sql.DB) error {
		where, args, err := s.pickRow(db, table)
		if err != nil {
			return err
		}
		var old any
		if err := db.QueryRow("SELECT "+column+" FROM "+table+" WHERE "+where, args...).Scan(&old); err != nil {
			return err
		}
		var erased bool
		if column == "principal" {
			err := db.QueryRow("SELECT "+coveredPrincipal+" = '' FROM "+table+" WHERE "+where, args...).Scan(&erased)
			if err != nil || erased {
				return cmpErr(err, errors.New("not covered"))
			}
		}
		value := s.mutate(old)
		if old != nil && s.rand.IntN(10) == 0 {
			value = nil
		}
		if equalValues(old, value) {
			return errors.New("the same value")
		}
		r, err := db.Exec("UPDATE "+table+" SET "+column+" = ? WHERE "+where, append([]any{value}, args...)...)
		return affected(r, err)
	}) == nil
}

func equalValues(a, b any) bool { return fmt.Sprintf("%T %v", a, a) == fmt.Sprintf("%T %v", b, b) }

func affected(r sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return cmpErr(err, errors.New("no row"))
	}
	return nil
}

// tamperSwap exchanges a value of two rows.
func (s *auditedStore) tamperSwap(t testing.TB) bool {
	database, table, columns := s.pick()
	column := columns[s.rand.IntN(len(columns))]
	return s.edit(t, database, func(db *sql.DB) error {
		one, oneArgs, err := s.pickRow(db, table)
		if err != nil {
			return err
		}
		two, twoArgs, err := s.pickRow(db, table)
		if err != nil {
			return err
		}
		var a, b any
		err = errors.Join(
			db.QueryRow("SELECT "+column+" FROM "+table+" WHERE "+one, oneArgs...).Scan(&a),
			db.QueryRow("SELECT "+column+" FROM "+table+" WHERE "+two, twoArgs...).Scan(&b))
		if err != nil || equalValues(a, b) {
			return cmpErr(err, errors.New("the same value"))
		}
		r, err := db.Exec("UPDATE "+table+" SET "+column+" = ? WHERE "+one, append([]any{b}, oneArgs...)...)
		if err := affected(r, err); err != nil {
			return err
		}
		_, _ = db.Exec("UPDATE "+table+" SET "+column+" = ? WHERE "+two, append([]any{a}, twoArgs...)...) // half a swap is one too
		return nil
	}) == nil
}

// tamperDrop deletes a row.
func (s *auditedStore) tamperDrop(t testing.TB) bool {
	database, table, _ := s.pick()
	return s.edit(t, database, func(db *sql.DB) error {
		where, args, err := s.pickRow(db, table)
		if err != nil {
			return err
		}
		r, err := db.Exec("DELETE FROM "+table+" WHERE "+where, args...)
		return affected(r, err)
	}) == nil
}

// tamperInsert inserts a copy of a row with other keys.
func (s *auditedStore) tamperInsert(t testing.TB) bool {
	database, table, columns := s.pick()
	return s.edit(t, database, func(db *sql.DB) error {
		where, args, err := s.pickRow(db, table)
		if err != nil {
			return err
		}
		var all []string
		rows, err := db.Query("SELECT name FROM pragma_table_info(?)", table)
		if err != nil {
			return err
		}
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				return err
			}
			all = append(all, name)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
		values, dest := make([]any, len(all)), make([]any, len(all))
		for i := range all {
			dest[i] = &values[i]
		}
		if err := db.QueryRow("SELECT * FROM "+table+" WHERE "+where, args...).Scan(dest...); err != nil {
			return err
		}
		for range 1 + s.rand.IntN(3) {
			i := slices.Index(all, columns[s.rand.IntN(len(columns))])
			values[i] = s.mutate(values[i])
		}
		if i := slices.Index(all, "number"); i >= 0 {
			values[i] = nil // the next one
		}
		marks := strings.TrimSuffix(strings.Repeat("?,", len(all)), ",")
		r, err := db.Exec("INSERT INTO "+table+" VALUES ("+marks+")", values...)
		return affected(r, err)
	}) == nil
}

// tamperBytes flips bytes of a file. It comes to nothing if no covered value can be read differently.
func (s *auditedStore) tamperBytes(t testing.TB) bool {
	name := []string{"runs.db", "content.db"}[s.rand.IntN(2)]
	data := bytes.Clone(s.files[name])
	for range 1 + s.rand.IntN(3) {
		data[s.rand.IntN(len(data))] ^= byte(1 + s.rand.IntN(255))
	}
	before := s.dump(t, name)
	s.restore(t, map[string][]byte{name: data})
	return s.dump(t, name) != before
}

// dump returns the covered values of a database, or the error of reading them.
func (s *auditedStore) dump(t testing.TB, name string) string {
	var out strings.Builder
	err := s.edit(t, name, func(db *sql.DB) error {
		for _, table := range slices.Sorted(maps.Keys(coveredColumns[name])) {
			columns := strings.Join(coveredColumns[name][table], ", ")
			if table == "runs" {
				columns = strings.Replace(columns, "principal", coveredPrincipal, 1)
			}
			rows, err := db.Query("SELECT " + columns + " FROM " + table)
			if err != nil {
				return err
			}
			for rows.Next() {
				values := make([]any, len(coveredColumns[name][table]))
				dest := make([]any, len(values))
				for i := range values {
					dest[i] = &values[i]
				}
				if err := rows.Scan(dest...); err != nil {
					return errors.Join(err, rows.Close())
				}
				fmt.Fprintf(&out, "%s %s\n", table, strings.ReplaceAll(fmt.Sprint(values...), "\n", " "))
			}
			if err := errors.Join(rows.Err(), rows.Close()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err.Error()
	}
	return out.String()
}

// tamperTruncate removes the last entries of the log with everything that counts them.
func (s *auditedStore) tamperTruncate(t testing.TB) bool {
	return s.edit(t, "runs.db", func(db *sql.DB) error {
		var size int64
		if err := db.QueryRow("SELECT sequence FROM store").Scan(&size); err != nil {
			return err
		}
		keep := 2 + s.rand.Int64N(size-4) // the last two entries are the checkpoint's own and one before
		for _, statement := range []string{
			"DELETE FROM log WHERE sequence > ?", "DELETE FROM acts WHERE sequence > ?", "DELETE FROM records WHERE sequence > ?", "UPDATE store SET sequence = ?",
		} {
			if _, err := db.Exec(statement, keep); err != nil {
				return err
			}
		}
		_, err := db.Exec("DELETE FROM tree WHERE position >= ?", tlog.StoredHashCount(keep))
		return err
	}) == nil
}

// tamperRollback restores an older copy of one or both databases. Sometimes the program goes on with
// it.
func (s *auditedStore) tamperRollback(t testing.TB) bool {
	files := maps.Clone(s.older)
	switch s.rand.IntN(3) {
	case 0:
		delete(files, "runs.db")
	case 1:
		delete(files, "content.db")
	}
	s.restore(t, files)
	if s.rand.IntN(2) == 0 {
		return true
	}
	st, err := sqlite.Open(t.Context(), s.dir)
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := st.Tenant(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	for range s.rand.IntN(60) {
		_ = tenant.Audit().Append(t.Context(), store.Act{Kind: "later.done"})
	}
	return tenant.Close() == nil
}

// tamperSchema adds something to the databases that would run later.
func (s *auditedStore) tamperSchema(t testing.TB) bool {
	statements := []string{
		"CREATE TRIGGER later AFTER INSERT ON log BEGIN DELETE FROM tree; END", "CREATE TABLE extra (x)", "DROP INDEX runs_created",
		"CREATE INDEX more ON offers (key)", "CREATE VIEW other AS SELECT * FROM runs",
	}
	return s.edit(t, "runs.db", func(db *sql.DB) error {
		_, err := db.Exec(statements[s.rand.IntN(len(statements))])
		return err
	}) == nil
}

// A forgedEntry is an entry that an attacker who knows the format may alter at will.
type forgedEntry struct {
	header, payload, salt []byte
	act                   bool
}

// tamperRecomputed alters entries and computes all hashes again.
func (s *auditedStore) tamperRecomputed(t testing.TB) bool {
	return s.edit(t, "runs.db", func(db *sql.DB) error {
		entries, err := readEntries(db)
		if err != nil {
			return err
		}
		n := len(entries) - 2 // under the checkpoint
		i, j := s.rand.IntN(n), s.rand.IntN(n)
		switch kind := s.rand.IntN(4); {
		case kind == 0 && i != j:
			entries[i], entries[j] = entries[j], entries[i]
		case kind == 1:
			entries = slices.Delete(entries, i, i+1)
		case kind == 2:
			entries = slices.Insert(entries, j, entries[i])
		default:
			if err := s.forgeAnswer(db, entries, i); err != nil {
				return err
			}
		}
		return writeEntries(db, entries)
	}) == nil
}

// forgeAnswer alters the payload of an act and, if it is the end of a run, its answer too.
func (s *auditedStore) forgeAnswer(db *sql.DB, entries []forgedEntry, i int) error {
	for !entries[i].act || entries[i].payload == nil {
		i = (i + 1) % (len(entries) - 2)
	}
	e := entries[i]
	act, err := journal.OpenAct(e.header, e.payload, e.salt, tlog.RecordHash(e.header))
	if err != nil {
		return err
	}
	act.Reason += "forged"
	if act.Kind == store.KindRunEnded {
		var detail map[string]any
		answer := `{"text":"Another answer."}`
		if err := json.Unmarshal(act.Detail, &detail); err != nil {
			return err
		}
		detail["answer"] = fmt.Sprintf("%x", sha256Of(answer))
		if act.Detail, err = json.Marshal(detail); err != nil {
			return err
		}
		if _, err := db.Exec("UPDATE runs SET answer = ? WHERE id = ?", answer, act.Subject); err != nil {
			return err
		}
	}
	salt := journal.NewSalt()
	sealed, err := journal.SealAct(act, salt)
	entries[i] = forgedEntry{sealed.Header, sealed.Payload, salt, true}
	return err
}

func readEntries(db *sql.DB) ([]forgedEntry, error) {
	rows, err := db.Query(`
SELECT l.header, coalesce(a.payload, r.payload), coalesce(a.salt, r.salt), a.sequence IS NOT NULL
FROM log l LEFT JOIN acts a ON a.sequence = l.sequence LEFT JOIN records r ON r.sequence = l.sequence ORDER BY l.sequence`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []forgedEntry
	for rows.Next() {
		var e forgedEntry
		if err := rows.Scan(&e.header, &e.payload, &e.salt, &e.act); err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, rows.Err()
}

// writeEntries stores the entries in their order, with numbers, leaves and tree of their own.
func writeEntries(db *sql.DB, entries []forgedEntry) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	exec := func(query string, args ...any) {
		if err == nil {
			_, err = tx.Exec(query, args...)
		}
	}
	exec("DELETE FROM log")
	exec("DELETE FROM tree")
	exec("DELETE FROM acts")
	var stored []tlog.Hash
	for i, e := range entries {
		var h map[string]any
		dec := json.NewDecoder(bytes.NewReader(e.header))
		dec.UseNumber()
		if err := dec.Decode(&h); err != nil {
			return err
		}
		h["sequence"] = i + 1
		header, canonicalErr := journal.Canonical(h)
		if canonicalErr != nil {
			return canonicalErr
		}
		leaf := tlog.RecordHash(header)
		exec("INSERT INTO log VALUES (?, ?, ?)", i+1, string(header), leaf[:])
		hashes, hashErr := tlog.StoredHashesForRecordHash(int64(i), leaf, tlog.HashReaderFunc(func(positions []int64) ([]tlog.Hash, error) {
			var all []tlog.Hash
			for _, p := range positions {
				all = append(all, stored[p])
			}
			return all, nil
		}))
		if hashErr != nil {
			return hashErr
		}
		for _, hash := range hashes {
			exec("INSERT INTO tree VALUES (?, ?)", len(stored), hash[:])
			stored = append(stored, hash)
		}
		if e.act {
			var payload any
			if e.payload != nil {
				payload = string(e.payload)
			}
			exec("INSERT INTO acts VALUES (?, ?, ?, ?, ?)", i+1, h["act"], h["subject"], e.salt, payload)
		}
	}
	exec("UPDATE store SET sequence = ?", len(entries))
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// TestTamperings alters copies of an audited store at random. Each alteration must be found from the
// last checkpoint. ASSAY_LONG=1 makes 10,000.
func TestTamperings(t *testing.T) {
	rounds := 300
	if os.Getenv("ASSAY_LONG") != "" {
		rounds = 10_000
	}
	s := buildAudited(t, 1)
	counts, missed := map[string]int{}, 0
	for n := range rounds {
		how := tamperings[s.rand.IntN(len(tamperings))]
		for s.restore(t, s.files); !how.do(s, t); s.restore(t, s.files) { // until it comes to something
		}
		counts[how.name]++
		if len(s.found(t)) == 0 {
			missed++
			t.Errorf("%s (%d) was not found: %s", how.name, n, s.differences(t))
			if missed > 20 {
				t.Fatal("too many")
			}
		}
	}
	t.Logf("%d tamperings, %d missed: %v", rounds, missed, counts)
}

// differences shows what differs from the store before.
func (s *auditedStore) differences(t testing.TB) string {
	after := map[string]string{"runs.db": s.dump(t, "runs.db"), "content.db": s.dump(t, "content.db")}
	s.restore(t, s.files)
	var out strings.Builder
	for name, text := range after {
		was := strings.Split(s.dump(t, name), "\n")
		now := strings.Split(text, "\n")
		for _, line := range was {
			if !slices.Contains(now, line) {
				fmt.Fprintf(&out, "\n- %.300s", line)
			}
		}
		for _, line := range now {
			if !slices.Contains(was, line) {
				fmt.Fprintf(&out, "\n+ %.300s", line)
			}
		}
	}
	return out.String()
}

// TestNoFalseAlarms changes copies of an audited store by honest calls only.
func TestNoFalseAlarms(t *testing.T) {
	rounds := 50
	if os.Getenv("ASSAY_LONG") != "" {
		rounds = 500
	}
	s := buildAudited(t, 2)
	files := s.files
	for n := range rounds {
		s.restore(t, files)
		if n > 0 {
			s.change(t, func(tenant store.Tenant) { s.honest(t, tenant, 3+n) })
		}
		if all := s.found(t); len(all) > 0 {
			t.Fatalf("copy %d: %q", n, all)
		}
	}
	t.Logf("%d copies", rounds)
}

// honest makes some random changes through the store.
func (s *auditedStore) honest(t testing.TB, tenant store.Tenant, round int) {
	for range 1 + s.rand.IntN(4) {
		round += 1000
		switch s.rand.IntN(6) {
		case 0:
			populate(t, tenant, round)
		case 1:
			appendActs(t, tenant.Audit(), 1+s.rand.IntN(5))
		case 2:
			checkpoint(t, authority(tenant, s.key))
		case 3:
			w, err := tenant.Writer(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			e := storetest.Entry("docs", "/rules", "Another text "+strconv.Itoa(s.rand.IntN(3)))
			e.Document.ACL = assay.ACL{Restricted: s.rand.IntN(2) == 0}
			_, err = w.Put(t.Context(), e)
			_, pruneErr := w.Prune(t.Context())
			if err := errors.Join(err, pruneErr, w.Close()); err != nil {
				t.Fatal(err)
			}
		case 4:
			if err := tenant.Runs().Delete(t.Context(), "run10", store.Act{Kind: store.KindRunExpired}); err != nil && !errors.Is(err, assay.ErrNotFound) {
				t.Fatal(err)
			}
		case 5:
			runs(t, tenant, "more"+strconv.Itoa(round), storetest.Entry("docs", "/rules", "x").Document, s.rand.IntN(3))
		}
	}
}
