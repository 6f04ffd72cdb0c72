package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
)

func (a *app) documentsCommand() *cobra.Command {
	var asJSON bool
	var collections []string
	cmd := &cobra.Command{
		Use:   "documents",
		Short: "List the ingested documents",
		Long: `Documents lists the documents that questions are answered from, with the collection,
type, path and title of each. With --docs it lists the documents of that store.`,
		Example: `  assay documents
  assay documents --collection policies --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.documents(cmd.Context(), collections, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	cmd.Flags().StringArrayVar(&collections, "collection", nil, "list only this `collection`; may be repeated")
	return cmd
}

// listedDocument is the JSON of a document in a list, without its text.
type listedDocument struct {
	ID         string         `json:"id"`
	Version    string         `json:"version"`
	Collection string         `json:"collection"`
	URI        string         `json:"uri"`
	Title      string         `json:"title"`
	Metadata   assay.Metadata `json:"metadata"`
	ACL        assay.ACL      `json:"acl"`
	SizeBytes  int64          `json:"size_bytes"`
	Modified   time.Time      `json:"modified"`
}

func (a *app) documents(ctx context.Context, collections []string, asJSON bool) error {
	e, err := a.openExisting(ctx, looking)
	if err != nil {
		return err
	}
	defer e.Close()
	list := []listedDocument{}
	for d, err := range e.Documents(ctx, assay.Local(), collections...) {
		if err != nil {
			return err
		}
		list = append(list, listedDocument{
			ID: d.ID, Version: d.Version, Collection: d.Collection, URI: d.URI, Title: d.Title,
			Metadata: d.Metadata, ACL: d.ACL, SizeBytes: d.Source.SizeBytes, Modified: d.Source.Modified,
		})
	}
	if asJSON {
		return writeJSON(a.stdout, list)
	}
	for _, d := range list {
		fmt.Fprintf(a.stdout, "%-12s  %-8s  %s  %s\n", d.Collection, d.Metadata[assay.MetaType].Text(), shortPath(d.URI), title(d.Title, nil))
	}
	_, err = fmt.Fprintln(a.stdout, count(len(list), "document", "documents"))
	return err
}
