package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRedis(t *testing.T) {
	for name, x := range map[string]struct{ text, want, problem string }{
		"none":             {text: ""},
		"url":              {text: "redis:\n  url: redis://cache.example.com:6379\n", want: "redis://cache.example.com:6379"},
		"password":         {text: "redis:\n  url: rediss://cache.example.com\n  password: !env REDIS_SECRET\n", want: "rediss://cache.example.com"},
		"local password":   {text: "redis:\n  url: redis://localhost\n  password: !env REDIS_SECRET\n", want: "redis://localhost"},
		"key":              {text: "redis:\n  url: redis://cache\n  key: !env REDIS_KEY\n", want: "redis://cache"},
		"short key":        {text: "redis:\n  url: redis://cache\n  key: !env REDIS_SECRET\n", problem: "has 15 characters, want at least 32"},
		"no such key":      {text: "redis:\n  url: redis://cache\n  key: !env REDIS_NONE\n", problem: "redis.key: is empty"},
		"key itself":       {text: "redis:\n  url: redis://cache\n  key: hunter22222\n", problem: "must not be in the file"},
		"another scheme":   {text: "redis:\n  url: http://cache\n", problem: "want the URL of a Redis server"},
		"a parameter":      {text: "redis:\n  url: rediss://cache?skip_verify=true\n", problem: "want the URL of a Redis server"},
		"no url":           {text: "redis:\n  password: !env REDIS_SECRET\n", problem: "want the URL of a Redis server"},
		"password in it":   {text: "redis:\n  url: redis://:hunter22222@cache\n", problem: "other users could read a password here"},
		"not encrypted":    {text: "redis:\n  url: redis://cache.example.com\n  password: !env REDIS_SECRET\n", problem: "without encryption"},
		"offline":          {text: "egress:\n  offline: true\nredis:\n  url: redis://cache.example.com\n", problem: "offline"},
		"a database":       {text: "redis:\n  url: redis://localhost/2\n", want: "redis://localhost/2"},
		"a wrong database": {text: "redis:\n  url: redis://localhost/two\n", problem: "want the URL of a Redis server"},
		"offline, on this": {text: "egress:\n  offline: true\nredis:\n  url: redis://127.0.0.1:6379\n", want: "redis://127.0.0.1:6379"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(path, []byte(x.text), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := Load(Sources{File: path, Getenv: func(name string) string {
				return map[string]string{"REDIS_SECRET": "open sesame 123", "REDIS_KEY": strings.Repeat("k", 32)}[name]
			}})
			switch {
			case x.problem != "" && (err == nil || !strings.Contains(err.Error(), x.problem) || strings.Contains(err.Error(), "hunter")):
				t.Errorf("Load: %v, want %q", err, x.problem)
			case x.problem == "" && err != nil:
				t.Errorf("Load: %v", err)
			case x.problem == "" && (c.Redis.URL != x.want || strings.Contains(x.text, "password") == c.Redis.Password.Empty() || strings.Contains(x.text, "key") == c.Redis.Key.Empty()):
				t.Errorf("Redis: %+v", c.Redis)
			}
		})
	}
}

// TestDocumentedRedis checks that the documented example is valid.
func TestDocumentedRedis(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "scale.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, example, ok := strings.Cut(string(data), "```yaml norun\nredis:")
	if !ok {
		t.Fatal("docs/scale.md has no example")
	}
	example, _, _ = strings.Cut(example, "```")
	c := mustLoad(t, "redis:"+example, env{"REDIS_PASSWORD": "open sesame 123", "ASSAY_REDIS_KEY": strings.Repeat("k", 64)})
	if c.Redis.URL == "" || c.Redis.Password.Empty() || c.Redis.Key.Empty() {
		t.Errorf("Redis: %+v", c.Redis)
	}
}
