// Package kinds lists the kinds of source that are built in.
package kinds

import (
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/source/confluence"
	"github.com/assay-rag/assay/source/feed"
	"github.com/assay-rag/assay/source/folder"
	"github.com/assay-rag/assay/source/gdrive"
	"github.com/assay-rag/assay/source/git"
	"github.com/assay-rag/assay/source/jira"
	"github.com/assay-rag/assay/source/notion"
	"github.com/assay-rag/assay/source/s3"
	"github.com/assay-rag/assay/source/sharepoint"
	"github.com/assay-rag/assay/source/slack"
	"github.com/assay-rag/assay/source/sqldb"
	"github.com/assay-rag/assay/source/web"
)

// All returns the built-in kinds, by name.
func All() []source.Kind {
	return []source.Kind{
		sqldb.Aurora(),
		confluence.Kind(),
		feed.Kind(),
		folder.Kind(),
		gdrive.Kind(),
		git.Kind(),
		jira.Kind(),
		notion.Kind(),
		s3.Kind(),
		sharepoint.Kind(),
		slack.Kind(),
		sqldb.Kind(),
		web.Kind(),
	}
}
