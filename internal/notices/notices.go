// Package notices has the licences of everything that the programs assay and assay-lambda contain: Go's
// library, the modules that they are linked with, and the data and programs that are embedded in them.
//
// The texts are embedded, compressed, from notices.json.gz. After a change of dependencies write it
// again:
//
//	go generate ./internal/notices
package notices

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

//go:generate go run ./generate notices.json.gz

//go:embed notices.json.gz
var compressed []byte

// A Notice is the licence of one part of the program.
type Notice struct {
	Name    string `json:"name"`              // of a module, its path
	Version string `json:"version,omitempty"` // of a module
	License string `json:"license"`           // SPDX identifiers, joined by AND; see Identify
	Texts   []Text `json:"texts"`
}

// A Text is one file.
type Text struct {
	File string `json:"file"` // its path in the module or the repository
	Text string `json:"text"`
}

// All returns the notices by name.
var All = sync.OnceValues(func() ([]Notice, error) {
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, fmt.Errorf("read the licences: %w", err)
	}
	var all []Notice
	if err := json.NewDecoder(r).Decode(&all); err != nil {
		return nil, fmt.Errorf("read the licences: %w", err)
	}
	return all, nil
})

// marks are sentences of the licences that are in use. The first of a text that is found counts.
var marks = []struct{ id, text string }{
	{"Apache-2.0", "Apache License Version 2.0"},
	{"MPL-2.0", "Mozilla Public License Version 2.0"},
	{"MPL-2.0", "Mozilla Public License, version 2.0"},
	{"ISC", "Permission to use, copy, modify, and/or distribute this software for any purpose"},
	{"ISC", "Permission to use, copy, modify, and distribute this software for any purpose"},
	{"BSD-3-Clause", "endorse or promote products derived from"},
	{"BSD-2-Clause", "Redistributions in binary form must reproduce the above copyright"},
	{"MIT", "Permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"Unlicense", "This is free and unencumbered software released into the public domain"},
	{"CC0-1.0", "CC0 1.0 Universal"},
	{"Zlib", "This software is provided 'as-is', without any express or implied"},
	{"SQLite", "The author disclaims copyright to this source code"},
}

// Identify returns the SPDX identifier of a licence's text, or "" if it is none that is known here.
func Identify(text string) string {
	words := strings.Join(strings.Fields(text), " ")
	for _, m := range marks {
		if strings.Contains(words, m.text) {
			return m.id
		}
	}
	return ""
}
