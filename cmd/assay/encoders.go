package main

import "github.com/assay-rag/assay/engine"

// encoders are the sentence encoders that are installed; nil: none.
func (a *app) encoders() engine.Encoders { return a.installed }
