package egress_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// reviewed lists the places outside this package that may make a client, a transport or a dialer,
// with the reason.
var reviewed = map[string]string{
	"client/client.go http.Client":                              "the caller's, who names the server",
	"cmd/assay/servelisten.go net.Dial":                         "asks a socket of this machine whether it is used",
	"scripts/joint/client.go http.Client":                       "a test of this machine's own servers",
	"scripts/joint/check.go pgx.Connect":                        "its own database",
	"scripts/joint/database.go pgx.Connect":                     "its own database",
	"scripts/joint/world.go http.DefaultClient":                 "a test of this machine's own nodes",
	"scripts/load/main.go http.Client":                          "a measurement of this machine's own server",
	"scripts/load/main.go http.Transport":                       "a measurement of this machine's own server",
	"scripts/scale/ask.go http.Client":                          "a measurement of this machine's own servers",
	"scripts/scale/ask.go http.Transport":                       "a measurement of this machine's own servers",
	"scripts/scale/rig.go http.Get":                             "a measurement of this machine's own servers",
	"scripts/scale/rig.go pgx.Connect":                          "the operator's database, by its URL",
	"source/git/fetch.go http.Client":                           "its transport is the source's own client",
	"source/internal/rest/client.go http.Client":                "its transport is that of the source's client",
	"provider/internal/wire/client.go http.Client":              "its transport refuses, or is the configured one",
	"source/sqldb/dialect.go mssql":                             "dials by the source's Dial",
	"source/sqldb/dialect.go stdlib":                            "dials by the source's Dial",
	"source/sqldb/dialect.go mysql":                             "dials by the source's Dial",
	"internal/index/pgvector/database.go pgx.ConnectConfig":     "the operator's database, by its URL",
	"cmd/assay/postgres.go pgx.Connect":                         "the operator's database, by its URL",
	"internal/queue/queue.go pgxpool.NewWithConfig":             "the operator's database, by its URL",
	"internal/index/pgvector/database.go pgxpool.NewWithConfig": "the operator's database, by its URL",
	"store/postgres/connect.go pgxpool.NewWithConfig":           "the operator's database, by its URL",
	"store/postgres/connect.go pgconn.ConnectConfig":            "the operator's database, by its URL",
	"provider/redis/conn.go net.Dialer":                         "the operator's server, by its URL",
	"provider/redis/redis.go goredis.NewClient":                 "dials by dialer in conn.go",
	"internal/webfetch/webfetch.go http.Client":                 "its transport is configured by the scope",
	"provider/internal/awswire/awswire.go http.Client":          "its transport is configured by the scope",
	"internal/index/neptune/client.go http.Client":              "its transport is configured by the scope",
}

// banned lists what makes connections: by package, names, or all of it.
var banned = map[string][]string{
	"net/http":                        {"DefaultClient", "DefaultTransport", "Client", "Transport", "Get", "Post", "PostForm", "Head", "ProxyFromEnvironment"},
	"net":                             {"Dial", "DialTimeout", "DialTCP", "DialUDP", "DialIP", "DialUnix", "Dialer", "Resolver", "DefaultResolver", "LookupHost", "LookupIP", "LookupAddr", "LookupCNAME", "LookupMX", "LookupNS", "LookupSRV", "LookupTXT"},
	"crypto/tls":                      {"Dial", "DialWithDialer", "Dialer"},
	"google.golang.org/grpc":          {"Dial", "DialContext", "NewClient"},
	"net/smtp":                        {"Dial", "SendMail"},
	"net/rpc":                         {"Dial", "DialHTTP"},
	"github.com/jackc/pgx/v5":         {"Connect", "ConnectConfig", "ConnectWithOptions"},
	"github.com/jackc/pgx/v5/pgconn":  {"Connect", "ConnectConfig", "ConnectWithOptions"},
	"github.com/jackc/pgx/v5/pgxpool": {"New", "NewWithConfig"},
	"github.com/jackc/pgx/v5/stdlib":  nil,
	"github.com/redis/go-redis/v9":    {"NewClient", "NewClusterClient", "NewFailoverClient", "NewUniversalClient", "NewRing", "NewSentinelClient"},
	"github.com/go-sql-driver/mysql":  nil,
	"github.com/microsoft/go-mssqldb": nil,
	"github.com/go-git/go-git/v5/plumbing/transport/ssh": nil,
	"github.com/go-git/go-git/v5/plumbing/transport/git": nil,
	"golang.org/x/crypto/ssh":                            nil,
	"golang.org/x/net/proxy":                             nil,
	"golang.org/x/net/websocket":                         nil,
}

// TestEveryDial checks that connections are made by this package alone, and by what is reviewed.
// Tests, their helpers and the benchmarks are exempt.
func TestEveryDial(t *testing.T) {
	t.Parallel()
	root, used := filepath.Join("..", ".."), map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			name := d.Name()
			exempt := rel == "bench" || rel == "internal/egress" || rel == "llm/llmtest" || name == "testdata" || strings.HasSuffix(name, "test") && name != "test"
			if exempt || rel != "." && strings.HasPrefix(name, ".") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		for _, use := range connecting(t, path) {
			if reviewed[rel+" "+use] == "" {
				t.Errorf("%s uses %s; connect through a scope of internal/egress", rel, use)
			}
			used[rel+" "+use] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for place := range reviewed {
		if !used[place] {
			t.Errorf("%s is reviewed and not there", place)
		}
	}
}

// connecting returns what a file uses that makes connections. Types of fields and parameters are
// pointers, and are not counted.
func connecting(t *testing.T, path string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string][]string{} // by the name of the import in the file
	for _, imp := range f.Imports {
		p, _ := strconv.Unquote(imp.Path.Value)
		what, ok := banned[p]
		if !ok {
			continue
		}
		name := map[string]string{"github.com/jackc/pgx/v5": "pgx", "github.com/microsoft/go-mssqldb": "mssql"}[p]
		if name == "" {
			name = p[strings.LastIndexByte(p, '/')+1:]
		}
		if imp.Name != nil {
			name = imp.Name.Name
		}
		names[name] = what
	}
	seen, pointers := map[string]bool{}, map[ast.Node]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if star, ok := n.(*ast.StarExpr); ok {
			pointers[star.X] = true
		}
		s, ok := n.(*ast.SelectorExpr)
		if !ok || pointers[s] {
			return true
		}
		pkg, ok := s.X.(*ast.Ident)
		if !ok {
			return true
		}
		what, ok := names[pkg.Name]
		switch {
		case !ok:
		case what == nil:
			seen[pkg.Name] = true
		default:
			for _, name := range what {
				if s.Sel.Name == name {
					seen[pkg.Name+"."+name] = true
				}
			}
		}
		return true
	})
	var uses []string
	for use := range seen {
		uses = append(uses, use)
	}
	return uses
}
